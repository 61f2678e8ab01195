//! The one thread that forks, ends and reaps every child. It lives as long as the process, because Linux
//! sends a parent-death signal when the forking thread ends. It never blocks on a child: it sleeps in
//! `poll` on the children's pidfds and steps each child that is ending.
//!
//! A child goes Running → Exited (its own end is known) → Gone (so is the end of its tree, and it is reaped).

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::{oneshot, watch};

use crate::child_tree::ChildTree;
use crate::error::ProcessError;
use crate::exit::{Exit, Phase};
use crate::group_killer::GroupKiller;
use crate::tree::MARKER;

/// How often a child that is ending is looked at, and any child where there are no pidfds.
const STEP: Duration = Duration::from_millis(5);

/// A child that was just forked.
pub(crate) struct Started {
    pub(crate) pid: u32,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) guard: Guard,
}

/// Ends the tree of one child when it is dropped.
#[derive(Debug)]
pub(crate) struct Guard(u64);

impl Guard {
    pub(crate) fn stop(&self) {
        send(Request::Stop(self.0));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Forks on the reaper's thread. The outer error means that no child is started from now on.
pub(crate) async fn spawn(
    command: Command,
    grace: Duration,
    takes_terminal: bool,
) -> Result<io::Result<Started>, ProcessError> {
    let (reply, answer) = oneshot::channel();
    send(Request::Spawn { command: Box::new(command), grace, takes_terminal, reply });
    answer.await.map_err(|_| ProcessError::ShuttingDown)
}

/// Ends every child with its tree and refuses new ones from now on; resolves when all are gone, which takes
/// less than a second whatever grace a child was given.
pub async fn shutdown() {
    let (reply, answer) = oneshot::channel();
    send(Request::Shutdown(reply));
    let _ = answer.await;
    // Everything that could write a workspace is gone.
    let _ = tokio::task::spawn_blocking(sandbox::finish_looks).await;
}

pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    Exit { code: status.code(), signal: status.signal() }
}

enum Request {
    Spawn {
        command: Box<Command>,
        grace: Duration,
        takes_terminal: bool,
        reply: oneshot::Sender<io::Result<Started>>,
    },
    Stop(u64),
    Shutdown(oneshot::Sender<()>),
}

/// The way to the reaper. `None` where its thread could not be made: then nothing can be started.
static REAPER: LazyLock<Option<(mpsc::Sender<Request>, PipeWriter)>> = LazyLock::new(|| {
    let (wake, waker) = io::pipe().ok()?;
    let (requests, inbox) = mpsc::channel();
    let reaper = Reaper {
        inbox,
        wake,
        trees: Vec::new(),
        // Elsewhere no parent-death signal ends the children of a process that was killed.
        group_killer: GroupKiller::new(!cfg!(target_os = "linux")),
        next: 0,
        mark: process_mark(),
        shutdown_waiters: None,
    };
    thread::Builder::new().name("process-reaper".into()).spawn(|| reaper.run()).ok()?;
    Some((requests, waker))
});

/// Dropping the order drops its reply, which the one who waits takes for a refusal.
fn send(request: Request) {
    if let Some((requests, waker)) = &*REAPER
        && requests.send(request).is_ok()
    {
        let mut waker = waker;
        let _ = waker.write_all(&[1]);
    }
}

/// What tells the children of this process from those of another one with the same number.
fn process_mark() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}.{}", std::process::id(), since.as_nanos())
}

struct Reaper {
    inbox: mpsc::Receiver<Request>,
    wake: PipeReader,
    trees: Vec<ChildTree>,
    group_killer: GroupKiller,
    next: u64,
    mark: String,
    /// Who waits for the end of everything; set once no child is started from now on.
    shutdown_waiters: Option<Vec<oneshot::Sender<()>>>,
}

impl Reaper {
    fn run(mut self) {
        loop {
            self.sleep();
            while let Ok(request) = self.inbox.try_recv() {
                self.handle_request(request);
            }
            let now = Instant::now();
            let group_killer = &mut self.group_killer;
            self.trees.retain_mut(|tree| tree.step(now) || group_killer.forget(tree.pid));
            if let Some(shutdown_waiters) = &mut self.shutdown_waiters
                && self.trees.iter().all(ChildTree::is_gone)
            {
                for waiter in shutdown_waiters.drain(..) {
                    let _ = waiter.send(());
                }
            }
        }
    }

    /// Sleeps until an order comes, a child exits or a child that is ending must be looked at again.
    fn sleep(&mut self) {
        let watched: Vec<&OwnedFd> = self.trees.iter().filter_map(|tree| tree.pidfd.as_ref()).collect();
        let stepping = self.trees.iter().any(|tree| tree.pidfd.is_none() || tree.is_ending());
        let step = Timespec { tv_sec: 0, tv_nsec: STEP.subsec_nanos().into() };
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        fds.extend(watched.into_iter().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
        let timeout = stepping.then_some(&step);
        match poll(&mut fds, timeout) {
            Ok(_) => {}
            // Too many children for one poll call, or no memory: look again in a while.
            Err(error) if error != rustix::io::Errno::INTR => thread::sleep(STEP),
            Err(_) => {}
        }
        if !fds[0].revents().is_empty() {
            let _ = self.wake.read(&mut [0; 512]);
        }
    }

    fn handle_request(&mut self, request: Request) {
        match request {
            // Dropping the reply refuses.
            Request::Spawn { .. } if self.shutdown_waiters.is_some() => {}
            Request::Spawn { command, grace, takes_terminal, reply } => {
                let _ = reply.send(self.fork(*command, grace, takes_terminal));
            }
            Request::Stop(id) => {
                if let Some(tree) = self.trees.iter_mut().find(|tree| tree.id == id) {
                    tree.end();
                }
            }
            Request::Shutdown(reply) => {
                self.trees.iter_mut().for_each(ChildTree::shorten_grace_and_end);
                self.shutdown_waiters.get_or_insert_default().push(reply);
            }
        }
    }

    fn fork(&mut self, mut command: Command, grace: Duration, takes_terminal: bool) -> io::Result<Started> {
        self.next += 1;
        let id = self.next;
        let marker = format!("{}.{id}", self.mark);
        command.env(MARKER, &marker);
        crate::nesting::tell_depth(&mut command);
        let parent = rustix::process::getpid();
        let prepare = move || prepare(parent, takes_terminal);
        // SAFETY: between fork and exec `prepare` makes system calls and compares numbers; it allocates
        // nothing, takes no lock and touches no state shared with the other threads.
        unsafe { command.pre_exec(prepare) };
        #[expect(clippy::disallowed_methods, reason = "this crate owns spawning")]
        let child = command.spawn()?;
        let pid = child.id();
        let (phase_sender, phase) = watch::channel(Phase::Running);
        let tree = ChildTree::new(id, child, marker, grace, phase_sender)?;
        self.group_killer.add(tree.pid);
        self.trees.push(tree);
        Ok(Started { pid, phase, guard: Guard(id) })
    }
}

/// In the child, before exec: leads its own session and group, and dies with us.
fn prepare(parent: rustix::process::Pid, takes_terminal: bool) -> io::Result<()> {
    rustix::process::setsid()?;
    if takes_terminal {
        crate::pty::take_as_terminal()?;
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    // We may have died before the signal was set.
    if rustix::process::getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()))
    }
}
