//! Google Gemini in its own words: contents and parts, thought signatures.
//!
//! Invariant: a thought signature goes back on the part it came with; thoughts themselves stay with us.

use domain::Part;
use domain::model::{BlockKind, ModelEvent, Prompt, StopReason, Tokens};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::history::{self, Outcome, Piece, Turn};
use super::names::{self, Names};
use super::{
    Blocks, Decode, Events, NO_IMAGES, Origin, Target, Thinking, generate_call_id, input_schema, push_usage,
    unread,
};
use crate::fault::{Fault, FaultKind};
use rpc::sse::SseEvent;

const FORMAT: &str = "gemini";
/// Stands in for the signature of a call that another model made; newer models refuse a call without any.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub fn encode(prompt: &Prompt, target: &Target) -> Value {
    let mut body = Map::new();
    if !prompt.system.is_empty() {
        let parts: Vec<_> = prompt.system.iter().map(|text| json!({ "text": text.as_ref() })).collect();
        body.insert("systemInstruction".into(), json!({ "parts": parts }));
    }
    let functions: Vec<Value> = prompt.tools.iter().map(tool).collect();
    let functions = (!functions.is_empty()).then(|| json!({ "functionDeclarations": functions }));
    let search = prompt.web_search.then(|| json!({ "google_search": {} }));
    let tools: Vec<Value> = functions.into_iter().chain(search).collect();
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    body.insert("contents".into(), contents(prompt, target).into());
    let mut config = Map::new();
    if let Some(most) = prompt.max_output {
        config.insert("maxOutputTokens".into(), most.into());
    }
    if let Some(temperature) = prompt.temperature.filter(|_| target.temperature) {
        config.insert("temperature".into(), temperature.into());
    }
    if let Some(schema) = &prompt.output_schema {
        config.insert("responseMimeType".into(), "application/json".into());
        config.insert("responseJsonSchema".into(), schema.clone());
    }
    if let Some(thinking) = thinking(prompt, target) {
        config.insert("thinkingConfig".into(), thinking);
    }
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    Value::Object(body)
}

fn thinking(prompt: &Prompt, target: &Target) -> Option<Value> {
    let variant = prompt.variant.as_deref();
    match (target.thinking, variant) {
        (Thinking::None, _) => None,
        (_, None) => Some(json!({ "includeThoughts": true })),
        (Thinking::Budget, Some("none" | "off")) => Some(json!({ "thinkingBudget": 0 })),
        (Thinking::Budget, Some(variant)) => {
            let budget = match variant {
                "low" => 2_048,
                "medium" => 8_192,
                "high" => 24_576,
                other => other.parse().unwrap_or(-1),
            };
            Some(json!({ "includeThoughts": true, "thinkingBudget": budget }))
        }
        (_, Some(level)) => Some(json!({ "includeThoughts": true, "thinkingLevel": level })),
    }
}

fn tool(spec: &domain::ToolSpec) -> Value {
    json!({
        "name": names::tool_name(&spec.offered_name()),
        "description": spec.description,
        "parametersJsonSchema": input_schema(&spec.input_schema),
    })
}

fn contents(prompt: &Prompt, target: &Target) -> Vec<Value> {
    let mut contents = Vec::with_capacity(prompt.entries.len());
    for turn in history::turns(&prompt.entries) {
        let (role, parts) = match turn {
            Turn::User(parts) => ("user", user_parts(parts, target)),
            Turn::Answer(pieces) => ("model", answer(&pieces, target)),
            Turn::Results(outcomes) => ("user", results(&outcomes, target)),
        };
        if !parts.is_empty() {
            contents.push(json!({ "role": role, "parts": parts }));
        }
    }
    contents
}

fn user_parts(parts: &[Part], target: &Target) -> Vec<Value> {
    parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => json!({ "text": text }),
            Part::Image { mime, data } => image(mime, data, target),
        })
        .collect()
}

fn image(mime: &str, data: &str, target: &Target) -> Value {
    if target.info.images {
        json!({ "inlineData": { "mimeType": mime, "data": data } })
    } else {
        json!({ "text": NO_IMAGES })
    }
}

