//! Returns memory that an idle server does not use: free heap, and mapped pages of the program's own code.
//!
//! The kernel maps sixteen pages around each page of code that is used, so most of the mapped code was never read.
//! Invariant: only pages that equal the program's file are unmapped. A debugger or a probe puts breakpoints into private
//! copies of pages; while there is such a copy, or a tracer, no code is unmapped.

/// Maps large blocks apart from the heap, so that they are returned when they are freed. By itself glibc raises this size
/// when a large block is freed, and later ones stay in the heap: in a long chat each request left megabytes there. All
/// threads share one heap: with a heap each, the prompts of a long chat grow all of them in turn. Call it before the first
/// thread.
pub fn map_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` only sets a parameter of the allocator, and no other thread allocates yet.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BLOCK: libc::c_int = 512 << 10;

/// Takes a few milliseconds; the kernel maps a page again when it is used.
#[cfg(target_os = "linux")]
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` takes glibc's own locks and frees nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
    let ranges = code();
    if !is_original(&ranges) {
        return;
    }
    for (start, length) in ranges {
        // SAFETY: the range lies within a segment of the program itself, which is mapped from its file, privately, and
        // stays mapped until the process ends. The segment is not writable, because the program is position
        // independent and the loader relocates only writable segments; `is_original` found no private copy of a page.
        // So each page equals the file's, and every thread reads it from there again at its next use.
        let _ = unsafe {
            rustix::mm::madvise(start as *mut std::ffi::c_void, length, rustix::mm::Advice::LinuxDontNeed)
        };
    }
}

#[cfg(not(target_os = "linux"))]
pub fn trim() {}

/// Nothing traces the process, and no page of these ranges has a private copy. False if that cannot be read.
#[cfg(target_os = "linux")]
fn is_original(ranges: &[(usize, usize)]) -> bool {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    let status = read("status");
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() == "0") && private_kibibytes(&read("smaps"), ranges) == Some(0)
}

/// The size of private copies in the mappings that overlap the ranges. `None`: no such mapping was found.
#[cfg(target_os = "linux")]
fn private_kibibytes(smaps: &str, ranges: &[(usize, usize)]) -> Option<u64> {
    let mut private = None;
    let mut is_code = false;
    for line in smaps.lines() {
        if let Some((start, end)) = mapping(line) {
            is_code = ranges.iter().any(|(from, length)| *from < end && start < from + length);
        } else if let Some(size) = line.strip_prefix("Anonymous:").filter(|_| is_code) {
            let size = size.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(u64::MAX);
            private = Some(private.unwrap_or(0_u64).saturating_add(size));
        }
    }
    private
}

/// The range of a line that begins a mapping: `55d0c000-55d0d000 r-xp …`.
#[cfg(target_os = "linux")]
fn mapping(line: &str) -> Option<(usize, usize)> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

/// Start and length of the whole pages in each segment of the program that is never written to.
#[cfg(target_os = "linux")]
fn code() -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    // SAFETY: `first` uses its arguments only while it runs, and its last argument is this vector.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut ranges).cast()) };
    ranges
}

/// The first object is the program; the libraries after it may be unmapped at any time.
#[cfg(target_os = "linux")]
unsafe extern "C" fn first(
    object: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    ranges: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the loader passes a valid object with `dlpi_phnum` headers for the time of this call; `ranges` is the
    // vector of `code`, which waits for this call and does not use it meanwhile.
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

    /// Tests that return memory, one after the other: the pages belong to the whole process.
    static TRIMMING: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn only_code_of_the_program_is_unmapped() {
        static WRITTEN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(7);
        let ranges = code();
        let has =
            |place: usize| ranges.iter().any(|(start, length)| (*start..start + length).contains(&place));
        assert!(has(some_code as *const () as usize));
        assert!(!has(WRITTEN.as_ptr() as usize), "data");
        // A static program holds the C library itself.
        assert_eq!(has(libc::malloc as *const () as usize), cfg!(target_feature = "crt-static"), "a library");
        let relocated: &'static dyn Fn() = &|| ();
        // SAFETY: a wide pointer is two words, the second of which is the address of the table.
        let table = unsafe { std::mem::transmute::<&dyn Fn(), [usize; 2]>(relocated) }[1];
        assert!(!has(table), "what the loader relocated");
    }

    fn some_code() {}

    #[test]
    fn the_program_continues_after_a_trim() {
        let _alone = TRIMMING.lock();
        let heap = vec![7_u8; 1 << 20];
        trim();
        assert!(heap.iter().all(|byte| *byte == 7));
        assert!(std::panic::catch_unwind(|| panic!("still found")).is_err());
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn free_heap_is_returned() {
        let _alone = TRIMMING.lock();
        let resident = || -> u64 {
            let status = std::fs::read_to_string("/proc/self/status").expect("a status");
            let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("a line");
            line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).expect("a number")
        };
        // Blocks below the size that is mapped apart; the last one keeps the heap from shrinking by itself.
        let mut blocks: Vec<Vec<u8>> = (0..1024).map(|_| vec![7; 64 << 10]).collect();
        let last = blocks.pop();
        drop(blocks);
        let before = resident();
        trim();
        assert!(resident() + (32 << 10) < before, "{before} KiB before, {} KiB after", resident());
        drop(last);
    }

    /// A breakpoint is a byte in a private copy of a page of code: it survives, because nothing is unmapped.
    #[test]
    fn a_breakpoint_survives_a_trim() {
        let _alone = TRIMMING.lock();
        let ranges = code();
        // The first segment holds headers and constants; it is not executed.
        let (start, _) = ranges[0];
        assert_eq!(
            private_kibibytes(&std::fs::read_to_string("/proc/self/smaps").expect("smaps"), &ranges),
            Some(0)
        );
        let page = rustix::param::page_size();
        let place = start as *mut u8;
        // SAFETY: the page is mapped and readable; the byte that is written is the one that is there.
        unsafe {
            use rustix::mm::MprotectFlags;
            rustix::mm::mprotect(place.cast(), page, MprotectFlags::READ | MprotectFlags::WRITE)
                .expect("writable");
            place.write_volatile(place.read_volatile());
            rustix::mm::mprotect(place.cast(), page, MprotectFlags::READ).expect("as it was");
        }
        assert!(!is_original(&ranges));
        trim();
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
        assert!(private_kibibytes(&smaps, &ranges) > Some(0), "the private copy is still there");
    }
}
