//! Turns: what a prompt says, what streams back, how it ends.

use domain::command::Context;
use domain::event::{Channel, EventBody};
use domain::item::{ItemKind, PlanEntry, PlanStatus};
use domain::tool_call::{Details, FileChange, Location, RejectedBy};
use domain::{
    Answer, Ask, AskId, AskKind, Fact, Failure, ItemId, Outcome, Part, SessionId, ToolState, TurnId,
};
use serde_json::{Value, json};
use testkit::fake_engine::{FakeEngine, Seen, item};

use crate::client::{Client, tool_call};

fn started(id: u64, turn: TurnId, kind: ItemKind) -> Fact {
    Fact::ItemStarted { item: item(id, turn, kind) }
}

fn changed(id: u64, turn: TurnId, kind: ItemKind) -> Fact {
    Fact::ItemChanged { item: item(id, turn, kind) }
}

fn ended(id: u64, turn: TurnId, kind: ItemKind) -> Fact {
    Fact::ItemEnded { item: item(id, turn, kind) }
}

fn said(text: &str) -> ItemKind {
    ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None }
}

fn call(call: domain::ToolCall) -> ItemKind {
    ItemKind::ToolCall(Box::new(call))
}

#[tokio::test]
async fn a_prompt_carries_everything_and_streams_its_answer() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    let blocks = json!([
        {"type": "text", "text": "Explain "},
        {"type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs"},
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "resource", "resource": {"uri": "file:///w/b.rs", "text": "fn b() {}"}},
    ]);
    let id = client.call("session/prompt", json!({"sessionId": session, "prompt": blocks})).await;
    let (_, turn, prompt) = engine.prompt().await;
    assert_eq!(prompt.text, "Explain [@a.rs](file:///w/a.rs)[@b.rs](file:///w/b.rs)");
    assert_eq!(prompt.parts, [Part::Image { mime: "image/png".into(), data: "AAAA".into() }]);
    assert_eq!(
        prompt.contexts,
        [
            Context::File { path: "/w/a.rs".into(), lines: None },
            Context::Text { name: "file:///w/b.rs".into(), text: "fn b() {}".into() },
        ]
    );
    engine.begin(&session, turn, 1, &prompt.text);
    let thought = |text: &str| ItemKind::Reasoning { text: text.into(), millis: 0, provider: None };
    engine.fact(&session, started(2, turn, thought("Let ")));
    engine.delta(&session, 2, Channel::Reasoning, 0, "Let ");
    engine.delta(&session, 2, Channel::Reasoning, 4, "me see");
    engine.fact(&session, ended(2, turn, thought("Let me see")));
    engine.fact(&session, started(3, turn, said("It ")));
    engine.delta(&session, 3, Channel::Text, 3, "is ");
    // Lost on the way: the end brings the rest.
    engine.fact(&session, ended(3, turn, said("It is simple.")));
    engine.end(&session, turn, Outcome::Done);
    let response = client.response(id).await;
    assert_eq!(response["result"]["stopReason"], "end_turn");
    let texts = |kind: &str| -> String {
        let of = client.unread().into_iter().filter(|it| it["sessionUpdate"] == kind);
        of.map(|it| it["content"]["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts("agent_thought_chunk"), "Let me see");
    assert_eq!(texts("agent_message_chunk"), "It is simple.");
    // What the client typed is not said back to it.
    assert_eq!(texts("user_message_chunk"), "");
    let ids: Vec<&Value> = client.unread().into_iter().map(|it| &it["messageId"]).collect();
    assert!(ids.iter().all(|id| **id == "item-2" || **id == "item-3"), "{ids:?}");
}

#[tokio::test]
async fn what_others_type_is_shown() {
    let (mut client, engine, session) = Client::session(json!({})).await;
    engine.begin(&session, TurnId(1), 1, "typed elsewhere");
    let update = client.update().await;
    assert_eq!(update["sessionUpdate"], "user_message_chunk");
    assert_eq!(update["content"]["text"], "typed elsewhere");
}

#[tokio::test]
async fn every_outcome_has_its_answer() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    let failed = |failure| Outcome::Failed { failure };
    for (outcome, expected) in [
        (Outcome::Done, Ok("end_turn")),
        (Outcome::Stopped, Ok("cancelled")),
        (Outcome::MaxTokens, Ok("max_tokens")),
        (Outcome::MaxSteps, Ok("max_turn_requests")),
        (Outcome::Refused { reason: "no".into() }, Ok("refusal")),
        (failed(Failure::auth("No key.").hint("Set one.")), Err((-32000, "No key. Set one."))),
        (failed(Failure::provider("It is down.")), Err((-32603, "It is down."))),
        (
            Outcome::Interrupted,
            Err((
                -32603,
                "The answer was interrupted: the Dragoman that worked on it has ended. Send the prompt again, or ask \
                 it to go on.",
            )),
        ),
    ] {
        let id = client.prompt(&session, "go").await;
        let (_, turn, _) = engine.prompt().await;
        engine.end(&session, turn, outcome.clone());
        let response = client.response(id).await;
        match expected {
            Ok(reason) => assert_eq!(response["result"]["stopReason"], reason, "{outcome:?}"),
            Err((code, sentence)) => {
                assert_eq!(response["error"]["code"], code, "{outcome:?}");
                assert_eq!(response["error"]["message"], sentence, "{outcome:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_prompt_that_cannot_begin_is_refused() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    engine.refuse(Failure::user("This chat is still answering."));
    let blocks = json!([{"type": "text", "text": "go"}]);
    let params = json!({"sessionId": session, "prompt": blocks});
    assert_eq!(
        client.refused("session/prompt", params).await,
        (-32602, "This chat is still answering.".into())
    );
    engine.prompt().await;
    let unknown = json!({"sessionId": "no", "prompt": blocks});
    assert_eq!(client.refused("session/prompt", unknown).await.0, -32002);
    let empty = json!({"sessionId": session, "prompt": []});
    assert_eq!(client.refused("session/prompt", empty).await.0, -32602);
    // A journal that cannot be written ends the turn at once.
    let id = client.prompt(&session, "go").await;
    engine.prompt().await;
    engine.event(Some(&session), EventBody::Lost { failure: Failure::internal("The disk is full.") });
    assert_eq!(client.response(id).await["error"]["message"], "The disk is full.");
}

#[tokio::test]
async fn a_turn_is_stopped_by_either_cancellation() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    for by_request in [false, true] {
        let id = client.prompt(&session, "go").await;
        let (_, turn, _) = engine.prompt().await;
        engine.begin(&session, turn, 1, "go");
        if by_request {
            client.notify("$/cancel_request", json!({"requestId": id})).await;
        } else {
            client.notify("session/cancel", json!({"sessionId": session})).await;
        }
        assert_eq!(engine.next().await, Seen::Cancel { session: session.clone() });
        // Even if stopping broke something.
        engine.end(&session, turn, Outcome::Failed { failure: Failure::provider("Broken pipe.") });
        assert_eq!(client.response(id).await["result"]["stopReason"], "cancelled");
    }
}

fn change(path: &str, old: Option<&str>, new: &str) -> Details {
    Details::FileChange(FileChange {
        path: path.into(),
        diff: "-a\n+b\n".into(),
        lines_added: 1,
        lines_removed: 1,
        old_text: old.map(str::to_owned),
        new_text: Some(new.to_owned()),
    })
}

/// Runs one call of `write_file` that waits for approval and gives what the client was told and answered.
async fn approval(client: &mut Client, engine: &mut FakeEngine, session: &SessionId, option: &str) -> Answer {
    let id = client.prompt(session, "write").await;
    let (_, turn, _) = engine.prompt().await;
    let (number, ask) = (turn.0 * 10, AskId(turn.0));
    let mut waiting = tool_call("write_file", json!({"path": "/w/a", "content": "b"}));
    waiting.state = ToolState::Preparing;
    waiting.summary = String::new();
    waiting.input = None;
    engine.fact(session, started(number, turn, call(waiting.clone())));
    waiting.input = Some(json!({"path": "/w/a", "content": "b"}));
    waiting.summary = "Creating a".into();
    waiting.state = ToolState::Waiting { ask };
    waiting.details = Some(change("/w/a", None, "b"));
    waiting.locations = vec![Location { path: "/w/a".into(), line: Some(1) }];
    let keys = vec!["eca__write_file".to_owned()];
    let kind = AskKind::Approval { reason: "It could change something.".into(), keys };
    let raised = Fact::AskRaised { ask: Ask { id: ask, turn, item: Some(ItemId(number)), kind } };
    let mut facts = [raised, changed(number, turn, call(waiting))];
    // In either order, the client is asked about the call while it waits.
    if turn.0.is_multiple_of(2) {
        facts.reverse();
    }
    for fact in facts {
        engine.fact(session, fact);
    }
    let asked = client.asked("session/request_permission").await;
    let shown = &asked["params"]["toolCall"];
    assert_eq!(shown["toolCallId"], format!("item-{number}"));
    assert_eq!(shown["title"], "Creating a");
    assert_eq!(asked["params"]["options"][1]["name"], "Allow eca__write_file for this session");
    assert_eq!(shown["content"], json!([{"type": "diff", "path": "/w/a", "newText": "b"}]));
    let updates = client.updates(2).await;
    assert_eq!(updates[0]["sessionUpdate"], "tool_call");
    assert_eq!(updates[0]["title"], "write_file");
    assert_eq!(updates[0]["kind"], "edit");
    assert_eq!(updates[0]["status"], "pending");
    assert_eq!(updates[1]["sessionUpdate"], "tool_call_update");
    assert_eq!(updates[1]["locations"], json!([{"path": "/w/a", "line": 1}]));
    assert_eq!(updates[1]["rawInput"]["content"], "b");
    client.answer(&asked, json!({"outcome": {"outcome": "selected", "optionId": option}})).await;
    let Seen::Answer { answer, .. } = engine.next().await else { panic!("an answer is expected") };
    engine.fact(session, Fact::AskSettled { id: ask, answer: answer.clone() });
    engine.end(session, turn, Outcome::Done);
    client.response(id).await;
    answer
}

#[tokio::test]
async fn permissions_are_asked_with_four_answers() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    for (option, expected) in [
        ("allow_once", Answer::Allow { remember: false }),
        ("allow_always", Answer::Allow { remember: true }),
        ("reject_once", Answer::Deny { remember: false, reason: None }),
        ("reject_always", Answer::Deny { remember: true, reason: None }),
    ] {
        assert_eq!(approval(&mut client, &mut engine, &session, option).await, expected, "{option}");
    }
}

#[tokio::test]
async fn a_question_that_is_settled_elsewhere_is_taken_back() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    let kind = || AskKind::Approval { reason: "r".into(), keys: Vec::new() };
    let raise = |id| Fact::AskRaised { ask: Ask { id, turn: TurnId(1), item: None, kind: kind() } };
    engine.fact(&session, raise(AskId(1)));
    let asked = client.asked("session/request_permission").await;
    let answer = Answer::Allow { remember: false };
    engine.fact(&session, Fact::AskSettled { id: AskId(1), answer });
    let cancelled = client.asked("$/cancel_request").await;
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    // A client that answers with an error has not allowed anything.
    engine.fact(&session, raise(AskId(2)));
    let asked = client.asked("session/request_permission").await;
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": 1, "message": "?"}})).await;
    let Seen::Answer { ask, answer, .. } = engine.next().await else { panic!("an answer is expected") };
    assert_eq!(ask, AskId(2));
    assert!(matches!(answer, Answer::Deny { remember: false, reason: Some(_) }));
    engine.fact(&session, raise(AskId(3)));
    let asked = client.asked("session/request_permission").await;
    client.answer(&asked, json!({"outcome": "yes!"})).await;
    let Seen::Answer { answer, .. } = engine.next().await else { panic!("an answer is expected") };
    assert!(matches!(answer, Answer::Deny { .. }));
}

#[tokio::test]
async fn a_call_is_shown_from_its_first_word_to_its_end() {
    let (mut client, engine, session) = Client::session(json!({})).await;
    let turn = TurnId(1);
    let mut shell = tool_call("shell_command", json!({"command": "make"}));
    shell.state = ToolState::Preparing;
    engine.fact(&session, started(1, turn, call(shell.clone())));
    shell.state = ToolState::Running;
    engine.fact(&session, changed(1, turn, call(shell.clone())));
    engine.delta(&session, 1, Channel::ToolOutput, 0, "one\n");
    let updates = client.updates(3).await;
    assert_eq!(updates[0]["kind"], "execute");
    assert_eq!(updates[1]["status"], "in_progress");
    assert_eq!(updates[2]["content"][0]["content"]["text"], "```\none\n```");
    engine.delta(&session, 1, Channel::ToolOutput, 4, &"x".repeat(10_000));
    let tail = client.update().await;
    assert!(tail["content"][0]["content"]["text"].as_str().unwrap().len() < 5000);
    shell.state = ToolState::Done;
    shell.result = vec![Part::text("one\nall")];
    engine.fact(&session, ended(1, turn, call(shell)));
    let done = client.update().await;
    assert_eq!(done["status"], "completed");
    assert_eq!(done["content"][0]["content"]["text"], "```\none\nall\n```");
    assert_eq!(done["rawOutput"], "one\nall");
    assert!(done.get("rawInput").is_none(), "what the client has is not sent again");
}

#[tokio::test]
async fn edits_are_diffs_and_refusals_say_why() {
    let (mut client, engine, session) = Client::session(json!({})).await;
    let turn = TurnId(1);
    let mut edit = tool_call("edit_file", json!({"path": "/w/a"}));
    edit.details = Some(change("/w/a", Some("a"), "b"));
    edit.state = ToolState::Done;
    edit.result = vec![Part::text("Edited.")];
    engine.fact(&session, ended(1, turn, call(edit.clone())));
    let shown = client.update().await;
    let diff = json!({"type": "diff", "path": "/w/a", "oldText": "a", "newText": "b"});
    assert_eq!(shown["content"], json!([diff]));
    edit.state = ToolState::Rejected { by: RejectedBy::User };
    edit.error = true;
    edit.result = vec![Part::text("The user rejected this call.")];
    engine.fact(&session, ended(2, turn, call(edit.clone())));
    let shown = client.update().await;
    assert_eq!(shown["status"], "failed");
    assert_eq!(shown["content"][0], diff);
    assert_eq!(shown["content"][1]["content"]["text"], "The user rejected this call.");
    edit.state = ToolState::Done;
    edit.result = vec![Part::text("There is no such text.")];
    engine.fact(&session, ended(3, turn, call(edit.clone())));
    let shown = client.update().await;
    assert_eq!(shown["status"], "failed");
    assert_eq!(shown["content"][0]["content"]["text"], "There is no such text.");
    edit.state = ToolState::Stopped { unknown: true };
    engine.fact(&session, ended(4, turn, call(edit)));
    let shown = client.update().await;
    assert!(shown["content"][1]["content"]["text"].as_str().unwrap().contains("unknown"));
}

#[tokio::test]
async fn task_lists_are_plans() {
    let (mut client, engine, session) = Client::session(json!({})).await;
    let entry = |text: &str, status, priority: Option<&str>| PlanEntry {
        text: text.into(),
        status,
        priority: priority.map(str::to_owned),
    };
    let entries = vec![
        entry("one", PlanStatus::Done, Some("high")),
        entry("two", PlanStatus::InProgress, None),
        entry("three", PlanStatus::Pending, Some("low")),
    ];
    let mut task = tool_call("task", json!({"tasks": []}));
    task.details = Some(Details::Tasks { entries });
    engine.fact(&session, started(1, TurnId(1), call(task.clone())));
    task.state = ToolState::Done;
    engine.fact(&session, ended(1, TurnId(1), call(task)));
    engine.fact(
        &session,
        Fact::Notice {
            notice: domain::event::Notice { level: domain::event::Level::Error, text: "last".into() },
        },
    );
    let updates = client.updates(4).await;
    let plan = json!({
        "sessionUpdate": "plan",
        "entries": [
            {"content": "one", "priority": "high", "status": "completed"},
            {"content": "two", "priority": "medium", "status": "in_progress"},
            {"content": "three", "priority": "low", "status": "pending"},
        ],
    });
    assert_eq!(updates[1], plan);
    // An unchanged list is not sent again.
    assert_eq!(updates[2]["sessionUpdate"], "tool_call_update");
    assert_eq!(updates[3]["content"]["text"], "last\n");
}

#[tokio::test]
async fn a_choice_that_cannot_be_remembered_is_not_offered() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    client.prompt(&session, "x").await;
    let (_, turn, _) = engine.prompt().await;
    let kind = AskKind::Approval { reason: "r".into(), keys: Vec::new() };
    engine.fact(&session, Fact::AskRaised { ask: Ask { id: AskId(1), turn, item: None, kind } });
    let asked = client.asked("session/request_permission").await;
    let options = asked["params"]["options"].as_array().unwrap();
    let ids: Vec<&Value> = options.iter().map(|option| &option["optionId"]).collect();
    assert_eq!(ids, ["allow_once", "reject_once", "reject_always"]);
}

#[tokio::test]
async fn each_retry_is_shown_and_states_are_not() {
    for (capabilities, kind) in
        [(json!({}), "agent_thought_chunk"), (json!({"session": {"notices": {}}}), "notice")]
    {
        let (mut client, mut engine, session) = Client::session(capabilities).await;
        let id = client.prompt(&session, "x").await;
        let (_, turn, _) = engine.prompt().await;
        let progress = |text: &str| engine.event(Some(&session), EventBody::Progress { text: text.into() });
        progress("Waiting model");
        progress("Overloaded. Trying again at 14:05:30 (attempt 2 of 8).");
        progress("Overloaded. Trying again at 14:05:40 (attempt 3 of 8).");
        progress("Generating");
        engine.end(&session, turn, Outcome::Done);
        client.response(id).await;
        let shown: Vec<String> = client.unread().iter().map(|it| it.to_string()).collect();
        assert_eq!(shown.len(), 2, "{shown:?}");
        assert!(shown.iter().all(|it| it.contains(kind)) && shown[1].contains("attempt 3 of 8"), "{shown:?}");
    }
}

#[tokio::test]
async fn the_last_update_of_a_call_repeats_its_content() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    let id = client.prompt(&session, "x").await;
    let (_, turn, _) = engine.prompt().await;
    let mut shell = tool_call("shell_command", json!({"command": "ls"}));
    engine.fact(&session, started(2, turn, call(shell.clone())));
    engine.delta(&session, 2, Channel::ToolOutput, 0, "a\nb");
    shell.state = ToolState::Done;
    shell.live_output = "a\nb".into();
    shell.result = vec![Part::text("a\nb")];
    engine.fact(&session, ended(2, turn, call(shell)));
    engine.end(&session, turn, Outcome::Done);
    client.response(id).await;
    let updates = client.unread();
    let last = updates.iter().rfind(|it| it["sessionUpdate"] == "tool_call_update").unwrap();
    assert_eq!(last["status"], "completed");
    assert_eq!(last["content"][0]["content"]["text"], "```\na\nb\n```");
}

#[tokio::test]
async fn the_response_to_a_prompt_tells_the_tokens() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    let id = client.prompt(&session, "x").await;
    let (_, turn, _) = engine.prompt().await;
    let total = domain::model::Tokens { input: 10, cache_read: 3, cache_write: 2, output: 5, reasoning: 0 };
    let usage = domain::event::SessionUsage { total, last: total, ..Default::default() };
    engine.fact(&session, Fact::UsageChanged { usage });
    engine.end(&session, turn, Outcome::Done);
    let response = client.response(id).await;
    let usage = &response["result"]["usage"];
    assert_eq!(
        *usage,
        json!({"totalTokens": 20, "inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 3, "cachedWriteTokens": 2})
    );
}
