//! A chat that has read text of strangers: what it asks about, and how long.

use domain::command::SessionSettings;
use domain::{Abilities, Answer, AskKind, Command, Fact, Outcome};
use serde_json::{Value, json};
use testkit::ScriptedAnswer;

use crate::bench::Bench;
use crate::client::{Client, calls, person};

fn trusted() -> SessionSettings {
    SessionSettings { trust: Some(true), ..SessionSettings::default() }
}

/// Runs a turn in which the model makes one call.
async fn call(bench: &Bench, client: &mut Client, tool: &str, input: Value) -> Outcome {
    bench.models.answer(ScriptedAnswer::call(tool, input));
    client.run("go").await
}

/// Lets the model change a file that runs later, and tells whether a person had to approve it.
async fn asks_about_hooks(bench: &Bench, client: &mut Client) -> bool {
    bench.models.answer(ScriptedAnswer::call("eca__write", json!({"runLater": ".git/hooks/x"})));
    client.prompt("go").await.unwrap();
    let asked = client.until_fact(|fact| match fact {
        Fact::AskRaised { ask } => Some(Some(ask.clone())),
        Fact::TurnEnded { .. } => Some(None),
        _ => None,
    });
    let asked = asked.await;
    if let Some(ask) = &asked {
        let AskKind::Approval { reason, keys } = &ask.kind else { panic!("{ask:?}") };
        assert!(reason.contains("tainted") && reason.contains(".git/hooks/x"), "{reason}");
        assert!(keys.is_empty(), "an approval covers this call alone: {keys:?}");
        client.answer(ask.id, Answer::Allow { remember: true }).await;
        assert_eq!(client.turn_end().await, Outcome::Done);
    }
    asked.is_some()
}

#[tokio::test(start_paused = true)]
async fn a_tainted_chat_asks_each_time_though_it_is_trusted() {
    let bench = Bench::new();
    let mut client = bench.client_with(person()).await;
    client.configure(trusted()).await.unwrap();
    assert!(!asks_about_hooks(&bench, &mut client).await, "nothing was read yet");
    call(&bench, &mut client, "eca__read", json!({"outside": "/elsewhere/notes"})).await;
    assert!(asks_about_hooks(&bench, &mut client).await);
    assert!(asks_about_hooks(&bench, &mut client).await, "an approval is not remembered");
    // A summary of tainted text is tainted too.
    call(&bench, &mut client, "eca__compact", json!({"text": "a summary"})).await;
    assert!(asks_about_hooks(&bench, &mut client).await);
    let fork =
        client.call(|session, reply| Command::Fork { session, until: None, id: None, reply }).await.unwrap();
    let fork = bench.join(&fork.id).await;
    fork.configure(trusted()).await.unwrap();
    assert!(bench.check_state(&fork.session).await.taint().is_tainted());
    client.run("/taint").await;
    let shown = client.system_texts().join("\n");
    assert!(shown.contains("/elsewhere/notes"), "{shown}");
    client.run("/taint clear").await;
    assert!(!asks_about_hooks(&bench, &mut client).await);
    assert!(!bench.check_state(&client.session).await.taint().is_tainted());
}

#[tokio::test(start_paused = true)]
async fn a_tainted_chat_asks_about_code_that_nobody_approved() {
    let rule =
        json!({"toolCall": {"approval": {"allow": {"run": {"argsMatchers": {"command": ["make test"]}}}}}});
    let bench = Bench::with_config(rule);
    let mut client = bench.client_with(person()).await;
    client.configure(trusted()).await.unwrap();
    call(&bench, &mut client, "eca__write", json!({"text": "x"})).await;
    assert!(!bench.check_state(&client.session).await.taint().is_tainted());
    call(&bench, &mut client, "eca__run", json!({"command": "make all"})).await;
    let taint = bench.check_state(&client.session).await.taint().clone();
    assert!(taint.sources()[0].starts_with("output of"), "{taint:?}");
    // Named by a rule of the user's.
    call(&bench, &mut client, "eca__run", json!({"command": "make test"})).await;
    bench.models.answer(ScriptedAnswer::call("eca__run", json!({"command": "make all"})));
    client.prompt("go").await.unwrap();
    let ask = client.next_ask().await;
    let AskKind::Approval { reason, .. } = &ask.kind else { panic!("{ask:?}") };
    assert!(reason.contains("tainted") && reason.contains("runs code"), "{reason}");
    client.answer(ask.id, Answer::Allow { remember: true }).await;
    assert_eq!(client.turn_end().await, Outcome::Done);
    // Remembered for this command.
    call(&bench, &mut client, "eca__run", json!({"command": "make all"})).await;
}

