//! One writer per chat; what it leaves behind is harmless.

use std::fs;

use domain::Store;
use domain::store::Lease;

use crate::{id, journal};
use testkit::sample::chat;

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
    let text = format!("two (process {})\n\na\n", std::process::id());
    assert_eq!(fs::read_to_string(&file).unwrap(), text);

    // What is in the file is shown to people, so it is short and plain whatever it is.
    fs::write(&file, "\u{1b}[31mred".repeat(1000)).unwrap();
    let Lease::HeldBy { holder, .. } = journal(directory.path()).lease(&id("a")).await.unwrap() else {
        panic!("not held")
    };
    assert!(holder.len() <= 200 && !holder.contains('\u{1b}'), "{holder}");
}

/// The holder of a chat says where other processes attach to it.
#[tokio::test]
async fn a_lease_names_the_address_of_its_holder() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (journal(directory.path()).named("one"), journal(directory.path()));
    assert!(second.held().await.unwrap().is_empty());
    first.announce("/somewhere/1.sock");
    first.lease(&id("a")).await.unwrap();
    let holder = format!("one (process {})", std::process::id());
    let address = Some("/somewhere/1.sock".to_owned());
    let held = Lease::HeldBy { holder: holder.clone(), address: address.clone() };
    assert_eq!(second.lease(&id("a")).await.unwrap(), held);
    let listed = second.held().await.unwrap();
    assert_eq!(listed, [domain::store::HeldChat { session: id("a"), holder, address }]);
    first.release(&id("a")).await.unwrap();
    assert!(second.held().await.unwrap().is_empty());
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
