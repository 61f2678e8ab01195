//! How a path is kept as it is though a folder above it is writable, whether the path exists or not. A path is walked as
//! the kernel would walk it, link by link.
//!
//! Invariants: a folder on the way cannot be renamed, because it is a mount (`pinned`); where a name on the way is a link or
//! is missing, the folder of that name takes no new, renamed or removed entry (`fixed`).

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// Entries of a fixed folder beyond this many are read-only.
const MOST_ENTRIES: usize = 4000;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Guards {
    pub(super) pinned: BTreeSet<PathBuf>,
    pub(super) fixed: BTreeSet<PathBuf>,
}

impl Guards {
    /// `writable` are real paths.
    pub(super) fn find(guarded: &[PathBuf], writable: &[PathBuf]) -> Self {
        let mut guards = Self::default();
        let mut kinds = Kinds::default();
        for path in guarded {
            guards.walk(path, writable, &mut kinds);
        }
        guards.pinned.retain(|path| !guards.fixed.contains(path));
        guards
    }

    fn walk(&mut self, path: &Path, writable: &[PathBuf], kinds: &mut Kinds) {
        let is_inside = |path: &Path| writable.iter().any(|folder| path.starts_with(folder));
        let mut links = 0;
        let mut place = PathBuf::from("/");
        let mut rest: VecDeque<OsString> = names(path).collect();
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                place.pop();
                continue;
            }
            let next = place.join(&name);
            let kind = kinds.of(&next);
            if is_inside(&place) && kind.is_none_or(|kind| kind.is_symlink()) {
                self.fixed.insert(place.clone());
            }
            match kind {
                Some(kind) if kind.is_symlink() => {
                    links += 1;
                    let Some(target) = fs::read_link(&next).ok().filter(|_| links <= MOST_LINKS) else {
                        return;
                    };
                    if target.is_absolute() {
                        place = PathBuf::from("/");
                    }
                    names(&target).rev().for_each(|name| rest.push_front(name));
                }
                Some(kind) if kind.is_dir() => {
                    if is_inside(&place) && !rest.is_empty() {
                        self.pinned.insert(next.clone());
                    }
                    place = next;
                }
                Some(_) | None => return,
            }
        }
    }
}

/// What was found at each place: a hundred paths share the folders above them.
#[derive(Default)]
struct Kinds(HashMap<PathBuf, Option<fs::FileType>>);

impl Kinds {
    fn of(&mut self, path: &Path) -> Option<fs::FileType> {
        if let Some(kind) = self.0.get(path) {
            return *kind;
        }
        let kind = path.symlink_metadata().ok().map(|found| found.file_type());
        self.0.insert(path.to_owned(), kind);
        kind
    }
}

/// What of a fixed folder stays writable: the folders and files that it has. A link leads elsewhere, and a socket is
/// connected to, not written.
pub(super) fn entries_of(folder: &Path) -> Vec<PathBuf> {
    let is_kept = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_file());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(is_kept).map(|entry| entry.path()).take(MOST_ENTRIES).collect()
}

fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}
