//! Decides about local sockets while the command runs. The filter of system calls stops every `connect`, every `bind`
//! and every `chmod` that sets the group bit; the first process of the sandbox performs the call in the caller's place,
//! or refuses it. Looking for sockets beforehand cannot work: a name tells nothing about a socket that was renamed,
//! linked, or made after the command started.
//!
//! Invariants: a local socket is connected to only if it was bound inside of this sandbox or is exposed by the policy,
//! and that is decided by its inode, which is held open; the inode that was looked at is the one that is connected to.

use std::ffi::{CString, OsStr};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, fstat, openat, statx};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

use super::requests::{Found, Request, wait_for_call};

/// As `struct sockaddr_storage`.
const LONGEST_ADDRESS: usize = 128;
/// The family, before the name.
const NAME_START: usize = 2;
const SETUID: u64 = 0o4000;
/// The kernel's number; not every C library has a name for it.
pub(super) const FCHMODAT2: libc::c_long = 452;
#[cfg(target_arch = "x86_64")]
const CHMOD: libc::c_long = libc::SYS_chmod;
/// Other architectures never had the call.
#[cfg(not(target_arch = "x86_64"))]
const CHMOD: libc::c_long = -1;

/// Which file a name led to.
type Identity = (u64, u64);

pub(super) struct Connections {
    listener: OwnedFd,
    /// Sockets that may be connected to. Each is held open, so that its number is not given to another file.
    known: Vec<(Identity, OwnedFd)>,
    /// Names without a path that were bound inside.
    names: Vec<Vec<u8>>,
    /// The network, and with it every name without a path, is that of the machine.
    shares_network: bool,
}

impl Connections {
    pub(super) fn new(listener: OwnedFd, exposed: &[PathBuf], shares_network: bool) -> Self {
        let mut connections = Self { listener, known: Vec::new(), names: Vec::new(), shares_network };
        for path in exposed {
            let place = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            connections.known.extend(place.ok().and_then(|place| Some((socket_identity(&place)?, place))));
        }
        connections
    }

    /// Answers calls until none comes for this long, or `other` has something. False: no call can come again.
    pub(super) fn answer_for(&mut self, wait: Duration, other: Option<BorrowedFd<'_>>) -> bool {
        loop {
            match wait_for_call(&self.listener, other, wait) {
                Found::Call => self.answer_one(),
                Found::Nothing => return true,
                Found::End => return false,
            }
        }
    }

    fn answer_one(&mut self) {
        let Ok(listener) = self.listener.try_clone() else { return };
        let Ok(request) = Request::receive(listener.as_fd()) else { return };
        let result = match request.call() {
            libc::SYS_connect => match self.connect(&request) {
                Some(result) => result,
                None => return,
            },
            libc::SYS_bind => self.bind(&request),
            libc::SYS_fchmod => {
                change_mode(&request, request.descriptor(request.number(0)), request.argument(1))
            }
            libc::SYS_fchmodat => change_mode(&request, named(&request, 0, 0), request.argument(2)),
            FCHMODAT2 => change_mode(&request, named(&request, 0, request.argument(3)), request.argument(2)),
            CHMOD => change_mode(&request, path(&request, libc::AT_FDCWD, 0, 0), request.argument(1)),
            _ => Err(Errno::NOSYS),
        };
        request.answer(result);
    }

