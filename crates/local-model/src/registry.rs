//! Owns the models directory: which models are in it and what they are called. Must not know how they run.
//! Invariant: an id is the name of a file in the directory without `.gguf`, and never leads out of it.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::engine::Engine;
use crate::install::{DEFAULT, Incoming, InstallError, check_name};
use crate::saved_prefix::remove_saved_prefixes;

/// The models of one directory.
#[derive(Debug, Clone)]
pub struct Registry {
    directory: PathBuf,
}

/// One installed model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub id: String,
    pub path: PathBuf,
    pub bytes: u64,
}

impl Registry {
    pub fn new(directory: impl Into<PathBuf>) -> Registry {
        Registry { directory: directory.into() }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// All models, by name. A directory that is not there holds none.
    pub fn list(&self) -> Vec<Installed> {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return Vec::new() };
        let installed = |entry: std::fs::DirEntry| {
            let name = entry.file_name();
            let id = name.to_str()?.strip_suffix(".gguf")?.to_owned();
            check_name(&id).ok()?;
            let metadata = std::fs::metadata(entry.path()).ok().filter(|metadata| metadata.is_file())?;
            Some(Installed { id, path: entry.path(), bytes: metadata.len() })
        };
        let mut models: Vec<Installed> = entries.flatten().filter_map(installed).collect();
        models.sort_by(|a, b| a.id.cmp(&b.id));
        models
    }

    /// Where model `id` lies, if it is there.
    pub fn find(&self, id: &str) -> Option<PathBuf> {
        check_name(id).ok()?;
        let path = self.directory.join(format!("{id}.gguf"));
        path.is_file().then_some(path)
    }

    /// Deletes model `id`, what was saved for it and what unfinished downloads of it left. Says how many bytes that were; `None`: nothing is there.
    pub fn remove(&self, id: &str) -> Result<Option<u64>, InstallError> {
        check_name(id)?;
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return Ok(None) };
        let (name, hidden) = (format!("{id}.gguf"), format!(".{id}.part"));
        let is_its = |file: &str| {
            let rest = file.strip_prefix(&hidden);
            // `.part`, `.parts`, `.part7.whl`, and those of a process: `.123.part`.
            let is_leftover = rest.is_some_and(|rest| {
                let number = rest.strip_suffix(".whl").unwrap_or(rest);
                matches!(number, "" | "s") || number.bytes().all(|byte| byte.is_ascii_digit())
            });
            file == name || is_leftover
        };
        let mut removed = None;
        for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_its)) {
            let path = entry.path();
            let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
            std::fs::remove_file(&path).map_err(|source| InstallError::Unwritable { path, source })?;
            removed = Some(removed.unwrap_or(0) + bytes);
        }
        let path = self.directory.join(name);
        remove_saved_prefixes(&path).map_err(|source| InstallError::Unwritable { path, source })?;
        Ok(removed)
    }

    /// Takes in a GGUF file that the engine can run, or the wheel of the default model. Says its id.
    pub fn add(&self, file: &Path) -> Result<String, InstallError> {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(".whl") {
            DEFAULT.install(file, &self.directory, &mut |_| {})?;
            return Ok(DEFAULT.id.to_owned());
        }
        let stem = name.strip_suffix(".gguf").unwrap_or(name);
        let id = stem.to_ascii_lowercase();
        check_name(&id)?;
        // A file that cannot run is refused before it is copied.
        Engine::open(file)?;
        let unreadable = |source| InstallError::Unreadable { path: file.to_owned(), source };
        let mut from = std::fs::File::open(file).map_err(unreadable)?;
        if let Some(path) = self.find(&id) {
            let known = std::fs::File::open(&path).map_err(unreadable)?;
            return match same(&mut from, known).map_err(unreadable)? {
                true => Ok(id),
                false => Err(InstallError::Taken { id, path }),
            };
        }
        let mut incoming = Incoming::new(&self.directory, &id)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match from.read(&mut buffer).map_err(unreadable)? {
                0 => break,
                count => incoming.write(&buffer[..count])?,
            }
        }
        incoming.finish(None)?;
        Ok(id)
    }
}

/// Whether two files hold the same bytes.
fn same(a: &mut std::fs::File, mut b: std::fs::File) -> std::io::Result<bool> {
    let mut left = a.metadata()?.len();
    if left != b.metadata()?.len() {
        return Ok(false);
    }
    let mut buffers = [vec![0; 1 << 16], vec![0; 1 << 16]];
    while left > 0 {
        let count = left.min(1 << 16) as usize;
        let [first, second] = &mut buffers;
        a.read_exact(&mut first[..count])?;
        b.read_exact(&mut second[..count])?;
        if first[..count] != second[..count] {
            return Ok(false);
        }
        left -= count as u64;
    }
    Ok(true)
}
