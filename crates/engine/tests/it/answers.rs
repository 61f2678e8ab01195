//! Answers as they stream: their ends, stops, steering, and what reaches the journal when.

use std::time::Duration;

use domain::command::{AcceptedStatus, Context, SessionSettings, UserPrompt};
use domain::event::{Channel, EventBody};
use domain::item::ItemKind;
use domain::model::{BlockKind, StopReason};
use domain::tool_call::{Origin, ToolState};
use domain::{Answer, Command, Fact, Failure, FailureKind, ItemId, ModelEvent, Outcome};
use serde_json::json;
use testkit::{ModelStep, ScriptedAnswer};

use crate::bench::Bench;
use crate::client::{calls, lines, person};

fn event(event: ModelEvent) -> ModelStep {
    ModelStep::Event(event)
}

#[tokio::test(start_paused = true)]
async fn an_answer_ends_as_the_model_says() {
    let refused = StopReason::Refused { reason: "No.".into() };
    let cut = StopReason::Cut { message: "The line broke.".into() };
    let cases = [
        (StopReason::Done, Outcome::Done, "agent text"),
        (StopReason::MaxTokens, Outcome::MaxTokens, "agent text"),
        (refused, Outcome::Refused { reason: "No.".into() }, "agent text"),
        (
            cut,
            Outcome::Failed { failure: Failure::provider("The line broke.").hint("Ask to continue.") },
            "agent text",
        ),
    ];
    for (reason, outcome, line) in cases {
        let bench = Bench::new();
        let mut client = bench.client().await;
        bench.models.answer(ScriptedAnswer::text("text").ending(reason));
        assert_eq!(client.run("hello").await, outcome);
        let state = bench.check_state(&client.session).await;
        assert_eq!(lines(&state), ["user hello", line]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_keeps_the_text_and_drops_the_calls() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let answer = ScriptedAnswer::text("text").and_call("eca__write", json!({}));
    let open = ModelEvent::BlockStarted { block: 9, kind: BlockKind::Text };
    let delta = ModelEvent::BlockDelta { block: 9, text: "half".into() };
    bench.models.answer(answer.then(event(open)).then(event(delta)).then(ModelStep::Hang));
    client.prompt("hello").await.unwrap();
    client.until(|body| matches!(body, EventBody::Delta(delta) if delta.text == "half").then_some(())).await;
    client.cancel().await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    let state = bench.check_state(&client.session).await;
    assert_eq!(lines(&state)[..2], ["user hello", "agent text"]);
    assert_eq!(lines(&state)[3], "interrupted half");
    assert_eq!(calls(&state)[0].state, ToolState::Stopped { unknown: false });
    client.run("go on").await;
    let sent = bench.last_sent();
    assert_eq!(sent[1..4], ["agent text", "call eca__write", "agent half"]);
    assert_eq!(sent[4], "result The user stopped the turn before this call ran.");
}

#[tokio::test(start_paused = true)]
async fn one_call_is_stopped_and_the_turn_goes_on() {
    for (tool, given) in [("eca__wait", "stopped"), ("eca__stubborn", "")] {
        let bench = Bench::new();
        let mut client = bench.client().await;
        bench.answers([
            ScriptedAnswer::call(tool, json!({})).and_call("eca__read", json!({"text": "read"})),
            ScriptedAnswer::text("Then without it."),
        ]);
        client.prompt("wait").await.unwrap();
        let running = client
            .until_fact(|fact| {
                let (Fact::ItemStarted { item } | Fact::ItemChanged { item }) = fact else { return None };
                let ItemKind::ToolCall(call) = &item.kind else { return None };
                (call.state == ToolState::Running && tool.ends_with(&call.name)).then_some(item.id)
            })
            .await;
        client.until_progress("Calling tool").await;
        assert!(client.cancel_call(ItemId(999)).await.unwrap_err().to_string().contains("does not run"));
        client.cancel_call(running).await.unwrap();
        assert_eq!(client.turn_end().await, Outcome::Done);
        let state = bench.check_state(&client.session).await;
        let calls = calls(&state);
        assert_eq!((&calls[0].state, calls[0].error), (&ToolState::Stopped { unknown: false }, true));
        assert_eq!((&calls[1].state, calls[1].error), (&ToolState::Done, false), "the other call runs");
        let sent = bench.last_sent().join("\n");
        assert!(sent.contains(given) && sent.contains("The user stopped this call."), "{sent}");
        assert!(client.cancel_call(running).await.is_err(), "it is over");
    }
}

/// The tool had its answer before the stop came; its result stays, and a replay says the same.
#[tokio::test(start_paused = true)]
async fn a_stop_after_an_answered_question_keeps_its_result() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let hangs = ScriptedAnswer::default().then(ModelStep::Hang);
    bench.answers([ScriptedAnswer::call("eca__ask", json!({"text": "which?"})), hangs]);
    client.prompt("ask").await.unwrap();
    let ask = client.next_ask().await.id;
    client.answer(ask, Answer::Text { text: "this".into() }).await;
    client
        .until_fact(|fact| {
            let Fact::ItemEnded { item } = fact else { return None };
            matches!(item.kind, ItemKind::ToolCall(_)).then_some(())
        })
        .await;
    client.cancel().await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    let state = bench.check_state(&client.session).await;
    assert_eq!(calls(&state)[0].state, ToolState::Done);
}

#[tokio::test(start_paused = true)]
async fn shown_text_is_in_the_journal_within_a_quarter_of_a_second() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let open = ModelEvent::BlockStarted { block: 9, kind: BlockKind::Text };
    let mut answer = ScriptedAnswer::default().then(event(open));
    for _ in 0..30 {
        let delta = ModelEvent::BlockDelta { block: 9, text: "word ".into() };
        answer = answer.then(event(delta)).then(ModelStep::Wait(Duration::from_millis(50)));
    }
    bench.models.answer(answer.then(ModelStep::Hang));
    client.prompt("hello").await.unwrap();
    let mut shown = 0;
    while shown < 150 {
        if let EventBody::Delta(delta) = client.next().await {
            shown = delta.offset + delta.text.len() as u64;
            let stored = lines(&bench.stored_state(&client.session)).pop().unwrap();
            let stored = (stored.len() - "agent ".len()) as u64;
            assert!(shown <= stored + 25, "{shown} bytes were shown and {stored} stored");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn broken_calls_are_explained_to_the_model() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let call = BlockKind::ToolCall { call_id: String::new(), name: "eca__read".into() };
    let broken = ScriptedAnswer::default()
        .then(event(ModelEvent::BlockStarted { block: 9, kind: call }))
        .then(event(ModelEvent::BlockDelta { block: 9, text: "{\"a\":".into() }))
        .then(event(ModelEvent::BlockEnded { block: 9, provider: None }))
        .and_call("eca__nothing", json!({}))
        .and_call("weather__today", json!({}))
        .and_call("eca__read", json!([1]))
        .and_call("eca__read", json!({"invalid": 1}));
    bench.models.answer(broken);
    assert_eq!(client.run("hello").await, Outcome::Done);
    let sent = bench.last_sent();
    for wanted in
        ["not valid JSON", "There is no tool nothing", "must be a JSON object", "The input is invalid."]
    {
        assert!(sent.iter().any(|text| text.contains(wanted)), "{wanted}: {sent:?}");
    }
    let state = bench.check_state(&client.session).await;
    assert!(calls(&state).iter().all(|call| call.error && call.state == ToolState::Done));
    let unknown: Vec<_> = calls(&state)[1..3]
        .iter()
        .map(|call| (call.server.clone(), call.name.clone(), call.origin))
        .collect();
    let named = |server: &str, name: &str, origin| (server.to_owned(), name.to_owned(), origin);
    assert_eq!(unknown, [named("eca", "nothing", Origin::Native), named("weather", "today", Origin::Mcp)]);
}

#[tokio::test(start_paused = true)]
async fn steering_reaches_the_running_turn_once() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    assert!(client.steer(Some("too early")).await.is_err());
    bench.answers([
        ScriptedAnswer::call("eca__ask", json!({"text": "which?"})),
        ScriptedAnswer::text("working").then(ModelStep::Wait(Duration::from_secs(1))),
    ]);
    client.prompt("hello").await.unwrap();
    let ask = client.next_ask().await;
    client.steer(Some("never mind")).await.unwrap();
    client.steer(None).await.unwrap();
    client.steer(Some("use red")).await.unwrap();
    client.steer(Some("and blue")).await.unwrap();
    client.answer(ask.id, domain::Answer::Text { text: "this".into() }).await;
    client.until_progress("Generating").await;
    assert_eq!(bench.last_sent().last().unwrap(), "user use red\nand blue");
    client.steer(Some("at the end")).await.unwrap();
    assert_eq!(client.turn_end().await, Outcome::Done);
    assert_eq!(bench.last_sent().last().unwrap(), "user at the end");
    assert!(client.steer(Some("too late")).await.is_err());
    client.run("next").await;
    assert_eq!(bench.last_sent().last().unwrap(), "user next", "nothing is left over");
    bench.check_state(&client.session).await;
}

#[tokio::test(start_paused = true)]
async fn a_chat_answers_one_prompt_at_a_time() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.models.answer(ScriptedAnswer::text("slow").then(ModelStep::Wait(Duration::from_secs(5))));
    client.prompt("one").await.unwrap();
    let refused = client.prompt("two").await.unwrap_err();
    assert!(refused.message.contains("still answering (turn-1)"), "{refused}");
    assert_eq!(client.turn_end().await, Outcome::Done);
    assert_eq!(client.prompt("three").await.unwrap().turn.0, 2, "at once after the end");
    assert_eq!(client.turn_end().await, Outcome::Done);
    bench.check_state(&client.session).await;
}

