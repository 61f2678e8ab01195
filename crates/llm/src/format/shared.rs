//! What the formats share: the description of the model they write for, the bookkeeping of blocks, schemas and ids.

use std::collections::VecDeque;

use domain::item::ProviderBlock;
use domain::model::{BlockKind, ModelEvent, ModelInfo, StopReason, Tokens};
use rpc::sse::SseEvent;
use serde_json::{Value, json};

use super::{names, unread};
use crate::fault::Fault;

/// The model a request is written for.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// `provider/name`: only provider blocks that this model made are sent back.
    pub id: &'a str,
    /// The model's name on the wire.
    pub model: &'a str,
    pub info: &'a ModelInfo,
    pub thinking: Thinking,
    /// Whether the model takes a temperature.
    pub temperature: bool,
    pub dialect: Dialect,
}

/// How a request controls the thinking of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Thinking {
    /// The model does not think, or has no setting for it.
    #[default]
    None,
    /// By a word: `low`, `high`, …
    Effort,
    /// By a number of tokens (older Claude and Gemini models).
    Budget,
    /// By itself, within an effort (Claude since 4.6).
    Adaptive,
}

/// The differences between servers of one format. A vendor's row sets them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dialect {
    /// The name of the output limit in chat completions.
    pub max_tokens: &'static str,
    pub effort: EffortField,
    /// The server enforces an output schema.
    pub json_schema: bool,
    /// The server takes `prompt_cache_key`.
    pub cache_key: bool,
    /// Call ids must be nine letters and digits.
    pub short_ids: bool,
    /// Claude behind this server caches what `cache_control` marks, in chat completions too.
    pub cache_marks: bool,
    /// The text of the model may hold tool calls that its server did not recognize.
    pub text_tool_calls: bool,
    /// The server loads tools from the result of a search, for models that can.
    pub loads_tools: bool,
    /// The server takes tools whose calls are plain text, in the Responses API.
    pub text_tools: bool,
}

impl Dialect {
    pub const PLAIN: Self = Self {
        max_tokens: "max_tokens",
        effort: EffortField::ReasoningEffort,
        json_schema: true,
        cache_key: false,
        short_ids: false,
        cache_marks: false,
        text_tool_calls: false,
        loads_tools: false,
        text_tools: false,
    };
}

/// Where chat completions say how much to think.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EffortField {
    /// `reasoning_effort: "high"`
    ReasoningEffort,
    /// `reasoning: {effort: "high"}`
    Reasoning,
    /// `thinking: {type: "enabled"}`
    Thinking,
    /// `enable_thinking: true`
    EnableThinking,
}

/// Reads one answer. One decoder reads one stream.
pub trait Decode: Send {
    /// Reads one event and appends the model events in it. Unknown events add nothing.
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault>;

    /// The bytes have ended. Returns `true` when the answer is complete; `Ended` has been emitted then.
    fn finish(&mut self, out: &mut Events) -> bool;

    /// The answer is complete except for its usage, so only a short wait for the rest makes sense.
    fn is_settled(&self) -> bool {
        false
    }
}

pub type Events = VecDeque<ModelEvent>;

/// The format and the model that produce the provider blocks of a stream.
#[derive(Clone, Debug)]
pub struct Origin {
    pub format: &'static str,
    pub model: String,
}

impl Origin {
    pub fn block(&self, data: Value) -> Option<ProviderBlock> {
        Some(ProviderBlock { format: self.format.to_owned(), model: self.model.clone(), data })
    }
}

/// Of the kinds of content in one answer that the user is warned of.
const MAX_WARNINGS: usize = 16;
const MAX_KIND_LENGTH: usize = 80;

/// Numbers the blocks of a stream and remembers what must be known when it ends.
#[derive(Default, Debug)]
pub struct Blocks {
    next: u32,
    open: Vec<u32>,
    calls: u32,
    ended: bool,
    /// Kinds of content that the user was warned of.
    warned: Vec<String>,
}

impl Blocks {
    pub fn start(&mut self, kind: BlockKind, out: &mut Events) -> u32 {
        let block = self.next;
        self.next += 1;
        if matches!(kind, BlockKind::ToolCall { .. }) {
            self.calls += 1;
        }
        self.open.push(block);
        out.push_back(ModelEvent::BlockStarted { block, kind });
        block
    }

    /// A whole block that has no text.
    pub fn citation(&mut self, title: String, url: String, out: &mut Events) {
        let block = self.start(BlockKind::Citation { title, url }, out);
        self.stop(block, None, out);
    }

