//! Bedrock's Converse: one shape for all its models, answers in AWS frames.
//!
//! Invariant: roles alternate, which this API alone demands; reasoning goes back as it came.

use domain::Part;
use domain::model::{BlockKind, ModelEvent, Prompt, StopReason, Tokens};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::history::{self, Outcome, Piece, Turn};
use super::names::{self, Names};
use super::{
    Blocks, Decode, Events, NO_IMAGES, Origin, Target, Thinking, input_schema, push_usage, schema_instruction,
};
use crate::fault::{Fault, FaultKind};
use rpc::sse::SseEvent;

const FORMAT: &str = "bedrock";

pub fn encode(prompt: &Prompt, target: &Target) -> Value {
    let caches = target.model.contains("anthropic.claude");
    let mut body = Map::new();
    let mut system: Vec<Value> = prompt.system.iter().map(|text| json!({ "text": text.as_ref() })).collect();
    if let Some(schema) = &prompt.output_schema {
        system.push(json!({ "text": schema_instruction(schema) }));
    }
    if !system.is_empty() {
        mark(&mut system, caches);
        body.insert("system".into(), system.into());
    }
    let mut tools = tools(prompt);
    if !tools.is_empty() {
        mark(&mut tools, caches);
        body.insert("toolConfig".into(), json!({ "tools": tools }));
    }
    let mut messages = messages(prompt, target);
    if caches {
        mark_messages(&mut messages);
    }
    body.insert("messages".into(), messages.into());
    settings(prompt, target, &mut body);
    Value::Object(body)
}

fn settings(prompt: &Prompt, target: &Target, body: &mut Map<String, Value>) {
    let limit = target.info.output_limit;
    let mut config = Map::new();
    let mut most = prompt.max_output;
    let variant = prompt.variant.as_deref().filter(|variant| !matches!(*variant, "none" | "off"));
    let extra = match (target.thinking, variant) {
        (Thinking::Budget, Some(variant)) => {
            let budget: u64 = match variant {
                "low" => 4_000,
                "medium" => 10_000,
                "high" => 24_000,
                other => other.parse().unwrap_or(31_999),
            };
            let roof = limit.unwrap_or(u64::MAX);
            most = Some((most.unwrap_or(8_192) + budget).min(roof).max(budget + 1));
            Some(json!({ "thinking": { "type": "enabled", "budget_tokens": budget } }))
        }
        (Thinking::Adaptive, Some(variant)) => Some(json!({
            "thinking": { "type": "adaptive", "display": "summarized" },
            "output_config": { "effort": variant },
        })),
        (Thinking::Effort, Some(variant)) => Some(json!({ "reasoning_effort": variant })),
        _ => None,
    };
    if let Some(most) = most {
        config.insert("maxTokens".into(), limit.map_or(most, |limit| most.min(limit)).into());
    }
    if let Some(temperature) = prompt.temperature.filter(|_| target.temperature && extra.is_none()) {
        config.insert("temperature".into(), temperature.into());
    }
    if !config.is_empty() {
        body.insert("inferenceConfig".into(), config.into());
    }
    if let Some(extra) = extra {
        body.insert("additionalModelRequestFields".into(), extra);
    }
}

/// The offered tools; calls of the history must have theirs, though they may no longer be offered.
fn tools(prompt: &Prompt) -> Vec<Value> {
    let spec = |name: &str, description: &str, schema: Value| json!({ "toolSpec": { "name": name, "description": description, "inputSchema": { "json": schema } } });
    if prompt.tools.is_empty() {
        return history::called(&prompt.entries)
            .iter()
            .map(|name| spec(&names::tool_name(name), "No longer available.", input_schema(&Value::Null)))
            .collect();
    }
    let offered = prompt.tools.iter();
    offered
        .map(|tool| {
            // An empty description is refused.
            let description = if tool.description.is_empty() { &tool.name } else { &tool.description };
            spec(&names::tool_name(&tool.offered_name()), description, input_schema(&tool.input_schema))
        })
        .collect()
}

fn messages(prompt: &Prompt, target: &Target) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in history::turns(&prompt.entries) {
        let (role, content) = match turn {
            Turn::User(parts) => ("user", content(parts, target)),
            Turn::Answer(pieces) => ("assistant", answer(&pieces, target)),
            Turn::Results(outcomes) => {
                ("user", outcomes.iter().map(|outcome| tool_result(outcome, target)).collect())
            }
        };
        match messages.last_mut() {
            _ if content.is_empty() => {}
            Some((last, known)) if *last == role => known.extend(content),
            _ => messages.push((role, content)),
        }
    }
    messages.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn content(parts: &[Part], target: &Target) -> Vec<Value> {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => (!text.trim().is_empty()).then(|| json!({ "text": text })),
            Part::Image { mime, data } if target.info.images => {
                let format = mime.strip_prefix("image/").unwrap_or("png");
                Some(json!({ "image": { "format": format, "source": { "bytes": data.as_ref() } } }))
            }
            Part::Image { .. } => Some(json!({ "text": NO_IMAGES })),
        })
        .collect()
}

