//! The paths of the store's files, and their permissions.
//!
//! Must not know what is in the files. Invariant: folders are 0700 and files 0600 under every umask.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use domain::Failure;
use platform::OpenOptionsExt;

#[derive(Clone, Debug)]
pub(crate) struct StoreFiles {
    directory: PathBuf,
    /// The name of this process, shown to users of another process that wants a chat held here.
    pub(crate) holder: String,
    /// Where other processes reach this one, for the leases taken from now on.
    address: Arc<Mutex<Option<String>>>,
}

impl StoreFiles {
    pub(crate) fn new(directory: &Path, holder: String) -> Self {
        Self { directory: directory.to_owned(), holder, address: Arc::default() }
    }

    pub(crate) fn set_address(&self, address: &str) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address.to_owned());
    }

    pub(crate) fn address(&self) -> Option<String> {
        self.address.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.directory.join("chats.sqlite")
    }

    pub(crate) fn leases(&self) -> PathBuf {
        self.directory.join("leases")
    }

    /// The file that a repair has locked.
    pub(crate) fn repair_lock(&self) -> PathBuf {
        self.directory.join("repair.lock")
    }

    /// Whether a repair runs: what is written to a chat meanwhile would be lost.
    pub(crate) fn is_being_repaired(&self) -> bool {
        let Ok(file) = File::open(self.repair_lock()) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// Creates the store's folder and an empty database file where they do not exist.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        private_directory(&self.directory)?;
        let database = self.database();
        // Must not open an existing file: closing it would drop the locks that SQLite holds on it in this process.
        match private_options().create_new(true).open(&database) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unusable(&database, &error)),
        }
        // SQLite gives the same mode to the files that it creates beside this one (-wal, -shm).
        restrict(&database, 0o600)
    }
}

pub(crate) fn private_directory(directory: &Path) -> Result<(), Failure> {
    platform::create_private_folder(directory).map_err(|error| unusable(directory, &error))?;
    restrict(directory, 0o700)
}

/// Opens a file for reading and writing; creates it where it does not exist and keeps its content where it does.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    // On Windows a file that its holder removed stays for a moment and cannot be opened.
    platform::retry_while_busy(|| private_options().create(true).open(path))
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    // Another user may have left a link here, where the folder is shared.
    options.read(true).write(true).private().no_follow();
    options
}

fn restrict(path: &Path, wanted: u32) -> Result<(), Failure> {
    platform::restrict(path, wanted).map_err(|error| unusable(path, &error))
}

pub(crate) fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::config(format!("Dragoman cannot use {}: {error}.", path.display()))
        .hint("Make the folder writable for you, or set XDG_DATA_HOME to a folder that is.")
}
