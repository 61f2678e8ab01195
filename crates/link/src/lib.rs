//! The link between a front-end in one process and the engine in another: commands one way, events the other, over a private
//! socket of this machine.
//!
//! Owns the socket, its secret, the first messages and the format. Must not know what commands do. Invariant: a front-end
//! cannot tell the difference between this link and one in memory, except by the time it takes.

mod frame;
mod handshake;
mod holder;
mod window;
mod wire;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use domain::link::WeakEngine;
use domain::{Abilities, BoxFuture, CancellationToken, Failure, Peers, RemoteChat, SessionId};
use platform::OpenOptionsExt;
use platform::local_socket::{self, Listener};
use ring::rand::SecureRandom;
use tokio::sync::Semaphore;

use holder::Admission;
use window::AttachRequest;

/// Peers of one process at a time, those that have not shown a secret yet included.
const MOST_PEERS: usize = 64;
/// After an error of the system, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Why a process may not attach; `None`: it may.
pub type PeerCheck = Arc<dyn Fn(u32) -> Option<Failure> + Send + Sync>;

/// How a process takes part.
pub struct SocketOptions {
    /// Folders for the socket and its secret; the first in which a path is short enough is used. Only this user may enter
    /// them, and no sandboxed program sees them.
    pub folders: Vec<PathBuf>,
    /// This program for people of another one: `dragoman 0.1.0 (process 7)`.
    pub program: String,
    /// The same with where it works.
    pub name: String,
    /// Looks at each process that wants to attach.
    pub peer_check: PeerCheck,
    /// Why this process itself may not attach to others.
    pub own_check: Arc<dyn Fn() -> Option<Failure> + Send + Sync>,
}

/// The other processes of the user, reached over sockets.
pub struct SocketPeers {
    options: Arc<SocketOptions>,
    engine: Arc<OnceLock<WeakEngine>>,
    socket: Mutex<Socket>,
}

enum Socket {
    Closed,
    /// The path, with files that are removed at the end.
    Open(SocketFiles),
    /// It was tried and does not work here.
    Unusable,
}

struct SocketFiles {
    socket: PathBuf,
    /// Ends the listener and every connection.
    ended: CancellationToken,
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        self.ended.cancel();
        let _ = fs::remove_file(secret_file(&self.socket));
        let _ = fs::remove_file(&self.socket);
    }
}

impl SocketPeers {
    /// Opens nothing: the first chat does.
    pub fn new(options: SocketOptions) -> Self {
        Self { options: Arc::new(options), engine: Arc::default(), socket: Mutex::new(Socket::Closed) }
    }

    /// Peers get links of this engine from now on.
    pub fn serve(&self, engine: WeakEngine) {
        let _ = self.engine.set(engine);
    }

    /// Accepts no further windows of other processes, and ends the links of those that are there.
    pub fn end(&self) {
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Socket::Unusable;
    }

    fn open(&self) -> io::Result<SocketFiles> {
        let name = random_text(4)?;
        let path = |folder: &PathBuf| folder.join(format!("{}-{name}.sock", std::process::id()));
        let fitting = self.options.folders.iter().map(path).find(|path| local_socket::fits(path));
        let socket = fitting.ok_or_else(|| io::Error::other("every path is too long for a socket"))?;
        let folder = socket.parent().unwrap_or(Path::new("/")).to_owned();
        private_folder(&folder)?;
        let secret = random_text(32)?;
        write_private(&secret_file(&socket), &secret)?;
        let listener = match Listener::bind(&socket) {
            Ok(listener) => listener,
            Err(error) => {
                let _ = fs::remove_file(secret_file(&socket));
                return Err(error);
            }
        };
        let (options, engine) = (self.options.clone(), self.engine.clone());
        let ended = CancellationToken::new();
        tokio::spawn(accept_all(listener, options, engine, secret.into(), ended.clone()));
        let own = socket.clone();
        tokio::task::spawn_blocking(move || remove_leftovers(&folder, &own));
        Ok(SocketFiles { socket, ended })
    }
}

