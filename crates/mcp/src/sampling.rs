//! `sampling/createMessage`: a server that the user allowed to asks for an answer of the user's model.
//!
//! Invariants: without the user's setting it is refused with that reason; each request is shown whole to the user of the
//! running call and needs a yes; the engine's model answers it, within the budgets of the chat. A request without a running
//! call is refused: nobody could be asked.

use std::sync::Arc;

use domain::ask::Choice;
use domain::tool::{Sample, Sampled};
use domain::{Answer, AskKind, Part};
use rpc::{Fault, Params, Responder};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::calls::{ActiveCall, Calls};
use crate::content;
use crate::text::{sanitize, strip_controls, truncate};

const MAX_MESSAGES: usize = 50;
/// Of all texts of one request: what a person can be shown.
const MAX_TEXT_BYTES: usize = 32 << 10;
/// Of the answer, in the output of the call.
const MAX_SHOWN_ANSWER: usize = 2 << 10;
const ALLOW: &str = "Allow this once";
/// The code that the specification gives for a user's no.
const REJECTED: i64 = -1;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateMessage {
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    system_prompt: Option<String>,
    #[serde(default)]
    max_tokens: Option<u64>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Box<RawValue>,
}

/// Why a server may not use the model.
pub(crate) fn refusal(server: &str) -> String {
    format!(
        "The user did not allow this server to use their model. The user can: `\"sampling\": true` in the entry of {server}, \
         in the user's own configuration."
    )
}

/// Answers at once or from a task of its own. Called within the runtime.
pub(crate) fn handle_sampling(
    server: &str,
    is_allowed: bool,
    calls: &Calls,
    params: Params<'_>,
    responder: Responder,
) {
    if !is_allowed {
        return responder.fail(Fault::new(Fault::METHOD_NOT_FOUND, refusal(server)));
    }
    let sample = match params.decode().and_then(|request| parse(request).map_err(Fault::invalid_params)) {
        Ok(sample) => sample,
        Err(fault) => return responder.fail(fault),
    };
    let Some(call) = calls.latest().filter(|call| call.open_form()) else {
        return responder.fail(Fault::new(REJECTED, "Nobody can be asked now: no call of this server runs."));
    };
    tokio::spawn(answer_request(server.to_owned(), call, sample, responder));
}

async fn answer_request(server: String, call: Arc<ActiveCall>, sample: Sample, responder: Responder) {
    let answer = tokio::select! {
        answer = ask_and_sample(&server, &call, sample) => answer,
        () = responder.cancelled() => Err("The server withdrew the request.".to_owned()),
    };
    call.close_form();
    match answer {
        Ok(answer) => responder.succeed(&answer),
        Err(reason) => responder.fail(Fault::new(REJECTED, reason)),
    }
}

/// The answer to a request of the stateless era, or a sentence that says why there is none.
pub(crate) async fn sample_input(server: &str, params: &Value, call: &ActiveCall) -> Result<Value, String> {
    let request = serde_json::from_value(params.clone())
        .map_err(|error| format!("Its request to the model cannot be read: {error}."))?;
    let sample =
        parse(request).map_err(|problem| format!("Its request to the model cannot be read: {problem}."))?;
    if !call.open_form() {
        return Err("It asks for several things at once.".to_owned());
    }
    let answer = ask_and_sample(server, call, sample).await;
    call.close_form();
    answer
}

