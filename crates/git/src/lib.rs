//! Git directories: where git itself would find one, what it obeys there, and what of it is plain state.
//!
//! Runs nothing and knows no tools, settings or sandboxes. Invariant: whatever is not known to be harmless counts as
//! something that makes git run a program.

mod config;
mod disarm;
mod find;
pub mod hardened;
mod index;
mod state;
mod tree;

pub use config::{changes_are_harmless, named_paths};
pub use disarm::{Before, put_aside, remove_entry as remove};
pub use find::{is_git_directory, linked_folder};
pub use index::index_entries;
pub use state::{Kind, Part, judge};
pub use tree::{Found, Trees};
