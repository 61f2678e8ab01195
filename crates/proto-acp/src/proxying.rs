//! What a connection to an agent of another vendor does beside merging: choices for the agent, and updates of what it offers.
//!
//! Invariant: does nothing on other connections.

use domain::SessionId;
use domain::agent::{AgentChoice, AgentOffers};
use rpc::Responder;
use serde_json::{Value, json};

use crate::proxy;
use crate::server::Server;
use crate::sessions;
use crate::wire::{acp, method};

impl Server {
    /// Hands a choice to the agent. `answers_options`: the answer has all options.
    pub(crate) fn choose_in_agent(
        &mut self,
        session: SessionId,
        choice: AgentChoice,
        answers_options: bool,
        responder: Responder,
    ) {
        let Some(commands) = self.engine.commands() else { return };
        let asked = proxy::ask(commands, session.clone(), Some(choice));
        self.engine.later(asked, move |server, offers| {
            let response = offers.map(|offers| {
                let options = server.take_offers(&session, offers);
                if answers_options { json!({"configOptions": options}) } else { json!({}) }
            });
            server.respond_with(responder, response);
        });
    }

    /// What the agent of a session offers, on a connection to an agent.
    pub(crate) fn offers(&self, session: &SessionId) -> Option<&AgentOffers> {
        self.sessions.get(session)?.offers.as_ref()
    }

    /// Keeps what an agent offers now. Gives the options of the session.
    fn take_offers(&mut self, session: &SessionId, offers: AgentOffers) -> Value {
        let Some(chat) = self.sessions.get_mut(session) else { return Value::Null };
        let own = serde_json::to_value(chat.projection.options()).unwrap_or_default();
        let all = proxy::options(&offers, own);
        chat.offers = Some(offers);
        all
    }

    /// An agent has changed what it offers: each session with such an agent looks at it.
    pub(crate) fn look_at_offers(&mut self) {
        let followed = self.sessions.iter().filter(|(_, chat)| chat.offers.is_some());
        for session in followed.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            let Some(commands) = self.engine.commands() else { return };
            let asked = proxy::ask(commands, session.clone(), None);
            self.engine.later(asked, move |server, offers| {
                if let Ok(offers) = offers {
                    server.show_changed_offers(&session, offers);
                }
            });
        }
    }

    fn show_changed_offers(&mut self, session: &SessionId, offers: AgentOffers) {
        let Some(before) = self.offers(session).cloned() else { return };
        let options = self.take_offers(session, offers.clone());
        if offers.commands != before.commands {
            sessions::send_commands(self, session.clone());
        }
        if offers.modes["currentModeId"] != before.modes["currentModeId"] {
            let mode = offers.modes["currentModeId"].clone();
            self.send_raw(session, json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
        }
        if offers.options != before.options {
            self.send_raw(
                session,
                json!({"sessionUpdate": "config_option_update", "configOptions": options}),
            );
        }
    }

    /// Sends an update that is no type of the schema: parts of it are the agent's own.
    fn send_raw(&mut self, session: &SessionId, update: Value) {
        let params = json!({"sessionId": session.0, "update": update});
        if let Err(error) = self.client.notify(method::SESSION_UPDATE, &params) {
            tracing::error!(%error, "an update could not be written");
        }
    }

    /// Sends an update of ours with what the agent offers; gives it back where the connection is no proxy.
    pub(crate) fn send_proxied(
        &mut self,
        session: &SessionId,
        update: acp::SessionUpdate,
    ) -> Option<acp::SessionUpdate> {
        let is_shared = matches!(
            update,
            acp::SessionUpdate::ConfigOptionUpdate(_)
                | acp::SessionUpdate::CurrentModeUpdate(_)
                | acp::SessionUpdate::AvailableCommandsUpdate(_)
        );
        let Some(offers) = self.offers(session).filter(|_| is_shared) else { return Some(update) };
        let rewritten = serde_json::to_value(&update).ok().and_then(|update| proxy::rewrite(update, offers));
        if let Some(update) = rewritten {
            self.send_raw(session, update);
        }
        None
    }
}
