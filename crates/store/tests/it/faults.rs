//! Disks that fail at the n-th call, and power cuts: everything acknowledged is there afterwards.

use std::collections::BTreeMap;
use std::path::Path;

use domain::{Fact, Store};
use store::Journal;

use crate::disk::{self, Fault, lock};
use crate::{Dice, id, journal, memory_folder, read_all, scale, sqlite};
use testkit::sample::{opened, text_of, user_message};

const CHATS: [&str; 2] = ["a", "b"];

/// More calls than one run of `work` makes: some faults strike while the store is closed or not at all.
const MOST_CALLS: u64 = 160;

/// What was written to each chat, and whether it was acknowledged.
#[derive(Default)]
struct Promises(BTreeMap<&'static str, Vec<(String, bool)>>);

/// Opens chats, writes small and large facts, deletes a chat, closes and opens the store again.
async fn work(folder: &Path, dice: &mut Dice) -> Promises {
    let mut promises = Promises::default();
    let mut journal = journal(folder);
    lease_all(&journal).await;
    for name in CHATS {
        append(&journal, &mut promises, name, true, String::new()).await;
    }
    for step in 0..12 {
        let name = CHATS[dice.below(2) as usize];
        match dice.below(12) {
            0 => {
                drop(journal);
                journal = self::journal(folder);
                lease_all(&journal).await;
            }
            1 => {
                let gone = id("gone");
                let _ = journal.lease(&gone).await;
                let _ = journal.append(&gone, vec![opened("gone", &[])]).await;
                let _ = journal.delete(&gone).await;
            }
            2 => drop(journal.put("kind", "key", format!("{step}")).await),
            size => {
                let text = format!("{step} ").repeat(1 + 40 * (size as usize) * (size as usize));
                append(&journal, &mut promises, name, false, text).await;
            }
        }
    }
    promises
}

async fn lease_all(journal: &Journal) {
    for name in CHATS {
        journal.lease(&id(name)).await.unwrap();
    }
}

async fn append(
    journal: &Journal,
    promises: &mut Promises,
    name: &'static str,
    is_first: bool,
    text: String,
) {
    let known = promises.0.entry(name).or_default();
    let exists = known.iter().any(|(_, acknowledged)| *acknowledged);
    // A chat whose first fact failed is opened again, as the engine does.
    let is_open = is_first || !exists;
    let fact = match is_open {
        true => opened(&format!("opened {}", known.len()), &[]),
        false => user_message(known.len() as u64, &text),
    };
    let label = label(&fact).to_owned();
    let acknowledged = journal.append(&id(name), vec![fact]).await.is_ok();
    known.push((label, acknowledged));
}

/// A text that no other fact of the chat has.
fn label(fact: &Fact) -> &str {
    match fact {
        Fact::SessionOpened(opened) => opened.settings.title.as_deref().unwrap_or_default(),
        _ => text_of(fact),
    }
}

/// Everything acknowledged is there, in order, without gaps; nothing is there that nobody wrote; writing goes on.
async fn check(folder: &Path, promises: &Promises, case: &str) {
    let journal = journal(folder);
    lease_all(&journal).await;
    for (name, written) in &promises.0 {
        let stored = read_all(&journal, &id(name)).await;
        assert!(
            stored.iter().zip(1..).all(|(fact, number)| fact.number == number),
            "{case}: a gap in {name}"
        );
        let mut found = stored.iter().map(|fact| label(&fact.fact)).peekable();
        for (text, acknowledged) in written {
            if found.peek() == Some(&text.as_str()) {
                found.next();
            } else {
                assert!(!acknowledged, "{case}: an acknowledged fact of {name} is gone");
            }
        }
        assert_eq!(found.next(), None, "{case}: {name} holds a fact that nobody wrote there");
        let fact = if stored.is_empty() { opened(name, &[]) } else { user_message(1, "more") };
        let told = journal.append(&id(name), vec![fact]).await.unwrap_or_else(|e| panic!("{case}: {e}"));
        assert_eq!(told[0].number, stored.len() as u64 + 1, "{case}");
    }
    drop(journal);
    let health: String = sqlite(folder).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(health, "ok", "{case}");
}

/// A call of the store's files fails once; the same process goes on, and so does the next one.
#[tokio::test]
async fn faults_of_the_disk_lose_nothing_that_was_acknowledged() {
    let (mut dice, mut struck) = (Dice(0xd15c), 0);
    for round in 0..120 * scale() {
        let folder = memory_folder();
        let fault = [Fault::Full, Fault::Broken, Fault::Short][round % 3];
        let at = 1 + dice.below(MOST_CALLS);
        let disk = disk::watch(folder.path(), Some((at, fault)));
        let promises = work(folder.path(), &mut dice).await;
        struck += usize::from(lock(&disk).struck);
        lock(&disk).fault = None;
        check(folder.path(), &promises, &format!("round {round}: {fault:?} at call {at}")).await;
    }
    assert!(struck > 60 * scale(), "only {struck} faults struck");
    println!("figure: {struck} faults of the disk struck, 0 acknowledged facts lost");
}

/// Everything after the n-th call fails, and of the writes since the last sync any part is lost or torn.
#[tokio::test]
async fn power_cuts_lose_nothing_that_was_acknowledged() {
    let (mut dice, mut struck) = (Dice(0x90e2), 0);
    for round in 0..120 * scale() {
        let (folder, rest) = (memory_folder(), memory_folder());
        let at = 1 + dice.below(MOST_CALLS);
        let disk = disk::watch(folder.path(), Some((at, Fault::PowerCut)));
        let promises = work(folder.path(), &mut dice).await;
        struck += usize::from(lock(&disk).struck);
        lock(&disk).copy_remains(rest.path(), &mut dice);
        check(rest.path(), &promises, &format!("round {round}: a power cut at call {at}")).await;
    }
    assert!(struck > 60 * scale(), "only {struck} cuts struck");
    println!("figure: {struck} power cuts struck, 0 acknowledged facts lost");
}
