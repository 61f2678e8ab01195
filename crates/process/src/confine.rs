//! Starts a child behind the sandbox's wall: through the helper, with a proxy beside it. It must not know why a command
//! is confined or what it is granted.
//!
//! Invariants: a confined command is started by the helper or not at all; only a kernel without any wall runs it as it
//! is, unless the settings require one. A trial that failed for a reason that may pass is tried again.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener as StdListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::FdFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use sandbox::launch::OVER_MEMORY;
use sandbox::proxy::{Proxy, forward_port};
use sandbox::{Allowance, Grant, Network, Policy, Sandbox, Support, is_credential_variable};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::{JoinHandle, JoinSet};
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

/// What is known for the life of the process.
static SUPPORT: Mutex<Option<Support>> = Mutex::new(None);
/// One trial at a time.
static TRIAL: AsyncMutex<()> = AsyncMutex::const_new(());
/// The last answer, which may be a failed trial.
static LAST: Mutex<Option<Support>> = Mutex::new(None);

/// What [`sandbox_support`] found, if it was asked already.
pub fn known_sandbox_support() -> Option<Support> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Which wall this machine can build, found out by building it. What the kernel can do is found out once; a trial that
/// failed is no answer to that, so the next caller tries again.
pub async fn sandbox_support(sandbox: &Sandbox) -> Support {
    let known = || SUPPORT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(support) = known() {
        return support;
    }
    let _trial = TRIAL.lock().await;
    if let Some(support) = known() {
        return support;
    }
    let mut support = try_support(sandbox).await;
    if matches!(support, Support::Failed { .. }) {
        support = try_support(sandbox).await;
    }
    if support != Support::Namespaces {
        tracing::warn!("{}", support.sentence());
    }
    if !matches!(support, Support::Failed { .. }) {
        *SUPPORT.lock().unwrap_or_else(PoisonError::into_inner) = Some(support.clone());
    }
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(support.clone());
    support
}

async fn try_support(sandbox: &Sandbox) -> Support {
    if !cfg!(target_os = "linux") {
        let reason = "Dragoman has none for this operating system yet".to_owned();
        return Support::Unavailable { reason };
    }
    let temporary = match sandbox.temporary() {
        Ok(temporary) => temporary,
        Err(error) => return Support::Failed { reason: format!("no temporary folder: {error}") },
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
            Err(Trouble::InHelper(reason)) if sandbox::support::is_lasting(policy.mode, &reason) => {
                reasons.push(reason);
            }
            Err(Trouble::InHelper(reason) | Trouble::Start(reason)) => return Support::Failed { reason },
        }
    }
    Support::Unavailable { reason: reasons.join("; ") }
}

/// Why a trial failed.
enum Trouble {
    /// In the words of the helper, with the answer of the kernel.
    InHelper(String),
    /// The helper could not be started, which says nothing about the kernel.
    Start(String),
}

/// Runs the helper with a command that does nothing.
async fn try_policy(sandbox: &Sandbox, policy: &Policy) -> Result<(), Trouble> {
    let arguments = sandbox::launch::arguments(policy, None, OsStr::new("/bin/sh"));
    let arguments = arguments.map_err(|error| Trouble::Start(error.to_string()))?;
    let trial = Spawn::new(sandbox.helper()).args(arguments).args(["-c", ":"]).merge_stderr();
    match Box::pin(trial.run(&CancellationToken::new())).await {
        Ok(finished) if finished.success() => Ok(()),
        Ok(finished) => {
            let text = finished.stdout.text();
            let reason =
                text.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).map(|(reason, _)| reason);
            Err(Trouble::InHelper(reason.map_or_else(|| "the helper failed".to_owned(), str::to_owned)))
        }
        Err(error) => Err(Trouble::Start(error.to_string())),
    }
}

