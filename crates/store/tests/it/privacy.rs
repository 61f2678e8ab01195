//! Nobody else reads the files, and what was deleted is not in them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use domain::command::SessionSettings;
use domain::{Fact, Store};

use crate::{Dice, id, journal, read_all, sqlite};
use testkit::sample::{agent_message, chat, text_of, user_message};

#[cfg(unix)]
#[tokio::test]
async fn only_the_user_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    fn check(path: &Path) {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
            if path.is_dir() {
                check(&path);
            }
        }
    }
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("share/dragoman");
    // A folder and a file that were open to all are closed.
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("chats.sqlite"), "").unwrap();
    for (path, mode) in
        [(directory.parent().unwrap(), 0o700), (&directory, 0o777), (&directory.join("chats.sqlite"), 0o666)]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let journal = journal(&directory);
    chat(&journal, "a").await;
    let names: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    for name in ["chats.sqlite", "chats.sqlite-wal", "chats.sqlite-shm", "leases"] {
        assert!(names.iter().any(|found| found == name), "{names:?} lacks {name}");
    }
    check(outer.path());
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_many_share_is_left_as_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let journal = journal(directory.path());
    chat(&journal, "a").await;
    assert_eq!(fs::metadata(directory.path()).unwrap().permissions().mode() & 0o7777, 0o1777);
}

#[tokio::test]
async fn opening_touches_nothing_and_wants_an_absolute_path() {
    let outer = tempfile::tempdir().unwrap();
    drop(journal(&outer.path().join("dragoman")));
    assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    assert!(store::Journal::open(Path::new("relative")).is_err());
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let outer = tempfile::tempdir().unwrap();
    fs::write(outer.path().join("file"), "").unwrap();
    let directory = outer.path().join("file/dragoman");
    let journal = journal(&directory);
    let failures = [
        journal.newest(&id("a")).await.unwrap_err(),
        journal.lease(&id("a")).await.unwrap_err(),
        journal.put("a", "b", String::new()).await.unwrap_err(),
    ];
    for failure in failures {
        assert!(
            failure.message.contains(&*directory.to_string_lossy()) && failure.hint.is_some(),
            "{failure}"
        );
    }
}

/// How often the text occurs in the files below the folder.
fn traces(directory: &Path, text: &str) -> usize {
    let mut found = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found += traces(&path, text);
        } else if let Ok(bytes) = fs::read(&path) {
            found += memchr::memmem::find_iter(&bytes, text).count();
        }
    }
    found
}

/// Chats that grow side by side share pages, and rows move between pages: the text must be gone everywhere.
#[tokio::test]
async fn a_deleted_chat_leaves_no_text_in_any_file() {
    for seed in 1..=2 {
        let directory = crate::memory_folder();
        let journal = journal(directory.path());
        let mut dice = Dice(seed * 7919);
        let names = ["alpha", "beta", "gamma", "delta", "epsilon"];
        for name in names {
            chat(&journal, name).await;
        }
        for round in 0..150 {
            let name = names[dice.below(5) as usize];
            let mut text = || {
                let size = [2, 10, 60, 120, 600][dice.below(5) as usize];
                format!("<{name} {round}> {} secret-of-{name}", "lorem ".repeat(size))
            };
            let mut facts: Vec<_> =
                (0..12).flat_map(|_| [user_message(1, &text()), agent_message(2, &text())]).collect();
            let change = SessionSettings { title: Some(text()), ..SessionSettings::default() };
            facts.push(Fact::SessionChanged { change });
            journal.append(&id(name), facts).await.unwrap();
        }
        let kept = read_all(&journal, &id("beta")).await;
        assert!(traces(directory.path(), "secret-of-gamma") > 20);
        for name in ["gamma", "alpha", "epsilon"] {
            assert!(journal.delete(&id(name)).await.unwrap());
            assert_eq!(traces(directory.path(), &format!("secret-of-{name}")), 0, "{name}, seed {seed}");
            assert_eq!(traces(directory.path(), &format!("<{name} ")), 0, "{name}, seed {seed}");
            // Nor is a word of it left in the index of words.
            assert_eq!(traces(directory.path(), name), 0, "{name}, seed {seed}");
            assert!(journal.append(&id(name), vec![user_message(1, "late")]).await.is_err());
        }
        assert_eq!(read_all(&journal, &id("beta")).await, kept);
        assert!(kept.iter().skip(1).any(|one| text_of(&one.fact).contains("secret-of-beta")));
        let health: String =
            sqlite(directory.path()).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(health, "ok");
    }
}

