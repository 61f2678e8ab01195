//! `chat/prompt`: the chat is opened where it must be, the prompt sent, and whatever goes wrong said as contents.

use domain::command::{AcceptedStatus, SessionSettings, TurnLimits, UserPrompt, known_behavior};
use domain::{Command, Failure, FailureKind, SessionId};
use rpc::Responder;
use serde_json::{Value, json};

use crate::dispatch::{decode, fail, turn_to_draft};
use crate::from_wire;
use crate::pending_logins;
use crate::serve::Server;
use crate::wire::{PromptParams, method};

pub(crate) async fn prompt(server: &mut Server, value: Value, responder: Option<Responder>) {
    let is_there = |name: &str| value.get(name).is_some_and(Value::is_array);
    let speaks_draft = is_there("context") && !is_there("contexts");
    let params: PromptParams = match decode(value) {
        Ok(params) => params,
        Err(fault) => return fail(responder, fault),
    };
    if speaks_draft {
        turn_to_draft(server).await;
    }
    let given = params.chat_id.as_ref().filter(|id| !id.is_empty()).cloned();
    let is_new = given.is_none();
    let session = SessionId::new(given.unwrap_or_else(|| uuid::Uuid::now_v7().to_string()));
    let change = change(server, &params);
    // Said before a chat is opened for it, which would be left behind.
    if let Err(failure) = sensible(server, &params, &change) {
        return prompted(server, session, is_new, Err(failure), responder);
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
            move |server, accepted| prompted(server, chat, is_new, accepted, responder),
        )
        .await;
}

/// What the prompt changes in its chat.
fn change(server: &Server, params: &PromptParams) -> SessionSettings {
    let model = params.model.clone();
    let model = if server.draft { draft_model(server, model) } else { model };
    SessionSettings {
        model: model.filter(|model| !model.is_empty()),
        behavior: from_wire::behavior(params.behavior.clone(), params.agent.clone()),
        variant: params.variant.clone(),
        trust: params.trust,
        title: None,
    }
}

fn sensible(server: &Server, params: &PromptParams, change: &SessionSettings) -> Result<(), Failure> {
    let has_contexts = params.contexts.iter().chain(&params.context).any(|contexts| !contexts.is_empty());
    if params.message.trim().is_empty() && !has_contexts {
        return Err(Failure::user("The prompt is empty.").hint("Send a message, or contexts to look at."));
    }
    let known = &server.catalog.behaviors;
    match change.behavior.as_deref().filter(|_| !known.is_empty()) {
        Some(name) => known_behavior(name, known),
        None => Ok(()),
    }
}

/// Failures are contents: an error response leaves a client spinning. `is_new`: the client learns the chat's id from
/// the response.
fn prompted(
    server: &mut Server,
    chat: SessionId,
    is_new: bool,
    accepted: Result<domain::command::Accepted, Failure>,
    responder: Option<Responder>,
) {
    let (status, model, failure) = match accepted {
        Ok(accepted) if accepted.status == AcceptedStatus::Prompting && !server.draft => {
            return pending_logins::respond(server, chat, accepted, responder, is_new);
        }
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
async fn open(server: &mut Server, session: SessionId, settings: SessionSettings) {
    let (id, opened) = (Some(session.clone()), session.clone());
    server
        .engine
        .call(
            |reply| Command::Open { id, workspace: None, settings, servers: Vec::new(), reply },
            move |server, info| match info {
                Ok(info) => server.follow(opened, info.newest),
                // The next prompt opens it again.
                Err(_) => server.forget(&opened),
            },
        )
        .await;
    server.learn(&session);
}