/// Whether a command is not run at all behind this wall.
fn is_refused(support: &Support, required: bool, strict: bool) -> bool {
    match support {
        Support::Namespaces => false,
        Support::Landlock { .. } => strict,
        Support::Unavailable { .. } => required || strict,
        // It may be there again in a moment: nothing runs without it meanwhile.
        Support::Failed { .. } => true,
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
    /// Inherited variables with credentials of package registries. Those that are set for this child stay.
    fn withheld(&self, set: &[&OsStr]) -> Vec<String> {
        if self.allowance.grants.contains(&Grant::RegistryCredentials) {
            return Vec::new();
        }
        let held = std::env::vars_os().filter(|(name, value)| is_credential_variable(name, value));
        let names = held.map(|(name, _)| name).filter(|name| !set.contains(&name.as_os_str()));
        names.filter_map(|name| name.into_string().ok()).filter(|name| !self.sandbox.passes(name)).collect()
    }

    /// `None`: this machine has no wall.
    pub(crate) async fn prepare(
        &self,
        program: &Path,
        arguments: &[OsString],
        directory: &Path,
        set: &[&OsStr],
        terminal: bool,
    ) -> Result<Option<Confined>, ProcessError> {
        let support = sandbox_support(&self.sandbox).await;
        if is_refused(&support, self.sandbox.is_required(), self.allowance.strict) {
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
        let named = arguments.iter().map(Path::new).chain([program]).filter(|path| path.is_file());
        self.sandbox.show_programs(&mut policy, named);
        policy.withheld = self.withheld(set);
        policy.terminal = terminal;
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
    pub(crate) fn serve(self) -> io::Result<Attendant> {
        self.ours.set_nonblocking(true)?;
        let channel = UnixStream::from_std(self.ours)?;
        let (proxy, ports, proxied) = (self.proxy.clone(), self.ports, self.proxied);
        let over_memory = Arc::new(AtomicBool::new(false));
        let seen = over_memory.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = answer(channel, proxy, &ports, proxied, &seen).await {
                tracing::debug!(%error, "the network of a command could not be answered");
            }
        });
        Ok(Attendant { proxy: self.proxy, over_memory, task: AsyncMutex::new(Some(task)) })
    }
}

/// What this process does for a confined child while it runs.
#[derive(Debug)]
pub(crate) struct Attendant {
    pub(crate) proxy: Proxy,
    over_memory: Arc<AtomicBool>,
    /// `None`: it was seen to end.
    task: AsyncMutex<Option<JoinHandle<()>>>,
}

/// How long the last message of a child that was ended may take.
const LAST_MESSAGE: Duration = Duration::from_millis(500);

impl Attendant {
    /// Whether the child was ended because it took too much memory. Asked after its end.
    pub(crate) async fn was_over_memory(&self) -> bool {
        let mut task = self.task.lock().await;
        if let Some(running) = &mut *task
            && tokio::time::timeout(LAST_MESSAGE, running).await.is_ok()
        {
            *task = None;
        }
        self.over_memory.load(Ordering::Relaxed)
    }
}

/// The channel closes when the last process behind the wall is gone; that ends the tasks.
async fn answer(
    channel: UnixStream,
    proxy: Proxy,
    ports: &[u16],
    proxied: bool,
    over_memory: &AtomicBool,
) -> io::Result<()> {
    let mut tasks = JoinSet::new();
    loop {
        channel.readable().await?;
        let sockets = match channel.try_io(tokio::io::Interest::READABLE, || receive(channel.as_fd())) {
            Ok(Some((OVER_MEMORY, _))) => {
                over_memory.store(true, Ordering::Relaxed);
                continue;
            }
            Ok(Some((_, sockets))) => sockets,
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

/// The byte and the sockets of one message; `None` at the end.
#[allow(clippy::wildcard_enum_match_arm, reason = "the enum belongs to another crate and may grow")]
fn receive(channel: impl AsFd) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
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
    let sockets = sockets.flatten().collect();
    Ok(Some((byte[0], sockets)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_runs_without_a_wall_only_where_the_kernel_has_none_and_nobody_requires_one() {
        let reason = String::new;
        let unavailable = Support::Unavailable { reason: reason() };
        let failed = Support::Failed { reason: reason() };
        let landlock = Support::Landlock { reason: reason() };
        for (support, required, strict, refused) in [
            (&Support::Namespaces, true, true, false),
            (&landlock, true, false, false),
            (&landlock, false, true, true),
            (&unavailable, false, false, false),
            (&unavailable, true, false, true),
            (&unavailable, false, true, true),
            (&failed, false, false, true),
        ] {
            assert_eq!(is_refused(support, required, strict), refused, "{support:?} {required} {strict}");
        }
    }

    /// The helper cannot even be started: that says nothing about the machine.
    #[tokio::test]
    async fn a_trial_that_fails_is_no_answer_about_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let helper = folder.path().join("missing");
        let facts = sandbox::Facts { helper, temporary: std::env::temp_dir(), ..Default::default() };
        let support = try_support(&Sandbox::new(facts)).await;
        assert!(matches!(support, Support::Failed { .. }) || !cfg!(target_os = "linux"), "{support:?}");
    }
}
