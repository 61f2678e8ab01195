//! The signals that ask this process to end. They are caught from the moment `shutdown_signal` is called.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// The signal that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownSignal {
    Terminate,
    Interrupt,
    HangUp,
}

/// A future of the first SIGTERM, SIGINT or SIGHUP.
pub fn shutdown_signal() -> io::Result<impl Future<Output = ShutdownSignal> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => ShutdownSignal::Terminate,
            _ = interrupt.recv() => ShutdownSignal::Interrupt,
            _ = hang_up.recv() => ShutdownSignal::HangUp,
        }
    })
}

/// Stops this process, and what shares its terminal, until the shell brings it back: what Ctrl-Z does.
pub fn suspend() -> io::Result<()> {
    rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
    Ok(())
}
