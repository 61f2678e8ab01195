//! Where the store keeps its files, and that nobody but the user can read them.
//!
//! Must not know what is in the files. Invariant: the folders are 0700 and the files 0600, whatever the umask.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use domain::Failure;

#[derive(Clone, Debug)]
pub struct Place {
    directory: PathBuf,
    /// Who we are, for people who meet a chat that we hold.
    pub holder: String,
}

impl Place {
    pub fn new(directory: &Path, holder: String) -> Self {
        Self { directory: directory.to_owned(), holder }
    }

    pub fn database(&self) -> PathBuf {
        self.directory.join("chats.sqlite")
    }

    pub fn leases(&self) -> PathBuf {
        self.directory.join("leases")
    }

    /// Makes the store's own folder and, where there is none, an empty database file.
    pub fn prepare(&self) -> Result<(), Failure> {
        private_directory(&self.directory)?;
        let database = self.database();
        // Never opens a file that exists: closing it would drop the locks that SQLite holds on it in this process.
        match private_options().create_new(true).open(&database) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unusable(&database, &error)),
        }
        // SQLite gives the files it makes beside this one (-wal, -shm) the same mode.
        restrict(&database, 0o600)
    }
}

pub fn private_directory(directory: &Path) -> Result<(), Failure> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(|error| unusable(directory, &error))?;
    restrict(directory, 0o700)
}

/// Opens for reading and writing without reading anything into it; makes it where there is none.
pub fn private_file(path: &Path) -> io::Result<File> {
    private_options().create(true).open(path)
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn restrict(path: &Path, wanted: u32) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    const STICKY: u32 = 0o1000;
    let mode = fs::metadata(path).map_err(|error| unusable(path, &error))?.permissions().mode();
    // A sticky folder is one that many users share, such as /tmp: not ours to close.
    if mode & 0o777 == wanted || mode & STICKY != 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(wanted)).map_err(|error| unusable(path, &error))
}

#[cfg(not(unix))]
fn restrict(path: &Path, _: u32) -> Result<(), Failure> {
    fs::metadata(path).map(drop).map_err(|error| unusable(path, &error))
}

/// What tells one file from another that later took its name.
#[cfg(unix)]
pub fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
pub fn identity(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

pub fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::config(format!("Dragoman cannot use {}: {error}.", path.display()))
        .hint("Make the folder writable for you, or set XDG_DATA_HOME to one that is.")
}
