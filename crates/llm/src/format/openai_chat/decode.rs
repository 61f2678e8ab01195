//! Streams of Chat Completions in the dialects of many servers.
//!
//! Invariant: a call's deltas reach one block whether its server repeats the id, leaves it out, numbers the calls or
//! sends them whole.

use domain::model::{BlockKind, ModelEvent, StopReason, Tokens};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::wire::{CallDelta, Chunk, Delta, Usage};
use crate::fault::Fault;
use crate::format::names::Names;
use crate::format::{Blocks, Decode, Events, Origin, generate_call_id, push_usage, unread};
use rpc::sse::SseEvent;

pub struct Decoder {
    origin: Origin,
    names: Names,
    blocks: Blocks,
    text: Option<u32>,
    reasoning: Option<Reasoning>,
    calls: Vec<Call>,
    nameless: Vec<NamelessCall>,
    tokens: Tokens,
    refusal: String,
    reason: Option<StopReason>,
}

struct Reasoning {
    block: u32,
    field: &'static str,
    details: Vec<Value>,
    /// Its text came by itself, beside the details.
    is_plain: bool,
}

/// A call whose arguments are still coming.
struct Call {
    index: Option<u32>,
    id: String,
    block: u32,
    /// Whether arguments came.
    streamed: bool,
}

/// Arguments of a call whose name has not come.
struct NamelessCall {
    index: Option<u32>,
    id: Option<String>,
    arguments: String,
}

impl Decoder {
    pub fn new(origin: Origin, names: Names) -> Self {
        Self {
            origin,
            names,
            blocks: Blocks::default(),
            text: None,
            reasoning: None,
            calls: Vec::new(),
            nameless: Vec::new(),
            tokens: Tokens::default(),
            refusal: String::new(),
            reason: None,
        }
    }

