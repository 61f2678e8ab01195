//! The folders of a workspace, to find git directories in them again and again.
//!
//! Knows folders by the times that the kernel keeps, so only those that changed are read. Invariants: links are not
//! followed; a folder whose times are too recent to tell two changes apart is read again.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::find::is_git_directory;

/// More folders than this are not looked at.
const MOST_FOLDERS: usize = 400_000;
const MOST_DEPTH: usize = 200;
/// Two changes within this many nanoseconds may have the same time.
const TICK: i64 = 50_000_000;
/// Folders of a git directory that hold no repository that anybody would work in.
const CONTENTS: &[&str] = &["hooks", "info", "lfs", "logs", "objects", "refs"];

/// Git directories, and files and links named `.git`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub folders: Vec<PathBuf>,
    pub links: Vec<PathBuf>,
    /// Other links to folders outside of the roots.
    pub outward: Vec<PathBuf>,
    /// The walk ended early.
    pub too_large: bool,
}

/// What is known of the folders below some roots.
#[derive(Debug)]
pub struct Trees {
    nodes: Mutex<HashMap<PathBuf, Node>>,
    most: usize,
}

impl Default for Trees {
    fn default() -> Self {
        Self::limited(MOST_FOLDERS)
    }
}

impl Trees {
    /// Looks at so many folders at most.
    pub fn limited(most: usize) -> Self {
        Self { nodes: Mutex::default(), most }
    }

    /// Looks for git directories below the roots.
    pub fn find(&self, roots: &[PathBuf]) -> Found {
        let mut trees = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut walk = Walk { most: self.most, ..Walk::default() };
        for root in roots.iter().filter_map(|root| root.canonicalize().ok()) {
            let node = trees.entry(root.clone()).or_default();
            walk.root.clone_from(&root);
            node.refresh(&mut root.clone(), 0, &mut walk);
        }
        let Found { mut folders, mut links, outward, too_large } = walk.found;
        folders.sort();
        folders.dedup();
        links.sort();
        links.dedup();
        Found { folders, links, outward, too_large }
    }
}

#[derive(Debug, Default)]
struct Node {
    /// The times when it was read; `None`: it must be read.
    times: Option<(i64, i64, u64)>,
    has_head: bool,
    /// Entries named `.git` that are no folders.
    links: Vec<OsString>,
    /// Other links to folders outside of the root.
    outward: Vec<OsString>,
    below: Vec<(OsString, Self)>,
}

#[derive(Default)]
struct Walk {
    found: Found,
    root: PathBuf,
    most: usize,
    count: usize,
}

impl Node {
    fn refresh(&mut self, path: &mut PathBuf, depth: usize, walk: &mut Walk) {
        walk.count += 1;
        if walk.count > walk.most || depth > MOST_DEPTH {
            walk.found.too_large = true;
            return;
        }
        let Some(times) = times_of(path) else { return };
        if self.times != Some(times) {
            self.read(path, times, &walk.root);
        }
        let is_git = self.has_head && is_git_directory(path);
        if is_git {
            walk.found.folders.push(path.clone());
        }
        walk.found.links.extend(self.links.iter().map(|name| path.join(name)));
        walk.found.outward.extend(self.outward.iter().map(|name| path.join(name)));
        for (name, node) in &mut self.below {
            if is_git && CONTENTS.iter().any(|contents| name == contents) {
                continue;
            }
            path.push(name);
            node.refresh(path, depth + 1, walk);
            path.pop();
        }
    }

    fn read(&mut self, path: &Path, times: (i64, i64, u64), root: &Path) {
        let mut known: HashMap<OsString, Self> = std::mem::take(&mut self.below).into_iter().collect();
        self.has_head = false;
        self.links.clear();
        self.outward.clear();
        let Ok(entries) = fs::read_dir(path) else {
            self.times = None;
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            self.has_head |= name == "HEAD";
            let kind = entry.file_type();
            if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                let node = known.remove(&name).unwrap_or_default();
                self.below.push((name, node));
            } else if is_dot_git(&name) {
                self.links.push(name);
            } else if kind.is_ok_and(|kind| kind.is_symlink()) && leads_out(&path.join(&name), root) {
                self.outward.push(name);
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let is_old = i64::try_from(now).is_ok_and(|now| now - times.0.max(times.1) > TICK);
        self.times = is_old.then_some(times);
    }
}

/// A link to a folder that is not below the root.
fn leads_out(link: &Path, root: &Path) -> bool {
    link.canonicalize().is_ok_and(|target| !target.starts_with(root) && target.is_dir())
}

fn times_of(folder: &Path) -> Option<(i64, i64, u64)> {
    let metadata = folder.symlink_metadata().ok().filter(fs::Metadata::is_dir)?;
    let platform::Stamp { mtime, ctime, inode } = platform::stamp_of(&metadata);
    Some((mtime, ctime, inode))
}

pub(crate) fn is_dot_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(folder: &Path) {
        for name in ["objects", "refs"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn git_directories_are_found_at_any_depth_and_again_after_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        make(&root.join(".git"));
        make(&root.join(".git/modules/lib"));
        make(&root.join("node_modules/a/b/.git"));
        make(&root.join("src"));
        fs::create_dir_all(root.join("tree")).unwrap();
        fs::write(root.join("tree/.git"), "gitdir: ../src").unwrap();
        let trees = Trees::default();
        let roots = [root.clone()];
        let found = trees.find(&roots);
        let expected =
            [".git", ".git/modules/lib", "node_modules/a/b/.git", "src"].map(|name| root.join(name));
        assert_eq!(found.folders, expected);
        assert_eq!(found.links, [root.join("tree/.git")]);
        assert_eq!(trees.find(&roots), found);
        // A file that is written in place changes no folder.
        fs::write(root.join("src/HEAD"), "nothing").unwrap();
        make(&root.join("target/tmp/x"));
        fs::remove_file(root.join("tree/.git")).unwrap();
        let found = trees.find(&roots);
        let expected =
            [".git", ".git/modules/lib", "node_modules/a/b/.git", "target/tmp/x"].map(|name| root.join(name));
        assert_eq!((found.folders.as_slice(), found.links.len()), (&expected[..], 0));
    }
}