#[tokio::test(start_paused = true)]
async fn contexts_are_gathered_beside_the_actor() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let file = |path: &str| Context::File { path: path.into(), lines: None };
    let contexts = vec![file("a.txt"), Context::RepoMap];
    let prompt = UserPrompt { text: "read".into(), contexts, ..UserPrompt::default() };
    assert_eq!(client.run_with(prompt).await, Outcome::Done);
    let sent = bench.last_sent();
    assert_eq!(sent[0], "user content of a.txt");
    assert!(sent[1].starts_with("user (A context could not be added"), "{sent:?}");
    assert_eq!(sent[2], "user read");
    let prompt = UserPrompt { text: "slow".into(), contexts: vec![file("slow")], ..UserPrompt::default() };
    client.prompt_with(prompt).await.unwrap();
    client.until_progress("Reading the contexts").await;
    client.cancel().await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    let state = bench.check_state(&client.session).await;
    assert_eq!(lines(&state).last().unwrap(), "user slow", "what was typed is kept");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_cannot_be_found_is_explained_in_the_chat() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let change = domain::command::SessionSettings { model: Some("nowhere/x".into()), ..Default::default() };
    let prompt = UserPrompt { text: "hello".into(), change, ..UserPrompt::default() };
    let accepted = client.prompt_with(prompt).await.unwrap();
    assert_eq!(accepted.status, AcceptedStatus::Error);
    let outcome = client.turn_end().await;
    assert!(matches!(outcome, Outcome::Failed { failure } if failure.kind == FailureKind::Config));
    let state = bench.check_state(&client.session).await;
    assert_eq!(lines(&state), ["user hello"]);
    assert_eq!(state.settings().title.as_deref(), Some("hello"));
}

