//! Contents by their hash.
//!
//! Must not know paths of a workspace beyond the one it reads, nor turns. Invariants: an object's name is the hash of its
//! bytes; an object that is whole never changes; a reader gets the right bytes or an error.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::limits::Limits;
use crate::private;
use crate::state::Hash;
use crate::store_size::StoreSize;

/// A file up to this size is read into memory once; a larger one is copied while it is hashed.
const IN_MEMORY: u64 = 256 << 10;

/// More files than this are synced together with their file system, which is then quicker.
const SYNCED_ONE_BY_ONE: usize = 16;

pub(crate) struct Objects {
    folder: PathBuf,
    limits: Limits,
    size: StoreSize,
    /// Files of the store that may not be on disk yet.
    unsynced: Mutex<Vec<PathBuf>>,
}

/// The outcome of storing a file.
pub(crate) enum Stored {
    Held(Hash, u64),
    /// Over a limit, or no longer a plain file.
    Refused,
}

impl Objects {
    pub(crate) fn new(folder: PathBuf, limits: Limits) -> Self {
        let size = StoreSize::new(folder.with_extension("size"));
        Self { folder, limits, size, unsynced: Mutex::default() }
    }

    pub(crate) fn path(&self, hash: &Hash) -> PathBuf {
        let hex = hash.hex();
        self.folder.join(&hex[..2]).join(&hex[2..])
    }

    /// Bytes of all objects, about.
    pub(crate) fn used(&self) -> u64 {
        self.size.bytes(|| self.all().map(|(_, _, size)| size).sum())
    }

    /// Path, hash and size of every object.
    pub(crate) fn all(&self) -> impl Iterator<Item = (PathBuf, Hash, u64)> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
        files.filter_map(|file| {
            let path = file.path();
            let start = path.parent()?.file_name()?.to_str()?.to_owned();
            let hash = Hash::from_hex(&format!("{start}{}", path.file_name()?.to_str()?))?;
            Some((path, hash, file.metadata().ok()?.len()))
        })
    }

    /// Removes every object that is not wanted. Must run while no other process stores any.
    pub(crate) fn retain(&self, is_wanted: impl Fn(&Hash) -> bool) {
        let mut left = 0;
        for (path, hash, size) in self.all().collect::<Vec<_>>() {
            if is_wanted(&hash) || fs::remove_file(&path).is_err() {
                left += size;
            }
        }
        self.size.set(left);
    }

    /// Stores the bytes that the file has now. A link is not followed.
    pub(crate) fn store_file(&self, path: &Path) -> io::Result<Stored> {
        let mut source = platform::open_unfollowed(path)?;
        let metadata = source.metadata()?;
        if !metadata.is_file() || metadata.len() > self.limits.file {
            return Ok(Stored::Refused);
        }
        if metadata.len() <= IN_MEMORY {
            let mut bytes = Vec::with_capacity(metadata.len() as usize);
            let size = source.take(self.limits.file + 1).read_to_end(&mut bytes)? as u64;
            if size > self.limits.file {
                return Ok(Stored::Refused);
            }
            return self.store_bytes(&bytes);
        }
        if self.is_full(metadata.len()) {
            return Ok(Stored::Refused);
        }
        self.store_large(&mut source)
    }

    pub(crate) fn store_bytes(&self, bytes: &[u8]) -> io::Result<Stored> {
        let (hash, size) = (Hash::of(bytes), bytes.len() as u64);
        let path = self.path(&hash);
        // A kill or a power cut may have left a name without all of its bytes.
        if !has_size(&path, size) {
            if self.is_full(size) {
                return Ok(Stored::Refused);
            }
            private::create_or_replace(&path, bytes)?;
            self.count_more(size);
            self.must_sync(path);
        }
        Ok(Stored::Held(hash, size))
    }

    /// The next `sync` waits until this file is on disk.
    pub(crate) fn must_sync(&self, path: PathBuf) {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }

    /// Waits until everything that was stored is on disk: a power cut must not take what a command is about to delete.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.flush_size();
        let files = std::mem::take(&mut *self.unsynced.lock().unwrap_or_else(PoisonError::into_inner));
        if files.len() > SYNCED_ONE_BY_ONE && platform::sync_file_system(&self.folder)? {
            return Ok(());
        }
        for file in files {
            // Windows syncs only what is open for writing.
            match fs::OpenOptions::new().write(true).open(file) {
                Ok(file) => file.sync_data()?,
                // Another process has tidied the store or replaced the index.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Lets other processes know how large the store is; that file is no promise, so an error is none.
    pub(crate) fn flush_size(&self) {
        if let Err(error) = self.size.flush() {
            tracing::warn!(%error, "the size of the undo store cannot be written");
        }
    }

    fn count_more(&self, size: u64) {
        self.size.add(i64::try_from(size).unwrap_or(i64::MAX));
    }

    fn is_full(&self, more: u64) -> bool {
        self.used() + more > self.limits.total
    }

    /// Clones the file where the file system can, else copies it. The hash is that of the copy, so a writer that changes
    /// the source meanwhile cannot make the two differ.
    fn store_large(&self, source: &mut File) -> io::Result<Stored> {
        private::create_folder(&self.folder)?;
        let (temporary, mut copy) = private::temporary(&self.folder)?;
        let outcome = clone_or_copy(source, &mut copy, self.limits.file).and_then(|copied| {
            let Some((hash, size)) = copied else { return Ok(Stored::Refused) };
            let path = self.path(&hash);
            if has_size(&path, size) {
                return Ok(Stored::Held(hash, size));
            }
            private::create_folder(path.parent().unwrap_or(&self.folder))?;
            platform::replace_file(&temporary, &path)?;
            self.count_more(size);
            self.must_sync(path);
            Ok(Stored::Held(hash, size))
        });
        let _ = fs::remove_file(&temporary);
        outcome
    }

    /// The bytes of an object; an error where they are not there or not right.
    pub(crate) fn read(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        let bytes = fs::read(self.path(hash))?;
        if Hash::of(&bytes) != *hash {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the stored copy is damaged"));
        }
        Ok(bytes)
    }

    /// Puts an object's bytes at a path of the workspace, as a whole.
    pub(crate) fn write_to(&self, hash: &Hash, path: &Path, mode: u32) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let mut source = File::open(self.path(hash))?;
        let (temporary, mut copy) = private::temporary(folder)?;
        let outcome = clone_or_copy(&mut source, &mut copy, u64::MAX).and_then(|copied| {
            if copied.is_none_or(|(found, _)| found != *hash) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the stored copy is damaged"));
            }
            platform::set_file_mode(&copy, mode & 0o7777)?;
            copy.sync_data()?;
            platform::replace_file(&temporary, path)
        });
        if outcome.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        outcome
    }
}

fn has_size(path: &Path, size: u64) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.len() == size)
}

/// Returns the copy's hash and size, or `None` where it is larger than `limit`.
fn clone_or_copy(source: &mut File, copy: &mut File, limit: u64) -> io::Result<Option<(Hash, u64)>> {
    let cloned = platform::clone_file(copy, source);
    let (mut hasher, mut size, mut buffer) = (Sha256::new(), 0_u64, vec![0; 128 << 10]);
    if cloned {
        copy.rewind()?;
    }
    loop {
        let read = if cloned { copy.read(&mut buffer)? } else { source.read(&mut buffer)? };
        if read == 0 {
            return Ok(Some((Hash(hasher.finalize().into()), size)));
        }
        size += read as u64;
        if size > limit {
            return Ok(None);
        }
        hasher.update(&buffer[..read]);
        if !cloned {
            copy.write_all(&buffer[..read])?;
        }
    }
}
