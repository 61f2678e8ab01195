//! Ollama in its own words: JSON lines, calls with whole arguments, thinking beside the text.

use domain::Part;
use domain::model::{BlockKind, ModelEvent, Prompt, StopReason, Tokens};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::history::{self, Outcome, Piece, Turn};
use super::names::{self, Names};
use super::{Blocks, Decode, Events, Origin, Target, Thinking, function, generate_call_id, push_usage};
use crate::fault::Fault;
use rpc::sse::SseEvent;

pub(crate) const FORMAT: &str = "ollama";

pub fn encode(prompt: &Prompt, target: &Target) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), target.model.into());
    body.insert("stream".into(), true.into());
    let tools: Vec<Value> = prompt.tools.iter().map(function).collect();
    if !tools.is_empty() && target.info.tools {
        body.insert("tools".into(), tools.into());
    }
    body.insert("messages".into(), messages(prompt, target).into());
    let mut options = Map::new();
    if let Some(most) = prompt.max_output {
        options.insert("num_predict".into(), most.into());
    }
    if let Some(temperature) = prompt.temperature {
        options.insert("temperature".into(), temperature.into());
    }
    if !options.is_empty() {
        body.insert("options".into(), options.into());
    }
    if let Some(schema) = &prompt.output_schema {
        body.insert("format".into(), schema.clone());
    }
    if target.thinking != Thinking::None
        && let Some(variant) = prompt.variant.as_deref()
    {
        let think = match variant {
            "none" | "off" => false.into(),
            "on" => true.into(),
            level => level.into(),
        };
        body.insert("think".into(), think);
    }
    Value::Object(body)
}

fn messages(prompt: &Prompt, target: &Target) -> Vec<Value> {
    let mut messages = Vec::with_capacity(prompt.entries.len() + 1);
    if !prompt.system.is_empty() {
        messages.push(json!({ "role": "system", "content": prompt.system.join("\n\n") }));
    }
    for turn in history::turns(&prompt.entries) {
        match turn {
            Turn::User(parts) => messages.push(message("user", parts, target)),
            Turn::Answer(pieces) => messages.extend(answer(&pieces, target)),
            Turn::Results(outcomes) => {
                messages.extend(outcomes.iter().map(|outcome| result(outcome, target)))
            }
        }
    }
    messages
}

fn message(role: &str, parts: &[Part], target: &Target) -> Value {
    let mut message = json!({ "role": role, "content": history::text_of(parts) });
    let images: Vec<_> = history::images_of(parts).map(|(_, data)| data).collect();
    if !images.is_empty() && target.info.images {
        message["images"] = images.into();
    }
    message
}

fn answer(pieces: &[Piece], target: &Target) -> Option<Value> {
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Reasoning { text, provider } => {
                if history::own_data(*provider, FORMAT, target.id).is_some() {
                    thinking.push_str(text);
                }
            }
            Piece::Text { text: more, .. } => text.push_str(more),
            Piece::Call { name, input, .. } => calls.push(json!({
                "function": { "name": names::tool_name(name), "arguments": history::object(input) },
            })),
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({ "role": "assistant", "content": text });
    if !thinking.is_empty() {
        message["thinking"] = thinking.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    Some(message)
}

fn result(outcome: &Outcome, target: &Target) -> Value {
    let mut message = message("tool", &outcome.parts, target);
    message["tool_name"] = names::tool_name(outcome.name).into();
    message
}

pub struct Decoder {
    origin: Origin,
    names: Names,
    blocks: Blocks,
    text: Option<u32>,
    thinking: Option<u32>,
    tokens: Tokens,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
    /// In place of a message in the API that completes a text.
    #[serde(default)]
    response: Option<String>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    content: Option<String>,
    thinking: Option<String>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<String>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: Option<String>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl Decoder {
    pub fn new(origin: Origin, names: Names) -> Self {
        Self {
            origin,
            names,
            blocks: Blocks::default(),
            text: None,
            thinking: None,
            tokens: Tokens::default(),
        }
    }

    fn message(&mut self, message: Message, out: &mut Events) {
        if let Some(text) = message.thinking.filter(|text| !text.is_empty()) {
            let block = match self.thinking {
                Some(block) => block,
                None => *self.thinking.insert(self.blocks.start(BlockKind::Reasoning, out)),
            };
            out.push_back(ModelEvent::BlockDelta { block, text });
        }
        if let Some(text) = message.content.filter(|text| !text.is_empty()) {
            self.end_thinking(out);
            let block = match self.text {
                Some(block) => block,
                None => *self.text.insert(self.blocks.start(BlockKind::Text, out)),
            };
            out.push_back(ModelEvent::BlockDelta { block, text });
        }
        for call in message.tool_calls.into_iter().flatten() {
            self.call(call, out);
        }
    }

    fn call(&mut self, call: Call, out: &mut Events) {
        let Some(Function { name: Some(name), arguments }) = call.function else {
            return self.blocks.warn("tool_calls without a name", out);
        };
        self.end_thinking(out);
        self.end_text(out);
        let call_id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(generate_call_id);
        let kind = BlockKind::ToolCall { call_id, name: self.names.original(name) };
        let block = self.blocks.start(kind, out);
        let text = match arguments.map(RawValue::get) {
            None | Some("null") => "{}".to_owned(),
            // An object, or one written as a string.
            Some(text) => serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned()),
        };
        out.push_back(ModelEvent::BlockDelta { block, text });
        self.blocks.stop(block, None, out);
    }

    fn end_thinking(&mut self, out: &mut Events) {
        if let Some(block) = self.thinking.take() {
            let provider = self.origin.block(json!({ "field": "thinking" }));
            self.blocks.stop(block, provider, out);
        }
    }

    fn end(&mut self, reason: Option<&str>, out: &mut Events) {
        self.end_thinking(out);
        self.end_text(out);
        let reason = if reason == Some("length") { StopReason::MaxTokens } else { StopReason::Done };
        self.blocks.end(reason, out);
    }

    fn end_text(&mut self, out: &mut Events) {
        if let Some(block) = self.text.take() {
            self.blocks.stop(block, None, out);
        }
    }
}

impl Decode for Decoder {
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        if event.data == "[DONE]" {
            self.end(None, out);
            return Ok(());
        }
        let line: Line = serde_json::from_str(event.data).map_err(|error| {
            tracing::debug!(%error, "a line of the stream could not be read");
            Fault::malformed("a line that is not of the Ollama API", event.data)
        })?;
        if let Some(error) = line.error {
            return Err(Fault::from_stream(error.get()));
        }
        let done_reason = line.done_reason.filter(|reason| !reason.is_empty());
        let done = line.done || done_reason.is_some();
        match (line.message, line.response) {
            (Some(message), _) => self.message(message, out),
            (None, Some(response)) => {
                let message = Message { content: Some(response), thinking: None, tool_calls: None };
                self.message(message, out);
            }
            (None, None) if !done => self.blocks.unknown_event(event, out)?,
            (None, None) => {}
        }
        if done {
            let new = Tokens {
                input: line.prompt_eval_count.unwrap_or(0),
                output: line.eval_count.unwrap_or(0),
                ..Tokens::default()
            };
            push_usage(&mut self.tokens, new, out);
            self.end(done_reason.as_deref(), out);
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut Events) -> bool {
        self.blocks.is_ended()
    }
}
