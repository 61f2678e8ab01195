//! A network between an editor and its server that cuts each connection after some bytes, until it has done so often enough.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, tcp};

/// It is at 127.0.0.2, at the same port as the server at 127.0.0.1, which checks the name that it is reached by.
pub(crate) struct Network(Arc<AtomicUsize>);

impl Network {
    pub(crate) async fn start(port: u16, seed: u64, most: usize) -> Self {
        let listener =
            TcpListener::bind(("127.0.0.2", port)).await.expect("the port is free at this address");
        let cuts = Arc::new(AtomicUsize::new(0));
        let counted = cuts.clone();
        tokio::spawn(async move {
            let mut random = seed | 1;
            while let Ok((near, _)) = listener.accept().await {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                // The handshakes have some 3,000 bytes: a few connections end before they have begun.
                let budget = (counted.load(Ordering::SeqCst) < most).then_some(2000 + random % 8000);
                tokio::spawn(carry(near, far, budget, counted.clone()));
            }
        });
        Self(cuts)
    }

    pub(crate) fn cuts(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

async fn carry(near: TcpStream, far: TcpStream, budget: Option<u64>, cuts: Arc<AtomicUsize>) {
    let left = Arc::new(Mutex::new(budget.unwrap_or(u64::MAX)));
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    tokio::select! {
        () = copy(near_in, far_out, left.clone()) => {}
        () = copy(far_in, near_out, left.clone()) => {}
    }
    if *left.lock().unwrap_or_else(PoisonError::into_inner) == 0 {
        cuts.fetch_add(1, Ordering::SeqCst);
    }
}

/// Ends with the input, or with the bytes that both directions share.
async fn copy(mut input: tcp::OwnedReadHalf, mut output: tcp::OwnedWriteHalf, left: Arc<Mutex<u64>>) {
    let mut buffer = [0; 1024];
    loop {
        let Ok(count @ 1..) = input.read(&mut buffer).await else { return };
        let (allowed, is_over) = {
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            let allowed = (count as u64).min(*left);
            *left -= allowed;
            (usize::try_from(allowed).unwrap_or(count), *left == 0)
        };
        if output.write_all(&buffer[..allowed]).await.is_err() || is_over {
            return;
        }
    }
}
