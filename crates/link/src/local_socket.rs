//! Sockets of this machine that only this user can reach, and the process at the other end. The one place that knows the
//! operating system: named pipes of Windows would stand beside it with the same four functions.
//!
//! Invariant: a socket is bound inside a folder that only its owner can enter.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

/// The longest path of a socket; systems differ between 104 and 108 bytes.
const LONGEST_PATH: usize = 100;

pub(crate) struct Listener(UnixListener);

/// Both directions of a connection.
pub(crate) type Halves = (OwnedReadHalf, OwnedWriteHalf);

impl Listener {
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(Self(listener))
    }

    /// The next peer, and its process where the system tells it.
    pub(crate) async fn accept(&self) -> io::Result<(Halves, Option<u32>)> {
        let (stream, _) = self.0.accept().await?;
        let credentials = stream.peer_cred()?;
        if credentials.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let process = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
        Ok((stream.into_split(), process))
    }
}

pub(crate) async fn connect(path: &Path) -> io::Result<Halves> {
    Ok(UnixStream::connect(path).await?.into_split())
}

/// Whether a process listens at this path.
pub(crate) fn is_alive(path: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(path).is_ok()
}

pub(crate) fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= LONGEST_PATH
}

/// Makes the folder where it does not exist, and refuses one that others may enter.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the folder is not this user's own"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Writes a new file that only this user can read.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
