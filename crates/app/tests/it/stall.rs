//! A client that stops reading: memory stays where it is, turns go on, and afterwards everything comes in order.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::client::{Home, fake_provider, frame, is_finished};
use crate::scaled;

const CHATS: usize = 200;
const EVERY: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_reader_costs_no_memory_and_loses_nothing() {
    let seconds = scaled(60) as u64;
    let chunks = seconds as usize * 1000 / 20 + 100;
    let (home, fake) = (Home::new(), FakeModel::start().await);
    fake.respond_with(move |_| {
        Answer::new().every(EVERY).chunks((0..chunks).map(|at| if at % 10 == 0 { "|" } else { "." }))
    });
    let mut command: tokio::process::Command = home.command(&["server"]).into();
    command.env("DRAGOMAN_CONFIG", fake_provider(fake.url(), "openai-chat").to_string());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("the program");
    let mut stdin = child.stdin.take().expect("stdin");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));

    let hello = json!({"processId": null, "capabilities": {}, "workspaceFolders": []});
    stdin
        .write_all(&frame(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})))
        .await
        .expect("sent");
    for chat in 0..CHATS {
        let params = json!({"chatId": format!("chat-{chat}"), "message": "go"});
        let prompt = json!({"jsonrpc": "2.0", "id": chat + 1, "method": "chat/prompt", "params": params});
        stdin.write_all(&frame(&prompt)).await.expect("sent");
    }
    fake.wait_for_requests(CHATS).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = resident(child.id().expect("a running child"));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let after = resident(child.id().expect("a running child"));
    assert!(after <= before + 8 * 1024, "grew from {before} to {after} KiB while nobody read");

    let whole: String = (0..chunks).map(|at| if at % 10 == 0 { '|' } else { '.' }).collect();
    let mut texts: HashMap<String, String> = HashMap::new();
    let mut finished = 0;
    while finished < CHATS {
        let message = read(&mut stdout).await;
        let params = &message["params"];
        let chat = params["chatId"].as_str().unwrap_or_default().to_owned();
        if params["role"] == "assistant" {
            let text = texts.entry(chat).or_default();
            text.push_str(params["content"]["text"].as_str().unwrap_or_default());
            assert!(whole.starts_with(text.as_str()), "in order");
        } else if is_finished(&message) {
            assert_eq!(texts.get(&chat), Some(&whole), "{chat} is whole when it ends");
            finished += 1;
        }
    }
}

async fn read(stdout: &mut BufReader<tokio::process::ChildStdout>) -> Value {
    let reading = async {
        let mut length = 0;
        loop {
            let mut line = String::new();
            stdout.read_line(&mut line).await.expect("a header");
            match line.trim_end() {
                "" => break,
                header => length = header["Content-Length: ".len()..].parse().expect("a length"),
            }
        }
        let mut body = vec![0; length];
        stdout.read_exact(&mut body).await.expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    };
    tokio::time::timeout(Duration::from_secs(60), reading).await.expect("the server goes on")
}

/// KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).expect("a number")
}
