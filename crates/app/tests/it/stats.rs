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
