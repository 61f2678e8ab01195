//! `chat/prompt`: the chat is opened where it must be, the prompt sent, and whatever goes wrong said as contents.

use domain::command::{AcceptedStatus, Settings, TurnLimits, UserPrompt, known_behavior};
use domain::{Command, Failure, FailureKind, SessionId};
use rpc::{Fault, Responder};
use serde_json::{Value, json};

use crate::dispatch::{decode, fail, turn_to_draft};
use crate::from_wire;
use crate::serve::Server;
use crate::wire::{PromptParams, method};

pub async fn prompt(server: &mut Server, value: Value, responder: Option<Responder>) {
    let is_there = |name: &str| value.get(name).is_some_and(Value::is_array);
    let speaks_draft = is_there("context") && !is_there("contexts");
    let params: PromptParams = match decode(value) {
        Ok(params) => params,
        Err(fault) => return fail(responder, fault),
    };
    let has_contexts = params.contexts.iter().chain(&params.context).any(|contexts| !contexts.is_empty());
    if params.message.trim().is_empty() && !has_contexts {
        let sentence = "The prompt is empty: send a message, or contexts to look at.";
        return fail(responder, Fault::new(Fault::INVALID_PARAMS, sentence));
    }
    if speaks_draft {
        turn_to_draft(server).await;
    }
    let id = params.chat_id.filter(|id| !id.is_empty()).unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let session = SessionId::new(id);
    let model = if server.draft { draft_model(server, params.model) } else { params.model };
    let change = Settings {
        model: model.filter(|model| !model.is_empty()),
        behavior: from_wire::behavior(params.behavior, params.agent),
        variant: params.variant,
        trust: params.trust,
        title: None,
    };
    // Said before a chat is opened for it, which would be left behind.
    let known = &server.catalog.behaviors;
    let behavior = change.behavior.as_deref().filter(|_| !known.is_empty());
    if let Some(Err(failure)) = behavior.map(|name| known_behavior(name, known)) {
        return prompted(server, session, Err(failure), responder);
    }
    let contexts = params.contexts.or(params.context).unwrap_or_default();
    let prompt = UserPrompt {
        text: params.message,
        parts: Vec::new(),
        contexts: from_wire::contexts(contexts),
        change: change.clone(),
        limits: TurnLimits::default(),
    };
    if !server.knows(&session) {
        open(server, session.clone(), change).await;
    }
    let chat = session.clone();
    server
        .engine
        .call(
            |reply| Command::Prompt { session, prompt, reply },
            move |server, accepted| prompted(server, chat, accepted, responder),
        )
        .await;
}

/// Failures are contents: an error response leaves a client spinning.
fn prompted(
    server: &mut Server,
    chat: SessionId,
    accepted: Result<domain::command::Accepted, Failure>,
    responder: Option<Responder>,
) {
    let (status, model, failure) = match accepted {
        Ok(accepted) => (accepted.status, accepted.model, None),
        Err(failure) => {
            let status =
                if failure.kind == FailureKind::Auth { AcceptedStatus::Login } else { AcceptedStatus::Error };
            (status, String::new(), Some(failure))
        }
    };
    if server.draft {
        let good = status == AcceptedStatus::Prompting;
        let message = match &failure {
            Some(failure) => failure.to_string(),
            None if good => format!("The prompt was sent to {model}."),
            None => "The prompt could not be sent; the chat says why.".into(),
        };
        let status = if good { "success" } else { "connection-error" };
        server.respond(responder, json!({"chatId": chat, "status": status, "resultMessage": message}));
        return;
    }
    let status = match status {
        AcceptedStatus::Prompting => "prompting",
        AcceptedStatus::Login => "login",
        AcceptedStatus::Error => "error",
    };
    server.respond(responder, json!({"chatId": chat, "model": model, "status": status}));
    if let Some(failure) = failure {
        let text = json!({"chatId": chat, "role": "system", "content": {"type": "text", "text": format!("\n{failure}\n")}});
        server.notify(method::CONTENT_RECEIVED, &text);
        // A turn that runs already ends by itself; a refused prompt has no turn.
        let done =
            json!({"chatId": chat, "role": "system", "content": {"type": "progress", "state": "finished"}});
        server.notify(method::CONTENT_RECEIVED, &done);
    }
}

/// The draft names models without their provider; what is not configured means the default.
fn draft_model(server: &Server, name: Option<String>) -> Option<String> {
    let name = name?;
    let known = server.catalog.models.iter().map(|model| &model.id);
    known
        .into_iter()
        .find(|id| **id == name || id.split_once('/').is_some_and(|(_, bare)| bare == name))
        .cloned()
}

/// Not awaited: the prompt follows at once, and the engine takes both in order.
async fn open(server: &mut Server, session: SessionId, settings: Settings) {
    let (id, opened) = (Some(session.clone()), session.clone());
    server
        .engine
        .call(
            |reply| Command::Open { id, workspace: None, settings, servers: Vec::new(), reply },
            move |server, info| {
                if let Ok(info) = info {
                    server.follow(opened, info.newest);
                }
            },
        )
        .await;
    server.learn(&session);
}
