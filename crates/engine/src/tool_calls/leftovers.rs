//! What a command that nobody approved may not leave behind: new files that other programs run by themselves.
//!
//! Those that were there before are read-only for such a command. Invariants: nothing is removed that existed before, and
//! nothing outside of the workspace: the git folder of a linked worktree is there, and other programs change it meanwhile.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use platform::project_files;

/// Files that run later and that a person approved, or a rule allowed, while this program ran.
static APPROVED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Notes files that a call was allowed to change: a job that runs beside it is not blamed for them.
pub(super) fn note_approved<'a>(changed: impl Iterator<Item = &'a PathBuf>) {
    let mut approved = APPROVED.lock().unwrap_or_else(PoisonError::into_inner);
    approved.extend(changed.filter_map(|path| run_later_part(path)));
}

/// Removes such files among the paths that the command changed, and names them for the model. `known`: those that existed.
pub(super) fn remove(changed: &[PathBuf], known: &[PathBuf], roots: &[PathBuf]) -> Option<String> {
    let mut found = find(changed, known, roots);
    found.retain(|path| project_files::remove_entry(path).is_ok());
    let removed: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
    (!removed.is_empty()).then(|| project_files::taken_back_sentence(&removed, false))
}

/// Gives such files names that no program looks for. Whatever was approved meanwhile stays.
pub(super) fn put_aside(changed: &[PathBuf], known: &[PathBuf], roots: &[PathBuf]) -> Option<String> {
    let mut found = find(changed, known, roots);
    {
        let approved = APPROVED.lock().unwrap_or_else(PoisonError::into_inner);
        found.retain(|path| !approved.contains(path));
    }
    let aside = found.iter().filter_map(|path| project_files::put_aside(path).ok());
    let aside: Vec<String> = aside.map(|path| path.display().to_string()).collect();
    (!aside.is_empty()).then(|| project_files::taken_back_sentence(&aside, true))
}

fn find(changed: &[PathBuf], known: &[PathBuf], roots: &[PathBuf]) -> Vec<PathBuf> {
    let is_new = |path: &&PathBuf| !known.iter().any(|known| path.starts_with(known));
    let roots: Vec<PathBuf> =
        roots.iter().map(|root| root.canonicalize().unwrap_or_else(|_| root.clone())).collect();
    let is_inside = |part: &PathBuf| roots.iter().any(|root| part != root && part.starts_with(root));
    let parts = changed.iter().filter(is_new).filter_map(|path| run_later_part(path));
    let mut found: Vec<PathBuf> = parts.filter(is_inside).collect();
    found.sort();
    found.dedup_by(|path, before| path.starts_with(before));
    found.retain(|path| path.symlink_metadata().is_ok());
    found
}

/// The topmost part of a path that runs later: a repository, a folder of settings, or a file.
fn run_later_part(path: &Path) -> Option<PathBuf> {
    let mut parts: Vec<&Path> = path.ancestors().collect();
    parts.reverse();
    parts.into_iter().find(|part| project_files::runs_later(part)).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_what_is_new_and_runs_later_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let make = |path: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            path
        };
        let known = make("old/.vscode/tasks.json").parent().unwrap().to_owned();
        let files = [
            "old/.vscode/tasks.json",
            "old/.vscode/new.json",
            "a/.vscode/tasks.json",
            "a/b/.envrc",
            "a/b/main.rs",
        ];
        let mut changed: Vec<PathBuf> = files.iter().map(|file| make(file)).collect();
        changed.push(make("lib/.git/hooks/pre-commit"));
        let roots = [root.clone()];
        let text = remove(&changed, &[known], &roots).unwrap();
        assert!(text.contains("grants: run-later"), "{text}");
        for (file, is_left) in files.iter().zip([true, true, false, false, true]) {
            assert_eq!(root.join(file).exists(), is_left, "{file}");
        }
        assert!(!root.join("lib/.git").exists() && root.join("lib").exists());
        assert!(remove(&changed, &[], &roots).is_some());
        assert_eq!(remove(&[root.join("a/b/main.rs")], &[], &roots), None);
        // The repository that a workspace belongs to is not the workspace's.
        let state = make("shop/.git/worktrees/other/HEAD");
        assert_eq!(remove(std::slice::from_ref(&state), &[], &[root.join("shop-worktree")]), None);
        assert!(state.exists());
    }
}
