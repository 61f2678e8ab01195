//! How long the journal takes, beside what the disk takes for the same bytes: `cargo bench -p dragoman-store`.
//! `BENCH_CHATS` sets the number of stored chats.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark prints its table, has no caller and reads its size from the environment"
)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use domain::command::SessionSettings;
use domain::event::{Channel, SessionOpened, SessionUsage};
use domain::store::{ListFilter, SearchQuery};
use domain::{Fact, Item, ItemId, ItemKind, Outcome, SessionId, Store, TurnId};
use store::Journal;

const MESSAGES: u64 = 10_000;
const APPENDS: usize = 2_000;
const CHATS: usize = 200;
const DELETIONS: usize = 20;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let chats: usize = std::env::var("BENCH_CHATS").map_or(10_000, |chats| chats.parse().unwrap());
    println!("{:<58} {:>10} {:>10}", "milliseconds", "p50", "p99");
    runtime.block_on(async {
        let [fsync, fdatasync, append] = appends(directory.path()).await;
        row("floor: write 8 KiB + fsync", fsync);
        row("floor: write 8 KiB + fdatasync", fdatasync);
        row("append one fact of 300 bytes", append);
        row(&format!("append, {CHATS} chats at once"), appends_together(directory.path()).await);
        fill(directory.path()).await;
        row("open an existing database, first read", opens(directory.path()).await);
        row(&format!("load a chat of {MESSAGES} messages (target < 100)"), loads(directory.path()).await);
        row(&format!("list {} chats", CHATS + 2), lists(directory.path()).await);
        many(directory.path(), chats).await;
        for (name, times) in pages(directory.path()).await {
            row(&format!("a page of 50 of {chats} chats, {name} (target < 3)"), times);
        }
        row(&format!("search two words in {chats} chats (target < 50)"), searches(directory.path()).await);
        let (deletions, waits) = deletes(directory.path()).await;
        row(&format!("delete a chat of 100 messages among {chats} chats"), deletions);
        let longest = waits.iter().copied().max().unwrap_or_default();
        row("append of another program meanwhile (target < 5)", waits);
        row("the longest of them", vec![longest]);
    });
    let size = std::fs::metadata(directory.path().join("chats.sqlite")).unwrap().len();
    println!("\nthe file is {:.1} MiB", size as f64 / (1 << 20) as f64);
}

fn row(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1000.0;
    println!("{name:<58} {:>10.3} {:>10.3}", at(50), at(99));
}

/// In turn, so that all three meet the same disk.
async fn appends(directory: &Path) -> [Vec<Duration>; 3] {
    let journal = Journal::open(directory).unwrap();
    let session = open(&journal, "single").await;
    let mut files = [0, 1].map(|number| File::create(directory.join(format!("floor-{number}"))).unwrap());
    let bytes = [b'x'; 8240];
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for number in 0..APPENDS {
        for (at, sync) in [File::sync_all, File::sync_data].into_iter().enumerate() {
            let start = Instant::now();
            files[at].write_all(&bytes).unwrap();
            sync(&files[at]).unwrap();
            times[at].push(start.elapsed());
        }
        let fact = grew(number as u64, &"word ".repeat(60));
        let start = Instant::now();
        journal.append(&session, vec![fact]).await.unwrap();
        times[2].push(start.elapsed());
    }
    times
}

async fn appends_together(directory: &Path) -> Vec<Duration> {
    let journal = Arc::new(Journal::open(directory).unwrap());
    let mut chats = Vec::new();
    for number in 0..CHATS {
        let session = open(&journal, &format!("together-{number}")).await;
        let journal = journal.clone();
        chats.push(async move {
            let mut times = Vec::new();
            for number in 0..20 {
                let start = Instant::now();
                journal.append(&session, vec![grew(number, &"word ".repeat(60))]).await.unwrap();
                times.push(start.elapsed());
            }
            times
        });
    }
    let mut times = Vec::new();
    for chat in chats.into_iter().map(tokio::spawn).collect::<Vec<_>>() {
        times.extend(chat.await.unwrap());
    }
    times
}

/// Facts as a chat leaves them: two messages and seven facts per turn.
async fn fill(directory: &Path) {
    let journal = Journal::open(directory).unwrap();
    let session = open(&journal, "long").await;
    for turn in 0..MESSAGES / 2 {
        journal.append(&session, facts_of_turn(turn)).await.unwrap();
    }
}

async fn opens(directory: &Path) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..50 {
        let start = Instant::now();
        let journal = Journal::open(directory).unwrap();
        assert!(journal.newest(&SessionId::new("long")).await.unwrap().is_some());
        times.push(start.elapsed());
    }
    times
}

async fn loads(directory: &Path) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..20 {
        let journal = Journal::open(directory).unwrap();
        let start = Instant::now();
        let mut after = 0;
        loop {
            let page = journal.read(&SessionId::new("long"), after, 1000).await.unwrap();
            let Some(last) = page.last() else { break };
            after = last.number;
        }
        times.push(start.elapsed());
        assert_eq!(after, MESSAGES / 2 * 7 + 1);
    }
    times
}

async fn lists(directory: &Path) -> Vec<Duration> {
    let journal = Journal::open(directory).unwrap();
    let mut times = Vec::new();
    for _ in 0..50 {
        let start = Instant::now();
        assert_eq!(journal.list(ListFilter::default()).await.unwrap().len(), CHATS + 2);
        times.push(start.elapsed());
    }
    times
}

