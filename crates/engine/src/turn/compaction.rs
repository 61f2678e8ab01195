//! A long history in few words: the summary is the model's, what must not be lost is kept verbatim by code.
//!
//! Invariant: the journal keeps the whole; only what the model is sent gets shorter.

use std::time::Duration;

use domain::Failure;
use domain::command::{Completed, Completion};
use domain::event::Fact;
use domain::item::{ItemKind, Part};
use domain::model::{ModelInfo, PromptEntry};

use crate::completion;
use crate::session::state::History;
use crate::spending;
use crate::turn::Turn;
use crate::turn::instructions;

const PATIENCE: Duration = Duration::from_secs(120);
/// The newest part of the history that goes into the summary's prompt, in bytes.
const TRANSCRIPT: usize = 200_000;

/// How a summary is asked for, unless the settings say it otherwise.
const REQUEST: &str = "Summarize this conversation between a user and a coding assistant so that the assistant can go \
    on from your summary alone: what the user wants, what was decided and why, what was done in which files, what is \
    left. Be exact with names and paths. Leave out pleasantries.";

/// The context window is nearly full.
pub fn is_due(history: &History, model: &ModelInfo, percentage: u64) -> bool {
    let Some(limit) = model.context_limit.filter(|limit| *limit > 0) else { return false };
    let used = history.usage.last.all();
    let enough = history
        .items
        .iter()
        .rev()
        .take_while(|item| !matches!(item.kind, ItemKind::Compaction { .. }))
        .count()
        > 2;
    enough && used * 100 >= limit * percentage
}

/// Asks the model for a summary and puts it in the place of the history.
pub async fn run(turn: &mut Turn, _step: u32, wish: Option<&str>) -> Result<(), Failure> {
    turn.session.progress("Compacting the chat".into());
    let transcript = transcript(&turn.history.entries());
    let behavior = turn.session.state().settings.behavior.clone().unwrap_or_default();
    let own = instructions::own_text(turn.session.workspace.settings.prompts(&behavior).compact.as_ref());
    let mut request = own.unwrap_or_else(|| REQUEST.to_owned());
    if let Some(wish) = wish {
        request.push_str("\nThe user adds: ");
        request.push_str(wish);
    }
    let completion = Completion {
        purpose: "compact".into(),
        system: request,
        messages: vec![transcript],
        output_schema: None,
        model: Some(turn.model.info().id),
        no_local: false,
        deadline: PATIENCE,
    };
    let models = turn.session.workspace.models.clone();
    let completed = tokio::select! {
        completed = completion::run(models.as_ref(), completion, None) => completed?,
        () = turn.cancel.cancelled() => return Err(Failure::user("Stopped.")),
    };
    let Completed { text, model, tokens, cost } = completed;
    spending::beside(&turn.session, "compact", &model, tokens, cost);
    replace(turn, text);
    Ok(())
}

/// Puts a summary in the place of the history.
pub fn replace(turn: &mut Turn, summary: String) {
    let kept = kept(&turn.history);
    let step = turn.history.items.last().map_or(0, |item| item.step);
    let item = turn.session.item(turn.id, step, ItemKind::Compaction { summary, kept });
    turn.session.state().prefix.break_because("compaction");
    turn.history.put(item.clone());
    turn.history.usage.last = Default::default();
    turn.session.state().usage.last = Default::default();
    turn.session.journal.note(Fact::ItemEnded { item });
}

/// The last request and the files touched, word for word.
fn kept(history: &History) -> Vec<Part> {
    let mut parts = Vec::new();
    let last = history.items.iter().rev().find_map(|item| match &item.kind {
        ItemKind::UserMessage { text, .. } => Some(text),
        _ => None,
    });
    if let Some(text) = last {
        parts.push(Part::text(format!("The user's last request, word for word:\n{text}")));
    }
    let mut files: Vec<String> = history
        .items
        .iter()
        .filter_map(|item| match &item.kind {
            ItemKind::ToolCall(call) => {
                Some(call.locations.iter().map(|place| place.path.display().to_string()))
            }
            _ => None,
        })
        .flatten()
        .collect();
    files.sort();
    files.dedup();
    if !files.is_empty() {
        parts.push(Part::text(format!("Files touched so far:\n{}", files.join("\n"))));
    }
    parts
}

/// The conversation as text, the newest part of it where it is long.
fn transcript(entries: &[PromptEntry]) -> String {
    let mut lines = Vec::new();
    let mut size = 0;
    for entry in entries.iter().rev() {
        let line = line_of(entry);
        size += line.len();
        if size > TRANSCRIPT {
            lines.push("(earlier parts left out)".to_owned());
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines.join("\n\n")
}

fn line_of(entry: &PromptEntry) -> String {
    match entry {
        PromptEntry::User { parts } => format!("User: {}", text_of(parts)),
        PromptEntry::Agent { text, .. } => format!("Assistant: {text}"),
        PromptEntry::Reasoning { .. } => String::new(),
        PromptEntry::Call { name, input, .. } => format!("Assistant calls {name} {input}"),
        PromptEntry::Result { name, parts, .. } => {
            let text: String = text_of(parts).chars().take(4000).collect();
            format!("{name} gave: {text}")
        }
    }
}

fn text_of(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.as_str(),
            Part::Image { .. } => "(an image)",
        })
        .collect();
    texts.join("\n")
}
