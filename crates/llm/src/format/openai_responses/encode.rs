//! Requests of the Responses API, without storage at the provider: reasoning items are sent back, encrypted.
//!
//! Invariant: a reasoning item goes back as it came, before the item it led to.

use domain::Part;
use domain::model::Prompt;
use domain::tool::TextFormat;
use serde_json::{Map, Value, json};

use super::FORMAT;
use super::text_call;
use crate::format::deferred::Loading;
use crate::format::history::{self, Outcome, Piece, Turn};
use crate::format::names;
use crate::format::{NO_IMAGES, Target, Thinking, input_schema, is_strict};

pub fn encode(prompt: &Prompt, target: &Target) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), target.model.into());
    body.insert("stream".into(), true.into());
    body.insert("store".into(), false.into());
    if !prompt.system.is_empty() {
        body.insert("instructions".into(), prompt.system.join("\n\n").into());
    }
    let search = prompt.web_search.then(|| json!({ "type": "web_search" }));
    let loading = Loading::of(prompt);
    let tools: Vec<Value> = prompt
        .tools
        .iter()
        .map(|spec| match text_format(prompt, target, &spec.offered_name()) {
            Some(format) => text_tool(spec, &format),
            None if loading.is_search(&spec.offered_name()) => search_tool(spec),
            None => tool(spec),
        })
        .chain(search)
        .collect();
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
        body.insert("parallel_tool_calls".into(), (!prompt.is_sequential).into());
    }
    body.insert("input".into(), input(prompt, target).into());
    if target.thinking == Thinking::Effort {
        let mut reasoning = Map::new();
        if let Some(effort) = &prompt.variant {
            reasoning.insert("effort".into(), effort.as_str().into());
        }
        reasoning.insert("summary".into(), "auto".into());
        body.insert("reasoning".into(), reasoning.into());
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    if let Some(schema) = &prompt.output_schema {
        let format =
            json!({ "type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema) });
        body.insert("text".into(), json!({ "format": format }));
    }
    if let Some(most) = prompt.max_output {
        body.insert("max_output_tokens".into(), most.max(16).into());
    }
    if let Some(temperature) = prompt.temperature.filter(|_| target.temperature) {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(session) = prompt.session.as_ref().filter(|_| target.dialect.cache_key) {
        body.insert("prompt_cache_key".into(), session.to_string().into());
    }
    Value::Object(body)
}

fn tool(spec: &domain::ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": names::tool_name(&spec.offered_name()),
        "description": spec.description,
        "parameters": input_schema(&spec.input_schema),
        "strict": false,
    })
}

/// The form of a tool's text, where this server takes tools whose calls are plain text.
fn text_format(prompt: &Prompt, target: &Target, name: &str) -> Option<TextFormat> {
    let known = prompt.text_tools.iter().find(|(tool, _)| tool == name && target.dialect.text_tools);
    known.map(|(_, format)| *format)
}

fn text_tool(spec: &domain::ToolSpec, format: &TextFormat) -> Value {
    json!({
        "type": "custom",
        "name": names::tool_name(&spec.offered_name()),
        "description": format.description,
        "format": { "type": "grammar", "syntax": "lark", "definition": format.grammar },
    })
}

/// The provider's own call for searches, which we answer.
fn search_tool(spec: &domain::ToolSpec) -> Value {
    json!({
        "type": "tool_search",
        "execution": "client",
        "description": spec.description,
        "parameters": input_schema(&spec.input_schema),
    })
}

fn input(prompt: &Prompt, target: &Target) -> Vec<Value> {
    let mut items = Vec::with_capacity(prompt.entries.len());
    let mut loading = Loading::of(prompt);
    for turn in history::turns(&prompt.entries) {
        match turn {
            Turn::User(parts) => {
                items.push(json!({ "type": "message", "role": "user", "content": content(parts, target) }));
            }
            Turn::Answer(pieces) => answer(&pieces, prompt, &loading, target, &mut items),
            Turn::Results(outcomes) => {
                items.extend(outcomes.iter().map(|outcome| result(outcome, prompt, &mut loading, target)));
            }
        }
    }
    items
}

fn content(parts: &[Part], target: &Target) -> Vec<Value> {
    parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => json!({ "type": "input_text", "text": text }),
            Part::Image { mime, data } if target.info.images => {
                json!({ "type": "input_image", "image_url": format!("data:{mime};base64,{data}") })
            }
            Part::Image { .. } => json!({ "type": "input_text", "text": NO_IMAGES }),
        })
        .collect()
}

fn answer(pieces: &[Piece], prompt: &Prompt, loading: &Loading, target: &Target, items: &mut Vec<Value>) {
    // A reasoning item must be followed by what it led to; a broken answer may end before that.
    let last =
        pieces.iter().rposition(|piece| !matches!(piece, Piece::Reasoning { .. })).map_or(0, |at| at + 1);
    for piece in &pieces[..last] {
        match piece {
            Piece::Reasoning { provider, .. } => {
                items.extend(history::own_data(*provider, FORMAT, target.id).cloned());
            }
            Piece::Text { text, provider } => {
                let mut item = json!({
                    "type": "message",
                    "role": "assistant",
                    "content": [{ "type": "output_text", "text": text }],
                });
                if let Some(phase) =
                    history::own_data(*provider, FORMAT, target.id).and_then(|data| data.get("phase"))
                {
                    item["phase"] = phase.clone();
                }
                items.push(item);
            }
            Piece::Call { id, name, input, .. } if loading.is_search(name) => items.push(json!({
                "type": "tool_search_call",
                "call_id": names::call_id(id, false),
                "execution": "client",
                "status": "completed",
                "arguments": history::object(input),
            })),
            Piece::Call { id, name, input, .. } => {
                let (id, wire) = (names::call_id(id, false), names::tool_name(name));
                items.push(match text_format(prompt, target, name) {
                    Some(format) => json!({
                        "type": "custom_tool_call",
                        "call_id": id,
                        "name": wire,
                        "input": text_call::text_of(format.argument, input),
                    }),
                    None => json!({
                        "type": "function_call",
                        "call_id": id,
                        "name": wire,
                        "arguments": history::object(input).to_string(),
                    }),
                });
            }
        }
    }
}

fn result(outcome: &Outcome, prompt: &Prompt, loading: &mut Loading, target: &Target) -> Value {
    if loading.is_search(outcome.name) {
        let (tools, _) = loading.load(outcome).unwrap_or_default();
        let tools: Vec<Value> = tools
            .into_iter()
            .map(|spec| {
                let mut tool = tool(spec);
                tool["defer_loading"] = true.into();
                tool
            })
            .collect();
        return json!({
            "type": "tool_search_output",
            "call_id": names::call_id(outcome.id, false),
            "execution": "client",
            "status": "completed",
            "tools": tools,
        });
    }
    let output = if outcome.images().next().is_some() {
        Value::Array(content(&outcome.parts, target))
    } else {
        Value::String(outcome.text().into_owned())
    };
    let kind = match text_format(prompt, target, outcome.name) {
        Some(_) => "custom_tool_call_output",
        None => "function_call_output",
    };
    json!({ "type": kind, "call_id": names::call_id(outcome.id, false), "output": output })
}
