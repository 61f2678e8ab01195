//! Long chats: opening one of 10,000 messages that another process left behind, with all of its contents sent, and further
//! prompts in chats of 100, 1,000 and 10,000 messages.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use domain::command::SessionSettings;
use domain::event::{SessionOpened, SessionUsage};
use domain::{Fact, Item, ItemId, ItemKind, Outcome, SessionId, Store, TurnId};
use serde_json::json;
use store::Journal;
use testkit::FakeModel;

use crate::chart::Chart;
use crate::program::{Home, Server, dragoman};
use crate::table::Table;

const MESSAGES: u64 = 10_000;

pub(crate) async fn rows(table: &mut Table, fake: &FakeModel) {
    let home = Home::new();
    write(&home, "long", MESSAGES).await;
    let mut times = Vec::new();
    for _ in 0..5 {
        let mut server = Server::start(&dragoman(), &home, fake);
        server.initialize(&home);
        let since = Instant::now();
        let id = server.ask("chat/open", json!({"chatId": "long"}));
        let mut shown = 0;
        loop {
            let (_, message) = server.next();
            let content = &message["params"]["content"];
            shown += usize::from(content["type"] == "text");
            if message["id"] == json!(id) && message.get("method").is_none() {
                break;
            }
        }
        times.push(since.elapsed().as_secs_f64() * 1000.0);
        assert_eq!(shown as u64, MESSAGES, "all of it is shown");
    }
    let time = crate::median(times);
    table.row("open a chat of 10,000 messages, sent and parsed", "ms", time, f64::INFINITY);
    let (shown, answered) = first_screenful(fake, &home);
    table.row("the last 50 of 10,000 messages, opened by `limit`, shown", "ms", shown, 20.0);
    table.row("the same, until the chat is loaded and the request answered", "ms", answered, f64::INFINITY);
    let mut times = Chart::new("prompt-by-length", "a further prompt, beyond its bytes, by messages", "ms");
    let mut memory = Chart::new("memory-by-length", "memory at rest after prompts, by messages", "MiB");
    for (messages, wanted) in [(100, 1.5), (1_000, 2.0), (10_000, 8.0)] {
        let (beyond, resting) = further_prompts(table, fake, messages, wanted).await;
        times.point(messages as usize, beyond, wanted);
        memory.point(messages as usize, resting, if messages == MESSAGES { 30.0 } else { f64::INFINITY });
    }
    times.write();
    memory.write();
}

/// The time until an editor that asks for the newest page has it.
fn first_screenful(fake: &FakeModel, home: &Home) -> (f64, f64) {
    const SHOWN: usize = 50;
    let (mut shown, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let mut server = Server::start(&dragoman(), home, fake);
        server.initialize(home);
        let since = Instant::now();
        let id = server.ask("chat/open", json!({"chatId": "long", "limit": SHOWN}));
        let mut texts = 0;
        loop {
            let (_, message) = server.next();
            if message["params"]["content"]["type"] == "text" {
                texts += 1;
                if texts == SHOWN {
                    shown.push(since.elapsed().as_secs_f64() * 1000.0);
                }
            }
            if message["id"] == json!(id) && message.get("method").is_none() {
                break;
            }
        }
        assert_eq!(texts, SHOWN, "as many as were asked for");
        answered.push(since.elapsed().as_secs_f64() * 1000.0);
    }
    (crate::median(shown), crate::median(answered))
}

