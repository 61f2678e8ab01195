//! Damaged files: flipped bits, swapped, lost and overwritten pages, cut files. Text is never changed silently, nothing
//! runs without end, whole chats stay readable, and a repair saves what can be read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use domain::store::ListFilter;
use domain::{Fact, Failure, FailureKind, Recorded, SessionId, Store};
use store::Journal;

use crate::{Dice, id, journal, memory_folder, read_all, scale, sqlite};
use testkit::sample::{agent_message, chat, text_of, user_message};

const PAGE: usize = 4096;
/// Ends a test that would run for ever; nothing here comes near it.
const DEADLINE: Duration = Duration::from_secs(120);

type Chats = BTreeMap<String, Vec<Recorded>>;

/// Chats that grew side by side, as they are in a whole file.
async fn fill(directory: &Path) -> Chats {
    let journal = journal(directory);
    let mut dice = Dice(77);
    let names: Vec<String> = (0..12).map(|number| format!("chat-{number}")).collect();
    for name in &names {
        chat(&journal, name).await;
    }
    for round in 0..90 {
        let name = &names[dice.below(12) as usize];
        let text =
            format!("<{name} {round}> {}", "lorem ipsum ".repeat([2, 20, 90, 600][dice.below(4) as usize]));
        let facts = vec![user_message(round * 2, &text), agent_message(round * 2 + 1, &text)];
        journal.append(&id(name), facts).await.unwrap();
    }
    journal.put("spent", "2026-01-01", "1.25".to_owned()).await.unwrap();
    let mut chats = Chats::new();
    for name in names {
        chats.insert(name.clone(), read_all(&journal, &id(&name)).await);
    }
    chats
}

/// A copy of the file, changed.
fn damaged_copy(whole: &Path, change: impl FnOnce(&mut Vec<u8>)) -> tempfile::TempDir {
    let directory = memory_folder();
    let mut bytes = fs::read(whole.join("chats.sqlite")).unwrap();
    change(&mut bytes);
    fs::write(directory.path().join("chats.sqlite"), bytes).unwrap();
    directory
}

fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) -> &'static str {
    let pages = (bytes.len() / PAGE) as u64;
    // Not the first one, which holds the schema.
    let page = |dice: &mut Dice| (1 + dice.below(pages - 1)) as usize * PAGE;
    match dice.below(6) {
        0 => {
            for _ in 0..3 {
                let at = page(dice) + dice.below(PAGE as u64) as usize;
                bytes[at] ^= 1 << dice.below(8);
            }
            "flipped bits"
        }
        1 => {
            let (one, other) = (page(dice), page(dice));
            for at in 0..PAGE {
                bytes.swap(one + at, other + at);
            }
            "swapped pages"
        }
        2 => {
            bytes.truncate(page(dice) + 1000);
            "a cut file"
        }
        3 => {
            let at = page(dice);
            bytes[at..at + PAGE].fill(0);
            "a page of zeros"
        }
        4 => {
            let (from, to) = (page(dice), page(dice));
            bytes.copy_within(from..from + PAGE, to);
            "a page written over another one"
        }
        _ => {
            let at = page(dice);
            bytes[at..at + 600].fill_with(|| dice.below(256) as u8);
            "overwritten bytes"
        }
    }
}

/// All facts, or the failure that a person sees.
async fn try_to_read(journal: &Journal, session: &SessionId) -> Result<Vec<Recorded>, Failure> {
    let mut all: Vec<Recorded> = Vec::new();
    loop {
        let page = journal.read(session, all.len() as u64, 50).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
        assert!(all.len() < 10_000, "{session} has no end");
    }
}

