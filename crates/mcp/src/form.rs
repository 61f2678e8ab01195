//! `elicitation/create`: a server asks the user something while one of its calls runs.
//!
//! Invariant: it is answered exactly once, and no form outlives the call it belongs to. Without a call under way
//! nobody is there to be asked, and the server is told that it was declined.

use std::sync::Arc;

use domain::{Answer, AskKind};
use rpc::{Fault, Params, Responder};
use serde_json::{Value, json};

use crate::calls::{Call, Calls};
use crate::text::tidy;
use crate::wire::Elicitation;

const LONGEST_MESSAGE: usize = 4 << 10;
const LARGEST_SCHEMA: usize = 32 << 10;

/// Answers at once or from a task of its own. Called within the runtime.
pub(crate) fn create(server: &str, calls: &Calls, params: Params<'_>, responder: Responder) {
    let form = match read(server, params) {
        Ok(form) => form,
        Err(fault) => return responder.fail(fault),
    };
    match calls.newest().filter(|call| call.open_form()) {
        Some(call) => drop(tokio::spawn(ask(call, form, responder))),
        None => responder.succeed(&json!({"action": "decline"})),
    }
}

fn read(server: &str, params: Params<'_>) -> Result<AskKind, Fault> {
    let elicitation: Elicitation = params.decode()?;
    if elicitation.mode.is_some_and(|mode| mode != "form") {
        return Err(Fault::invalid_params("only forms are supported"));
    }
    let schema =
        elicitation.requested_schema.ok_or_else(|| Fault::invalid_params("requestedSchema is missing"))?;
    if schema.get().len() > LARGEST_SCHEMA {
        return Err(Fault::invalid_params("requestedSchema is too large"));
    }
    let schema: Value = serde_json::from_str(schema.get()).map_err(Fault::invalid_params)?;
    let message = tidy(&elicitation.message, LONGEST_MESSAGE);
    Ok(AskKind::Form { text: format!("The MCP server {server} asks: {message}"), schema })
}

async fn ask(call: Arc<Call>, form: AskKind, responder: Responder) {
    let answer = tokio::select! {
        answer = call.context.ask(form) => answer,
        () = call.over.cancelled() => Answer::Cancelled,
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
