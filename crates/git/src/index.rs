//! The entries of an index: which contents it names for which paths. Times and sizes of files, which every look at them
//! changes, are left out.

/// Before the entries: a mark, a version, a count.
const HEAD: usize = 12;
/// Times, numbers and sizes of a file; in between lies its mode.
const MODE: std::ops::Range<usize> = 24..28;
/// With the name of the contents and the flags.
const FIXED: usize = 62;
const EXTENDED: u16 = 0x4000;

/// Mode, contents and path of each entry, in one text. `None`: it is of another kind, or cut short.
pub fn index_entries(bytes: &[u8]) -> Option<Vec<u8>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(4).filter(|version| bytes.starts_with(b"DIRC") && (2..=4).contains(version))?;
    let mut found = Vec::new();
    let mut at = HEAD;
    for _ in 0..number(8)? {
        let fixed = bytes.get(at..at + FIXED)?;
        let flags = u16::from_be_bytes(fixed.get(FIXED - 2..)?.try_into().ok()?);
        found.extend_from_slice(fixed.get(MODE)?);
        found.extend_from_slice(fixed.get(40..FIXED)?);
        let start = at + FIXED + if flags & EXTENDED == 0 { 0 } else { 2 };
        found.extend_from_slice(bytes.get(at + FIXED..start)?);
        // In version 4 a path begins with how much of the last one it leaves out.
        let length = bytes.get(start..)?.iter().position(|byte| *byte == 0)?;
        found.extend_from_slice(bytes.get(start..=start + length)?);
        let end = start + length + 1;
        at = if version == 4 { end } else { at + (end - at).next_multiple_of(8) };
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(version: u32, entries: &[(&str, u8, u8)]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        for (path, time, contents) in entries {
            let start = bytes.len();
            bytes.extend([*time; 24]);
            bytes.extend([0, 0, 0x81, 0xa4]);
            bytes.extend([*time; 12]);
            bytes.extend([*contents; 20]);
            bytes.extend(u16::try_from(path.len()).unwrap().to_be_bytes());
            bytes.extend(path.as_bytes());
            bytes.push(0);
            while version < 4 && !(bytes.len() - start).is_multiple_of(8) {
                bytes.push(0);
            }
        }
        bytes.extend([9; 20]);
        bytes
    }

    #[test]
    fn times_do_not_count_and_contents_do() {
        for version in 2..=4 {
            let one = index_entries(&index(version, &[("a", 1, 7), ("src/long name.rs", 1, 8)])).unwrap();
            let looked = index_entries(&index(version, &[("a", 2, 7), ("src/long name.rs", 3, 8)])).unwrap();
            let staged = index_entries(&index(version, &[("a", 1, 7), ("src/long name.rs", 1, 9)])).unwrap();
            assert!(one == looked && one != staged, "{version}");
        }
        assert_eq!(index_entries(b"DIRC"), None);
        assert_eq!(index_entries(&index(2, &[("a", 1, 7)])[..40]), None);
        assert_eq!(index_entries(b""), None);
    }
}
