//! Finds files of a workspace that a command must not open, by a walk over names.
//!
//! Must not know why. Invariants: links are not followed, but count by where they lead; the walk ends within its limits and
//! says when it did not see everything.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A walk that meets more entries, or takes longer, is not complete.
const MOST_ENTRIES: usize = 400_000;
const MOST_TIME: Duration = Duration::from_secs(2);
/// A folder of which everything is wanted stands for its files, from this many on.
const FULL_FOLDER: usize = 8;

/// Folders that build tools and package managers fill. Only their upper parts are looked at, where a build may have put a
/// copy; below are thousands of files of others.
const BUILT: &[&str] = &[
    "node_modules",
    "target",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    "__pycache__",
    "site-packages",
    ".gradle",
    ".dart_tool",
    "Pods",
    "_build",
];

/// What a walk found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Files and whole folders.
    pub paths: Vec<PathBuf>,
    pub is_complete: bool,
}

/// Finds wanted files and folders below `roots`. git's own folders are left out, and so are the lower parts of what builds
/// fill, unless `everywhere`.
pub fn find_files(roots: &[PathBuf], everywhere: bool, wanted: &dyn Fn(&Path, bool) -> bool) -> Found {
    let mut walk =
        Walk { everywhere, wanted, left: MOST_ENTRIES, end: Instant::now() + MOST_TIME, is_complete: true };
    let mut paths = Vec::new();
    for root in roots {
        walk.enter(root, 0, usize::MAX, &mut paths);
    }
    paths.sort();
    paths.dedup();
    Found { paths, is_complete: walk.is_complete }
}

struct Walk<'a> {
    everywhere: bool,
    wanted: &'a dyn Fn(&Path, bool) -> bool,
    left: usize,
    end: Instant,
    is_complete: bool,
}

impl Walk<'_> {
    /// Returns whether everything in the folder is wanted.
    fn enter(&mut self, folder: &Path, depth: usize, below: usize, paths: &mut Vec<PathBuf>) -> bool {
        let Ok(entries) = fs::read_dir(folder) else { return false };
        if depth > 128 {
            self.is_complete = false;
            return false;
        }
        let first = paths.len();
        let (mut all, mut count) = (depth > 0, 0_usize);
        for entry in entries.flatten() {
            if self.left == 0 || Instant::now() > self.end {
                self.is_complete = false;
                return false;
            }
            self.left -= 1;
            count += 1;
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_symlink() {
                // Where it leads decides, and so does its name.
                let target = path.canonicalize().unwrap_or_else(|_| path.clone());
                let is_folder = target.is_dir();
                if (self.wanted)(&path, is_folder) || (self.wanted)(&target, is_folder) {
                    paths.push(path);
                } else {
                    all = false;
                }
                continue;
            }
            if (self.wanted)(&path, kind.is_dir()) {
                paths.push(path);
            } else if kind.is_dir() {
                let below = self.depth_in(&path, below);
                all &= below > 0 && self.enter(&path, depth + 1, below, paths);
            } else {
                all = false;
            }
        }
        if all && count > 0 && paths.len() - first >= FULL_FOLDER {
            paths.truncate(first);
            paths.push(folder.to_owned());
        }
        all && count > 0
    }

    /// How many levels of a folder are looked at.
    fn depth_in(&self, folder: &Path, below: usize) -> usize {
        match folder.file_name().and_then(|name| name.to_str()).unwrap_or_default() {
            ".git" => 0,
            _ if self.everywhere => usize::MAX,
            "node_modules" => below.min(1),
            name if BUILT.contains(&name) => below.min(2),
            _ => below.saturating_sub(usize::from(below != usize::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_files_are_found_and_full_folders_stand_for_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |path: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        for path in [
            ".env",
            "a/b/.env",
            "a/b/main.rs",
            "node_modules/x/.env",
            ".git/.env",
            "target/.env",
            "target/debug/.env",
            "target/debug/deps/.env",
        ] {
            write(path);
        }
        crate::symlink(&root.join(".env"), &root.join("plain.txt")).unwrap();
        let is_env = |path: &Path, is_folder: bool| !is_folder && path.ends_with(".env");
        let roots = [root.clone()];
        let found = find_files(&roots, false, &is_env);
        assert_eq!(
            found.paths,
            [".env", "a/b/.env", "plain.txt", "target/.env", "target/debug/.env"].map(|path| root.join(path))
        );
        assert!(found.is_complete);
        assert!(find_files(&roots, true, &is_env).paths.contains(&root.join("node_modules/x/.env")));
        for number in 0..20 {
            write(&format!("keys/deep/{number}.txt"));
        }
        let is_key = |path: &Path, is_folder: bool| !is_folder && path.starts_with(root.join("keys"));
        assert_eq!(find_files(&roots, false, &is_key).paths, [root.join("keys/deep")]);
    }
}
