//! How much memory the processes of one command may use together.

use std::path::{Path, PathBuf};

/// What the settings say in megabytes, where 0 is no limit; otherwise three quarters of the machine's.
pub(crate) fn limit(megabytes: Option<u64>) -> Option<u64> {
    match megabytes {
        Some(0) => None,
        Some(megabytes) => Some(megabytes.saturating_mul(1 << 20)),
        None => machine().map(|bytes| bytes / 4 * 3),
    }
}

/// The memory of the machine, or of the container or control group around this process where that is less.
fn machine() -> Option<u64> {
    let total = total()?;
    Some(group_limits().into_iter().fold(total, u64::min))
}

fn group_limits() -> Vec<u64> {
    let read = |path: PathBuf| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
    let groups = Path::new("/sys/fs/cgroup").join(own);
    let above = groups.ancestors().take_while(|group| group.starts_with("/sys/fs/cgroup"));
    let older = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").to_owned();
    above.map(|group| group.join("memory.max")).chain([older]).filter_map(read).collect()
}

fn total() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The byte that the helper sends when it ended a command that took too much memory.
pub const OVER_MEMORY: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_decide_and_otherwise_the_machine() {
        assert_eq!(limit(Some(0)), None);
        assert_eq!(limit(Some(3)), Some(3 << 20));
        if cfg!(target_os = "linux") {
            assert!(limit(None) > Some(1 << 20));
        }
    }
}