    /// `None`: another process waits for the connection and answers.
    fn connect(&self, request: &Request<'_>) -> Option<Result<(), Errno>> {
        let (socket, address) = match socket_and_address(request) {
            Ok(both) => both,
            Err(error) => return Some(Err(error)),
        };
        let may_wait = rustix::fs::fcntl_getfl(&socket).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK));
        if !may_wait {
            return Some(self.connect_to(request, &socket, &address));
        }
        // SAFETY: this process has one thread, so no lock is held by a thread that the child lacks.
        match unsafe { libc::fork() } {
            -1 => Some(self.connect_to(request, &socket, &address)),
            0 => {
                request.answer(self.connect_to(request, &socket, &address));
                // SAFETY: ends the child at once; no destructor or exit handler of this program runs.
                unsafe { libc::_exit(0) }
            }
            _ => None,
        }
    }

    fn connect_to(&self, request: &Request<'_>, socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
        let Some(path) = path_in(address) else {
            let is_foreign =
                self.shares_network && is_abstract(address) && !self.names.contains(&address.to_vec());
            return if is_foreign { Err(Errno::ACCESS) } else { raw_connect(socket, address) };
        };
        let place = openat(request.directory()?, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let is_known = |identity| self.known.iter().any(|(known, _)| *known == identity);
        if socket_identity(&place).is_some_and(|identity| !is_known(identity)) {
            return Err(Errno::ACCESS);
        }
        raw_connect(socket, &local_address(&format!("/proc/self/fd/{}", place.as_raw_fd())))
    }

    fn bind(&mut self, request: &Request<'_>) -> Result<(), Errno> {
        let (socket, address) = socket_and_address(request)?;
        let Some(path) = path_in(&address) else {
            raw_bind(&socket, &address)?;
            self.names.extend(bound_name(&socket).filter(|_| self.shares_network));
            return Ok(());
        };
        let path = Path::new(OsStr::from_bytes(path.to_bytes()));
        let directory = request.directory()?;
        let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&directory, above, flags, Mode::empty())?;
        let started = file_clock();
        rustix::process::fchdir(&directory)?;
        let own = rustix::process::umask(Mode::from_raw_mode(request.umask()));
        let bound = raw_bind(&socket, &address);
        rustix::process::umask(own);
        rustix::process::chdir("/")?;
        bound?;
        if let Some(name) = path.file_name() {
            self.remember(&folder, name, started);
        }
        Ok(())
    }

    /// The socket that was just made. One that is older was put in its place.
    fn remember(&mut self, folder: &OwnedFd, name: &OsStr, started: Duration) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(place) = openat(folder, name, flags, Mode::empty()) else { return };
        let Some(identity) = socket_identity(&place) else { return };
        let wanted = StatxFlags::BTIME | StatxFlags::CTIME;
        let Ok(times) = statx(&place, c"", AtFlags::EMPTY_PATH, wanted) else { return };
        let knows_birth = StatxFlags::from_bits_retain(times.stx_mask).contains(StatxFlags::BTIME);
        let made = if knows_birth { times.stx_btime } else { times.stx_ctime };
        let made = Duration::new(u64::try_from(made.tv_sec).unwrap_or_default(), made.tv_nsec);
        if made < started {
            return;
        }
        self.known.retain(|(_, place)| fstat(place).is_ok_and(|kind| kind.st_nlink > 0));
        self.known.push((identity, place));
    }
}

/// The time that a file made now has at least: the clock of files goes by ticks.
fn file_clock() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_millis(15))
}

/// The descriptor and the address of `connect` and `bind`, copied.
fn socket_and_address(request: &Request<'_>) -> Result<(OwnedFd, Vec<u8>), Errno> {
    let length = usize::try_from(request.number(2)).map_err(|_| Errno::INVAL)?;
    if length > LONGEST_ADDRESS {
        return Err(Errno::INVAL);
    }
    let socket = request.descriptor(request.number(0))?;
    let address = request.bytes(request.argument(1), length)?;
    request.is_waiting()?;
    Ok((socket, address))
}

/// The group bit is for folders, where new files inherit it; on a file it would lend the user's group to others.
fn change_mode(request: &Request<'_>, place: Result<OwnedFd, Errno>, mode: u64) -> Result<(), Errno> {
    let place = place?;
    request.is_waiting()?;
    if mode & SETUID != 0 || FileType::from_raw_mode(fstat(&place)?.st_mode) != FileType::Directory {
        return Err(Errno::PERM);
    }
    let name = format!("/proc/self/fd/{}", place.as_raw_fd());
    rustix::fs::chmodat(CWD, name, Mode::from_raw_mode(mode as u32), AtFlags::empty())
}

