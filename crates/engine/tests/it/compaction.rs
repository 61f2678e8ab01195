//! Compaction: by itself, by a command, by a tool.

use domain::command::{Context, UserPrompt};
use domain::model::Tokens;
use domain::{Outcome, Part};
use serde_json::json;
use testkit::{ModelStep, ScriptedAnswer};

use crate::bench::Bench;
use crate::client::{lines, sent};

/// A chat whose next prompt is compacted first.
async fn full_chat() -> (Bench, crate::client::Client) {
    let bench = Bench::with_config(json!({"autoCompactPercentage": 50}));
    bench.models.set_info(|info| info.context_limit = Some(100));
    let mut client = bench.client().await;
    let full = Tokens { input: 90, ..Tokens::default() };
    bench.answers([ScriptedAnswer::text("first").and_usage(full), ScriptedAnswer::text("all in short")]);
    assert_eq!(client.run("one").await, Outcome::Done);
    (bench, client)
}

#[tokio::test(start_paused = true)]
async fn the_prompt_that_triggers_compaction_keeps_its_attachments() {
    let (bench, mut client) = full_chat().await;
    let contexts = vec![
        Context::File { path: "notes.txt".into(), lines: None },
        Context::Image { mime: "image/png".into(), data: "PICTURE".into() },
    ];
    let parts = vec![Part::Image { mime: "image/png".into(), data: "PASTED".into() }];
    let prompt = UserPrompt { text: "look".into(), contexts, parts, ..UserPrompt::default() };
    assert_eq!(client.run_with(prompt).await, Outcome::Done);
    assert_eq!(bench.models.prompts().len(), 3, "an answer, a summary, an answer");
    let sent = bench.last_sent();
    for wanted in ["content of notes.txt", "image PICTURE", "image PASTED", "look"] {
        assert!(sent.contains(&format!("user {wanted}")), "{wanted} is missing in {sent:?}");
    }
    assert!(sent.iter().any(|text| text.ends_with("all in short")), "{sent:?}");
    assert!(!sent.contains(&"agent first".to_owned()), "the old history is gone: {sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_chat_killed_right_after_compaction_reloads_as_compacted() {
    let (bench, mut client) = full_chat().await;
    bench.models.answer(ScriptedAnswer::default().then(ModelStep::Hang));
    client.prompt("two").await.unwrap();
    client.until_progress("Compacting the chat").await;
    client.until_progress("Waiting model").await;
    bench.kill();
    let other = bench.other_process();
    let info = other.join(&client.session).await.load().await.unwrap();
    assert_eq!(info.usage.last.all(), 0, "the context window is empty again");
    assert!(info.usage.spent.iter().any(|spent| spent.purpose == "compact"), "{:?}", info.usage.spent);
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_compaction_ends_the_turn() {
    let (bench, mut client) = full_chat().await;
    bench.models.forget_answers();
    bench.models.answer(ScriptedAnswer::default().then(ModelStep::Hang));
    client.prompt("two").await.unwrap();
    client.until_progress("Compacting the chat").await;
    client.cancel().await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    let state = bench.check_state(&client.session).await;
    assert_eq!(lines(&state), ["user one", "agent first", "user two"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_compacts_and_keeps_the_text_of_the_last_request() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let image = Part::Image { mime: "image/png".into(), data: "OLD".into() };
    let prompt = UserPrompt { text: "draw".into(), parts: vec![image], ..UserPrompt::default() };
    client.run_with(prompt).await;
    bench.models.answer(ScriptedAnswer::text("in short"));
    assert_eq!(client.run("/compact keep names").await, Outcome::Done);
    let asked = bench.models.prompts().last().unwrap().1.clone();
    assert!(asked.system[0].ends_with("The user adds: keep names"), "{:?}", asked.system);
    assert!(sent(&asked.entries)[0].contains("draw"), "the transcript has the conversation");
    client.run("go on").await;
    let sent = bench.last_sent();
    assert!(sent[0].ends_with("word for word:\ndraw"), "{sent:?}");
    assert!(
        !sent.contains(&"user image OLD".to_owned()),
        "an answered request keeps no attachments: {sent:?}"
    );
    let state = bench.check_state(&client.session).await;
    let expected =
        ["user draw", "agent ok", "command /compact keep names", "compaction in short", "user go on"];
    assert_eq!(lines(&state)[..5], expected);
}

#[tokio::test(start_paused = true)]
async fn a_tool_replaces_the_history() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::call("eca__compact", json!({"text": "what matters"}))]);
    assert_eq!(client.run("begin").await, Outcome::Done);
    let sent = bench.last_sent();
    assert!(sent.last().unwrap().ends_with("what matters"), "{sent:?}");
    assert!(sent.contains(&"user begin".to_owned()), "the request stays: {sent:?}");
    bench.check_state(&client.session).await;
}
