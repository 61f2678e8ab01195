//! `kill -9` at random moments: what a client was told is there afterwards, and the next prompt sends it along.

use std::io::{Seek, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, answer, contents, fake_provider};
use crate::scaled;

/// Text that was shown this long before the kill must survive it, on a disk that stores at once. A busy one makes the commit
/// before it and its own wait (`DiskProbe`).
const SAFE: Duration = Duration::from_millis(250);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_told_is_lost_when_the_process_is_killed() {
    let fake = FakeModel::start().await;
    fake.respond_with(|_| {
        Answer::new().every(Duration::from_millis(2)).chunks((0..400).map(|at| format!("w{at} ")))
    });
    let home = Home::new();
    let config = fake_provider(fake.url(), "openai-chat");
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for round in 0..scaled(500) {
        let chat = format!("chat-{}", round % 20);
        one_kill(&home, &config, &fake, &chat, random.below(700), round).await;
    }
    println!(
        "figure: {} kills of the program while an answer streamed, 0 facts lost that a client had seen",
        scaled(500)
    );
}

async fn one_kill(home: &Home, config: &Value, fake: &FakeModel, chat: &str, after: u64, round: usize) {
    let mut client = Client::start(home, config).await;
    client.ask("chat/prompt", json!({"chatId": chat, "message": format!("question {round}")})).await;
    let disk = DiskProbe::start(&home.workspace());
    let deadline = Instant::now() + Duration::from_millis(after);
    let mut shown: Vec<(Instant, Value)> = Vec::new();
    while let Ok(message) = tokio::time::timeout_at(deadline.into(), client.next()).await {
        shown.push((Instant::now(), message));
    }
    // It is dead at this moment or later, however long the machine takes to say so.
    let killed = Instant::now();
    client.child.kill().await.expect("kill -9");
    while let Some(message) = client.next_or_end().await {
        shown.push((killed, message));
    }
    let safe_after = SAFE + 2 * disk.longest();
    let told: Vec<Value> = shown.iter().map(|(_, message)| message.clone()).collect();
    let echoed = contents(&told).iter().any(|it| it["role"] == "user");
    let old: Vec<Value> = shown
        .iter()
        .filter(|(at, _)| killed.duration_since(*at) > safe_after)
        .map(|(_, message)| message.clone())
        .collect();
    let safe = answer(&contents(&old));

    // Everything opens again, with what was told.
    let mut client = Client::start(home, config).await;
    let id = client.ask("chat/open", json!({"chatId": chat})).await;
    let messages = client.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
    let opened = messages.last().expect("a response")["result"]["found"] == json!(true);
    assert!(opened || !echoed, "round {round}: a chat that was told of is gone");
    if opened {
        let replayed = contents(&messages);
        let question = format!("question {round}\n");
        let known =
            replayed.iter().any(|it| it["role"] == "user" && it["content"]["text"] == json!(question));
        assert!(known || !echoed, "round {round}: the question is gone");
        let whole = answer(&replayed);
        assert!(
            whole.ends_with(&safe) || whole.contains(&safe),
            "round {round}: {} bytes told, lost",
            safe.len()
        );
    }
    if round.is_multiple_of(10) && !safe.is_empty() {
        fake.answer(Answer::text("ok"));
        client.prompt(Some(chat), "and now?").await;
        let sent = fake.last_request().body.to_string();
        assert!(sent.contains(safe.trim_end()), "round {round}: the interrupted answer was not sent along");
    }
    client.child.kill().await.expect("kill -9");
}

/// Stores a few bytes again and again beside the program, to learn how long the disk takes for it.
struct DiskProbe {
    ends: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Duration>,
}

impl DiskProbe {
    fn start(folder: &Path) -> Self {
        let ends = Arc::<AtomicBool>::default();
        let stop = ends.clone();
        let mut file = std::fs::File::create(folder.join("probe")).expect("a file");
        let thread = std::thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                file.rewind().and_then(|()| file.write_all(b"probe")).expect("written");
                file.sync_all().expect("stored");
                longest = longest.max(start.elapsed());
                std::thread::sleep(Duration::from_millis(20));
            }
            longest
        });
        Self { ends, thread }
    }

    /// The longest time so far, that of a write that is under way included.
    fn longest(self) -> Duration {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().expect("the disk stores")
    }
}

/// A small generator, so that a failing run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
