//! A look that must be done though the process is killed: which git directories a workspace had, in a file that the next
//! process finds.
//!
//! Invariant: only the file of a process that is gone is used, and only for the same workspace folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

#[derive(Debug, Default)]
pub(crate) struct DueLook {
    file: Option<PathBuf>,
    written: Vec<PathBuf>,
    has_looked: bool,
}

#[derive(Serialize, Deserialize)]
struct Contents {
    roots: Vec<PathBuf>,
    known: Vec<PathBuf>,
}

fn folder(cache: &Path) -> PathBuf {
    cache.join("sandbox/due")
}

impl DueLook {
    /// `known`: the git directories and links that are there; `None`: no look is due.
    pub(crate) fn set(&mut self, cache: &Path, roots: &[PathBuf], known: Option<Vec<PathBuf>>) {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(known) = known else {
            if let Some(file) = self.file.take() {
                let _ = fs::remove_file(file);
            }
            return;
        };
        if self.file.is_some() && self.written == known {
            return;
        }
        let file = self.file.clone().unwrap_or_else(|| {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            folder(cache).join(format!("{}-{number}", std::process::id()))
        });
        let contents = Contents { roots: roots.to_vec(), known };
        let text = serde_json::to_vec(&contents).unwrap_or_default();
        let written = fs::create_dir_all(folder(cache)).and_then(|()| fs::write(&file, text));
        if let Err(error) = written {
            tracing::warn!(%error, "a look that is due is not noted");
            return;
        }
        self.file = Some(file);
        self.written = contents.known;
    }

    /// What processes that are gone noted for these folders; each once.
    pub(crate) fn take_of_dead(&mut self, cache: &Path, roots: &[PathBuf]) -> Vec<Vec<PathBuf>> {
        if std::mem::replace(&mut self.has_looked, true) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(folder(cache)).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.split('-').next());
            let is_gone =
                process.is_some_and(|process| !Path::new("/proc").join(process).join("stat").exists());
            let contents = fs::read(entry.path()).ok().filter(|_| is_gone);
            let contents = contents.and_then(|bytes| serde_json::from_slice::<Contents>(&bytes).ok());
            if let Some(contents) = contents.filter(|contents| contents.roots == roots) {
                let _ = fs::remove_file(entry.path());
                found.push(contents.known);
            }
        }
        found
    }
}
