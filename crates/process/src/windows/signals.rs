//! The console events that ask this process to end. They are caught from the moment `shutdown_signal` is called.

use std::io;

use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};

/// The signal that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownSignal {
    Terminate,
    Interrupt,
    HangUp,
}

/// A future of the first Ctrl-C, Ctrl-Break, closed window or end of the session.
pub fn shutdown_signal() -> io::Result<impl Future<Output = ShutdownSignal> + Send + 'static> {
    let (mut interrupt, mut terminate) = (ctrl_c()?, ctrl_break()?);
    let (mut close, mut end_of_session) = (ctrl_close()?, ctrl_shutdown()?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => ShutdownSignal::Interrupt,
            _ = terminate.recv() => ShutdownSignal::Terminate,
            _ = close.recv() => ShutdownSignal::HangUp,
            _ = end_of_session.recv() => ShutdownSignal::Terminate,
        }
    })
}

/// Windows cannot suspend a program.
pub fn suspend() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
