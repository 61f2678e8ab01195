//! What the engine asks of the editor: files, terminals, forms.

use std::time::Duration;

use domain::ask::Choice;
use domain::host::{HostReply, Terminal};
use domain::item::ItemKind;
use domain::{Answer, Ask, AskId, AskKind, Fact, HostCall, ItemId, TurnId};
use serde_json::{Value, json};
use testkit::fake_engine::{Seen, item};

use crate::client::{Client, tool_call};

const DEADLINE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn files_are_read_and_written_through_the_editor() {
    let capabilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}});
    let (mut client, engine, session) = Client::session(capabilities).await;
    let reply = engine.host(&session, None, HostCall::ReadText { path: "/w/a".into() }, DEADLINE);
    let asked = client.asked("fs/read_text_file").await;
    assert_eq!(asked["params"], json!({"sessionId": session, "path": "/w/a"}));
    client.answer(&asked, json!({"content": "unsaved"})).await;
    assert_eq!(reply.await.unwrap().unwrap(), HostReply::Text("unsaved".into()));
    // Clients answer a write with null, with an object or with nothing.
    for result in [json!(null), json!({})] {
        let call = HostCall::WriteText { path: "/w/a".into(), text: "new".into() };
        let reply = engine.host(&session, None, call, DEADLINE);
        let asked = client.asked("fs/write_text_file").await;
        assert_eq!(asked["params"], json!({"sessionId": session, "path": "/w/a", "content": "new"}));
        client.answer(&asked, result).await;
        assert_eq!(reply.await.unwrap().unwrap(), HostReply::Written);
    }
    let reply = engine.host(&session, None, HostCall::ReadText { path: "/w/b".into() }, DEADLINE);
    let asked = client.asked("fs/read_text_file").await;
    let error = json!({"code": -32002, "message": "No such file"});
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
    assert!(reply.await.unwrap().unwrap_err().message.contains("No such file"));
    let reply = engine.host(&session, None, HostCall::Stat { path: "/w/b".into() }, DEADLINE);
    assert!(reply.await.unwrap().is_err());
}

fn terminal_call(time: Duration) -> HostCall {
    HostCall::Terminal(Terminal {
        command: "make".into(),
        arguments: vec!["-j".into()],
        environment: vec![("PAGER".into(), "cat".into())],
        cwd: "/w".into(),
        time,
        output_limit: 1000,
    })
}

#[tokio::test]
async fn a_command_runs_in_a_terminal_of_the_editor() {
    let (mut client, engine, session) = Client::session(json!({"terminal": true})).await;
    let mut shell = tool_call("shell_command", json!({"command": "make -j"}));
    let running = ItemKind::ToolCall(Box::new(shell.clone()));
    engine.fact(&session, Fact::ItemStarted { item: item(1, TurnId(1), running) });
    client.update().await;
    let reply = engine.host(&session, Some(1), terminal_call(DEADLINE), DEADLINE);
    let asked = client.asked("terminal/create").await;
    let env = json!([{"name": "PAGER", "value": "cat"}]);
    assert_eq!(
        asked["params"],
        json!({"sessionId": session, "command": "make", "args": ["-j"], "cwd": "/w", "outputByteLimit": 1000, "env": env})
    );
    client.answer(&asked, json!({"terminalId": "t1"})).await;
    let shown = client.update().await;
    let terminal = json!([{"type": "terminal", "terminalId": "t1"}]);
    assert_eq!(shown["content"], terminal);
    let asked = client.asked("terminal/wait_for_exit").await;
    client.answer(&asked, json!({"exitCode": 2, "signal": null})).await;
    let asked = client.asked("terminal/output").await;
    client.answer(&asked, json!({"output": "built", "truncated": false})).await;
    let asked = client.asked("terminal/release").await;
    client.answer(&asked, json!({})).await;
    let expected = HostReply::Terminal { output: "built".into(), truncated: false, exit_code: Some(2) };
    assert_eq!(reply.await.unwrap().unwrap(), expected);
    // The terminal stays when the call ends.
    shell.state = domain::ToolState::Done;
    shell.result = vec![domain::Part::text("built")];
    let done = ItemKind::ToolCall(Box::new(shell));
    engine.fact(&session, Fact::ItemEnded { item: item(1, TurnId(1), done) });
    let update = client.update().await;
    assert_eq!(update["status"], "completed");
    assert_eq!(update["content"], json!([{"type": "terminal", "terminalId": "t1"}]));
}

