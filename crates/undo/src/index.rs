//! The known state of one root: for each path its stamp and the hash of its content.
//!
//! Must not know turns. Invariants: an index never changes, the next one is made from it; a file begins with a whole index
//! and only grows, by parts that are known by their sums; a file or a part that does not read is ignored, which costs time
//! and loses nothing.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::private;
use crate::scan::{Kind, Seen, Stamp};
use crate::state::{FileState, Hash, StoredPath, from_bytes, to_bytes};

const MAGIC: &[u8; 8] = b"undo-ix2";
/// The first version: a whole index and nothing behind it. Baselines of such files name no length, so they never grow.
const FIRST_MAGIC: &[u8; 8] = b"undo-ix1";

/// A file that changed within this time before it was read may change again without another time stamp.
pub(crate) const TIMESTAMP_TICK: i64 = 20_000_000;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) seen: Seen,
    pub(crate) content: Content,
    /// The stamp does not prove that the content is still the same.
    pub(crate) racy: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    Held(Hash),
    Uncovered,
    Link(OsString),
    Folder,
}

/// A path with its new entry; `None`: it is gone.
pub(crate) type EntryChange = (OsString, Option<Entry>);

/// Most paths stay as they are from one command to the next, so two indexes share them.
#[derive(Clone, Default, Debug)]
pub(crate) struct Index {
    base: Arc<Base>,
    changed: HashMap<OsString, Option<Entry>>,
    length: usize,
}

#[derive(Default, Debug)]
struct Base {
    entries: HashMap<OsString, Entry>,
    has_uncovered: bool,
}

/// The file of an index as one process knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IndexFile {
    inode: u64,
    mtime: i64,
    pub(crate) length: u64,
    /// Bytes of the whole index at its beginning.
    base: u64,
}

impl Entry {
    pub(crate) fn state(&self) -> FileState {
        match &self.content {
            Content::Held(hash) => {
                FileState::File { hash: *hash, size: self.seen.stamp.size, mode: self.seen.mode }
            }
            Content::Uncovered => {
                FileState::Uncovered { size: self.seen.stamp.size, mtime: self.seen.stamp.mtime }
            }
            Content::Link(target) => FileState::Link { target: StoredPath(target.into()) },
            Content::Folder => FileState::Folder { mode: self.seen.mode },
        }
    }

    pub(crate) fn hash(&self) -> Option<Hash> {
        match self.content {
            Content::Held(hash) => Some(hash),
            Content::Uncovered | Content::Link(_) | Content::Folder => None,
        }
    }

    /// Whether the path still has this entry's content, as far as metadata can tell.
    pub(crate) fn is_current(&self, seen: &Seen) -> bool {
        match (self.seen.kind, seen.kind) {
            // A folder's times change with its entries.
            (Kind::Folder, Kind::Folder) => self.seen.mode == seen.mode,
            _ => !self.racy && self.seen == *seen,
        }
    }
}

