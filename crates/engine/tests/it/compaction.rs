//! Compaction: by itself, by a command, by a tool.

use domain::command::{Context, TurnLimits, UserPrompt};
use domain::model::Tokens;
use domain::{Failure, Outcome, Part};
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
    let texts = sent(&asked.entries);
    assert!(texts.last().is_some_and(|last| last.contains("The user adds: keep names")), "{texts:?}");
    assert!(texts.contains(&"user draw".to_owned()), "the conversation stands before it: {texts:?}");
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

fn too_long() -> Failure {
    Failure { is_too_long: true, ..Failure::provider("The chat no longer fits.") }
}

const FIRST: &str = "Build the shop in Rust. Never touch config.lock.";

/// A chat of about so many bytes, whose first message has a goal and a prohibition.
async fn large_chat(size: usize) -> (Bench, crate::client::Client) {
    let bench = Bench::with_config(json!({"autoCompactPercentage": 100}));
    let mut client = bench.client().await;
    assert_eq!(client.run(FIRST).await, Outcome::Done);
    for at in 0..size.div_ceil(50_000) {
        let said: String = (0..5_000).map(|word| format!("{at:03} {word:05} ")).collect();
        bench.models.answer(ScriptedAnswer::text(&said));
        assert_eq!(client.run(&format!("Step {at}.")).await, Outcome::Done);
    }
    (bench, client)
}

#[tokio::test(start_paused = true)]
async fn the_users_words_survive_one_and_three_compactions_of_a_large_chat() {
    for (size, window) in [(252_000, None), (252_000, Some(32_768)), (1_000_000, Some(200_000))] {
        let (bench, mut client) = large_chat(size).await;
        bench.models.set_info(|info| info.context_limit = window);
        // It does what it must not do as soon as nothing forbids it.
        bench.models.answer_by(|prompt| match sent(&prompt.entries).join("\n").contains(FIRST) {
            true => ScriptedAnswer::text("in short"),
            false => ScriptedAnswer::call("eca__write", json!({"path": "config.lock"})),
        });
        for round in 1..=3 {
            let before = bench.models.prompts().len();
            assert_eq!(client.run("/compact").await, Outcome::Done);
            let asked = bench.models.prompts().split_off(before);
            let texts: Vec<String> = asked.iter().flat_map(|(_, prompt)| sent(&prompt.entries)).collect();
            assert!(texts[0].contains(FIRST), "{size} {round}: the summary begins with the beginning");
            if let Some(window) = window {
                assert!(texts.iter().all(|text| text.len() as u64 <= window * 3), "each part fits");
            }
            if round == 1 {
                let last = size.div_ceil(50_000) - 1;
                let whole = texts.concat();
                let is_there = |at: usize| whole.contains(&format!("{at:03} 04999"));
                assert!((0..=last).all(is_there), "{size}: nothing of the chat is left out");
            }
            assert_eq!(client.run(&format!("Go on {round}.")).await, Outcome::Done);
            let sent = bench.last_sent().join("\n");
            for wanted in [FIRST, "Step 0.", "Step 4.", "in short", &format!("Go on {round}.")] {
                assert!(sent.contains(wanted), "{size} {round}: {wanted} is missing in {sent}");
            }
        }
        let state = bench.check_state(&client.session).await;
        assert!(crate::client::calls(&state).is_empty(), "{size}: the prohibition is obeyed");
    }
}

/// The provider has the chat in its cache: the request for a summary only adds to it.
#[tokio::test(start_paused = true)]
async fn a_summary_is_asked_for_at_the_end_of_the_chat_itself() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::call("eca__read", json!({"text": "much"}))]);
    client.run(FIRST).await;
    let before = bench.models.prompts().pop().unwrap().1;
    bench.models.answer(ScriptedAnswer::text("in short"));
    assert_eq!(client.run("/compact").await, Outcome::Done);
    let asked = bench.models.prompts().pop().unwrap().1;
    assert_eq!(
        (&asked.system, &asked.tools, &asked.session),
        (&before.system, &before.tools, &before.session)
    );
    assert!(asked.entries.starts_with(&before.entries), "the cached beginning is the same");
    let request = sent(&asked.entries).pop().unwrap();
    assert!(request.contains("Summarize this conversation") && request.contains("call no tool"), "{request}");
    // A model that goes on with the work instead is given the transcript.
    client.run("Go on.").await;
    bench.answers([
        ScriptedAnswer::text("Let me write it first.").and_call("eca__write", json!({"text": "x"})),
        ScriptedAnswer::text("by the transcript"),
    ]);
    assert_eq!(client.run("/compact").await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    assert!(lines(&state).contains(&"compaction by the transcript".to_owned()), "{:?}", lines(&state));
}

