//! Faults of the server and of the wire while chats are written: nothing acknowledged is lost, nothing is there twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use domain::{Recorded, SessionId, Store};
use testkit::PostgresServer;

use crate::proxy::Proxy;
use crate::{id, read_all, scaled, store_at};
use testkit::sample::{chat, text_of, user_message};

const CHATS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_repeated_whatever_fails() {
    let Some(mut server) = PostgresServer::start() else { return };
    let direct = server.database("faults");
    let proxy = Proxy::start(server.socket()).await;
    let store = Arc::new(store_at(&proxy.address("faults")));
    let is_done = Arc::new(AtomicBool::new(false));
    let progress = Arc::new(AtomicUsize::new(0));
    let mut writers = Vec::new();
    for number in 0..CHATS {
        let name = format!("chat-{number}");
        chat(store.as_ref(), &name).await;
        let progress = progress.clone();
        writers.push(tokio::spawn(write(store.clone(), id(&name), is_done.clone(), progress)));
    }
    let rounds = scaled(500);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for round in 0..rounds {
        // The chats are written between two faults: each fault meets them at another place.
        let (before, wanted) = (progress.load(Ordering::Relaxed), 1 + random.below(20) as usize);
        while progress.load(Ordering::Relaxed) < before + wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // A silent wire costs a timeout, so it is rarer than the others.
        match round % 10 {
            0 | 4 | 8 => {
                tokio::task::block_in_place(|| {
                    server.kill();
                    server.resume();
                });
            }
            6 => {
                proxy.set_silent(true);
                tokio::time::sleep(Duration::from_millis(300)).await;
                proxy.set_silent(false);
            }
            2 => tokio::task::block_in_place(|| {
                server.query(
                    "postgres",
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'faults'",
                );
            }),
            _ => proxy.cut(),
        }
    }
    is_done.store(true, Ordering::Relaxed);
    let after = store_at(&direct);
    let mut acknowledged = 0;
    for (number, writer) in writers.into_iter().enumerate() {
        let told = writer.await.unwrap();
        let stored = read_all(&after, &id(&format!("chat-{number}"))).await;
        assert!(stored.iter().map(|one| one.number).eq(1..=stored.len() as u64), "numbers have gaps");
        assert_eq!(stored[1..], told[..], "chat {number} has other facts than were acknowledged");
        let texts: Vec<&str> = stored[1..].iter().map(|one| text_of(&one.fact)).collect();
        let expected: Vec<String> = (0..told.len()).map(|at| format!("message {at}")).collect();
        assert_eq!(texts, expected, "a message is missing or there twice");
        acknowledged += told.len();
    }
    println!(
        "figure: {rounds} faults of a PostgreSQL server (kill -9, ended, cut and half-open connections), \
         {acknowledged} facts acknowledged, 0 lost, 0 repeated"
    );
}

/// Appends until it is told to stop; no append may fail.
async fn write(
    store: Arc<impl Store>,
    session: SessionId,
    is_done: Arc<AtomicBool>,
    progress: Arc<AtomicUsize>,
) -> Vec<Recorded> {
    let mut told = Vec::new();
    while !is_done.load(Ordering::Relaxed) {
        let fact = user_message(told.len() as u64, &format!("message {}", told.len()));
        let appended = store.append(&session, vec![fact]).await;
        told.extend(appended.expect("an append waits for the database"));
        progress.fetch_add(1, Ordering::Relaxed);
    }
    told
}

