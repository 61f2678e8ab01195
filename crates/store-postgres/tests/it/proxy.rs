//! A wire between the store and the server that a test can cut or fall silent.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

#[derive(Clone)]
pub(crate) struct Proxy {
    port: u16,
    /// Connections of an older generation are cut.
    generation: Arc<AtomicU64>,
    /// Nothing is passed on, and nobody is told.
    is_silent: Arc<AtomicBool>,
    socket: Arc<Mutex<PathBuf>>,
}

impl Proxy {
    pub(crate) async fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = Arc::new(Mutex::new(socket));
        let proxy = Self { port, generation: Arc::default(), is_silent: Arc::default(), socket };
        let own = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let socket = own.socket.lock().unwrap().clone();
                tokio::spawn(own.clone().pass(client, socket));
            }
        });
        proxy
    }

    pub(crate) fn address(&self, database: &str) -> String {
        format!("postgres://me@127.0.0.1:{}/{database}", self.port)
    }

    /// New connections lead to another server, and old ones are cut.
    pub(crate) fn lead_to(&self, socket: PathBuf) {
        *self.socket.lock().unwrap() = socket;
        self.cut();
    }

    pub(crate) fn cut(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// All connections are half-open from now on; those that are made later are too.
    pub(crate) fn set_silent(&self, is_silent: bool) {
        self.is_silent.store(is_silent, Ordering::SeqCst);
    }

    async fn pass(self, mut client: TcpStream, socket: PathBuf) {
        let Ok(mut server) = UnixStream::connect(socket).await else { return };
        let born = self.generation.load(Ordering::SeqCst);
        let (mut up, mut down) = ([0_u8; 16 << 10], [0_u8; 16 << 10]);
        let mut was_silent = false;
        while self.generation.load(Ordering::SeqCst) == born {
            // A wire that was silent has lost bytes, so it stays silent.
            was_silent |= self.is_silent.load(Ordering::SeqCst);
            if was_silent {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
            let passed = tokio::select! {
                read = client.read(&mut up) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(_) if self.is_silent.load(Ordering::SeqCst) => Ok(()),
                    Ok(size) => server.write_all(&up[..size]).await,
                },
                read = server.read(&mut down) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(_) if self.is_silent.load(Ordering::SeqCst) => Ok(()),
                    Ok(size) => client.write_all(&down[..size]).await,
                },
                () = tokio::time::sleep(Duration::from_millis(10)) => Ok(()),
            };
            if passed.is_err() {
                return;
            }
        }
    }
}
