//! The front-ends for a terminal (`chat`) and for scripts (`run`).
//!
//! Knows only the link: everything it shows comes from there.

pub mod chat;
pub mod run;
pub mod text;

pub use chat::theme::Palette;
pub use chat::{ChatOptions, Intro, TerminalServices, chat};
pub use run::{Exit, Finished, OutputFormat, RunOptions, run};
