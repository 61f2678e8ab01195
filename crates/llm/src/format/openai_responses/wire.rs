//! The events of the Responses API as far as they are read. Unknown members are tolerated.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(super) struct Frame<'a> {
    #[serde(rename = "type", default)]
    pub kind: FrameKind,
    #[serde(default)]
    pub output_index: Option<u32>,
    #[serde(borrow, default)]
    pub item_id: Option<Cow<'a, str>>,
    #[serde(default)]
    pub summary_index: u32,
    #[serde(default)]
    pub delta: Option<String>,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub arguments: Option<String>,
    #[serde(default)]
    pub input: Option<String>,
    #[serde(borrow, default)]
    pub item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub annotation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub response: Option<Response<'a>>,
}

#[derive(Deserialize, Default)]
pub(super) enum FrameKind {
    #[serde(rename = "response.output_text.delta")]
    TextDelta,
    #[serde(rename = "response.reasoning_summary_text.delta", alias = "response.reasoning_text.delta")]
    ReasoningDelta,
    #[serde(
        rename = "response.function_call_arguments.delta",
        alias = "response.custom_tool_call_input.delta"
    )]
    ArgumentsDelta,
    #[serde(rename = "response.refusal.delta")]
    RefusalDelta,
    #[serde(rename = "response.output_text.done")]
    TextDone,
    #[serde(rename = "response.reasoning_text.done", alias = "response.reasoning_summary_text.done")]
    ReasoningDone,
    #[serde(rename = "response.function_call_arguments.done", alias = "response.custom_tool_call_input.done")]
    ArgumentsDone,
    #[serde(rename = "response.reasoning_summary_part.added")]
    SummaryPart,
    #[serde(rename = "response.output_item.added")]
    ItemAdded,
    #[serde(rename = "response.output_item.done")]
    ItemDone,
    #[serde(rename = "response.output_text.annotation.added")]
    Annotation,
    #[serde(rename = "response.completed", alias = "response.done")]
    Completed,
    #[serde(rename = "response.incomplete")]
    Incomplete,
    #[serde(rename = "response.failed")]
    Failed,
    #[serde(rename = "error")]
    Error,
    /// Events that repeat what others bring.
    #[serde(
        rename = "response.created",
        alias = "response.in_progress",
        alias = "response.queued",
        alias = "response.content_part.added",
        alias = "response.content_part.done",
        alias = "response.reasoning_summary_part.done",
        alias = "response.reasoning_part.added",
        alias = "response.reasoning_part.done",
        alias = "response.refusal.done",
        alias = "response.metadata",
        alias = "response.rate_limits.updated",
        alias = "keepalive",
        alias = "ping"
    )]
    Known,
    #[default]
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
pub(super) struct Response<'a> {
    pub usage: Option<Usage>,
    pub status: Option<String>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub output: Option<Vec<&'a RawValue>>,
    pub incomplete_details: Option<IncompleteDetails>,
}

#[derive(Deserialize)]
pub(super) struct IncompleteDetails {
    pub reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    pub input_tokens_details: Option<InputDetails>,
    pub output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
pub(super) struct InputDetails {
    pub cached_tokens: Option<u64>,
    pub cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct OutputDetails {
    pub reasoning_tokens: Option<u64>,
}

#[derive(Clone, Deserialize)]
pub(super) struct Item {
    #[serde(rename = "type", default)]
    pub kind: String,
    pub call_id: Option<String>,
    pub id: Option<String>,
    pub name: Option<String>,
    /// A text, or an object in a call that searches tools.
    pub arguments: Option<Value>,
    /// The text of a call whose argument is plain text.
    pub input: Option<String>,
    pub phase: Option<Value>,
    pub content: Option<Vec<Content>>,
    pub summary: Option<Vec<Content>>,
}

impl Item {
    pub(super) fn join(parts: &Option<Vec<Content>>, between: &str) -> String {
        let texts: Vec<_> = parts.iter().flatten().filter_map(|part| part.text.as_deref()).collect();
        texts.join(between)
    }
}

#[derive(Clone, Deserialize)]
pub(super) struct Content {
    pub text: Option<String>,
    pub refusal: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Annotation {
    pub title: Option<String>,
    pub url: Option<String>,
}
