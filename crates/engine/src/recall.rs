//! Recall: after a compaction the model can search what was said before, word for word.
//!
//! Must not know front-ends. Invariant: it reads this chat's own history and nothing else.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use domain::BoxFuture;
use domain::item::{Item, ItemKind, Part};
use domain::note::NoteAbout;
use domain::tool::{Invocation, Review, Scope, Tool, ToolEffect, ToolResult, ToolSpec};
use domain::tool_call::Origin;
use serde_json::{Value, json};

use crate::session::Session;
use crate::turn::cleared;

/// Bytes of a result.
const MAX_RESULT: usize = 16 << 10;
/// Characters shown around a match.
const AROUND: usize = 400;
/// Characters of a whole message.
const MAX_MESSAGE: usize = 8_000;

/// The tool `recall`.
pub(crate) struct Recall {
    session: Arc<Session>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: "recall".to_owned(),
    server: "eca".to_owned(),
    origin: Origin::Native,
    description:
        "Searches the messages of this chat from before the summary, word for word. Gives the places with \
                  their ids, or one whole message by its id."
            .to_owned(),
    input_schema: json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words that must all be in a message."},
            "id": {"type": "string", "description": "A message to read in full, instead of a query."},
        },
    }),
    effect: ToolEffect::Reads,
});

impl Recall {
    /// `None` where nothing was compacted or left out.
    pub(crate) fn of(session: &Arc<Session>) -> Option<Self> {
        let is_shorter = |item: &Item| match &item.kind {
            ItemKind::Compaction { .. } => true,
            ItemKind::Note(note) => matches!(note.about, NoteAbout::ResultsCleared { .. }),
            ItemKind::UserMessage { .. }
            | ItemKind::AgentMessage { .. }
            | ItemKind::Reasoning { .. }
            | ItemKind::ToolCall(_)
            | ItemKind::Citation { .. }
            | ItemKind::Command { .. }
            | ItemKind::SystemText { .. }
            | ItemKind::Hook(_)
            | ItemKind::Flag { .. } => false,
        };
        let has_more = session.state().items().iter().any(is_shorter);
        has_more.then(|| Self { session: session.clone() })
    }

    fn run_now(&self, input: &Value) -> Result<String, String> {
        let state = self.session.state();
        let text = |name: &str| input[name].as_str().map(str::trim).filter(|text| !text.is_empty());
        if let Some(id) = text("id") {
            let item = state.items().iter().find(|item| item.id.to_string() == id);
            let (who, whole) = item.and_then(message).ok_or_else(|| format!("There is no message {id}."))?;
            let shown: String = whole.chars().take(MAX_MESSAGE).collect();
            return Ok(format!("{id} ({who}):\n{shown}"));
        }
        let query = text("query").ok_or("Give a query or an id.")?;
        Ok(search(state.items(), query))
    }
}

impl Tool for Recall {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn review(&self, input: &Value, _scope: &Scope) -> Result<Review, String> {
        let what = input["query"].as_str().or_else(|| input["id"].as_str()).unwrap_or_default();
        let what: String = what.chars().take(60).collect();
        Ok(Review { summary: format!("Recalling {what}"), harmless: true, ..Review::default() })
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move { self.run_now(&call.input).map_or_else(ToolResult::error, ToolResult::text) })
    }
}

/// The newest matches before the last summary, and before results that are left out.
fn search(items: &[Item], query: &str) -> String {
    let end = items.iter().rposition(|item| matches!(item.kind, ItemKind::Compaction { .. })).unwrap_or(0);
    let cleared = cleared::cleared_before(items);
    let end = end.max(items.partition_point(|item| Some(item.id) < cleared));
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut out = String::new();
    for item in items[..end].iter().rev() {
        let Some((who, text)) = message(item) else { continue };
        let lower = text.to_lowercase();
        if !words.iter().all(|word| lower.contains(word.as_str())) {
            continue;
        }
        let excerpt = excerpt(&text, &lower, words.first().map_or("", String::as_str));
        if out.len() + excerpt.len() > MAX_RESULT {
            out.push_str("[older matches left out; use more words]");
            break;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{} ({who}): {excerpt}\n", item.id);
    }
    if out.is_empty() { format!("No earlier message has all of: {query}") } else { out.trim_end().to_owned() }
}

/// The text around the first match.
fn excerpt(text: &str, lower: &str, word: &str) -> String {
    // Lower case may have another length, so the place is counted in characters.
    let at = lower.find(word).map_or(0, |at| lower[..at].chars().count());
    let from = at.saturating_sub(AROUND / 2);
    let part: String = text.chars().skip(from).take(AROUND).collect();
    let is_cut = from > 0 || text.chars().count() > from + AROUND;
    if is_cut { format!("…{}…", part.trim()) } else { part.trim().to_owned() }
}

/// What an item says, and on whose side.
fn message(item: &Item) -> Option<(&'static str, String)> {
    let joined = |parts: &[Part]| {
        let texts = parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    };
    match &item.kind {
        ItemKind::UserMessage { text, .. } => Some(("user", text.clone())),
        ItemKind::AgentMessage { text, .. } => Some(("assistant", text.clone())),
        ItemKind::ToolCall(call) => {
            let input = call.input.as_ref().map(Value::to_string).unwrap_or_default();
            Some(("tool", format!("{} {input}\n{}", call.name, joined(&call.result))))
        }
        ItemKind::Reasoning { .. }
        | ItemKind::Citation { .. }
        | ItemKind::Compaction { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. }
        | ItemKind::Hook(_)
        | ItemKind::Note(_)
        | ItemKind::Flag { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use domain::{ItemId, TurnId};

    use super::*;

    fn item(id: u64, kind: ItemKind) -> Item {
        Item { id: ItemId(id), turn: TurnId(1), step: 0, parent: None, kind }
    }

    #[test]
    fn only_messages_before_the_summary_are_found_and_the_newest_come_first() {
        let user = |id, text: &str| item(id, ItemKind::UserMessage { text: text.into(), parts: Vec::new() });
        let summary = ItemKind::Compaction { summary: "the port".into(), kept: Vec::new() };
        let long = format!("{} the Port is 8080 {}", "x".repeat(900), "y".repeat(900));
        let items =
            [user(1, "the port is 80"), user(2, &long), user(3, "other"), item(4, summary), user(5, "port")];
        let found = search(&items, "PORT is");
        let (first, second) = (found.find("item-2").unwrap(), found.find("item-1").unwrap());
        assert!(first < second && !found.contains("item-5") && found.contains("the Port is 8080"), "{found}");
        assert!(found.len() < 900, "excerpts are short");
        assert!(search(&items, "nowhere").contains("No earlier message"));
    }
}
