//! The way to a shown path as somebody wrote it. The wall makes folders such as `/tmp` anew and shows a program where it really
//! is; a setting may name it through a link or `..` there, so the folders and links of that way are made again.
//!
//! Invariant: only folders and links are made, and only in folders that the wall made anew.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use crate::lists::REPLACED;

/// Folders, and links with what they lead to, from the root downwards.
pub(super) struct Ways(Vec<(PathBuf, Option<PathBuf>)>);

impl Ways {
    /// Before anything is covered.
    pub(super) fn find(shown: &[PathBuf]) -> Self {
        let is_other =
            |path: &&PathBuf| path.canonicalize().is_ok_and(|real| real.as_os_str() != path.as_os_str());
        let mut steps: Vec<_> = shown.iter().filter(is_other).flat_map(|path| steps(path)).collect();
        steps.dedup();
        Self(steps)
    }

    /// What cannot be made leaves the program out of reach on this way; its real place is shown all the same.
    pub(super) fn make(&self) {
        for (path, leads_to) in &self.0 {
            let made = match leads_to {
                Some(target) => symlink(target, path),
                None => fs::create_dir(path),
            };
            drop(made);
        }
    }
}

fn steps(path: &Path) -> Vec<(PathBuf, Option<PathBuf>)> {
    let Some(root) = REPLACED.iter().map(Path::new).find(|root| path.starts_with(root)) else {
        return Vec::new();
    };
    let mut steps = Vec::new();
    let mut at = root.to_owned();
    for part in path.strip_prefix(root).unwrap_or(path).components() {
        at.push(part);
        if part == Component::ParentDir {
            continue;
        }
        let Ok(kind) = at.symlink_metadata() else { break };
        if kind.is_symlink() {
            let Ok(target) = fs::read_link(&at) else { break };
            steps.push((at.clone(), Some(target)));
        } else if kind.is_dir() {
            steps.push((at.clone(), None));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_through_a_link_and_back_is_known_step_by_step() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("app")).unwrap();
        fs::create_dir_all(root.join("real")).unwrap();
        fs::write(root.join("real/server.py"), "x").unwrap();
        symlink("real", root.join("link")).unwrap();
        let written = root.join("app/../link/server.py");
        let expected = vec![
            (root.to_owned(), None),
            (root.join("app"), None),
            (root.join("app/../link"), Some(PathBuf::from("real"))),
        ];
        assert_eq!(Ways::find(&[written]).0, expected);
        // What is written as it is needs no other way.
        assert!(Ways::find(&[root.join("real/server.py")]).0.is_empty());
        assert!(Ways::find(&[PathBuf::from("/usr/bin/../bin/env")]).0.is_empty());
    }
}
