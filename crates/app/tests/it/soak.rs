//! Many chats, servers and faults for a while: memory stays level, nothing is left behind, nothing runs twice.
//!
//! `make soak` runs it for ten minutes; `make test` for one minute.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, alive, contents, is_finished};
use crate::eca_mcp::{config, is_server};

const CHATS: usize = 50;

/// After so many rounds the chats are compared, deleted and replaced, so that memory can only grow by a leak.
const ROUNDS_OF_A_CHAT: usize = 20;

const SERVERS: [(&str, &str); 5] =
    [("s0", "good"), ("s1", "good"), ("s2", "good"), ("s3", "good"), ("s4", "good")];

/// The second half may use this much more than the first, in KiB.
const LEVEL: u64 = 32 * 1024;

fn duration() -> Duration {
    let asked = std::env::var("DRAGOMAN_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(asked.unwrap_or(60))
}

/// What the model does with a prompt `go N KIND`.
fn respond(fake: &FakeModel) {
    fake.respond_with(|request| {
        let text = request.last_user_text();
        let words: Vec<&str> = text.split_whitespace().collect();
        let token = words.get(1).copied().unwrap_or_default().to_owned();
        let answered = !request.tool_results().is_empty()
            && request.tool_results().last().is_some_and(|result| result.contains(&token));
        match words.get(2).copied().unwrap_or_default() {
            "shell" if !answered => {
                let command = format!("echo {token} >> ran.txt; echo {token}");
                Answer::tool_call("c1", "eca__shell_command", json!({"command": command}))
            }
            "server" if !answered => Answer::tool_call("c1", "s1__echo", json!({"text": token})),
            "fails" => Answer::status(400).body(r#"{"error":{"message":"no"}}"#),
            "cut" => Answer::new().say("half an answer").cut(),
            "stalls" => Answer::new().say("stalling").silence(),
            _ => Answer::text(&format!("answer {token} ")),
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_chats_five_servers_and_faults_leave_nothing_behind() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    respond(&fake);
    let mut config = config(&home, fake.url(), &SERVERS);
    config["chat"] = json!({"title": false});
    let mut client = Client::start(&home, &config).await;
    let pid = client.child.id().expect("a running child");
    // A tool is there when its server is.
    let mut waiting: Vec<&str> = SERVERS.iter().map(|(name, _)| *name).collect();
    while !waiting.is_empty() {
        let message = client.next().await;
        waiting.retain(|name| !is_server(&message, name, "running"));
    }
    let mut soak = Soak::default();
    let (start, length) = (Instant::now(), duration());
    let mut memory: Vec<u64> = Vec::new();
    while start.elapsed() < length || soak.finished < CHATS {
        soak.prompt_all(&mut client).await;
        fake.forget_requests();
        memory.push(resident(pid));
        if soak.rounds.is_multiple_of(ROUNDS_OF_A_CHAT) {
            soak.check_answers(&mut client).await;
            soak.replace_chats(&mut client).await;
        }
    }
    let half = memory.len() / 2;
    let peak = |samples: &[u64]| samples.iter().copied().max().unwrap_or_default();
    let (first, second) = (peak(&memory[..half.max(1)]), peak(&memory[half..]));
    assert!(second <= first + LEVEL, "memory grew from {first} to {second} KiB");
    let children = children_of(pid);
    assert!(children.iter().all(|child| alive(*child)), "a zombie among {children:?}");
    soak.check_answers(&mut client).await;
    soak.check_commands(&home);
    let status = client.end().await;
    assert!(status.success(), "{status}");
    for _ in 0..3000 {
        if !children.iter().any(|child| alive(*child)) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!children.iter().any(|child| alive(*child)), "orphans among {children:?}");
    println!(
        "figure: {} turns in {CHATS} chats with {} servers over {} s, {} stopped or failed; peak memory {first} KiB in \
         the first half, {second} KiB in the second; 0 facts lost, 0 tools run twice, 0 processes left",
        soak.finished,
        SERVERS.len(),
        length.as_secs(),
        soak.faults
    );
}

#[derive(Default)]
struct Soak {
    next: usize,
    rounds: usize,
    /// How often the chats were replaced; part of their names.
    generation: usize,
    finished: usize,
    faults: usize,
    /// Token of each answer of today's chats that was shown whole, with its chat.
    answered: HashMap<String, String>,
    shell: Vec<String>,
}

impl Soak {
    /// One prompt in every chat, all at once; a prompt that stalls is stopped.
    async fn prompt_all(&mut self, client: &mut Client) {
        const KINDS: [&str; 8] = ["text", "shell", "text", "server", "fails", "text", "stalls", "cut"];
        let mut open: HashMap<String, (String, &str)> = HashMap::new();
        for chat in 0..CHATS {
            let (chat, token) = (self.chat_name(chat), format!("t{}", self.next));
            let kind = KINDS[(self.next * 7 + self.next / CHATS) % KINDS.len()];
            self.next += 1;
            let prompt = json!({"chatId": chat, "message": format!("go {token} {kind}"), "trust": true});
            client.ask("chat/prompt", prompt).await;
            if kind == "shell" {
                self.shell.push(token.clone());
            }
            open.insert(chat, (token, kind));
        }
        while !open.is_empty() {
            let message = client.next().await;
            let chat = message["params"]["chatId"].as_str().unwrap_or_default().to_owned();
            let content = &message["params"]["content"];
            if content["text"].as_str().is_some_and(|text| text.contains("stalling")) {
                client.notify("chat/promptStop", json!({"chatId": chat})).await;
            }
            if is_finished(&message)
                && let Some((token, kind)) = open.remove(&chat)
            {
                self.finished += 1;
                if matches!(kind, "text" | "shell" | "server") {
                    self.answered.insert(token, chat);
                } else {
                    self.faults += 1;
                }
            }
        }
        self.rounds += 1;
    }

    fn chat_name(&self, chat: usize) -> String {
        format!("chat-{}-{chat}", self.generation)
    }

    /// Deletes today's chats; the next round begins new ones.
    async fn replace_chats(&mut self, client: &mut Client) {
        for chat in 0..CHATS {
            let id = client.ask("chat/delete", json!({"chatId": self.chat_name(chat)})).await;
            client.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
        }
        self.answered.clear();
        self.generation += 1;
    }

    /// No command ran twice, and none was left out.
    fn check_commands(&self, home: &Home) {
        let ran = std::fs::read_to_string(home.workspace().join("ran.txt")).unwrap_or_default();
        for token in &self.shell {
            let times = ran.lines().filter(|line| line == token).count();
            assert_eq!(times, 1, "the command of {token} ran {times} times");
        }
    }

    /// Every answer that was shown is in its chat.
    async fn check_answers(&self, client: &mut Client) {
        let mut replayed: HashMap<String, String> = HashMap::new();
        for chat in (0..CHATS).map(|chat| self.chat_name(chat)) {
            let id = client.ask("chat/open", json!({"chatId": chat})).await;
            let is_reply = |it: &Value| it["id"] == json!(id) && it.get("method").is_none();
            let messages = client.until(is_reply).await;
            let all = Value::Array(contents(&messages)).to_string();
            replayed.insert(chat, all);
        }
        for (token, chat) in &self.answered {
            assert!(replayed[chat].contains(&format!("answer {token} ")), "{token} is not in {chat}");
        }
    }
}

fn children_of(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).expect("a number")
}
