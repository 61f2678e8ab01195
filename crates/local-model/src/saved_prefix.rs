//! Owns the evaluated beginnings of prompts on disk: the instructions and tools of Dragoman itself, so that a new chat does not
//! compute them again. Must not know prompts. Invariants: the files are for their owner alone and at most `MOST_BYTES` together;
//! a file is used only with the model, the kernels and the tokens it was made with; files of a model that is gone are removed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use platform::OpenOptionsExt;
use sha2::{Digest, Sha256};

use crate::session::Session;

/// Of all models of a folder together.
pub(crate) const MOST_BYTES: u64 = 200_000_000;
/// Fewer tokens are computed as fast as they are read.
pub(crate) const FEWEST_TOKENS: usize = 256;
/// Changes with the layout of the cache or of the file.
const MAGIC: &[u8; 8] = b"DRGPFX01";
const FOLDER: &str = "prefixes";
/// Parts of the model file that tell it from another of the same size.
const SAMPLES: u64 = 16;
const SAMPLE: usize = 4096;
const HASH: usize = 32;

/// The saved beginnings of one model.
pub(crate) struct SavedPrefixes {
    models: PathBuf,
    folder: PathBuf,
    identity: [u8; HASH],
    most_bytes: u64,
}

impl SavedPrefixes {
    /// `None` where the file cannot be read.
    pub(crate) fn of(model: &Path) -> Option<Self> {
        Self::within(model, MOST_BYTES)
    }

    pub(crate) fn within(model: &Path, most_bytes: u64) -> Option<Self> {
        let identity = identity(model).ok()?;
        Some(Self { models: model.parent()?.to_owned(), folder: folder_of(model), identity, most_bytes })
    }

    /// Gives `session` what was saved of the beginning `tokens`; says how many of them it knows now.
    pub(crate) fn restore(&self, session: &mut Session, tokens: &[u32]) -> usize {
        let tokens = &tokens[..session.whole_pages(tokens.len())];
        if tokens.len() < FEWEST_TOKENS {
            return 0;
        }
        let key = self.key(session, tokens);
        let Some(bytes) = std::fs::read(self.path(&key)).ok().filter(|bytes| is_whole(bytes, &key)) else {
            return 0;
        };
        let state = &bytes[MAGIC.len() + HASH..bytes.len() - HASH];
        if !session.restore(tokens, state) {
            return 0;
        }
        // What is used stays longest.
        let now = SystemTime::now();
        let _ = File::options().append(true).open(self.path(&key)).and_then(|file| file.set_modified(now));
        tokens.len()
    }

    /// Saves what `session` knows of the beginning `tokens`, unless it is there.
    pub(crate) fn save(&self, session: &Session, tokens: &[u32]) -> io::Result<()> {
        let tokens = &tokens[..session.whole_pages(tokens.len())];
        let key = self.key(session, tokens);
        let path = self.path(&key);
        if tokens.len() < FEWEST_TOKENS || path.exists() {
            return Ok(());
        }
        let Some(state) = session.saved(tokens) else { return Ok(()) };
        let size = (MAGIC.len() + state.len() + 2 * HASH) as u64;
        if size > self.most_bytes {
            return Ok(());
        }
        platform::create_private_folder(&self.folder)?;
        make_room(&self.models, self.most_bytes - size);
        let part = path.with_extension(format!("{}.part", std::process::id()));
        let written = write(&part, &key, &state).and_then(|()| platform::replace_file(&part, &path));
        if written.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        written
    }

    fn key(&self, session: &Session, tokens: &[u32]) -> [u8; HASH] {
        let mut hash = Sha256::new();
        hash.update(MAGIC);
        hash.update(self.identity);
        hash.update(session.kernels().as_bytes());
        tokens.iter().for_each(|token| hash.update(token.to_le_bytes()));
        hash.finalize().into()
    }

    fn path(&self, key: &[u8; HASH]) -> PathBuf {
        let name: String = key[..12].iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{name}.prefix"))
    }
}

/// Removes what was saved for the model at `model`, for the command that removes the model.
pub fn remove_saved_prefixes(model: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder_of(model)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn folder_of(model: &Path) -> PathBuf {
    model.with_extension(FOLDER)
}

fn write(path: &Path, key: &[u8; HASH], state: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).private().open(path)?;
    let mut hash = Sha256::new();
    for bytes in [&MAGIC[..], key, state] {
        hash.update(bytes);
        file.write_all(bytes)?;
    }
    file.write_all(&hash.finalize())?;
    file.sync_all()
}

fn is_whole(bytes: &[u8], key: &[u8; HASH]) -> bool {
    let Some((content, hash)) = bytes.len().checked_sub(HASH).map(|at| bytes.split_at(at)) else {
        return false;
    };
    content.starts_with(MAGIC) && content[MAGIC.len()..].starts_with(key) && *Sha256::digest(content) == *hash
}

/// Removes what belongs to no model, and the oldest files beyond `left` bytes.
fn make_room(models: &Path, left: u64) {
    let mut files = Vec::new();
    for folder in entries(models).filter(|path| path.extension().is_some_and(|end| end == FOLDER)) {
        if !folder.with_extension("gguf").exists() {
            let _ = std::fs::remove_dir_all(&folder);
            continue;
        }
        for path in entries(&folder) {
            let Ok(metadata) = std::fs::metadata(&path) else { continue };
            files.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len(), path));
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|(_, length, _)| length).sum();
    for (_, length, path) in files {
        if total <= left {
            return;
        }
        if std::fs::remove_file(path).is_ok() {
            total -= length;
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// A model file by its size, its time and samples of its content.
fn identity(model: &Path) -> io::Result<[u8; HASH]> {
    let mut file = File::open(model)?;
    let metadata = file.metadata()?;
    let mut hash = Sha256::new();
    hash.update(metadata.len().to_le_bytes());
    let time = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    hash.update(time.as_nanos().to_le_bytes());
    let mut sample = vec![0; SAMPLE.min(metadata.len() as usize)];
    for number in 0..SAMPLES {
        let last = metadata.len() - sample.len() as u64;
        file.seek(SeekFrom::Start(last / (SAMPLES - 1) * number))?;
        file.read_exact(&mut sample)?;
        hash.update(&sample);
    }
    Ok(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_oldest_files_and_those_of_removed_models_make_room() {
        let models = tempfile::tempdir().unwrap();
        let file = |model: &str, name: &str, age: u64| {
            let folder = models.path().join(format!("{model}.prefixes"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(name), [0; 1000]).unwrap();
            let time = SystemTime::now() - Duration::from_secs(age);
            File::options().append(true).open(folder.join(name)).unwrap().set_modified(time).unwrap();
            folder.join(name)
        };
        std::fs::write(models.path().join("a.gguf"), "a").unwrap();
        std::fs::write(models.path().join("b.gguf"), "b").unwrap();
        let (old, new, other) = (file("a", "1", 300), file("a", "2", 100), file("b", "1", 200));
        let orphan = file("gone", "1", 50);
        make_room(models.path(), 2500);
        assert!(!orphan.exists() && !orphan.parent().unwrap().exists());
        assert!(!old.exists() && new.exists() && other.exists());
        make_room(models.path(), 1999);
        assert!(new.exists() && !other.exists());
        make_room(models.path(), 0);
        assert!(!new.exists() && models.path().join("a.gguf").exists());
    }
}
