//! What a connection of version 2 does beside the translation of its messages: the choice of the version, states of
//! sessions, and prompts that are answered when their message has an id.
//!
//! Invariant: does nothing on a connection of version 1.

use domain::{Command, ItemId, SessionId};
use rpc::{Fault, Responder};
use serde_json::{Value, json};

use crate::faults::session_not_open;
use crate::from_wire::invalid;
use crate::server::Server;
use crate::v2::{self, State};
use crate::wire::{acp, method};

impl Server {
    /// The parameters of `initialize`, as those of version 1, where the client asks for version 2 and may have it.
    pub(crate) fn params_of_version_two(&self, params: &str) -> Option<String> {
        let params: Value = serde_json::from_str(params).ok()?;
        let wants = params["protocolVersion"].as_u64().is_some_and(|version| version >= v2::VERSION);
        (wants && (self.permits_version_two)()).then(|| v2::initialize_params(&params).to_string())
    }

    pub(crate) fn notify_of_version_two(&mut self, session: &SessionId, update: &acp::SessionUpdate) {
        if let Some(update) = serde_json::to_value(update).ok().and_then(v2::update) {
            self.send_update(session, &update);
        }
    }

    fn send_update(&mut self, session: &SessionId, update: &Value) {
        let params = json!({"sessionId": session.0, "update": update});
        if let Err(error) = self.client.notify(method::SESSION_UPDATE, &params) {
            tracing::error!(%error, "an update could not be written");
        }
    }

    pub(crate) fn show_state(&mut self, session: &SessionId, state: State) {
        if self.features.version_two && self.sessions.contains_key(session) {
            self.send_update(session, &v2::state(state));
        }
    }

    /// A prompt is answered with the id of its message, before that message is shown.
    pub(crate) fn answer_prompt(&mut self, session: &SessionId, update: &acp::SessionUpdate) {
        if let acp::SessionUpdate::UserMessageChunk(chunk) = update
            && let Some(id) = &chunk.message_id
        {
            self.name_prompt(session, &id.to_string());
        }
    }

    /// An update that version 1 does not have.
    pub(crate) fn show_update_of_version_two(&mut self, session: &SessionId, update: &Value) {
        if update["sessionUpdate"] == "user_message"
            && let Some(id) = update["messageId"].as_str()
        {
            self.name_prompt(session, id);
        }
        self.send_update(session, update);
    }

    /// Stops one running call. Its end is an update; the turn goes on.
    pub(crate) async fn cancel_call(&mut self, params: &str, responder: Responder) {
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let session = SessionId::new(params["sessionId"].as_str().unwrap_or_default());
        if !self.sessions.contains_key(&session) {
            return responder.fail(session_not_open(&session));
        }
        // A terminal has the id of its call.
        let id = params["toolCallId"].as_str().or_else(|| params["terminalId"].as_str());
        let Some(call) = id.and_then(ItemId::parse) else {
            return responder.fail(invalid("There is no such call."));
        };
        self.engine
            .call(
                |reply| Command::CancelCall { session, call, reply },
                move |server, done| match done {
                    Ok(()) => server.client.respond(responder, Ok(&json!({}))),
                    Err(failure) => server.fail(responder, invalid(failure.to_string())),
                },
            )
            .await;
    }

    fn name_prompt(&mut self, session: &SessionId, id: &str) {
        let waiting = self.sessions.get_mut(session).and_then(|chat| chat.unnamed.pop_front());
        if let Some(responder) = waiting {
            self.respond(responder, &json!({"messageId": id}));
        }
    }

    /// The turn is over: the session is idle, and the client learns why.
    pub(crate) fn end_turn(&mut self, session: &SessionId, outcome: Result<acp::StopReason, Fault>) {
        self.name_prompt(session, "none");
        let mut end = match outcome {
            Ok(reason) => json!({"stopReason": reason}),
            Err(fault) => {
                json!({"stopReason": "error", "error": {"code": fault.code, "message": fault.message}})
            }
        };
        let usage = self.sessions.get(session).and_then(|chat| chat.projection.usage());
        if let Some(usage) = usage.and_then(|usage| serde_json::to_value(usage).ok()) {
            end["usage"] = usage;
        }
        self.show_state(session, State::Idle(Some(end)));
    }
}