/// Old results go first: the model gets the rest of the chat word for word, and no summary is paid for.
#[tokio::test(start_paused = true)]
async fn old_tool_results_are_left_out_where_that_is_enough_and_can_be_recalled() {
    let bench = Bench::new();
    bench.models.set_info(|info| info.context_limit = Some(60_000));
    let mut client = bench.client().await;
    let mut reading = ScriptedAnswer::default();
    for at in 0..100 {
        let text = format!("result {at:02} {}", "x".repeat(1_000));
        reading = reading.and_call("eca__read", json!({"text": text}));
    }
    let full = Tokens { input: 52_000, ..Tokens::default() };
    bench.answers([reading, ScriptedAnswer::text("read").and_usage(full)]);
    assert_eq!(client.run(FIRST).await, Outcome::Done);
    assert_eq!(client.run("Go on.").await, Outcome::Done);
    assert_eq!(bench.models.prompts().len(), 3, "no request for a summary");
    let results: Vec<String> =
        bench.last_sent().into_iter().filter(|text| text.starts_with("result ")).collect();
    let whole = results.iter().filter(|text| text.contains("xxx")).count();
    assert_eq!((results.len(), whole), (100, 8), "{:?}", results[0]);
    assert!(results[0].contains("recall"), "{}", results[0]);
    let state = bench.check_state(&client.session).await;
    let first = state.items().iter().find(|item| matches!(item.kind, domain::ItemKind::ToolCall(_))).unwrap();
    bench.answers([ScriptedAnswer::call("eca__recall", json!({"id": first.id.to_string()}))]);
    assert_eq!(client.run("What was the first?").await, Outcome::Done);
    assert!(bench.last_sent().iter().any(|text| text.contains("result 00 xxx")), "{:?}", bench.last_sent());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_refused_as_too_long_is_compacted_and_repeated() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    client.run(FIRST).await;
    bench.answers([
        ScriptedAnswer::fails(too_long()),
        ScriptedAnswer::text("in short"),
        ScriptedAnswer::text("done"),
    ]);
    assert_eq!(client.run("two").await, Outcome::Done);
    assert_eq!(bench.models.prompts().len(), 4, "an answer, a refusal, a summary, an answer");
    let sent = bench.last_sent().join("\n");
    assert!(sent.contains(FIRST) && sent.contains("in short") && sent.contains("two"), "{sent}");
    let state = bench.check_state(&client.session).await;
    assert_eq!(
        lines(&state),
        [&format!("user {FIRST}"), "agent ok", "user two", "compaction in short", "agent done"]
    );
    // In the middle of a turn as well, and the chat goes on.
    bench.answers([
        ScriptedAnswer::call("eca__read", json!({"text": "much"})),
        ScriptedAnswer::fails(too_long()),
        ScriptedAnswer::text("shorter"),
        ScriptedAnswer::text("finished"),
    ]);
    assert_eq!(client.run("three").await, Outcome::Done);
    assert!(bench.last_sent().iter().any(|text| text.ends_with("shorter")), "{:?}", bench.last_sent());
    bench.check_state(&client.session).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_no_summary_can_shorten_fails_with_the_reason() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    // Nothing precedes the request.
    bench.answers([ScriptedAnswer::fails(too_long())]);
    let Outcome::Failed { failure } = client.run("one").await else { panic!("it cannot be sent") };
    assert_eq!((failure.message.as_str(), failure.is_too_long), ("The chat no longer fits.", false));
    assert_eq!(bench.models.prompts().len(), 1);
    // Refused again after the summary.
    bench.answers([
        ScriptedAnswer::fails(too_long()),
        ScriptedAnswer::text("in short"),
        ScriptedAnswer::fails(too_long()),
    ]);
    assert!(matches!(client.run("two").await, Outcome::Failed { .. }));
    assert_eq!(bench.models.prompts().len(), 4);
    bench.check_state(&client.session).await;
}

