//! The built-in tools, one file each.

pub(crate) mod after_edit;
pub mod apply_patch;
pub mod ask_user;
pub mod background_job;
pub mod compact_chat;
pub mod custom;
pub mod directory_tree;
pub mod edit_file;
pub mod editor_diagnostics;
pub mod editor_places;
pub mod fetch_url;
mod file_search;
pub(crate) mod formatting;
pub mod glob;
pub mod grep;
pub mod move_file;
mod patch_steps;
pub mod preview_file_change;
pub mod read_file;
pub mod shell_command;
mod shell_exposure;
mod shell_output;
mod shell_sealing;
mod symbol_places;
pub mod task;
pub mod web_search;
pub mod write_file;