    fn delta(&mut self, delta: Delta, out: &mut Events) {
        if let Some(text) = delta.reasoning_content {
            self.push_reasoning("reasoning_content", text, out);
        } else if let Some(text) = delta.reasoning_text {
            self.push_reasoning("reasoning_text", text, out);
        } else if let Some(raw) = delta.reasoning {
            match string(raw) {
                Some(text) => self.push_reasoning("reasoning", text, out),
                None => self.blocks.warn_unread(raw.get(), "reasoning", out),
            }
        }
        if let Some(details) = delta.reasoning_details.filter(|details| !details.is_empty()) {
            self.details(details, out);
        }
        if let Some(raw) = delta.content {
            self.content(raw, out);
        }
        if let Some(refusal) = delta.refusal {
            self.refusal.push_str(&refusal);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call, out);
        }
        if let Some(function) = delta.function_call {
            self.call(CallDelta { index: None, id: None, function: Some(function) }, out);
        }
        for cited in delta.annotations.into_iter().flatten().filter_map(|note| note.url_citation) {
            if let Some(url) = cited.url {
                self.blocks.citation(cited.title.unwrap_or_else(|| url.clone()), url, out);
            }
        }
    }

    /// A string, or a list of parts (Mistral sends its thinking so).
    fn content(&mut self, raw: &RawValue, out: &mut Events) {
        if let Some(text) = string(raw) {
            return self.push_text(text, out);
        }
        let Ok(Value::Array(parts)) = serde_json::from_str::<Value>(raw.get()) else {
            return self.blocks.warn_unread(raw.get(), "content", out);
        };
        for part in parts {
            match part["type"].as_str() {
                Some("text") => self.push_text(part["text"].as_str().unwrap_or_default().to_owned(), out),
                Some("thinking") => {
                    let texts = part["thinking"].as_array().into_iter().flatten();
                    let text: String = texts.filter_map(|inner| inner["text"].as_str()).collect();
                    self.push_reasoning("reasoning_content", text, out);
                }
                _ => self.blocks.warn_unread(&part.to_string(), "content", out),
            }
        }
    }

    fn push_text(&mut self, text: String, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        self.end_reasoning(out);
        let block = match self.text {
            Some(block) => block,
            None => {
                self.end_calls(out);
                *self.text.insert(self.blocks.start(BlockKind::Text, out))
            }
        };
        out.push_back(ModelEvent::BlockDelta { block, text });
    }

    fn push_reasoning(&mut self, field: &'static str, text: String, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        let reasoning = self.open_reasoning(field, out);
        reasoning.is_plain = true;
        out.push_back(ModelEvent::BlockDelta { block: reasoning.block, text });
    }

    fn open_reasoning(&mut self, field: &'static str, out: &mut Events) -> &mut Reasoning {
        if self.reasoning.is_none() {
            self.end_text(out);
        }
        self.reasoning.get_or_insert_with(|| Reasoning {
            block: self.blocks.start(BlockKind::Reasoning, out),
            field,
            details: Vec::new(),
            is_plain: false,
        })
    }

    /// OpenRouter's details are signed by the model behind it and go back whole. Text comes in pieces, which some
    /// servers send nowhere else.
    fn details(&mut self, details: Vec<Value>, out: &mut Events) {
        let Reasoning { block, is_plain, details: known, .. } = self.open_reasoning("reasoning", out);
        for detail in details {
            let text = detail["text"].as_str().or_else(|| detail["summary"].as_str());
            if let Some(text) = text.filter(|text| !*is_plain && !text.is_empty()) {
                out.push_back(ModelEvent::BlockDelta { block: *block, text: text.to_owned() });
            }
            let same = known.last_mut().filter(|last| {
                last["type"] == detail["type"]
                    && last["index"] == detail["index"]
                    && detail["type"] != "reasoning.encrypted"
            });
            match same {
                Some(last) => join_detail(last, detail),
                None => known.push(detail),
            }
        }
    }

    fn call(&mut self, call: CallDelta, out: &mut Events) {
        let (name, arguments) =
            call.function.map(|function| (function.name, function.arguments)).unwrap_or_default();
        let id = call.id.filter(|id| !id.is_empty());
        let name = name.filter(|name| !name.is_empty());
        let mut text = match arguments.map(|raw| (string(raw), raw.get())) {
            None | Some((None, "null")) => String::new(),
            Some((Some(text), _)) => text,
            Some((None, object)) => object.to_owned(),
        };
        let at = match (self.find_call(call.index, id.as_deref(), name.is_some()), name) {
            (Some(at), _) => at,
            (None, Some(name)) => {
                let (held, held_id) = self.take_nameless(call.index, id.as_deref());
                text.insert_str(0, &held);
                self.start_call(call.index, id.or(held_id), name, out)
            }
            (None, None) => return self.hold_nameless(call.index, id, &text),
        };
        let call = &mut self.calls[at];
        if !text.is_empty() {
            call.streamed = true;
            out.push_back(ModelEvent::BlockDelta { block: call.block, text });
        }
    }

    /// Keeps the id and the arguments of a call until its name comes.
    fn hold_nameless(&mut self, index: Option<u32>, id: Option<String>, text: &str) {
        let same = |call: &&mut NamelessCall| call.index == index && (id.is_none() || call.id == id);
        match self.nameless.iter_mut().find(same) {
            Some(call) => call.arguments.push_str(text),
            None => self.nameless.push(NamelessCall { index, id, arguments: text.to_owned() }),
        }
    }

    fn take_nameless(&mut self, index: Option<u32>, id: Option<&str>) -> (String, Option<String>) {
        let same = |call: &NamelessCall| {
            call.index == index && (id.is_none() || call.id.is_none() || call.id.as_deref() == id)
        };
        match self.nameless.iter().position(same) {
            Some(at) => {
                let call = self.nameless.swap_remove(at);
                (call.arguments, call.id)
            }
            None => Default::default(),
        }
    }

    /// The open call that a delta belongs to.
    fn find_call(&self, index: Option<u32>, id: Option<&str>, named: bool) -> Option<usize> {
        if let Some(id) = id
            && let Some(at) = self.calls.iter().position(|call| call.id == id)
        {
            return Some(at);
        }
        let at = match index {
            Some(index) => self.calls.iter().rposition(|call| call.index == Some(index))?,
            None => self.calls.len().checked_sub(1)?,
        };
        // A server that numbers every call 0 tells a new one by a new id or, without ids, by a name after arguments.
        let fresh = match id {
            Some(id) => self.calls[at].id != id,
            None => named && self.calls[at].streamed,
        };
        (!fresh).then_some(at)
    }

    fn start_call(
        &mut self,
        index: Option<u32>,
        id: Option<String>,
        name: String,
        out: &mut Events,
    ) -> usize {
        self.end_reasoning(out);
        self.end_text(out);
        let id = id.unwrap_or_else(generate_call_id);
        let kind = BlockKind::ToolCall { call_id: id.clone(), name: self.names.original(name) };
        let block = self.blocks.start(kind, out);
        self.calls.push(Call { index, id, block, streamed: false });
        self.calls.len() - 1
    }

    fn end_text(&mut self, out: &mut Events) {
        if let Some(block) = self.text.take() {
            self.blocks.stop(block, None, out);
        }
    }

    fn end_reasoning(&mut self, out: &mut Events) {
        if let Some(reasoning) = self.reasoning.take() {
            let data = if reasoning.details.is_empty() {
                json!({ "field": reasoning.field })
            } else {
                json!({ "reasoning_details": reasoning.details })
            };
            self.blocks.stop(reasoning.block, self.origin.block(data), out);
        }
    }

    fn end_calls(&mut self, out: &mut Events) {
        for call in self.calls.drain(..) {
            if !call.streamed {
                out.push_back(ModelEvent::BlockDelta { block: call.block, text: "{}".to_owned() });
            }
            self.blocks.stop(call.block, None, out);
        }
    }

    fn usage(&mut self, usage: Usage, out: &mut Events) {
        let details = usage.prompt_tokens_details;
        let cached = details.as_ref().and_then(|details| details.cached_tokens);
        let cached = cached.or(usage.prompt_cache_hit_tokens).or(usage.cached_tokens).unwrap_or(0);
        let written = details.and_then(|details| details.cache_write_tokens).unwrap_or(0);
        let new = Tokens {
            input: usage.prompt_tokens.unwrap_or(0).saturating_sub(cached + written),
            cache_read: cached,
            cache_write: written,
            output: usage.completion_tokens.unwrap_or(0),
            reasoning: usage
                .completion_tokens_details
                .and_then(|details| details.reasoning_tokens)
                .unwrap_or(0),
        };
        if new != Tokens::default() {
            push_usage(&mut self.tokens, new, out);
        }
    }

    /// A chunk without known content may have text under another name.
    fn warn_unknown_members(&mut self, data: &str, out: &mut Events) {
        let Ok(chunk) = serde_json::from_str::<Value>(data) else { return };
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            for delta in [&choice["delta"], &choice["message"]] {
                let members = delta.as_object().into_iter().flatten();
                for (key, value) in members.filter(|(key, _)| !KNOWN_MEMBERS.contains(&key.as_str())) {
                    if unread::member_holds_text(key, value) {
                        self.blocks.warn(key, out);
                    }
                }
            }
        }
    }

    fn finish_reason(&mut self, reason: &str, out: &mut Events) {
        self.end_reasoning(out);
        self.end_text(out);
        self.end_calls(out);
        self.reason = Some(match reason {
            "length" | "max_tokens" | "model_length" => StopReason::MaxTokens,
            "content_filter" | "sensitive" => {
                StopReason::Refused { reason: "The provider's content filter stopped the answer.".to_owned() }
            }
            "tool_calls" | "function_call" => StopReason::ToolCalls,
            _ => StopReason::Done,
        });
    }

    fn end(&mut self, out: &mut Events) {
        if self.nameless.drain(..).any(|call| !call.arguments.is_empty()) {
            self.blocks.warn("tool_calls without a name", out);
        }
        let mut reason = self.reason.take().unwrap_or(StopReason::Done);
        if !self.refusal.is_empty() {
            reason = StopReason::Refused { reason: std::mem::take(&mut self.refusal) };
        }
        self.blocks.end(reason, out);
    }
}

