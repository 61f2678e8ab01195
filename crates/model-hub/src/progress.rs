//! The progress of a download for people: a bar, the rate, the time that is left. Must not know where bytes come from.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::Output;

/// The rate is that of the last seconds.
const WINDOW: Duration = Duration::from_secs(8);
pub(crate) const REDRAW: Duration = Duration::from_millis(200);
const WIDTH: usize = 78;

/// Draws on a terminal only.
pub(crate) struct ProgressBar {
    output: Output,
    all: u64,
    /// When how many bytes were there.
    seen: VecDeque<(Instant, u64)>,
    pub(crate) is_shown: bool,
}

impl ProgressBar {
    pub(crate) fn new(output: Output, all: u64) -> Self {
        Self { output, all, seen: VecDeque::new(), is_shown: std::io::stderr().is_terminal() }
    }

    pub(crate) fn draw(&mut self, done: u64) {
        if !self.is_shown {
            return;
        }
        let now = Instant::now();
        self.seen.push_back((now, done));
        while self.seen.len() > 2 && self.seen.front().is_some_and(|(at, _)| now - *at > WINDOW) {
            self.seen.pop_front();
        }
        let rate = self.seen.front().and_then(|(at, before)| rate(done.saturating_sub(*before), now - *at));
        let line =
            format!("{}{}", crate::filled_bar(done, self.all), pace(self.all.saturating_sub(done), rate));
        (self.output.note_part)(&format!("\r{line:<WIDTH$}"));
    }

    pub(crate) fn clear(&self) {
        if self.is_shown {
            (self.output.note_part)(&format!("\r{}\r", " ".repeat(WIDTH)));
        }
    }
}

/// Bytes a second, once there is something to measure.
fn rate(bytes: u64, time: Duration) -> Option<f64> {
    let seconds = time.as_secs_f64();
    (seconds > 0.5 && bytes > 0).then(|| bytes as f64 / seconds)
}

/// The rate and the time that is left at this rate.
fn pace(left: u64, rate: Option<f64>) -> String {
    let Some(rate) = rate else { return String::new() };
    let seconds = (left as f64 / rate).ceil() as u64;
    let left = match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    };
    format!("{:.1} MB/s, {left} left", rate / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_and_the_rest_are_told() {
        assert_eq!(rate(0, Duration::from_secs(2)), None);
        assert_eq!(rate(4_000_000, Duration::from_millis(100)), None);
        let two = rate(4_000_000, Duration::from_secs(2));
        for (left, expected) in [
            (0, "2.0 MB/s, 0 s left"),
            (30_000_000, "2.0 MB/s, 15 s left"),
            (600_000_000, "2.0 MB/s, 5 min 0 s left"),
            (14_600_000_000, "2.0 MB/s, 2 h 1 min left"),
        ] {
            assert_eq!(pace(left, two), expected);
        }
        assert_eq!(pace(5, None), "");
    }
}
