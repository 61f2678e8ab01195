//! The front-ends for a terminal (`chat`) and for scripts (`run`).
//!
//! Knows only the link: everything it shows comes from there.

pub mod chat;
pub mod run;
pub mod text;

pub use chat::theme::{Palette, Theme};
pub use chat::theme_file;
pub use chat::{
    AllowRule, Bindings, ChatOptions, ColorDepth, ExplainedCall, Intro, Notify, ProjectRules, StatusLine,
    TerminalServices, chat, is_background_light,
};
pub use run::{Exit, Finished, OutputFormat, RunOptions, TroubleSource, converse, print_failure, run};
