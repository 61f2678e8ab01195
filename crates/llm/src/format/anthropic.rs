//! Anthropic Messages: requests with cache marks, streams with signed thinking.
//!
//! Invariant: thinking blocks go back exactly as they came, in their places; at most four cache marks.

use domain::Part;
use domain::model::{BlockKind, ModelEvent, Prompt, StopReason, Tokens};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::history::{self, Outcome, Piece, Turn};
use super::names::{self, Names};
use super::{Blocks, Decode, Events, Origin, Target, Thinking, is_strict, push_usage, schema_instruction};
use crate::fault::Fault;
use sse::SseEvent;

const FORMAT: &str = "anthropic";
const DEFAULT_OUTPUT: u64 = 32_000;
const UNKNOWN_OUTPUT: u64 = 8_192;

pub fn encode(prompt: &Prompt, target: &Target) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), target.model.into());
    body.insert("stream".into(), true.into());
    let limit = target.info.output_limit.unwrap_or(UNKNOWN_OUTPUT);
    let mut max_tokens = prompt.max_output.unwrap_or(DEFAULT_OUTPUT).min(limit);
    let mut config = Map::new();
    let thinking = thinking(prompt, target);
    if let Some(thinking) = &thinking {
        if let Some(budget) = thinking["budget_tokens"].as_u64() {
            max_tokens = (max_tokens + budget).min(limit).max(budget + 1);
        } else if let Some(effort) = &prompt.variant {
            config.insert("effort".into(), effort.as_str().into());
        }
    }
    body.insert("max_tokens".into(), max_tokens.into());
    let mut system: Vec<Value> =
        prompt.system.iter().filter(|text| !text.trim().is_empty()).map(|text| text_block(text)).collect();
    if let Some(schema) = &prompt.output_schema {
        if target.dialect.json_schema && is_strict(schema) {
            config.insert("format".into(), json!({ "type": "json_schema", "schema": schema }));
        } else {
            system.push(text_block(&schema_instruction(schema)));
        }
    }
    mark(system.last_mut());
    if !system.is_empty() {
        body.insert("system".into(), system.into());
    }
    let mut tools = tools(prompt);
    mark(tools.last_mut());
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    let mut messages = messages(prompt, target);
    mark_messages(&mut messages);
    body.insert("messages".into(), messages.into());
    if let Some(thinking) = thinking {
        body.insert("thinking".into(), thinking);
    } else if let Some(temperature) = prompt.temperature.filter(|_| target.temperature) {
        body.insert("temperature".into(), temperature.into());
    }
    if !config.is_empty() {
        body.insert("output_config".into(), config.into());
    }
    Value::Object(body)
}

/// Thinking between tool calls needs a header on models that take a budget.
pub fn headers(prompt: &Prompt, target: &Target) -> Vec<(&'static str, String)> {
    let interleaved =
        target.thinking == Thinking::Budget && !prompt.tools.is_empty() && thinking(prompt, target).is_some();
    if interleaved {
        vec![("anthropic-beta", "interleaved-thinking-2025-05-14".to_owned())]
    } else {
        Vec::new()
    }
}

fn thinking(prompt: &Prompt, target: &Target) -> Option<Value> {
    let variant = prompt.variant.as_deref()?;
    match (target.thinking, variant) {
        (_, "none" | "off") | (Thinking::None | Thinking::Effort, _) => None,
        (Thinking::Adaptive, _) => Some(json!({ "type": "adaptive", "display": "summarized" })),
        (Thinking::Budget, variant) => {
            let budget = match variant {
                "low" => 4_000,
                "medium" => 10_000,
                "high" => 24_000,
                other => other.parse().unwrap_or(31_999),
            };
            let most = target.info.output_limit.unwrap_or(UNKNOWN_OUTPUT).saturating_sub(1_024);
            Some(json!({ "type": "enabled", "budget_tokens": budget.min(most).max(1_024) }))
        }
    }
}

/// The offered tools; calls of the history must have theirs, though they may no longer be offered.
fn tools(prompt: &Prompt) -> Vec<Value> {
    let tool = |name: &str, description: &str, schema: &Value| {
        json!({
            "name": names::tool_name(name),
            "description": description,
            "input_schema": super::input_schema(schema),
        })
    };
    if prompt.tools.is_empty() {
        let called = history::called(&prompt.entries);
        return called.iter().map(|name| tool(name, "No longer available.", &Value::Null)).collect();
    }
    prompt
        .tools
        .iter()
        .map(|spec| tool(&spec.offered_name(), &spec.description, &spec.input_schema))
        .collect()
}