#[tokio::test(start_paused = true)]
async fn a_summarizer_with_a_smaller_window_gets_smaller_parts() {
    let (bench, mut client) = large_chat(100_000).await;
    bench.models.answer_by(|prompt| {
        let length: usize = sent(&prompt.entries).iter().map(String::len).sum();
        let is_summary =
            prompt.session.is_none() || sent(&prompt.entries).concat().contains("write the summary alone");
        match is_summary && length > 40_000 {
            true => ScriptedAnswer::fails(too_long()),
            false => ScriptedAnswer::text("in short"),
        }
    });
    assert_eq!(client.run("/compact").await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    assert!(lines(&state).contains(&"compaction in short".to_owned()), "{:?}", lines(&state));
    let usage = state.usage().spent.iter().find(|spent| spent.purpose == "compact").cloned();
    assert_eq!(usage.map(|spent| spent.calls), Some(1), "one compaction, however many requests it took");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_fit_is_compacted_before_it_is_sent_and_the_user_is_warned() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    client.run(FIRST).await;
    bench.models.answer(ScriptedAnswer::text(&"word ".repeat(64_000)));
    client.run("Say much.").await;
    // Another model with a window of 32 k takes over a chat of 80 k.
    bench.models.set_info(|info| info.context_limit = Some(32_768));
    bench.models.answer_by(|_| ScriptedAnswer::text("in short"));
    let before = bench.models.prompts().len();
    assert_eq!(client.run("Go on.").await, Outcome::Done);
    let asked = bench.models.prompts().split_off(before);
    let lengths = asked.iter().map(|(_, prompt)| sent(&prompt.entries).concat().len());
    assert!(lengths.max().is_some_and(|most| most < 4 * 32_768), "nothing longer than the window was sent");
    let sent = bench.last_sent().join("\n");
    assert!(sent.contains(FIRST) && sent.contains("in short"), "{sent}");
    let session = client.session.clone();
    let notices = |bench: &Bench| {
        let facts = bench.store.facts(&session).into_iter();
        let texts = facts.filter_map(|recorded| match recorded.fact {
            domain::Fact::Notice { notice } => Some(notice.text),
            _ => None,
        });
        texts.filter(|text| text.contains("the window of test/one holds 32768")).count()
    };
    assert_eq!(notices(&bench), 0, "a summary was enough");
    // A request that is too long by itself is sent all the same: an estimate is no proof.
    assert_eq!(client.run(&"word ".repeat(64_000)).await, Outcome::Done);
    assert_eq!(notices(&bench), 1);
    bench.check_state(&client.session).await;
}

/// Not only prompts are the user's words: text for the running turn and the reason of a refusal are too.
#[tokio::test(start_paused = true)]
async fn what_the_user_said_in_other_ways_is_kept_too() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.answers([
        ScriptedAnswer::call("eca__write", json!({"text": "x"})),
        ScriptedAnswer::text("understood"),
    ]);
    client.prompt("Write it.").await.unwrap();
    let ask = client.next_ask().await;
    client.steer(Some("Use tabs, never spaces.")).await.unwrap();
    let reason = Some("the file belongs to Ann".to_owned());
    client.answer(ask.id, domain::Answer::Deny { remember: false, reason }).await;
    assert_eq!(client.turn_end().await, Outcome::Done);
    for round in ["first", "second"] {
        bench.models.answer(ScriptedAnswer::text(round));
        assert_eq!(client.run("/compact").await, Outcome::Done);
        client.run(&format!("Go on, {round}.")).await;
        let sent = bench.last_sent().join("\n");
        for wanted in ["Write it.", "Use tabs, never spaces.", "the file belongs to Ann", round] {
            assert!(sent.contains(wanted), "{round}: {wanted} is missing in {sent}");
        }
        assert!(!sent.contains("understood"), "answers are in the summary: {sent}");
    }
    // Another process goes on with the same words.
    client.close().await.unwrap();
    let other = bench.other_process();
    let mut again = other.join(&client.session).await;
    again.load().await.unwrap();
    assert_eq!(again.run("And now?").await, Outcome::Done);
    let sent = other.last_sent().join("\n");
    assert!(sent.contains("Use tabs, never spaces.") && sent.contains("And now?"), "{sent}");
}

