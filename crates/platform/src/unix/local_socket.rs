//! Sockets of this machine that only this user can reach, and the process at the other end.
//!
//! Invariant: the caller binds inside a folder that only its owner can enter.

use std::io;
use std::path::Path;

use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

/// The longest path of a socket; systems differ between 104 and 108 bytes.
const LONGEST_PATH: usize = 100;

/// Waits for other processes.
#[derive(Debug)]
pub struct Listener(UnixListener);

/// Both directions of a connection.
pub type Halves = (OwnedReadHalf, OwnedWriteHalf);

impl Listener {
    pub fn bind(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        crate::set_mode(path, 0o600)?;
        Ok(Self(listener))
    }

    /// The next peer, and its process where the system tells it. A peer of another user is an error.
    pub async fn accept(&self) -> io::Result<(Halves, Option<u32>)> {
        let (stream, _) = self.0.accept().await?;
        let credentials = stream.peer_cred()?;
        if credentials.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let process = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
        Ok((stream.into_split(), process))
    }
}

pub async fn connect(path: &Path) -> io::Result<Halves> {
    Ok(UnixStream::connect(path).await?.into_split())
}

/// Whether a process listens at this path.
pub fn is_alive(path: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(path).is_ok()
}

/// Whether a socket can have this path.
pub fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= LONGEST_PATH
}

/// The user of this process, for names of folders that many users share.
pub fn user() -> String {
    rustix::process::geteuid().as_raw().to_string()
}