#[tokio::test(start_paused = true)]
async fn the_mark_survives_a_kill() {
    let bench = Bench::new();
    let mut client = bench.client_with(person()).await;
    client.configure(trusted()).await.unwrap();
    call(&bench, &mut client, "eca__read", json!({"outside": "/elsewhere/notes"})).await;
    let session = client.session.clone();
    bench.kill();
    let other = bench.other_process();
    let mut client = other.join(&session).await;
    assert!(other.stored_state(&session).taint().is_tainted());
    client.prompt("hello").await.unwrap();
    client.turn_end().await;
    assert!(other.check_state(&session).await.taint().is_tainted());
}

/// Removing a part of the history keeps the mark, because what stays may depend on it; an empty history has none.
#[tokio::test(start_paused = true)]
async fn the_mark_survives_a_rollback_but_not_an_empty_history() {
    let bench = Bench::new();
    let mut client = bench.client_with(person()).await;
    client.configure(trusted()).await.unwrap();
    client.run("first").await;
    call(&bench, &mut client, "eca__read", json!({"outside": "/elsewhere/notes"})).await;
    let state = bench.check_state(&client.session).await;
    let second =
        state.items().iter().filter(|item| matches!(item.kind, domain::ItemKind::UserMessage { .. })).nth(1);
    client.rollback(second.map(|item| item.id)).await.unwrap();
    assert!(bench.check_state(&client.session).await.taint().is_tainted());
    client.rollback(None).await.unwrap();
    assert!(!bench.check_state(&client.session).await.taint().is_tainted());
}

#[tokio::test(start_paused = true)]
async fn the_mark_goes_with_the_text_into_a_resumed_chat() {
    let bench = Bench::new();
    let mut client = bench.client_with(person()).await;
    client.configure(trusted()).await.unwrap();
    call(&bench, &mut client, "eca__read", json!({"outside": "/elsewhere/notes"})).await;
    let mut other = bench.client_with(person()).await;
    other.configure(trusted()).await.unwrap();
    other.run(&format!("/resume {}", client.session)).await;
    assert!(bench.check_state(&other.session).await.taint().is_tainted());
    assert!(asks_about_hooks(&bench, &mut other).await);
}

