//! The page of `/context`: how full the context is, and which parts of the chat fill it.
//!
//! The total is the provider's count. The shares are estimates from the length of the texts; the part that no item of the
//! chat explains is the instructions and the descriptions of tools.

use domain::Part;
use domain::event::SessionUsage;
use domain::item::{Item, ItemKind};
use domain::tool_call::ToolCall;

use super::figures::short;
use super::page::{Page, PageLine};
use super::transcript::Transcript;
use crate::text::clean_line;

/// Letters of one token, about.
const TOKEN_LETTERS: u64 = 4;
const BAR_COLUMNS: u64 = 24;

pub(super) fn page(transcript: &Transcript, usage: &SessionUsage) -> Page {
    let total = usage.last.all();
    let limit = usage.context_limit.filter(|limit| *limit > 0);
    let pair = |name: &str, value: String| PageLine::Pair(name.to_owned(), value);
    if total == 0 {
        return Page::new("Context", vec![PageLine::Text("No request was sent yet.".to_owned())]);
    }
    let mut lines = vec![pair(
        "In use",
        match limit {
            Some(limit) => format!("{} of {} tokens, {} %", short(total), short(limit), total * 100 / limit),
            None => format!("{} tokens; the limit of this model is not known", short(total)),
        },
    )];
    let mut sources = sources(transcript);
    let explained: u64 = sources.iter().map(|(_, tokens)| tokens).sum();
    sources.push(("Instructions and tools".to_owned(), total.saturating_sub(explained)));
    sources.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    let all = explained.max(total).max(1);
    lines.push(PageLine::Heading("By source (estimated)".to_owned()));
    for (name, tokens) in sources.iter().filter(|(_, tokens)| *tokens > 0) {
        let filled = usize::try_from(tokens * BAR_COLUMNS / all).unwrap_or(0);
        let share = tokens * 100 / all;
        let bar = format!("{:<24}", "█".repeat(filled.max(1)));
        lines.push(pair(name, format!("{bar} {share:>3} %  {}", short(*tokens))));
    }
    Page::new("Context", lines)
}

/// The sources with their tokens, in the order of their first item. A summary replaces everything before it.
fn sources(transcript: &Transcript) -> Vec<(String, u64)> {
    let items: Vec<&Item> = transcript.items().collect();
    let start = items.iter().rposition(|item| matches!(item.kind, ItemKind::Compaction { .. })).unwrap_or(0);
    let mut sources: Vec<(String, u64)> = Vec::new();
    for item in &items[start..] {
        let (name, letters) = match &item.kind {
            ItemKind::UserMessage { text, .. } => ("Your messages".to_owned(), letters(text)),
            ItemKind::AgentMessage { text, .. } => ("Answers".to_owned(), letters(text)),
            ItemKind::ToolCall(call) => (format!("Tool {}", clean_line(&call.name)), call_letters(call)),
            ItemKind::Compaction { summary, .. } => {
                ("Summary of earlier messages".to_owned(), letters(summary))
            }
            ItemKind::Reasoning { .. }
            | ItemKind::Citation { .. }
            | ItemKind::Command { .. }
            | ItemKind::SystemText { .. }
            | ItemKind::Hook(_)
            | ItemKind::Note(_)
            | ItemKind::Flag { .. } => continue,
        };
        let tokens = letters / TOKEN_LETTERS;
        match sources.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += tokens,
            None => sources.push((name, tokens)),
        }
    }
    sources
}

fn letters(text: &str) -> u64 {
    text.len() as u64
}

fn call_letters(call: &ToolCall) -> u64 {
    let part = |part: &Part| match part {
        Part::Text { text } => letters(text),
        // An image counts about as much as a thousand tokens of text.
        Part::Image { .. } => 1000 * TOKEN_LETTERS,
    };
    letters(&call.input_text) + call.result.iter().map(part).sum::<u64>()
}
