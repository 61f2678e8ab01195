//! The known state of one root: for each path its stamp and the hash of its content.
//!
//! Must not know turns. Invariants: the file changes as a whole; a file that does not read as one is an empty index, which
//! costs time and loses nothing.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::Path;

use crate::private;
use crate::scan::{Kind, Seen, Stamp};
use crate::state::{FileState, Hash, StoredPath, from_bytes, to_bytes};

const MAGIC: &[u8; 8] = b"undo-ix1";

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

#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) entries: HashMap<OsString, Entry>,
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
    pub(crate) fn load(path: &Path) -> Self {
        fs::read(path).ok().and_then(|bytes| Self::decode(&bytes)).unwrap_or_default()
    }

    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        private::replace(path, &self.encode())
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + self.entries.len() * 160);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        for (path, entry) in &self.entries {
            put_text(&mut bytes, path);
            let Seen { mode, stamp: Stamp { size, mtime, ctime, inode }, .. } = entry.seen;
            bytes.extend_from_slice(&mode.to_le_bytes());
            for number in [size, mtime as u64, ctime as u64, inode] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.push(u8::from(entry.racy));
            match &entry.content {
                Content::Held(hash) => {
                    bytes.push(0);
                    bytes.extend_from_slice(&hash.0);
                }
                Content::Uncovered => bytes.push(1),
                Content::Link(target) => {
                    bytes.push(2);
                    put_text(&mut bytes, target);
                }
                Content::Folder => bytes.push(3),
            }
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let rest = &mut rest;
        let count = usize::try_from(number(rest)?).ok()?;
        // A damaged count must not reserve more than the file can hold.
        let mut entries = HashMap::with_capacity(count.min(bytes.len() / 48));
        for _ in 0..count {
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
                _ => return None,
            };
            entries.insert(path, Entry { seen: Seen { kind, mode, stamp }, content, racy });
        }
        rest.is_empty().then_some(Self { entries })
    }
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
    use super::*;

    fn sample() -> Index {
        let stamp = Stamp { size: 3, mtime: -5, ctime: i64::MAX, inode: 7 };
        let entry = |kind, content, racy| Entry { seen: Seen { kind, mode: 0o644, stamp }, content, racy };
        let entries = [
            ("a", entry(Kind::File, Content::Held(Hash::of(b"abc")), true)),
            ("big", entry(Kind::File, Content::Uncovered, false)),
            ("l", entry(Kind::Link, Content::Link("../x".into()), false)),
            ("d", entry(Kind::Folder, Content::Folder, false)),
        ];
        Index { entries: entries.into_iter().map(|(path, entry)| (path.into(), entry)).collect() }
    }

    #[test]
    fn an_index_reads_what_it_wrote() {
        assert_eq!(Index::decode(&sample().encode()), Some(sample()));
    }

    #[test]
    fn a_damaged_index_is_empty() {
        let bytes = sample().encode();
        for length in 0..bytes.len() {
            assert_eq!(Index::decode(&bytes[..length]), None, "cut at {length}");
        }
        let mut long = bytes;
        long.push(0);
        assert_eq!(Index::decode(&long), None);
    }
}