/// A subagent begins with what its parent has read, and brings what it has read itself back.
#[tokio::test(start_paused = true)]
async fn the_mark_goes_to_subagents_and_back() {
    let spawn =
        |task: &str| ScriptedAnswer::call("eca__spawn_agent", json!({"agent": "general", "task": task}));
    let child_of = |state: &engine::State| {
        let calls = calls(state);
        let details = calls.iter().rev().find_map(|call| call.details.clone());
        let Some(domain::tool_call::Details::Subagent { session, .. }) = details else {
            panic!("{details:?}")
        };
        session
    };
    let bench = Bench::with_config(json!({"chat": {"title": false}}));
    let mut client = bench.client_with(Abilities::default()).await;
    client.configure(trusted()).await.unwrap();
    bench.answers([
        spawn("read it"),
        ScriptedAnswer::call("eca__read", json!({"outside": "/elsewhere/notes"})),
        ScriptedAnswer::text("read"),
        ScriptedAnswer::text("fine"),
    ]);
    assert_eq!(client.run("go").await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    assert!(bench.stored_state(&child_of(&state)).taint().is_tainted());
    assert!(state.taint().is_tainted(), "the answer of a tainted chat taints");
    bench.answers([
        spawn("write it"),
        ScriptedAnswer::call("eca__write", json!({"runLater": ".git/hooks/x"})),
        ScriptedAnswer::text("written"),
        ScriptedAnswer::text("fine"),
    ]);
    assert_eq!(client.run("go").await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    let refused = calls(&bench.stored_state(&child_of(&state))).remove(0);
    assert!(refused.error && format!("{:?}", refused.result).contains("tainted"), "{refused:?}");
}

/// `eca__run` says nothing of what it reaches, so it counts as code that could do anything.
#[tokio::test(start_paused = true)]
async fn secrets_do_not_leave_a_tainted_chat_where_nobody_can_be_asked() {
    let bench = Bench::new();
    let mut client = bench.client_with(Abilities::default()).await;
    client.configure(trusted()).await.unwrap();
    let results =
        |state: &engine::State| -> Vec<bool> { calls(state).iter().map(|call| call.error).collect() };
    call(&bench, &mut client, "eca__read", json!({"secret": ".env"})).await;
    call(&bench, &mut client, "eca__run", json!({"command": "send"})).await;
    assert_eq!(results(&bench.check_state(&client.session).await), [false, false], "secrets alone");
    call(&bench, &mut client, "eca__read", json!({"outside": "/elsewhere/notes"})).await;
    call(&bench, &mut client, "eca__run", json!({"command": "send"})).await;
    let state = bench.check_state(&client.session).await;
    assert_eq!(results(&state), [false, false, false, true]);
    let told = format!("{:?}", calls(&state)[3].result);
    assert!(told.contains("has read a secret (.env)") && told.contains("Nobody can be asked"), "{told}");
}

/// A person who answers a question has seen its call; a question that another answer settles was seen by nobody.
#[tokio::test(start_paused = true)]
async fn only_a_call_that_a_person_saw_loses_its_protection() {
    let bench = Bench::new();
    let mut client = bench.client_with(person()).await;
    client.configure(trusted()).await.unwrap();
    call(&bench, &mut client, "eca__read", json!({"outside": "/elsewhere/notes"})).await;
    client.configure(SessionSettings { trust: Some(false), ..SessionSettings::default() }).await.unwrap();
    let input = |text: &str| json!({"outside": "/far/away", "protected": true, "text": text});
    bench.answers([ScriptedAnswer::call("eca__read", input("1")).and_call("eca__read", input("2"))]);
    client.prompt("go").await.unwrap();
    let (first, _) = (client.next_ask().await, client.next_ask().await);
    client.answer(first.id, Answer::Allow { remember: true }).await;
    assert_eq!(client.turn_end().await, Outcome::Done);
    let sent = bench.last_sent();
    assert_eq!(sent[sent.len() - 2..], ["result free", "result protected"], "{sent:?}");
    bench.check_state(&client.session).await;
}

/// A question stays open by what raised it: here by what a call before it is about to read.
#[tokio::test(start_paused = true)]
async fn a_question_is_settled_by_the_decision_that_raised_it() {
    let bench = Bench::new();
    let mut client = bench.client_with(person()).await;
    let reads = json!({"outside": "/far/away"});
    let changes = json!({"runLater": ".git/hooks/x"});
    bench.answers([ScriptedAnswer::call("eca__read", reads).and_call("eca__read", changes)]);
    client.prompt("go").await.unwrap();
    let (first, second) = (client.next_ask().await, client.next_ask().await);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let open: Vec<_> = bench.check_state(&client.session).await.open_asks().map(|ask| ask.id).collect();
    assert_eq!(open, [first.id, second.id], "nothing was read yet, and the question is still there");
    for ask in [first, second] {
        client.answer(ask.id, Answer::Allow { remember: false }).await;
    }
    assert_eq!(client.turn_end().await, Outcome::Done);
}
