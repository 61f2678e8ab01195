//! One child in the reaper's care: watches its end and takes its tree through SIGTERM, grace and SIGKILL.
//! Only the reaper's thread touches it, and no step of it waits.

use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::sync::watch;

use crate::exit::{Exit, LINGER_TIME, Phase};
use crate::tree::{self, Outsider};

/// How long a killed tree may take to vanish before it is given up (a process stuck in the kernel).
const VANISH_TIMEOUT: Duration = Duration::from_millis(500);

/// When a tree that was asked to end is searched again for processes that started meanwhile. Each further search waits
/// twice as long as the one before.
const FIRST_SEARCH: Duration = Duration::from_millis(10);

/// The longest grace when the whole process shuts down.
const LAST_GRACE: Duration = Duration::from_millis(400);

pub(crate) struct ChildTree {
    pub(crate) id: u64,
    /// Readable when the child has exited; dropped then.
    pub(crate) pidfd: Option<OwnedFd>,
    child: Child,
    /// Of the child, and the number of its group.
    pub(crate) pid: Pid,
    marker: String,
    since: u64,
    grace: Duration,
    phase_sender: watch::Sender<Phase>,
    exit: Option<Exit>,
    ending: Option<Ending>,
}

struct Ending {
    /// Also ends what left the group: the child was stopped, it did not end by itself.
    whole: bool,
    outsiders: Vec<Outsider>,
    stage: Stage,
    at: Instant,
    /// The next search for processes outside the group, and how long the one after it waits.
    search: Option<(Instant, Duration)>,
}

impl Ending {
    fn new(whole: bool, at: Instant) -> Self {
        Self { whole, outsiders: Vec::new(), stage: Stage::Terminate, at, search: None }
    }
}

/// What happens at `Ending::at`.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Terminate,
    Kill,
    GiveUp,
    GivenUp,
}

impl ChildTree {
    pub(crate) fn new(
        id: u64,
        child: Child,
        marker: String,
        grace: Duration,
        phase_sender: watch::Sender<Phase>,
    ) -> std::io::Result<Self> {
        let pid = tree::pid_of(child.id()).ok_or_else(|| std::io::Error::other("impossible process id"))?;
        let since = tree::start_time(pid).unwrap_or(0);
        let pidfd = pidfd(pid);
        Ok(Self { id, pidfd, child, pid, marker, since, grace, phase_sender, exit: None, ending: None })
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(*self.phase_sender.borrow(), Phase::Gone(_))
    }

    /// Begins to end the whole tree, unless that has begun.
    pub(crate) fn end(&mut self) {
        if self.ending.as_ref().is_some_and(|ending| ending.whole) {
            return;
        }
        self.ending = Some(Ending::new(true, Instant::now()));
    }

    /// Ends the tree for the shutdown of the whole process: a long grace is cut short.
    pub(crate) fn shorten_grace_and_end(&mut self) {
        self.end();
        self.grace = self.grace.min(LAST_GRACE);
        let latest = Instant::now() + LAST_GRACE;
        if let Some(ending) = &mut self.ending {
            ending.at = ending.at.min(latest);
        }
    }

    /// Does what is due. False when nothing is left to do and the tree can be forgotten.
    pub(crate) fn step(&mut self, now: Instant) -> bool {
        self.look_for_exit(now);
        if self.ending.is_none() {
            return true;
        }
        self.signal_if_due(now);
        self.signal_newcomers(now);
        let given_up = self.ending.as_ref().is_some_and(|ending| ending.stage == Stage::GivenUp);
        if !given_up && self.tree_lives() {
            return true;
        }
        let exit = self.exit.unwrap_or(Exit { code: None, signal: None });
        if !self.is_gone() {
            self.phase_sender.send_replace(Phase::Gone(exit));
        }
        // A child that even SIGKILL has not ended yet is still ours to reap.
        self.exit.is_none()
    }

    fn look_for_exit(&mut self, now: Instant) {
        if self.exit.is_some() {
            return;
        }
        let exit = match self.child.try_wait() {
            Ok(None) => return,
            Ok(Some(status)) => Exit::from(status),
            Err(error) => {
                tracing::warn!(pid = self.pid.as_raw_pid(), %error, "a child could not be reaped");
                Exit { code: None, signal: None }
            }
        };
        self.exit = Some(exit);
        self.pidfd = None;
        self.phase_sender.send_replace(Phase::Exited(exit));
        self.ending.get_or_insert_with(|| Ending::new(false, now + LINGER_TIME));
    }

    fn signal_if_due(&mut self, now: Instant) {
        let (pid, marker, since) = (self.pid, self.marker.as_str(), self.since);
        let Some(ending) = self.ending.as_mut().filter(|ending| now >= ending.at) else { return };
        // Looked up before the signal: orphans are no longer known by their parents.
        if ending.whole && matches!(ending.stage, Stage::Terminate | Stage::Kill) {
            let found = tree::outsiders(pid, marker, since, &ending.outsiders);
            ending.outsiders.extend(found);
        }
        let (signals, next, wait): (&[Signal], _, _) = match ending.stage {
            // SIGCONT lets a stopped process see its SIGTERM.
            Stage::Terminate => (&[Signal::TERM, Signal::CONT], Stage::Kill, self.grace),
            Stage::Kill => (&[Signal::KILL], Stage::GiveUp, VANISH_TIMEOUT),
            Stage::GiveUp | Stage::GivenUp => (&[Signal::KILL], Stage::GivenUp, VANISH_TIMEOUT),
        };
        for signal in signals {
            let _ = kill_process_group(pid, *signal);
            ending.outsiders.iter().for_each(|outsider| outsider.signal(*signal));
        }
        let searches = ending.whole && next == Stage::Kill;
        ending.search = searches.then(|| (now + FIRST_SEARCH, FIRST_SEARCH * 2));
        ending.stage = next;
        ending.at = now + wait;
    }

    /// A process that started while the others were signaled would else run until the grace is over.
    fn signal_newcomers(&mut self, now: Instant) {
        let Some(ending) = &mut self.ending else { return };
        let Some((_, wait)) = ending.search.filter(|(at, _)| now >= *at) else { return };
        let found = tree::outsiders(self.pid, &self.marker, self.since, &ending.outsiders);
        for outsider in &found {
            outsider.signal(Signal::TERM);
            outsider.signal(Signal::CONT);
        }
        ending.outsiders.extend(found);
        ending.search = Some((Instant::now() + wait, wait * 2));
    }

    /// Once the child is reaped its number stays taken while its group has members, so the question cannot
    /// hit another group.
    fn tree_lives(&self) -> bool {
        self.exit.is_none()
            || self.ending.iter().flat_map(|ending| &ending.outsiders).any(Outsider::alive)
            || self.group_lives()
    }

    /// Zombies are told from the living only after the group was signaled: before, few groups outlive their leader for long.
    fn group_lives(&self) -> bool {
        let signaled = self.ending.as_ref().is_some_and(|ending| ending.stage != Stage::Terminate);
        !matches!(test_kill_process_group(self.pid), Err(rustix::io::Errno::SRCH))
            && (!signaled || tree::group_lives(self.pid))
    }
}

#[cfg(target_os = "linux")]
fn pidfd(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(target_vendor = "apple")]
fn pidfd(pid: Pid) -> Option<OwnedFd> {
    tree::exit_queue(pid).ok()
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn pidfd(_pid: Pid) -> Option<OwnedFd> {
    None
}
