//! The pipes between us and a child. Unix: the kernel's anonymous pipes.

use std::io::{self, PipeReader, PipeWriter};

pub use tokio::net::unix::pipe::{Receiver, Sender};

/// A pipe from the child to us: our end and the child's.
pub(crate) async fn output() -> io::Result<(Receiver, PipeWriter)> {
    let (ours, theirs) = io::pipe()?;
    Ok((Receiver::from_owned_fd(ours.into())?, theirs))
}

/// A pipe from us to the child: our end and the child's.
pub(crate) async fn input() -> io::Result<(Sender, PipeReader)> {
    let (theirs, ours) = io::pipe()?;
    Ok((Sender::from_owned_fd(ours.into())?, theirs))
}

/// Takes what is already in the pipe. Asks the kernel and not the runtime, which may not have noticed yet that there is
/// something. 0: there is nothing.
pub(crate) fn read_now(pipe: &Receiver, buffer: &mut [u8]) -> usize {
    loop {
        match rustix::io::read(pipe, &mut *buffer) {
            Err(rustix::io::Errno::INTR) => {}
            read => return read.unwrap_or(0),
        }
    }
}
