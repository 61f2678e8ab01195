//! A listener for other machines: TLS, with limits on connections.
//!
//! Must not know routes or accounts: the router checks each request by itself. Invariants: nothing is served without TLS;
//! one address has at most `PER_ADDRESS` connections; a handshake or head that does not come is not waited for.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::{Extension, Router};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::tls::Tls;

const MOST_CONNECTIONS: usize = 512;
const PER_ADDRESS: usize = 64;
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

pub struct Listener {
    socket: TcpListener,
    tls: Tls,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

type Counts = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// One connection of an address.
struct Place {
    counts: Counts,
    address: IpAddr,
}

impl Listener {
    pub async fn bind(address: SocketAddr, tls: Tls) -> io::Result<Self> {
        Ok(Self { socket: TcpListener::bind(address).await?, tls })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until it is dropped.
    pub async fn serve(self, router: Router) {
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let counts = Counts::default();
        let acceptor = TlsAcceptor::from(self.tls.config.clone());
        loop {
            let Ok(permit) = room.clone().acquire_owned().await else { return };
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    let Some(place) = Place::take(&counts, peer.ip()) else { continue };
                    let router = router.clone().layer(Extension(Peer(peer.ip())));
                    let acceptor = acceptor.clone();
                    tokio::spawn(async move {
                        serve_connection(stream, acceptor, router).await;
                        drop((permit, place));
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

impl Place {
    /// `None` where the address has enough.
    fn take(counts: &Counts, address: IpAddr) -> Option<Self> {
        let mut known = counts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let count = known.entry(address).or_default();
        if *count >= PER_ADDRESS {
            return None;
        }
        *count += 1;
        Some(Self { counts: counts.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut known = self.counts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(count) = known.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                known.remove(&self.address);
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, acceptor: TlsAcceptor, router: Router) {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE_DEADLINE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a handshake failed"),
        Err(_) => return tracing::debug!("a handshake did not come in time"),
    };
    crate::host::serve_connection(stream, router).await;
}
