//! Changing files: from what a model asks for to bytes on disk or in a client's buffer, exact outside the change.

pub mod diff;
pub mod disk;
pub mod document;
mod escapes;
pub mod files;
pub mod indent;
pub mod line_diff;
pub mod line_ends;
pub mod line_numbers;
mod lines;
pub mod matching;
mod nearest;
pub mod patch;
pub mod plan;
pub(crate) mod run_later;
pub mod seen;
mod typography;
