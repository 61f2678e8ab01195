//! Sockets of this machine that only this user can reach. Not offered on Windows yet: a named pipe would stand here, and
//! until then a chat of another process is followed and not worked in.

use std::convert::Infallible;
use std::io;
use std::path::Path;

/// Waits for other processes; there is none here.
#[derive(Debug)]
pub struct Listener(Infallible);

/// Both directions of a connection.
pub type Halves = (tokio::io::Empty, tokio::io::Sink);

impl Listener {
    pub fn bind(_path: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[expect(clippy::unused_async, reason = "the same as on other systems")]
    pub async fn accept(&self) -> io::Result<(Halves, Option<u32>)> {
        match self.0 {}
    }
}

#[expect(clippy::unused_async, reason = "the same as on other systems")]
pub async fn connect(_path: &Path) -> io::Result<Halves> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether a process listens at this path.
pub fn is_alive(_path: &Path) -> bool {
    false
}

/// Whether a socket can have this path.
pub fn fits(_path: &Path) -> bool {
    true
}

/// Each user has a temporary folder of their own.
pub fn user() -> String {
    "user".to_owned()
}
