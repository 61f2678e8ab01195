//! Requests of the Messages API, with cache marks.
//!
//! Invariant: thinking blocks go back exactly as they came, in their places; at most four cache marks.

use domain::Part;
use domain::model::Prompt;
use serde_json::{Map, Value, json};

use super::FORMAT;
use crate::format::deferred::Loading;
use crate::format::history::{self, Outcome, Piece, Turn};
use crate::format::names;
use crate::format::{NO_IMAGES, Target, Thinking, input_schema, is_strict, schema_instruction};

const DEFAULT_OUTPUT: u64 = 32_000;
const UNKNOWN_OUTPUT: u64 = 8_192;
/// Of the provider's own searches for one prompt.
const MOST_SEARCHES: u64 = 3;

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
    let tools = all_tools(prompt);
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
        if prompt.is_sequential {
            let choice = json!({ "type": "auto", "disable_parallel_tool_use": true });
            body.insert("tool_choice".into(), choice);
        }
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

/// The offered tools, with a cache mark at their end, and those that are not part of the cached prefix.
fn all_tools(prompt: &Prompt) -> Vec<Value> {
    let mut tools = tools(prompt);
    mark(tools.last_mut());
    if prompt.web_search {
        tools.push(json!({ "type": "web_search_20250305", "name": "web_search", "max_uses": MOST_SEARCHES }));
    }
    tools.extend(deferred_tools(prompt));
    tools
}

fn tool(name: &str, description: &str, schema: &Value) -> Value {
    json!({
        "name": names::tool_name(name),
        "description": description,
        "input_schema": input_schema(schema),
    })
}

/// The found tools; the provider shows each where a result refers to it.
fn deferred_tools(prompt: &Prompt) -> impl Iterator<Item = Value> {
    prompt.deferred.iter().flat_map(|deferred| &deferred.found).map(|spec| {
        let mut tool = tool(&spec.offered_name(), &spec.description, &spec.input_schema);
        tool["defer_loading"] = true.into();
        tool
    })
}

/// The offered tools; calls of the history must have theirs, though they may no longer be offered.
fn tools(prompt: &Prompt) -> Vec<Value> {
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
    let mut loading = Loading::of(prompt);
    for turn in history::turns(&prompt.entries) {
        let (role, content) = match turn {
            Turn::User(parts) => ("user", content(parts, target)),
            Turn::Answer(pieces) => ("assistant", answer(&pieces, target)),
            Turn::Results(outcomes) => ("user", results(&outcomes, &mut loading, target)),
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
            Part::Image { .. } => Some(text_block(NO_IMAGES)),
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

/// The results of an answer. Texts of searches follow them, because a result refers to tools or holds text, not both.
fn results(outcomes: &[Outcome], loading: &mut Loading, target: &Target) -> Vec<Value> {
    let (mut blocks, mut texts) = (Vec::with_capacity(outcomes.len()), Vec::new());
    for outcome in outcomes {
        let mut block = tool_result(outcome, target);
        if let Some((tools, rest)) = loading.load(outcome) {
            let reference = |tool: &&domain::ToolSpec| json!({ "type": "tool_reference", "tool_name": names::tool_name(&tool.offered_name()) });
            let rest = (!rest.trim().is_empty()).then(|| text_block(&rest));
            if tools.is_empty() {
                block["content"] = rest.into_iter().collect();
            } else {
                block["content"] = tools.iter().map(reference).collect();
                texts.extend(rest);
            }
        }
        blocks.push(block);
    }
    blocks.extend(texts);
    blocks
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