impl Index {
    fn whole(entries: HashMap<OsString, Entry>) -> Self {
        let has_uncovered = entries.values().any(|entry| entry.content == Content::Uncovered);
        let length = entries.len();
        Self { base: Arc::new(Base { entries, has_uncovered }), changed: HashMap::new(), length }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn get(&self, path: &OsStr) -> Option<&Entry> {
        match self.changed.get(path) {
            Some(entry) => entry.as_ref(),
            None => self.base.entries.get(path),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OsString, &Entry)> {
        let kept = self.base.entries.iter().filter(|(path, _)| !self.changed.contains_key(*path));
        kept.chain(self.changed.iter().filter_map(|(path, entry)| Some((path, entry.as_ref()?))))
    }

    /// The paths whose content is not held.
    pub(crate) fn uncovered(&self) -> Vec<&OsString> {
        let is_uncovered = |(path, entry)| (entry == &Content::Uncovered).then_some(path);
        if self.base.has_uncovered {
            return self
                .iter()
                .map(|(path, entry)| (path, &entry.content))
                .filter_map(is_uncovered)
                .collect();
        }
        let changed = self.changed.iter().filter_map(|(path, entry)| Some((path, &entry.as_ref()?.content)));
        changed.filter_map(is_uncovered).collect()
    }

    /// The index after these changes. It shares what stays with this one, until too much has changed.
    pub(crate) fn with(&self, changes: Vec<EntryChange>) -> Self {
        let mut next = self.clone();
        for (path, entry) in changes {
            let was_there = next.get(&path).is_some();
            next.length = next.length + usize::from(entry.is_some()) - usize::from(was_there);
            next.changed.insert(path, entry);
        }
        if next.changed.len() > next.base.entries.len() / 4 + 64 {
            let entries = next.iter().map(|(path, entry)| (path.clone(), entry.clone())).collect();
            return Self::whole(entries);
        }
        next
    }

    /// The paths that may differ between two indexes.
    pub(crate) fn paths_beside<'a>(&'a self, other: &'a Self) -> HashSet<&'a OsString> {
        let mut paths: HashSet<&OsString> = self.changed.keys().chain(other.changed.keys()).collect();
        if !Arc::ptr_eq(&self.base, &other.base) {
            paths.extend(self.base.entries.keys().chain(other.base.entries.keys()));
        }
        paths
    }

    pub(crate) fn load(path: &Path) -> Self {
        Self::open(path).0
    }

    /// As the file was when it had that many bytes, or all of it. `None`: it does not read as that, and says nothing.
    pub(crate) fn load_beginning(path: &Path, length: Option<u64>) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let length = length.map_or(Some(bytes.len()), |length| usize::try_from(length).ok())?;
        let (index, _, end) = decode(bytes.get(..length)?)?;
        (end == length).then_some(index)
    }

    /// The index, and its file where more may be appended to it.
    pub(crate) fn open(path: &Path) -> (Self, Option<IndexFile>) {
        let read = || {
            let before = IndexFile::of(&fs::metadata(path).ok()?, 0);
            let bytes = fs::read(path).ok()?;
            let (index, base, length) = decode(&bytes)?;
            let is_whole = length == bytes.len() && length as u64 == before.length;
            let grows = bytes.starts_with(MAGIC) && is_whole;
            Some((index, grows.then_some(IndexFile { base: base as u64, ..before })))
        };
        read().unwrap_or_default()
    }

    /// Writes a whole file.
    pub(crate) fn save(&self, path: &Path) -> io::Result<IndexFile> {
        let bytes = self.encode();
        let file = private::replace_open(path, &bytes)?;
        Ok(IndexFile::of(&file.metadata()?, bytes.len() as u64))
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + self.length * 160);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(self.length as u64).to_le_bytes());
        self.iter().for_each(|(path, entry)| put_entry(&mut bytes, path, Some(entry)));
        bytes
    }
}

impl IndexFile {
    fn of(metadata: &fs::Metadata, base: u64) -> Self {
        let platform::Stamp { mtime, inode, .. } = platform::stamp_of(metadata);
        Self { inode, mtime, length: metadata.len(), base }
    }

    /// Whether the path still names this file with these bytes. Links to it come and go, so its `ctime` says nothing.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| Self::of(&metadata, self.base) == *self)
    }

    /// Whether the path names this file, which may have grown.
    pub(crate) fn begins(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| {
            platform::stamp_of(&metadata).inode == self.inode && metadata.len() >= self.length
        })
    }

    /// Appends changes. `None`: the file has been changed or replaced by another process, or should be written anew.
    pub(crate) fn append(&self, path: &Path, changes: &[EntryChange]) -> io::Result<Option<Self>> {
        if self.length > self.base.saturating_mul(2) + (1 << 20) {
            return Ok(None);
        }
        let mut file = fs::OpenOptions::new().append(true).open(path)?;
        // Held until the file is closed.
        if platform::try_lock(&file).is_err() || Self::of(&file.metadata()?, self.base) != *self {
            return Ok(None);
        }
        let mut part = Vec::new();
        part.extend_from_slice(&(changes.len() as u64).to_le_bytes());
        changes.iter().for_each(|(path, entry)| put_entry(&mut part, path, entry.as_ref()));
        let mut bytes = Vec::with_capacity(part.len() + 16);
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&sum(&part));
        bytes.extend_from_slice(&part);
        file.write_all(&bytes)?;
        let after = Self::of(&file.metadata()?, self.base);
        Ok((after.length == self.length + bytes.len() as u64).then_some(after))
    }
}

/// Every content that a file of an index names anywhere, also where a later part names another.
pub(crate) fn all_hashes(path: &Path) -> Vec<Hash> {
    let bytes = fs::read(path).unwrap_or_default();
    let mut hashes = Vec::new();
    let _ = read_parts(&bytes, |changes| {
        hashes.extend(changes.iter().filter_map(|(_, entry)| entry.as_ref()?.hash()));
    });
    hashes
}

/// The index, the length of its first part, and the length of all that reads.
fn decode(bytes: &[u8]) -> Option<(Index, usize, usize)> {
    let mut index: Option<Index> = None;
    let (base, length) = read_parts(bytes, |changes| {
        index = Some(match index.take() {
            None => {
                Index::whole(changes.into_iter().filter_map(|(path, entry)| Some((path, entry?))).collect())
            }
            Some(index) => index.with(changes),
        });
    })?;
    Some((index?, base, length))
}