fn messages(prompt: &Prompt, target: &Target) -> Vec<Value> {
    let mut messages = Vec::with_capacity(prompt.entries.len());
    for turn in history::turns(&prompt.entries) {
        let (role, content) = match turn {
            Turn::User(parts) => ("user", content(parts, target)),
            Turn::Answer(pieces) => ("assistant", answer(&pieces, target)),
            Turn::Results(outcomes) => {
                ("user", outcomes.iter().map(|outcome| tool_result(outcome, target)).collect())
            }
        };
        if !content.is_empty() {
            messages.push(json!({ "role": role, "content": content }));
        }
    }
    messages
}

fn content(parts: &[Part], target: &Target) -> Vec<Value> {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => (!text.trim().is_empty()).then(|| text_block(text)),
            Part::Image { mime, data } if target.info.images => Some(json!({
                "type": "image",
                "source": { "type": "base64", "media_type": mime, "data": data.as_ref() },
            })),
            Part::Image { .. } => Some(text_block(super::NO_IMAGES)),
        })
        .collect()
}

fn answer(pieces: &[Piece], target: &Target) -> Vec<Value> {
    // Thinking that nothing follows is from a broken answer, and refused.
    let last =
        pieces.iter().rposition(|piece| !matches!(piece, Piece::Reasoning { .. })).map_or(0, |at| at + 1);
    pieces[..last]
        .iter()
        .filter_map(|piece| match piece {
            Piece::Reasoning { provider, .. } => history::own_data(*provider, FORMAT, target.id).cloned(),
            Piece::Text { text, .. } => (!text.trim().is_empty()).then(|| text_block(text)),
            Piece::Call { id, name, input, .. } => Some(json!({
                "type": "tool_use",
                "id": names::call_id(id, false),
                "name": names::tool_name(name),
                "input": history::object(input),
            })),
        })
        .collect()
}

fn tool_result(outcome: &Outcome, target: &Target) -> Value {
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": names::call_id(outcome.id, false),
        "content": content(&outcome.parts, target),
    });
    if outcome.error {
        block["is_error"] = true.into();
    }
    block
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Marks the end of the last two user messages: one for this request, one where the request before ended.
fn mark_messages(messages: &mut [Value]) {
    let users = messages.iter_mut().rev().filter(|message| message["role"] == "user");
    for message in users.take(2) {
        mark(message["content"].as_array_mut().and_then(|content| content.last_mut()));
    }
}

