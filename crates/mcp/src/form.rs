//! `elicitation/create`: a server asks the user something while one of its calls runs.
//!
//! Invariant: it is answered exactly once, and no form outlives the call it belongs to. Without a running call
//! there is no user to ask, and the request is declined.

use std::sync::Arc;

use domain::{Answer, AskKind};
use rpc::{Fault, Params, Responder};
use serde_json::{Value, json};

use crate::calls::{ActiveCall, Calls};
use crate::text::sanitize;
use crate::wire::Elicitation;

const MAX_MESSAGE_LENGTH: usize = 4 << 10;
const MAX_SCHEMA_BYTES: usize = 32 << 10;

/// Answers at once or from a task of its own. Called within the runtime.
pub(crate) fn handle_elicitation(server: &str, calls: &Calls, params: Params<'_>, responder: Responder) {
    let form = match parse_form(server, params) {
        Ok(form) => form,
        Err(fault) => return responder.fail(fault),
    };
    match calls.latest().filter(|call| call.open_form()) {
        Some(call) => drop(tokio::spawn(show_form(call, form, responder))),
        None => responder.succeed(&json!({"action": "decline"})),
    }
}

fn parse_form(server: &str, params: Params<'_>) -> Result<AskKind, Fault> {
    let elicitation: Elicitation = params.decode()?;
    if elicitation.mode.is_some_and(|mode| mode != "form") {
        return Err(Fault::invalid_params("only forms are supported"));
    }
    let schema =
        elicitation.requested_schema.ok_or_else(|| Fault::invalid_params("requestedSchema is missing"))?;
    if schema.get().len() > MAX_SCHEMA_BYTES {
        return Err(Fault::invalid_params("requestedSchema is too large"));
    }
    let schema: Value = serde_json::from_str(schema.get()).map_err(Fault::invalid_params)?;
    let message = sanitize(&elicitation.message, MAX_MESSAGE_LENGTH);
    Ok(AskKind::Form { text: format!("The MCP server {server} asks: {message}"), schema })
}

async fn show_form(call: Arc<ActiveCall>, form: AskKind, responder: Responder) {
    let answer = tokio::select! {
        answer = call.context.ask(form) => answer,
        () = call.finished.cancelled() => Answer::Cancelled,
        () = responder.cancelled() => Answer::Cancelled,
    };
    call.close_form();
    responder.succeed(&match answer {
        Answer::Form { data: data @ Value::Object(_) } => json!({"action": "accept", "content": data}),
        Answer::Cancelled => json!({"action": "cancel"}),
        Answer::Allow { .. } | Answer::Deny { .. } | Answer::Text { .. } | Answer::Form { .. } => {
            json!({"action": "decline"})
        }
    });
}
