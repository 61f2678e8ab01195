//! Sessions over ACP from outside: choices, ends of turns, updates, and listing.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::acp_client::{Editor, everything};
use crate::client::{Home, fake_provider};
use crate::lines::LineClient;

/// A second model with two efforts, and a context window for the first.
fn config(fake: &FakeModel) -> Value {
    let mut config = fake_provider(fake.url(), "anthropic");
    config["providers"]["fake"]["models"] = json!({
        "m1": {"limit": {"context": 1000}},
        "m2": {"variants": {"low": {"effort": "low"}, "high": {"effort": "high"}}},
    });
    config
}

fn current(options: &Value, id: &str) -> Value {
    let list = options.as_array().expect("options");
    list.iter().find(|it| it["id"] == id).map(|it| it["currentValue"].clone()).unwrap_or_default()
}

#[tokio::test]
async fn what_is_chosen_holds_and_is_found_again() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut settings = config(&fake);
    // A terminal of the editor is outside of the sandbox.
    settings["sandbox"] = json!("off");
    let mut editor = Editor::start(&home, &settings, everything()).await;
    let session = editor.session.clone();
    let set = |id: &str, value: Value| match value.is_boolean() {
        true => json!({"sessionId": session, "configId": id, "type": "boolean", "value": value}),
        false => json!({"sessionId": session, "configId": id, "value": value}),
    };
    let client = &mut editor.client;
    let told = client.request("session/set_config_option", set("model", json!("fake/m2"))).await;
    assert_eq!(current(&told["configOptions"], "model"), "fake/m2");
    let told = client.request("session/set_config_option", set("variant", json!("high"))).await;
    assert_eq!(current(&told["configOptions"], "variant"), "high");
    let told = client.request("session/set_config_option", set("trust", json!(true))).await;
    assert_eq!(current(&told["configOptions"], "trust"), true);
    let (code, _) = client.refused("session/set_config_option", set("model", json!("no/such"))).await;
    assert_eq!(code, -32602);
    fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": "touch trusted"})));
    fake.answer(Answer::text("ok"));
    // Nobody is asked, and the chosen model with the chosen effort is.
    assert_eq!(editor.say("go").await, "end_turn");
    assert_eq!(fake.last_request().model(), "m2");
    assert!(fake.last_request().body.to_string().contains("high"), "{}", fake.last_request().body);
    assert_eq!(editor.count("terminal/create"), 1);
    let client = &mut editor.client;
    client.request("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await;
    assert_eq!(
        client.refused("session/set_mode", json!({"sessionId": session, "modeId": "no"})).await.0,
        -32602
    );
    fake.answer(Answer::tool_call("c", "eca__write_file", json!({"path": "planned", "content": "x"})));
    fake.answer(Answer::text("ok"));
    editor.say("write").await;
    assert!(!home.workspace().join("planned").exists(), "plan changes nothing");
    let reopen = json!({"sessionId": session, "cwd": home.workspace(), "mcpServers": []});
    editor.client.request("session/close", json!({"sessionId": session})).await;
    assert_eq!(
        editor.client.refused("session/prompt", json!({"sessionId": session, "prompt": []})).await.0,
        -32002
    );
    assert!(editor.client.end().await.success());
    // Resumed elsewhere: nothing of what was is said, everything chosen stands, and it goes on.
    let mut client = LineClient::spawn(&home, &config(&fake), &["acp"]);
    client.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": everything()})).await;
    let resumed = client.request("session/resume", reopen.clone()).await;
    assert_eq!(resumed["modes"]["currentModeId"], "plan");
    assert_eq!(current(&resumed["configOptions"], "model"), "fake/m2");
    let mut editor = Editor::with(client, session.clone());
    fake.answer(Answer::text("Still here."));
    assert_eq!(editor.say("still there?").await, "end_turn");
    assert_eq!(editor.text("user_message_chunk"), "", "what was typed here is not said back");
    assert_eq!(editor.text("agent_message_chunk"), "Still here.");
    assert!(fake.last_request().body.to_string().contains("touch trusted"), "the history is sent along");
    // Deleted: gone for everybody.
    editor.client.request("session/delete", json!({"sessionId": session})).await;
    // The specification: deleting what does not exist succeeds.
    for gone in [session.clone(), json!("never-there")] {
        let deleted = editor.client.request("session/delete", json!({"sessionId": gone})).await;
        assert_eq!(deleted, json!({}), "{gone}");
    }
    let listed = editor.client.request("session/list", json!({"cwd": home.workspace()})).await;
    assert_eq!(listed["sessions"], json!([]));
    assert_eq!(editor.client.refused("session/load", reopen).await.0, -32002);
    assert!(editor.client.end().await.success());
}

