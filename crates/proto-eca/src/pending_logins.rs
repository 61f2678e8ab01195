//! The response to a prompt whose provider has not answered on this connection yet: it waits a moment for the
//! provider's verdict on the key, because the response is where a client learns that it must log in.
//!
//! Invariants: every response leaves, at the latest after `PATIENCE`; who does not know its chat's id yet sees nothing
//! of the chat before the response; others see everything at once.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use domain::command::Accepted;
use domain::event::{EventBody, Outcome};
use domain::item::ItemKind;
use domain::{Event, Fact, FailureKind, SessionId, TurnId};
use rpc::Responder;
use serde_json::json;

use crate::serve::Server;

/// A refusal comes at once; a model may think for minutes.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct PendingLogins {
    /// Providers that have answered.
    proven: HashSet<String>,
    waiting: HashMap<SessionId, Waiting>,
}

struct Waiting {
    turn: TurnId,
    /// Its turn is what happens now.
    has_begun: bool,
    /// Another model may answer for the one that was asked.
    is_warned: bool,
    model: String,
    responder: Responder,
    /// What the client sees after the response.
    held: Option<Vec<Event>>,
}

/// Responds now where no provider is asked or it is known to answer, else with its verdict. `hold`: nothing of the chat is
/// shown before.
pub(crate) fn respond(
    server: &mut Server,
    chat: SessionId,
    accepted: Accepted,
    responder: Option<Responder>,
    hold: bool,
) {
    let Some(responder) = responder else { return };
    let Accepted { turn, model, .. } = accepted;
    let is_known = model.is_empty() || server.pending_logins.proven.contains(provider(&model));
    if is_known || server.pending_logins.waiting.contains_key(&chat) {
        return answer(server, &chat, &model, "prompting", responder);
    }
    let held = hold.then(Vec::new);
    let waiting = Waiting { turn, has_begun: false, is_warned: false, model, responder, held };
    server.pending_logins.waiting.insert(chat.clone(), waiting);
    server.engine.later(tokio::time::sleep(PATIENCE), move |server, ()| {
        if server.pending_logins.waiting.get(&chat).is_some_and(|waiting| waiting.turn == turn) {
            release(server, &chat, "prompting");
        }
    });
}

/// No verdict will come: every response leaves.
pub(crate) fn end(server: &mut Server) {
    let chats: Vec<SessionId> = server.pending_logins.waiting.keys().cloned().collect();
    for chat in chats {
        release(server, &chat, "prompting");
    }
}

/// Looks at an event before it is shown. True: it is shown later.
pub(crate) fn defers(server: &mut Server, event: &Event) -> bool {
    if server.pending_logins.waiting.is_empty() {
        return false;
    }
    let Some(session) = &event.session else { return false };
    let Some(waiting) = server.pending_logins.waiting.get_mut(session) else { return false };
    let verdict = waiting.observe(event);
    if verdict == Some(Verdict::Answered) && !waiting.is_warned {
        server.pending_logins.proven.insert(provider(&waiting.model).to_owned());
    }
    match (verdict, &mut waiting.held) {
        (None, Some(held)) => {
            held.push(event.clone());
            true
        }
        (None, None) => false,
        (Some(verdict), _) => {
            let status = if verdict == Verdict::Refused { "login" } else { "prompting" };
            release(server, session, status);
            false
        }
    }
}

#[derive(PartialEq, Clone, Copy)]
enum Verdict {
    Answered,
    Refused,
    /// The turn ended without one.
    Over,
}

impl Waiting {
    fn observe(&mut self, event: &Event) -> Option<Verdict> {
        let recorded = match &event.body {
            EventBody::Fact(recorded) => recorded,
            EventBody::Delta(_) if self.has_begun => return Some(Verdict::Answered),
            EventBody::Lost { .. } => return Some(Verdict::Over),
            _ => return None,
        };
        match &recorded.fact {
            Fact::TurnStarted { turn, .. } => self.has_begun = *turn == self.turn,
            Fact::Notice { .. } => self.is_warned = true,
            Fact::ItemStarted { item }
                if item.turn == self.turn && !matches!(item.kind, ItemKind::UserMessage { .. }) =>
            {
                return Some(Verdict::Answered);
            }
            Fact::TurnEnded { turn, outcome } if *turn == self.turn => {
                let is_refused =
                    matches!(outcome, Outcome::Failed { failure } if failure.kind == FailureKind::Auth);
                return Some(if is_refused { Verdict::Refused } else { Verdict::Over });
            }
            _ => {}
        }
        None
    }
}

fn release(server: &mut Server, chat: &SessionId, status: &str) {
    let Some(waiting) = server.pending_logins.waiting.remove(chat) else { return };
    answer(server, chat, &waiting.model, status, waiting.responder);
    for event in waiting.held.into_iter().flatten() {
        server.show(&event);
    }
}

fn answer(server: &mut Server, chat: &SessionId, model: &str, status: &str, responder: Responder) {
    server.respond(Some(responder), json!({"chatId": chat, "model": model, "status": status}));
}

/// Of `provider/model`.
fn provider(model: &str) -> &str {
    model.split_once('/').map_or(model, |(provider, _)| provider)
}
