//! The PostgreSQL store beside the SQLite store, on one machine and disk: a chunk of streamed text, many chats at once,
//! opening, listing and searching as the number of facts grows. `cargo bench -p dragoman-store-postgres`; `BENCH_CHATS`,
//! `BENCH_PROCESSES`, `BENCH_FACTS` and `BENCH_SQLITE_FACTS` change its size.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its table and has no caller"
)]
#![allow(clippy::disallowed_methods, reason = "it reads its scale from the environment")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::command::SessionSettings;
use domain::event::{Channel, SessionOpened};
use domain::store::{ListFilter, SearchQuery};
use domain::{Fact, Item, ItemId, ItemKind, SessionId, Store, TurnId};
use store_postgres::{Address, PostgresStore, Timing};
use testkit::PostgresServer;

const CHUNKS: usize = 1_000;
const CHUNKS_EACH: usize = 10;

/// The address of the database and this process's number, for a child of the benchmark.
const CHILD: &str = "BENCH_CHILD";

fn main() {
    if let Ok(child) = std::env::var(CHILD) {
        return write_as_child(&child);
    }
    let chats = number("BENCH_CHATS", 1_000);
    let facts = number("BENCH_FACTS", 100_000);
    let sqlite_facts = number("BENCH_SQLITE_FACTS", 100_000).min(facts);
    let processes = number("BENCH_PROCESSES", 4).max(1);
    let Some(server) = PostgresServer::start() else { return };
    let database = server.database("bench");
    let address = Address::parse(&database, None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("{:<14} {:<52} {:>10} {:>10}", "store", "milliseconds", "p50", "p99");
    runtime.block_on(async {
        let stores: [(&str, Arc<dyn Store>); 2] = [
            ("SQLite", Arc::new(store::Journal::open(directory.path()).unwrap())),
            ("PostgreSQL", Arc::new(PostgresStore::with_timing(address, Timing::default()))),
        ];
        for (name, store) in stores {
            row(name, "a chunk of 300 bytes, one chat", single(store.as_ref()).await);
            let (times, rate) = together(&store, chats, "together").await;
            row(name, &format!("a chunk, {chats} chats at once ({rate:.0} chunks/s)"), times);
            if name == "PostgreSQL" {
                let (times, rate) = over_processes(&database, chats, processes);
                let over = format!("the same over {processes} processes ({rate:.0} chunks/s)");
                row(name, &over, times);
            }
            let facts = if name == "PostgreSQL" { facts } else { sqlite_facts };
            for size in [(facts / 100).max(10_000), facts] {
                fill(store.as_ref(), size.min(10_000)).await;
                match name {
                    "PostgreSQL" => copy_chats(&server, size / 100),
                    _ => fill(store.as_ref(), size).await,
                }
                row(name, &format!("open a chat of 100 facts of {size}"), opens(store.as_ref(), size).await);
                row(name, &format!("a page of 50 chats, {size} facts"), lists(store.as_ref()).await);
                row(name, &format!("prompt: append two facts, {size} facts"), prompts(store.as_ref()).await);
                row(name, &format!("search a rare word, {size} facts"), searches(store.as_ref()).await);
            }
        }
    });
}

/// The chats are spread over processes with a store of their own each; all times of all of them.
fn over_processes(database: &str, chats: usize, processes: usize) -> (Vec<Duration>, f64) {
    let own = std::env::current_exe().unwrap();
    let children: Vec<_> = (0..processes)
        .map(|number| {
            let child = format!("{number} {} {database}", chats / processes);
            let mut command = std::process::Command::new(&own);
            command.env(CHILD, child).stdout(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let (mut times, mut rate) = (Vec::new(), 0.0);
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        // The first line is the rate of the process.
        let mut lines = text.lines();
        rate += lines.next().unwrap().parse::<f64>().unwrap();
        times.extend(lines.map(|line| Duration::from_nanos(line.parse().unwrap())));
    }
    (times, rate)
}

fn write_as_child(child: &str) {
    let mut words = child.split(' ');
    let (number, chats, database) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let address = Address::parse(database, None).unwrap();
        let store: Arc<dyn Store> = Arc::new(PostgresStore::with_timing(address, Timing::default()));
        let (times, rate) = together(&store, chats.parse().unwrap(), &format!("process-{number}")).await;
        println!("{rate}");
        for time in times {
            println!("{}", time.as_nanos());
        }
    });
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn row(store: &str, name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1000.0;
    println!("{store:<14} {name:<52} {:>10.3} {:>10.3}", at(50), at(99));
}

fn chunk(offset: u64) -> Fact {
    let text = "word ".repeat(60);
    Fact::ItemGrew { item: ItemId(1), channel: Channel::Text, offset, text }
}

fn message(number: u64, text: &str) -> Fact {
    let kind = ItemKind::UserMessage { text: text.to_owned(), parts: Vec::new() };
    Fact::ItemEnded { item: Item { id: ItemId(number), turn: TurnId(1), step: 0, parent: None, kind } }
}

async fn open(store: &dyn Store, name: &str) -> SessionId {
    let session = SessionId::new(name);
    store.lease(&session).await.unwrap();
    let opened = SessionOpened {
        workspace: vec!["/work".into()],
        settings: SessionSettings::default(),
        parent: None,
        client: "bench".to_owned(),
    };
    store.append(&session, vec![Fact::SessionOpened(opened)]).await.unwrap();
    session
}

async fn single(store: &dyn Store) -> Vec<Duration> {
    let session = open(store, "single").await;
    let mut times = Vec::new();
    for number in 0..CHUNKS {
        let start = Instant::now();
        store.append(&session, vec![chunk(number as u64)]).await.unwrap();
        times.push(start.elapsed());
    }
    times
}

async fn together(store: &Arc<dyn Store>, chats: usize, prefix: &str) -> (Vec<Duration>, f64) {
    let mut sessions = Vec::new();
    for number in 0..chats {
        sessions.push(open(store.as_ref(), &format!("{prefix}-{number}")).await);
    }
    let start = Instant::now();
    let tasks: Vec<_> = sessions
        .into_iter()
        .map(|session| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut times = Vec::new();
                for number in 0..CHUNKS_EACH {
                    let start = Instant::now();
                    store.append(&session, vec![chunk(number as u64)]).await.unwrap();
                    times.push(start.elapsed());
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    (times, rate)
}

/// Chats of 100 facts each, up to so many facts.
async fn fill(store: &dyn Store, facts: usize) {
    for chat in 0..facts / 100 {
        let session = SessionId::new(format!("filled-{chat}"));
        if store.newest(&session).await.unwrap().is_some() {
            continue;
        }
        let session = open(store, session.as_str()).await;
        let texts =
            (1..100).map(|number| message(number, &format!("Some words that are said often, {number}.")));
        store.append(&session, texts.collect()).await.unwrap();
        store.release(&session).await.unwrap();
    }
}

/// Copies the first chat until there are so many, as fast as the server can.
fn copy_chats(server: &PostgresServer, chats: usize) {
    const BATCH: usize = 5_000;
    let counted = server.query("bench", "SELECT count(*) FROM dragoman.sessions WHERE id LIKE 'filled-%'");
    let mut there: usize = counted.parse().unwrap();
    while there < chats {
        let end = chats.min(there + BATCH) - 1;
        let statement = format!(
            "SET synchronous_commit = off;
             WITH first AS (SELECT * FROM dragoman.sessions WHERE id = 'filled-0'), added AS (
                INSERT INTO dragoman.sessions
                    (id, title, model, workspace, folders, parent, created, updated, messages, newest)
                SELECT 'filled-' || number, title, model, workspace, folders, parent, created, updated - number,
                    messages, newest FROM first, generate_series({there}, {end}) AS number RETURNING key
             ), facts AS (
                INSERT INTO dragoman.facts SELECT added.key, number, at, kind, body FROM added, dragoman.facts
                WHERE session = (SELECT key FROM first) ORDER BY added.key, number
             )
             INSERT INTO dragoman.search SELECT added.key, number, words FROM added, dragoman.search
             WHERE session = (SELECT key FROM first) ORDER BY added.key, number"
        );
        server.query("bench", &statement);
        there = end + 1;
    }
    server.query("bench", "VACUUM ANALYZE");
}

async fn measured(mut work: impl AsyncFnMut(usize)) -> Vec<Duration> {
    let mut times = Vec::new();
    for round in 0..100 {
        let start = Instant::now();
        work(round).await;
        times.push(start.elapsed());
    }
    times
}

/// Chats all over the store.
async fn opens(store: &dyn Store, facts: usize) -> Vec<Duration> {
    measured(async |round: usize| {
        let session = SessionId::new(format!("filled-{}", round * 7_919 % (facts / 100)));
        assert_eq!(store.read(&session, 0, 1024).await.unwrap().len(), 100);
    })
    .await
}

async fn lists(store: &dyn Store) -> Vec<Duration> {
    measured(async |_| {
        let filter = ListFilter { limit: Some(50), ..ListFilter::default() };
        assert_eq!(store.list(filter).await.unwrap().len(), 50);
    })
    .await
}

async fn prompts(store: &dyn Store) -> Vec<Duration> {
    let session = SessionId::new("single");
    measured(async |round: usize| {
        let facts = vec![message(round as u64, "a rare question: zebra"), chunk(0)];
        store.append(&session, facts).await.unwrap();
    })
    .await
}

async fn searches(store: &dyn Store) -> Vec<Duration> {
    measured(async |_| {
        let query = SearchQuery { text: "zebra".to_owned(), limit: Some(20), ..SearchQuery::default() };
        assert_eq!(store.search(query).await.unwrap().len(), 1);
    })
    .await
}
