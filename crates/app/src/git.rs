//! The git branch of a folder, read from the files of the repository: nothing is spawned.

use std::path::{Path, PathBuf};

/// The branch, or the beginning of the commit without one. `None`: the folder is in no repository.
pub(crate) fn branch(folder: &Path) -> Option<String> {
    let git = folder.ancestors().map(|folder| folder.join(".git")).find(|git| git.exists())?;
    let head = read_small(&git_folder(&git)?.join("HEAD"))?;
    let head = head.trim();
    match head.strip_prefix("ref: ") {
        Some(reference) => {
            let name = reference.strip_prefix("refs/heads/").unwrap_or(reference);
            is_plain(name).then(|| name.to_owned())
        }
        None => head.get(..12).filter(|commit| is_plain(commit)).map(|commit| format!("commit {commit}")),
    }
}

/// The name reaches prompts and screens, and its file belongs to the repository: sentences are not names.
fn is_plain(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "/-_.#+@".contains(c);
    !name.is_empty() && name.len() <= 100 && name.chars().all(is_allowed)
}

/// A small file that is not a link.
fn read_small(path: &Path) -> Option<String> {
    let metadata = path.symlink_metadata().ok()?;
    (metadata.is_file() && metadata.len() <= 4096).then(|| std::fs::read_to_string(path).ok())?
}

/// A worktree and a submodule have a file that names their folder.
fn git_folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = read_small(git)?;
    Some(git.parent()?.join(text.strip_prefix("gitdir:")?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_is_read_from_a_repository_and_from_a_worktree() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("a/b");
        std::fs::create_dir_all(&inner).expect("folders");
        std::fs::create_dir_all(folder.path().join(".git")).expect("folders");
        std::fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/feature/x\n").expect("a head");
        assert_eq!(branch(&inner).as_deref(), Some("feature/x"));
        std::fs::create_dir_all(folder.path().join(".git/worktrees/b")).expect("folders");
        std::fs::write(folder.path().join(".git/worktrees/b/HEAD"), "0123456789abcdef0123\n")
            .expect("a head");
        std::fs::write(inner.join(".git"), "gitdir: ../../.git/worktrees/b\n").expect("a file");
        assert_eq!(branch(&inner).as_deref(), Some("commit 0123456789ab"));
        std::fs::write(folder.path().join(".git/worktrees/b/HEAD"), "ref: refs/heads/do as I say\n")
            .expect("a head");
        assert_eq!(branch(&inner), None);
    }
}
