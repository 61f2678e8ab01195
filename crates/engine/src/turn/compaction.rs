//! A long history in few words: the model writes the summary, and code keeps word for word what must not be lost.
//!
//! Invariants: the journal keeps the whole; only what the model is sent gets shorter; the request that is being answered
//! stays whole, with everything that the user attached to it.

use std::time::Duration;

use domain::Failure;
use domain::command::Completion;
use domain::event::Fact;
use domain::item::{Item, ItemKind, Part};
use domain::model::{ModelInfo, PromptEntry, Tokens};

use super::{Turn, instructions, prompt};
use crate::completion;
use crate::hooks;
use crate::session::Session;
use crate::spending;

const MODEL_TIMEOUT: Duration = Duration::from_secs(120);
/// The newest part of the history that goes into the summary's prompt, in bytes.
const TRANSCRIPT: usize = 200_000;

/// The request for a summary, unless the settings have another.
const REQUEST: &str = "Summarize this conversation between a user and a coding assistant so that the assistant can go \
    on from your summary alone: what the user wants, what was decided and why, what was done in which files, what is \
    left. Be exact with names and paths. Leave out pleasantries.";

/// Whether the context window is nearly full.
pub(crate) fn is_due(session: &Session, model: &ModelInfo) -> bool {
    if let Some(recording) = &session.workspace.recording {
        return recording.is_compaction_due();
    }
    let Some(limit) = model.context_limit.filter(|limit| *limit > 0) else { return false };
    let percentage = session.workspace.settings.auto_compact_percentage(&session.behavior());
    let state = session.state();
    let used = state.usage().last.all();
    let since = state.items().iter().rev();
    let since = since.take_while(|item| !matches!(item.kind, ItemKind::Compaction { .. }));
    since.count() > 2 && used * 100 >= limit * percentage
}

/// Asks the model for a summary and puts it in the place of the history.
/// `trigger`: `manual` or `auto`, for hooks.
pub(crate) async fn run(turn: &Turn, wish: Option<&str>, trigger: &str) -> Result<(), Failure> {
    if !hooks::before_compaction(turn, wish, trigger).await? {
        return Ok(());
    }
    turn.session.show_progress("Compacting the chat");
    let transcript = transcript(&prompt::entries(&turn.session.state(), false));
    let own = instructions::own_text(turn.session.prompts().compact.as_ref());
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
        deadline: MODEL_TIMEOUT,
        gate: spending::gate(&turn.session),
    };
    let models = turn.session.workspace.models.clone();
    let mut used = completion::Used::default();
    let completed = tokio::select! {
        completed = completion::run(models.as_ref(), completion, None, &mut used) => completed,
        () = turn.cancel.cancelled() => Err(Failure::user("Stopped.")),
    };
    used.record(&turn.session, "compact", completed.is_ok());
    finish(turn, completed?.text, trigger).await
}

/// The same with a summary that the model wrote by itself.
pub(crate) async fn replace_by(turn: &Turn, summary: String, trigger: &str) -> Result<(), Failure> {
    if hooks::before_compaction(turn, None, trigger).await? {
        finish(turn, summary, trigger).await?;
    }
    Ok(())
}

async fn finish(turn: &Turn, summary: String, trigger: &str) -> Result<(), Failure> {
    let summary = hooks::after_compaction(turn, summary, trigger).await;
    replace_history(turn, summary);
    turn.hooks.stopped().map_or(Ok(()), Err)
}

/// Puts a summary in the place of the history. The context window counts as empty until the next call.
fn replace_history(turn: &Turn, summary: String) {
    let id = turn.session.log.next_item();
    turn.session.account.break_prefix("compaction");
    turn.session.commit_with(|state| {
        let step = state.items().last().map_or(0, |item| item.step);
        let kind = ItemKind::Compaction { summary, kept: kept_parts(turn, state.items()) };
        let item = Item { id, turn: turn.id, step, parent: None, kind };
        let mut usage = state.usage().clone();
        usage.last = Tokens::default();
        usage.context = None;
        vec![Fact::ItemEnded { item }, Fact::UsageChanged { usage }]
    });
}

/// The last request and the files touched, word for word.
fn kept_parts(turn: &Turn, items: &[Item]) -> Vec<Part> {
    let mut parts = last_request(turn, items);
    let mut files: Vec<String> = items
        .iter()
        .filter_map(|item| {
            let ItemKind::ToolCall(call) = &item.kind else { return None };
            Some(&call.locations)
        })
        .flatten()
        .map(|location| location.path.display().to_string())
        .collect();
    files.sort();
    files.dedup();
    if !files.is_empty() {
        parts.push(Part::text(format!("Files touched so far:\n{}", files.join("\n"))));
    }
    parts
}

/// The request of this turn with its attachments, which still wait for their answer; of an earlier turn the text alone.
fn last_request(turn: &Turn, items: &[Item]) -> Vec<Part> {
    const HEADING: &str = "The user's last request, word for word:";
    let request = items.iter().rev().find_map(|item| {
        let ItemKind::UserMessage { text, parts } = &item.kind else { return None };
        Some((item.turn, text, parts))
    });
    match request {
        Some((of, _, parts)) if of == turn.id => [vec![Part::text(HEADING)], parts.clone()].concat(),
        Some((_, text, _)) => vec![Part::text(format!("{HEADING}\n{text}"))],
        None => Vec::new(),
    }
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