    pub fn stop(&mut self, block: u32, provider: Option<ProviderBlock>, out: &mut Events) {
        self.open.retain(|open| *open != block);
        out.push_back(ModelEvent::BlockEnded { block, provider });
    }

    /// Warns, once for each kind, of content that cannot be shown.
    pub fn warn(&mut self, kind: &str, out: &mut Events) {
        let kind: String = kind.chars().filter(|c| !c.is_control()).take(MAX_KIND_LENGTH).collect();
        if self.warned.len() < MAX_WARNINGS && !self.warned.contains(&kind) {
            tracing::warn!(kind, "the answer holds content that cannot be shown");
            let text = format!("The answer holds `{kind}`, which Dragoman cannot show.");
            self.warned.push(kind);
            out.push_back(ModelEvent::Warning { text });
        }
    }

    /// An event that the API does not define: an error that the server reports, or content to warn of.
    pub fn unknown_event(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        match Fault::of_unknown_event(event.name, event.data) {
            Some(fault) => Err(fault),
            None => {
                self.warn_unread(event.data, "an unknown event", out);
                Ok(())
            }
        }
    }

    /// The same for an event, if it holds text at all. Its type names it, or else `fallback`.
    pub fn warn_unread(&mut self, json: &str, fallback: &str, out: &mut Events) {
        let Ok(value) = serde_json::from_str::<Value>(json) else { return };
        if unread::holds_text(&value) {
            let inner =
                ["delta", "content_block", "item"].iter().find_map(|key| value[*key]["type"].as_str());
            self.warn(inner.or_else(|| value["type"].as_str()).unwrap_or(fallback), out);
        }
    }

    pub fn has_calls(&self) -> bool {
        self.calls > 0
    }

    /// Emits `Ended` once, after ending every block that the server left open. A server that reports "stop" although
    /// it made calls means the calls.
    pub fn end(&mut self, reason: StopReason, out: &mut Events) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        for block in std::mem::take(&mut self.open) {
            out.push_back(ModelEvent::BlockEnded { block, provider: None });
        }
        let reason = match reason {
            StopReason::Done | StopReason::ToolCalls if self.has_calls() => StopReason::ToolCalls,
            StopReason::ToolCalls => StopReason::Done,
            other @ (StopReason::Done
            | StopReason::MaxTokens
            | StopReason::Refused { .. }
            | StopReason::Cut { .. }) => other,
        };
        out.push_back(ModelEvent::Ended { reason });
    }

    pub fn is_ended(&self) -> bool {
        self.ended
    }
}

/// Emits the usage when it has changed.
pub(crate) fn push_usage(known: &mut Tokens, new: Tokens, out: &mut Events) {
    if *known != new {
        *known = new;
        out.push_back(ModelEvent::Usage(new));
    }
}

/// Whether strict mode takes this schema: every object closed, every property required.
pub(crate) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let closed = match map.get("properties") {
                Some(Value::Object(properties)) => {
                    let required = map.get("required").and_then(Value::as_array);
                    map.get("additionalProperties") == Some(&Value::Bool(false))
                        && required.is_some_and(|names| {
                            properties.keys().all(|key| names.iter().any(|name| name.as_str() == Some(key)))
                        })
                }
                _ => map.get("type").and_then(Value::as_str) != Some("object"),
            };
            closed && map.values().all(is_strict)
        }
        Value::Array(list) => list.iter().all(is_strict),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The schema as an instruction, for servers that cannot enforce it.
pub(crate) fn schema_instruction(schema: &Value) -> String {
    format!("Answer with one JSON value only, without a fence, that is valid for this JSON schema:\n{schema}")
}

/// Replaces an image that the model cannot see.
pub(crate) const NO_IMAGES: &str = "(An image was here; this model cannot see images.)";

/// A tool's schema as the object that every API demands.
pub(crate) fn input_schema(schema: &Value) -> Value {
    let mut schema = match schema {
        Value::Object(map) => map.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            serde_json::Map::new()
        }
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    Value::Object(schema)
}

/// A tool, as Chat Completions began to write it.
pub(crate) fn function(spec: &domain::ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": names::tool_name(&spec.offered_name()),
            "description": spec.description,
            "parameters": input_schema(&spec.input_schema),
        },
    })
}

/// Generates an id for a call whose server gave no id. It differs from every other id of the chat.
pub(crate) fn generate_call_id() -> String {
    use std::hash::{BuildHasher, Hasher};
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    format!("call_{random:016x}")
}
