//! A stop in every place where a turn can wait: the turn ends and nothing of it goes on.
//!
//! The times are a figure, not an assertion: `make figures` compares them with the target of 250 ms.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, alive, fake_provider, is_finished};
use crate::scaled;

/// Stops at full scale, a fifth of them in each place.
const STOPS: usize = 500;

/// Whether a message shows that the turn waits.
type Shows = fn(&Value) -> bool;

/// Where a turn waits.
const PLACES: [(&str, Shows); 5] = [
    ("first byte", |it| it["params"]["content"]["text"] == "Waiting model"),
    ("mid stream", |it| it["params"]["content"]["text"] == "half"),
    ("command", |it| it["params"]["content"]["type"] == "toolCallRunning"),
    ("deaf command", |it| it["params"]["content"]["type"] == "toolCallRunning"),
    ("question", |it| {
        it["params"]["content"]["type"] == "toolCallRun" && it["params"]["content"]["manualApproval"] == true
    }),
];

fn respond(fake: &FakeModel) {
    fake.respond_with(|request| match request.last_user_text().as_str() {
        "mid stream" => Answer::new().say("half").silence(),
        "command" => Answer::tool_call("c", "eca__shell_command", json!({"command": "sleep 61234"})),
        "deaf command" => {
            let line = "trap '' TERM; touch ready; sleep 61234; true";
            Answer::tool_call("c", "eca__shell_command", json!({"command": line}))
        }
        "question" => Answer::tool_call("c", "eca__shell_command", json!({"command": "touch made"})),
        _ => Answer::new().silence(),
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_a_turn_wherever_it_waits() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    respond(&fake);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["chat"] = json!({"title": false});
    let mut client = Client::start(&home, &config).await;
    let mut times: Vec<Duration> = Vec::new();
    for number in 0..scaled(STOPS) {
        let (place, is_there) = PLACES[number % PLACES.len()];
        let chat = format!("chat-{number}");
        let trust = place.ends_with("command");
        client.ask("chat/prompt", json!({"chatId": chat, "message": place, "trust": trust})).await;
        client.until(is_there).await;
        if place == "deaf command" {
            until_it_is_there(&home.workspace().join("ready")).await;
        }
        let start = Instant::now();
        client.notify("chat/promptStop", json!({"chatId": chat})).await;
        client.until(is_finished).await;
        times.push(start.elapsed());
        let _ = std::fs::remove_file(home.workspace().join("ready"));
    }
    for _ in 0..3000 {
        if !goes_on(&home) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!goes_on(&home), "a command goes on");
    assert!(!home.workspace().join("made").exists(), "a call ran that nobody approved");
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_millis();
    println!(
        "figure: {} stops in {} places, stop to idle {} ms (p50), {} ms (p99; target 250), 0 turns went on",
        times.len(),
        PLACES.len(),
        at(50),
        at(99)
    );
}

/// Waits until a command has made its file.
async fn until_it_is_there(path: &std::path::Path) {
    for _ in 0..6000 {
        if path.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the command did not start");
}

/// Whether a command of this test runs.
fn goes_on(home: &Home) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).any(|pid: u32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let place = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        line.contains("61234") && place.starts_with(home.path()) && alive(pid)
    })
}