#[tokio::test(start_paused = true)]
async fn a_completion_is_no_chat_and_ends_by_its_deadline() {
    let bench = Bench::new();
    let client = bench.client().await;
    let completion = domain::command::Completion {
        purpose: "test".into(),
        system: "Be brief.".into(),
        messages: vec!["a".into(), "b".into(), "c".into()],
        output_schema: None,
        middle: None,
        model: None,
        no_local: false,
        gate: Default::default(),
        deadline: Duration::from_secs(9),
    };
    let complete = async |completion| {
        client.call(|_, reply| Command::Complete { completion, deltas: None, reply }).await
    };
    bench.answers([ScriptedAnswer::text("done"), ScriptedAnswer::text("never").then(ModelStep::Hang)]);
    assert_eq!(complete(completion.clone()).await.unwrap().text, "done");
    assert_eq!(bench.last_sent(), ["user a", "agent b", "user c"]);
    let late = complete(completion).await.unwrap_err();
    assert!(late.message.contains("within 9 s"), "{late}");
    assert_eq!(bench.store.facts(&client.session).len(), 1, "only the chat's opening");
}

#[tokio::test(start_paused = true)]
async fn facts_come_in_order_and_text_follows_the_item() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.models.answer(ScriptedAnswer::text("some words"));
    client.run("hello").await;
    let (mut numbers, mut started, mut text) = (Vec::new(), false, String::new());
    for event in &client.events {
        match &event.body {
            EventBody::Fact(recorded) => {
                numbers.push(recorded.number);
                started |= matches!(recorded.fact, Fact::ItemStarted { .. });
            }
            EventBody::Delta(delta) => {
                assert!(started, "text before its item");
                assert_eq!(delta.offset as usize, text.len());
                text.push_str(&delta.text);
            }
            _ => {}
        }
    }
    assert_eq!(text, "some words");
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
}