fn mark(block: Option<&mut Value>) {
    if let Some(block) = block {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
}

pub struct Decoder {
    origin: Origin,
    names: Names,
    blocks: Blocks,
    open: Vec<Open>,
    tokens: Tokens,
    reason: Option<StopReason>,
}

/// A content block between its start and its stop.
struct Open {
    index: u32,
    block: u32,
    kind: OpenKind,
}

enum OpenKind {
    Text,
    Thinking { text: String, signature: String },
    Redacted { data: Value },
    Call { empty: bool },
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", default)]
    kind: FrameKind,
    #[serde(default)]
    index: u32,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum FrameKind {
    MessageStart,
    ContentBlockStart,
    ContentBlockDelta,
    ContentBlockStop,
    MessageDelta,
    MessageStop,
    Error,
    #[default]
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    thinking: Option<String>,
    partial_json: Option<String>,
    signature: Option<String>,
    citation: Option<Citation>,
    stop_reason: Option<String>,
    stop_details: Option<StopDetails>,
}

#[derive(Deserialize)]
struct StopDetails {
    explanation: Option<String>,
}

#[derive(Deserialize)]
struct Citation {
    title: Option<String>,
    url: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct ContentBlock<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

impl Decoder {
    pub fn new(origin: Origin, names: Names) -> Self {
        Self {
            origin,
            names,
            blocks: Blocks::default(),
            open: Vec::new(),
            tokens: Tokens::default(),
            reason: None,
        }
    }

    fn start(&mut self, index: u32, raw: &RawValue, out: &mut Events) {
        let Ok(content) = serde_json::from_str::<ContentBlock>(raw.get()) else { return };
        let (kind, text, state) = match content.kind.as_str() {
            "text" => (BlockKind::Text, content.text, OpenKind::Text),
            "thinking" => {
                let text = content.thinking.unwrap_or_default();
                let signature = content.signature.unwrap_or_default();
                (BlockKind::Reasoning, Some(text.clone()), OpenKind::Thinking { text, signature })
            }
            "redacted_thinking" => {
                let data = serde_json::from_str(raw.get()).unwrap_or_default();
                (BlockKind::Reasoning, None, OpenKind::Redacted { data })
            }
            "tool_use" => {
                let name = self.names.original(content.name.unwrap_or_default());
                let kind = BlockKind::ToolCall { call_id: content.id.unwrap_or_default(), name };
                // The input is streamed later; a server that does not stream puts it here.
                let input =
                    content.input.map(|raw| raw.get().trim()).filter(|text| *text != "{}" && *text != "null");
                (kind, input.map(str::to_owned), OpenKind::Call { empty: input.is_none() })
            }
            _ => return,
        };
        let block = self.blocks.start(kind, out);
        self.open.push(Open { index, block, kind: state });
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            out.push_back(ModelEvent::BlockDelta { block, text });
        }
    }

    fn delta(&mut self, index: u32, delta: Delta, out: &mut Events) {
        if let Some(Citation { title, url: Some(url) }) = delta.citation {
            self.blocks.citation(title.unwrap_or_else(|| url.clone()), url, out);
            return;
        }
        let Some(open) = self.open.iter_mut().rev().find(|open| open.index == index) else { return };
        let text = match &mut open.kind {
            OpenKind::Text => delta.text,
            OpenKind::Thinking { text, signature } => {
                signature.push_str(delta.signature.as_deref().unwrap_or_default());
                text.push_str(delta.thinking.as_deref().unwrap_or_default());
                delta.thinking
            }
            OpenKind::Redacted { .. } => None,
            OpenKind::Call { empty } => {
                let json = delta.partial_json.filter(|json| !json.is_empty());
                *empty &= json.is_none();
                json
            }
        };
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            out.push_back(ModelEvent::BlockDelta { block: open.block, text });
        }
    }

    fn stop(&mut self, index: u32, out: &mut Events) {
        let Some(at) = self.open.iter().rposition(|open| open.index == index) else { return };
        let open = self.open.swap_remove(at);
        let block = open.block;
        let provider = match open.kind {
            OpenKind::Text => None,
            OpenKind::Thinking { text, signature } => {
                let mut data = json!({ "type": "thinking", "thinking": text });
                // Compatible servers do not sign, and do not ask for a signature.
                if !signature.is_empty() {
                    data["signature"] = signature.into();
                }
                self.origin.block(data)
            }
            OpenKind::Redacted { data } => self.origin.block(data),
            OpenKind::Call { empty } => {
                if empty {
                    out.push_back(ModelEvent::BlockDelta { block, text: "{}".to_owned() });
                }
                None
            }
        };
        self.blocks.stop(block, provider, out);
    }

    fn usage(&mut self, usage: Usage, out: &mut Events) {
        let known = self.tokens;
        let new = Tokens {
            input: usage.input_tokens.unwrap_or(known.input),
            cache_read: usage.cache_read_input_tokens.unwrap_or(known.cache_read),
            cache_write: usage.cache_creation_input_tokens.unwrap_or(known.cache_write),
            output: usage.output_tokens.unwrap_or(known.output),
            reasoning: 0,
        };
        push_usage(&mut self.tokens, new, out);
    }

    fn message_delta(&mut self, delta: Delta) {
        let Some(reason) = delta.stop_reason else { return };
        self.reason = Some(match reason.as_str() {
            "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
            "refusal" => StopReason::Refused {
                reason: delta
                    .stop_details
                    .and_then(|details| details.explanation)
                    .unwrap_or_else(|| "The model declined to answer.".to_owned()),
            },
            "tool_use" => StopReason::ToolCalls,
            _ => StopReason::Done,
        });
    }
}

impl Decode for Decoder {
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        let frame: Frame = match serde_json::from_str(event.data) {
            Ok(frame) => frame,
            Err(_) if event.data == "[DONE]" => return Ok(()),
            Err(error) => {
                tracing::debug!(%error, "an event of the stream could not be read");
                return Err(Fault::malformed("an event that is not of the Messages API", event.data));
            }
        };
        match frame.kind {
            FrameKind::ContentBlockDelta => {
                if let Some(delta) = frame.delta {
                    self.delta(frame.index, delta, out);
                }
            }
            FrameKind::ContentBlockStart => {
                if let Some(raw) = frame.content_block {
                    self.start(frame.index, raw, out);
                }
            }
            FrameKind::ContentBlockStop => self.stop(frame.index, out),
            FrameKind::MessageStart => {
                if let Some(usage) = frame.message.and_then(|message| message.usage) {
                    self.usage(usage, out);
                }
            }
            FrameKind::MessageDelta => {
                if let Some(usage) = frame.usage {
                    self.usage(usage, out);
                }
                if let Some(delta) = frame.delta {
                    self.message_delta(delta);
                }
            }
            FrameKind::MessageStop => {
                let reason = self.reason.take().unwrap_or(StopReason::Done);
                self.blocks.end(reason, out);
            }
            FrameKind::Error => return Err(Fault::from_stream(event.data)),
            FrameKind::Unknown if frame.error.is_some() => return Err(Fault::from_stream(event.data)),
            FrameKind::Unknown => {}
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Events) -> bool {
        if let Some(reason) = self.reason.take() {
            self.blocks.end(reason, out);
        }
        self.blocks.is_ended()
    }

    fn is_settled(&self) -> bool {
        self.reason.is_some()
    }
}
