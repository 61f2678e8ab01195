//! Starts a child behind the sandbox's wall: through the helper, with a proxy beside it. It must not know why a command
//! is confined or what it is granted.
//!
//! Invariant: a confined command is started by the helper or not at all; only a machine without any wall runs it as
//! it is, and the first such run is logged.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener as StdListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustix::io::FdFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use sandbox::proxy::{Proxy, forward_port};
use sandbox::{Allowance, Network, Policy, Sandbox, Support};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::ProcessError;
use crate::spawn::Spawn;

/// The wall that a child is started behind.
#[derive(Debug, Clone)]
pub(crate) struct Confinement {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) allowance: Allowance,
}

/// Most sockets that the helper hands over.
const MOST: usize = 32;

static SUPPORT: OnceCell<Support> = OnceCell::const_new();

/// What [`sandbox_support`] found, if it was asked already.
pub fn known_sandbox_support() -> Option<&'static Support> {
    SUPPORT.get()
}

/// Which wall this machine can build, found out once by building it.
pub async fn sandbox_support(sandbox: &Sandbox) -> &'static Support {
    SUPPORT
        .get_or_init(|| async {
            let support = try_support(sandbox).await;
            if support != Support::Namespaces {
                tracing::warn!("{}", support.sentence());
            }
            support
        })
        .await
}

async fn try_support(sandbox: &Sandbox) -> Support {
    if !cfg!(target_os = "linux") {
        let reason = "Dragoman has none for this operating system yet".to_owned();
        return Support::Unavailable { reason };
    }
    let temporary = match sandbox.temporary() {
        Ok(temporary) => temporary,
        Err(error) => return Support::Unavailable { reason: format!("no temporary folder: {error}") },
    };
    let mut reasons = Vec::new();
    let mut trials = sandbox::support::trials(temporary).into_iter();
    if !sandbox.tries_namespaces() {
        trials.next();
        reasons.push("they are switched off by DRAGOMAN_NO_NAMESPACES".to_owned());
    }
    for policy in trials {
        match try_policy(sandbox, &policy).await {
            Ok(()) if reasons.is_empty() => return Support::Namespaces,
            Ok(()) => return Support::Landlock { reason: reasons.join("; ") },
            Err(reason) => reasons.push(reason),
        }
    }
    Support::Unavailable { reason: reasons.join("; ") }
}

/// Runs the helper with a command that does nothing.
async fn try_policy(sandbox: &Sandbox, policy: &Policy) -> Result<(), String> {
    let arguments = sandbox::launch::arguments(policy, None, OsStr::new("/bin/sh"));
    let arguments = arguments.map_err(|error| error.to_string())?;
    let trial = Spawn::new(sandbox.helper()).args(arguments).args(["-c", ":"]).merge_stderr();
    match Box::pin(trial.run(&CancellationToken::new())).await {
        Ok(finished) if finished.success() => Ok(()),
        Ok(finished) => {
            let text = finished.stdout.text();
            let reason =
                text.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).map(|(reason, _)| reason);
            Err(reason.map_or_else(|| "the helper failed".to_owned(), str::to_owned))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// A command line for the helper, and what answers it.
pub(crate) struct Confined {
    pub(crate) command: Command,
    pub(crate) leftovers: Option<sandbox::Guard>,
    ours: StdStream,
    proxy: Proxy,
    ports: Vec<u16>,
    proxied: bool,
}

impl Confinement {
    /// `None`: this machine has no wall.
    pub(crate) async fn prepare(
        &self,
        program: &Path,
        arguments: &[OsString],
        directory: &Path,
    ) -> Result<Option<Confined>, ProcessError> {
        let support = sandbox_support(&self.sandbox).await;
        if self.allowance.strict && *support != Support::Namespaces {
            return Err(ProcessError::Sandbox { reason: support.sentence() });
        }
        let Some(mode) = support.mode() else { return Ok(None) };
        let failed = |error: io::Error| ProcessError::Sandbox { reason: error.to_string() };
        let (sandbox, allowance, place) =
            (self.sandbox.clone(), self.allowance.clone(), directory.to_owned());
        // It looks at the folders of the workspace.
        let work = move || sandbox.guarded_policy(mode, &allowance, &place);
        let planned = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).and_then(|plan| plan);
        let (mut policy, leftovers) = planned.map_err(failed)?;
        // A program or script of its own may lie in a folder that is replaced.
        let named = arguments.iter().map(Path::new).chain([program]);
        policy.exposed.extend(named.filter(|path| path.is_absolute() && path.is_file()).map(Path::to_owned));
        let (ours, theirs) = StdStream::pair().map_err(failed)?;
        let helper = sandbox::launch::arguments(&policy, Some(theirs.as_raw_fd()), program.as_os_str());
        let mut command = Command::new(self.sandbox.helper());
        command.args(helper.map_err(failed)?).args(arguments);
        let theirs = OwnedFd::from(theirs);
        // SAFETY: between fork and exec the closure makes one system call on a descriptor that it owns; it allocates
        // nothing and takes no lock.
        unsafe { command.pre_exec(move || Ok(rustix::io::fcntl_setfd(&theirs, FdFlags::empty())?)) };
        Ok(Some(Confined {
            command,
            leftovers,
            ours,
            proxy: self.sandbox.proxy(&self.allowance),
            proxied: policy.network == Network::Proxy,
            ports: policy.ports,
        }))
    }
}

impl Confined {
    /// Answers the command's network for as long as it lives.
    pub(crate) fn serve(self) -> io::Result<Proxy> {
        self.ours.set_nonblocking(true)?;
        let channel = UnixStream::from_std(self.ours)?;
        let (proxy, ports, proxied) = (self.proxy.clone(), self.ports, self.proxied);
        tokio::spawn(async move {
            if let Err(error) = answer(channel, proxy, &ports, proxied).await {
                tracing::debug!(%error, "the network of a command could not be answered");
            }
        });
        Ok(self.proxy)
    }
}

/// The channel closes when the last process behind the wall is gone; that ends the tasks.
async fn answer(channel: UnixStream, proxy: Proxy, ports: &[u16], proxied: bool) -> io::Result<()> {
    let mut tasks = JoinSet::new();
    loop {
        channel.readable().await?;
        let sockets = match channel.try_io(tokio::io::Interest::READABLE, || receive(channel.as_fd())) {
            Ok(Some(sockets)) => sockets,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        let mut sockets = sockets.into_iter();
        if proxied && let Some(socket) = sockets.next() {
            tasks.spawn(proxy.clone().serve(listener(socket)?));
        }
        for (socket, port) in sockets.zip(ports) {
            tasks.spawn(forward_port(listener(socket)?, *port));
        }
    }
}

fn listener(socket: OwnedFd) -> io::Result<TcpListener> {
    let listener = StdListener::from(socket);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

#[cfg(target_os = "linux")]
const CLOSED_IN_CHILDREN: RecvFlags = RecvFlags::CMSG_CLOEXEC;
/// Elsewhere there is no such flag, and no helper that sends sockets.
#[cfg(not(target_os = "linux"))]
const CLOSED_IN_CHILDREN: RecvFlags = RecvFlags::empty();

/// The sockets of one message; `None` at the end.
#[allow(clippy::wildcard_enum_match_arm, reason = "the enum belongs to another crate and may grow")]
fn receive(channel: impl AsFd) -> io::Result<Option<Vec<OwnedFd>>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut control, CLOSED_IN_CHILDREN)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let sockets = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    Ok(Some(sockets.flatten().collect()))
}