#[tokio::test]
async fn a_terminal_that_nobody_waits_for_is_killed_and_released() {
    let (mut client, engine, session) = Client::session(json!({"terminal": true})).await;
    for stopped in [true, false] {
        let time = if stopped { DEADLINE } else { Duration::from_millis(100) };
        let reply = engine.host(&session, None, terminal_call(time), DEADLINE);
        let asked = client.asked("terminal/create").await;
        client.answer(&asked, json!({"terminalId": "t1"})).await;
        client.asked("terminal/wait_for_exit").await;
        let kept = (!stopped).then_some(reply);
        for method in ["terminal/kill", "terminal/output", "terminal/release"] {
            let asked = client.asked(method).await;
            assert_eq!(asked["params"]["terminalId"], "t1", "{method}");
            let result = if method == "terminal/output" {
                json!({"output": "", "truncated": false})
            } else {
                Value::Null
            };
            client.answer(&asked, result).await;
        }
        if let Some(reply) = kept {
            let expected = HostReply::Terminal { output: String::new(), truncated: false, exit_code: None };
            assert_eq!(reply.await.unwrap().unwrap(), expected);
        }
    }
}

#[tokio::test]
async fn questions_and_forms_are_elicitations() {
    let (mut client, mut engine, session) = Client::session(json!({"elicitation": {"form": {}}})).await;
    let schema = json!({
        "type": "object", "required": ["name"],
        "properties": {
            "name": {"type": "string", "title": "Name"}, "age": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "fine": {"type": "boolean", "default": true},
        },
    });
    let choice = |label: &str| Choice { label: label.into(), description: None };
    let question = AskKind::Question {
        text: "Which?".into(),
        options: vec![choice("red"), choice("blue")],
        freeform: false,
        url: None,
    };
    for (number, kind, result, expected) in [
        (
            1,
            AskKind::Form { text: "Who?".into(), schema },
            json!({"action": "accept", "content": {"name": "Ann", "age": 3}}),
            Answer::Form { data: json!({"age": 3, "name": "Ann"}) },
        ),
        (
            2,
            question.clone(),
            json!({"action": "accept", "content": {"choice": "red"}}),
            Answer::Text { text: "red".into() },
        ),
        (3, question.clone(), json!({"action": "decline"}), Answer::Cancelled),
        (4, question, json!({"nonsense": true}), Answer::Cancelled),
    ] {
        let ask = Ask { id: AskId(number), turn: TurnId(1), item: Some(ItemId(7)), kind };
        engine.fact(&session, Fact::AskRaised { ask });
        let asked = client.asked("elicitation/create").await;
        assert_eq!(asked["params"]["mode"], "form");
        assert_eq!(asked["params"]["sessionId"], session.as_str());
        client.answer(&asked, result).await;
        let answered = Seen::Answer { session: session.clone(), ask: AskId(number), answer: expected };
        assert_eq!(engine.next().await, answered);
    }
    // A form that the protocol cannot show is nobody's to answer.
    let kind = AskKind::Form { text: "Odd".into(), schema: json!({"properties": {"x": 7}}) };
    engine.fact(&session, Fact::AskRaised { ask: Ask { id: AskId(9), turn: TurnId(1), item: None, kind } });
    let answered = Seen::Answer { session, ask: AskId(9), answer: Answer::Cancelled };
    assert_eq!(engine.next().await, answered);
}

#[tokio::test]
async fn an_address_is_opened_by_a_client_that_can() {
    let url = "https://id.example.com/sign-in";
    let opened = Choice { label: "I have opened it".into(), description: None };
    for (capabilities, mode) in [(json!({"form": {}, "url": {}}), "url"), (json!({"form": {}}), "form")] {
        let (mut client, mut engine, session) = Client::session(json!({"elicitation": capabilities})).await;
        let kind = AskKind::Question {
            text: format!("Open {url}"),
            options: vec![opened.clone()],
            freeform: false,
            url: Some(url.into()),
        };
        let ask = Ask { id: AskId(1), turn: TurnId(1), item: Some(ItemId(7)), kind };
        engine.fact(&session, Fact::AskRaised { ask });
        let asked = client.asked("elicitation/create").await;
        assert_eq!(asked["params"]["mode"], mode, "{asked}");
        let (result, expected) = match mode {
            "url" => {
                assert_eq!(asked["params"]["url"], url, "{asked}");
                (json!({"action": "accept"}), Answer::Text { text: "I have opened it".into() })
            }
            _ => (json!({"action": "cancel"}), Answer::Cancelled),
        };
        client.answer(&asked, result).await;
        assert_eq!(engine.next().await, Seen::Answer { session, ask: AskId(1), answer: expected });
    }
}
