//! Requests of Chat Completions.
//!
//! Invariant: one system message first; a call's results follow its answer, images of results after all of them.

use domain::Part;
use domain::model::Prompt;
use serde_json::{Map, Value, json};

use super::FORMAT;
use crate::format::history::{self, Outcome, Piece, Turn};
use crate::format::names;
use crate::format::{EffortField, NO_IMAGES, Target, Thinking, function, is_strict, schema_instruction};

pub fn encode(prompt: &Prompt, target: &Target) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), target.model.into());
    body.insert("stream".into(), true.into());
    body.insert("stream_options".into(), json!({ "include_usage": true }));
    let tools: Vec<Value> = prompt.tools.iter().map(function).collect();
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
        if prompt.is_sequential {
            body.insert("parallel_tool_calls".into(), false.into());
        }
    }
    body.insert("messages".into(), messages(prompt, target).into());
    if let Some(most) = prompt.max_output {
        body.insert(target.dialect.max_tokens.into(), most.into());
    }
    if let Some(temperature) = prompt.temperature.filter(|_| target.temperature) {
        body.insert("temperature".into(), temperature.into());
    }
    if target.thinking != Thinking::None
        && let Some(variant) = &prompt.variant
    {
        effort(target.dialect.effort, variant, &mut body);
    }
    if let Some(schema) = &prompt.output_schema {
        body.insert("response_format".into(), response_format(schema, target));
    }
    if let Some(session) = prompt.session.as_ref().filter(|_| target.dialect.cache_key) {
        body.insert("prompt_cache_key".into(), session.to_string().into());
    }
    Value::Object(body)
}

fn effort(field: EffortField, variant: &str, body: &mut Map<String, Value>) {
    let on = !matches!(variant, "none" | "off");
    match field {
        EffortField::ReasoningEffort => {
            body.insert("reasoning_effort".into(), variant.into());
        }
        EffortField::Reasoning if on => {
            body.insert("reasoning".into(), json!({ "effort": variant }));
        }
        EffortField::Reasoning => {
            body.insert("reasoning".into(), json!({ "enabled": false }));
        }
        EffortField::Thinking => {
            body.insert("thinking".into(), json!({ "type": if on { "enabled" } else { "disabled" } }));
            if matches!(variant, "low" | "medium" | "high" | "max") {
                body.insert("reasoning_effort".into(), variant.into());
            }
        }
        EffortField::EnableThinking => {
            body.insert("enable_thinking".into(), on.into());
        }
    }
}

fn response_format(schema: &Value, target: &Target) -> Value {
    if target.dialect.json_schema {
        json!({
            "type": "json_schema",
            "json_schema": { "name": "answer", "schema": schema, "strict": is_strict(schema) },
        })
    } else {
        json!({ "type": "json_object" })
    }
}

fn messages(prompt: &Prompt, target: &Target) -> Vec<Value> {
    let mut messages = Vec::with_capacity(prompt.entries.len() + 1);
    let mut system = prompt.system.join("\n\n");
    if let Some(schema) = prompt.output_schema.as_ref().filter(|_| !target.dialect.json_schema) {
        system = format!("{system}\n\n{}", schema_instruction(schema));
    }
    if !system.is_empty() {
        messages.push(json!({ "role": "system", "content": marked(&system, target) }));
    }
    for turn in history::turns(&prompt.entries) {
        match turn {
            Turn::User(parts) => messages.push(json!({ "role": "user", "content": content(parts, target) })),
            Turn::Answer(pieces) => messages.extend(answer(&pieces, target)),
            Turn::Results(outcomes) => results(&outcomes, target, &mut messages),
        }
    }
    mark_last_user(&mut messages, target);
    messages
}

/// Some servers want a plain string unless there is an image or a mark.
fn content(parts: &[Part], target: &Target) -> Value {
    if history::images_of(parts).next().is_none() && !target.dialect.cache_marks {
        return history::text_of(parts).into();
    }
    parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => json!({ "type": "text", "text": text }),
            Part::Image { mime, data } => image(mime, data, target),
        })
        .collect()
}

fn image(mime: &str, data: &str, target: &Target) -> Value {
    if target.info.images {
        json!({ "type": "image_url", "image_url": { "url": format!("data:{mime};base64,{data}") } })
    } else {
        json!({ "type": "text", "text": NO_IMAGES })
    }
}

fn answer(pieces: &[Piece], target: &Target) -> Option<Value> {
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    for piece in pieces {
        match piece {
            Piece::Reasoning { text, provider } => {
                if let Some(data) = history::own_data(*provider, FORMAT, target.id) {
                    reasoning(text, data, &mut message);
                }
            }
            Piece::Text { text: more, .. } => text.push_str(more),
            Piece::Call { id, name, input, .. } => calls.push(json!({
                "id": names::call_id(id, target.dialect.short_ids),
                "type": "function",
                "function": {
                    "name": names::tool_name(name),
                    "arguments": history::object(input).to_string(),
                },
            })),
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let content = if text.is_empty() { Value::Null } else { text.into() };
    message.insert("content".into(), content);
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    Some(Value::Object(message))
}

/// Gives reasoning back in the field it came from.
fn reasoning(text: &str, data: &Value, message: &mut Map<String, Value>) {
    if let Some(Value::Array(details)) = data.get("reasoning_details") {
        let known = message.entry("reasoning_details").or_insert_with(|| json!([]));
        if let Some(known) = known.as_array_mut() {
            known.extend(details.iter().cloned());
        }
        return;
    }
    let field = data.get("field").and_then(Value::as_str).unwrap_or("reasoning_content");
    let known = message.entry(field).or_insert_with(|| "".into());
    *known = format!("{}{text}", known.as_str().unwrap_or_default()).into();
}

fn results(outcomes: &[Outcome], target: &Target, messages: &mut Vec<Value>) {
    for outcome in outcomes {
        messages.push(json!({
            "role": "tool",
            "tool_call_id": names::call_id(outcome.id, target.dialect.short_ids),
            "content": outcome.text(),
        }));
    }
    // Tool messages hold text only, so images follow as if the user had sent them.
    for outcome in outcomes.iter().filter(|outcome| outcome.images().next().is_some()) {
        let mut parts = vec![json!({ "type": "text", "text": format!("Images from {}:", outcome.name) })];
        parts.extend(outcome.images().map(|(mime, data)| image(mime, data, target)));
        messages.push(json!({ "role": "user", "content": parts }));
    }
}

fn marked(text: &str, target: &Target) -> Value {
    if !target.dialect.cache_marks {
        return text.into();
    }
    json!([{ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } }])
}

/// Marks the last user message, and the one before it, for servers that pass such marks on to Claude.
fn mark_last_user(messages: &mut [Value], target: &Target) {
    if !target.dialect.cache_marks {
        return;
    }
    let users = messages.iter_mut().rev().filter(|message| message["role"] == "user");
    for message in users.take(2) {
        if let Some(last) = message["content"].as_array_mut().and_then(|parts| parts.last_mut()) {
            last["cache_control"] = json!({ "type": "ephemeral" });
        }
    }
}
