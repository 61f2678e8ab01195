//! One writer per chat; what it leaves behind is harmless.

use std::fs;

use domain::Store;
use domain::store::Lease;

use crate::sample::chat;
use crate::{id, journal};

#[tokio::test]
async fn a_chat_is_held_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let first = journal(directory.path()).named("dragoman acp");
    let second = journal(directory.path());
    assert_eq!(first.lease(&id("a")).await.unwrap(), Lease::Held);
    assert_eq!(first.lease(&id("a")).await.unwrap(), Lease::Held);
    let holder = format!("dragoman acp (process {})", std::process::id());
    assert_eq!(second.lease(&id("a")).await.unwrap(), Lease::HeldBy { holder, address: None });
    assert_eq!(second.lease(&id("b")).await.unwrap(), Lease::Held);
    second.release(&id("a")).await.unwrap();
    assert!(matches!(second.lease(&id("a")).await.unwrap(), Lease::HeldBy { .. }));

    first.release(&id("a")).await.unwrap();
    first.release(&id("a")).await.unwrap();
    assert_eq!(second.lease(&id("a")).await.unwrap(), Lease::Held);
    drop(second);
    assert_eq!(first.lease(&id("a")).await.unwrap(), Lease::Held);
    assert_eq!(first.lease(&id("b")).await.unwrap(), Lease::Held);
    drop(first);
    assert_eq!(fs::read_dir(directory.path().join("leases")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_a_dead_holder_left_is_no_obstacle() {
    let directory = tempfile::tempdir().unwrap();
    let first = journal(directory.path());
    first.lease(&id("a")).await.unwrap();
    let file = fs::read_dir(directory.path().join("leases")).unwrap().next().unwrap().unwrap().path();
    drop(first);
    fs::write(&file, "somebody long dead\u{1b}[31m".repeat(1000)).unwrap();
    let second = journal(directory.path()).named("two");
    assert_eq!(second.lease(&id("a")).await.unwrap(), Lease::Held);
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("two (process {})\n", std::process::id()));

    // What stands in the file is shown to people, so it is short and plain whatever it is.
    fs::write(&file, "\u{1b}[31mred".repeat(1000)).unwrap();
    let Lease::HeldBy { holder, .. } = journal(directory.path()).lease(&id("a")).await.unwrap() else {
        panic!("not held")
    };
    assert!(holder.len() <= 200 && !holder.contains('\u{1b}'), "{holder}");
}

#[tokio::test]
async fn a_chat_in_use_elsewhere_is_not_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let first = journal(directory.path()).named("emacs");
    chat(&first, "a").await;
    let second = journal(directory.path());
    let refused = second.delete(&id("a")).await.unwrap_err();
    assert!(refused.message.contains("in use by emacs (process"), "{refused}");
    assert_eq!(second.newest(&id("a")).await.unwrap(), Some(1));
    first.release(&id("a")).await.unwrap();
    assert!(second.delete(&id("a")).await.unwrap());
    assert!(!second.delete(&id("a")).await.unwrap());
    assert_eq!(first.newest(&id("a")).await.unwrap(), None);
}

/// In a folder that another user may write to, a link could lead a lock to a file of this user.
#[cfg(unix)]
#[tokio::test]
async fn a_lock_follows_no_link() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    journal.lease(&id("a")).await.unwrap();
    let file = fs::read_dir(directory.path().join("leases")).unwrap().next().unwrap().unwrap().path();
    journal.release(&id("a")).await.unwrap();
    let own = directory.path().join("own.txt");
    fs::write(&own, "mine").unwrap();
    std::os::unix::fs::symlink(&own, &file).unwrap();
    journal.lease(&id("a")).await.unwrap_err();
    assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
}
