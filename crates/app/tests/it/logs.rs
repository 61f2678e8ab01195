//! Logs: to stderr and to a file that is turned over, by level, without secrets, never on stdout.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider};

const SECRET: &str = "sk-secret-of-the-test";

#[tokio::test]
async fn a_server_logs_by_level_without_secrets_and_not_on_stdout() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    // An answer that repeats the key: what a careless server might say.
    fake.answer(Answer::status(401).body(format!("{{\"error\":{{\"message\":\"bad key {SECRET}\"}}}}")));
    home.write(".local/state/dragoman/dragoman.log", &"old line\n".repeat(600_000));
    // Plugins put what the user adds behind the command.
    for arguments in [&["--log-level", "error", "server"][..], &["server", "--verbose"]] {
        let mut command: tokio::process::Command = home.command(arguments).into();
        command.env("DRAGOMAN_CONFIG", fake_provider(fake.url(), "openai-chat").to_string());
        command.stderr(Stdio::piped());
        let mut client = Client::spawn_with(command);
        client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await;
        client.prompt(Some("c"), "Hi").await;
        client.end().await;
    }
    let folder = home.path().join(".local/state/dragoman");
    let log = std::fs::read_to_string(folder.join("dragoman.log")).expect("a log");
    let turned_over = std::fs::read_to_string(folder.join("dragoman.log.1")).expect("the old log");
    assert!(turned_over.starts_with("old line") && !log.contains("old line"), "it is turned over");
    let new = turned_over.trim_start_matches("old line\n").to_owned() + &log;
    assert!(new.contains("calling the model") && !new.contains(SECRET), "{new}");
    let mode = std::fs::metadata(folder.join("dragoman.log")).expect("a log").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A folder of our own is nobody else's.
    let fresh = Home::new();
    let mut client = Client::start(&fresh, &fake_provider(fake.url(), "openai-chat")).await;
    fake.answer(Answer::status(401));
    client.prompt(Some("c"), "Hi").await;
    let folder = fresh.path().join(".local/state/dragoman");
    assert_eq!(std::fs::metadata(folder).expect("a folder").permissions().mode() & 0o777, 0o700);
}
