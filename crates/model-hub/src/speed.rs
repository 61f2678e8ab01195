//! How fast models are on this machine, for people: decoding reads all weights for each token, so a measured rate of
//! reading weights tells the speed of each model by the size of its file.

use std::time::Duration;

/// How long is measured.
const PROBE: Duration = Duration::from_secs(1);
/// More threads than this wait for memory, not for cores.
const MOST_THREADS: usize = 8;

/// What was measured.
#[derive(Debug, PartialEq)]
pub(crate) struct Speed {
    bytes_per_second: f64,
}

impl Speed {
    /// The speed of a model whose file is so large.
    pub(crate) fn of_file(&self, bytes: u64) -> String {
        let rate = self.bytes_per_second / bytes.max(1) as f64;
        if rate < 10.0 { format!("{rate:.1} tokens/s here") } else { format!("{rate:.0} tokens/s here") }
    }
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Takes about a second. `None`: it could not be measured.
pub(crate) async fn measure() -> Option<Speed> {
    let measured =
        tokio::task::spawn_blocking(|| local_model::weights_per_second(cores().min(MOST_THREADS), PROBE));
    Some(Speed { bytes_per_second: measured.await.ok()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_files_are_slower() {
        let speed = Speed { bytes_per_second: 20e9 };
        assert_eq!(speed.of_file(1_000_000_000), "20 tokens/s here");
        assert_eq!(speed.of_file(4_000_000_000), "5.0 tokens/s here");
    }
}
