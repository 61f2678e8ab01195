//! The built-in tools, one file each.

pub mod edit_file;
pub mod preview_file_change;
pub mod read_file;
pub mod write_file;