/// Hands over the changes of each part, the first of which is a whole index. Returns the length of the first part and of all
/// that reads.
fn read_parts(bytes: &[u8], mut each: impl FnMut(Vec<EntryChange>)) -> Option<(usize, usize)> {
    let mut rest = bytes.strip_prefix(MAGIC).or_else(|| bytes.strip_prefix(FIRST_MAGIC))?;
    each(take_changes(&mut rest)?);
    let base = bytes.len() - rest.len();
    let mut end = base;
    while let Some(changes) = take_part(&mut rest) {
        each(changes);
        end = bytes.len() - rest.len();
    }
    Some((base, end))
}

fn take_part(rest: &mut &[u8]) -> Option<Vec<EntryChange>> {
    let length = usize::try_from(number(rest)?).ok()?;
    let expected: [u8; 8] = take(rest)?;
    let (mut part, other) = rest.split_at_checked(length)?;
    if sum(part) != expected {
        return None;
    }
    let changes = take_changes(&mut part)?;
    *rest = other;
    part.is_empty().then_some(changes)
}

fn take_changes(rest: &mut &[u8]) -> Option<Vec<EntryChange>> {
    let count = usize::try_from(number(rest)?).ok()?;
    // A damaged count must not reserve more than the file can hold.
    let mut changes = Vec::with_capacity(count.min(rest.len() / 9));
    for _ in 0..count {
        changes.push(take_entry(rest)?);
    }
    Some(changes)
}

fn sum(bytes: &[u8]) -> [u8; 8] {
    let mut sum = [0; 8];
    sum.copy_from_slice(&Hash::of(bytes).0[..8]);
    sum
}

fn put_entry(bytes: &mut Vec<u8>, path: &OsStr, entry: Option<&Entry>) {
    put_text(bytes, path);
    let gone = Stamp { size: 0, mtime: 0, ctime: 0, inode: 0 };
    let (mode, stamp) = entry.map_or((0, gone), |entry| (entry.seen.mode, entry.seen.stamp));
    bytes.extend_from_slice(&mode.to_le_bytes());
    for number in [stamp.size, stamp.mtime as u64, stamp.ctime as u64, stamp.inode] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.push(u8::from(entry.is_some_and(|entry| entry.racy)));
    match entry.map(|entry| &entry.content) {
        Some(Content::Held(hash)) => {
            bytes.push(0);
            bytes.extend_from_slice(&hash.0);
        }
        Some(Content::Uncovered) => bytes.push(1),
        Some(Content::Link(target)) => {
            bytes.push(2);
            put_text(bytes, target);
        }
        Some(Content::Folder) => bytes.push(3),
        None => bytes.push(4),
    }
}

fn take_entry(rest: &mut &[u8]) -> Option<EntryChange> {
    let path = text(rest)?;
    let mode = u32::from_le_bytes(take(rest)?);
    let stamp = Stamp {
        size: number(rest)?,
        mtime: number(rest)? as i64,
        ctime: number(rest)? as i64,
        inode: number(rest)?,
    };
    let racy = take::<1>(rest)? == [1];
    let (kind, content) = match take(rest)? {
        [0] => (Kind::File, Content::Held(Hash(take(rest)?))),
        [1] => (Kind::File, Content::Uncovered),
        [2] => (Kind::Link, Content::Link(text(rest)?)),
        [3] => (Kind::Folder, Content::Folder),
        [4] => return Some((path, None)),
        _ => return None,
    };
    Some((path, Some(Entry { seen: Seen { kind, mode, stamp }, content, racy })))
}

fn put_text(bytes: &mut Vec<u8>, text: &OsStr) {
    let text = to_bytes(text);
    bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
    bytes.extend_from_slice(text);
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, other) = rest.split_first_chunk::<N>()?;
    *rest = other;
    Some(*first)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_le_bytes)
}