fn answer(pieces: &[Piece], target: &Target) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut signed = target.thinking != Thinking::Effort;
    for piece in pieces {
        match piece {
            Piece::Reasoning { .. } => {}
            Piece::Text { text, provider } => {
                let signature = signature(*provider, target);
                if !text.is_empty() || signature.is_some() {
                    parts.push(with_signature(json!({ "text": text }), signature));
                }
            }
            Piece::Call { name, input, provider, .. } => {
                let call = json!({ "functionCall": { "name": names::tool_name(name), "args": history::object(input) } });
                let own = signature(*provider, target);
                // The first call of an answer is signed, the ones made along with it are not.
                let signature = own.or_else(|| (!signed).then(|| NO_SIGNATURE.into()));
                signed = true;
                parts.push(with_signature(call, signature));
            }
        }
    }
    parts
}

fn signature(provider: Option<&domain::item::ProviderBlock>, target: &Target) -> Option<Value> {
    history::own_data(provider, FORMAT, target.id)?.get("thoughtSignature").cloned()
}

fn with_signature(mut part: Value, signature: Option<Value>) -> Value {
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature;
    }
    part
}

fn results(outcomes: &[Outcome], target: &Target) -> Vec<Value> {
    let mut parts: Vec<Value> = outcomes
        .iter()
        .map(|outcome| {
            let key = if outcome.error { "error" } else { "output" };
            let response = json!({ key: outcome.text() });
            json!({ "functionResponse": { "name": names::tool_name(outcome.name), "response": response } })
        })
        .collect();
    parts.extend(outcomes.iter().flat_map(Outcome::images).map(|(mime, data)| image(mime, data, target)));
    parts
}

pub struct Decoder {
    origin: Origin,
    names: Names,
    blocks: Blocks,
    open: Option<OpenPart>,
    tokens: Tokens,
    reason: Option<StopReason>,
}

struct OpenPart {
    block: u32,
    thought: bool,
    signature: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(default, alias = "usage_metadata")]
    usage_metadata: Option<Usage>,
    #[serde(default)]
    prompt_feedback: Option<Feedback>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(alias = "finish_reason")]
    finish_reason: Option<String>,
    finish_message: Option<String>,
    #[serde(default)]
    grounding_metadata: Option<Grounding>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    text: Option<String>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(alias = "thought_signature")]
    thought_signature: Option<String>,
    #[serde(borrow, default, alias = "function_call")]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Grounding {
    grounding_chunks: Option<Vec<GroundingChunk>>,
}

#[derive(Deserialize)]
struct GroundingChunk {
    web: Option<Web>,
}

