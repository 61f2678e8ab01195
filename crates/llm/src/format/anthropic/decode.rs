//! Streams of the Messages API, with signed thinking.

use domain::model::{BlockKind, ModelEvent, StopReason, Tokens};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sse::SseEvent;

use crate::fault::Fault;
use crate::format::names::Names;
use crate::format::{Blocks, Decode, Events, Origin, push_usage};

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
