//! What the callers of `platform` rely on, on every system: sockets of one user, locks, files that are replaced, names. The
//! same tests run on Linux, and for Windows under wine (`scripts/cross test`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use platform::local_socket::{self, Listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const TIMEOUT: Duration = Duration::from_secs(60);

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = platform::resolve_links(folder.path()).unwrap();
    (folder, path)
}

/// A name of its own for each test: on Windows all of them share one space of names.
fn socket_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{}-{name}.sock", std::process::id()))
}

#[tokio::test]
async fn two_processes_talk_over_a_socket() {
    let (_folder, path) = folder();
    let socket = socket_in(&path, "talk");
    assert!(local_socket::fits(&socket) && !local_socket::is_alive(&socket));
    let listener = Listener::bind(&socket).unwrap();
    assert!(socket.exists(), "others find the socket by its file");
    let server = tokio::spawn(async move {
        // One after the other: a second peer finds a place at once.
        for _ in 0..3 {
            let ((mut reader, mut writer), process) = listener.accept().await.unwrap();
            if let Some(process) = process {
                assert_eq!(process, std::process::id());
            }
            let mut text = [0; 5];
            reader.read_exact(&mut text).await.unwrap();
            writer.write_all(&text).await.unwrap();
            writer.flush().await.unwrap();
            // The peer leaves: the stream ends, and that is no error.
            assert_eq!(reader.read(&mut text).await.unwrap(), 0);
        }
        listener
    });
    let talk = async {
        for _ in 0..3 {
            let (mut reader, mut writer) = local_socket::connect(&socket).await.unwrap();
            writer.write_all(b"hello").await.unwrap();
            writer.flush().await.unwrap();
            let mut text = [0; 5];
            reader.read_exact(&mut text).await.unwrap();
            assert_eq!(&text, b"hello");
        }
        server.await.unwrap()
    };
    let listener = tokio::time::timeout(TIMEOUT, talk).await.unwrap();
    assert!(Listener::bind(&socket).is_err(), "a name belongs to one listener");
    drop(listener);
}

#[tokio::test]
async fn a_listener_that_ended_is_not_alive() {
    let (_folder, path) = folder();
    let socket = socket_in(&path, "ended");
    let listener = Listener::bind(&socket).unwrap();
    assert!(local_socket::is_alive(&socket));
    drop(listener);
    let ended = async {
        while local_socket::is_alive(&socket) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, ended).await.unwrap();
    assert!(local_socket::connect(&socket).await.is_err());
}

/// The holder of a lease writes its name into the file that it has locked, and others read it.
#[test]
fn a_locked_file_can_be_read_and_not_locked_again() {
    let (_folder, path) = folder();
    let open =
        || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path.join("lease"));
    let mut held = open().unwrap();
    platform::try_lock(&held).unwrap();
    held.write_all(b"holder").unwrap();
    let mut other = open().unwrap();
    assert!(matches!(platform::try_lock(&other), Err(TryLockError::WouldBlock)));
    let mut text = String::new();
    other.read_to_string(&mut text).unwrap();
    assert_eq!(text, "holder");
    assert_eq!(platform::identity_of(&held).unwrap(), platform::identity(&path.join("lease")).unwrap());
    drop(held);
    platform::try_lock(&other).unwrap();
}

/// A lease that its holder removes while another one waits for it is a new file afterwards.
#[test]
fn a_removed_file_can_be_made_again() {
    let (_folder, path) = folder();
    let lease = path.join("lease");
    let open = || {
        platform::retry_while_busy(|| {
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&lease)
        })
    };
    let held = open().unwrap();
    platform::try_lock(&held).unwrap();
    let waiting = open().unwrap();
    fs::remove_file(&lease).unwrap();
    drop(held);
    let waited = platform::identity_of(&waiting).ok();
    assert!(
        waited.is_none() || waited != platform::identity(&lease).ok(),
        "the file that was waited for is gone"
    );
    drop(waiting);
    platform::try_lock(&open().unwrap()).unwrap();
}

#[test]
fn a_file_is_replaced_whole() {
    let (_folder, path) = folder();
    let (new, old) = (path.join("new"), path.join("old"));
    fs::write(&new, "new").unwrap();
    fs::write(&old, "old").unwrap();
    // Another program reads the file for a moment.
    let reader = File::open(&old).unwrap();
    let closing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        drop(reader);
    });
    platform::replace_file(&new, &old).unwrap();
    closing.join().unwrap();
    assert_eq!(fs::read_to_string(&old).unwrap(), "new");
    assert!(!new.exists());
}

#[test]
fn a_private_folder_can_be_used_by_its_owner() {
    let (_folder, path) = folder();
    let private = path.join("a/private");
    platform::create_private_folder(&private).unwrap();
    platform::create_private_folder(&private).unwrap();
    platform::restrict(&private, 0o700).unwrap();
    assert!(platform::create_new_private_folder(&private).is_err(), "it is there");
    fs::write(private.join("file"), "text").unwrap();
    assert!(platform::is_own(&fs::metadata(&private).unwrap()) && platform::is_writable(&private));
    let folder = platform::Folder::open(&private).unwrap();
    let mut file = folder.open_file("file".as_ref()).unwrap().unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
    assert!(folder.open_file("missing".as_ref()).unwrap().is_none());
    assert!(platform::free_space(&private).is_some_and(|free| free > 0));
}

/// The part that exists is written as the disk has it, the rest stays as it is written.
#[test]
fn a_path_is_resolved_as_far_as_it_exists() {
    let (_folder, path) = folder();
    fs::create_dir(path.join("Folder")).unwrap();
    let missing = path.join("Folder").join("..").join("Folder").join("new").join("file");
    let resolved = platform::resolve_links(&missing).unwrap();
    assert_eq!(resolved, path.join("Folder").join("new").join("file"));
    if platform::System::CURRENT == platform::System::Windows {
        assert_eq!(platform::resolve_links(&path.join("fOLDER")).unwrap(), path.join("Folder"));
        for odd in ["file:stream", "NUL", "file.", "con.txt"] {
            assert!(platform::resolve_links(&path.join(odd)).is_err(), "{odd}");
        }
    }
}
