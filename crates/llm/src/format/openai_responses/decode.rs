//! Streams of the Responses API.

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
    refusal: String,
}

/// An output item between its start and its end.
struct Open {
    index: u32,
    block: u32,
    kind: ItemKind,
    /// Whether anything was streamed of it.
    streamed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Text,
    Reasoning,
    Call,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", default)]
    kind: FrameKind,
    #[serde(default)]
    output_index: u32,
    #[serde(default)]
    summary_index: u32,
    #[serde(default)]
    delta: Option<String>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    annotation: Option<&'a RawValue>,
    #[serde(default)]
    response: Option<Response<'a>>,
}

#[derive(Deserialize, Default)]
enum FrameKind {
    #[serde(rename = "response.output_text.delta")]
    TextDelta,
    #[serde(rename = "response.reasoning_summary_text.delta", alias = "response.reasoning_text.delta")]
    ReasoningDelta,
    #[serde(rename = "response.function_call_arguments.delta")]
    ArgumentsDelta,
    #[serde(rename = "response.refusal.delta")]
    RefusalDelta,
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
    #[default]
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Response<'a> {
    usage: Option<Usage>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    incomplete_details: Option<IncompleteDetails>,
}

#[derive(Deserialize)]
struct IncompleteDetails {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type", default)]
    kind: String,
    call_id: Option<String>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    phase: Option<Value>,
    content: Option<Vec<Content>>,
    summary: Option<Vec<Content>>,
}

#[derive(Deserialize)]
struct Content {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Annotation {
    title: Option<String>,
    url: Option<String>,
}

impl Decoder {
    pub fn new(origin: Origin, names: Names) -> Self {
        Self {
            origin,
            names,
            blocks: Blocks::default(),
            open: Vec::new(),
            tokens: Tokens::default(),
            refusal: String::new(),
        }
    }

    fn delta(&mut self, index: u32, kind: ItemKind, text: String, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        let at = match self.open.iter().position(|open| open.index == index && open.kind == kind) {
            Some(at) => at,
            // A server that does not announce its items; a call without a name cannot be one.
            None if kind != ItemKind::Call => self.open(index, kind, None, out),
            None => return,
        };
        let open = &mut self.open[at];
        open.streamed = true;
        out.push_back(ModelEvent::BlockDelta { block: open.block, text });
    }

    fn open(&mut self, index: u32, kind: ItemKind, item: Option<Item>, out: &mut Events) -> usize {
        let block_kind = match kind {
            ItemKind::Text => BlockKind::Text,
            ItemKind::Reasoning => BlockKind::Reasoning,
            ItemKind::Call => {
                let (call_id, name) =
                    item.map(|item| (item.call_id.or(item.id), item.name)).unwrap_or_default();
                BlockKind::ToolCall {
                    call_id: call_id.unwrap_or_else(|| format!("call_{index}")),
                    name: self.names.original(name.unwrap_or_default()),
                }
            }
        };
        let block = self.blocks.start(block_kind, out);
        self.open.push(Open { index, block, kind, streamed: false });
        self.open.len() - 1
    }

    fn added(&mut self, index: u32, raw: &RawValue, out: &mut Events) {
        let Ok(item) = serde_json::from_str::<Item>(raw.get()) else { return };
        if let Some(kind) = kind_of(&item.kind)
            && !self.open.iter().any(|open| open.index == index)
        {
            self.open(index, kind, Some(item), out);
        }
    }

    fn done(&mut self, index: u32, raw: &RawValue, out: &mut Events) {
        let Ok(item) = serde_json::from_str::<Item>(raw.get()) else { return };
        let Some(kind) = kind_of(&item.kind) else { return };
        if let Some(parts) = &item.content {
            let said: String = parts.iter().filter_map(|part| part.refusal.as_deref()).collect();
            if self.refusal.is_empty() {
                self.refusal = said;
            }
        }
        let whole = final_text(kind, &item);
        let phase = item.phase.clone().filter(|phase| !phase.is_null());
        let at = match self.open.iter().position(|open| open.index == index && open.kind == kind) {
            Some(at) => at,
            None => self.open(index, kind, Some(item), out),
        };
        let open = self.open.swap_remove(at);
        if !open.streamed && !whole.is_empty() {
            out.push_back(ModelEvent::BlockDelta { block: open.block, text: whole });
        }
        let provider = match kind {
            ItemKind::Text => phase.and_then(|phase| self.origin.block(json!({ "phase": phase }))),
            ItemKind::Reasoning => self.origin.block(reasoning_item(raw)),
            ItemKind::Call => None,
        };
        self.blocks.stop(open.block, provider, out);
    }

    fn cite(&mut self, raw: Option<&RawValue>, out: &mut Events) {
        let cited = raw.and_then(|raw| serde_json::from_str::<Annotation>(raw.get()).ok());
        if let Some(Annotation { title, url: Some(url) }) = cited {
            self.blocks.citation(title.unwrap_or_else(|| url.clone()), url, out);
        }
    }

