//! `dragoman stats` over real chats: the figures of the model's own counts, on paper and as a page.

use std::process::Output;

use serde_json::{Value, json};
use testkit::fake_model::Usage;
use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider};

async fn run(home: &Home, config: &Value, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command: tokio::process::Command = home.command(arguments).into();
    command.env("DRAGOMAN_CONFIG", config.to_string()).env("COLUMNS", "100");
    let output: Output = command.output().await.expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn usage_is_counted_by_day_model_project_chat_and_tool() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["fake"]["models"]["m1"] = json!({"cost": {"input": 1, "output": 2}});
    let (code, out, _) = run(&home, &config, &["stats"]).await;
    assert_eq!(code, Some(0));
    assert!(out.contains("Nothing was used"), "{out}");
    home.write("work/<b>.txt", "text");
    fake.answer(Answer::default().call("c1", "eca__read_file", json!({"path": "<b>.txt"})).usage(Usage {
        input: 100,
        output: 10,
        ..Usage::default()
    }));
    fake.answer(Answer::text("Done.").usage(Usage { input: 200, output: 20, ..Usage::default() }));
    let (code, _, err) = run(&home, &config, &["run", "read <b>"]).await;
    assert_eq!(code, Some(0), "{err}");

    // A command that asks no model.
    let (code, _, err) = run(&home, &config, &["run", "--continue", "/taint"]).await;
    assert_eq!(code, Some(0), "{err}");

    let (code, out, err) = run(&home, &config, &["stats", "--json"]).await;
    assert_eq!(code, Some(0), "{err}");
    let stats: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(stats["version"], 1);
    let total = &stats["total"];
    assert!(
        total["outputTokens"].as_u64() >= Some(30) && total["inputTokens"].as_u64() >= Some(300),
        "{total:#}"
    );
    assert_eq!(total["toolCalls"], 1);
    assert_eq!(stats["tools"][0]["tool"], "read_file");
    assert_eq!(stats["models"][0]["model"], "fake/m1");
    assert_eq!(stats["models"].as_array().map(Vec::len), Some(1), "{}", stats["models"]);
    let folder = stats["projects"][0]["project"].as_str().expect("a folder");
    assert!(home.path().display().to_string().contains(folder) || folder.starts_with('/'), "{folder}");
    assert_eq!(stats["days"].as_array().map(Vec::len), Some(1));
    assert_eq!(stats["chats"][0]["outputTokens"], total["outputTokens"]);

    let (_, out, _) = run(&home, &config, &["stats"]).await;
    for words in ["By day", "By model", "fake/m1", "By project", "By tool", "read_file", "█"] {
        assert!(out.contains(words), "{words} is missing:\n{out}");
    }
    let page = home.path().join("usage.html");
    let (code, _, err) = run(&home, &config, &["stats", "--html", &page.display().to_string()]).await;
    assert_eq!(code, Some(0), "{err}");
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.starts_with("<!doctype html>") && html.contains("fake/m1"), "{html}");
    for forbidden in ["<script", "http:", "https:", "src=", "<b>"] {
        assert!(!html.contains(forbidden), "{forbidden} is in the page");
    }
}

/// The calls of a subagent are relayed to the chat that started it; they count once, and there.
#[tokio::test]
async fn what_a_subagent_used_counts_once() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["chat"] = json!({"title": false});
    config["providers"]["fake"]["models"]["m1"] = json!({"cost": {"input": 1_000_000, "output": 0}});
    home.write("work/a.txt", "text");
    let used = |answer: Answer, input: u64| answer.usage(Usage { input, output: 1, ..Usage::default() });
    let spawn = json!({"agent": "explorer", "task": "look"});
    fake.answer(used(Answer::default().call("c1", "eca__spawn_agent", spawn), 1));
    fake.answer(used(Answer::default().call("c2", "eca__read_file", json!({"path": "a.txt"})), 20));
    fake.answer(used(Answer::text("Seen."), 300)).answer(used(Answer::text("Done."), 4000));
    let (code, _, err) = run(&home, &config, &["run", "look"]).await;
    assert_eq!(code, Some(0), "{err}");
    let (_, out, _) = run(&home, &config, &["stats", "--json"]).await;
    let stats: Value = serde_json::from_str(&out).expect("JSON");
    let total = &stats["total"];
    assert_eq!((&total["requests"], &total["inputTokens"]), (&json!(4), &json!(4321)), "{stats:#}");
    assert_eq!(total["cost"], 4321.0);
    assert_eq!(total["toolCalls"], 2, "its calls are its own");
    let costs: Vec<f64> =
        stats["chats"].as_array().into_iter().flatten().filter_map(|it| it["cost"].as_f64()).collect();
    assert_eq!(
        costs.iter().filter(|cost| **cost > 0.0).count(),
        1,
        "the chat that started it pays: {costs:?}"
    );
    let (_, out, _) = run(&home, &config, &["stats", "--here", "--json"]).await;
    let here: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(here["total"]["inputTokens"], 4321, "{here:#}");
}
