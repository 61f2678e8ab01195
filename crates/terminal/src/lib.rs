//! Dragoman for a person in a terminal and for scripts: front-ends like the others, drawn for eyes or pipes.
//!
//! Knows only the link; nothing it shows comes from elsewhere.

pub mod chat;
pub mod run;
pub mod text;
pub mod wire;

pub use chat::theme::Palette;
pub use chat::{ChatOptions, TerminalServices, chat};
pub use run::{Exit, RunOptions, run};
