//! A ZIP file of texts, without compression: an exported project has a few hundred small files.
//!
//! Invariant: names are relative and without detours; the same files give the same bytes.

/// The files as one archive, each below `folder`.
pub(crate) fn archive(folder: &str, files: &[(String, String)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for (name, text) in files {
        let (name, bytes) = (format!("{folder}/{name}"), text.as_bytes());
        let offset = size(out.len());
        let head = head(&name, bytes);
        out.extend_from_slice(b"PK\x03\x04");
        out.extend_from_slice(&head);
        out.extend_from_slice(&size(0).to_le_bytes()[..2]);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(bytes);
        directory.extend_from_slice(b"PK\x01\x02\x14\x03");
        directory.extend_from_slice(&head);
        // No extra field, no comment, the first disk, no inner attributes.
        directory.extend_from_slice(&[0; 8]);
        // A plain file that its owner may write and everybody may read.
        directory.extend_from_slice(&(0o100_644_u32 << 16).to_le_bytes());
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (start, length) = (size(out.len()), size(directory.len()));
    let count = u16::try_from(files.len()).unwrap_or(u16::MAX).to_le_bytes();
    out.extend_from_slice(&directory);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    out.extend_from_slice(&count);
    out.extend_from_slice(&count);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out
}

/// From the version that is needed to the length of the name, as both headers have it.
fn head(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(24);
    // Version 2.0, names in UTF-8, not compressed, midnight of 1980-01-01.
    head.extend_from_slice(&[20, 0, 0, 8, 0, 0, 0, 0, 0x21, 0]);
    head.extend_from_slice(&checksum(bytes).to_le_bytes());
    head.extend_from_slice(&size(bytes.len()).to_le_bytes());
    head.extend_from_slice(&size(bytes.len()).to_le_bytes());
    head.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
    head
}

fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// CRC-32 as ZIP has it.
fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn an_archive_has_its_headers_in_place() {
        let files = [("a.txt".to_owned(), "one".to_owned()), ("b/c.txt".to_owned(), "two".to_owned())];
        let bytes = archive("p", &files);
        assert!(bytes.starts_with(b"PK\x03\x04\x14\0"));
        let end = bytes.len() - 22;
        assert_eq!(&bytes[end..end + 4], b"PK\x05\x06");
        let start = u32::from_le_bytes(bytes[end + 16..end + 20].try_into().unwrap()) as usize;
        assert_eq!(&bytes[start..start + 4], b"PK\x01\x02");
        let name = &bytes[start + 46..start + 46 + 7];
        assert_eq!(name, b"p/a.txt");
    }
}
