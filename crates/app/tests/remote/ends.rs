//! What ends an editor's connection: a server that is killed and started again, a revoked token, another role, a budget.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::Answer;
use testkit::fake_model::{Gate, Request, Usage};

use crate::{DRIVER, Editor, WAIT, World, said};

/// Answers a prompt with "Hold" by a word, and goes on when the gate opens.
fn hold(world: &World, gate: &Gate) {
    let gate = gate.clone();
    world.model.respond_with(move |request: &Request| {
        if request.last_user_text().contains("Hold") {
            Answer::new().chunks(["The beginning."]).gate(&gate).say(" Never.")
        } else {
            Answer::text("Whole.")
        }
    });
}

async fn acp(world: &World) -> (Editor, Value) {
    let mut editor = world.editor("acp", "127.0.0.1");
    editor.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let new = json!({"cwd": world.work(), "mcpServers": []});
    let session = editor.request("session/new", new).await["sessionId"].clone();
    (editor, session)
}

fn prompt(session: &Value, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// Prompts, and waits for the first words of an answer that is held.
async fn begin_held(editor: &mut Editor, session: &Value) -> u64 {
    let held = editor.call("session/prompt", prompt(session, "Hold")).await;
    editor.until(|it| it["params"]["update"]["content"]["text"] == "The beginning.").await;
    held
}

/// ACP: the request that ran gets an error, the next one works in the same chat, and the interrupted turn is in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acp_editor_goes_on_after_its_server_was_killed() {
    let Some(mut world) = World::start().await else { return };
    hold(&world, &Gate::new());
    let (mut editor, session) = acp(&world).await;
    let (seen, _) = editor.response("session/prompt", prompt(&session, "First")).await;
    assert_eq!(said(&seen), "Whole.");
    let held = begin_held(&mut editor, &session).await;
    world.restart().await;
    let (_, failed) = editor.until(|it| it["id"] == json!(held)).await;
    let told = failed["error"]["message"].as_str().expect("an error");
    assert!(told.contains("was lost") && told.contains("Prompt again"), "{told}");
    let (seen, response) = editor.response("session/prompt", prompt(&session, "Third")).await;
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    assert_eq!(said(&seen), "Whole.");
    let last = world.model.last_request();
    let history = last.messages().iter().map(Value::to_string).collect::<String>();
    assert!(["First", "Hold", "Third"].iter().all(|word| history.contains(word)), "{history}");
    assert_eq!(world.asked("Hold"), 1, "an interrupted prompt is not sent again");
    editor.end().await;
    let mut other = world.editor("acp", "127.0.0.1");
    other.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let load = json!({"sessionId": session, "cwd": world.work(), "mcpServers": []});
    let (seen, _) = other.response("session/load", load).await;
    let told = "Whole.The beginning.This answer was interrupted.\nWhole.";
    assert_eq!(said(&seen), told, "nothing that was shown is lost");
    other.end().await;
}

/// ECA: the chat is shown anew as it is stored, the turn has ended, and the next prompt works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eca_editor_goes_on_after_its_server_was_killed() {
    let Some(mut world) = World::start().await else { return };
    hold(&world, &Gate::new());
    let mut editor = world.editor("server", "127.0.0.1");
    let folder = json!([{"uri": format!("file://{}", world.work().display()), "name": "work"}]);
    let capabilities = json!({"codeAssistant": {"chat": true}});
    let initialize = json!({"processId": 1, "capabilities": capabilities, "workspaceFolders": folder});
    editor.request("initialize", initialize).await;
    editor.send(json!({"jsonrpc": "2.0", "method": "initialized", "params": {}})).await;
    editor.call("chat/prompt", json!({"chatId": "c", "message": "Hold"})).await;
    let is_text = |it: &Value, text: &str| {
        it["method"] == "chat/contentReceived" && it["params"]["content"]["text"] == text
    };
    editor.until(|it| is_text(it, "The beginning.")).await;
    world.restart().await;
    editor.until(|it| it["method"] == "chat/cleared" && it["params"]["chatId"] == "c").await;
    editor.until(|it| is_text(it, "The beginning.")).await;
    let status = |it: &Value| it["params"]["content"]["state"] == "finished";
    let prompted = editor.call("chat/prompt", json!({"chatId": "c", "message": "Next"})).await;
    let (_, answered) = editor.until(|it| it["id"] == json!(prompted)).await;
    assert!(answered.get("error").is_none(), "{answered}");
    editor.until(|it| is_text(it, "Whole.")).await;
    editor.until(status).await;
    assert_eq!(world.asked("Hold"), 1, "an interrupted prompt is not sent again");
}

/// A revoked token: what waits is answered with the reason, and the program ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_ends_the_program_of_an_editor() {
    let Some(world) = World::start().await else { return };
    hold(&world, &Gate::new());
    let (mut editor, session) = acp(&world).await;
    let held = begin_held(&mut editor, &session).await;
    world.run(&["serve", "tokens", "revoke", DRIVER]).await;
    let (_, failed) = editor.until(|it| it["id"] == json!(held) && it.get("method").is_none()).await;
    let told = failed["error"]["message"].as_str().expect("an error").to_owned();
    assert!(told.contains("token"), "{told}");
    let status = tokio::time::timeout(WAIT, editor.child.wait()).await.expect("it ends").expect("a status");
    assert!(!status.success());
}

