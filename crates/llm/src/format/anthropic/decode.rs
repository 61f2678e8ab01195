//! Streams of the Messages API, with signed thinking, from Anthropic and from servers that are less exact.
//!
//! Invariants: a delta reaches a block of its own kind, also when the server did not announce or number it; no text is
//! dropped without a warning.

use domain::model::{BlockKind, ModelEvent, StopReason, Tokens};
use rpc::sse::SseEvent;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::format::names::Names;
use crate::format::{Blocks, Decode, Events, Origin, generate_call_id, push_usage};

pub struct Decoder {
    origin: Origin,
    names: Names,
    blocks: Blocks,
    open: Vec<OpenBlock>,
    /// Reasoning that was ended because another block went on. A signature that comes now has no place.
    ended_reasoning: Vec<Option<u32>>,
    /// Blocks of unknown types that have started: their index and type.
    unknown: Vec<(Option<u32>, String)>,
    tokens: Tokens,
    reason: Option<StopReason>,
}

/// A content block between its start and its stop.
struct OpenBlock {
    index: Option<u32>,
    block: u32,
    kind: OpenKind,
}

enum OpenKind {
    Text,
    Thinking { text: String, signature: String },
    Redacted { data: Value },
    Call { id: String, empty: bool },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DeltaKind {
    Text,
    Thinking,
    Call,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", default)]
    kind: FrameKind,
    #[serde(default)]
    index: Option<u32>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum FrameKind {
    MessageStart,
    ContentBlockStart,
    ContentBlockDelta,
    ContentBlockStop,
    MessageDelta,
    MessageStop,
    /// A whole answer: the server does not stream.
    Message,
    Ping,
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
struct Message<'a> {
    usage: Option<Usage>,
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    stop_reason: Option<String>,
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

impl OpenKind {
    fn takes(&self, kind: DeltaKind) -> bool {
        match self {
            Self::Text => kind == DeltaKind::Text,
            Self::Thinking { .. } => kind == DeltaKind::Thinking,
            Self::Call { .. } => kind == DeltaKind::Call,
            Self::Redacted { .. } => false,
        }
    }

    /// Whether a second start at the same index only repeats the first.
    fn is_repeated_by(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text, Self::Text) | (Self::Thinking { .. }, Self::Thinking { .. }) => true,
            (Self::Redacted { data }, Self::Redacted { data: again }) => data == again,
            (Self::Call { id, .. }, Self::Call { id: again, .. }) => id == again,
            _ => false,
        }
    }
}

impl Decoder {
    pub fn new(origin: Origin, names: Names) -> Self {
        Self {
            origin,
            names,
            blocks: Blocks::default(),
            open: Vec::new(),
            ended_reasoning: Vec::new(),
            unknown: Vec::new(),
            tokens: Tokens::default(),
            reason: None,
        }
    }

    fn start(&mut self, index: Option<u32>, raw: &RawValue, out: &mut Events) {
        let Ok(content) = serde_json::from_str::<ContentBlock>(raw.get()) else {
            return self.blocks.warn_unread(raw.get(), "content_block", out);
        };
        let (kind, text, state) = match content.kind.as_str() {
            "text" => (BlockKind::Text, content.text, OpenKind::Text),
            "thinking" => {
                let (text, signature) = (String::new(), content.signature.unwrap_or_default());
                (BlockKind::Reasoning, content.thinking, OpenKind::Thinking { text, signature })
            }
            "redacted_thinking" => {
                let data = serde_json::from_str(raw.get()).unwrap_or_default();
                (BlockKind::Reasoning, None, OpenKind::Redacted { data })
            }
            "tool_use" => {
                let name = self.names.original(content.name.unwrap_or_default());
                let id = content.id.filter(|id| !id.is_empty()).unwrap_or_else(generate_call_id);
                let kind = BlockKind::ToolCall { call_id: id.clone(), name };
                // The input is streamed later; a server that does not stream puts it here.
                let input =
                    content.input.map(|raw| raw.get().trim()).filter(|text| *text != "{}" && *text != "null");
                (kind, input.map(str::to_owned), OpenKind::Call { id, empty: true })
            }
            _ => {
                self.blocks.warn_unread(raw.get(), "content_block", out);
                self.unknown.push((index, content.kind));
                return;
            }
        };
        let at = self.open_at(index, state, kind, out);
        self.append(at, text, out);
    }