fn answer(pieces: &[Piece], target: &Target) -> Vec<Value> {
    let last =
        pieces.iter().rposition(|piece| !matches!(piece, Piece::Reasoning { .. })).map_or(0, |at| at + 1);
    pieces[..last]
        .iter()
        .filter_map(|piece| match piece {
            Piece::Reasoning { provider, .. } => history::own_data(*provider, FORMAT, target.id).cloned(),
            Piece::Text { text, .. } => (!text.trim().is_empty()).then(|| json!({ "text": text })),
            Piece::Call { id, name, input, .. } => Some(json!({ "toolUse": {
                "toolUseId": names::call_id(id, false),
                "name": names::tool_name(name),
                "input": history::object(input),
            } })),
        })
        .collect()
}

fn tool_result(outcome: &Outcome, target: &Target) -> Value {
    let mut content = content(&outcome.parts, target);
    if content.is_empty() {
        content.push(json!({ "text": "(no output)" }));
    }
    json!({ "toolResult": {
        "toolUseId": names::call_id(outcome.id, false),
        "content": content,
        "status": if outcome.error { "error" } else { "success" },
    } })
}

fn mark(list: &mut Vec<Value>, caches: bool) {
    if caches {
        list.push(json!({ "cachePoint": { "type": "default" } }));
    }
}

fn mark_messages(messages: &mut [Value]) {
    let users = messages.iter_mut().rev().filter(|message| message["role"] == "user");
    for message in users.take(2) {
        if let Some(content) = message["content"].as_array_mut() {
            mark(content, true);
        }
    }
}

pub struct Decoder {
    origin: Origin,
    names: Names,
    blocks: Blocks,
    open: Vec<OpenBlock>,
    tokens: Tokens,
    reason: Option<StopReason>,
}

struct OpenBlock {
    index: u32,
    block: u32,
    kind: OpenKind,
}

enum OpenKind {
    Text,
    Call { id: String, empty: bool },
    Reasoning { text: String, signature: String, redacted: String },
}

