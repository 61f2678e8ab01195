//! Memory that a server which rests gives back: the heap that a burst left behind, and pages of the program that the
//! start needed and nothing needs again.
//!
//! The kernel maps sixteen pages around each one that is used, so most of the mapped program was never looked at.
//! Invariant: only what the kernel can read again from the same file is let go.

/// Takes a few milliseconds; what is needed again is mapped again when it is used.
#[cfg(target_os = "linux")]
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` takes glibc's own locks and frees nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
    let Ok(smaps) = std::fs::read_to_string("/proc/self/smaps") else { return };
    for (start, length) in clean_file_maps(&smaps) {
        // SAFETY: the range is a private file mapping that nobody may write to and of which no page was ever copied, so
        // each page equals the file's and is read from there again at its next use, by whichever thread. Mappings of
        // the program and its libraries stay where they are until the process ends: nothing here unloads one.
        let _ = unsafe {
            rustix::mm::madvise(start as *mut std::ffi::c_void, length, rustix::mm::Advice::LinuxDontNeed)
        };
    }
}

#[cfg(not(target_os = "linux"))]
pub fn give_back() {}

/// Start and length of each private, read-only mapping of a program file that holds nothing but the file's pages.
#[cfg(target_os = "linux")]
fn clean_file_maps(smaps: &str) -> Vec<(usize, usize)> {
    let mut maps = Vec::new();
    let mut current = None;
    for line in smaps.lines() {
        if let Some(header) = mapping(line) {
            current = header;
        } else if let Some(copied) = line.strip_prefix("Anonymous:") {
            maps.extend(current.take().filter(|_| copied.trim() == "0 kB"));
        }
    }
    maps
}

/// `None`: not the first line of a mapping. `Some(None)`: one to leave alone.
#[cfg(target_os = "linux")]
fn mapping(line: &str) -> Option<Option<(usize, usize)>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    let access = words.next()?;
    let path = words.nth(3).unwrap_or_default();
    let program = matches!(access, "r-xp" | "r--p") && path.starts_with('/');
    Some(program.then(|| (start, end.saturating_sub(start))))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_file_still_has_is_let_go() {
        let smaps = "\
1000-3000 r--p 00000000 fe:00 42                         /bin/program\nRss: 8 kB\nAnonymous:             0 kB\n\
3000-5000 r-xp 00002000 fe:00 42                         /bin/pro gram\nAnonymous:             0 kB\n\
5000-6000 r--p 00004000 fe:00 42                         /bin/program\nAnonymous:             4 kB\n\
6000-7000 rw-p 00005000 fe:00 42                         /bin/program\nAnonymous:             0 kB\n\
7000-8000 r--s 00000000 fe:00 43                         /models/small.gguf\nAnonymous:             0 kB\n\
8000-9000 r-xp 00000000 00:00 0                          [vdso]\nAnonymous:             0 kB\n\
9000-a000 r--p 00000000 00:00 0 \nAnonymous:             0 kB\n";
        assert_eq!(clean_file_maps(smaps), [(0x1000, 0x2000), (0x3000, 0x2000)]);
    }

    #[test]
    fn the_program_goes_on() {
        let heap = vec![7_u8; 1 << 20];
        give_back();
        assert!(heap.iter().all(|byte| *byte == 7));
        assert!(std::panic::catch_unwind(|| panic!("still found")).is_err());
    }
}