#[derive(Deserialize)]
struct Web {
    uri: Option<String>,
    title: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl Decoder {
    pub fn new(origin: Origin, names: Names) -> Self {
        Self { origin, names, blocks: Blocks::default(), open: None, tokens: Tokens::default(), reason: None }
    }

    fn part(&mut self, raw: &RawValue, out: &mut Events) {
        let Ok(part) = serde_json::from_str::<WirePart>(raw.get()) else {
            return self.warn_part(raw, out);
        };
        if let Some(call) = part.function_call {
            return self.call(call, part.thought_signature, out);
        }
        if part.text.is_none() && part.thought_signature.is_none() {
            return self.warn_part(raw, out);
        }
        let thought = part.thought.unwrap_or(false);
        let text = part.text.unwrap_or_default();
        if text.is_empty() && part.thought_signature.is_none() {
            return;
        }
        if self.open.as_ref().is_some_and(|open| open.thought != thought) {
            self.close(out);
        }
        let open = self.open.get_or_insert_with(|| {
            let kind = if thought { BlockKind::Reasoning } else { BlockKind::Text };
            OpenPart { block: self.blocks.start(kind, out), thought, signature: None }
        });
        if part.thought_signature.is_some() {
            open.signature = part.thought_signature;
        }
        if !text.is_empty() {
            out.push_back(ModelEvent::BlockDelta { block: open.block, text });
        }
    }

    /// Code, files and other parts that are not shown.
    fn warn_part(&mut self, raw: &RawValue, out: &mut Events) {
        let Ok(Value::Object(part)) = serde_json::from_str(raw.get()) else { return };
        if let Some((kind, _)) = part.iter().find(|(key, value)| unread::member_holds_text(key, value)) {
            self.blocks.warn(kind, out);
        }
    }

    fn call(&mut self, call: FunctionCall, signature: Option<String>, out: &mut Events) {
        self.close(out);
        let call_id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(generate_call_id);
        let name = self.names.original(call.name.unwrap_or_default());
        let block = self.blocks.start(BlockKind::ToolCall { call_id, name }, out);
        let text = call.args.map(RawValue::get).filter(|text| *text != "null").unwrap_or("{}").to_owned();
        out.push_back(ModelEvent::BlockDelta { block, text });
        let provider = signature.and_then(|signature| self.signed(signature));
        self.blocks.stop(block, provider, out);
    }

    fn signed(&self, signature: String) -> Option<domain::item::ProviderBlock> {
        self.origin.block(json!({ "thoughtSignature": signature }))
    }

    fn close(&mut self, out: &mut Events) {
        if let Some(open) = self.open.take() {
            let provider =
                open.signature.filter(|_| !open.thought).and_then(|signature| self.signed(signature));
            self.blocks.stop(open.block, provider, out);
        }
    }

    fn usage(&mut self, usage: Usage, out: &mut Events) {
        let cached = usage.cached_content_token_count.unwrap_or(0);
        let prompt = usage.prompt_token_count.unwrap_or(0) + usage.tool_use_prompt_token_count.unwrap_or(0);
        let thoughts = usage.thoughts_token_count.unwrap_or(0);
        let new = Tokens {
            input: prompt.saturating_sub(cached),
            cache_read: cached,
            cache_write: 0,
            output: usage.candidates_token_count.unwrap_or(0) + thoughts,
            reasoning: thoughts,
        };
        push_usage(&mut self.tokens, new, out);
    }

    fn finish_reason(
        &mut self,
        reason: &str,
        message: Option<String>,
        out: &mut Events,
    ) -> Result<(), Fault> {
        self.close(out);
        self.reason = Some(match reason {
            "STOP" | "FINISH_REASON_UNSPECIFIED" => StopReason::Done,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "OTHER" => {
                let message = message.unwrap_or_else(|| format!("The model stopped with {reason}"));
                return Err(Fault::new(FaultKind::Server, message));
            }
            other => StopReason::Refused { reason: message.unwrap_or_else(|| refused(other)) },
        });
        Ok(())
    }
}

fn refused(code: &str) -> String {
    format!("The provider's filter stopped the answer ({}).", code.to_ascii_lowercase().replace('_', " "))
}

impl Decode for Decoder {
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        let data = event.data.trim();
        if matches!(data, "" | "[DONE]") {
            return Ok(());
        }
        let unreadable = |error: serde_json::Error| {
            tracing::debug!(%error, "an event of the stream could not be read");
            Fault::malformed("an event that is not of the Gemini API", data)
        };
        // Without server-sent events the API answers with a list of chunks.
        if data.starts_with('[') {
            let chunks: Vec<&RawValue> = serde_json::from_str(data).map_err(unreadable)?;
            return chunks.into_iter().try_for_each(|chunk| {
                self.chunk(serde_json::from_str(chunk.get()).map_err(unreadable)?, chunk.get(), out)
            });
        }
        self.chunk(serde_json::from_str(data).map_err(unreadable)?, data, out)
    }

    fn finish(&mut self, out: &mut Events) -> bool {
        if let Some(reason) = self.reason.take() {
            self.close(out);
            self.blocks.end(reason, out);
        }
        self.blocks.is_ended()
    }

    fn is_settled(&self) -> bool {
        self.reason.is_some()
    }
}

impl Decoder {
    fn chunk(&mut self, chunk: Chunk, data: &str, out: &mut Events) -> Result<(), Fault> {
        if let Some(error) = chunk.error {
            return Err(Fault::from_stream(error.get()));
        }
        if chunk.candidates.is_none() && chunk.usage_metadata.is_none() && chunk.prompt_feedback.is_none() {
            self.blocks.unknown_event(SseEvent { name: "", data }, out)?;
        }
        if let Some(usage) = chunk.usage_metadata {
            self.usage(usage, out);
        }
        if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            self.reason = Some(StopReason::Refused { reason: refused(&reason) });
        }
        for candidate in chunk.candidates.into_iter().flatten() {
            for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
                self.part(part, out);
            }
            let sources = candidate.grounding_metadata.and_then(|grounding| grounding.grounding_chunks);
            for web in sources.into_iter().flatten().filter_map(|chunk| chunk.web) {
                if let Some(url) = web.uri {
                    self.blocks.citation(web.title.unwrap_or_else(|| url.clone()), url, out);
                }
            }
            if let Some(reason) = candidate.finish_reason {
                self.finish_reason(&reason, candidate.finish_message, out)?;
            }
        }
        Ok(())
    }
}
