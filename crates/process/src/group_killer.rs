//! Ends our children where the kernel does not do it after `kill -9` of this process: Linux has the parent-death signal,
//! macOS has nothing. A shell in a session of its own reads the numbers of our process groups from a pipe. The end of the
//! pipe means that this process is gone, however it ended: the groups that are left are killed then.

use std::io::{self, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

/// Every Unix has it; it is the system's own and not one of the user's `PATH`.
const SHELL: &str = "/bin/sh";

/// Reads `+ GROUP` and `- GROUP`.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
  case $sign$groups in
    +*) groups="$groups$group " ;;
    -*" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"#;

#[derive(Debug)]
pub(crate) struct GroupKiller {
    is_needed: bool,
    groups: Vec<i32>,
    shell: Option<(Child, PipeWriter)>,
}

impl GroupKiller {
    /// Nothing is started before the first child, and never where it is not needed.
    pub(crate) fn new(is_needed: bool) -> Self {
        Self { is_needed, groups: Vec::new(), shell: None }
    }

    pub(crate) fn add(&mut self, group: Pid) {
        if self.is_needed {
            self.groups.push(group.as_raw_pid());
            self.tell(&format!("+ {}\n", group.as_raw_pid()));
        }
    }

    /// A group that is gone: its number may become that of another one. Always false, for `retain`.
    pub(crate) fn forget(&mut self, group: Pid) -> bool {
        if self.is_needed {
            self.groups.retain(|known| *known != group.as_raw_pid());
            if self.shell.is_some() {
                self.tell(&format!("- {}\n", group.as_raw_pid()));
            }
        }
        false
    }

    /// A shell that is not there, or does not read, is replaced by another one, which hears of all groups. A write alone does
    /// not show that it is gone: a child that another thread is just starting holds the pipe open for a moment.
    fn tell(&mut self, order: &str) {
        if let Some((shell, orders)) = &mut self.shell
            && matches!(shell.try_wait(), Ok(None))
            && orders.write_all(order.as_bytes()).is_ok()
        {
            return;
        }
        self.stop();
        match start(&self.groups) {
            Ok(shell) => self.shell = Some(shell),
            Err(error) => tracing::warn!(%error, "children would outlive a kill of this process"),
        }
    }

    /// Without its orders being carried out: the groups live on.
    fn stop(&mut self) {
        if let Some((mut shell, _)) = self.shell.take() {
            let _ = shell.kill();
            let _ = shell.wait();
        }
    }
}

fn start(groups: &[i32]) -> io::Result<(Child, PipeWriter)> {
    let (theirs, mut orders) = io::pipe()?;
    // The thread that forks must never wait for a shell that was stopped.
    rustix::io::ioctl_fionbio(&orders, true)?;
    let mut command = Command::new(SHELL);
    command.args(["-c", SCRIPT, "dragoman-group_killer"]).env_clear().current_dir("/");
    command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec one system call is made; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(|_| ())?)) };
    #[expect(clippy::disallowed_methods, reason = "this crate owns spawning")]
    let shell = command.spawn()?;
    let all: String = groups.iter().map(|group| format!("+ {group}\n")).collect();
    orders.write_all(all.as_bytes())?;
    Ok((shell, orders))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    struct Group(Child);

    impl Group {
        fn start() -> Self {
            let mut command = Command::new(SHELL);
            // A second process of the group, which no signal but the last one ends.
            command.args(["-c", "trap '' HUP INT TERM; sleep 600 & wait"]).process_group(0);
            #[expect(clippy::disallowed_methods, reason = "this crate owns spawning")]
            Self(command.spawn().expect("a shell"))
        }

        fn pid(&self) -> Pid {
            Pid::from_child(&self.0)
        }

        fn is_alive(&mut self) -> bool {
            self.0.try_wait().expect("asked").is_none()
        }

        fn until_dead(&mut self) {
            let end = Instant::now() + Duration::from_secs(60);
            while self.is_alive() {
                assert!(Instant::now() < end, "the group lives");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            let _ = rustix::process::kill_process_group(self.pid(), rustix::process::Signal::KILL);
            let _ = self.0.wait();
        }
    }

    #[test]
    fn groups_that_are_left_end_when_their_owner_is_gone() {
        let (mut left, mut other, mut forgotten) = (Group::start(), Group::start(), Group::start());
        let mut group_killer = GroupKiller::new(true);
        for group in [&forgotten, &left, &other] {
            group_killer.add(group.pid());
        }
        group_killer.forget(forgotten.pid());
        assert!(left.is_alive() && other.is_alive());
        // What the kernel does to the pipe of a process that was killed.
        let (mut shell, orders) = group_killer.shell.take().expect("a shell");
        drop(orders);
        shell.wait().expect("it ends");
        left.until_dead();
        other.until_dead();
        assert!(forgotten.is_alive(), "a forgotten group is left alone");
    }

    #[test]
    fn a_group_killer_that_was_killed_is_replaced_and_hears_of_all_groups() {
        let (mut first, mut second) = (Group::start(), Group::start());
        let mut group_killer = GroupKiller::new(true);
        group_killer.add(first.pid());
        let (shell, _) = group_killer.shell.as_mut().expect("a shell");
        shell.kill().expect("killed");
        shell.wait().expect("gone");
        group_killer.add(second.pid());
        let (mut shell, orders) = group_killer.shell.take().expect("another shell");
        drop(orders);
        shell.wait().expect("it ends");
        first.until_dead();
        second.until_dead();
    }

    #[test]
    fn nothing_is_started_where_the_kernel_ends_children() {
        let mut group_killer = GroupKiller::new(false);
        let group = Group::start();
        group_killer.add(group.pid());
        group_killer.forget(group.pid());
        assert!(group_killer.shell.is_none() && group_killer.groups.is_empty());
    }
}
