//! Two hundred planted secrets: none is in a log, an error, an export, a report or what a client is sent.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home};

/// In each of five places: variables of the environment, keys, headers of providers, variables and headers of servers.
const EACH: usize = 40;
const PLACES: [&str; 5] = ["environment", "key", "header", "server-variable", "server-header"];

fn secret(place: &str, number: usize) -> String {
    // No part of it is a word that could be in an output by chance.
    format!("planted-{place}-{:016x}", (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn secrets() -> Vec<String> {
    PLACES.iter().flat_map(|place| (0..EACH).map(move |number| secret(place, number))).collect()
}

fn config(url: &str) -> Value {
    let mut providers = Map::new();
    let provider = |key: String, header: Option<String>| {
        let headers = header.map_or(json!({}), |header| json!({"x-tenant-token": header}));
        json!({"api": "openai-chat", "url": url, "key": key, "extraHeaders": headers, "models": {"m1": {}}})
    };
    for number in 0..EACH {
        let header = Some(secret("header", number));
        providers.insert(format!("key{number}"), provider(secret("key", number), header));
        providers.insert(format!("env{number}"), provider(format!("${{env:PLANTED_{number}_TOKEN}}"), None));
    }
    let mut servers = Map::new();
    for number in 0..EACH {
        let variable = json!({"SERVICE_TOKEN": secret("server-variable", number)});
        let headers = json!({"Authorization": format!("Bearer {}", secret("server-header", number))});
        // They never start: a program that is not there, and an address that refuses.
        let program = json!({"command": "/nonexistent/program", "env": variable});
        servers.insert(format!("program{number}"), program);
        servers
            .insert(format!("address{number}"), json!({"url": "http://127.0.0.1:9/mcp", "headers": headers}));
    }
    json!({"defaultModel": "key0/m1", "providers": providers, "mcpServers": servers, "logLevel": "trace"})
}

fn with_environment(mut command: std::process::Command, config: &Value) -> tokio::process::Command {
    command.env("DRAGOMAN_CONFIG", config.to_string());
    for number in 0..EACH {
        command.env(format!("PLANTED_{number}_TOKEN"), secret("environment", number));
    }
    command.into()
}

fn check(place: &str, text: &str) {
    for secret in secrets() {
        assert!(!text.contains(&secret), "{secret} is in {place}: {text}");
    }
}

async fn run(home: &Home, config: &Value, arguments: &[&str]) -> String {
    let mut command = with_environment(home.command(arguments), config);
    let running = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output: Output =
        tokio::time::timeout(Duration::from_secs(120), running).await.expect("it ends").expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// The model repeats in an error, in its words and in its calls what it was sent; tools print the environment.
fn answer_with_echoes(fake: &FakeModel) {
    fake.respond_with(|request| {
        let authorization = request.header("authorization").unwrap_or_default().to_owned();
        let token = request.header("x-tenant-token").unwrap_or_default().to_owned();
        let message = format!("the key {authorization} of {token} is not valid");
        match request.last_user_text() {
            text if text.contains("environment") && request.tool_results().is_empty() => Answer::tool_call(
                "c1",
                "eca__shell_command",
                json!({"command": "env; cat /proc/$PPID/environ"}),
            ),
            text if text.contains("environment") => Answer::text("done"),
            _ => Answer::status(401).body(json!({"error": {"message": message}}).to_string()),
        }
    });
}

#[tokio::test]
async fn two_hundred_planted_secrets_are_nowhere() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    answer_with_echoes(&fake);
    let config = config(fake.url());
    assert_eq!(secrets().len(), 200);
    let mut client =
        Client::spawn_with(with_environment(home.command(&["--log-level", "trace", "server"]), &config));
    let mut shown = client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await.to_string();
    for (number, model) in ["key0/m1", "key7/m1", "env3/m1", "env9/m1"].into_iter().enumerate() {
        let chat = format!("c{number}");
        for text in ["Hi", "print the environment", "/config", "/doctor"] {
            let prompt = json!({"chatId": chat, "message": text, "model": model, "trust": true});
            let (reply, contents) = client.prompt_with(prompt).await;
            shown += &format!("{reply}{}", Value::Array(contents));
        }
    }
    assert!(
        shown.contains("is not valid") && shown.contains("PATH="),
        "the model and the tool were heard: {shown}"
    );
    check("what the client was sent", &shown);
    client.end().await;
    for arguments in [
        &["doctor"][..],
        &["config", "show"],
        &["config", "check"],
        &["models"],
        &["chats", "list", "--json"],
        &["chats", "show", "c0"],
        &["chats", "export", "c0"],
        &["chats", "export", "c2"],
        &["run", "-m", "env5/m1", "Hi"],
        &["explain-permission", "shell_command", "{\"command\": \"env\"}"],
    ] {
        let text = run(&home, &config, arguments).await;
        assert!(!text.is_empty(), "{arguments:?}");
        check(&format!("{arguments:?}"), &text);
    }
    let log = home.path().join(".local/state/dragoman/dragoman.log");
    check("the log", &std::fs::read_to_string(log).expect("a log"));
    println!(
        "figure: 200 planted secrets, 0 found in logs, errors, exports, reports and messages to the client"
    );
}