    fn usage(&mut self, usage: Usage, out: &mut Events) {
        let (cached, written) = usage
            .input_tokens_details
            .map(|details| (details.cached_tokens.unwrap_or(0), details.cache_write_tokens.unwrap_or(0)))
            .unwrap_or_default();
        let new = Tokens {
            input: usage.input_tokens.saturating_sub(cached + written),
            cache_read: cached,
            cache_write: written,
            output: usage.output_tokens,
            reasoning: usage.output_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0),
        };
        push_usage(&mut self.tokens, new, out);
    }

    fn end(&mut self, response: Option<Response>, whole: bool, out: &mut Events) {
        let mut reason = if whole { StopReason::Done } else { StopReason::MaxTokens };
        if let Some(response) = response {
            if let Some(usage) = response.usage {
                self.usage(usage, out);
            }
            let cause = response.incomplete_details.and_then(|details| details.reason);
            if cause.as_deref() == Some("content_filter") {
                reason = StopReason::Refused {
                    reason: "The provider's content filter stopped the answer.".to_owned(),
                };
            }
        }
        if !self.refusal.is_empty() {
            reason = StopReason::Refused { reason: std::mem::take(&mut self.refusal) };
        }
        self.blocks.end(reason, out);
    }
}

fn kind_of(item: &str) -> Option<ItemKind> {
    match item {
        "message" => Some(ItemKind::Text),
        "reasoning" => Some(ItemKind::Reasoning),
        "function_call" => Some(ItemKind::Call),
        _ => None,
    }
}

/// The text of a finished item, for servers that did not stream it.
fn final_text(kind: ItemKind, item: &Item) -> String {
    let join = |parts: &Option<Vec<Content>>, between: &str| {
        let texts: Vec<_> = parts.iter().flatten().filter_map(|part| part.text.as_deref()).collect();
        texts.join(between)
    };
    match kind {
        ItemKind::Text => join(&item.content, ""),
        ItemKind::Reasoning => join(&item.summary, "\n\n"),
        ItemKind::Call => match item.arguments.as_deref() {
            None | Some("") => "{}".to_owned(),
            Some(arguments) => arguments.to_owned(),
        },
    }
}

/// The item as it is sent back: without its id, which names nothing where nothing is stored.
fn reasoning_item(raw: &RawValue) -> Value {
    let mut item: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    if let Some(map) = item.as_object_mut() {
        map.shift_remove("id");
        map.shift_remove("status");
        map.entry("summary").or_insert_with(|| json!([]));
        if map.get("content").is_some_and(Value::is_null) {
            map.shift_remove("content");
        }
    }
    item
}

impl Decode for Decoder {
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        let frame: Frame = match serde_json::from_str(event.data) {
            Ok(frame) => frame,
            Err(_) if event.data == "[DONE]" => return Ok(()),
            Err(error) => {
                tracing::debug!(%error, "an event of the stream could not be read");
                return Err(Fault::malformed("an event that is not of the Responses API", event.data));
            }
        };
        let index = frame.output_index;
        match frame.kind {
            FrameKind::TextDelta => self.delta(index, ItemKind::Text, frame.delta.unwrap_or_default(), out),
            FrameKind::ReasoningDelta => {
                self.delta(index, ItemKind::Reasoning, frame.delta.unwrap_or_default(), out)
            }
            FrameKind::ArgumentsDelta => {
                self.delta(index, ItemKind::Call, frame.delta.unwrap_or_default(), out)
            }
            FrameKind::RefusalDelta => self.refusal.push_str(frame.delta.as_deref().unwrap_or_default()),
            FrameKind::SummaryPart if frame.summary_index > 0 => {
                self.delta(index, ItemKind::Reasoning, "\n\n".to_owned(), out);
            }
            FrameKind::ItemAdded => {
                if let Some(raw) = frame.item {
                    self.added(index, raw, out);
                }
            }
            FrameKind::ItemDone => {
                if let Some(raw) = frame.item {
                    self.done(index, raw, out);
                }
            }
            FrameKind::Annotation => self.cite(frame.annotation, out),
            FrameKind::Completed => self.end(frame.response, true, out),
            FrameKind::Incomplete => self.end(frame.response, false, out),
            FrameKind::Failed => {
                let error = frame.response.and_then(|response| response.error);
                return Err(Fault::from_stream(error.map_or(event.data, RawValue::get)));
            }
            FrameKind::Error => return Err(Fault::from_stream(event.data)),
            FrameKind::SummaryPart | FrameKind::Unknown => {
                if event.data.starts_with("{\"error\"") {
                    return Err(Fault::from_stream(event.data));
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut Events) -> bool {
        self.blocks.is_ended()
    }
}
