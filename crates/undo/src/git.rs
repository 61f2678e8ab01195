//! Where git keeps the state of a workspace.
//!
//! Must not run git. Invariant: a folder outside of a workspace is added to it only if each names the other.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of an outer git folder that hold contents, not state.
pub(crate) const NOT_STATE: &[&str] = &["objects", "worktrees", "modules", "lfs"];

/// Git folders outside of `root` that hold the refs, HEAD, index and stash of the repository that `root` is in. A git
/// folder inside of `root` is part of the workspace anyway. A repository from a stranger may name any folder, so a folder
/// counts only if it names this work tree itself.
pub(crate) fn outer_folders(root: &Path) -> Vec<PathBuf> {
    let found = root.ancestors().map(|folder| folder.join(".git")).find(|git| git.symlink_metadata().is_ok());
    let Some(found) = found else { return Vec::new() };
    let folders = match found.symlink_metadata() {
        Ok(kind) if kind.is_dir() => vec![found],
        Ok(kind) if kind.is_file() => linked_folders(&found),
        Ok(_) | Err(_) => Vec::new(),
    };
    let folders = folders.into_iter().filter_map(|folder| folder.canonicalize().ok());
    let mut outer: Vec<PathBuf> =
        folders.filter(|folder| folder.is_dir() && !folder.starts_with(root)).collect();
    // A worktree's own folder lies in the common one and is skipped there.
    outer.dedup();
    outer
}

/// The git folders of a linked worktree or of a submodule, whose `.git` is a file that names one.
fn linked_folders(link: &Path) -> Vec<PathBuf> {
    let folder = || {
        let text = read_small(link)?;
        link.parent()?.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()
    };
    let Some(own) = folder() else { return Vec::new() };
    if is_same(read_small(&own.join("gitdir")).as_deref(), &own, Some(link)) {
        let common =
            read_small(&own.join("commondir")).and_then(|text| own.join(text.trim()).canonicalize().ok());
        let common = common.filter(|common| own.starts_with(common));
        return std::iter::once(own).chain(common).collect();
    }
    let configuration = read_small(&own.join("config")).unwrap_or_default();
    let work_tree = configuration.lines().find_map(|line| line.trim().strip_prefix("worktree = "));
    if is_same(work_tree, &own, link.parent()) { vec![own] } else { Vec::new() }
}

/// Whether a path, seen from a folder, is this place.
fn is_same(path: Option<&str>, from: &Path, place: Option<&Path>) -> bool {
    let named = path.and_then(|path| from.join(path.trim()).canonicalize().ok());
    named.is_some() && named == place.and_then(|place| place.canonicalize().ok())
}

fn read_small(path: &Path) -> Option<String> {
    let kind = path.symlink_metadata().ok()?;
    (kind.is_file() && kind.len() < 64 * 1024).then(|| fs::read_to_string(path).ok()).flatten()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_of_a_stranger_names_no_folder_of_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (work, other) = (root.join("work"), root.join("other/.git"));
        for path in [&work, &other, &root.join("keys")] {
            fs::create_dir_all(path).unwrap();
        }
        fs::write(other.join("HEAD"), "ref: refs/heads/main").unwrap();
        for target in ["../keys", "../other/.git"] {
            fs::write(work.join(".git"), format!("gitdir: {target}\n")).unwrap();
            assert!(outer_folders(&work).is_empty(), "{target}");
        }
        fs::remove_file(work.join(".git")).unwrap();
        platform::symlink("../other/.git".as_ref(), &work.join(".git")).unwrap();
        assert!(outer_folders(&work).is_empty());
        fs::remove_file(work.join(".git")).unwrap();
        fs::create_dir(work.join(".git")).unwrap();
        fs::write(work.join(".git/commondir"), "../../other/.git").unwrap();
        assert!(outer_folders(&work).is_empty());
        // A work tree and a submodule, which their repositories know.
        fs::remove_dir_all(work.join(".git")).unwrap();
        let own = other.join("worktrees/w");
        fs::create_dir_all(&own).unwrap();
        fs::write(work.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        fs::write(own.join("gitdir"), format!("{}\n", work.join(".git").display())).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        assert_eq!(outer_folders(&work), [own.clone(), other.clone()]);
        let module = other.join("modules/sub");
        fs::create_dir_all(&module).unwrap();
        fs::write(work.join(".git"), "gitdir: ../other/.git/modules/sub\n").unwrap();
        fs::write(module.join("config"), "[core]\n\tworktree = ../../../../work\n").unwrap();
        assert_eq!(outer_folders(&work), [module]);
    }
}
