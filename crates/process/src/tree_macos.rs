//! Processes of a tree on macOS: the kernel's list of processes, and a queue that tells the end of one.
//!
//! Written by the manual and checked by the compiler; nobody has run it on a Mac. A process is known by its number and
//! the moment it started, and that is compared right before a signal: there is nothing like a pidfd.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue};
use rustix::process::{Pid, Signal, getpid, getsid, kill_process};

const ZOMBIE: u32 = 5;

/// A process of the tree outside the group.
pub(crate) struct Outsider {
    pid: Pid,
    start: u64,
}

impl Outsider {
    pub(crate) fn signal(&self, signal: Signal) {
        if self.alive() {
            let _ = kill_process(self.pid, signal);
        }
    }

    pub(crate) fn alive(&self) -> bool {
        stat(self.pid).is_some_and(|now| now.start == self.start && now.state != ZOMBIE)
    }
}

/// Becomes readable when the process ends. An error `SRCH` means that it has ended.
pub(crate) fn exit_queue(pid: Pid) -> rustix::io::Result<OwnedFd> {
    let queue = kqueue()?;
    let filter = EventFilter::Proc { pid, flags: ProcessEvents::EXIT };
    let event = Event::new(filter, EventFlags::ADD | EventFlags::ONESHOT, std::ptr::null_mut());
    // SAFETY: the event names a process, not a descriptor that could be closed meanwhile.
    unsafe { kevent(&queue, &[event], &mut [] as &mut [Event], Some(Duration::ZERO))? };
    Ok(queue)
}

/// Every living process of the tree of `leader` outside its group. `known` are outsiders found earlier, whose own
/// descendants belong to the tree too.
pub(crate) fn outsiders(leader: Pid, _marker: &str, since: u64, known: &[Outsider]) -> Vec<Outsider> {
    let processes = processes();
    let mut members: HashSet<Pid> =
        known.iter().filter(|known| known.alive()).map(|known| known.pid).collect();
    members.insert(leader);
    let in_session = |process: &&Process| {
        process.group == leader || process.start >= since && getsid(Some(process.pid)) == Ok(leader)
    };
    members.extend(processes.iter().filter(in_session).map(|process| process.pid));
    // Parents come in any order, so descend until nothing is new.
    loop {
        let before = members.len();
        let children =
            processes.iter().filter(|process| process.parent.is_some_and(|it| members.contains(&it)));
        let children: Vec<Pid> = children.map(|process| process.pid).collect();
        members.extend(children);
        if members.len() == before {
            break;
        }
    }
    processes
        .iter()
        .filter(|process| members.contains(&process.pid) && process.group != leader)
        .filter(|process| process.pid != getpid() && process.state != ZOMBIE)
        .filter(|process| known.iter().all(|known| known.pid != process.pid))
        .map(|process| Outsider { pid: process.pid, start: process.start })
        .collect()
}

/// Whether a process of the group still runs.
pub(crate) fn group_lives(group: Pid) -> bool {
    processes().iter().any(|process| process.group == group && process.state != ZOMBIE)
}

/// When the process started, in microseconds since 1970.
pub(crate) fn start_time(pid: Pid) -> Option<u64> {
    stat(pid).map(|process| process.start)
}

pub(crate) fn is_zombie(pid: Pid) -> bool {
    stat(pid).is_some_and(|process| process.state == ZOMBIE)
}

struct Process {
    pid: Pid,
    state: u32,
    parent: Option<Pid>,
    group: Pid,
    start: u64,
}

fn processes() -> Vec<Process> {
    // SAFETY: without a buffer the call only counts.
    let count = unsafe { libc::proc_listallpids(std::ptr::null_mut(), 0) };
    // More may have started meanwhile.
    let mut pids = vec![0_i32; usize::try_from(count).unwrap_or(0) + 64];
    let size = i32::try_from(size_of_val(pids.as_slice())).unwrap_or(i32::MAX);
    // SAFETY: the buffer has this size.
    let count = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), size) };
    pids.truncate(usize::try_from(count).unwrap_or(0));
    pids.into_iter().filter_map(|pid| stat(Pid::from_raw(pid)?)).collect()
}

fn stat(pid: Pid) -> Option<Process> {
    let mut found = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = i32::try_from(size_of::<libc::proc_bsdinfo>()).ok()?;
    // SAFETY: the structure belongs to the request, and its size is given.
    let filled = unsafe {
        libc::proc_pidinfo(pid.as_raw_pid(), libc::PROC_PIDTBSDINFO, 0, found.as_mut_ptr().cast(), size)
    };
    if filled != size {
        return None;
    }
    // SAFETY: filled by the kernel, and all bit patterns are valid anyway.
    let found = unsafe { found.assume_init() };
    let pid_of = |number: u32| Pid::from_raw(i32::try_from(number).ok()?);
    Some(Process {
        pid,
        state: found.pbi_status,
        parent: pid_of(found.pbi_ppid),
        group: pid_of(found.pbi_pgid)?,
        start: found.pbi_start_tvsec.saturating_mul(1_000_000).saturating_add(found.pbi_start_tvusec),
    })
}
