//! Owns the question whether this machine has memory for a model file. Knows nothing of models.
//! Invariant: where the system does not tell, there is enough.

use std::path::Path;

use crate::error::ModelError;

/// Refuses a file that is larger than the memory that programs could still use: each token would be read from the disk.
pub(crate) fn check(path: &Path) -> Result<(), ModelError> {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let told = std::fs::read_to_string("/proc/meminfo").ok();
    match told.as_deref().and_then(available).filter(|free| *free < bytes) {
        Some(free) => Err(ModelError::TooLittleMemory { needed: bytes >> 20, free: free >> 20 }),
        None => Ok(()),
    }
}

/// Bytes that programs could still use, with what the system would give back.
fn available(told: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_read() {
        let told = "MemTotal:       24504520 kB\nMemFree:        1000 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(available(told), Some(2 << 20));
        assert_eq!(available("MemTotal: 1 kB"), None);
        assert!(check(Path::new("/no/such/file")).is_ok());
    }
}
