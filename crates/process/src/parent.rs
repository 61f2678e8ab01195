//! Watching a process that is not our child, such as the editor that started us, for its death.

use std::time::Duration;

use rustix::process::Pid;

/// How the watched process was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentEnd {
    /// It lived and is gone.
    Died,
    /// It was not there at the first look: dead already, or the number belongs to another machine or container.
    NotFound,
}

/// Resolves when the process `pid` has ended. Dropping the future ends the watch.
pub async fn watch_parent(pid: u32) -> ParentEnd {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return ParentEnd::NotFound };
    if !alive(pid) {
        return ParentEnd::NotFound;
    }
    if !await_pidfd(pid).await {
        while alive(pid) {
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }
    ParentEnd::Died
}

/// Waits by the kernel's own notice; false where it has none to give.
#[cfg(target_os = "linux")]
async fn await_pidfd(pid: Pid) -> bool {
    use rustix::process::{PidfdFlags, pidfd_open};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => {
            // SAFETY: the `OwnedFd` moves into the `AsyncFd`, is open, and always names the same descriptor.
            match unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) } {
                Ok(pidfd) => pidfd.readable().await.is_ok(),
                Err(_) => false,
            }
        }
        // Ended since the first look; anything else is left to polling.
        Err(error) => error == rustix::io::Errno::SRCH,
    }
}

#[cfg(target_vendor = "apple")]
async fn await_pidfd(pid: Pid) -> bool {
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    match crate::tree::exit_queue(pid) {
        Ok(queue) => {
            // SAFETY: the `OwnedFd` moves into the `AsyncFd`, is open, and always names the same descriptor.
            match unsafe { AsyncFd::register_with_interest(queue, Interest::READABLE) } {
                Ok(queue) => queue.readable().await.is_ok(),
                Err(_) => false,
            }
        }
        Err(error) => error == rustix::io::Errno::SRCH,
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
async fn await_pidfd(_pid: Pid) -> bool {
    false
}

/// A zombie counts as dead: its parent is late to reap it, but it will do nothing more.
fn alive(pid: Pid) -> bool {
    use rustix::process::test_kill_process;
    match test_kill_process(pid) {
        Err(error) if error == rustix::io::Errno::SRCH => false,
        _ => !crate::tree::is_zombie(pid),
    }
}
