//! A tool call as an agent describes it → [`AgentCall`]. Pure.
//!
//! Invariant: whatever the agent sends, the result is bounded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::agent::{AgentCall, CallKind, CallStatus};
use domain::item::Part;
use domain::tool_call::{FileChange, Location};
use serde_json::Value;

use crate::diff::file_change;

/// Bytes of one call's output, of its arguments and of its title.
const MOST_OUTPUT: usize = 256 << 10;
const MOST_INPUT: usize = 1 << 20;
const MOST_TITLE: usize = 2_000;
const MOST_IMAGE: usize = 8 << 20;
/// Files of one call.
const MOST_FILES: usize = 200;

/// Gives the output of a terminal by its id.
pub(crate) type TerminalText<'a> = &'a dyn Fn(&str) -> Option<String>;

/// `None`: the call has no id.
pub(crate) fn call(update: &Value, terminal: TerminalText<'_>) -> Option<AgentCall> {
    let id = update["toolCallId"].as_str().filter(|id| !id.is_empty() && id.len() <= 1_000)?;
    let content = update["content"].as_array();
    let output = content.map(|content| parts(content, terminal)).filter(|parts| !parts.is_empty());
    Some(AgentCall {
        id: id.to_owned(),
        title: update["title"].as_str().map(|title| cut(title, MOST_TITLE)),
        kind: update["kind"].as_str().map(kind),
        status: update["status"].as_str().and_then(status),
        input: input(&update["rawInput"]),
        output: output.or_else(|| raw_output(&update["rawOutput"])),
        changes: content.map(|content| changes(content)).unwrap_or_default(),
        locations: update["locations"].as_array().map(|locations| places(locations)),
    })
}

fn kind(name: &str) -> CallKind {
    match name {
        "read" => CallKind::Read,
        "edit" => CallKind::Edit,
        "delete" => CallKind::Delete,
        "move" => CallKind::Move,
        "search" => CallKind::Search,
        "execute" => CallKind::Execute,
        "think" => CallKind::Think,
        "fetch" => CallKind::Fetch,
        _ => CallKind::Other,
    }
}

fn status(name: &str) -> Option<CallStatus> {
    match name {
        "pending" => Some(CallStatus::Pending),
        "in_progress" => Some(CallStatus::Running),
        "completed" => Some(CallStatus::Done),
        "failed" => Some(CallStatus::Failed),
        _ => None,
    }
}

fn input(raw: &Value) -> Option<Value> {
    if raw.is_null() || raw.to_string().len() > MOST_INPUT {
        return None;
    }
    Some(if raw.is_object() { raw.clone() } else { serde_json::json!({"input": raw}) })
}

/// The texts and images of a call's content. Diffs are read by [`changes`].
fn parts(content: &[Value], terminal: TerminalText<'_>) -> Vec<Part> {
    let (mut parts, mut left) = (Vec::new(), MOST_OUTPUT);
    for entry in content {
        let text = match entry["type"].as_str() {
            Some("content") => match block(&entry["content"]) {
                Some(Part::Text { text }) => text,
                Some(image @ Part::Image { .. }) => {
                    parts.push(image);
                    continue;
                }
                None => continue,
            },
            Some("terminal") => {
                let id = entry["terminalId"].as_str().unwrap_or_default();
                let Some(text) = terminal(id).filter(|text| !text.is_empty()) else { continue };
                text
            }
            _ => continue,
        };
        let text = cut(&text, left);
        left = left.saturating_sub(text.len());
        parts.push(Part::text(text));
        if left == 0 {
            break;
        }
    }
    parts
}

