//! The commands `generate` and `spec`, and the parts of them that `studio` uses too.
//!
//! Owns the files that they write and the texts that they print. Knows the rest of the program by the trait [`Assistant`]
//! alone: no settings, no engine, no terminal. Invariant: `crates/app/src/commands/interfaces` is the only user of this folder.

mod api_tools;
mod assistant;
mod generate;
mod generated_project;
#[cfg(feature = "studio")]
mod given;
mod options;
mod plan_editor;
pub mod spec;
mod wishes;

pub use api_tools::{ApiTools, ApiToolsOptions, Consent, PreparedCall};
pub use assistant::{Assistant, Talk};
pub use generate::{REACT, generate};
pub use generated_project::own_files;
#[cfg(feature = "studio")]
pub use given::given_specification;
pub use options::GenerateOptions;
pub use proto_copilot as copilot;
#[cfg(feature = "studio")]
pub use studio;
