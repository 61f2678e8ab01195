//! Where git keeps the state of a workspace.
//!
//! Must not run git. Invariant: only folders that git itself names are added to a workspace.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of an outer git folder that hold contents, not state.
pub(crate) const NOT_STATE: &[&str] = &["objects", "worktrees", "modules", "lfs"];

/// Git folders outside of `root` that hold the refs, HEAD, index and stash of the repository that `root` is in. A git
/// folder inside of `root` is part of the workspace anyway.
pub(crate) fn outer_folders(root: &Path) -> Vec<PathBuf> {
    let Some(found) = root.ancestors().map(|folder| folder.join(".git")).find(|git| git.exists()) else {
        return Vec::new();
    };
    let git = if found.is_dir() { found } else { linked_folder(&found).unwrap_or(found) };
    let common = fs::read_to_string(git.join("commondir")).ok().map(|text| git.join(text.trim()));
    let folders = [Some(git), common].into_iter().flatten().filter_map(|folder| folder.canonicalize().ok());
    let mut outer: Vec<PathBuf> =
        folders.filter(|folder| folder.is_dir() && !folder.starts_with(root)).collect();
    // A worktree's own folder lies in the common one and is skipped there.
    outer.dedup();
    outer
}

/// A linked worktree has a file that names its git folder.
fn linked_folder(file: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    Some(file.parent()?.join(text.strip_prefix("gitdir:")?.trim()))
}

/// Whether the path lies in a git folder. Such files are git's own: they are restored exactly or not at all.
pub(crate) fn is_inside(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

/// Objects are only ever added by git; deleting one could break a commit that the user made since.
pub(crate) fn is_object(path: &Path) -> bool {
    let mut below_git = path.components().map(|part| part.as_os_str()).skip_while(|part| *part != ".git");
    below_git.any(|part| part == "objects")
}
