//! The response to a prompt whose provider has not answered on this connection yet: it waits a moment for the
//! provider's verdict on the key, because the response is where a client learns that it must log in.
//!
//! Invariants: every response leaves, at the latest after `PATIENCE`; who does not know its chat's id yet sees nothing
//! of the chat before the response; others see everything at once.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use domain::event::{EventBody, Outcome};
use domain::item::ItemKind;
use domain::{Event, Fact, FailureKind, SessionId};
use rpc::Responder;
use serde_json::json;

use crate::serve::Server;

/// A refusal comes at once; a model may think for minutes.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Verdicts {
    /// Providers that have answered.
    proven: HashSet<String>,
    waiting: HashMap<SessionId, Waiting>,
    count: u64,
}

struct Waiting {
    number: u64,
    model: String,
    responder: Responder,
    /// What the client sees after the response.
    held: Option<Vec<Event>>,
}

/// Responds now where the provider is known to answer, else with its verdict. `hold`: nothing of the chat is shown
/// before.
pub fn respond(
    server: &mut Server,
    chat: SessionId,
    model: String,
    responder: Option<Responder>,
    hold: bool,
) {
    let Some(responder) = responder else { return };
    let is_known = server.verdicts.proven.contains(provider(&model));
    if is_known || server.verdicts.waiting.contains_key(&chat) {
        return answer(server, &chat, &model, "prompting", responder);
    }
    server.verdicts.count += 1;
    let number = server.verdicts.count;
    let waiting = Waiting { number, model, responder, held: hold.then(Vec::new) };
    server.verdicts.waiting.insert(chat.clone(), waiting);
    server.engine.later(tokio::time::sleep(PATIENCE), move |server, ()| {
        if server.verdicts.waiting.get(&chat).is_some_and(|waiting| waiting.number == number) {
            release(server, &chat, "prompting");
        }
    });
}

/// Looks at an event before it is shown. True: it is shown later.
pub fn holds(server: &mut Server, event: &Event) -> bool {
    if server.verdicts.waiting.is_empty() {
        return false;
    }
    let Some(session) = &event.session else { return false };
    let Some(waiting) = server.verdicts.waiting.get_mut(session) else { return false };
    let verdict = verdict(event);
    if let Some(Verdict::Answered) = verdict {
        server.verdicts.proven.insert(provider(&waiting.model).to_owned());
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

fn verdict(event: &Event) -> Option<Verdict> {
    let EventBody::Fact(recorded) = &event.body else {
        return match event.body {
            EventBody::Delta(_) => Some(Verdict::Answered),
            EventBody::Lost { .. } => Some(Verdict::Over),
            _ => None,
        };
    };
    match &recorded.fact {
        Fact::ItemStarted { item } if !matches!(item.kind, ItemKind::UserMessage { .. }) => {
            Some(Verdict::Answered)
        }
        Fact::TurnEnded { outcome: Outcome::Failed { failure }, .. } if failure.kind == FailureKind::Auth => {
            Some(Verdict::Refused)
        }
        Fact::TurnEnded { .. } => Some(Verdict::Over),
        _ => None,
    }
}

fn release(server: &mut Server, chat: &SessionId, status: &str) {
    let Some(waiting) = server.verdicts.waiting.remove(chat) else { return };
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