impl OpenKind {
    /// Whether a start or a delta of the other kind belongs to this block.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text, Self::Text) | (Self::Reasoning { .. }, Self::Reasoning { .. }) => true,
            (Self::Call { id, .. }, Self::Call { id: again, .. }) => id == again,
            _ => false,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    #[serde(default)]
    content_block_index: u32,
    start: Option<Start>,
    delta: Option<Delta>,
    stop_reason: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    tool_use: Option<ToolUse>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse {
    tool_use_id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta {
    text: Option<String>,
    tool_use: Option<ToolInput>,
    reasoning_content: Option<ReasoningDelta>,
}

#[derive(Deserialize)]
struct ToolInput {
    input: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningDelta {
    text: Option<String>,
    signature: Option<String>,
    redacted_content: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
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

    /// The block at an index. Text and reasoning begin without a start of their own; a block of another kind at the
    /// same index ends the one before.
    fn open(
        &mut self,
        index: u32,
        block_kind: BlockKind,
        kind: OpenKind,
        out: &mut Events,
    ) -> &mut OpenBlock {
        let at = self.open.iter().position(|open| open.index == index);
        let at = match at.filter(|at| self.open[*at].kind.is_like(&kind)) {
            Some(at) => at,
            None => {
                self.stop(index, out);
                // Reasoning that has no stop ends where the next block begins.
                let is_reasoning = |open: &OpenBlock| matches!(open.kind, OpenKind::Reasoning { .. });
                while let Some(left) = self.open.iter().find(|open| is_reasoning(open)).map(|open| open.index)
                {
                    self.stop(left, out);
                }
                let block = self.blocks.start(block_kind, out);
                self.open.push(OpenBlock { index, block, kind });
                self.open.len() - 1
            }
        };
        &mut self.open[at]
    }

    fn start(&mut self, index: u32, tool: ToolUse, out: &mut Events) {
        let name = self.names.original(tool.name.unwrap_or_default());
        let id = tool.tool_use_id.unwrap_or_else(super::generate_call_id);
        let kind = BlockKind::ToolCall { call_id: id.clone(), name };
        self.open(index, kind, OpenKind::Call { id, empty: true }, out);
    }

    fn delta(&mut self, index: u32, delta: Delta, data: &str, out: &mut Events) {
        let (block, text) = if let Some(text) = delta.text {
            (self.open(index, BlockKind::Text, OpenKind::Text, out).block, Some(text))
        } else if let Some(reasoning) = delta.reasoning_content {
            let (text, signature, redacted) = Default::default();
            let kind = OpenKind::Reasoning { text, signature, redacted };
            let open = self.open(index, BlockKind::Reasoning, kind, out);
            if let OpenKind::Reasoning { text, signature, redacted } = &mut open.kind {
                text.push_str(reasoning.text.as_deref().unwrap_or_default());
                signature.push_str(reasoning.signature.as_deref().unwrap_or_default());
                redacted.push_str(reasoning.redacted_content.as_deref().unwrap_or_default());
            }
            (open.block, reasoning.text)
        } else if let Some(tool) = delta.tool_use {
            let input = tool.input.filter(|input| !input.is_empty());
            let is_call = |open: &OpenBlock| matches!(open.kind, OpenKind::Call { .. });
            let at = self.open.iter().position(|open| open.index == index && is_call(open));
            let at = at.or_else(|| self.open.iter().rposition(is_call));
            let Some(open) = at.map(|at| &mut self.open[at]) else {
                if input.is_some() {
                    self.blocks.warn("toolUse without a start", out);
                }
                return;
            };
            if let OpenKind::Call { empty, .. } = &mut open.kind {
                *empty &= input.is_none();
            }
            (open.block, input)
        } else {
            return self.blocks.warn_unread(data, "contentBlockDelta", out);
        };
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            out.push_back(ModelEvent::BlockDelta { block, text });
        }
    }

    fn stop(&mut self, index: u32, out: &mut Events) {
        let Some(at) = self.open.iter().position(|open| open.index == index) else { return };
        let open = self.open.remove(at);
        let provider = match open.kind {
            OpenKind::Text => None,
            OpenKind::Call { empty, .. } => {
                if empty {
                    out.push_back(ModelEvent::BlockDelta { block: open.block, text: "{}".to_owned() });
                }
                None
            }
            OpenKind::Reasoning { redacted, .. } if !redacted.is_empty() => {
                self.origin.block(json!({ "reasoningContent": { "redactedContent": redacted } }))
            }
            OpenKind::Reasoning { text, signature, .. } => {
                let mut reasoning = json!({ "text": text });
                if !signature.is_empty() {
                    reasoning["signature"] = signature.into();
                }
                self.origin.block(json!({ "reasoningContent": { "reasoningText": reasoning } }))
            }
        };
        self.blocks.stop(open.block, provider, out);
    }

    fn usage(&mut self, usage: Usage, out: &mut Events) {
        let new = Tokens {
            input: usage.input_tokens.unwrap_or(0),
            cache_read: usage.cache_read_input_tokens.unwrap_or(0),
            cache_write: usage.cache_write_input_tokens.unwrap_or(0),
            output: usage.output_tokens.unwrap_or(0),
            reasoning: 0,
        };
        push_usage(&mut self.tokens, new, out);
    }
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "tool_use" => StopReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "guardrail_intervened" | "content_filtered" | "refusal" => StopReason::Refused {
            reason: format!("The provider's filter stopped the answer ({}).", reason.replace('_', " ")),
        },
        _ => StopReason::Done,
    }
}

impl Decode for Decoder {
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        if event.name.ends_with("Exception") {
            let said = Fault::from_stream(event.data);
            let kind = match event.name {
                "throttlingException" => FaultKind::RateLimit,
                "validationException" if said.kind != FaultKind::TooLong => FaultKind::Request,
                "accessDeniedException" => FaultKind::Auth,
                _ => said.kind,
            };
            return Err(Fault { kind, ..said });
        }
        let frame: Frame = serde_json::from_str(event.data)
            .map_err(|_| Fault::malformed("an event that is not of the Converse API", event.data))?;
        let index = frame.content_block_index;
        match event.name {
            "contentBlockDelta" => {
                if let Some(delta) = frame.delta {
                    self.delta(index, delta, event.data, out);
                }
            }
            "contentBlockStart" => match frame.start.and_then(|start| start.tool_use) {
                Some(tool) => self.start(index, tool, out),
                None => self.blocks.warn_unread(event.data, "contentBlockStart", out),
            },
            "contentBlockStop" => self.stop(index, out),
            "messageStop" => self.reason = Some(stop_reason(&frame.stop_reason.unwrap_or_default())),
            "metadata" => {
                if let Some(usage) = frame.usage {
                    self.usage(usage, out);
                }
                self.finish(out);
            }
            "messageStart" => {}
            name => self.blocks.warn_unread(event.data, name, out),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Events) -> bool {
        if let Some(reason) = self.reason.take() {
            for index in self.open.iter().map(|open| open.index).collect::<Vec<_>>() {
                self.stop(index, out);
            }
            self.blocks.end(reason, out);
        }
        self.blocks.is_ended()
    }

    fn is_settled(&self) -> bool {
        self.reason.is_some()
    }
}
