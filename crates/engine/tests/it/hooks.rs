//! Hooks: what they hear, and what they can change, add, forbid and stop.

use domain::command::SessionSettings;
use domain::item::ItemKind;
use domain::tool_call::ToolState;
use domain::{Abilities, Command, Outcome};
use serde_json::{Value, json};
use testkit::ScriptedAnswer;

use crate::bench::Bench;
use crate::client::{calls, lines, person};

/// Hooks by event, each a line of the test's runner.
fn config(hooks: &[(&str, &str)]) -> Value {
    let named = (0..).zip(hooks).map(|(at, (event, line)): (u32, _)| {
        (format!("h{at}"), json!({"type": event, "actions": [{"type": "shell", "shell": line}]}))
    });
    json!({"hooks": serde_json::Map::from_iter(named), "chat": {"title": false}})
}

fn trusted() -> SessionSettings {
    SessionSettings { trust: Some(true), ..SessionSettings::default() }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_is_rewritten_extended_and_blocked() {
    let bench = Bench::with_config(config(&[
        ("chatStart", r#"{"additionalContext": "It is Monday."}"#),
        ("preRequest", r#"{"replacedPrompt": "rewritten", "additionalContext": "Be kind."}"#),
        ("preRequest", r#"{"systemMessage": "seen"}"#),
    ]));
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::text("one"), ScriptedAnswer::text("two")]);
    assert_eq!(client.run("first").await, Outcome::Done);
    let sent = bench.last_sent().join("\n");
    assert!(sent.contains("user rewritten") && !sent.contains("user first"), "{sent}");
    assert!(sent.contains("It is Monday.") && sent.contains("Be kind."), "{sent}");
    assert_eq!(client.system_texts(), ["Hook 'h2': seen"]);
    assert_eq!(client.run("second").await, Outcome::Done);
    let inputs = bench.workspaces.hook_inputs("preRequest");
    let prompts: Vec<&Value> = inputs.iter().map(|input| &input["prompt"]).collect();
    assert_eq!(prompts, ["first", "rewritten", "second", "rewritten"], "rewrites chain");
    let started = bench.workspaces.hook_inputs("chatStart");
    assert_eq!(started.len(), 1, "once for each chat and process");
    assert_eq!((&started[0]["resumed"], &started[0]["agent"]), (&json!(false), &json!("code")));
    assert_eq!(started[0]["chat_id"], client.session.as_str());
    let state = bench.check_state(&client.session).await;
    assert!(lines(&state).contains(&"user first".to_owned()), "people see what they typed");

    for (line, why) in [
        ("exit 2 no such words", "Request blocked by hook 'h0': no such words"),
        (r#"{"continue": false, "stopReason": "late"}"#, "Turn stopped by hook 'h0': late"),
    ] {
        let bench = Bench::with_config(config(&[("preRequest", line)]));
        let mut client = bench.client().await;
        let Outcome::Failed { failure } = client.run("blocked").await else { panic!("{line}") };
        assert_eq!(failure.message, why);
        assert!(bench.models.prompts().is_empty(), "no model was asked");
        let state = bench.check_state(&client.session).await;
        assert!(lines(&state).contains(&"command blocked".to_owned()), "{:?}", lines(&state));
    }
}

/// Runs one call of the tool `write`, which is asked by default, and tells how it ended.
async fn write_call(
    hooks: &[(&str, &str)],
    more: Value,
    abilities: Abilities,
    trust: bool,
) -> (String, String) {
    let mut settings = config(hooks);
    for (key, value) in more.as_object().unwrap() {
        settings[key] = value.clone();
    }
    let bench = Bench::with_config(settings);
    let mut client = bench.client_with(abilities).await;
    if trust {
        client.configure(trusted()).await.unwrap();
    }
    bench.answers([
        ScriptedAnswer::call("eca__write", json!({"text": "result"})),
        ScriptedAnswer::text("done"),
    ]);
    client.prompt("go").await.unwrap();
    client.turn_end().await;
    let state = bench.check_state(&client.session).await;
    let call = calls(&state).remove(0);
    let word = match call.state {
        ToolState::Done => "ran",
        ToolState::Rejected { .. } => "rejected",
        _ => "other",
    };
    (word.to_owned(), format!("{:?}", call.result))
}

#[tokio::test(start_paused = true)]
async fn hooks_decide_about_calls_but_never_against_rules() {
    let allow = r#"{"approval": "allow"}"#;
    let ask = r#"{"approval": "ask"}"#;
    let deny = r#"{"approval": "deny", "additionalContext": "use another file"}"#;
    let rules = |kind: &str| json!({"toolCall": {"approval": {kind: {"eca__write": {}}}}});
    // Nobody can be asked, so an ask is a rejection.
    let nobody = Abilities::default;
    #[rustfmt::skip]
    let cases = [
        ("an allow goes before the default", vec![("preToolCall", allow)], json!({}), false, "ran"),
        ("not before an ask rule", vec![("preToolCall", allow)], rules("ask"), false, "rejected"),
        ("not before a deny rule", vec![("preToolCall", allow)], rules("deny"), false, "rejected"),
        ("a denial goes before an allow rule", vec![("preToolCall", deny)], rules("allow"), true, "rejected"),
        ("an ask goes before trust", vec![("preToolCall", ask)], rules("allow"), true, "rejected"),
        ("a code of 2 denies", vec![("preToolCall", "exit 2 never")], rules("allow"), true, "rejected"),
        ("other codes say nothing", vec![("preToolCall", "exit 1 oops")], rules("allow"), false, "ran"),
        ("a missing program is no consent", vec![("preToolCall", "exit 127 gone")], rules("allow"), true, "rejected"),
        ("a timeout is no consent", vec![("preToolCall", "hang")], rules("allow"), true, "rejected"),
        ("the strictest holds", vec![("preToolCall", deny), ("preToolCall", allow)], json!({}), true, "rejected"),
        ("a hook about other events", vec![("postRequest", deny)], rules("allow"), false, "ran"),
    ];
    for (what, hooks, more, trust, want) in cases {
        let (got, result) = write_call(&hooks, more, nobody(), trust).await;
        assert_eq!(got, want, "{what}: {result}");
    }
    let (_, result) = write_call(&[("preToolCall", deny)], json!({}), nobody(), true).await;
    assert!(result.contains("use another file"), "the model learns why: {result}");
}

#[tokio::test(start_paused = true)]
async fn arguments_and_results_are_changed_and_a_turn_is_stopped() {
    let (_, result) = write_call(
        &[
            ("preToolCall", r#"{"updatedInput": {"text": "changed"}, "approval": "allow"}"#),
            ("postToolCall", r#"{"additionalContext": "and more"}"#),
        ],
        json!({}),
        Abilities::default(),
        false,
    )
    .await;
    assert!(result.contains("changed") && result.contains("and more"), "{result}");
    let allowed = json!({"toolCall": {"approval": {"allow": {"eca__write": {}}}}});
    for (line, want) in [
        (r#"{"replacedOutput": "hidden"}"#, "hidden"),
        ("exit 2 withheld", "withheld"),
        ("exit 2 ", "[Tool output hidden by hook]"),
    ] {
        let hooks = [("postToolCall", line)];
        let (word, result) = write_call(&hooks, allowed.clone(), Abilities::default(), false).await;
        assert!(word == "ran" && result.contains(want) && !result.contains("result"), "{line}: {result}");
    }
    for event in ["preToolCall", "postToolCall"] {
        let mut settings = config(&[(event, r#"{"continue": false}"#)]);
        settings["toolCall"] = allowed["toolCall"].clone();
        let bench = Bench::with_config(settings);
        let mut client = bench.client().await;
        bench.answers([ScriptedAnswer::call("eca__write", json!({"text": "result"}))]);
        let Outcome::Failed { failure } = client.run("go").await else { panic!("{event}") };
        assert_eq!(failure.message, "Turn stopped by hook 'h0'.", "{event}");
        assert_eq!(bench.models.prompts().len(), 1, "the model is not asked again");
        bench.check_state(&client.session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_follow_up_goes_on_and_a_compaction_is_blocked() {
    let bench = Bench::with_config(config(&[("postRequest", r#"{"followUp": "Run the tests"}"#)]));
    let mut client = bench.client_with(person()).await;
    bench.answers([ScriptedAnswer::text("one"), ScriptedAnswer::text("two")]);
    client
        .prompt_with(domain::command::UserPrompt {
            text: "go".into(),
            limits: domain::command::TurnLimits { max_steps: Some(2), ..Default::default() },
            ..Default::default()
        })
        .await
        .unwrap();
    assert_eq!(client.turn_end().await, Outcome::MaxSteps, "steps bound a hook that always wants more");
    let inputs = bench.workspaces.hook_inputs("postRequest");
    let active: Vec<&Value> = inputs.iter().map(|input| &input["follow_up_active"]).collect();
    assert_eq!(active, [&json!(false), &json!(true)]);
    assert_eq!((&inputs[0]["response"], &inputs[1]["response"]), (&json!("one"), &json!("two")));
    assert!(bench.last_sent().contains(&"user Run the tests".to_owned()));

    let bench = Bench::with_config(config(&[("preCompact", "exit 2 keep it")]));
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::text("one")]);
    client.run("go").await;
    assert_eq!(client.run("/compact the names").await, Outcome::Done);
    assert_eq!(client.system_texts(), ["Compaction blocked by hook 'h0'."]);
    let input = bench.workspaces.hook_inputs("preCompact").remove(0);
    assert_eq!((&input["triggered"], &input["custom_instructions"]), (&json!("manual"), &json!("the names")));

    let bench = Bench::with_config(config(&[("postCompact", r#"{"additionalContext": "The port is 81."}"#)]));
    let mut client = bench.client().await;
    bench.answers([
        ScriptedAnswer::text("one"),
        ScriptedAnswer::text("SUMMARY"),
        ScriptedAnswer::text("three"),
    ]);
    client.run("go").await;
    client.run("/compact").await;
    client.run("and now").await;
    let sent = bench.last_sent().join("\n");
    assert!(sent.contains("SUMMARY") && sent.contains("The port is 81."), "{sent}");
}

/// A stop ends a hook that hangs, and the chat shows each action from its start to its end.
#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_is_stopped_and_seen() {
    let bench = Bench::with_config(config(&[("preRequest", "hang")]));
    let mut client = bench.client().await;
    client.prompt("go").await.unwrap();
    client.until_progress("Running the hook h0").await;
    client.cancel().await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    let state = bench.check_state(&client.session).await;
    let runs = state.items().iter().filter_map(|item| match &item.kind {
        ItemKind::Hook(run) => Some((run.name.as_str(), run.status, run.error.as_str())),
        _ => None,
    });
    assert_eq!(runs.collect::<Vec<_>>(), [("h0", None, "it did not end by itself")]);
    assert!(bench.models.prompts().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_chat_is_heard_when_it_is_deleted() {
    let bench = Bench::with_config(config(&[("chatEnd", "{}")]));
    let mut client = bench.client().await;
    client.run("one").await;
    assert!(
        bench.workspaces.hook_inputs("chatEnd").is_empty(),
        "a chat that can be opened again has not ended"
    );
    client.call(|session, reply| Command::Delete { session, reply }).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let ended = bench.workspaces.hook_inputs("chatEnd");
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["chat_id"], client.session.as_str());
}
