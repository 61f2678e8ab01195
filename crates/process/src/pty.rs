//! A pseudo-terminal for one child: the child's end is its terminal, our end reads what it shows and types into it.
//!
//! Invariants: it is never the user's terminal, and it never becomes ours; no other child inherits either end.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::pipes::{Receiver, Sender};

/// Wide enough that a program seldom breaks a line.
const COLUMNS: u16 = 200;
const ROWS: u16 = 50;

/// Both ends of a new terminal.
pub(crate) struct Terminal {
    pub(crate) input: Sender,
    pub(crate) output: Receiver,
    pub(crate) theirs: OwnedFd,
}

pub(crate) fn open() -> io::Result<Terminal> {
    // SAFETY: a plain system call with flags; the result is checked before it is used.
    let number = unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    let ours = unsafe { OwnedFd::from_raw_fd(number) };
    // SAFETY: both take an open descriptor of a pseudo-terminal.
    if unsafe { libc::grantpt(number) } != 0 || unsafe { libc::unlockpt(number) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let theirs = open_other_end(&ours)?;
    let size = libc::winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the request reads one `winsize`, which lives until the call returns.
    unsafe { libc::ioctl(theirs.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
    let input = Sender::from_owned_fd_unchecked(ours.try_clone()?)?;
    Ok(Terminal { input, output: Receiver::from_owned_fd_unchecked(ours)?, theirs })
}

#[cfg(target_os = "linux")]
fn open_other_end(ours: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the request takes flags by value and returns a new descriptor or -1.
    let number = unsafe { libc::ioctl(ours.as_raw_fd(), libc::TIOCGPTPEER, flags) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(not(target_os = "linux"))]
fn open_other_end(ours: &OwnedFd) -> io::Result<OwnedFd> {
    use std::ffi::CStr;
    use std::sync::Mutex;
    /// The name is in memory that the next call changes.
    static NAME: Mutex<()> = Mutex::new(());
    let _name = NAME.lock();
    // SAFETY: the descriptor is a pseudo-terminal's; the text is read before another call can change it.
    let name = unsafe { libc::ptsname(ours.as_raw_fd()) };
    if name.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: not null, so it is a string that ends, and the lock keeps it as it is.
    let name = unsafe { CStr::from_ptr(name) };
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(name, flags, rustix::fs::Mode::empty())?)
}

/// In the child, between fork and exec, after it began a session: its input becomes the terminal of that session.
pub(crate) fn take_as_terminal() -> io::Result<()> {
    // SAFETY: a plain system call with numbers; descriptor 0 is the child's end.
    #[allow(clippy::useless_conversion, reason = "the type of a request differs between C libraries")]
    let done = unsafe { libc::ioctl(0, libc::TIOCSCTTY.into(), 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