/// Another role holds for the editor that is connected, without a new token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_role_holds_for_an_editor_that_is_connected() {
    let Some(world) = World::start().await else { return };
    hold(&world, &Gate::new());
    let (mut editor, session) = acp(&world).await;
    world.run(&["serve", "tokens", "change", DRIVER, "--role", "view"]).await;
    let refused = async {
        loop {
            // Until it is noticed, prompts work; one that runs at that moment is lost.
            let (_, response) = editor.response("session/prompt", prompt(&session, "Go")).await;
            if response["error"]["message"].to_string().contains("needs the role drive") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(WAIT, refused).await.expect("the new role holds");
    world.run(&["serve", "tokens", "change", DRIVER, "--role", "drive"]).await;
    let works = async {
        while editor.response("session/prompt", prompt(&session, "Go")).await.1["error"].is_object() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(WAIT, works).await.expect("the old role is back");
    editor.end().await;
}

/// A driver who stops every answer before its end pays for what came: a stop does not make a budget endless. What his role does
/// not allow is told, also where the protocol takes a missing chat as deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_turn_is_paid_and_a_refused_deletion_is_told() {
    let priced = json!({"cost": {"input": 0, "output": 1000}, "limit": {"context": 100_000, "output": 2000}});
    let Some(world) = World::start_with(&["--budget", "0.5"], &[], priced).await else { return };
    let gate = Gate::new();
    let held = gate.clone();
    // 800 bytes are some 200 tokens: $0.20.
    world.model.respond_with(move |_: &Request| {
        Answer::new().chunks([format!("{}The beginning.", "x".repeat(786))]).gate(&held).say(" Never.")
    });
    let (mut editor, session) = acp(&world).await;
    for turn in 1..=3 {
        let stopped = editor.call("session/prompt", prompt(&session, "Go")).await;
        editor.until(|it| it["params"]["update"].to_string().contains("The beginning.")).await;
        let cancel = json!({"sessionId": session});
        editor.send(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": cancel})).await;
        let (_, response) = editor.until(|it| it["id"] == json!(stopped) && it.get("method").is_none()).await;
        assert_eq!(response["result"]["stopReason"], "cancelled", "turn {turn}: {response}");
    }
    let (_, refused) = editor.response("session/prompt", prompt(&session, "Go")).await;
    assert!(refused["error"]["message"].to_string().contains("of $0.50"), "{refused}");
    assert_eq!(world.model.requests().len(), 3);
    let (_, refused) = editor.response("session/delete", json!({"sessionId": session})).await;
    assert!(refused["error"]["message"].to_string().contains("needs the role admin"), "{refused}");
    editor.request("session/delete", json!({"sessionId": "none"})).await;
    gate.open();
    editor.end().await;
}

/// Six turns at once of an account, or of a team, with $0.55: after the sixth call of $0.10 nothing more is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_turns_exceed_a_budget_by_one_call_at_most() {
    let priced = json!({"cost": {"input": 0, "output": 1000}, "limit": {"context": 100_000, "output": 200}});
    let budget: &[&str] = &["--budget", "0.55"];
    for (account, server) in [(budget, &[][..]), (&[][..], budget)] {
        let Some(world) = World::start_with(account, server, priced.clone()).await else { return };
        world.model.respond_with(|request: &Request| {
            let answer = Answer::new().delay(Duration::from_millis(30));
            let usage = Usage { input: 10, cache_read: 0, cache_write: 0, output: 100 };
            let count = request.tool_results().len();
            if count < 3 {
                let call = json!({"path": "."});
                answer.call(&format!("c{count}"), "directory_tree", call).usage(usage)
            } else {
                answer.say("Done.").usage(usage)
            }
        });
        let mut editor = world.editor("acp", "127.0.0.1");
        editor.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
        let mut sessions = Vec::new();
        for _ in 0..6 {
            let new = json!({"cwd": world.work(), "mcpServers": []});
            sessions.push(editor.request("session/new", new).await["sessionId"].clone());
        }
        let mut open = Vec::new();
        for session in &sessions {
            open.push(json!(editor.call("session/prompt", prompt(session, "Go")).await));
        }
        let mut told = String::new();
        while !open.is_empty() {
            let is_answer = |it: &Value| it.get("method").is_none() && open.contains(&it["id"]);
            let (before, response) = editor.until(is_answer).await;
            open.retain(|id| *id != response["id"]);
            told.extend(before.iter().chain([&response]).map(Value::to_string));
        }
        assert!(told.contains("has used $0.60 of $0.55"), "{told}");
        assert_eq!(world.model.requests().len(), 6, "the sixth call is the last one");
        let listed = world.run(&["serve", "tokens", "list", "--json"]).await;
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let spent = listed["accounts"][0]["spentUsd"].as_f64().expect("a sum");
        assert!((spent - 0.6).abs() < 1e-6, "{listed}");
        editor.end().await;
    }
}
