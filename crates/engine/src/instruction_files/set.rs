//! The files with instructions that were found, and their limit. Pure.

use std::path::{Path, PathBuf};

/// All texts together are cut here.
pub const LIMIT: usize = 32 << 10;
/// Larger files are left out.
pub(super) const FILE_LIMIT_BYTES: u64 = 4 * LIMIT as u64;

/// A file whose text the model is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    pub path: PathBuf,
    pub text: String,
    /// Holds for files of these patterns only, so the model is given it with the first of them; empty: from the start.
    pub globs: Vec<String>,
}

/// A file that is there and does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutFile {
    pub path: PathBuf,
    pub why: String,
}

/// What was found in some folders, in the order in which the model is given it: the nearest last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstructionSet {
    pub files: Vec<InstructionFile>,
    pub left_out: Vec<LeftOutFile>,
    /// Some text did not fit.
    pub is_cut: bool,
}

impl InstructionSet {
    /// The files that the model is given from the start.
    pub(crate) fn given_at_start(&self) -> impl Iterator<Item = &InstructionFile> {
        self.files.iter().filter(|file| file.globs.is_empty())
    }
}

/// Cuts the texts that do not fit after the others.
pub(crate) fn limit(set: &mut InstructionSet, limit: usize) {
    let mut left = limit;
    let mut left_out = Vec::new();
    set.files.retain_mut(|file| {
        if left == 0 {
            let why = format!("instructions are limited to {} kB in all", LIMIT >> 10);
            left_out.push(LeftOutFile { path: file.path.clone(), why });
            return false;
        }
        if file.text.len() > left {
            cut(&mut file.text, left);
            set.is_cut = true;
            left = 0;
        } else {
            left -= file.text.len();
        }
        true
    });
    set.is_cut |= !left_out.is_empty();
    set.left_out.append(&mut left_out);
}

fn cut(text: &mut String, limit: usize) {
    text.truncate(text.floor_char_boundary(limit));
    text.push_str(&format!("\n(cut: instructions are limited to {} kB in all)", LIMIT >> 10));
}

/// A text as the model is given it.
pub(crate) fn block(file: &InstructionFile) -> String {
    format!("{}\n{}\n</instructions>", opening(&file.path), file.text.trim())
}

/// The first line of [`block`], by which a text is known in a history.
pub(crate) fn opening(path: &Path) -> String {
    format!("<instructions file=\"{}\">", path.display())
}
