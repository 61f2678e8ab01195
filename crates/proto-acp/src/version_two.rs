//! What a connection of version 2 does beside the translation of its messages: the choice of the version, states of
//! sessions, and prompts that are answered when their message has an id.
//!
//! Invariant: does nothing on a connection of version 1.

use domain::{Failure, SessionId};
use serde_json::{Value, json};

use crate::serve::Server;
use crate::v2::{self, State};
use crate::wire::{acp, method};

/// The parameters of `initialize`, as those of version 1, where the client asks for version 2 and may have it.
pub(crate) fn asked_for(server: &Server, params: &str) -> Option<String> {
    let params: Value = serde_json::from_str(params).ok()?;
    let wants = params["protocolVersion"].as_u64().is_some_and(|version| version >= v2::VERSION);
    (wants && (server.permits_version_two)()).then(|| v2::initialize_params(&params).to_string())
}

pub(crate) fn notify(server: &mut Server, session: &SessionId, update: &acp::SessionUpdate) {
    let update = serde_json::to_value(update).ok().and_then(v2::update);
    if let Some(update) = update {
        send(server, session, &update);
    }
}

fn send(server: &mut Server, session: &SessionId, update: &Value) {
    let params = json!({"sessionId": session.0, "update": update});
    if let Err(error) = server.client.notify(method::SESSION_UPDATE, &params) {
        tracing::error!(%error, "an update could not be written");
    }
}

pub(crate) fn show_state(server: &mut Server, session: &SessionId, state: State) {
    if server.features.version_two && server.sessions.contains_key(session) {
        send(server, session, &v2::state(state));
    }
}

/// A prompt is answered with the id of its message, before that message is shown.
pub(crate) fn answer_prompt(server: &mut Server, session: &SessionId, update: &acp::SessionUpdate) {
    if let acp::SessionUpdate::UserMessageChunk(chunk) = update
        && let Some(id) = &chunk.message_id
    {
        name_prompt(server, session, &id.to_string());
    }
}

fn name_prompt(server: &mut Server, session: &SessionId, id: &str) {
    let waiting = server.sessions.get_mut(session).and_then(|chat| chat.unnamed.pop_front());
    if let Some(responder) = waiting {
        server.respond(responder, &json!({"messageId": id}));
    }
}

/// The turn is over: the session is idle, and the client learns why.
pub(crate) fn end_turn(server: &mut Server, session: &SessionId, outcome: Result<acp::StopReason, Failure>) {
    name_prompt(server, session, "none");
    let mut end = match outcome {
        Ok(reason) => json!({"stopReason": reason}),
        Err(failure) => {
            let fault = crate::dispatch::fault_of(&failure);
            json!({"stopReason": "error", "error": {"code": fault.code, "message": fault.message}})
        }
    };
    let usage = server.sessions.get(session).and_then(|chat| chat.projection.usage());
    if let Some(usage) = usage.and_then(|usage| serde_json::to_value(usage).ok()) {
        end["usage"] = usage;
    }
    show_state(server, session, State::Idle(Some(end)));
}