/// Additions are made once, although the answer to a commit may be lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_is_made_once() {
    let Some(server) = PostgresServer::start() else { return };
    server.database("sums");
    let proxy = Proxy::start(server.socket()).await;
    let store = store_at(&proxy.address("sums"));
    let additions = scaled(500) as u32 * 4;
    let added = Arc::new(AtomicUsize::new(0));
    let cutting = {
        let (proxy, added) = (proxy.clone(), added.clone());
        let mut random = Random(7);
        tokio::spawn(async move {
            loop {
                // Something was added since the last cut, however slow the machine is.
                let before = added.load(Ordering::Relaxed);
                while added.load(Ordering::Relaxed) == before {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                tokio::time::sleep(Duration::from_millis(random.below(100))).await;
                proxy.cut();
            }
        })
    };
    for _ in 0..additions {
        store.add("cost", "today", 1.0).await.unwrap();
        added.fetch_add(1, Ordering::Relaxed);
    }
    cutting.abort();
    assert_eq!(store.add("cost", "today", 0.0).await.unwrap(), f64::from(additions));
}

/// A server that is away for too long is named, without the password, and nothing hangs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_is_named() {
    let timing = store_postgres::Timing {
        write_timeout: Duration::from_millis(500),
        read_timeout: Duration::from_millis(500),
        ..crate::timing()
    };
    let address = "postgres://me:hunter2hunter2@127.0.0.1:1/chats";
    let address = store_postgres::Address::parse(address, None).unwrap();
    let store = store_postgres::PostgresStore::with_timing(address, timing);
    let failure = store.newest(&id("a")).await.unwrap_err();
    assert!(failure.message.contains("chats on 127.0.0.1 cannot be used now"), "{failure}");
    assert!(!failure.to_string().contains("hunter2"), "{failure}");
    assert!(store.lease(&id("a")).await.is_err());
}

/// A disk that is really full pauses appends; they go on when there is room again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_pauses_and_loses_nothing() {
    // The write-ahead log must fit into the small disk beside the tables.
    let options = ["max_wal_size=32MB", "min_wal_size=32MB"];
    let Some(disk) = SmallDisk::mount() else {
        testkit::skip("no small file system can be mounted here");
        return;
    };
    let Some(mut server) = PostgresServer::start_with(&options) else { return };
    let address = server.database("full");
    server.kill();
    disk.take(&server);
    server.resume();
    let store = Arc::new(store_at(&address));
    chat(store.as_ref(), "a").await;
    disk.fill();
    let appending = {
        let store = store.clone();
        tokio::spawn(async move {
            let mut told = 0;
            for number in 0..200 {
                // Text that does not compress.
                let mut random = Random(number + 1);
                let noise: String = (0..8000).map(|_| format!("{:x}", random.below(1 << 60))).collect();
                let appended = store.append(&id("a"), vec![user_message(number, &noise)]).await;
                told += appended.expect("an append waits for the database").len();
            }
            told
        })
    };
    tokio::time::sleep(Duration::from_secs(6)).await;
    let is_paused = !appending.is_finished();
    disk.free();
    // A server that could not write its log has ended itself.
    if !tokio::task::block_in_place(|| server.answers()) {
        server.kill();
        server.resume();
    }
    let told = tokio::time::timeout(Duration::from_secs(110), appending).await.expect("it goes on").unwrap();
    assert!(is_paused, "the disk was not full");
    assert_eq!(read_all(store.as_ref(), &id("a")).await.len(), told + 1);
    drop(server);
}

/// A file system of its own, of a size that a chat can fill.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("dragoman-disk-{}", std::process::id()));
        std::fs::create_dir_all(&folder).ok()?;
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=160m", "tmpfs"])
            .arg(&folder)
            .stderr(std::process::Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(folder))
    }

    /// Moves the server's data to this disk.
    fn take(&self, server: &PostgresServer) {
        let (data, here) = (server.folder().join("data"), self.0.join("data"));
        let copied = std::process::Command::new("cp").arg("-a").arg(&data).arg(&here).status();
        assert!(copied.unwrap().success());
        std::fs::remove_dir_all(&data).unwrap();
        std::os::unix::fs::symlink(&here, &data).unwrap();
    }

    fn fill(&self) {
        let _ = std::process::Command::new("dd")
            .args(["if=/dev/zero", "bs=64k"])
            .arg(format!("of={}", self.0.join("filler").display()))
            .stderr(std::process::Stdio::null())
            .status();
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A small generator, so that a failing run can be repeated.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