/// The window of a model counts, not only what the last answer used.
#[tokio::test(start_paused = true)]
async fn a_long_request_alone_does_not_compact_a_short_chat() {
    let bench = Bench::new();
    bench.models.set_info(|info| info.context_limit = Some(8_000));
    let mut client = bench.client().await;
    client.run("one").await;
    // The instructions and tools are within the window, the request is within it too.
    assert_eq!(client.run(&"word ".repeat(1_000)).await, Outcome::Done);
    assert_eq!(bench.models.prompts().len(), 2, "nothing is compacted");
    bench.models.answer_by(|_| ScriptedAnswer::text("in short"));
    assert_eq!(client.run(&"word ".repeat(5_400)).await, Outcome::Done);
    assert!(bench.models.prompts().len() >= 4, "a summary makes room for it");
    let state = bench.check_state(&client.session).await;
    assert!(lines(&state).contains(&"compaction in short".to_owned()));
    // No summary can make room for a request that is longer than the window.
    let before = bench.models.prompts().len();
    assert_eq!(client.run(&"word ".repeat(12_000)).await, Outcome::Done);
    assert_eq!(bench.models.prompts().len(), before + 1, "nothing is paid for in vain");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_writes_no_summary_leaves_the_chat_as_it_is() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    client.run("one").await;
    bench.answers([ScriptedAnswer::default(), ScriptedAnswer::default()]);
    let Outcome::Failed { failure } = client.run("/compact").await else { panic!("there is no summary") };
    assert!(failure.message.contains("wrote no summary"), "{failure}");
    client.run("two").await;
    assert!(bench.last_sent().contains(&"agent ok".to_owned()), "{:?}", bench.last_sent());
}

/// A text for the running turn does not take the place of the request with its attachments.
#[tokio::test(start_paused = true)]
async fn a_steered_request_keeps_its_attachments() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    client.run("one").await;
    bench.answers([
        ScriptedAnswer::call("eca__write", json!({"text": "x"})),
        ScriptedAnswer::fails(too_long()),
        ScriptedAnswer::text("in short"),
        ScriptedAnswer::text("done"),
    ]);
    let parts = vec![Part::Image { mime: "image/png".into(), data: "PASTED".into() }];
    let prompt = UserPrompt { text: "look".into(), parts, ..UserPrompt::default() };
    client.prompt_with(prompt).await.unwrap();
    let ask = client.next_ask().await;
    client.steer(Some("and hurry")).await.unwrap();
    client.answer(ask.id, domain::Answer::Allow { remember: false }).await;
    assert_eq!(client.turn_end().await, Outcome::Done);
    let sent = bench.last_sent();
    for wanted in ["image PASTED", "look", "and hurry"] {
        assert!(sent.contains(&format!("user {wanted}")), "{wanted} is missing in {sent:?}");
    }
    bench.check_state(&client.session).await;
}

/// Each request for a part of a summary is within the caps, not only the first one.
#[tokio::test(start_paused = true)]
async fn a_cap_holds_between_the_parts_of_a_summary() {
    let (bench, mut client) = large_chat(100_000).await;
    bench.models.set_info(|info| info.context_limit = Some(8_000));
    let used = Tokens { input: 100, ..Tokens::default() };
    bench.models.answer_by(move |_| ScriptedAnswer::text("in short").and_usage(used));
    let before = bench.models.prompts().len();
    let limits = TurnLimits { max_cost: Some(0.000_05), ..TurnLimits::default() };
    let prompt = UserPrompt { text: "go on".into(), limits, ..UserPrompt::default() };
    let Outcome::Failed { failure } = client.run_with(prompt).await else { panic!("the cap is reached") };
    assert_eq!(failure.kind, domain::FailureKind::Quota, "{failure}");
    assert_eq!(bench.models.prompts().len(), before + 1, "a request costs twice the cap");
    bench.check_state(&client.session).await;
}
