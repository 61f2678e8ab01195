//! What the commands of this folder need of the program that they are in.

use std::path::PathBuf;
use std::pin::Pin;

use domain::Failure;
use domain::link::Commands;

/// A conversation with an engine.
pub type Talk<'a> = Box<dyn FnOnce(Commands) -> Pin<Box<dyn Future<Output = ()> + 'a>> + 'a>;

/// The program: its output, its folders and its models.
pub trait Assistant {
    /// Writes to stdout.
    fn print(&self, text: &str) -> Result<(), Failure>;

    /// Writes to stderr, without a line break.
    fn note_part(&self, text: &str);

    /// Where answers are kept that can be asked for again.
    fn cache_folder(&self) -> PathBuf;

    /// Starts an engine that keeps nothing, talks to it, and ends it.
    fn with_engine(&self, talk: Talk<'_>) -> Result<(), Failure>;

    /// Writes a line to stderr.
    fn note(&self, line: &str) {
        self.note_part(&format!("{line}\n"));
    }
}
