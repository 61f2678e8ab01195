//! The built-in tools, the path policy they share, and what else looks at the workspace: file index and contexts.
//!
//! Owns everything that reads or changes the user's files for a model. Knows no protocol, no model, no configuration
//! file and no session beyond its id. Invariant: every path goes through [`paths`] when it is used.

pub mod contexts;
mod custom_tool;
mod documents;
pub mod edit;
mod editor;
mod git_guard;
mod git_history;
mod glob_search;
pub mod index;
pub mod jobs;
mod lenient;
mod live_output;
mod needs;
mod offered;
mod options;
pub mod outputs;
pub mod paths;
mod publishing;
mod refused;
mod sealed;
pub mod shell;
mod source;
pub mod tool;
mod walk;
pub mod web;

pub use contexts::Contexts;
pub use git_guard::git_environment;
pub use offered::BUILT_IN_SERVER;
pub use options::{Confine, LanguageServicesHandle, Limits, Options};
pub use sealed::sealed_paths;
pub use source::{BuiltInTools, builtin};
