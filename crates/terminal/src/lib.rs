//! The front-ends for a terminal (`chat`) and for scripts (`run`).
//!
//! Knows only the link: everything it shows comes from there.

pub mod chat;
pub mod run;
pub mod text;

pub use chat::theme::Palette;
pub use chat::{
    AllowRule, Bindings, ChatOptions, Intro, ProjectRules, TerminalServices, chat, is_background_light,
};
pub use run::{Exit, Finished, OutputFormat, RunOptions, TroubleSource, print_failure, run};