    /// Ends the reasoning that a server without `content_block_stop` left open although another block goes on.
    fn end_reasoning(&mut self, out: &mut Events) {
        let is_left = |open: &OpenBlock| match &open.kind {
            OpenKind::Thinking { text, signature } => !text.is_empty() || !signature.is_empty(),
            OpenKind::Redacted { .. } => true,
            OpenKind::Text | OpenKind::Call { .. } => false,
        };
        while let Some(at) = self.open.iter().position(is_left) {
            self.ended_reasoning.push(self.open[at].index);
            self.close(at, out);
        }
    }

    /// The block at an index: the one that is open there, when the start is repeated, or a new one.
    fn open_at(&mut self, index: Option<u32>, state: OpenKind, kind: BlockKind, out: &mut Events) -> usize {
        if let Some(at) = self.open.iter().rposition(|open| open.index == index) {
            if self.open[at].kind.is_repeated_by(&state) {
                return at;
            }
            self.close(at, out);
        }
        self.end_reasoning(out);
        let block = self.blocks.start(kind, out);
        self.open.push(OpenBlock { index, block, kind: state });
        self.open.len() - 1
    }

    fn append(&mut self, at: usize, text: Option<String>, out: &mut Events) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        let (block, is_reasoning) = (self.open[at].block, self.open[at].kind.takes(DeltaKind::Thinking));
        if !is_reasoning {
            self.end_reasoning(out);
        }
        let Some(open) = self.open.iter_mut().find(|open| open.block == block) else { return };
        match &mut open.kind {
            OpenKind::Thinking { text: known, .. } => known.push_str(&text),
            OpenKind::Call { empty, .. } => *empty = false,
            OpenKind::Text | OpenKind::Redacted { .. } => {}
        }
        out.push_back(ModelEvent::BlockDelta { block: open.block, text });
    }

    fn delta(&mut self, index: Option<u32>, delta: Delta, data: &str, out: &mut Events) {
        if let Some(Citation { title, url: Some(url) }) = delta.citation {
            self.blocks.citation(title.unwrap_or_else(|| url.clone()), url, out);
            return;
        }
        if let Some((_, kind)) = self.unknown.iter().find(|(known, _)| *known == index) {
            let kind = kind.clone();
            return self.blocks.warn(&kind, out);
        }
        let is_late = |open: &OpenBlock| open.kind.takes(DeltaKind::Thinking);
        let is_late = self.ended_reasoning.contains(&index) && !self.open.iter().any(is_late);
        if delta.signature.is_some() && delta.thinking.is_none() && is_late {
            return;
        }
        if let Some(signature) = delta.signature
            && let Some(at) = self.block_for(index, DeltaKind::Thinking, out)
            && let OpenKind::Thinking { signature: known, .. } = &mut self.open[at].kind
        {
            known.push_str(&signature);
        } else if delta.text.is_none() && delta.thinking.is_none() && delta.partial_json.is_none() {
            self.blocks.warn_unread(data, "content_block_delta", out);
        }
        for (kind, text) in [
            (DeltaKind::Text, delta.text),
            (DeltaKind::Thinking, delta.thinking),
            (DeltaKind::Call, delta.partial_json),
        ] {
            let Some(text) = text.filter(|text| !text.is_empty()) else { continue };
            match self.block_for(index, kind, out) {
                Some(at) => self.append(at, Some(text), out),
                None => self.blocks.warn("input_json_delta without a tool call", out),
            }
        }
    }

    /// The open block for a delta; a server that announces no blocks gets one opened. A call needs its name.
    fn block_for(&mut self, index: Option<u32>, kind: DeltaKind, out: &mut Events) -> Option<usize> {
        let same = |open: &OpenBlock| index.is_none() || open.index.is_none() || open.index == index;
        if let Some(at) = self.open.iter().rposition(|open| same(open) && open.kind.takes(kind)) {
            return Some(at);
        }
        let (block_kind, state) = match kind {
            DeltaKind::Text => (BlockKind::Text, OpenKind::Text),
            DeltaKind::Thinking => {
                let (text, signature) = Default::default();
                (BlockKind::Reasoning, OpenKind::Thinking { text, signature })
            }
            DeltaKind::Call => return self.open.iter().rposition(|open| open.kind.takes(kind)),
        };
        Some(self.open_at(index, state, block_kind, out))
    }

    fn stop(&mut self, index: Option<u32>, out: &mut Events) {
        self.unknown.retain(|(known, _)| *known != index);
        if let Some(at) = self.open.iter().rposition(|open| open.index == index) {
            self.close(at, out);
        }
    }