impl Peers for SocketPeers {
    fn listen(&self) -> Option<String> {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*socket, Socket::Closed) {
            *socket = match self.open() {
                Ok(files) => Socket::Open(files),
                Err(error) => {
                    tracing::warn!(%error, "no socket for other windows: they can only follow the chats of this one");
                    Socket::Unusable
                }
            };
        }
        match &*socket {
            Socket::Open(files) => files.socket.to_str().map(str::to_owned),
            Socket::Closed | Socket::Unusable => None,
        }
    }

    fn attach<'a>(
        &'a self,
        address: &'a str,
        session: &'a SessionId,
        abilities: Abilities,
    ) -> BoxFuture<'a, Result<RemoteChat, Failure>> {
        Box::pin(async move {
            if let Some(failure) = (self.options.own_check)() {
                return Err(failure);
            }
            let socket = Path::new(address);
            let gone = |_| Failure::taken("The Dragoman that holds this chat cannot be reached.");
            let is_ours = self.options.folders.iter().any(|folder| socket.parent() == Some(folder));
            if !is_ours {
                return Err(Failure::config("The Dragoman that holds this chat uses other folders."));
            }
            let secret = fs::read_to_string(secret_file(socket)).map_err(gone)?;
            let (reader, writer) = local_socket::connect(socket).await.map_err(gone)?;
            let (name, program) = (&self.options.name, &self.options.program);
            window::attach(reader, writer, AttachRequest { secret, session, abilities, name, program }).await
        })
    }

    fn name(&self) -> String {
        self.options.name.clone()
    }
}

/// Whether a process listens at the address that a lease names.
pub fn is_alive(address: &str) -> bool {
    local_socket::is_alive(Path::new(address))
}

async fn accept_all(
    listener: Listener,
    options: Arc<SocketOptions>,
    engine: Arc<OnceLock<WeakEngine>>,
    secret: Arc<str>,
    ended: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(MOST_PEERS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ended.cancelled() => return,
        };
        let ((reader, writer), process) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a window of another process cannot be received");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (options, secret, ended) = (options.clone(), secret.clone(), ended.clone());
        let Some(engine) = engine.get().and_then(WeakEngine::upgrade) else { continue };
        tokio::spawn(async move {
            let refusal = match process {
                Some(process) => (options.peer_check)(process),
                None => Some(Failure::user("The system does not say which process wants to attach.")),
            };
            let (name, program) = (options.name.as_str(), options.program.as_str());
            let admission = Admission { secret: &secret, refusal, name, program };
            tokio::select! {
                served = holder::serve(reader, writer, engine, admission) => {
                    if let Err(error) = served {
                        tracing::info!(%error, "a window of another process left");
                    }
                }
                () = ended.cancelled() => {}
            }
            drop(place);
        });
    }
}

fn secret_file(socket: &Path) -> PathBuf {
    socket.with_extension("secret")
}

/// Makes the folder where it does not exist, and refuses one that others may enter.
fn private_folder(folder: &Path) -> io::Result<()> {
    platform::create_private_folder(folder)?;
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() || !platform::is_own(&metadata) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the folder is not this user's own"));
    }
    platform::restrict(folder, 0o700)
}

/// Writes a new file that only this user can read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).private().open(path)?;
    file.write_all(text.as_bytes())
}

/// Removes what processes left behind that were killed.
fn remove_leftovers(folder: &Path, own: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path != own) {
        if path.extension().is_some_and(|extension| extension == "sock") && !local_socket::is_alive(&path) {
            let _ = fs::remove_file(secret_file(&path));
            let _ = fs::remove_file(&path);
        }
    }
}

fn random_text(bytes: usize) -> io::Result<String> {
    let mut random = vec![0_u8; bytes];
    ring::rand::SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| io::Error::other("the system gives no random numbers"))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
