//! The contents that a client gets of a turn.

use domain::command::SessionSettings;
use domain::event::{Channel, EventBody};
use domain::item::{HookRun, ItemKind, Part};
use domain::tool_call::{Details, ShellPart, ToolCall};
use domain::{Answer, Ask, AskId, AskKind, Fact, Failure, ItemId, Outcome, ToolState};
use serde_json::{Value, json};
use testkit::fake_engine::item;

use crate::client::{Client, tool_call};

fn kinds(contents: &[Value]) -> Vec<&str> {
    contents.iter().map(|it| it["type"].as_str().unwrap()).collect()
}

fn call(call: ToolCall) -> ItemKind {
    ItemKind::ToolCall(Box::new(call))
}

#[tokio::test]
async fn a_call_is_prepared_when_it_begins_and_has_a_summary() {
    let (mut client, engine, session, turn) = Client::in_turn().await;
    let preparing = tool_call("read_file", ToolState::Preparing);
    engine.fact(&session, Fact::ItemStarted { item: item(2, turn, call(preparing)) });
    let begun = client.until(|it| it["params"]["content"]["type"] == "toolCallPrepare").await;
    assert_eq!(begun.last().unwrap()["params"]["content"]["argumentsText"], "");
    engine.delta(&session, 2, Channel::ToolInput, 0, "{\"path\":\"a\"}");
    let mut running = tool_call("read_file", ToolState::Running);
    running.input_text = "{\"path\":\"a\"}".into();
    running.input = Some(json!({"path": "a"}));
    running.summary = "Reading a".into();
    engine.fact(&session, Fact::ItemChanged { item: item(2, turn, call(running.clone())) });
    let mut done = running;
    done.state = ToolState::Done;
    done.result = vec![Part::text("x")];
    engine.fact(&session, Fact::ItemEnded { item: item(2, turn, call(done)) });
    engine.end(&session, turn, Outcome::Done);
    let contents = client.contents().await;
    assert_eq!(
        kinds(&contents),
        ["toolCallPrepare", "toolCallRun", "toolCallRunning", "toolCalled", "progress"]
    );
    assert_eq!(contents[0]["argumentsText"], "{\"path\":\"a\"}");
    assert_eq!(contents[0]["summary"], "Preparing read_file");
    assert_eq!(contents[1]["summary"], "Reading a");
    // A client shows no time for 0.
    assert_eq!(contents[3]["totalTimeMs"], 1);
}

#[tokio::test]
async fn arguments_that_stream_are_prepared_piece_by_piece() {
    let (mut client, engine, session, turn) = Client::in_turn().await;
    let preparing = tool_call("grep", ToolState::Preparing);
    engine.fact(&session, Fact::ItemStarted { item: item(2, turn, call(preparing)) });
    engine.delta(&session, 2, Channel::ToolInput, 0, "{\"a\":");
    engine.delta(&session, 2, Channel::ToolInput, 5, "1}");
    let mut rejected = tool_call("grep", ToolState::Stopped { unknown: false });
    rejected.input_text = "{\"a\":1}".into();
    engine.fact(&session, Fact::ItemEnded { item: item(2, turn, call(rejected)) });
    // A call without arguments is prepared too.
    let plain = tool_call("task", ToolState::Done);
    engine.fact(&session, Fact::ItemEnded { item: item(3, turn, call(plain)) });
    engine.end(&session, turn, Outcome::Done);
    let contents = client.contents().await;
    let of = |id: &str| -> Vec<(&str, &str)> {
        let own = contents.iter().filter(|it| it["id"] == id);
        own.map(|it| (it["type"].as_str().unwrap(), it["argumentsText"].as_str().unwrap_or("-"))).collect()
    };
    assert_eq!(of("c")[0], ("toolCallPrepare", ""), "a call begins without arguments");
    let prepared: String = of("c").iter().filter(|it| it.0 == "toolCallPrepare").map(|it| it.1).collect();
    assert_eq!(prepared, "{\"a\":1}");
    assert_eq!(of("c").last(), Some(&("toolCallRejected", "-")));
    // Its provider gave it the same id, so that it has its own.
    assert_eq!(
        of("item-3"),
        [("toolCallPrepare", ""), ("toolCallRun", "-"), ("toolCallRunning", "-"), ("toolCalled", "-")]
    );
}

