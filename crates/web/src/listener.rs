//! A listener for other machines: TLS, with limits on connections.
//!
//! Must not know routes or accounts: the router checks each request by itself. Invariants: nothing is served without TLS;
//! one network has at most `PER_NETWORK` connections; a handshake or head that does not come is not waited for; where all
//! places are taken, a new connection takes that of the oldest one that has shown no account.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::{Extension, Router};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::tls::Tls;

const MOST_CONNECTIONS: usize = 512;
const PER_NETWORK: usize = 64;
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

pub struct Listener {
    socket: TcpListener,
    tls: Tls,
}

/// Where a request comes from.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: IpAddr,
    has_account: Arc<AtomicBool>,
}

impl Peer {
    /// What limits count: an IPv4 address, or the /64 network of an IPv6 address, which one customer has for himself.
    pub fn network(&self) -> IpAddr {
        network(self.address)
    }

    /// The connection has shown an account: it keeps its place.
    pub fn keep(&self) {
        self.has_account.store(true, Ordering::Relaxed);
    }
}

/// The part of an address that one customer has for himself.
fn network(address: IpAddr) -> IpAddr {
    let IpAddr::V6(address) = address else { return address };
    if let Some(mapped) = address.to_ipv4_mapped() {
        return IpAddr::V4(mapped);
    }
    let [a, b, c, d, ..] = address.segments();
    IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
}

/// The connections that are open, in the order in which they came.
#[derive(Default)]
struct Connections {
    open: BTreeMap<u64, OpenConnection>,
    counts: HashMap<IpAddr, usize>,
    next: u64,
}

struct OpenConnection {
    network: IpAddr,
    has_account: Arc<AtomicBool>,
    end: Arc<Notify>,
}

type Shared = Arc<Mutex<Connections>>;

/// The place of one connection.
struct Place {
    connections: Shared,
    number: u64,
    peer: Peer,
    end: Arc<Notify>,
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
        let connections = Shared::default();
        let acceptor = TlsAcceptor::from(self.tls.config.clone());
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    let Some(place) = Place::take(&connections, peer.ip()) else { continue };
                    let Some(permit) = find_room(&room, &connections).await else { return };
                    let router = router.clone().layer(Extension(place.peer.clone()));
                    let acceptor = acceptor.clone();
                    tokio::spawn(async move {
                        tokio::select! {
                            () = serve_connection(stream, acceptor, router) => {}
                            () = place.end.notified() => tracing::debug!("a silent connection made room"),
                        }
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

/// A place for a connection. Where all are taken, the oldest connection without an account ends.
async fn find_room(room: &Arc<Semaphore>, connections: &Shared) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = room.clone().try_acquire_owned() {
        return Some(permit);
    }
    let oldest = {
        let known = lock(connections);
        // The newest one is the connection that needs the place.
        let mut others = known.open.values().rev().skip(1).collect::<Vec<_>>();
        others.reverse();
        others.iter().find(|it| !it.has_account.load(Ordering::Relaxed)).map(|it| it.end.clone())
    };
    if let Some(end) = oldest {
        end.notify_one();
    }
    room.clone().acquire_owned().await.ok()
}

fn lock(connections: &Shared) -> MutexGuard<'_, Connections> {
    connections.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Place {
    /// `None` where the network of the address has enough.
    fn take(connections: &Shared, address: IpAddr) -> Option<Self> {
        let peer = Peer { address, has_account: Arc::default() };
        let (network, end) = (peer.network(), Arc::new(Notify::new()));
        let mut known = lock(connections);
        let count = known.counts.entry(network).or_default();
        if *count >= PER_NETWORK {
            return None;
        }
        *count += 1;
        let number = known.next;
        known.next += 1;
        let open = OpenConnection { network, has_account: peer.has_account.clone(), end: end.clone() };
        known.open.insert(number, open);
        Some(Self { connections: connections.clone(), number, peer, end })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut known = lock(&self.connections);
        let Some(OpenConnection { network, .. }) = known.open.remove(&self.number) else { return };
        if let Some(count) = known.counts.get_mut(&network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                known.counts.remove(&network);
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, acceptor: TlsAcceptor, router: Router) {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE_DEADLINE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a handshake failed"),
        Err(_) => return tracing::debug!("a handshake took too long"),
    };
    crate::host::serve_connection(stream, router).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_with_its_network() {
        for (address, expected) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::1", "2001:db8:1:2::"),
            ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ] {
            let expected: IpAddr = expected.parse().unwrap();
            assert_eq!(network(address.parse().unwrap()), expected, "{address}");
        }
        let connections = Shared::default();
        let of_network = |host: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 0, 0, 0, host));
        let places: Vec<Option<Place>> =
            (0..100).map(|host| Place::take(&connections, of_network(host))).collect();
        assert_eq!(places.iter().flatten().count(), PER_NETWORK);
        drop(places);
        assert!(lock(&connections).counts.is_empty() && lock(&connections).open.is_empty());
    }

    /// Silent connections from many networks cannot keep a new one out; those with an account stay.
    #[tokio::test]
    async fn a_silent_connection_makes_room() {
        let connections = Shared::default();
        let room = Arc::new(Semaphore::new(3));
        let mut held = Vec::new();
        for host in 0..3 {
            let place = Place::take(&connections, IpAddr::from([10, 0, 0, host])).unwrap();
            held.push((find_room(&room, &connections).await.unwrap(), place));
        }
        held[0].1.peer.keep();
        let newest = Place::take(&connections, IpAddr::from([10, 0, 0, 9])).unwrap();
        let waiting = tokio::spawn({
            let (room, connections) = (room.clone(), connections.clone());
            async move { find_room(&room, &connections).await.is_some() }
        });
        // The second one is the oldest without an account.
        held[1].1.end.notified().await;
        drop(held.remove(1));
        assert!(waiting.await.unwrap());
        assert_eq!(lock(&connections).open.len(), 3);
        drop(newest);
    }
}
