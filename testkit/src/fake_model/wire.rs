//! Writes an answer in the words of a format: events as bytes of the stream, without HTTP.

mod anthropic;
pub(super) mod bedrock;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;

use serde_json::{Value, json};

use super::request::{Format, Request};
use super::script::Usage;

/// One answer being written. Each call appends whole events to `out`.
pub(super) trait Wire: Send {
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn begin(&mut self, usage: Usage, out: &mut Vec<u8>);
    fn text(&mut self, text: &str, out: &mut Vec<u8>);
    fn reasoning(&mut self, text: &str, out: &mut Vec<u8>);
    fn call_begin(&mut self, id: &str, name: &str, out: &mut Vec<u8>);
    fn call_arguments(&mut self, text: &str, out: &mut Vec<u8>);
    fn call_end(&mut self, out: &mut Vec<u8>);
    fn error(&mut self, kind: &str, message: &str, out: &mut Vec<u8>);
    /// `reason` is `stop`, `max_tokens` or `refusal`; calls that were made are counted by the wire itself.
    fn end(&mut self, reason: &str, usage: Usage, out: &mut Vec<u8>);
}

pub(super) fn wire(request: &Request) -> Box<dyn Wire> {
    match request.format {
        Format::Responses => Box::new(openai_responses::Responses::default()),
        Format::Chat => Box::new(openai_chat::Chat::default()),
        Format::Anthropic => Box::new(anthropic::Anthropic::of(request.body["model"].clone())),
        Format::Gemini => Box::new(gemini::Gemini::default()),
        Format::Ollama => Box::new(ollama::Ollama::default()),
        Format::Bedrock => Box::new(bedrock::Bedrock::default()),
    }
}

/// The body of a refusal, as most servers write it.
pub(super) fn error_body(status: u16) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    json!({ "type": "error", "error": { "type": kind, "message": format!("The fake model answers with {status}") } })
}

fn event(name: Option<&str>, data: &Value, out: &mut Vec<u8>) {
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}
