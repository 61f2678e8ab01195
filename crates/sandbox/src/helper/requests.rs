//! One stopped system call: its arguments, the memory and the descriptors of the process that made it, and the answer.
//!
//! Invariant: everything is copied before anything is decided, and `is_waiting` is asked after the last copy. So a process
//! that changes its memory or its descriptors meanwhile changes nothing that was looked at.

use std::ffi::CString;
use std::fs;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// The longest path of the kernel.
const LONGEST_PATH: usize = 4096;
const PAGE: u64 = 4096;

pub(super) struct Request<'a> {
    raw: libc::seccomp_notif,
    listener: BorrowedFd<'a>,
}

impl<'a> Request<'a> {
    /// The next call that waits for its answer.
    pub(super) fn receive(listener: BorrowedFd<'a>) -> io::Result<Self> {
        // SAFETY: the structure is plain data, for which zeros are valid; the kernel demands them.
        let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        let number = libc::SECCOMP_IOCTL_NOTIF_RECV;
        // SAFETY: the descriptor is a listener, and the structure is as large as the number of the request says.
        let done = unsafe { libc::ioctl(listener.as_raw_fd(), number, &raw mut raw) };
        if done == 0 { Ok(Self { raw, listener }) } else { Err(io::Error::last_os_error()) }
    }

    pub(super) fn call(&self) -> libc::c_long {
        self.raw.data.nr.into()
    }

    pub(super) fn argument(&self, index: usize) -> u64 {
        self.raw.data.args.get(index).copied().unwrap_or_default()
    }

    /// A number that the kernel reads as `int`.
    pub(super) fn number(&self, index: usize) -> i32 {
        self.argument(index) as i32
    }

    /// The call still waits: what was copied belongs to the process that made it.
    pub(super) fn is_waiting(&self) -> Result<(), Errno> {
        let number = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
        // SAFETY: the descriptor is a listener, and the address is that of a number of 64 bits.
        let done = unsafe { libc::ioctl(self.listener.as_raw_fd(), number, &raw const self.raw.id) };
        if done == 0 { Ok(()) } else { Err(Errno::NOENT) }
    }

    /// The caller gets this result. It may be gone by now.
    pub(super) fn answer(&self, result: Result<(), Errno>) {
        let error = result.err().map_or(0, |error| -error.raw_os_error());
        let answer = libc::seccomp_notif_resp { id: self.raw.id, val: 0, error, flags: 0 };
        // SAFETY: the descriptor is a listener, and the structure is as large as the number of the request says.
        unsafe { libc::ioctl(self.listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
    }

    /// A second descriptor for what the caller has under this number.
    pub(super) fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let thread = Pid::from_raw(self.raw.pid.cast_signed()).ok_or(Errno::SRCH)?;
        let process = match pidfd_open(thread, PidfdFlags::empty()) {
            Ok(process) => process,
            // A thread that is not the first one of its process.
            Err(_) => {
                let leader = self.status("Tgid:").and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
                pidfd_open(leader.ok_or(Errno::SRCH)?, PidfdFlags::empty())?
            }
        };
        pidfd_getfd(&process, number, PidfdGetfdFlags::empty())
    }

    /// The working directory of the caller.
    pub(super) fn directory(&self) -> Result<OwnedFd, Errno> {
        let path = format!("/proc/{}/cwd", self.raw.pid);
        openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }

    /// The folder that a path of a call such as `openat` starts from.
    pub(super) fn base(&self, number: i32) -> Result<OwnedFd, Errno> {
        if number == libc::AT_FDCWD { self.directory() } else { self.descriptor(number) }
    }

    pub(super) fn umask(&self) -> u32 {
        self.status("Umask:").and_then(|text| u32::from_str_radix(&text, 8).ok()).unwrap_or(0o077)
    }

    fn status(&self, field: &str) -> Option<String> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.raw.pid)).ok()?;
        text.lines().find_map(|line| line.strip_prefix(field)).map(|value| value.trim().to_owned())
    }

    /// Bytes of the caller's memory.
    pub(super) fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        let read = self.read(address, &mut bytes)?;
        if read == length { Ok(bytes) } else { Err(Errno::FAULT) }
    }

    /// A text of the caller's memory that ends with a zero.
    pub(super) fn text(&self, address: u64) -> Result<CString, Errno> {
        let mut text = Vec::new();
        let mut place = address;
        while text.len() < LONGEST_PATH {
            // The next page may not be there.
            let rest = PAGE - place % PAGE;
            let mut piece = vec![0; rest as usize];
            let read = self.read(place, &mut piece)?;
            if read == 0 {
                return Err(Errno::FAULT);
            }
            if let Some(end) = piece[..read].iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&piece[..end]);
                return CString::new(text).map_err(|_| Errno::INVAL);
            }
            text.extend_from_slice(&piece[..read]);
            place = place.checked_add(rest).ok_or(Errno::FAULT)?;
        }
        Err(Errno::NAMETOOLONG)
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<usize, Errno> {
        let length = bytes.len();
        let mut local = [IoSliceMut::new(bytes)];
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
        // SAFETY: `IoSliceMut` has the layout of `iovec` and names memory of this process that may be written; the other
        // address is looked at by the kernel, in the memory of the other process.
        let read = unsafe {
            libc::process_vm_readv(
                self.raw.pid.cast_signed(),
                local.as_mut_ptr().cast::<libc::iovec>(),
                1,
                &raw const remote,
                1,
                0,
            )
        };
        usize::try_from(read).map_err(|_| Errno::FAULT)
    }
}

/// What a look at the listener found.
pub(super) enum Found {
    Call,
    /// No call came in time, or the other descriptor has something.
    Nothing,
    /// No process is left that could make a call.
    End,
}

pub(super) fn wait_for_call(
    listener: &OwnedFd,
    other: Option<BorrowedFd<'_>>,
    wait: std::time::Duration,
) -> Found {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let time = Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
    let mut fds = vec![PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
    fds.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
    let is_polled = poll(&mut fds, Some(&time)).is_ok();
    let found = if is_polled { fds[0].revents() } else { PollFlags::empty() };
    match found {
        found if found.contains(PollFlags::IN) => Found::Call,
        found if found.is_empty() => Found::Nothing,
        _ => Found::End,
    }
}
