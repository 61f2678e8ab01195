//! The handle of a running child: its pipes, its end, and the promise that it does not outlive the handle.
//! `wait` and `stop` take `&self`, so that one task may follow a child while another ends it.

use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};

use sandbox::Leftovers;
use tokio::sync::watch;

use crate::confine::Attendant;
use crate::exit::{Exit, Phase};
use crate::pipes::{Receiver, Sender};
use crate::reaper::{self, Guard};

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        reaper::exit_of(status)
    }
}

/// A running child with its tree. Dropping it ends the tree.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    pub(crate) stdin: Option<Sender>,
    pub(crate) stdout: Option<Receiver>,
    pub(crate) stderr: Option<Receiver>,
    phase: watch::Receiver<Phase>,
    guard: Guard,
    pub(crate) attendant: Option<Attendant>,
    /// Looks at the workspace after a child that ends.
    pub(crate) leftovers: Mutex<Option<sandbox::Guard>>,
}

impl Child {
    pub(crate) fn new(
        started: reaper::Started,
        stdin: Option<Sender>,
        stdout: Option<Receiver>,
        stderr: Option<Receiver>,
    ) -> Self {
        Self {
            pid: started.pid,
            stdin,
            stdout,
            stderr,
            phase: started.phase,
            guard: started.guard,
            attendant: None,
            leftovers: Mutex::default(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The child's input; dropping it closes it.
    pub fn take_stdin(&mut self) -> Option<Sender> {
        self.stdin.take()
    }

    pub fn take_stdout(&mut self) -> Option<Receiver> {
        self.stdout.take()
    }

    /// `None` also when the errors are merged into the output.
    pub fn take_stderr(&mut self) -> Option<Receiver> {
        self.stderr.take()
    }

    /// Hosts that its sandbox refused, as `host:port`.
    pub fn refused_hosts(&self) -> Vec<String> {
        self.attendant.as_ref().map(|attendant| attendant.proxy.refused()).unwrap_or_default()
    }

    /// Whether its sandbox ended it because it took too much memory. Asked after its end.
    pub async fn was_over_memory(&self) -> bool {
        match &self.attendant {
            Some(attendant) => attendant.was_over_memory().await,
            None => false,
        }
    }

    /// Takes back what the child left behind and git would obey, and names it; once, after its end.
    pub async fn take_back(&self) -> Leftovers {
        let leftovers = self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(leftovers) = leftovers else { return Leftovers::default() };
        tokio::task::spawn_blocking(|| leftovers.end()).await.unwrap_or_default()
    }

    /// How the child ended, or `None` while it runs.
    pub fn exit(&self) -> Option<Exit> {
        self.phase.borrow().exit()
    }

    /// Waits for the child's own end. Its pipes may still hold output.
    pub async fn wait(&self) -> Exit {
        self.reached(|phase| phase.exit().is_some()).await
    }

    /// Ends the whole tree and waits until it is gone: at most the grace and half a second.
    pub async fn stop(&self) -> Exit {
        self.begin_stop();
        self.reached(|phase| matches!(phase, Phase::Gone(_))).await
    }

    /// Ends the whole tree without waiting for it.
    pub fn begin_stop(&self) {
        self.guard.stop();
    }

    async fn reached(&self, wanted: impl FnMut(&Phase) -> bool) -> Exit {
        let mut phase = self.phase.clone();
        let reached = phase.wait_for(wanted).await.ok().and_then(|phase| phase.exit());
        // The reaper drops a sender only after `Gone`; a lost reaper means that nothing is known.
        reached.unwrap_or(Exit { code: None, signal: None })
    }
}