fn raw_output(raw: &Value) -> Option<Vec<Part>> {
    let members = ["output", "stdout", "content", "text", "formatted_output"];
    let text = match raw {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Object(object) => {
            let named = members.iter().find_map(|member| object.get(*member)?.as_str());
            named.map_or_else(|| raw.to_string(), ToOwned::to_owned)
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => raw.to_string(),
    };
    (!text.is_empty()).then(|| vec![Part::text(cut(&text, MOST_OUTPUT))])
}

/// A content block as a part; `None` where it says nothing that can be shown.
pub(crate) fn block(block: &Value) -> Option<Part> {
    match block["type"].as_str()? {
        "text" => block["text"].as_str().filter(|text| !text.is_empty()).map(Part::text),
        "image" => {
            let data = block["data"].as_str().filter(|data| data.len() <= MOST_IMAGE)?;
            let mime = block["mimeType"].as_str().filter(|mime| mime.starts_with("image/"))?;
            Some(Part::Image { mime: mime.to_owned(), data: Arc::from(data) })
        }
        "resource_link" => block["uri"].as_str().map(Part::text),
        "resource" => block["resource"]["text"].as_str().map(Part::text),
        _ => None,
    }
}

fn changes(content: &[Value]) -> Vec<FileChange> {
    let diffs = content.iter().filter(|entry| entry["type"] == "diff");
    let change = |entry: &Value| {
        let path = path(&entry["path"])?;
        let new = entry["newText"].as_str()?;
        Some(file_change(&path, entry["oldText"].as_str(), new))
    };
    diffs.filter_map(change).take(MOST_FILES).collect()
}

fn places(locations: &[Value]) -> Vec<Location> {
    let place = |entry: &Value| {
        let line = entry["line"].as_u64().and_then(|line| u32::try_from(line).ok());
        Some(Location { path: path(&entry["path"])?, line })
    };
    locations.iter().filter_map(place).take(MOST_FILES).collect()
}

fn path(value: &Value) -> Option<PathBuf> {
    let text =
        value.as_str().filter(|text| !text.is_empty() && text.len() <= 4_096 && !text.contains('\0'))?;
    Some(Path::new(text).to_owned())
}

pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}\n[{} bytes are left out]", &text[..text.floor_char_boundary(most)], text.len() - most)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(update: Value) -> AgentCall {
        call(&update, &|id| (id == "t1").then(|| "from the terminal".to_owned())).unwrap()
    }

    #[test]
    fn every_member_of_a_call_is_read() {
        let call = read(
            json!({"toolCallId": "c1", "title": "Edit a", "kind": "edit", "status": "in_progress",
            "rawInput": {"file": "a"}, "locations": [{"path": "/w/a", "line": 3}, {"path": ""}],
            "content": [{"type": "content", "content": {"type": "text", "text": "done"}}, {"type": "terminal", "terminalId": "t1"},
                {"type": "diff", "path": "/w/a", "oldText": "x", "newText": "y"}, {"type": "later"}]}),
        );
        assert_eq!((call.kind, call.status), (Some(CallKind::Edit), Some(CallStatus::Running)));
        assert_eq!(call.output, Some(vec![Part::text("done"), Part::text("from the terminal")]));
        assert_eq!((call.changes.len(), call.locations.map(|all| all.len())), (1, Some(1)));
        assert_eq!(call.input, Some(json!({"file": "a"})));
    }

    #[test]
    fn an_update_says_only_what_changed() {
        let update = read(
            json!({"toolCallId": "c1", "status": "completed", "rawOutput": {"stdout": "ok", "code": 0}}),
        );
        assert_eq!(update.output, Some(vec![Part::text("ok")]));
        assert_eq!((update.title, update.kind, update.input), (None, None, None));
        assert_eq!(call(&json!({"status": "completed"}), &|_| None), None, "a call without an id");
    }

    #[test]
    fn floods_are_cut() {
        let text = "é".repeat(MOST_OUTPUT);
        let update = read(
            json!({"toolCallId": "c", "title": "t".repeat(1 << 20), "rawInput": {"x": "y".repeat(MOST_INPUT)},
            "content": [{"type": "content", "content": {"type": "text", "text": text}}, {"type": "content", "content": {"type": "text", "text": "more"}}],
            "locations": vec![json!({"path": "/a"}); 5_000]}),
        );
        let Some(Part::Text { text }) = update.output.as_ref().and_then(|parts| parts.first()) else {
            panic!()
        };
        assert!(text.len() < MOST_OUTPUT + 100 && text.ends_with("left out]"));
        assert!(update.title.unwrap().len() < MOST_TITLE + 100);
        assert_eq!((update.input, update.locations.map(|all| all.len())), (None, Some(MOST_FILES)));
    }
}