#[tokio::test]
async fn a_session_begins_in_a_folder_that_is_there() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let file = home.write("work/a.txt", "a");
    let mut editor = Editor::start(&home, &config(&fake), json!({})).await;
    let there = home.workspace();
    for (cwd, more, sentence) in [
        (there.join("gone"), vec![], "There is no folder"),
        (file, vec![], "There is no folder"),
        (there.clone(), vec![there.join("gone")], "There is no folder"),
        ("work".into(), vec![], "not an absolute path"),
    ] {
        let new = json!({"cwd": cwd, "additionalDirectories": more, "mcpServers": []});
        let (code, said) = editor.client.refused("session/new", new.clone()).await;
        assert!(code == -32602 && said.contains(sentence), "{new}: {code} {said}");
    }
    // The connection and its other session go on.
    fake.answer(Answer::text("ok"));
    assert_eq!(editor.say("hi").await, "end_turn");
    assert!(editor.client.end().await.success());
}

#[tokio::test]
async fn turns_end_with_every_stop_reason() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut editor = Editor::start(&home, &config(&fake), json!({})).await;
    fake.answer(Answer::text("ok"));
    assert_eq!(editor.say("end").await, "end_turn");
    fake.answer(Answer::text("too long").stop("max_tokens"));
    assert_eq!(editor.say("long").await, "max_tokens");
    fake.answer(Answer::text("I will not").stop("refusal"));
    assert_eq!(editor.say("bad").await, "refusal");
    // The same call over and over.
    for _ in 0..8 {
        fake.answer(Answer::tool_call("c", "eca__glob", json!({"pattern": "none"})));
    }
    assert_eq!(editor.say("circle").await, "max_turn_requests");
    drop((editor.client.end().await, fake));
    let fake = FakeModel::start().await;
    let mut editor = Editor::start(&home, &config(&fake), json!({})).await;
    for by_request in [false, true] {
        fake.answer(Answer::text("one two").silence());
        let id = editor.begin(json!([{"type": "text", "text": "count"}])).await;
        editor.until(|it| it["params"]["update"]["sessionUpdate"] == "agent_message_chunk").await;
        if by_request {
            editor.client.notify("$/cancel_request", json!({"requestId": id})).await;
        } else {
            let session = editor.session.clone();
            editor.client.notify("session/cancel", json!({"sessionId": session})).await;
        }
        let response = editor.until_response(id).await;
        assert_eq!(response["result"]["stopReason"], "cancelled", "by request: {by_request}");
    }
    fake.wait_for_hangups(2).await;
    // What fails is an error with a sentence, and the session goes on.
    fake.answer(Answer::status(401));
    let response = editor.prompt(json!([{"type": "text", "text": "no key"}])).await;
    assert_eq!(response["error"]["code"], -32000, "{response}");
    fake.answer(Answer::text("ok"));
    assert_eq!(editor.say("again").await, "end_turn");
    assert!(editor.client.end().await.success());
}

#[tokio::test]
async fn everything_that_happens_is_told() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/a.txt", "one\n");
    let mut editor = Editor::start(&home, &config(&fake), json!({})).await;
    let tasks = json!({"tasks": [{"text": "look", "status": "in_progress"}, {"text": "leap"}]});
    fake.answer(Answer::new().reasoning("Hm.").say("First.").call("c1", "eca__task", tasks));
    fake.answer(Answer::tool_call(
        "c2",
        "eca__edit_file",
        json!({"path": "a.txt", "original_content": "one", "new_content": "two"}),
    ));
    fake.answer(Answer::text("Done."));
    editor.choices.push_back("allow_once");
    assert_eq!(editor.say("do it").await, "end_turn");
    let updates = editor.updates.clone();
    let kinds: BTreeSet<&str> = updates.iter().filter_map(|it| it["sessionUpdate"].as_str()).collect();
    for kind in [
        "agent_thought_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "available_commands_update",
        "session_info_update",
        "usage_update",
    ] {
        assert!(kinds.contains(kind), "{kind} in {kinds:?}");
    }
    let of = |kind: &str| updates.iter().find(|it| it["sessionUpdate"] == kind).expect("it was told");
    assert_eq!(of("plan")["entries"][0]["status"], "in_progress");
    assert_eq!(of("session_info_update")["title"], "do it");
    assert_eq!(of("usage_update")["size"], 1000);
    // A call from its first word to its end: kind, places, raw input and output.
    let edit: Vec<&Value> =
        updates.iter().filter(|it| it["toolCallId"] == editor.last("toolCallId")).collect();
    let field =
        |name: &str| edit.iter().rev().filter_map(|it| it.get(name)).next().cloned().unwrap_or_default();
    assert_eq!((field("kind"), field("status")), (json!("edit"), json!("completed")));
    assert_eq!(field("locations")[0]["path"], json!(home.workspace().join("a.txt")));
    assert_eq!(field("rawInput")["new_content"], "two");
    assert!(field("rawOutput").is_string());
    // Slash commands are ours.
    assert_eq!(editor.say("/costs").await, "end_turn");
    assert!(!editor.text("agent_message_chunk").is_empty());
    assert_eq!(fake.requests().len(), 3, "a command is no prompt");
    assert!(editor.client.end().await.success());
}
