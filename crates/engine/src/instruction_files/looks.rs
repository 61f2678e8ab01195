//! What the disk had at the places where instructions were looked for, so that the next prompt need not read them again.
//!
//! Must not know what the files say. Invariant: where a file may have changed without another stamp, nothing is claimed,
//! and the files are read again.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file that changed within this time before it was looked at may change again without another time stamp.
const TIMESTAMP_TICK: i64 = 20_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    size: u64,
    mtime: i64,
    ctime: i64,
    inode: u64,
}

/// A place itself, and what a link there leads to.
type Place = (Option<Stamp>, Option<Stamp>);

/// The places of one look, with what was there.
#[derive(Clone, Default, Debug)]
pub(crate) struct Looks {
    places: BTreeMap<PathBuf, Place>,
    /// Something changed just before it was looked at.
    is_racy: bool,
}

impl Looks {
    /// Must be called before the place is read.
    pub(super) fn add(&mut self, path: &Path) {
        // A place where nothing is stays empty for as long as the folder above it, the nearest that exists, is the same.
        for place in path.ancestors() {
            if self.places.contains_key(place) {
                return;
            }
            let seen = look_at(place);
            if seen.0.is_some() {
                let newest = [seen.0, seen.1].into_iter().flatten().map(|it| it.mtime.max(it.ctime)).max();
                self.is_racy |= newest.is_some_and(|newest| newest > now().saturating_sub(TIMESTAMP_TICK));
                self.places.insert(place.to_owned(), seen);
                return;
            }
        }
    }

    /// Whether every place is as it was.
    pub(crate) fn still_hold(&self) -> bool {
        !self.is_racy
            && !self.places.is_empty()
            && self.places.iter().all(|(place, seen)| look_at(place) == *seen)
    }
}

fn look_at(path: &Path) -> Place {
    let Ok(metadata) = path.symlink_metadata() else { return (None, None) };
    let target = metadata.is_symlink().then(|| fs::metadata(path).ok()).flatten();
    (Some(stamp(&metadata)), target.as_ref().map(stamp))
}

fn stamp(metadata: &Metadata) -> Stamp {
    let platform::Stamp { mtime, ctime, inode } = platform::stamp_of(metadata);
    Stamp { size: metadata.len(), mtime, ctime, inode }
}

/// Nanoseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Looks until nothing is too new to be believed.
    fn settled(paths: &[PathBuf]) -> Looks {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let mut looks = Looks::default();
            paths.iter().for_each(|path| looks.add(path));
            if looks.still_hold() {
                return looks;
            }
            assert!(Instant::now() < deadline, "it is never settled");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn whatever_changes_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("docs")).unwrap();
        let [file, link, absent, deep, target] =
            ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".cursor/rules/a.mdc", "docs/t.md"]
                .map(|name| root.join(name));
        fs::write(&file, "one").unwrap();
        fs::write(&target, "target").unwrap();
        platform::symlink("docs/t.md".as_ref(), &link).unwrap();
        let paths = [file.clone(), link.clone(), absent.clone(), deep.clone()];
        let changes: [&dyn Fn(); 6] = [
            &|| fs::write(&file, "two").unwrap(),
            &|| fs::write(&target, "TARGET").unwrap(),
            &|| fs::write(&absent, "new").unwrap(),
            &|| fs::create_dir_all(deep.parent().unwrap()).unwrap(),
            &|| fs::write(&deep, "new").unwrap(),
            &|| fs::remove_file(&link).unwrap(),
        ];
        for (number, change) in changes.iter().enumerate() {
            let looks = settled(&paths);
            assert!(looks.still_hold() && looks.clone().still_hold());
            change();
            assert!(!looks.still_hold(), "change {number}");
        }
        fs::write(&file, "three").unwrap();
        let mut looks = Looks::default();
        looks.add(&file);
        assert!(!looks.still_hold(), "what is new proves nothing");
        assert!(!Looks::default().still_hold());
    }
}
