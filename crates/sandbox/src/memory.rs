//! How much memory the processes of one command may use together.

/// What the settings say in megabytes, where 0 is no limit; otherwise three quarters of the machine's.
pub(crate) fn limit(megabytes: Option<u64>) -> Option<u64> {
    match megabytes {
        Some(0) => None,
        Some(megabytes) => Some(megabytes.saturating_mul(1 << 20)),
        None => machine().map(|bytes| bytes / 4 * 3),
    }
}

fn machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

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
