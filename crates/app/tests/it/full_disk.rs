//! A disk that is really full: the data folder is a small file system in a mount namespace of its own.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, answer, contents, fake_provider, is_finished};

/// Mounts a file system of 8 MiB at `$0`, runs the command in it, and then copies what it holds to `$1`.
const IN_A_SMALL_DISK: &str =
    "mount -t tmpfs -o size=8m tmpfs \"$0\" || exit 99; kept=$1; shift; \"$@\"; cp -a \"$0\"/. \"$kept\"";

/// Text of one answer: a few of them fill the disk.
const LONG: usize = 200 * 1024;

fn in_a_small_disk(home: &Home, arguments: &[&str]) -> Command {
    let data = home.path().join(".local/share/dragoman");
    let kept = home.path().join("kept");
    for folder in [&data, &kept] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    let plain = home.command(arguments);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", IN_A_SMALL_DISK]);
    command.arg(data).arg(kept).arg(plain.get_program()).args(plain.get_args());
    command.env_clear().env("HOME", home.path()).current_dir(home.workspace());
    command.env("PATH", std::env::var("PATH").unwrap_or_default());
    command
}

fn can_mount() -> bool {
    let home = Home::new();
    let mut command = in_a_small_disk(&home, &["--version"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Sends prompts until the disk is full; gives back the answers that were whole, and the last messages.
async fn fill(client: &mut Client) -> (Vec<String>, Vec<Value>) {
    let mut acknowledged = Vec::new();
    for number in 0..100 {
        let message = format!("prompt {number}");
        let id = client.ask("chat/prompt", json!({"chatId": "c", "message": message})).await;
        let is_refused = |it: &Value| it["id"] == json!(id) && it.get("error").is_some();
        let messages = client.until(|it| is_finished(it) || is_refused(it)).await;
        let said = answer(&contents(&messages));
        if said.len() < LONG || messages.iter().any(says_full) {
            return (acknowledged, messages);
        }
        acknowledged.push(said);
    }
    panic!("8 MiB took 100 answers of 200 KiB");
}

fn says_full(message: &Value) -> bool {
    message.to_string().contains("chats.sqlite is full")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_named_and_what_was_acknowledged_is_there() {
    if !can_mount() {
        testkit::skip("this system lets no user mount a file system in a namespace");
        return;
    }
    let (home, fake) = (Home::new(), FakeModel::start().await);
    // Noise, so that nothing makes it smaller.
    fake.respond_with(|request| {
        let prompt = request.last_user_text();
        let mut state =
            0x9e37_79b9_7f4a_7c15_u64 ^ prompt.bytes().fold(7, |sum, byte| sum * 31 + u64::from(byte));
        let mut text = format!("to {prompt}: ");
        while text.len() < LONG {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(&format!("{state:016x} "));
        }
        Answer::text(&text)
    });
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["chat"] = json!({"title": false});
    let mut command: tokio::process::Command = in_a_small_disk(&home, &["server"]).into();
    command.env("DRAGOMAN_CONFIG", config.to_string());
    let mut client = Client::spawn_with(command);
    client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await;

    let (acknowledged, last) = fill(&mut client).await;
    assert!(acknowledged.len() > 1, "{} answers", acknowledged.len());
    assert!(last.iter().any(says_full), "{last:?}");
    // The program goes on: it answers, and a further prompt ends with the same reason.
    let id = client.ask("chat/prompt", json!({"chatId": "c", "message": "again"})).await;
    client.response_to(id).await;
    client.end().await;

    // With room again, what was acknowledged is there, and the chat goes on.
    let data = home.path().join(".local/share");
    std::fs::remove_dir(data.join("dragoman")).expect("nothing was written beside the small disk");
    std::fs::rename(home.path().join("kept"), data.join("dragoman")).expect("the content of the small disk");
    let shown = home.command(&["chats", "show", "c"]).output().expect("the program starts");
    let text = String::from_utf8_lossy(&shown.stdout);
    for said in &acknowledged {
        assert!(text.contains(said.trim_end()), "an answer that was shown is lost");
    }
    let mut client = Client::start(&home, &config).await;
    client.ask("chat/prompt", json!({"chatId": "c", "message": "after"})).await;
    let mut messages = Vec::new();
    while !answer(&contents(&messages)).contains("to after: ") {
        messages.extend(client.until(is_finished).await);
    }
    client.end().await;
}