/// Many short chats, a hundredth of them in a folder of their own.
async fn many(directory: &Path, chats: usize) {
    let journal = Arc::new(Journal::open(directory).unwrap());
    for block in 0..chats / 100 {
        let chats = (0..100).map(|number| {
            let journal = journal.clone();
            tokio::spawn(async move {
                let session = SessionId::new(format!("many-{block}-{number}"));
                let folder = if number == 0 { "/rare" } else { "/w" };
                let settings =
                    SessionSettings { title: Some("A chat".to_owned()), ..SessionSettings::default() };
                let (workspace, client) = (vec![folder.into()], String::new());
                let opened = SessionOpened { workspace, settings, parent: None, client };
                journal.lease(&session).await.unwrap();
                let facts = [vec![Fact::SessionOpened(opened)], facts_of_turn(1), facts_of_turn(2)].concat();
                journal.append(&session, facts).await.unwrap();
                journal.release(&session).await.unwrap();
            })
        });
        for chat in chats.collect::<Vec<_>>() {
            chat.await.unwrap();
        }
    }
}

async fn pages(directory: &Path) -> Vec<(&'static str, Vec<Duration>)> {
    let journal = Journal::open(directory).unwrap();
    let mut rows = Vec::new();
    for (name, folder) in [("all", None), ("a large folder", Some("/w")), ("a small folder", Some("/rare"))] {
        let mut times = Vec::new();
        let mut after = None;
        loop {
            let workspace = folder.map(|folder| vec![folder.into()]);
            let filter = ListFilter { workspace, limit: Some(50), after, ..ListFilter::default() };
            let start = Instant::now();
            let page = journal.list(filter).await.unwrap();
            times.push(start.elapsed());
            let Some(last) = page.last() else { break };
            after = Some(last.position());
        }
        rows.push((name, times));
    }
    rows
}

async fn searches(directory: &Path) -> Vec<Duration> {
    let journal = Journal::open(directory).unwrap();
    let mut times = Vec::new();
    for _ in 0..20 {
        let query = SearchQuery { text: "file checks".to_owned(), limit: Some(20), ..Default::default() };
        let start = Instant::now();
        journal.search(query).await.unwrap();
        times.push(start.elapsed());
    }
    times
}

/// Messages of the chats before are indexed for the search.
fn until_indexed(directory: &Path) {
    let connection = rusqlite::Connection::open(directory.join("chats.sqlite")).unwrap();
    let waiting = || connection.query_row("SELECT count(*) FROM unindexed", [], |row| row.get::<_, i64>(0));
    while waiting().unwrap() >= 32 {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What deletions take, and what appends through another connection take meanwhile, to the end of the last one.
async fn deletes(directory: &Path) -> (Vec<Duration>, Vec<Duration>) {
    let journal = Journal::open(directory).unwrap();
    let other = Arc::new(Journal::open(directory).unwrap());
    let neighbor = open(&other, "neighbor").await;
    until_indexed(directory);
    let mut times = Vec::new();
    let mut waits = Vec::new();
    let mut place = 0;
    for number in 0..DELETIONS {
        let session = open(&journal, &format!("short-{number}")).await;
        for turn in 0..50 {
            journal.append(&session, facts_of_turn(turn)).await.unwrap();
        }
        let ended = Arc::new(AtomicBool::new(false));
        let appending = {
            let (other, neighbor, ended) = (other.clone(), neighbor.clone(), ended.clone());
            tokio::spawn(async move {
                let mut waits = Vec::new();
                while !ended.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    other.append(&neighbor, vec![grew(place, "word")]).await.unwrap();
                    waits.push(start.elapsed());
                    place += 4;
                }
                (waits, place)
            })
        };
        let start = Instant::now();
        assert!(journal.delete(&session).await.unwrap());
        times.push(start.elapsed());
        ended.store(true, Ordering::Relaxed);
        let (more, next) = appending.await.unwrap();
        waits.extend(more);
        place = next;
    }
    (times, waits)
}

async fn open(journal: &Journal, name: &str) -> SessionId {
    let session = SessionId::new(name);
    let settings = SessionSettings { title: Some(name.to_owned()), ..SessionSettings::default() };
    let opened =
        SessionOpened { workspace: vec!["/w".into()], settings, parent: None, client: String::new() };
    journal.lease(&session).await.unwrap();
    journal.append(&session, vec![Fact::SessionOpened(opened)]).await.unwrap();
    session
}

fn grew(offset: u64, text: &str) -> Fact {
    Fact::ItemGrew { item: ItemId(1), channel: Channel::Text, offset, text: text.to_owned() }
}

fn facts_of_turn(number: u64) -> Vec<Fact> {
    let turn = TurnId(number);
    let item = |id, kind| Item { id: ItemId(id), turn, step: 0, parent: None, kind };
    let question =
        ItemKind::UserMessage { text: "What does this function do? ".repeat(5), parts: Vec::new() };
    let text = "It reads the \"file\", checks it and returns what it found.\n".repeat(10);
    let answer =
        |text: &str| ItemKind::AgentMessage { text: text.to_owned(), interrupted: false, provider: None };
    vec![
        Fact::TurnStarted { turn, model: "anthropic/model".to_owned() },
        Fact::ItemEnded { item: item(number * 2, question) },
        Fact::ItemStarted { item: item(number * 2 + 1, answer("")) },
        Fact::ItemGrew {
            item: ItemId(number * 2 + 1),
            channel: Channel::Text,
            offset: 0,
            text: text.clone(),
        },
        Fact::ItemEnded { item: item(number * 2 + 1, answer(&text)) },
        Fact::UsageChanged { usage: SessionUsage::default() },
        Fact::TurnEnded { turn, outcome: Outcome::Done },
    ]
}
