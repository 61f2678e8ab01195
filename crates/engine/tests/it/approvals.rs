//! Who may run which tool: policy, people, and what they remember.

use domain::command::SessionSettings;
use domain::host::Grants;
use domain::tool_call::ToolState;
use domain::{Abilities, Answer, AskKind, Outcome};
use serde_json::{Value, json};
use testkit::ScriptedAnswer;

use crate::bench::Bench;
use crate::client::{calls, person};

fn allow(remember: bool) -> Answer {
    Answer::Allow { remember }
}

fn deny(remember: bool, reason: Option<&str>) -> Answer {
    Answer::Deny { remember, reason: reason.map(str::to_owned) }
}

/// Calls `tool`, gives each ask the next of `answers`, and tells the states and the first result.
async fn called(
    config: Value,
    abilities: Abilities,
    settings: SessionSettings,
    tools: &[&str],
    answers: &[Answer],
) -> (Vec<String>, String) {
    let bench = Bench::with_config(config);
    let mut client = bench.client_with(abilities).await;
    client.configure(settings).await.unwrap();
    for tool in tools {
        bench.models.answer(ScriptedAnswer::call(tool, json!({"command": "ls", "text": "result"})));
    }
    client.prompt("go").await.unwrap();
    for answer in answers {
        let ask = client.next_ask().await;
        client.answer(ask.id, answer.clone()).await;
    }
    assert_eq!(client.turn_end().await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    assert_eq!(state.open_asks().count(), 0);
    let calls = calls(&state);
    let states = calls.iter().map(|call| match &call.state {
        ToolState::Rejected { by } => format!("{by:?}"),
        other => format!("{other:?}"),
    });
    (states.collect(), format!("{:?}", calls[0].result))
}

#[tokio::test(start_paused = true)]
async fn policy_and_people_decide() {
    let nobody = Abilities::default();
    let grants = |grants| Abilities { grants, ..Abilities::default() };
    let plain = SessionSettings::default;
    let trusted = || SessionSettings { trust: Some(true), ..SessionSettings::default() };
    let plan = || SessionSettings { behavior: Some("plan".into()), ..SessionSettings::default() };
    let rules = |rules: Value| json!({"toolCall": {"approval": rules}});
    let none = || json!({});
    #[allow(clippy::type_complexity, reason = "the columns of a table")]
    let cases: Vec<(&str, Value, Abilities, SessionSettings, &str, Vec<Answer>, &str, &str)> = vec![
        ("reads run", none(), nobody.clone(), plain(), "eca__read", vec![], "Done", "result"),
        ("writes are asked", none(), person(), plain(), "eca__write", vec![allow(false)], "Done", "result"),
        (
            "a no is final",
            none(),
            person(),
            plain(),
            "eca__write",
            vec![deny(false, None)],
            "User",
            "Do not try",
        ),
        (
            "a no has a reason",
            none(),
            person(),
            plain(),
            "eca__write",
            vec![deny(false, Some("later"))],
            "User",
            "said: later",
        ),
        ("nobody can be asked", none(), nobody.clone(), plain(), "eca__write", vec![], "Unasked", "refused"),
        ("trust", none(), nobody.clone(), trusted(), "eca__write", vec![], "Done", "result"),
        ("grants of edits", none(), grants(Grants::EDIT), plain(), "eca__write", vec![], "Done", "result"),
        (
            "grants of edits run nothing",
            none(),
            grants(Grants::EDIT),
            plain(),
            "eca__run",
            vec![],
            "Unasked",
            "refused",
        ),
        ("grants of all", none(), grants(Grants::ALL), plain(), "eca__run", vec![], "Done", "result"),
        (
            "a plan runs nothing that changes",
            none(),
            person(),
            plan(),
            "eca__run",
            vec![],
            "Policy",
            "changes nothing",
        ),
        (
            "a plan has no writing tool",
            none(),
            person(),
            plan(),
            "eca__write",
            vec![],
            "Done",
            "There is no tool",
        ),
        ("a plan previews", none(), person(), plan(), "eca__preview", vec![], "Done", "result"),
        (
            "an agent does not preview",
            none(),
            person(),
            plain(),
            "eca__preview",
            vec![],
            "Done",
            "There is no tool",
        ),
        (
            "deny wins over trust",
            rules(json!({"deny": {"write": {}}})),
            person(),
            trusted(),
            "eca__write",
            vec![],
            "Policy",
            "Forbidden",
        ),
        (
            "ask wins over harmless",
            rules(json!({"ask": {"read": {}}})),
            person(),
            plain(),
            "eca__read",
            vec![allow(false)],
            "Done",
            "result",
        ),
        (
            "allow",
            rules(json!({"allow": {"write": {}}})),
            nobody,
            plain(),
            "eca__write",
            vec![],
            "Done",
            "result",
        ),
    ];
    for (name, config, abilities, settings, tool, answers, state, result) in cases {
        let (states, said) = called(config, abilities, settings, &[tool], &answers).await;
        assert_eq!(states, [state], "{name}");
        assert!(said.contains(result), "{name}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_person_remembers_holds_for_the_session() {
    let plain = SessionSettings::default;
    let twice: [(&str, Vec<Answer>, [&str; 2]); 5] = [
        ("eca__write", vec![allow(true)], ["Done", "Done"]),
        ("eca__write", vec![allow(false), allow(false)], ["Done", "Done"]),
        ("eca__write", vec![deny(true, None)], ["User", "Policy"]),
        ("eca__run", vec![allow(true)], ["Done", "Done"]),
        ("eca__run", vec![allow(false), deny(false, None)], ["Done", "User"]),
    ];
    for (tool, answers, expected) in twice {
        let (states, _) = called(json!({}), person(), plain(), &[tool, tool], &answers).await;
        assert_eq!(states, expected, "{tool} {answers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_wins_and_a_stop_settles_the_rest() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let input = json!({"text": "x"});
    bench.answers([ScriptedAnswer::call("eca__write", input.clone()).and_call("eca__write", input)]);
    client.prompt("go").await.unwrap();
    let first = client.next_ask().await;
    assert!(matches!(&first.kind, AskKind::Approval { reason, .. } if reason == "It changes files."));
    client.answer(first.id, allow(false)).await;
    client.answer(first.id, deny(false, None)).await;
    client.until_progress("Calling tool").await;
    let second = client.next_ask().await;
    client.cancel().await;
    client.answer(second.id, allow(false)).await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    let state = bench.check_state(&client.session).await;
    assert!(calls(&state).iter().all(|call| call.state.is_over()));
    assert_eq!(state.open_asks().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_can_ask_the_user() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::call("eca__ask", json!({"text": "which?"}))]);
    client.prompt("go").await.unwrap();
    let ask = client.next_ask().await;
    assert!(matches!(&ask.kind, AskKind::Question { text, .. } if text == "which?"));
    client.answer(ask.id, Answer::Text { text: "the red one".into() }).await;
    assert_eq!(client.turn_end().await, Outcome::Done);
    assert_eq!(bench.last_sent().last().unwrap(), "result the red one");
    let mute = bench.client_with(Abilities::default()).await;
    bench.answers([ScriptedAnswer::call("eca__ask", json!({"text": "which?"}))]);
    let mut mute = mute;
    assert_eq!(mute.run("go").await, Outcome::Done);
    assert_eq!(bench.last_sent().last().unwrap(), "result Cancelled");
}

/// The editor of the turn cannot show a question; another window of the chat can.
#[tokio::test(start_paused = true)]
async fn another_window_is_asked_where_the_editor_cannot_ask() {
    let bench = Bench::new();
    let mute = bench.client_with(Abilities::default()).await;
    let mut window = bench.join(&mute.session).await;
    bench.answers([ScriptedAnswer::call("eca__ask", json!({"text": "which?"}))]);
    mute.prompt("go").await.unwrap();
    let ask = window.next_ask().await;
    mute.answer(ask.id, Answer::Cancelled).await;
    window.answer(ask.id, Answer::Text { text: "the red one".into() }).await;
    assert_eq!(window.turn_end().await, Outcome::Done);
    assert_eq!(bench.last_sent().last().unwrap(), "result the red one");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_applies_changes_itself_gets_a_proposal() {
    let abilities = Abilities { proposes_changes: true, ..Abilities::default() };
    let settings = SessionSettings::default();
    let (states, said) = called(json!({}), abilities, settings, &["eca__write"], &[]).await;
    assert_eq!(states, ["Done"]);
    assert!(said.contains("as a proposal"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn calls_that_only_read_run_at_once() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.answers([
        ScriptedAnswer::call("eca__ask", json!({"text": "a"})).and_call("eca__ask", json!({"text": "b"}))
    ]);
    client.prompt("go").await.unwrap();
    let asks = [client.next_ask().await, client.next_ask().await];
    for ask in asks.iter().rev() {
        client.answer(ask.id, Answer::Text { text: format!("to {}", ask.id) }).await;
    }
    assert_eq!(client.turn_end().await, Outcome::Done);
    let sent = bench.last_sent();
    assert_eq!(
        sent[sent.len() - 2..],
        [format!("result to {}", asks[0].id), format!("result to {}", asks[1].id)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_is_reviewed_when_its_turn_comes() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let answer = ScriptedAnswer::call("eca__write", json!({"text": "one"}));
    bench.answers([answer.and_call("eca__read", json!({})).and_call("eca__write", json!({"text": "two"}))]);
    client.prompt("go").await.unwrap();
    let first = client.next_ask().await;
    let state = bench.check_state(&client.session).await;
    assert_eq!(state.open_asks().count(), 1, "the last call waits for its turn");
    let states: Vec<ToolState> = calls(&state).into_iter().map(|call| call.state).collect();
    assert_eq!(states[1..], [ToolState::Preparing, ToolState::Preparing]);
    client.answer(first.id, allow(false)).await;
    let second = client.next_ask().await;
    let state = bench.check_state(&client.session).await;
    assert!(calls(&state)[..2].iter().all(|call| call.state == ToolState::Done), "they ran before");
    client.answer(second.id, allow(false)).await;
    assert_eq!(client.turn_end().await, Outcome::Done);
    let results = bench.last_sent().split_off(bench.last_sent().len() - 3);
    assert_eq!(results, ["result one", "result done", "result two"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_calls_whose_turn_has_not_come() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let answer = ScriptedAnswer::call("eca__read", json!({})).and_call("eca__write", json!({"text": "a"}));
    bench.answers([answer.and_call("eca__write", json!({"text": "b"}))]);
    client.prompt("go").await.unwrap();
    client.next_ask().await;
    client.cancel().await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    let calls = calls(&bench.check_state(&client.session).await);
    assert_eq!(calls[0].state, ToolState::Done);
    assert!(calls[1..].iter().all(|call| matches!(call.state, ToolState::Stopped { .. })), "{calls:?}");
    assert_eq!(calls[2].input, Some(json!({"text": "b"})), "people still see what it would have done");
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_the_session_settles_the_questions_that_it_covers() {
    let away = |text: &str| json!({"outside": "/far/away", "text": text});
    let write = |text: &str| json!({"text": text});
    let other = json!({"outside": "/far/off"});
    for (tool, inputs, answers, expected) in [
        // Reading calls are asked about together, others one after the other.
        ("eca__read", vec![away("1"), away("2"), away("3"), away("4")], vec![allow(true)], vec!["Done"; 4]),
        ("eca__read", vec![away("1"), other, away("2")], vec![allow(true), allow(false)], vec!["Done"; 3]),
        (
            "eca__write",
            vec![write("1"), write("2"), write("3"), write("4")],
            vec![allow(true)],
            vec!["Done"; 4],
        ),
        ("eca__write", vec![write("1"), write("2")], vec![deny(true, None)], vec!["User", "Policy"]),
    ] {
        let bench = Bench::new();
        let mut client = bench.client().await;
        let calls_of = |answer: ScriptedAnswer, input: &Value| answer.and_call(tool, input.clone());
        bench.answers([inputs.iter().fold(ScriptedAnswer::default(), calls_of)]);
        client.prompt("go").await.unwrap();
        for answer in &answers {
            // The oldest question that is still open.
            let open = loop {
                let state = bench.check_state(&client.session).await;
                let open = state.open_asks().next().map(|ask| ask.id);
                if let Some(open) = open {
                    break open;
                }
            };
            client.answer(open, answer.clone()).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert_eq!(client.turn_end().await, Outcome::Done, "{tool}");
        let state = bench.check_state(&client.session).await;
        assert_eq!(state.open_asks().count(), 0);
        let states = calls(&state).into_iter().map(|call| match call.state {
            ToolState::Rejected { by } => format!("{by:?}"),
            other => format!("{other:?}"),
        });
        assert_eq!(states.collect::<Vec<_>>(), expected, "{tool} {answers:?}");
    }
    // A refusal for the session settles the questions about the same tool.
    let bench = Bench::new();
    let mut client = bench.client().await;
    let input = json!({"outside": "/far/away"});
    bench.answers([ScriptedAnswer::call("eca__read", input.clone()).and_call("eca__read", input)]);
    client.prompt("go").await.unwrap();
    let (first, _) = (client.next_ask().await, client.next_ask().await);
    client.answer(first.id, deny(true, None)).await;
    assert_eq!(client.turn_end().await, Outcome::Done);
    bench.check_state(&client.session).await;
}

/// A question that a rule asks each time is not settled by an answer to another one.
#[tokio::test(start_paused = true)]
async fn a_rule_that_asks_keeps_asking() {
    let bench = Bench::with_config(json!({"toolCall": {"approval": {"ask": {
        "eca__read": {"argsMatchers": {"text": ["secret"]}},
    }}}}));
    let mut client = bench.client().await;
    let input = json!({"outside": "/far/away", "text": "secret"});
    bench.answers([ScriptedAnswer::call("eca__read", input.clone()).and_call("eca__read", input)]);
    client.prompt("go").await.unwrap();
    let (first, second) = (client.next_ask().await, client.next_ask().await);
    client.answer(first.id, allow(true)).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let state = bench.check_state(&client.session).await;
    assert_eq!(state.open_asks().map(|ask| ask.id).collect::<Vec<_>>(), [second.id]);
    client.answer(second.id, allow(false)).await;
    assert_eq!(client.turn_end().await, Outcome::Done);
}
