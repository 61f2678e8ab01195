//! How the program ends: EOF, exit, SIGTERM, a dead parent; and that it gives memory back while it waits.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider, runs_in};

/// It ends, whatever ends it, even while an answer streams and a command ignores signals.
async fn check(how: &str) {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["toolCall"] = json!({"approval": {"byDefault": "allow"}});
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::new().chunks(["still going"]).silence());
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    client.until(|it| it["params"]["content"]["text"] == "still going").await;
    // A second chat runs a command that does not listen.
    let stubborn = json!({"command": "trap '' TERM HUP INT; echo $$ > pid; while :; do sleep 1; done"});
    fake.answer(Answer::new().call("c", "eca__shell_command", stubborn));
    client.ask("chat/prompt", json!({"chatId": "d", "message": "run it"})).await;
    let child = running(&home.workspace().join("pid")).await;
    match how {
        "eof" => client.close_stdin(),
        "exit" => client.notify("exit", Value::Null).await,
        "sigterm" => {
            let pid = client.child.id().expect("a running child").to_string();
            std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill");
        }
        other => panic!("{other}"),
    }
    // The answer and the command never end by themselves, so this ends only by a shutdown.
    let status = client.child.wait().await.expect("a status");
    assert_eq!(status.code(), Some(0), "{how}");
    assert!(!runs_in(&home.workspace(), child), "{how}: a child was left behind");
    crate::store_commands::check_log_is_written_back(&home);
}

/// The process that wrote its number there.
async fn running(file: &Path) -> u32 {
    for _ in 0..1000 {
        if let Ok(pid) = std::fs::read_to_string(file).unwrap_or_default().trim().parse() {
            return pid;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the command does not run");
}

#[tokio::test]
async fn it_ends_when_stdin_closes() {
    check("eof").await;
}

#[tokio::test]
async fn it_ends_at_exit() {
    check("exit").await;
}

#[tokio::test]
async fn it_ends_at_sigterm() {
    check("sigterm").await;
}

#[tokio::test]
async fn it_ends_with_its_parent() {
    let home = Home::new();
    let mut parent = std::process::Command::new("sleep").arg("600").spawn().expect("a parent");
    let mut client = Client::spawn(&home, &json!({}));
    client
        .request("initialize", json!({"processId": parent.id(), "capabilities": {}, "workspaceFolders": []}))
        .await;
    assert!(client.child.try_wait().expect("a status").is_none());
    parent.kill().expect("kill");
    parent.wait().expect("reaped");
    let status = tokio::time::timeout(Duration::from_secs(10), client.child.wait()).await;
    assert_eq!(status.expect("it ends").expect("a status").code(), Some(0));
}

/// An editor outside the container that the server runs in.
#[tokio::test]
async fn a_parent_that_cannot_be_seen_ends_nothing() {
    let home = Home::new();
    let mut gone = std::process::Command::new("true").spawn().expect("a process");
    let pid = gone.id();
    gone.wait().expect("reaped");
    let mut client = Client::spawn(&home, &json!({}));
    client.request("initialize", json!({"processId": pid, "capabilities": {}, "workspaceFolders": []})).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(client.request("chat/list", json!({})).await["chats"], json!([]));
    assert!(client.end().await.success());
}

#[tokio::test]
async fn before_initialize_there_is_only_an_error() {
    let home = Home::new();
    let mut client = Client::spawn(&home, &json!({}));
    let response = client.response("chat/list", Value::Null).await;
    assert!(response["error"]["code"].is_i64());
    // A client that never says hello ends like any other.
    assert!(client.end().await.success());
}

/// A start maps megabytes of code that nobody needs again; an editor stays open for days.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_only_the_start_needed_is_given_back() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let pid = client.child.id().expect("a running child");
    let kibibytes = |name: &str| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
        let line = status.lines().find(|line| line.starts_with(name)).expect("a line");
        line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).expect("a number")
    };
    let given_back = async {
        while kibibytes("RssFile:") > kibibytes("VmHWM:") / 2 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), given_back).await.expect("most of the code is unmapped");

    fake.answer(Answer::new().chunks(["still here"]));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    client.until(|it| it["params"]["content"]["text"] == "still here").await;
}
