//! The memory of everything behind the wall together. The first process looks at it several times a second and ends
//! everything when it is too much: no limit of the kernel counts more than one process without rights that a user lacks.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::memory::OVER_MEMORY;

/// The shortest and the longest pause between two looks.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);
/// Faster than programs take memory.
const BYTES_PER_MILLISECOND: u64 = 16 << 20;

/// Starts to look. Only after the last fork, because it makes a second thread.
pub(super) fn watch(limit: Option<u64>, channel: Option<UnixStream>) {
    let Some(limit) = limit else { return };
    let _ = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
        // SAFETY: a plain question with a number.
        let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let mut pause = SHORTEST;
        loop {
            std::thread::sleep(pause);
            let used = used_pages().saturating_mul(page);
            if used <= limit {
                // As long as it certainly takes to the limit.
                let needed = Duration::from_millis((limit - used) / BYTES_PER_MILLISECOND);
                pause = needed.clamp(SHORTEST, LONGEST);
                continue;
            }
            pause = SHORTEST;
            if let Some(mut channel) = channel.as_ref() {
                let _ = channel.write_all(&[OVER_MEMORY]);
            }
            // Everything in the pid namespace but this process, its first one.
            // SAFETY: a plain system call with numbers.
            unsafe { libc::kill(-1, libc::SIGKILL) };
        }
    });
}

/// Pages that the processes of this namespace hold in memory, each file's counted once for every process.
fn used_pages() -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = |name: &std::ffi::OsStr| {
        let pid: u32 = name.to_str()?.parse().ok()?;
        if pid == 1 {
            return None;
        }
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let mut fields = text.split(' ').map(|field| field.parse::<u64>().unwrap_or_default());
        let (resident, shared) = (fields.nth(1)?, fields.next()?);
        Some(resident.saturating_sub(shared))
    };
    processes.filter_map(|entry| own(&entry.file_name())).sum()
}

/// The kernel chooses this process first when the machine has no memory left.
pub(super) fn be_first_to_go() {
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}