/// A process that died after it hid a chat and before it erased it: the next one does the rest, and gives the chat's key to
/// nobody before.
#[tokio::test]
async fn an_interrupted_deletion_is_finished_by_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let first = journal(directory.path());
    for name in ["stays", "gone"] {
        chat(&first, name).await;
        let said = (0..200).map(|number| user_message(number, &format!("secret-of-{name}")));
        first.append(&id(name), said.collect()).await.unwrap();
    }
    let crashed = sqlite(directory.path());
    crashed
        .execute_batch(
            "PRAGMA secure_delete = ON; PRAGMA wal_autocheckpoint = 0;
             BEGIN; INSERT INTO deleted VALUES (2); UPDATE last_deleted SET key = 2;
             DELETE FROM sessions WHERE key = 2; COMMIT",
        )
        .unwrap();
    assert!(traces(directory.path(), "secret-of-gone") >= 200);
    let second = journal(directory.path());
    chat(&second, "new").await;
    // The test's own timeout ends a text that stays.
    while traces(directory.path(), "secret-of-gone") > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(read_all(&second, &id("stays")).await.len(), 201);
    assert_eq!(read_all(&second, &id("new")).await.len(), 1);
    let key: i64 =
        crashed.query_row("SELECT key FROM sessions WHERE id = 'new'", [], |row| row.get(0)).unwrap();
    assert_eq!(key, 3);
}

/// A file of an older format may hold copies of rows anywhere, which its first deletion removes.
#[tokio::test]
async fn copies_from_before_are_found_by_the_first_deletion() {
    let directory = tempfile::tempdir().unwrap();
    let first = journal(directory.path());
    for name in ["gone", "stays"] {
        chat(&first, name).await;
    }
    drop(first);
    let before = sqlite(directory.path());
    // Rows of one chat before those of the other split pages, and SQLite writes them back as they are.
    before
        .execute_batch("INSERT OR REPLACE INTO records VALUES ('store', 'copies', 'possible'); BEGIN")
        .unwrap();
    let mut insert = before
        .prepare("INSERT INTO facts (place, at, kind, body) VALUES (?1 << 32 | ?2, 1, 'later', ?3)")
        .unwrap();
    for number in 2..400 {
        for (key, name) in [(1, "gone"), (2, "stays")] {
            let text = format!("secret-of-{name} {}", "lorem ".repeat(number % 70));
            insert.execute((key, number as i64, text)).unwrap();
        }
    }
    drop(insert);
    before.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let rows = 2 * 398;
    assert!(traces(directory.path(), "secret-of-") > rows, "no page holds a copy");
    drop(before);
    let second = journal(directory.path());
    assert!(second.delete(&id("gone")).await.unwrap());
    assert_eq!(traces(directory.path(), "secret-of-gone"), 0);
    assert_eq!(traces(directory.path(), "secret-of-stays"), 398);
}

/// Several processes write, write back, index, delete and end: no page of the file keeps a copy of a row, so that a later
/// deletion need not look at it.
#[tokio::test]
async fn the_file_holds_no_copies_of_rows() {
    let directory = crate::memory_folder();
    let mut dice = Dice(20_011);
    let mut journals = [journal(directory.path()), journal(directory.path()), journal(directory.path())];
    let chats = 30;
    for number in 0..chats {
        chat(&journals[number % 3], &format!("chat-{number}")).await;
    }
    for round in 0..40 * crate::scale() {
        let number = dice.below(chats as u64) as usize;
        let size = [2, 10, 60, 600][dice.below(4) as usize];
        let text = format!("<{number}> {}", "lorem ".repeat(size));
        let facts = (0..64).map(|place| user_message(place, &text)).collect();
        journals[number % 3].append(&id(&format!("chat-{number}")), facts).await.unwrap();
        if round % 17 == 16 {
            let short = format!("short-{round}");
            chat(&journals[0], &short).await;
            journals[0].append(&id(&short), vec![user_message(1, "ipsum")]).await.unwrap();
            assert!(journals[1].delete(&id(&short)).await.is_err(), "it is held");
            assert!(journals[0].delete(&id(&short)).await.unwrap());
        }
        if round % 13 == 12 {
            let place = dice.below(3) as usize;
            journals[place] = journal(directory.path());
            for number in (place..chats).step_by(3) {
                journals[place].lease(&id(&format!("chat-{number}"))).await.unwrap();
            }
        }
    }
    drop(journals);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "more than the file and the leases");
    let file = fs::read(directory.path().join("chats.sqlite")).unwrap();
    let pages: Vec<&[u8]> = file.chunks_exact(4096).skip(1).collect();
    assert!(pages.len() > 500, "{}", pages.len());
    // Between the list of cells and the cells of a page with rows there are zeros only.
    let number = |page: &[u8], at: usize| usize::from(u16::from_be_bytes([page[at], page[at + 1]]));
    let dirty = pages.iter().filter(|page| match page[0] {
        kind @ (2 | 5 | 10 | 13) => {
            let start = if kind < 6 { 12 } else { 8 } + 2 * number(page, 3);
            page[start..number(page, 5)].iter().any(|byte| *byte != 0)
        }
        _ => false,
    });
    assert_eq!(dirty.count(), 0);
}
