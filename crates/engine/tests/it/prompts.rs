//! What a call to the model holds beside the texts of the chat.

use domain::ModelEvent;
use domain::command::{SessionSettings, TurnLimits, UserPrompt};
use domain::item::{Part, ProviderBlock};
use domain::model::{BlockKind, PromptEntry};
use engine::NamedText;
use serde_json::json;
use testkit::{ModelStep, ScriptedAnswer};

use crate::bench::Bench;

fn image() -> Part {
    Part::Image { mime: "image/png".into(), data: "AAAA".into() }
}

#[tokio::test(start_paused = true)]
async fn a_signature_of_the_model_returns_to_it() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let data = json!({"signature": "s"});
    let block = ProviderBlock { format: "anthropic".into(), model: "test/one".into(), data };
    let kinds = [BlockKind::Reasoning, BlockKind::Text];
    let mut answer = ScriptedAnswer::default();
    for (number, kind) in (7..).zip(kinds) {
        answer = answer
            .then(ModelStep::Event(ModelEvent::BlockStarted { block: number, kind }))
            .then(ModelStep::Event(ModelEvent::BlockDelta { block: number, text: "text".into() }))
            .then(ModelStep::Event(ModelEvent::BlockEnded { block: number, provider: Some(block.clone()) }));
    }
    bench.models.answer(answer);
    client.run("hello").await;
    client.run("again").await;
    let (_, prompt) = bench.models.prompts().pop().unwrap();
    let signed = |entry: &&PromptEntry| match entry {
        PromptEntry::Reasoning { provider, .. } | PromptEntry::Agent { provider, .. } => {
            provider.as_ref() == Some(&block)
        }
        PromptEntry::User { .. } | PromptEntry::Call { .. } | PromptEntry::Result { .. } => false,
    };
    assert_eq!(prompt.entries.iter().filter(signed).count(), 2, "{:?}", prompt.entries);
}

#[tokio::test(start_paused = true)]
async fn the_schema_of_the_answer_reaches_the_model() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let schema = json!({"type": "object"});
    let limits = TurnLimits { output_schema: Some(schema.clone()), ..TurnLimits::default() };
    client.run_with(UserPrompt { text: "hello".into(), limits, ..UserPrompt::default() }).await;
    let (_, prompt) = bench.models.prompts().pop().unwrap();
    assert_eq!(prompt.output_schema, Some(schema));
}

#[tokio::test(start_paused = true)]
async fn refused_images_are_not_sent_again() {
    let bench = Bench::new();
    bench.models.set_info(|info| info.images = true);
    let mut client = bench.client().await;
    bench
        .models
        .answer(ScriptedAnswer::default().then(ModelStep::Event(ModelEvent::ImagesRefused)).and_text("ok"));
    let sent_images = || {
        let (_, prompt) = bench.models.prompts().pop().unwrap();
        let images = prompt.entries.iter().filter(|entry| match entry {
            PromptEntry::User { parts } => parts.contains(&image()),
            _ => false,
        });
        images.count()
    };
    client.run_with(UserPrompt { text: "look".into(), parts: vec![image()], ..UserPrompt::default() }).await;
    assert_eq!(sent_images(), 1);
    assert!(client.system_texts().iter().any(|text| text.contains("refused the images")));
    client.run("again").await;
    assert_eq!(sent_images(), 0);
}

/// The instructions are made once for each behavior and model, and hold the rules for both.
#[tokio::test(start_paused = true)]
async fn rules_follow_the_behavior_and_the_model() {
    let bench = Bench::new();
    let rule = |name: &str, text: &str| NamedText {
        name: name.to_owned(),
        text: text.to_owned(),
        ..NamedText::default()
    };
    *bench.workspaces.more_rules.lock().unwrap() = vec![
        NamedText { agents: vec!["plan".into()], ..rule("planning", "Plan well.") },
        NamedText { models: vec!["^test/two$".into()], ..rule("second", "Be second.") },
    ];
    let mut client = bench.client().await;
    let settings = |behavior: &str, model: &str| SessionSettings {
        behavior: Some(behavior.into()),
        model: Some(model.into()),
        ..SessionSettings::default()
    };
    for (behavior, model, expected) in [
        ("agent", "test/one", [true, false, false]),
        ("plan", "test/one", [true, true, false]),
        ("plan", "test/two", [true, true, true]),
        ("agent", "test/two", [true, false, true]),
        ("agent", "test/one", [true, false, false]),
    ] {
        client.configure(settings(behavior, model)).await.unwrap();
        client.run("go").await;
        let (_, prompt) = bench.models.prompts().pop().unwrap();
        let has = ["Be tidy.", "Plan well.", "Be second."].map(|text| prompt.system[0].contains(text));
        assert_eq!(has, expected, "{behavior} {model}");
    }
    client.run("/rules").await;
    let listed = client.system_texts().pop().unwrap();
    assert!(listed.contains("planning (10 characters, for the agents plan)"), "{listed}");
    assert!(listed.contains("second (10 characters, for the models ^test/two$)"), "{listed}");
}
