//! The state of one path at one moment.
//!
//! Must not know how states are stored. Invariant: two equal states have the same bytes.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// The SHA-256 of a content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub(crate) [u8; 32]);

impl Hash {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn hex(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
    }

    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let mut hash = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (byte, at) in hash.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
        }
        Some(Self(hash))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex()[..12])
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.hex())
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| serde::de::Error::custom("not a hash"))
    }
}

/// What is at a path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum FileState {
    Absent,
    /// A file whose content the store holds.
    File {
        hash: Hash,
        size: u64,
        mode: u32,
    },
    Link {
        target: StoredPath,
    },
    Folder {
        mode: u32,
    },
    /// A file whose content the store does not hold: it is too large, unreadable, or the store is full.
    Uncovered {
        size: u64,
        mtime: i64,
    },
}

impl FileState {
    /// Whether a file's content, a link's target or a folder is the same; modes may differ.
    pub(crate) fn same_content(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { hash, .. }, Self::File { hash: other, .. }) => hash == other,
            (Self::Folder { .. }, Self::Folder { .. }) => true,
            _ => self == other,
        }
    }

    pub(crate) fn hash(&self) -> Option<Hash> {
        match self {
            Self::File { hash, .. } => Some(*hash),
            Self::Absent | Self::Link { .. } | Self::Folder { .. } | Self::Uncovered { .. } => None,
        }
    }
}

/// A path in a stored record: text where it is UTF-8, bytes where it is not.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StoredPath(pub PathBuf);

impl From<&Path> for StoredPath {
    fn from(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathText {
    Text(String),
    Bytes(Vec<u8>),
}

impl Serialize for StoredPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => PathText::Bytes(to_bytes(self.0.as_os_str()).to_vec()).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for StoredPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match PathText::deserialize(deserializer)? {
            PathText::Text(text) => text.into(),
            PathText::Bytes(bytes) => from_bytes(bytes).into(),
        }))
    }
}

pub(crate) use platform::{name_bytes as to_bytes, name_from_bytes as from_bytes};
