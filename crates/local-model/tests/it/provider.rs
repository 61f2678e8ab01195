//! The embedded model as one of the domain's models.

use std::sync::Arc;

use domain::item::Part;
use domain::model::{BlockKind, Model, ModelEvent, Prompt, PromptEntry, StopReason, Tokens};
use futures_util::StreamExt;
use local_model::{Limits, LocalModel};

use crate::weights;

fn user(text: &str) -> PromptEntry {
    PromptEntry::User { parts: vec![Part::text(text)] }
}

fn agent(text: &str) -> PromptEntry {
    PromptEntry::Agent { text: text.to_owned(), provider: None }
}

fn model() -> LocalModel {
    LocalModel::new("smollm2-135m", weights::path(), Limits::default())
}

/// Reads a stream to its end: the text, the tokens and why it ended.
async fn read(model: &LocalModel, prompt: Prompt) -> (String, Tokens, StopReason) {
    let mut stream = model.stream(prompt);
    let (mut text, mut tokens, mut started) = (String::new(), Tokens::default(), false);
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            ModelEvent::BlockStarted { block: 0, kind: BlockKind::Text } => started = true,
            ModelEvent::BlockDelta { block: 0, text: piece } if started => text.push_str(&piece),
            ModelEvent::BlockEnded { block: 0, .. } => started = false,
            ModelEvent::Usage(usage) => tokens = usage,
            ModelEvent::Ended { reason } => {
                assert!(!started && stream.next().await.is_none());
                return (text, tokens, reason);
            }
            ModelEvent::Waiting { .. } | ModelEvent::Warning { .. } | ModelEvent::ImagesRefused => {}
            other @ (ModelEvent::BlockStarted { .. }
            | ModelEvent::BlockDelta { .. }
            | ModelEvent::BlockEnded { .. }) => panic!("{other:?}"),
        }
    }
    panic!("the stream ended without saying so");
}

#[tokio::test]
async fn a_chat_goes_on() {
    let model = model();
    assert_eq!(model.info().id, "local/smollm2-135m");
    assert!(!model.info().tools && model.info().context_limit == Some(2048));
    let mut entries = vec![user("Write one short sentence about the sea.")];
    let prompt = |entries: &[PromptEntry]| Prompt {
        entries: entries.to_vec(),
        max_output: Some(40),
        ..Prompt::default()
    };
    let (text, first, _) = read(&model, prompt(&entries)).await;
    assert!(text.split_whitespace().count() > 3, "{text:?}");
    assert!(first.input > 10 && first.output > 3 && first.cache_read == 0, "{first:?}");
    entries.push(agent(&text));
    entries.push(user("And one about the sky."));
    let (_, second, _) = read(&model, prompt(&entries)).await;
    assert!(second.cache_read >= first.input, "{second:?} after {first:?}");
}

#[tokio::test]
async fn a_long_history_is_cut_to_the_window() {
    let model = LocalModel::new("small", weights::path(), Limits { window: 512, threads: 1 });
    let mut entries = Vec::new();
    for number in 0..20 {
        entries.push(user(&format!("Question {number}: {}", "what is in the box on the table? ".repeat(10))));
        entries.push(agent("A cat."));
    }
    entries.push(user("Say hello."));
    let system: Arc<str> = "Use the tools. ".repeat(1000).into();
    let prompt = Prompt { entries, system: vec![system], max_output: Some(5), ..Prompt::default() };
    let (_, tokens, reason) = read(&model, prompt).await;
    assert!((150..512).contains(&tokens.input) && tokens.output <= 5, "{tokens:?}");
    assert!(matches!(reason, StopReason::Done | StopReason::MaxTokens));
    let long = "one enormous message. ".repeat(2000);
    let (_, tokens, _) =
        read(&model, Prompt { entries: vec![user(&long)], max_output: Some(2), ..Prompt::default() }).await;
    assert!((450..512).contains(&tokens.all()), "{tokens:?}");
}

#[tokio::test]
async fn instructions_that_fit_reach_the_model() {
    let model = model();
    let input = async |system: &[&str]| {
        let system = system.iter().map(|part| Arc::from(*part)).collect();
        let prompt = Prompt { system, entries: vec![user("Hi")], max_output: Some(1), ..Prompt::default() };
        let (_, tokens, _) = read(&model, prompt).await;
        tokens.input + tokens.cache_read
    };
    let long = "Use the tools. ".repeat(1000);
    let (none, short) = (input(&[]).await, input(&["Answer in French only."]).await);
    assert_eq!(input(&[&long]).await, none, "too long to follow: the short instructions stand in");
    assert!(short < none, "{short} {none}: the user's instructions replace the short ones");
    let more = input(&["Answer in French only.", &long, "Be polite to everybody you meet."]).await;
    assert!(more > short, "{more} {short}: other parts that fit are added");
}

#[tokio::test]
async fn a_dropped_stream_makes_room_for_the_next() {
    let model = model();
    let long = Prompt {
        entries: vec![user("Tell me a very long story.")],
        max_output: Some(1000),
        ..Prompt::default()
    };
    let mut stream = model.stream(long.clone());
    while let Some(event) = stream.next().await {
        if matches!(event.unwrap(), ModelEvent::BlockDelta { .. }) {
            break;
        }
    }
    let queued = model.stream(long);
    drop(stream);
    drop(queued);
    let short = Prompt { entries: vec![user("Hi")], max_output: Some(2), ..Prompt::default() };
    let answered = tokio::time::timeout(std::time::Duration::from_secs(120), read(&model, short)).await;
    assert_eq!(answered.expect("the dropped answers were not stopped").1.output, 2);
}

#[tokio::test]
async fn failures_say_what_to_do() {
    let model = LocalModel::new("none", "/no/such/file.gguf", Limits::default());
    let failure = model.stream(Prompt::default()).next().await.unwrap().unwrap_err();
    assert!(failure.to_string().contains("models pull"), "{failure}");
    let empty = self::model().stream(Prompt::default()).next().await.unwrap().unwrap_err();
    assert!(empty.to_string().contains("empty"), "{empty}");
}