impl Decode for Decoder {
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            if self.reason.is_none() {
                self.finish_reason("stop", out);
            }
            self.end(out);
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| {
            tracing::debug!(%error, "an event of the stream could not be read");
            Fault::malformed("an event that is not of the Chat Completions API", data)
        })?;
        if let Some(error) = chunk.error.filter(|error| error.get() != "null") {
            return Err(Fault::from_stream(error.get()));
        }
        let before = out.len();
        let has_choices = chunk.choices.is_some();
        for choice in chunk.choices.into_iter().flatten() {
            if let Some(error) = choice.error.filter(|error| error.get() != "null") {
                return Err(Fault::from_stream(error.get()));
            }
            if let Some(delta) = choice.delta.or(choice.message) {
                self.delta(delta, out);
            } else if let Some(text) = choice.text {
                self.push_text(text, out);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish_reason(&reason, out);
            }
        }
        if out.len() == before && self.reason.is_none() {
            self.warn_unknown_members(data, out);
        }
        match chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            Some(usage) => self.usage(usage, out),
            // No chunk: an error as vLLM writes it, or something else.
            None if !has_choices => return self.blocks.unknown_event(event, out),
            None => {}
        }
        Ok(())
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

/// Members of a delta that are read.
const KNOWN_MEMBERS: [&str; 9] = [
    "content",
    "reasoning_content",
    "reasoning_text",
    "reasoning",
    "reasoning_details",
    "refusal",
    "tool_calls",
    "function_call",
    "annotations",
];

fn string(raw: &RawValue) -> Option<String> {
    raw.get().starts_with('"').then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

fn join_detail(last: &mut Value, more: Value) {
    let Value::Object(more) = more else { return };
    for (key, value) in more {
        match (&mut last[&key], value) {
            (Value::String(known), Value::String(text)) if matches!(key.as_str(), "text" | "summary") => {
                known.push_str(&text);
            }
            (_, Value::Null) => {}
            (permit, value) => *permit = value,
        }
    }
}