#[tokio::test(start_paused = true)]
async fn the_instructions_speak_only_of_tools_that_are_offered() {
    for (config, writes) in [(json!({}), true), (json!({"disabledTools": ["write"]}), false)] {
        let bench = Bench::with_config(config);
        bench.client().await.run("hello").await;
        let system = bench.models.prompts()[0].1.system.concat();
        assert_eq!(system.contains("Edit in the style around it"), writes, "{system}");
        assert!(system.contains("with the project's own commands"), "{system}");
        assert!(!system.contains("{writes files}"), "{system}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_places_of_a_call_are_those_of_its_result_else_of_its_review() {
    for (input, place) in [(json!({"at": "one"}), "one"), (json!({"at": "one", "found": "two"}), "two")] {
        let bench = Bench::new();
        bench.answers([ScriptedAnswer::call("eca__read", input)]);
        let mut client = bench.client().await;
        client.run("go").await;
        let state = bench.check_state(&client.session).await;
        let places: Vec<_> = calls(&state)[0].locations.iter().map(|place| place.path.clone()).collect();
        assert_eq!(places, [std::path::PathBuf::from(place)]);
    }
}

#[tokio::test(start_paused = true)]
async fn grown_text_is_recorded_by_time_and_size_and_never_empty() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let start = |block, kind| event(ModelEvent::BlockStarted { block, kind });
    let delta = |block, text: &str| event(ModelEvent::BlockDelta { block, text: text.into() });
    let wait = |millis| ModelStep::Wait(Duration::from_millis(millis));
    let first = "x".repeat(3000);
    let steps = [
        start(1, BlockKind::Reasoning),
        delta(1, "thought"),
        start(2, BlockKind::Text),
        delta(2, &first),
        wait(10),
        delta(2, "a"),
        wait(50),
        delta(2, "b"),
        wait(300),
        delta(2, "c"),
        wait(300),
    ];
    bench.answers([steps.into_iter().fold(ScriptedAnswer::default(), ScriptedAnswer::then)]);
    client.run("hello").await;
    let facts = bench.store.facts(&client.session);
    let grown: Vec<&str> = facts
        .iter()
        .filter_map(|recorded| match &recorded.fact {
            Fact::ItemGrew { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(grown, ["ab", "c"]);
}

#[tokio::test(start_paused = true)]
async fn live_output_is_kept_up_to_a_limit() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    for (pieces, kept) in [
        (vec!["ab".to_owned(), "cd".into()], "abcd"),
        (vec!["ab".into(), "x".repeat(256 << 10), "cd".into()], "abxxx"),
    ] {
        bench.answers([ScriptedAnswer::call("eca__read", json!({"live": pieces}))]);
        client.run("go").await;
        let state = bench.check_state(&client.session).await;
        let shown = calls(&state).pop().unwrap().live_output;
        assert!(shown.starts_with(kept) && shown.len() < 257 << 10, "{}", shown.len());
        assert!(shown == kept || !shown.contains("cd"), "nothing stands behind what was cut");
    }
}

#[tokio::test(start_paused = true)]
async fn long_instruction_files_are_cut() {
    let bench = Bench::new();
    let client = bench.attach(person()).await;
    let folder = tempfile::tempdir().unwrap();
    let text = format!("Begin.\n{}End.", "é".repeat(20 << 10));
    std::fs::write(folder.path().join("AGENTS.md"), text).unwrap();
    let workspace = Some(vec![folder.path().to_owned()]);
    let (settings, servers) = (SessionSettings::default(), Vec::new());
    let open = |_, reply| Command::Open { id: None, workspace, settings, servers, reply };
    let session = client.call(open).await.unwrap().id;
    let prompt = UserPrompt { text: "hello".into(), ..UserPrompt::default() };
    client.call(|_, reply| Command::Prompt { session, prompt, reply }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let system = bench.models.prompts()[0].1.system.concat();
    assert!(system.contains("Begin.") && system.contains("\n(cut: ") && !system.contains("End."));
}

/// What people see of a running tool is the beginning of what it printed, and nothing is missing in it.
#[tokio::test(start_paused = true)]
async fn live_output_comes_behind_its_call_and_has_no_gap() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let pieces = ["one\n".to_owned(), "x".repeat(4 << 10), "two\n".to_owned()];
    let printed = pieces.concat().repeat(70);
    bench.answers([ScriptedAnswer::call("eca__read", json!({"live": pieces, "repeat": 70}))]);
    client.prompt("go").await.unwrap();
    let mut is_running = false;
    let mut shown = String::new();
    let ended = loop {
        match client.next().await {
            EventBody::Delta(delta) if delta.channel == Channel::ToolOutput => {
                assert!(is_running, "the call is shown before its output");
                assert_eq!(delta.offset, shown.len() as u64, "nothing is missing before a piece");
                shown.push_str(&delta.text);
            }
            EventBody::Fact(recorded) => match &recorded.fact {
                Fact::ItemChanged { item } => {
                    is_running |=
                        matches!(&item.kind, ItemKind::ToolCall(call) if call.state == ToolState::Running);
                }
                Fact::ItemEnded { item } => {
                    if let ItemKind::ToolCall(call) = &item.kind {
                        break call.clone();
                    }
                }
                _ => {}
            },
            _ => {}
        }
    };
    let (kept, note) = shown.split_once("\n[More").expect("it ends where it is cut");
    assert!(printed.starts_with(kept) && kept.len() == 256 << 10, "{}", kept.len());
    assert!(note.ends_with("not shown here.]\n"), "{note}");
    assert_eq!(ended.live_output, shown);
    client.turn_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_without_a_turn_leaves_the_next_turn_alone() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    client.cancel().await;
    assert_eq!(client.run("one").await, Outcome::Done);
    client.cancel().await;
    client.cancel().await;
    assert_eq!(client.run("two").await, Outcome::Done);
    bench.check_state(&client.session).await;
}
