//! Memory that a server which rests gives back: the heap that a burst left behind, and pages of the program that the
//! start needed and nothing needs again.
//!
//! The kernel maps sixteen pages around each one that is used, so most of the mapped program was never looked at.
//! Invariant: only pages that can be read again from the program's file are let go.

/// Takes a few milliseconds; what is needed again is mapped again when it is used.
#[cfg(target_os = "linux")]
pub(crate) fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` takes glibc's own locks and frees nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
    for (start, length) in code() {
        // SAFETY: the range lies within a segment of the program itself, which is mapped from its file, privately, and
        // stays mapped until the process ends. Nobody may write to it: what the loader relocates is in writable
        // segments, because the program is position independent. So each page equals the file's and is read from there
        // again at its next use, by whichever thread.
        let _ = unsafe {
            rustix::mm::madvise(start as *mut std::ffi::c_void, length, rustix::mm::Advice::LinuxDontNeed)
        };
    }
}

#[cfg(not(target_os = "linux"))]
pub fn trim() {}

/// Start and length of the whole pages in each segment of the program that is never written to.
#[cfg(target_os = "linux")]
fn code() -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    // SAFETY: `first` reads what it is handed only while it runs, and takes the last argument for what it is here.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut ranges).cast()) };
    ranges
}

/// The first object is the program; the libraries after it may be unmapped while we look.
#[cfg(target_os = "linux")]
unsafe extern "C" fn first(
    object: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    ranges: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the loader hands over a valid object with `dlpi_phnum` headers for the time of this call; `ranges` is the
    // vector of `code`, which nobody else has while it waits.
    let (base, headers, ranges) = unsafe {
        let object = &*object;
        let headers = std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum));
        (object.dlpi_addr as usize, headers, &mut *ranges.cast::<Vec<(usize, usize)>>())
    };
    let page = rustix::param::page_size();
    for header in headers {
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0 {
            let start = (base + header.p_vaddr as usize).next_multiple_of(page);
            let end = (base + (header.p_vaddr + header.p_filesz) as usize) / page * page;
            ranges.extend((end > start).then(|| (start, end - start)));
        }
    }
    1
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_program_itself_is_let_go_and_nothing_that_is_written_to() {
        static WRITTEN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(7);
        let ranges = code();
        let has =
            |place: usize| ranges.iter().any(|(start, length)| (*start..start + length).contains(&place));
        assert!(has(clean_code as *const () as usize));
        assert!(!has(WRITTEN.as_ptr() as usize), "data");
        assert!(!has(libc::malloc as *const () as usize), "a library");
        let relocated: &'static dyn Fn() = &|| ();
        // SAFETY: a wide pointer is two words, the second of which is the place of the table.
        let table = unsafe { std::mem::transmute::<&dyn Fn(), [usize; 2]>(relocated) }[1];
        assert!(!has(table), "what the loader relocated");
    }

    fn clean_code() {}

    #[test]
    fn the_program_goes_on() {
        let heap = vec![7_u8; 1 << 20];
        trim();
        assert!(heap.iter().all(|byte| *byte == 7));
        assert!(std::panic::catch_unwind(|| panic!("still found")).is_err());
    }
}
