//! How the processes of a test reach each other: by memory, or by real sockets in a folder of the test.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use domain::link::WeakEngine;
use domain::{Abilities, BoxFuture, Command, Failure, Peers, RemoteChat, SessionId};
use link::{PeerCheck, SocketOptions, SocketPeers};
use tempfile::TempDir;

/// The peers of one process of a test.
pub(crate) enum TestPeers {
    Memory(Arc<MemoryPeers>),
    Sockets { peers: Arc<SocketPeers>, folder: Arc<TempDir> },
}

/// Links without a socket.
pub(crate) struct MemoryPeers {
    address: String,
    known: Arc<Mutex<HashMap<String, WeakEngine>>>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl TestPeers {
    pub(crate) fn memory() -> Self {
        Self::in_memory(Arc::default())
    }

    fn in_memory(known: Arc<Mutex<HashMap<String, WeakEngine>>>) -> Self {
        let address = format!("engine {}", NEXT.fetch_add(1, Ordering::Relaxed));
        Self::Memory(Arc::new(MemoryPeers { address, known }))
    }

    pub(crate) fn sockets() -> Self {
        Self::in_folder(Arc::new(tempfile::tempdir().unwrap()), Arc::new(|_| None))
    }

    /// With a look at who comes.
    pub(crate) fn checked(check: PeerCheck) -> Self {
        Self::in_folder(Arc::new(tempfile::tempdir().unwrap()), check)
    }

    fn in_folder(folder: Arc<TempDir>, peer_check: PeerCheck) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let peers = SocketPeers::new(SocketOptions {
            folders: vec![folder.path().join("sockets")],
            program: format!("test {number}"),
            name: format!("test {number} in {}", folder.path().display()),
            peer_check,
            own_check: Arc::new(|| None),
        });
        Self::Sockets { peers: Arc::new(peers), folder }
    }

    pub(crate) fn other_process(&self) -> Self {
        match self {
            Self::Memory(peers) => Self::in_memory(peers.known.clone()),
            Self::Sockets { folder, .. } => Self::in_folder(folder.clone(), Arc::new(|_| None)),
        }
    }

    pub(crate) fn get(&self) -> Arc<dyn Peers> {
        match self {
            Self::Memory(peers) => peers.clone(),
            Self::Sockets { peers, .. } => peers.clone(),
        }
    }

    pub(crate) fn serve(&self, engine: WeakEngine) {
        match self {
            Self::Memory(peers) => {
                peers.known.lock().unwrap().insert(peers.address.clone(), engine);
            }
            Self::Sockets { peers, .. } => peers.serve(engine),
        }
    }

    /// The process is dead: nobody answers.
    pub(crate) fn end(&self) {
        match self {
            Self::Memory(peers) => drop(peers.known.lock().unwrap().remove(&peers.address)),
            Self::Sockets { peers, .. } => peers.end(),
        }
    }
}

impl Peers for MemoryPeers {
    fn listen(&self) -> Option<String> {
        Some(self.address.clone())
    }

    fn attach<'a>(
        &'a self,
        address: &'a str,
        session: &'a SessionId,
        abilities: Abilities,
    ) -> BoxFuture<'a, Result<RemoteChat, Failure>> {
        Box::pin(async move {
            let engine = self.known.lock().unwrap().get(address).and_then(WeakEngine::upgrade);
            let engine = engine.ok_or_else(|| Failure::taken("gone"))?;
            let link = engine.attach(abilities).await?;
            let session = session.clone();
            link.commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await?;
            Ok(RemoteChat { link, holder: address.to_owned() })
        })
    }

    fn name(&self) -> String {
        self.address.clone()
    }
}
