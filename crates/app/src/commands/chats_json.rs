//! The JSON of `dragoman chats list --json` and `chats show --json`.
//!
//! Must not know how chats are stored. Invariant: the members here are a promise to scripts; they change only together
//! with the changelog.

use domain::item::{Item, ItemKind, Part};
use domain::store::SessionSummary;
use domain::tool_call::{Origin, RejectedBy, ToolCall, ToolState};
use serde_json::{Value, json};

pub(super) fn chat(chat: &SessionSummary) -> Value {
    json!({
        "id": chat.id.as_str(),
        "title": chat.title,
        "model": chat.model,
        "workspace": chat.workspace,
        "parent": chat.parent.as_ref().map(|parent| parent.as_str()),
        "createdAt": chat.created_at,
        "updatedAt": chat.updated_at,
        "messageCount": chat.message_count,
        "newest": chat.newest,
    })
}

pub(super) fn item(item: &Item) -> Value {
    json!({"id": item.id.0, "turn": item.turn.0, "step": item.step, "kind": kind(&item.kind)})
}

fn kind(kind: &ItemKind) -> Value {
    match kind {
        ItemKind::UserMessage { text, parts } => {
            json!({"type": "userMessage", "text": text, "parts": all_parts(parts)})
        }
        ItemKind::AgentMessage { text, interrupted, .. } => {
            json!({"type": "agentMessage", "text": text, "interrupted": interrupted})
        }
        ItemKind::Reasoning { text, millis, .. } => {
            json!({"type": "reasoning", "text": text, "millis": millis})
        }
        ItemKind::ToolCall(call) => tool_call(call),
        ItemKind::Citation { title, url } => json!({"type": "citation", "title": title, "url": url}),
        ItemKind::Compaction { summary, kept } => {
            json!({"type": "compaction", "summary": summary, "kept": all_parts(kept)})
        }
        ItemKind::Command { text } => json!({"type": "command", "text": text}),
        ItemKind::SystemText { text } => json!({"type": "systemText", "text": text}),
        ItemKind::Hook(run) => json!({
            "type": "hook", "name": run.name, "status": run.status, "output": run.output, "error": run.error,
        }),
        ItemKind::Note(note) => json!({"type": "note", "text": note.text, "parts": all_parts(&note.parts)}),
        ItemKind::Flag { text } => json!({"type": "flag", "text": text}),
    }
}

fn tool_call(call: &ToolCall) -> Value {
    let (state, by) = match call.state {
        ToolState::Preparing => ("preparing", None),
        ToolState::Waiting { .. } => ("waiting", None),
        ToolState::Running => ("running", None),
        ToolState::Done => ("done", None),
        ToolState::Rejected { by: RejectedBy::User } => ("rejected", Some("user")),
        ToolState::Rejected { by: RejectedBy::Policy } => ("rejected", Some("policy")),
        ToolState::Rejected { by: RejectedBy::Hook } => ("rejected", Some("hook")),
        ToolState::Rejected { by: RejectedBy::Unasked } => ("rejected", Some("unasked")),
        ToolState::Stopped { .. } => ("stopped", None),
    };
    let origin = match call.origin {
        Origin::Native => "native",
        Origin::Mcp => "mcp",
    };
    json!({
        "type": "toolCall",
        "name": call.name,
        "server": call.server,
        "origin": origin,
        "input": call.input,
        "state": state,
        "rejectedBy": by,
        "summary": call.summary,
        "result": all_parts(&call.result),
        "error": call.error,
        "millis": call.millis,
        "locations": call.locations.iter().map(|place| json!({"path": place.path, "line": place.line})).collect::<Vec<_>>(),
    })
}

fn all_parts(parts: &[Part]) -> Vec<Value> {
    let part = |part: &Part| match part {
        Part::Text { text } => json!({"type": "text", "text": text}),
        Part::Image { mime, data } => json!({"type": "image", "mime": mime, "data": &**data}),
    };
    parts.iter().map(part).collect()
}
