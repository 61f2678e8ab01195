//! `chat`: with a model, without, and with one that does not answer.

use std::time::Duration;

use apiui::customize::{Outcome, wish};
use domain::Failure;
use proto_copilot::Limits;
use serde_json::{Value, json};

use crate::host::{Host, SDL, Say, normalized, two_tables};

fn asking(message: &str, spec: bool, interface: bool) -> Value {
    json!({"message": message, "context": {"tabId": "t", "hasActiveSpec": spec, "hasActiveInterface": interface}})
}

fn suggestions(answer: &Value) -> Vec<String> {
    let all = answer["result"]["suggestions"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
    let all: Vec<String> = all.map(|one| one.as_str().expect("text").to_owned()).collect();
    assert!((2..=4).contains(&all.len()), "{all:?}");
    all
}

#[tokio::test]
async fn without_a_model_it_answers_from_what_it_knows() {
    let mut host = Host::new().await;
    for (id, (message, spec, interface, says)) in (1..).zip([
        ("What formats do you support?", true, true, "Swagger 2.0"),
        ("What formats do you support?", false, false, "Nothing is open yet"),
        ("What can I change?", false, true, "An interface is open"),
        ("How do I start?", true, false, "A specification is open"),
        ("How do I add a model?", false, false, "ANTHROPIC_API_KEY"),
        ("Are my credentials safe?", false, true, "never in the code"),
        ("Use the dark theme", false, true, "customization"),
        ("Use the dark theme", false, false, "none is open"),
        ("Tell me a joke", false, false, "I turn API specifications into user interfaces"),
    ]) {
        let answer = host.call(id, "chat", asking(message, spec, interface)).await;
        let told = answer["result"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(told.contains(says), "{message}: {told}");
        suggestions(&answer);
    }
}

#[tokio::test]
async fn suggestions_work_when_sent() {
    let mut host = Host::new().await;
    // Where an interface is open they are wishes that every interface takes.
    let answer = host.call(1, "chat", asking("hello", true, true)).await;
    for (id, spec) in (10..).zip([two_tables(), normalized(), json!(SDL)]) {
        let code = host.generated(spec).await;
        let plan = apiui::print::plan_of(&code).expect("a plan");
        for suggestion in suggestions(&answer) {
            assert!(matches!(wish(&plan, &suggestion, &[]), Outcome::Edited { .. }), "{suggestion}");
            let params = json!({"currentCode": code, "prompt": suggestion});
            assert!(host.call(id, "customize", params).await["result"]["code"].is_string(), "{suggestion}");
        }
    }
    // Otherwise they are questions with an answer.
    let answer = host.call(2, "chat", asking("hello", false, false)).await;
    for suggestion in suggestions(&answer) {
        let answer = host.call(3, "chat", asking(&suggestion, false, false)).await;
        let told = answer["result"]["message"].as_str().expect("a message");
        assert!(!told.contains("I cannot say more"), "{suggestion}: {told}");
        assert!(!suggestions(&answer).contains(&suggestion), "it does not suggest what was just asked");
    }
}

#[tokio::test]
async fn a_model_answers_and_our_suggestions_stay() {
    let mut host = Host::with(vec![Say::Text("By model.".to_owned())], Limits::default()).await;
    let answer = host.call(1, "chat", asking("Why?", true, false)).await;
    assert_eq!(answer["result"]["message"], "By model.");
    suggestions(&answer);
    let calls = host.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].messages, ["Why?"]);
    assert!(calls[0].deadline < Duration::from_secs(8));
}

#[tokio::test]
async fn whatever_the_model_does_there_is_an_answer() {
    let says = [Say::Hang, Say::Fail(Failure::provider("It broke.")), Say::Text("  ".to_owned())];
    for say in says {
        let limits = Limits { chat: Duration::from_secs(1), ..Limits::default() };
        let mut host = Host::with(vec![say], limits).await;
        let answer = host.call(1, "chat", asking("What formats do you support?", true, false)).await;
        assert!(
            answer["result"]["message"].as_str().is_some_and(|told| told.contains("OpenAPI")),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_silent_model_costs_less_than_eight_seconds() {
    assert!(Limits::default().chat < Duration::from_secs(8));
    let mut host = Host::with(vec![Say::Hang], Limits::default()).await;
    let answer = host.call(1, "chat", asking("Why?", true, false)).await;
    assert!(answer["result"]["message"].is_string());
}