/// What `fchmodat` names: the folder is its first argument, the path its second.
fn named(request: &Request<'_>, base: usize, flags: u64) -> Result<OwnedFd, Errno> {
    path(request, request.number(base), base + 1, flags)
}

fn path(request: &Request<'_>, base: i32, argument: usize, flags: u64) -> Result<OwnedFd, Errno> {
    let base = request.base(base)?;
    let text = request.text(request.argument(argument))?;
    let has = |flag: libc::c_int| flags & u64::from(flag.cast_unsigned()) != 0;
    if text.is_empty() && has(libc::AT_EMPTY_PATH) {
        return Ok(base);
    }
    let link = if has(libc::AT_SYMLINK_NOFOLLOW) { OFlags::NOFOLLOW } else { OFlags::empty() };
    openat(base, text, OFlags::PATH | OFlags::CLOEXEC | link, Mode::empty())
}

fn socket_identity(place: &OwnedFd) -> Option<Identity> {
    let kind = fstat(place).ok()?;
    (FileType::from_raw_mode(kind.st_mode) == FileType::Socket).then_some((kind.st_dev, kind.st_ino))
}

fn is_local(address: &[u8]) -> bool {
    let family = address.get(..NAME_START).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    family == u16::try_from(libc::AF_UNIX).ok()
}

fn is_abstract(address: &[u8]) -> bool {
    is_local(address) && address.get(NAME_START) == Some(&0)
}

/// The path of a local address, up to its first zero. `None`: another kind of address, or a name without a path.
fn path_in(address: &[u8]) -> Option<CString> {
    let name = address.get(NAME_START..).filter(|_| is_local(address))?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    CString::new(&name[..end]).ok().filter(|path| !path.is_empty())
}

fn local_address(path: &str) -> Vec<u8> {
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend_from_slice(path.as_bytes());
    address.push(0);
    address
}

/// The name without a path that a socket has by now.
fn bound_name(socket: &OwnedFd) -> Option<Vec<u8>> {
    let mut bytes = [0_u8; LONGEST_ADDRESS];
    let mut length = LONGEST_ADDRESS as libc::socklen_t;
    // SAFETY: the memory is as long as said, and the length may be written.
    let done = unsafe { libc::getsockname(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), &raw mut length) };
    let name = bytes.get(..length as usize).filter(|_| done == 0)?;
    is_abstract(name).then(|| name.to_vec())
}

fn raw_connect(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    // SAFETY: the descriptor is open, and the address is as long as said.
    result(unsafe {
        libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), address.len() as libc::socklen_t)
    })
}

fn raw_bind(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    // SAFETY: the descriptor is open, and the address is as long as said.
    result(unsafe {
        libc::bind(socket.as_raw_fd(), address.as_ptr().cast(), address.len() as libc::socklen_t)
    })
}

fn result(done: libc::c_int) -> Result<(), Errno> {
    let error = || Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO);
    if done == 0 { Ok(()) } else { Err(error()) }
}

/// Some systems forbid every look into another process, also from the first one. Then nothing could be answered.
pub(super) fn can_answer() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    !scope.is_ok_and(|scope| scope.trim() == "3")
}

/// Hands the listener from the command to the first process.
pub(super) fn send_listener(channel: &UnixStream, listener: &OwnedFd) -> io::Result<()> {
    let sockets = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&sockets));
    rustix::net::sendmsg(channel, &[IoSlice::new(&[1])], &mut control, SendFlags::empty())?;
    Ok(())
}

/// `None`: the command has no listener, or ended before it had one.
#[allow(clippy::wildcard_enum_match_arm, reason = "the enum belongs to another crate and may grow")]
pub(super) fn receive_listener(channel: &UnixStream) -> Option<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut control, flags).ok()?;
    let sockets = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    sockets?.next()
}