fn text(rest: &mut &[u8]) -> Option<OsString> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (text, other) = rest.split_at_checked(length)?;
    *rest = other;
    Some(from_bytes(text.to_vec()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn entry(kind: Kind, content: Content, racy: bool) -> Entry {
        let stamp = Stamp { size: 3, mtime: -5, ctime: i64::MAX, inode: 7 };
        Entry { seen: Seen { kind, mode: 0o644, stamp }, content, racy }
    }

    fn file(text: &str) -> Entry {
        entry(Kind::File, Content::Held(Hash::of(text.as_bytes())), false)
    }

    fn sample() -> Index {
        let entries = [
            ("a", entry(Kind::File, Content::Held(Hash::of(b"abc")), true)),
            ("big", entry(Kind::File, Content::Uncovered, false)),
            ("l", entry(Kind::Link, Content::Link("../x".into()), false)),
            ("d", entry(Kind::Folder, Content::Folder, false)),
        ];
        Index::whole(entries.into_iter().map(|(path, entry)| (path.into(), entry)).collect())
    }

    fn all(index: &Index) -> BTreeMap<OsString, Entry> {
        index.iter().map(|(path, entry)| (path.clone(), entry.clone())).collect()
    }

    /// Three parts of a file, and the index after each.
    fn grown(path: &Path) -> Vec<(u64, Index)> {
        let mut index = sample();
        let mut at = index.save(path).unwrap();
        let mut states = vec![(at.length, index.clone())];
        let parts: [Vec<EntryChange>; 2] = [
            vec![("a".into(), Some(file("other"))), ("new".into(), Some(file("new")))],
            vec![("a".into(), None), ("big".into(), Some(file("small"))), ("absent".into(), None)],
        ];
        for part in parts {
            at = at.append(path, &part).unwrap().unwrap();
            index = index.with(part);
            states.push((at.length, index.clone()));
        }
        states
    }

    #[test]
    fn an_index_reads_what_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let states = grown(&path);
        let (read, file) = Index::open(&path);
        let (length, last) = states.last().unwrap();
        assert_eq!((all(&read), read.len()), (all(last), 4));
        assert_eq!(file.map(|file| file.length), Some(*length));
        assert!(read.uncovered().is_empty() && sample().uncovered() == ["big"]);
        for (length, state) in &states {
            assert_eq!(all(&Index::load_beginning(&path, Some(*length)).unwrap()), all(state));
            assert!(Index::load_beginning(&path, Some(length - 1)).is_none());
        }
        assert!(Index::load_beginning(&path, Some(length + 1)).is_none());
        assert_eq!(all(&Index::load_beginning(&path, None).unwrap()), all(last));
        let hashes = all_hashes(&path);
        for text in ["abc", "other", "new", "small"] {
            assert!(hashes.contains(&Hash::of(text.as_bytes())), "{text}");
        }
        let between: BTreeMap<_, _> =
            last.paths_beside(&states[1].1).into_iter().map(|path| (path, ())).collect();
        assert_eq!(between.into_keys().collect::<Vec<_>>(), ["a", "absent", "big", "new"]);
    }

    #[test]
    fn what_a_kill_cut_short_is_ignored_and_not_built_upon() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let states = grown(&path);
        let bytes = fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            let (read, file) = Index::open(&path);
            let whole = states.iter().rev().find(|(end, _)| *end <= length as u64);
            assert_eq!(all(&read), whole.map(|(_, state)| all(state)).unwrap_or_default(), "cut at {length}");
            assert_eq!(file.is_some(), whole.is_some_and(|(end, _)| *end == length as u64), "{length}");
        }
        let mut damaged = bytes.clone();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert_eq!(all(&Index::load(&path)), all(&states[1].1));
    }

    #[test]
    fn only_the_file_that_is_known_grows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let known = sample().save(&path).unwrap();
        let change = || vec![("b".into(), Some(file("b")))];
        let grown = known.append(&path, &change()).unwrap().unwrap();
        assert!(grown.is_at(&path) && known.begins(&path) && !known.is_at(&path));
        assert_eq!(known.append(&path, &change()).unwrap(), None, "another process has appended");
        fs::hard_link(&path, folder.path().join("link")).unwrap();
        assert!(grown.is_at(&path), "a link changes nothing");
        sample().save(&path).unwrap();
        assert_eq!(grown.append(&path, &change()).unwrap(), None, "another process has replaced it");
        let mut first = FIRST_MAGIC.to_vec();
        first.extend_from_slice(&sample().encode()[8..]);
        fs::write(&path, &first).unwrap();
        let (read, file) = Index::open(&path);
        assert_eq!(
            (all(&read), file),
            (all(&sample()), None),
            "the first version is read and not appended to"
        );
    }

    #[test]
    fn many_changes_make_a_new_base() {
        let mut index = sample();
        for number in 0..1000 {
            index = index.with(vec![(format!("{}", number % 300).into(), Some(file("x")))]);
        }
        assert_eq!((index.len(), index.iter().count()), (304, 304));
        assert!(index.changed.len() < 304);
        let gone = (0..300).map(|number| (format!("{number}").into(), None)).collect();
        assert_eq!(all(&index.with(gone)), all(&sample()));
    }
}
