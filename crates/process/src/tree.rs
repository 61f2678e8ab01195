//! Finds the processes of a child's tree that left its process group, and signals them without ever
//! hitting a stranger: each is held by a pidfd that was checked after it was opened.
//!
//! Chosen over PR_SET_CHILD_SUBREAPER, which would make this process the parent of every daemon that any
//! child ever starts, its zombies included. A process belongs to the tree when it descends from the child,
//! is in its session, or carries its marker in the environment it was started with (Linux). On other systems than
//! Linux and macOS only the process group is known.

use rustix::process::Pid;

/// Set in each child's environment; descendants inherit it, also when they detach.
pub(crate) const MARKER: &str = "DRAGOMAN_CHILD";

#[cfg(target_os = "linux")]
pub(crate) use linux::{Kin, Outsider, carries_marker, group_lives, is_zombie, kin, outsiders, start_time};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

    use super::MARKER;

    /// A process of the tree outside the group.
    pub(crate) struct Outsider {
        pid: i32,
        pidfd: OwnedFd,
    }

    impl Outsider {
        pub(crate) fn signal(&self, signal: Signal) {
            let _ = pidfd_send_signal(&self.pidfd, signal);
        }

        pub(crate) fn alive(&self) -> bool {
            let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            matches!(poll(&mut fds, Some(&now)), Ok(0))
        }
    }

    /// Every living process of the tree of `leader` outside its group. `known` are outsiders found earlier,
    /// whose own descendants belong to the tree too; `since` is the leader's start time.
    pub(crate) fn outsiders(leader: Pid, marker: &str, since: u64, known: &[Outsider]) -> Vec<Outsider> {
        let processes = processes();
        let leader = leader.as_raw_pid();
        let own = getpid().as_raw_pid();
        let mut members: HashSet<i32> =
            known.iter().filter(|known| known.alive()).map(|known| known.pid).collect();
        members.insert(leader);
        let marked = |process: &Process| process.start >= since && carries(process.pid, marker);
        members.extend(
            processes
                .iter()
                .filter(|process| process.session == leader || process.group == leader || marked(process))
                .map(|process| process.pid),
        );
        // Parents come in any order, so descend until nothing is new.
        loop {
            let before = members.len();
            let children = processes.iter().filter(|process| members.contains(&process.parent));
            let children: Vec<i32> = children.map(|process| process.pid).collect();
            members.extend(children);
            if members.len() == before {
                break;
            }
        }
        processes
            .iter()
            .filter(|process| members.contains(&process.pid))
            .filter(|process| process.group != leader && process.pid != own && process.state != b'Z')
            .filter(|process| known.iter().all(|known| known.pid != process.pid))
            .filter_map(hold)
            .collect()
    }

    /// Whether a process of the group still runs. A zombie does not: it waits for a parent that may never look.
    pub(crate) fn group_lives(group: Pid) -> bool {
        let group = group.as_raw_pid();
        processes().iter().any(|process| process.group == group && process.state != b'Z')
    }

    /// Where a process is among others.
    pub(crate) struct Kin {
        pub(crate) parent: i32,
        pub(crate) group: i32,
        pub(crate) session: i32,
    }

    pub(crate) fn kin(pid: i32) -> Option<Kin> {
        stat(pid).map(|Process { parent, group, session, .. }| Kin { parent, group, session })
    }

    /// When the process started, in ticks since boot.
    pub(crate) fn start_time(pid: Pid) -> Option<u64> {
        stat(pid.as_raw_pid()).map(|process| process.start)
    }

    pub(crate) fn is_zombie(pid: Pid) -> bool {
        stat(pid.as_raw_pid()).is_some_and(|process| process.state == b'Z')
    }

    struct Process {
        pid: i32,
        state: u8,
        parent: i32,
        group: i32,
        session: i32,
        start: u64,
    }

    /// Holds a process, unless its number went to another one meanwhile.
    fn hold(process: &Process) -> Option<Outsider> {
        let pidfd = pidfd_open(Pid::from_raw(process.pid)?, PidfdFlags::empty()).ok()?;
        let same = stat(process.pid).is_some_and(|now| now.start == process.start);
        same.then_some(Outsider { pid: process.pid, pidfd })
    }

    fn processes() -> Vec<Process> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(stat).collect()
    }

    fn stat(pid: i32) -> Option<Process> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name is in parentheses and may itself hold parentheses and spaces.
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&text[end + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Process {
            pid,
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether the process was started with the marker. An environment larger than a mebibyte is cut.
    fn carries(pid: i32, marker: &str) -> bool {
        let wanted = format!("{MARKER}={marker}");
        environment(pid).split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    }

    /// Whether the process was started with this variable, whatever its value.
    pub(crate) fn carries_marker(pid: i32, name: &str) -> bool {
        let wanted = format!("{name}=");
        environment(pid).split(|byte| *byte == 0).any(|variable| variable.starts_with(wanted.as_bytes()))
    }

    fn environment(pid: i32) -> Vec<u8> {
        let mut environment = Vec::new();
        if let Ok(file) = File::open(format!("/proc/{pid}/environ")) {
            let _ = file.take(1 << 20).read_to_end(&mut environment);
        }
        environment
    }
}

#[cfg(target_vendor = "apple")]
#[path = "tree_macos.rs"]
mod macos;
#[cfg(target_vendor = "apple")]
pub(crate) use macos::{Outsider, exit_queue, group_lives, is_zombie, outsiders, start_time};

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(crate) use elsewhere::{Outsider, group_lives, is_zombie, outsiders, start_time};

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
mod elsewhere {
    use rustix::process::{Pid, Signal};

    /// Never made here: without /proc nobody outside the group is found.
    pub(crate) enum Outsider {}

    impl Outsider {
        pub(crate) fn signal(&self, _signal: Signal) {
            match *self {}
        }

        pub(crate) fn alive(&self) -> bool {
            match *self {}
        }
    }

    pub(crate) fn outsiders(_: Pid, _: &str, _: u64, _: &[Outsider]) -> Vec<Outsider> {
        Vec::new()
    }

    pub(crate) fn group_lives(_: Pid) -> bool {
        true
    }

    pub(crate) fn start_time(_: Pid) -> Option<u64> {
        None
    }

    pub(crate) fn is_zombie(_: Pid) -> bool {
        false
    }
}

/// A child's process id as rustix wants it.
pub(crate) fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}