#[tokio::test]
async fn a_shell_line_names_its_commands() {
    let (mut client, engine, session, turn) = Client::in_turn().await;
    let mut shell = tool_call("shell_command", ToolState::Running);
    let part = |key: &str, remembered| ShellPart { key: key.into(), remembered };
    shell.input = Some(json!({"command": "ls && git push origin main"}));
    shell.details = Some(Details::Shell { commands: vec![part("git push", false), part("ls", true)] });
    engine.fact(&session, Fact::ItemStarted { item: item(2, turn, call(shell)) });
    engine.end(&session, turn, Outcome::Stopped);
    let contents = client.contents().await;
    let run = contents.iter().find(|it| it["type"] == "toolCallRun").unwrap();
    assert_eq!(
        run["details"],
        json!({"type": "shellCommand", "diff": "", "path": "ls && git push origin main", "commands": [
            {"command": "git", "args": ["push", "origin", "main"], "approvalKey": "git push", "remembered": false},
            {"command": "ls", "args": [], "approvalKey": "ls", "remembered": true},
        ]})
    );
}

#[tokio::test]
async fn a_pending_approval_is_the_status_until_it_is_settled() {
    let (mut client, engine, session, turn) = Client::in_turn().await;
    engine.event(Some(&session), EventBody::Progress { text: "Generating".into() });
    let kind = AskKind::Approval { reason: "r".into(), keys: vec!["git push x".into()] };
    let ask = Ask { id: AskId(1), turn, item: Some(ItemId(2)), kind };
    engine.fact(&session, Fact::AskRaised { ask });
    let mut waiting = tool_call("write_file", ToolState::Waiting { ask: AskId(1) });
    waiting.manual_approval = true;
    engine.fact(&session, Fact::ItemChanged { item: item(2, turn, call(waiting)) });
    let messages = client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await;
    let progress = messages.iter().rfind(|it| it["params"]["content"]["type"] == "progress").unwrap();
    assert_eq!(
        progress["params"]["content"]["text"],
        "Waiting for approval. r Remembering it covers: git push x"
    );
    engine.fact(&session, Fact::AskSettled { id: AskId(1), answer: Answer::Allow { remember: false } });
    engine.event(Some(&session), EventBody::Progress { text: "Calling tool".into() });
    client.until(|it| it["params"]["content"]["text"] == "Calling tool").await;
}

#[tokio::test]
async fn images_of_tools_are_contents_of_their_own() {
    let (mut client, engine, session, turn) = Client::in_turn().await;
    let mut shot = tool_call("screenshot", ToolState::Done);
    shot.result = vec![Part::text("done"), Part::Image { mime: "image/png".into(), data: "AAAA".into() }];
    engine.fact(&session, Fact::ItemEnded { item: item(2, turn, call(shot)) });
    engine.end(&session, turn, Outcome::Done);
    let contents = client.contents().await;
    let called = contents.iter().position(|it| it["type"] == "toolCalled").unwrap();
    assert_eq!(contents[called + 1], json!({"type": "image", "mediaType": "image/png", "base64": "AAAA"}));
    assert_eq!(
        contents[called]["outputs"],
        json!([{"type": "text", "text": "done"}]),
        "the image is shown once"
    );
}

#[tokio::test]
async fn the_title_never_precedes_the_users_text() {
    let (mut client, mut engine) = Client::start().await;
    client.call("chat/prompt", json!({"chatId": "c", "message": "Hello"})).await;
    engine.next().await;
    let (session, turn, _) = engine.prompt().await;
    let title = |title: &str| Fact::SessionChanged {
        change: SessionSettings { title: Some(title.into()), ..SessionSettings::default() },
    };
    engine.fact(&session, title("Early"));
    engine.begin(&session, turn, 1, "Hello");
    engine.fact(&session, title("Late"));
    engine.end(&session, turn, Outcome::Done);
    let contents = client.contents().await;
    let place = |fits: &dyn Fn(&Value) -> bool| contents.iter().position(fits).unwrap();
    let user = place(&|it| it["text"] == "Hello\n");
    assert!(user < place(&|it| it["title"] == "Early"), "{contents:#?}");
    assert!(place(&|it| it["title"] == "Early") < place(&|it| it["title"] == "Late"));
}