/// Reads everything in a damaged file. Returns the chats that are whole.
async fn check_reading(directory: &Path, chats: &Chats, case: &str) -> Vec<String> {
    let journal = journal(directory);
    let (mut whole, mut listed_whole) = (Vec::new(), 0);
    for (name, facts) in chats {
        match try_to_read(&journal, &id(name)).await {
            // The index of ids may have lost it.
            Ok(read) if read.is_empty() => {}
            Ok(read) => {
                assert_eq!(&read, facts, "{case}: {name} was changed");
                whole.push(name.clone());
            }
            Err(failure) => assert!(failure.message.contains("damaged"), "{case}: {failure}"),
        }
    }
    for listed in
        journal.list(ListFilter::default()).await.unwrap_or_else(|failure| panic!("{case}: {failure}"))
    {
        let title = listed.title.as_deref();
        let is_known = chats.contains_key(listed.id.as_str()) && title == Some(listed.id.as_str());
        listed_whole += usize::from(is_known);
        assert!(is_known || title.is_some_and(|title| title.contains("damaged")), "{case}: {listed:?}");
    }
    assert!(
        listed_whole >= whole.len(),
        "{case}: {} chats are whole, {listed_whole} are listed",
        whole.len()
    );
    let query = domain::store::SearchQuery { text: "lorem".to_owned(), ..Default::default() };
    for hit in journal.search(query).await.unwrap_or_default() {
        assert!(hit.excerpt.is_empty() || hit.excerpt.contains("lorem"), "{case}: {}", hit.excerpt);
    }
    whole
}

/// What is left after a repair is what was there, with a notice where something is missing.
async fn check_repaired(directory: &Path, chats: &Chats, whole: &[String], case: &str) {
    let repaired = store::repair(directory, &mut |_, _| {}).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(repaired.copy.as_ref().is_some_and(|copy| copy.is_file()), "{case}");
    assert_eq!(store::check_file(directory).unwrap(), Some(Vec::new()), "{case}");
    let journal = journal(directory);
    for listed in journal.list(ListFilter::default()).await.unwrap() {
        let stored = read_all(&journal, &listed.id).await;
        let name = listed.id.as_str();
        let all: Vec<&Recorded> = chats.values().flatten().collect();
        let original: Vec<&Recorded> = chats.get(name).map_or(all, |facts| facts.iter().collect());
        let is_notice = |fact: &Fact| matches!(fact, Fact::Notice { .. } | Fact::SessionOpened(_));
        for one in &stored {
            let known = original.iter().any(|known| known.fact == one.fact && known.at == one.at);
            assert!(known || is_notice(&one.fact), "{case}: {name} has {:?}", one.fact);
        }
        let damaged = repaired.damaged.iter().any(|chat| chat.id == name);
        assert!(damaged || chats.get(name) == Some(&stored), "{case}: {name} is not whole and not named");
    }
    for name in whole {
        assert_eq!(&read_all(&journal, &id(name)).await, &chats[name], "{case}: {name} was whole before");
    }
    chat(&journal, "goes-on").await;
}

#[tokio::test]
async fn random_damage_is_found_and_repaired() {
    let source = memory_folder();
    let chats = fill(source.path()).await;
    let mut dice = Dice(0xda3a6e);
    let (mut whole, mut found) = (0, 0);
    for round in 0..40 * scale() {
        let mut kind = "";
        let copy = damaged_copy(source.path(), |bytes| kind = damage(bytes, &mut dice));
        let case = format!("round {round}, {kind}");
        let checked = tokio::time::timeout(DEADLINE, async {
            let readable = check_reading(copy.path(), &chats, &case).await;
            check_repaired(copy.path(), &chats, &readable, &case).await;
            readable.len()
        });
        let readable = checked.await.unwrap_or_else(|_| panic!("{case}: no end"));
        whole += readable;
        found += usize::from(readable < chats.len());
    }
    let (rounds, all) = (40 * scale(), 40 * scale() * chats.len());
    assert!(found > rounds / 4, "only {found} damages were noticed");
    assert!(whole > all / 2, "only {whole} of {all} chats were readable");
    println!(
        "figure: {rounds} damaged files, no text changed silently, {whole} of {all} chats readable before a repair"
    );
}

/// Where in the file the text of a chat is.
fn places(bytes: &[u8], text: &str) -> Vec<usize> {
    memchr::memmem::find_iter(bytes, text).collect()
}

