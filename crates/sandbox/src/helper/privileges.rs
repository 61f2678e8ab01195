//! Enters the namespaces, and gives up every capability before the command starts.
//! Invariant: a command has no capability, not even inside its user namespace, and can never gain one.

use std::fs;

use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};

use super::{Setup, Step};

/// The highest number that a capability set can hold.
const LAST_CAPABILITY: i32 = 63;

pub(super) fn enter_namespaces() -> Setup<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    // SAFETY: this process has one thread and shares no memory, descriptors or signal handlers with another.
    unsafe { rustix::thread::unshare_unsafe(flags) }.step("user namespaces are forbidden")?;
    // A user keeps the same number inside, so that the owners of files are shown as they are.
    fs::write("/proc/self/setgroups", "deny").step("setgroups")?;
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw())).step("uid_map")?;
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw())).step("gid_map")
}

/// A network of its own takes the kernel longest, so it is made beside the mounts.
pub(super) fn leave_network() -> Setup<()> {
    // SAFETY: this process has one thread and shares no memory, descriptors or signal handlers with another.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.step("network namespace")
}

pub(super) fn drop_all() -> Setup<()> {
    rustix::thread::set_no_new_privs(true).step("no_new_privs")?;
    for capability in 0..=LAST_CAPABILITY {
        // SAFETY: a plain system call with numbers. It fails for the first number that the kernel does not know, and
        // for a process that has no capability to give up.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            break;
        }
    }
    rustix::thread::clear_ambient_capability_set().step("ambient capabilities")?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).step("capabilities")
}

/// Makes the pseudo-terminal on descriptor 0 the terminal of the session that this process has begun.
pub(super) fn take_terminal() -> Setup<()> {
    // SAFETY: a plain system call with numbers.
    let done = unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()).step("terminal") }
}

/// Only input, output and errors reach the command.
pub(super) fn close_descriptors() {
    // SAFETY: a plain system call. Descriptors are marked instead of closed, so nothing here loses its own.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}