fn parse(request: CreateMessage) -> Result<Sample, String> {
    if request.tools.is_some_and(|tools| !tools.is_empty()) {
        return Err("tools in sampling are not supported".to_owned());
    }
    if request.messages.is_empty() || request.messages.len() > MAX_MESSAGES {
        return Err(format!("there must be 1 to {MAX_MESSAGES} messages"));
    }
    let mut messages = Vec::new();
    for message in &request.messages {
        let is_user = match message.role.as_str() {
            "user" => true,
            "assistant" => false,
            _ => return Err("a role must be user or assistant".to_owned()),
        };
        messages.push((is_user, content::from_message(&message.content)));
    }
    let system = strip_controls(&request.system_prompt.unwrap_or_default());
    let length = |part: &Part| match part {
        Part::Text { text } => text.len(),
        Part::Image { .. } => 0,
    };
    let all = system.len() + messages.iter().flat_map(|(_, parts)| parts).map(length).sum::<usize>();
    if all > MAX_TEXT_BYTES {
        return Err(format!("the texts are longer than {} KiB", MAX_TEXT_BYTES >> 10));
    }
    Ok(Sample { system, messages, max_tokens: request.max_tokens.filter(|tokens| *tokens > 0) })
}

async fn ask_and_sample(server: &str, call: &ActiveCall, sample: Sample) -> Result<Value, String> {
    let question = question(server, &sample);
    let answered = tokio::select! {
        answer = call.context.ask(question) => answer,
        () = call.finished.cancelled() => Answer::Cancelled,
    };
    let is_allowed = matches!(&answered, Answer::Text { text } if text == ALLOW);
    if !is_allowed {
        return Err("The user did not allow this request to the model.".to_owned());
    }
    let sampled = tokio::select! {
        sampled = call.context.sample(sample) => sampled,
        () = call.finished.cancelled() => return Err("The call has ended.".to_owned()),
    };
    let Sampled { text, model, is_cut } =
        sampled.map_err(|failure| format!("The model did not answer: {}", failure.message))?;
    let shown = sanitize(&text, MAX_SHOWN_ANSWER);
    call.show_text(&format!("The model answered the server: {shown}"));
    let reason = if is_cut { "maxTokens" } else { "endTurn" };
    Ok(
        json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": model, "stopReason": reason}),
    )
}

/// The whole request, as a question.
fn question(server: &str, sample: &Sample) -> AskKind {
    let mut text =
        format!("The MCP server {server} asks for an answer of your model, which this chat pays for.\n");
    if !sample.system.is_empty() {
        text.push_str(&format!("Instructions: {}\n", sample.system));
    }
    for (is_user, parts) in &sample.messages {
        let said: Vec<&str> = parts
            .iter()
            .map(|part| match part {
                Part::Text { text } => text.as_str(),
                Part::Image { .. } => "[an image]",
            })
            .collect();
        let role = if *is_user { "User" } else { "Model" };
        text.push_str(&format!("{role}: {}\n", said.join(" ")));
    }
    let choice = |label: &str| Choice { label: label.to_owned(), description: None };
    let options = vec![choice(ALLOW), choice("Decline")];
    AskKind::Question {
        text: truncate(text.trim_end(), MAX_TEXT_BYTES + 1024).into_owned(),
        options,
        freeform: false,
        url: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(request: Value) -> Result<Sample, String> {
        parse(serde_json::from_value(request).unwrap())
    }

    #[test]
    fn a_request_is_shown_whole_and_bounded() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let sample = parsed(json!({
            "systemPrompt": "Be brief.\u{1b}[2J", "maxTokens": 9,
            "messages": [{"role": "user", "content": text("What is it?")},
                {"role": "assistant", "content": [text("A"), {"type": "image", "mimeType": "image/png", "data": "aGk="}]}],
        }))
        .unwrap();
        assert_eq!((sample.max_tokens, sample.messages.len()), (Some(9), 2));
        let AskKind::Question { text: shown, .. } = question("s", &sample) else { panic!("a question") };
        for part in ["server s asks", "Instructions: Be brief.", "User: What is it?", "Model: A [an image]"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(!shown.contains('\u{1b}'));
        for (request, problem) in [
            (json!({"messages": []}), "messages"),
            (json!({"messages": [{"role": "system", "content": text("x")}]}), "role"),
            (json!({"messages": [{"role": "user", "content": text(&"x".repeat(40_000))}]}), "KiB"),
            (json!({"messages": [{"role": "user", "content": text("x")}], "tools": [{}]}), "tools"),
        ] {
            let refused = parsed(request).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }
}