#[tokio::test]
async fn one_changed_letter_is_found_and_only_its_chat_is_refused() {
    let source = memory_folder();
    let chats = fill(source.path()).await;
    let copy = damaged_copy(source.path(), |bytes| {
        for at in places(bytes, "<chat-3 ") {
            bytes[at + 1] = b'b';
        }
    });
    let journal = journal(copy.path());
    for (name, facts) in &chats {
        match try_to_read(&journal, &id(name)).await {
            Ok(read) => assert!(&read == facts && name != "chat-3", "{name}"),
            Err(failure) => {
                assert_eq!((name.as_str(), failure.kind), ("chat-3", FailureKind::Config));
                let text = failure.to_string();
                for part in ["chat-3", "damaged", "Other chats", "store check", "store repair"] {
                    assert!(text.contains(part), "{text} lacks {part}");
                }
                assert!(!text.contains("lorem"), "{text}");
            }
        }
    }
    assert_eq!(journal.list(ListFilter::default()).await.unwrap().len(), chats.len());
}

#[tokio::test]
async fn a_changed_title_is_not_shown_and_comes_back_with_a_repair() {
    let directory = memory_folder();
    let first = journal(directory.path());
    for name in ["one", "two"] {
        chat(&first, name).await;
    }
    drop(first);
    sqlite(directory.path()).execute_batch("UPDATE sessions SET title = 'oops' WHERE id = 'two'").unwrap();
    let second = journal(directory.path());
    let titles = |journal: Journal| async move {
        let listed = journal.list(ListFilter::default()).await.unwrap();
        let mut titles: Vec<String> = listed.into_iter().filter_map(|chat| chat.title).collect();
        titles.sort();
        titles
    };
    second.lease(&id("two")).await.unwrap();
    let failure = second.append(&id("two"), vec![user_message(1, "more")]).await.unwrap_err();
    assert!(failure.message.contains("two") && failure.message.contains("damaged"), "{failure}");
    assert_eq!(titles(second).await, ["(damaged: run `dragoman store check`)", "one"]);
    let repaired = store::repair(directory.path(), &mut |_, _| {}).unwrap();
    assert!(repaired.damaged.is_empty() && repaired.chats == 2, "{repaired:?}");
    assert_eq!(titles(journal(directory.path())).await, ["one", "two"]);
}

