//! A summary that the user asked for by `/compact`, as the tool call that ECA shows for it. Pure.
//!
//! Knows no turn. Invariant: the contents of the call come in the order of every other call.

use std::borrow::Cow;

use domain::ItemId;
use serde_json::{Value, json};

use crate::wire::contents::{CallHead, CallOutput, Content, Role};

/// Whether a line that the user typed is the command.
pub(crate) fn is_command(text: &str) -> bool {
    text.split_whitespace().next() == Some("/compact")
}

pub(crate) fn contents<'a>(id: ItemId, summary: &str) -> Vec<(Role, Content<'a>)> {
    let head = || CallHead {
        id: id.to_string(),
        name: Cow::Borrowed("compact_chat"),
        server: Cow::Borrowed("eca"),
        origin: "native",
        summary: Cow::Borrowed("Compacting..."),
        details: None,
    };
    let input = json!({ "summary": summary });
    let arguments = || Cow::<'a, Value>::Owned(input.clone());
    let prepare = |text: String| Content::ToolCallPrepare { call: head(), arguments_text: Cow::Owned(text) };
    let done = CallOutput { kind: "text", text: Cow::Borrowed("Compacted successfully!") };
    let calling = Content::Progress { state: "running", text: Some(Cow::Borrowed("Calling tool")) };
    vec![
        (Role::Assistant, prepare(String::new())),
        (Role::Assistant, prepare(input.to_string())),
        (
            Role::Assistant,
            Content::ToolCallRun { call: head(), arguments: arguments(), manual_approval: false },
        ),
        (Role::Assistant, Content::ToolCallRunning { call: head(), arguments: arguments() }),
        (Role::System, calling),
        (
            Role::Assistant,
            Content::ToolCalled {
                call: head(),
                arguments: arguments(),
                error: false,
                outputs: vec![done],
                total_time_ms: 1,
            },
        ),
        (Role::System, Content::Text { text: Cow::Borrowed("Compacted chat"), content_id: None }),
    ]
}