    fn close(&mut self, at: usize, out: &mut Events) {
        let OpenBlock { block, kind, .. } = self.open.remove(at);
        let provider = match kind {
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
            OpenKind::Call { empty, .. } => {
                if empty {
                    out.push_back(ModelEvent::BlockDelta { block, text: "{}".to_owned() });
                }
                None
            }
        };
        self.blocks.stop(block, provider, out);
    }

    /// Content that comes whole, in the first event or in an answer that is not streamed.
    fn whole(&mut self, message: Message, out: &mut Events) {
        for raw in message.content.into_iter().flatten() {
            let before = self.open.len();
            self.start(None, raw, out);
            if self.open.len() > before {
                self.close(before, out);
            }
        }
        self.unknown.clear();
        if let Some(usage) = message.usage {
            self.usage(usage, out);
        }
        if let Some(reason) = message.stop_reason {
            self.stop_reason(&reason, None);
        }
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

    fn stop_reason(&mut self, reason: &str, details: Option<StopDetails>) {
        self.reason = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
            "refusal" => StopReason::Refused {
                reason: details
                    .and_then(|details| details.explanation)
                    .unwrap_or_else(|| "The model declined to answer.".to_owned()),
            },
            "tool_use" => StopReason::ToolCalls,
            _ => StopReason::Done,
        });
    }

    fn end(&mut self, out: &mut Events) {
        while !self.open.is_empty() {
            self.close(0, out);
        }
        let reason = self.reason.take().unwrap_or(StopReason::Done);
        self.blocks.end(reason, out);
    }

    fn frame(&mut self, kind: FrameKind, frame: Frame, data: &str, out: &mut Events) -> Result<(), Fault> {
        match kind {
            FrameKind::ContentBlockDelta => match frame.delta {
                Some(delta) => self.delta(frame.index, delta, data, out),
                None => self.blocks.warn_unread(data, "content_block_delta", out),
            },
            FrameKind::ContentBlockStart => match frame.content_block {
                Some(raw) => self.start(frame.index, raw, out),
                None => self.blocks.warn_unread(data, "content_block_start", out),
            },
            FrameKind::ContentBlockStop => self.stop(frame.index, out),
            FrameKind::MessageStart => {
                if let Some(message) = frame.message {
                    self.whole(message, out);
                }
            }
            FrameKind::MessageDelta => {
                if let Some(usage) = frame.usage {
                    self.usage(usage, out);
                }
                if let Some(Delta { stop_reason: Some(reason), stop_details, .. }) = frame.delta {
                    self.stop_reason(&reason, stop_details);
                }
            }
            FrameKind::MessageStop => self.end(out),
            FrameKind::Message => {
                if let Ok(message) = serde_json::from_str(data) {
                    self.whole(message, out);
                }
                self.end(out);
            }
            FrameKind::Error => return Err(Fault::from_stream(data)),
            FrameKind::Unknown => self.blocks.unknown_event(SseEvent { name: "", data }, out)?,
            FrameKind::Ping => {}
        }
        Ok(())
    }
}

/// The kind by the name of the event, for servers that leave it out of the data.
fn kind_of_name(name: &str) -> FrameKind {
    match name {
        "message_start" => FrameKind::MessageStart,
        "content_block_start" => FrameKind::ContentBlockStart,
        "content_block_delta" => FrameKind::ContentBlockDelta,
        "content_block_stop" => FrameKind::ContentBlockStop,
        "message_delta" => FrameKind::MessageDelta,
        "message_stop" => FrameKind::MessageStop,
        "error" => FrameKind::Error,
        _ => FrameKind::Unknown,
    }
}

impl Decode for Decoder {
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        let frame: Frame = match serde_json::from_str(event.data) {
            Ok(frame) => frame,
            Err(_) if matches!(event.data.trim(), "[DONE]" | "") => return Ok(()),
            Err(error) => {
                tracing::debug!(%error, "an event of the stream could not be read");
                return Err(Fault::malformed("an event that is not of the Messages API", event.data));
            }
        };
        let is_unknown = frame.kind == FrameKind::Unknown;
        let kind = if is_unknown { kind_of_name(event.name) } else { frame.kind };
        self.frame(kind, frame, event.data, out)
    }

    fn finish(&mut self, out: &mut Events) -> bool {
        if self.reason.is_some() {
            self.end(out);
        }
        self.blocks.is_ended()
    }

    fn is_settled(&self) -> bool {
        self.reason.is_some()
    }
}
