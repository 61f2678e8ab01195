//! Processes that want to attach and may not: without the secret, of another version, with garbage, below a Dragoman.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::{Failure, FailureKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::bench::Bench;
use crate::client::Client;
use crate::peers::TestPeers;

/// A holder with a chat, and its socket.
async fn holder(peers: TestPeers) -> (Bench, Client, PathBuf) {
    let bench = Bench::with_peers(peers);
    let mut client = bench.client().await;
    client.run("one").await;
    let Some(address) = bench.peers.as_ref().and_then(|peers| peers.get().listen()) else {
        panic!("no socket")
    };
    (bench, client, address.into())
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&length[..], &[kind], body].concat()
}

fn hello(secret: &str, session: &str) -> Vec<u8> {
    let body = serde_json::json!({
        "secret": secret, "session": session, "name": "stranger",
        "person": {"client": "x", "approvals": true},
    });
    frame(1, body.to_string().as_bytes())
}

const LINE: &[u8] = b"dragoman-link 2 stranger\n";

/// Everything that a holder answers to these bytes.
async fn answer_to(socket: &PathBuf, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    tokio::time::timeout(Duration::from_secs(20), read).await.expect("the holder hangs up").ok();
    answer
}

#[tokio::test]
async fn strangers_get_nothing_of_a_chat() {
    let (bench, mut client, socket) = holder(TestPeers::sockets()).await;
    let session = client.session.to_string();
    let secret = std::fs::read_to_string(socket.with_extension("secret")).unwrap();
    let other_digit = if secret.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{other_digit}", &secret[..secret.len() - 1]);
    let mut oversized = frame(1, b"{}");
    oversized[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let long = "x".repeat(100_000);
    let attempts: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("only a line", LINE.to_vec()),
        ("no secret", [LINE, &hello("", &session)].concat()),
        ("half a secret", [LINE, &hello(&secret[..10], &session)].concat()),
        ("a wrong secret", [LINE, &hello(&wrong, &session)].concat()),
        ("a wrong secret for another chat", [LINE, &hello(&wrong, "other")].concat()),
        ("the right secret for a chat that is not here", [LINE, &hello(&secret, "other")].concat()),
        ("another version", [&b"dragoman-link 3 newer\n"[..], &hello(&secret, &session)].concat()),
        ("another protocol", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("garbage", vec![0xff; 5000]),
        ("garbage after the line", [LINE, &[0xfe; 5000]].concat()),
        ("a line without an end", long.clone().into_bytes()),
        ("an oversized message", [LINE, &oversized].concat()),
        ("a large first message", [LINE, &frame(1, long.as_bytes())].concat()),
        ("a command before the secret", [LINE, &frame(2, br#"{"id":1,"command":"Cancel"}"#)].concat()),
        ("a fact", [LINE, &frame(4, b"{}")].concat()),
        ("half a message", [LINE, &hello(&secret, &session)[..20]].concat()),
    ];
    for (name, bytes) in attempts {
        let answer = String::from_utf8_lossy(&answer_to(&socket, &bytes).await).into_owned();
        assert!(!answer.contains("Attached"), "{name} was let in: {answer}");
        assert!(!answer.contains("\"fact\""), "{name} saw the chat: {answer}");
        assert!(!answer.contains(&secret), "{name} was told the secret");
    }
    // One that is let in and then misbehaves is let go, and changes nothing.
    for bytes in [frame(4, b"{}"), frame(2, b"nonsense"), oversized.clone(), frame(9, b"")] {
        let answer = answer_to(&socket, &[LINE, &hello(&secret, &session), &bytes].concat()).await;
        assert!(String::from_utf8_lossy(&answer).contains("Attached"));
    }
    let before = bench.store.facts(&client.session).len();
    client.run("two").await;
    assert!(bench.store.facts(&client.session).len() > before, "the chat works as before");
}

#[tokio::test]
async fn the_socket_and_its_secret_are_private() {
    let (bench, _client, socket) = holder(TestPeers::sockets()).await;
    let mode = |path: &std::path::Path| platform::mode_of(&std::fs::metadata(path).unwrap()) & 0o777;
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    assert_eq!(mode(&socket.with_extension("secret")), 0o600);
    assert_eq!(mode(&socket), 0o600);
    bench.kill();
    assert!(!socket.exists() && !socket.with_extension("secret").exists(), "they end with the process");
}

/// The check of the peer's process counts, whatever secret it shows.
#[tokio::test]
async fn a_process_that_is_refused_follows_and_answers_nothing() {
    let check = Arc::new(|_| Some(Failure::user("Only the user attaches.")));
    let (bench, mut client, _) = holder(TestPeers::checked(check)).await;
    let other = bench.other_process();
    let mut follower = other.join(&client.session).await;
    let info = follower.load().await.unwrap();
    assert!(info.attached_to.is_none() && info.held_by.is_some());
    let refused = follower.prompt("me").await.unwrap_err();
    assert_eq!((refused.kind, refused.message.as_str()), (FailureKind::Taken, "Only the user attaches."));
    client.run("two").await;
    assert_eq!(follower.turn_end().await, domain::Outcome::Done, "it follows the journal");
}

/// A holder of another version is followed, and the user is told which program to restart.
#[tokio::test]
async fn another_version_is_followed_and_named() {
    let (bench, client, socket) = holder(TestPeers::sockets()).await;
    let fake = socket.with_file_name("0-fake.sock");
    let listener = UnixListener::bind(&fake).unwrap();
    std::fs::write(fake.with_extension("secret"), "x").unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"dragoman-link 7 Dragoman 9.9 (process 1)\n").await;
            let _ = stream.read(&mut [0; 512]).await;
        }
    });
    bench.store.set_lease_address(fake.to_str().unwrap(), &client.session);
    let other = bench.other_process();
    let follower = other.join(&client.session).await;
    assert!(follower.load().await.unwrap().held_by.is_some());
    let refused = follower.prompt("me").await.unwrap_err();
    assert!(refused.message.contains("Dragoman 9.9 (process 1)"), "{refused}");
    assert!(refused.message.contains("Restart the older one"), "{refused}");
}

/// A lease that names a socket elsewhere leads nowhere.
#[tokio::test]
async fn an_address_outside_of_the_folder_is_not_used() {
    let (bench, client, _) = holder(TestPeers::sockets()).await;
    let folder = tempfile::tempdir().unwrap();
    let stray = folder.path().join("1.sock");
    let listener = UnixListener::bind(&stray).unwrap();
    bench.store.set_lease_address(stray.to_str().unwrap(), &client.session);
    let other = bench.other_process();
    let follower = other.join(&client.session).await;
    assert!(follower.load().await.unwrap().held_by.is_some());
    let nobody = tokio::time::timeout(Duration::from_millis(200), listener.accept()).await;
    assert!(nobody.is_err(), "it connected");
}