/// The head of the file is gone: SQLite cannot read it at all, and a repair begins with an empty store.
#[tokio::test]
async fn a_file_without_its_head_is_kept_and_replaced() {
    let source = memory_folder();
    fill(source.path()).await;
    let copy = damaged_copy(source.path(), |bytes| bytes[..PAGE].fill(0xa5));
    assert!(journal(copy.path()).list(ListFilter::default()).await.is_err());
    assert_eq!(store::check_file(copy.path()).unwrap().unwrap().len(), 1);
    let repaired = store::repair(copy.path(), &mut |_, _| {}).unwrap();
    let kept = fs::read(repaired.copy.unwrap()).unwrap();
    assert!(!places(&kept, "<chat-3 ").is_empty(), "the copy is not that of the damaged file");
    let journal = journal(copy.path());
    chat(&journal, "new").await;
    assert_eq!(journal.list(ListFilter::default()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_repair_waits_for_nobody_and_brings_no_deleted_chat_back() {
    let directory = memory_folder();
    let first = journal(directory.path());
    for name in ["gone", "stays"] {
        chat(&first, name).await;
        first.append(&id(name), vec![user_message(1, &format!("secret-of-{name}"))]).await.unwrap();
    }
    let failure = store::repair(directory.path(), &mut |_, _| {}).unwrap_err();
    assert!(failure.kind == FailureKind::Taken && failure.message.contains("process"), "{failure}");
    drop(first);
    // A process that died after it hid the chat.
    sqlite(directory.path())
        .execute_batch(
            "INSERT INTO deleted VALUES (1); UPDATE last_deleted SET key = 1; DELETE FROM sessions WHERE key = 1",
        )
        .unwrap();
    let repaired = store::repair(directory.path(), &mut |_, _| {}).unwrap();
    assert_eq!((repaired.chats, repaired.damaged.len()), (1, 0));
    let journal = journal(directory.path());
    let stored = read_all(&journal, &id("stays")).await;
    assert_eq!(text_of(&stored[1].fact), "secret-of-stays");
    let bytes = fs::read(directory.path().join("chats.sqlite")).unwrap();
    assert!(places(&bytes, "secret-of-gone").is_empty());
}

/// The index of words is damaged: writing, reading and deleting go on, and a repair makes the index anew.
#[tokio::test]
async fn a_damaged_index_of_words_keeps_no_text_and_stops_nobody() {
    let directory = memory_folder();
    let first = journal(directory.path());
    for name in ["gone", "stays"] {
        chat(&first, name).await;
        let said = (0..80).map(|number| user_message(number, &format!("secret-of-{name} {number}")));
        first.append(&id(name), said.collect()).await.unwrap();
    }
    let indexed =
        || sqlite(directory.path()).query_row("SELECT count(*) FROM unindexed", [], |row| row.get(0));
    while indexed().unwrap_or(0_i64) >= 32 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(first);
    sqlite(directory.path()).execute_batch("UPDATE search_data SET block = x'00' WHERE id > 1000").unwrap();
    let second = journal(directory.path());
    assert!(second.delete(&id("gone")).await.unwrap());
    let bytes = fs::read(directory.path().join("chats.sqlite")).unwrap();
    assert!(places(&bytes, "secret-of-gone").is_empty());
    assert_eq!(read_all(&second, &id("stays")).await.len(), 81);
    second.lease(&id("stays")).await.unwrap();
    let more = (0..40).map(|number| user_message(number, "more")).collect();
    second.append(&id("stays"), more).await.unwrap();
    drop(second);
    assert!(!store::check_file(directory.path()).unwrap().unwrap().is_empty());
    store::repair(directory.path(), &mut |_, _| {}).unwrap();
    assert_eq!(store::check_file(directory.path()).unwrap(), Some(Vec::new()));
    let query = domain::store::SearchQuery { text: "secret".to_owned(), ..Default::default() };
    assert_eq!(journal(directory.path()).search(query).await.unwrap()[0].chat.id, id("stays"));
}

/// A repair was interrupted when everything was saved, and the store was used since: what was saved then must not replace it.
#[tokio::test]
async fn what_an_old_repair_had_saved_replaces_nothing_newer() {
    let directory = memory_folder();
    let first = journal(directory.path());
    chat(&first, "old").await;
    drop(first);
    let saved = directory.path().join("repaired");
    fs::create_dir(&saved).unwrap();
    fs::copy(directory.path().join("chats.sqlite"), saved.join("chats.sqlite")).unwrap();
    fs::write(saved.join("state"), "of another day").unwrap();
    let second = journal(directory.path());
    chat(&second, "new").await;
    drop(second);
    let repaired = store::repair(directory.path(), &mut |_, _| {}).unwrap();
    assert!(repaired.copy.is_some_and(|copy| copy.is_file()));
    assert!(repaired.aside.is_some_and(|aside| aside.is_file()) && !saved.exists());
    assert_eq!(journal(directory.path()).list(ListFilter::default()).await.unwrap().len(), 2);
}

/// The same where nobody has used the store since: the next run goes on.
#[tokio::test]
async fn an_interrupted_repair_is_finished() {
    let (directory, other) = (memory_folder(), memory_folder());
    for (folder, name) in [(&directory, "damaged"), (&other, "saved")] {
        chat(&journal(folder.path()), name).await;
    }
    let (file, saved) = (directory.path().join("chats.sqlite"), directory.path().join("repaired"));
    fs::create_dir(&saved).unwrap();
    fs::copy(other.path().join("chats.sqlite"), saved.join("chats.sqlite")).unwrap();
    let data = fs::metadata(&file).unwrap();
    let time = data.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    fs::write(saved.join("state"), format!("{:?} None", Some(format!("{} {time}", data.len())))).unwrap();
    let repair = store::Repair::begin(directory.path()).unwrap();
    assert!(repair.is_unfinished());
    assert!(repair.run(&mut |_, _| {}).unwrap().copy.is_none());
    let listed = journal(directory.path()).list(ListFilter::default()).await.unwrap();
    assert_eq!(listed.iter().map(|chat| chat.id.as_str()).collect::<Vec<_>>(), ["saved"]);
    assert!(!saved.exists());
}

/// What is written while a repair runs would be lost, so nothing is.
#[tokio::test]
async fn no_chat_is_written_while_a_repair_runs() {
    let directory = memory_folder();
    let journal = journal(directory.path());
    chat(&journal, "a").await;
    journal.release(&id("a")).await.unwrap();
    let repair = store::Repair::begin(directory.path()).unwrap();
    assert!(store::Repair::begin(directory.path()).is_err(), "two repairs at once");
    let failure = journal.lease(&id("a")).await.unwrap_err();
    assert!(failure.kind == FailureKind::Taken && failure.message.contains("repaired"), "{failure}");
    assert_eq!(read_all(&journal, &id("a")).await.len(), 1);
    repair.cancel();
    journal.lease(&id("a")).await.unwrap();
    journal.append(&id("a"), vec![user_message(1, "more")]).await.unwrap();
    let left = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("damaged")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Damage can take a fact its checksum.
#[tokio::test]
async fn a_fact_that_lost_its_checksum_is_neither_read_nor_saved() {
    let directory = memory_folder();
    let first = journal(directory.path());
    chat(&first, "a").await;
    first.append(&id("a"), vec![user_message(1, "one"), user_message(2, "two")]).await.unwrap();
    drop(first);
    let change = "UPDATE facts SET sum = NULL, body = replace(body, 'one', 'won') WHERE number = 2";
    sqlite(directory.path()).execute_batch(change).unwrap();
    let failure = try_to_read(&journal(directory.path()), &id("a")).await.unwrap_err();
    assert!(failure.message.contains("damaged"), "{failure}");
    let repaired = store::repair(directory.path(), &mut |_, _| {}).unwrap();
    assert_eq!((repaired.damaged[0].saved, repaired.damaged[0].lost), (2, 1));
    let stored = read_all(&journal(directory.path()), &id("a")).await;
    assert!(stored.iter().all(|one| !format!("{:?}", one.fact).contains("won")), "{stored:?}");
}

/// Bits of the first page: the schema and the numbers that say whose file it is.
#[tokio::test]
async fn a_damaged_first_page_changes_no_text() {
    let source = memory_folder();
    let chats = fill(source.path()).await;
    let mut dice = Dice(0xf125);
    for round in 0..20 * scale() {
        let copy = damaged_copy(source.path(), |bytes| {
            for _ in 0..4 {
                bytes[dice.below(PAGE as u64) as usize] ^= 1 << dice.below(8);
            }
        });
        let journal = journal(copy.path());
        for (name, facts) in &chats {
            let read = tokio::time::timeout(DEADLINE, try_to_read(&journal, &id(name))).await;
            if let Ok(read) = read.unwrap_or_else(|_| panic!("round {round}: no end")) {
                assert!(read.is_empty() || &read == facts, "round {round}: {name} was changed");
            }
        }
        drop(journal);
        let repaired = store::repair(copy.path(), &mut |_, _| {});
        let repaired = repaired.unwrap_or_else(|failure| panic!("round {round}: {failure}"));
        assert!(repaired.copy.is_some());
        chat(&self::journal(copy.path()), "goes-on").await;
    }
}

/// A killed process left a log, and a bit of it flips: SQLite drops that change and all later ones without a word.
#[tokio::test]
async fn damage_of_the_log_is_reported_once_with_a_copy() {
    let directory = memory_folder();
    let running = journal(directory.path());
    for number in 0..8 {
        chat(&running, &format!("chat-{number}")).await;
    }
    let crashed = |flips: bool| {
        let copy = memory_folder();
        for file in ["chats.sqlite", "chats.sqlite-wal"] {
            let mut bytes = fs::read(directory.path().join(file)).unwrap();
            if flips && file.ends_with("-wal") {
                let at = bytes.len() / 2;
                bytes[at] ^= 1;
            }
            fs::write(copy.path().join(file), bytes).unwrap();
        }
        copy
    };
    let whole = crashed(false);
    assert_eq!(journal(whole.path()).list(ListFilter::default()).await.unwrap().len(), 8);
    let damaged = crashed(true);
    let journal = journal(damaged.path());
    let failure = journal.list(ListFilter::default()).await.unwrap_err();
    let text = failure.to_string();
    assert!(text.contains("log") && text.contains("damaged") && text.contains("A copy"), "{text}");
    let left = journal.list(ListFilter::default()).await.unwrap().len();
    assert!((1..8).contains(&left), "{left}");
    let copies = fs::read_dir(damaged.path()).unwrap();
    let copies =
        copies.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().contains("damaged-log"));
    assert_eq!(copies.count(), 1);
}
