//! Named pipes that only this user can reach, and the process at the other end.
//!
//! A path names the pipe, as on other systems: the folder holds an empty file of that name, so that others find it, and the pipe has
//! the same name. Invariants: a pipe is made by this process or not at all; both sides make sure that the other one belongs to
//! the same user before a byte is sent.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeServer, ServerOptions};
use tokio::sync::Mutex;
use windows_sys::Win32::Foundation::{ERROR_FILE_NOT_FOUND, ERROR_PIPE_BUSY, HANDLE};
use windows_sys::Win32::Security::{
    EqualSid, GetTokenInformation, SECURITY_ATTRIBUTES, TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::System::Pipes::{
    GetNamedPipeClientProcessId, GetNamedPipeServerProcessId, WaitNamedPipeW,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, OpenProcess, OpenProcessToken, PROCESS_QUERY_LIMITED_INFORMATION,
};

use super::files::OwnerOnly;
use super::wide;

/// A pipe whose instances are all taken gets another one at once.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Waits for other processes.
#[derive(Debug)]
pub struct Listener {
    name: OsString,
    /// The instance that the next peer gets.
    next: Mutex<NamedPipeServer>,
}

/// Both directions of a connection.
pub type Halves = (Reader, Writer);

/// What comes from the peer.
pub struct Reader(Box<dyn AsyncRead + Send + Sync + Unpin>);

/// What goes to the peer.
pub struct Writer(Box<dyn AsyncWrite + Send + Sync + Unpin>);

impl Listener {
    pub fn bind(path: &Path) -> io::Result<Self> {
        let name = pipe_name(path)?;
        OpenOptions::new().write(true).create_new(true).open(path)?;
        match instance(&name, true) {
            Ok(next) => Ok(Self { name, next: Mutex::new(next) }),
            Err(error) => {
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// The next peer, and its process. A peer of another user is an error.
    pub async fn accept(&self) -> io::Result<(Halves, Option<u32>)> {
        let mut next = self.next.lock().await;
        let connected = next.connect().await;
        // There is always an instance that waits, so that no peer finds nothing.
        let pipe = std::mem::replace(&mut *next, instance(&self.name, false)?);
        drop(next);
        connected?;
        let process = peer(pipe.as_raw_handle(), GetNamedPipeClientProcessId)?;
        Ok((halves(pipe), Some(process)))
    }
}

pub async fn connect(path: &Path) -> io::Result<Halves> {
    let name = pipe_name(path)?;
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match ClientOptions::new().open(&name) {
            Ok(pipe) => {
                peer(pipe.as_raw_handle(), GetNamedPipeServerProcessId)?;
                return Ok(halves(pipe));
            }
            Err(error) if is_code(&error, ERROR_PIPE_BUSY) && Instant::now() < deadline => {
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether a process listens at this path.
pub fn is_alive(path: &Path) -> bool {
    let Ok(name) = pipe_name(path) else { return false };
    let name = wide(&name);
    // SAFETY: the name ends with a zero; the call waits for one millisecond at most.
    let found = unsafe { WaitNamedPipeW(name.as_ptr(), 1) } != 0;
    // Without a free instance the pipe is there, and busy.
    found || !is_code(&io::Error::last_os_error(), ERROR_FILE_NOT_FOUND)
}

/// Whether a pipe can have the name of this path.
pub fn fits(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.len() < 200)
}

/// Each user has a temporary folder of their own.
pub fn user() -> String {
    "user".to_owned()
}

/// The file's name is random and belongs to one process, so it suffices.
fn pipe_name(path: &Path) -> io::Result<OsString> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut pipe = OsString::from(r"\\.\pipe\dragoman-");
    pipe.push(name);
    Ok(pipe)
}

fn instance(name: &OsString, is_first: bool) -> io::Result<NamedPipeServer> {
    let descriptor = OwnerOnly::new()?;
    let mut attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor.as_raw(),
        bInheritHandle: 0,
    };
    let mut options = ServerOptions::new();
    options.first_pipe_instance(is_first).reject_remote_clients(true);
    // SAFETY: the attributes and the descriptor that they name live until the call has returned.
    unsafe { options.create_with_security_attributes_raw(name, (&raw mut attributes).cast()) }
}

/// The process at the other end, which must be one of the same user.
fn peer(pipe: HANDLE, ask: unsafe extern "system" fn(HANDLE, *mut u32) -> i32) -> io::Result<u32> {
    let mut process = 0;
    // SAFETY: the pipe is open, and the result has its place.
    if unsafe { ask(pipe, &raw mut process) } == 0 {
        return Err(io::Error::last_os_error());
    }
    if is_of_same_user(process)? { Ok(process) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

fn is_of_same_user(process: u32) -> io::Result<bool> {
    // SAFETY: a number of a process; the new handle is owned below.
    let opened = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, process) };
    let opened = owned(opened)?;
    let theirs = TokenOwner::of(opened.as_raw_handle())?;
    // SAFETY: no arguments; the result is no handle that is closed.
    let ours = TokenOwner::of(unsafe { GetCurrentProcess() })?;
    // SAFETY: both identifiers live in the buffers above.
    Ok(unsafe { EqualSid(theirs.sid(), ours.sid()) } != 0)
}

/// The user of a process, in the system's own form, aligned as it demands.
struct TokenOwner(Vec<u64>);

impl TokenOwner {
    fn of(process: HANDLE) -> io::Result<Self> {
        let mut token = std::ptr::null_mut();
        // SAFETY: the process is open; the new handle is owned below.
        if unsafe { OpenProcessToken(process, TOKEN_QUERY, &raw mut token) } == 0 {
            return Err(io::Error::last_os_error());
        }
        let token = owned(token)?;
        // An identifier has at most 68 bytes.
        let mut buffer = vec![0_u64; 32];
        let (length, mut used) = (size_of_val(buffer.as_slice()) as u32, 0);
        // SAFETY: the token is open, and the buffer has this length.
        let asked = unsafe {
            GetTokenInformation(
                token.as_raw_handle(),
                TokenUser,
                buffer.as_mut_ptr().cast(),
                length,
                &raw mut used,
            )
        };
        if asked == 0 { Err(io::Error::last_os_error()) } else { Ok(Self(buffer)) }
    }

    fn sid(&self) -> *mut std::ffi::c_void {
        // SAFETY: the system wrote this structure to the beginning of the buffer, which is aligned for it.
        unsafe { (*self.0.as_ptr().cast::<TOKEN_USER>()).User.Sid }
    }
}

fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a handle that was just made and has no other owner.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

fn is_code(error: &io::Error, code: u32) -> bool {
    error.raw_os_error() == i32::try_from(code).ok()
}

fn halves<P: AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static>(pipe: P) -> Halves {
    let (reader, writer) = tokio::io::split(pipe);
    (Reader(Box::new(reader)), Writer(Box::new(writer)))
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.0).poll_read(context, buffer)) {
            // The other end is closed: the end of the stream.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Poll::Ready(Ok(())),
            outcome => Poll::Ready(outcome),
        }
    }
}

impl AsyncWrite for Writer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