/// The time of prompts after the second one, until the first chunk. The floor is the same request sent by the least client.
/// Returns the difference and the memory at rest.
async fn further_prompts(table: &mut Table, fake: &FakeModel, messages: u64, wanted: f64) -> (f64, f64) {
    let home = Home::new();
    write(&home, "grown", messages).await;
    let mut server = Server::start(&dragoman(), &home, fake);
    server.initialize(&home);
    let id = server.ask("chat/open", json!({"chatId": "grown"}));
    server.until(|it| it["id"] == json!(id) && it.get("method").is_none());
    fake.forget_requests();
    let mut times = Vec::new();
    for number in 0..12 {
        let since = Instant::now();
        server.prompt("grown", "go on");
        server.until(|it| it["params"]["content"]["type"] == "text" && it["params"]["role"] == "assistant");
        if number >= 2 {
            times.push(since.elapsed().as_secs_f64() * 1000.0);
        }
        server.until(|it| it["params"]["content"]["state"] == "finished");
    }
    let body = fake.requests().last().map(|it| it.body.to_string()).unwrap_or_default();
    let floor = sending(fake, &body);
    let time = crate::median(times);
    let name = format!("a further prompt in a chat of {messages} messages, to the first chunk");
    table.pair(&name, "ms", time, floor, floor + wanted);
    table.row(
        &format!("peak memory of the chat of {messages} messages"),
        "MiB",
        server.peak(),
        f64::INFINITY,
    );
    // Free memory is returned two to four seconds after the last work.
    std::thread::sleep(Duration::from_secs(5));
    let resting = server.resident();
    let limit = if messages == MESSAGES { 30.0 } else { f64::INFINITY };
    table.row(&format!("memory at rest of the chat of {messages} messages, RSS"), "MiB", resting, limit);
    (time - floor, resting)
}

/// The time in which a model has read a body and answered its first chunk, over a connection that is open already.
pub(crate) fn sending(fake: &FakeModel, body: &str) -> f64 {
    let address = fake.url().trim_start_matches("http://").to_owned();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut times = Vec::new();
    for _ in 0..10 {
        let mut connection = TcpStream::connect(&address).expect("the model");
        connection.set_nodelay(true).expect("an option");
        connection.set_read_timeout(Some(Duration::from_secs(10))).expect("an option");
        let since = Instant::now();
        connection
            .write_all(head.as_bytes())
            .and_then(|()| connection.write_all(body.as_bytes()))
            .expect("a request");
        let (mut answer, mut part) = (Vec::new(), [0; 4096]);
        while !answer.windows(5).any(|it| it == b"data:") {
            let count = connection.read(&mut part).expect("an answer");
            assert_ne!(count, 0, "{}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&part[..count]);
        }
        times.push(since.elapsed().as_secs_f64() * 1000.0);
    }
    crate::median(times)
}

async fn write(home: &Home, chat: &str, messages: u64) {
    let journal = Journal::open(&home.path().join(".local/share/dragoman")).expect("a journal");
    let session = SessionId::new(chat);
    let settings = SessionSettings { title: Some(chat.to_owned()), ..SessionSettings::default() };
    let workspace = vec![home.path().to_owned()];
    journal.lease(&session).await.expect("a lease");
    let opened = SessionOpened { workspace, settings, parent: None, client: String::new() };
    journal.append(&session, vec![Fact::SessionOpened(opened)]).await.expect("an append");
    for turn in 0..messages / 2 {
        journal.append(&session, facts_of_turn(turn)).await.expect("an append");
    }
}

fn facts_of_turn(number: u64) -> Vec<Fact> {
    let turn = TurnId(number);
    let item = |id, kind| Item { id: ItemId(id), turn, step: 0, parent: None, kind };
    let text = "What does this function do? ".repeat(5);
    let question = ItemKind::UserMessage { text, parts: Vec::new() };
    let text = "It reads the \"file\", checks it and returns what it found.\n".repeat(10);
    let answer = ItemKind::AgentMessage { text, interrupted: false, provider: None };
    vec![
        Fact::TurnStarted { turn, model: "fake/m1".to_owned() },
        Fact::ItemEnded { item: item(number * 2, question) },
        Fact::ItemEnded { item: item(number * 2 + 1, answer) },
        Fact::UsageChanged { usage: SessionUsage::default() },
        Fact::TurnEnded { turn, outcome: Outcome::Done },
    ]
}
