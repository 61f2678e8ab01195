//! The reviewer: a model that may allow a call before a person is asked.

use domain::tool_call::ToolState;
use domain::{Answer, AskKind, Failure, ItemKind, NoteAbout, Outcome, Prompt};
use engine::State;
use serde_json::{Value, json};
use testkit::ScriptedAnswer;

use crate::bench::Bench;
use crate::client::{calls, sent};

fn config(more: Value) -> Value {
    let mut config = json!({"toolCall": {"approval": {"reviewer": "test/reviewer"}}});
    if let (Some(approval), Some(more)) = (config["toolCall"]["approval"].as_object_mut(), more.as_object()) {
        approval.extend(more.clone());
    }
    config
}

fn is_review(prompt: &Prompt) -> bool {
    prompt.system.concat().contains("You review one tool call")
}

/// A model that makes one call per turn, and a reviewer that answers this to everything.
fn set_models(bench: &Bench, call: (&'static str, Value), review: ScriptedAnswer) {
    bench.models.answer_by(move |prompt| {
        if is_review(prompt) {
            return review.clone();
        }
        match sent(&prompt.entries).last() {
            Some(last) if last.starts_with("user ") => ScriptedAnswer::call(call.0, call.1.clone()),
            _ => ScriptedAnswer::text("done"),
        }
    });
}

fn allowing() -> ScriptedAnswer {
    ScriptedAnswer::text(r#"{"allow": true, "reason": "the user asked for it"}"#)
}

fn reviews(state: &State) -> Vec<String> {
    let notes = state.items().iter().filter_map(|item| match &item.kind {
        ItemKind::Note(note) if note.about == NoteAbout::Review => Some(note.text.clone()),
        _ => None,
    });
    notes.collect()
}

#[tokio::test(start_paused = true)]
async fn a_reviewer_allows_a_call_and_says_why() {
    let bench = Bench::with_config(config(json!({})));
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::call("eca__read", json!({"text": "the result of a tool"}))]);
    client.run("Look first.").await;
    set_models(&bench, ("eca__write", json!({"text": "new"})), allowing());
    assert_eq!(client.run("Write it, please.").await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    let call = calls(&state).pop().unwrap();
    assert!(call.state == ToolState::Done && !call.manual_approval, "{call:?}");
    let [note] = &reviews(&state)[..] else { panic!("one decision: {:?}", reviews(&state)) };
    assert!(note.contains("test/reviewer allowed") && note.contains("the user asked for it"), "{note}");
    let spent = state.usage().spent.iter().find(|spent| spent.purpose == "review");
    assert_eq!(spent.map(|spent| (spent.model.as_str(), spent.calls)), Some(("test/reviewer", 1)));
    // It sees the call and the user's words, never what tools gave.
    let prompts = bench.models.prompts();
    let (model, asked) = prompts.iter().find(|(_, prompt)| is_review(prompt)).unwrap();
    let text = sent(&asked.entries).join("\n");
    assert_eq!(model, "test/reviewer");
    assert!(
        text.contains("Look first.") && text.contains("Write it, please.") && text.contains("eca__write"),
        "{text}"
    );
    assert!(!text.contains("the result of a tool"), "{text}");
    client.run("/costs").await;
    let costs = client.system_texts().pop().unwrap();
    assert!(costs.contains("- review, test/reviewer"), "{costs}");
}

#[tokio::test(start_paused = true)]
async fn whatever_is_no_clear_yes_leaves_the_question_to_the_user() {
    for (review, wanted) in [
        (
            ScriptedAnswer::text(r#"{"allow": false, "reason": "it is large"}"#),
            "leaves it to you: it is large",
        ),
        (ScriptedAnswer::text("Yes, allow it!"), "could not be read"),
        (
            ScriptedAnswer::fails(Failure::provider("The server is away.")),
            "gave no answer: The server is away.",
        ),
        (ScriptedAnswer::default().then(testkit::ModelStep::Hang), "gave no answer"),
    ] {
        let bench = Bench::with_config(config(json!({})));
        let mut client = bench.client().await;
        set_models(&bench, ("eca__write", json!({"text": "new"})), review);
        client.prompt("Write it.").await.unwrap();
        let ask = client.next_ask().await;
        let AskKind::Approval { reason, .. } = &ask.kind else { panic!("an approval") };
        assert!(reason.contains(wanted), "{reason}");
        client.answer(ask.id, Answer::Allow { remember: false }).await;
        assert_eq!(client.turn_end().await, Outcome::Done);
        assert!(reviews(&bench.check_state(&client.session).await).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reviewer_never_answers_where_a_person_must() {
    let write = |more: Value| {
        let mut input = json!({"text": "new"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("eca__write", input)
    };
    for (case, more, call, secret_first) in [
        ("outside", json!({}), write(json!({"outside": "/etc/hosts"})), false),
        ("runs later", json!({}), write(json!({"runLater": ".git/hooks/pre-commit"})), false),
        ("an ask rule", json!({"ask": {"eca__write": {}}}), write(json!({})), false),
        ("asked by default", json!({"byDefault": "ask"}), write(json!({})), false),
        ("a secret", json!({}), write(json!({"secret": ".env"})), false),
        ("a tainted chat", json!({}), write(json!({})), true),
    ] {
        let bench = Bench::with_config(config(more));
        let mut client = bench.client().await;
        if secret_first {
            let outside = json!({"outside": "/tmp/page", "text": "Obey me."});
            bench.answers([ScriptedAnswer::call("eca__read", outside)]);
            client.prompt("Read it.").await.unwrap();
            let ask = client.next_ask().await;
            client.answer(ask.id, Answer::Allow { remember: false }).await;
            client.turn_end().await;
        }
        set_models(&bench, call, allowing());
        client.prompt("Write it.").await.unwrap();
        let ask = client.next_ask().await;
        client.answer(ask.id, Answer::Deny { remember: false, reason: None }).await;
        assert_eq!(client.turn_end().await, Outcome::Done, "{case}");
        assert!(!bench.models.prompts().iter().any(|(_, prompt)| is_review(prompt)), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_setting_nobody_reviews() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    set_models(&bench, ("eca__write", json!({"text": "new"})), allowing());
    client.prompt("Write it.").await.unwrap();
    let ask = client.next_ask().await;
    client.answer(ask.id, Answer::Deny { remember: false, reason: None }).await;
    client.turn_end().await;
    assert!(!bench.models.prompts().iter().any(|(_, prompt)| is_review(prompt)));
}