#[tokio::test]
async fn reasoning_and_hooks_begin_and_end_once() {
    let (mut client, engine, session, turn) = Client::in_turn().await;
    let reasoning = |text: &str| ItemKind::Reasoning { text: text.into(), millis: 7, provider: None };
    engine.fact(&session, Fact::ItemStarted { item: item(2, turn, reasoning("a")) });
    engine.delta(&session, 2, Channel::Reasoning, 1, "b");
    engine.fact(&session, Fact::ItemChanged { item: item(2, turn, reasoning("ab")) });
    engine.fact(&session, Fact::ItemEnded { item: item(2, turn, reasoning("ab")) });
    engine.fact(&session, Fact::ItemEnded { item: item(2, turn, reasoning("ab")) });
    let run = HookRun {
        name: "check".into(),
        status: None,
        output: String::new(),
        error: String::new(),
        call: None,
    };
    engine.fact(&session, Fact::ItemStarted { item: item(3, turn, ItemKind::Hook(Box::new(run.clone()))) });
    let run = HookRun { status: Some(2), error: "no".into(), ..run };
    engine.fact(&session, Fact::ItemEnded { item: item(3, turn, ItemKind::Hook(Box::new(run.clone()))) });
    engine.fact(&session, Fact::ItemEnded { item: item(3, turn, ItemKind::Hook(Box::new(run))) });
    engine.end(&session, turn, Outcome::Done);
    let contents = client.contents().await;
    let of = |id: &str| -> Vec<Value> { contents.iter().filter(|it| it["id"] == id).cloned().collect() };
    let thought = of("item-2");
    assert_eq!(kinds(&thought), ["reasonStarted", "reasonText", "reasonText", "reasonFinished"]);
    let text: String = thought.iter().filter_map(|it| it["text"].as_str()).collect();
    assert_eq!((text.as_str(), &thought[3]["totalTimeMs"]), ("ab", &json!(7)));
    let hook = of("item-3");
    assert_eq!(kinds(&hook), ["hookActionStarted", "hookActionFinished"]);
    assert_eq!((&hook[1]["status"], &hook[1]["error"]), (&json!(2), &json!("no")));
}

#[tokio::test]
async fn an_end_that_is_not_good_is_said() {
    let ends = [
        (Outcome::Done, None),
        (Outcome::Stopped, Some("Stopped.")),
        (Outcome::MaxTokens, Some("output limit")),
        (Outcome::MaxSteps, Some("too many steps")),
        (Outcome::Repeating, Some("the same call")),
        (Outcome::Refused { reason: "no harm".into() }, Some("no harm")),
        (Outcome::Failed { failure: Failure::user("It broke.") }, Some("It broke.")),
        (Outcome::Interrupted, Some("interrupted")),
    ];
    for (outcome, said) in ends {
        let (mut client, engine, session, turn) = Client::in_turn().await;
        engine.end(&session, turn, outcome.clone());
        let contents = client.contents().await;
        let texts: String = contents.iter().filter_map(|it| it["text"].as_str()).collect();
        match said {
            Some(said) => assert!(texts.contains(said), "{outcome:?}: {contents:?}"),
            None => assert_eq!(kinds(&contents), ["progress"]),
        }
    }
}

/// ECA shows `/compact` as a call; a summary that is made because the window is full is a line.
#[tokio::test]
async fn a_compaction_that_the_user_asked_for_is_shown_as_a_call() {
    for (command, shown) in [
        (
            "/compact keep the names",
            &[
                "toolCallPrepare",
                "toolCallPrepare",
                "toolCallRun",
                "toolCallRunning",
                "progress",
                "toolCalled",
                "text",
            ][..],
        ),
        ("/init", &["text"][..]),
    ] {
        let (mut client, engine, session, turn) = Client::in_turn().await;
        engine.fact(
            &session,
            Fact::ItemEnded { item: item(2, turn, ItemKind::Command { text: command.into() }) },
        );
        let summary = ItemKind::Compaction { summary: "In \"short\"".into(), kept: Vec::new() };
        engine.fact(&session, Fact::ItemEnded { item: item(3, turn, summary) });
        engine.end(&session, turn, Outcome::Done);
        let contents = client.contents().await;
        let [typed, parts @ .., finished] = &contents[..] else { panic!("{contents:?}") };
        assert_eq!(
            (&typed["text"], &finished["state"]),
            (&json!(format!("{command}\n")), &json!("finished"))
        );
        assert_eq!(kinds(parts), shown, "{command}");
        if let [begun, prepared, run, _, _, called, text] = parts {
            assert_eq!((&begun["argumentsText"], &begun["name"]), (&json!(""), &json!("compact_chat")));
            assert_eq!(prepared["argumentsText"], "{\"summary\":\"In \\\"short\\\"\"}");
            assert_eq!(
                (&run["arguments"]["summary"], &run["manualApproval"]),
                (&json!("In \"short\""), &json!(false))
            );
            assert_eq!(called["outputs"][0]["text"], "Compacted successfully!");
            assert_eq!((&called["error"], &text["text"]), (&json!(false), &json!("Compacted chat")));
        }
    }
}
