//! Responses to prompts that wait a moment for the provider's answer about the key: the response is where a client
//! learns that it must log in.
//!
//! Invariants: every response leaves, at the latest after `ANSWER_TIMEOUT`; a client that does not know its chat's id
//! yet gets no content of the chat before the response; other clients get every content at once.

use std::time::Duration;

use domain::command::Accepted;
use domain::event::{EventBody, Outcome};
use domain::item::ItemKind;
use domain::{Event, Fact, FailureKind, SessionId};

use crate::reply::Reply;
use crate::sent::PendingPrompt;
use crate::server::Server;
use crate::wire::requests::{Prompt, PromptResult};

/// A provider refuses a key at once; a model may think for minutes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Responds now where no provider is asked or the provider has answered before, else when it answers. `hold`: the
/// client gets nothing of the chat before the response.
pub(crate) fn respond(
    server: &mut Server,
    session: SessionId,
    accepted: Accepted,
    reply: Reply<Prompt>,
    hold: bool,
) {
    let Accepted { turn, model, .. } = accepted;
    let is_slash_command = model.is_empty();
    if !is_slash_command {
        server.set_model(&session, Some(&model));
    }
    let is_proven = is_slash_command || server.pending_logins.proven.contains(provider(&model));
    if !reply.is_expected() || is_proven || server.pending_logins.waiting.contains_key(&session) {
        return answer(server, &session, "prompting", reply);
    }
    let held = hold.then(Vec::new);
    let pending = PendingPrompt { turn, has_begun: false, is_warned: false, model, reply, held };
    server.pending_logins.waiting.insert(session.clone(), pending);
    server.engine.later(tokio::time::sleep(ANSWER_TIMEOUT), move |server, ()| {
        if server.pending_logins.waiting.get(&session).is_some_and(|pending| pending.turn == turn) {
            release(server, &session, "prompting");
        }
    });
}

/// The connection ends: every response leaves.
pub(crate) fn release_all(server: &mut Server) {
    let sessions: Vec<SessionId> = server.pending_logins.waiting.keys().cloned().collect();
    for session in sessions {
        release(server, &session, "prompting");
    }
}

/// Looks at an event before it is shown. True: it is shown later.
pub(crate) fn defers(server: &mut Server, event: &Event) -> bool {
    if server.pending_logins.waiting.is_empty() {
        return false;
    }
    let Some(session) = &event.session else { return false };
    let Some(pending) = server.pending_logins.waiting.get_mut(session) else { return false };
    let answer = pending.observe(event);
    if answer == Some(ProviderAnswer::Answered) && !pending.is_warned {
        server.pending_logins.proven.insert(provider(&pending.model).to_owned());
    }
    match (answer, &mut pending.held) {
        (None, Some(held)) => {
            held.push(event.clone());
            true
        }
        (None, None) => false,
        (Some(answer), _) => {
            let status = if answer == ProviderAnswer::Refused { "login" } else { "prompting" };
            release(server, session, status);
            false
        }
    }
}

#[derive(PartialEq, Clone, Copy)]
enum ProviderAnswer {
    Answered,
    Refused,
    /// The turn ended before the provider answered.
    NoAnswer,
}

impl PendingPrompt {
    fn observe(&mut self, event: &Event) -> Option<ProviderAnswer> {
        let recorded = match &event.body {
            EventBody::Fact(recorded) => recorded,
            EventBody::Delta(_) if self.has_begun => return Some(ProviderAnswer::Answered),
            EventBody::Lost { .. } => return Some(ProviderAnswer::NoAnswer),
            EventBody::Delta(_) | EventBody::Progress { .. } | EventBody::Catalog(_) => return None,
        };
        if let Fact::TurnStarted { turn, .. } = &recorded.fact {
            self.has_begun = *turn == self.turn;
        }
        if let Fact::Notice { .. } = &recorded.fact {
            self.is_warned = true;
        }
        if let Fact::ItemStarted { item } = &recorded.fact
            && item.turn == self.turn
            && !matches!(item.kind, ItemKind::UserMessage { .. })
        {
            return Some(ProviderAnswer::Answered);
        }
        let Fact::TurnEnded { turn, outcome } = &recorded.fact else { return None };
        let is_refused = matches!(outcome, Outcome::Failed { failure } if failure.kind == FailureKind::Auth);
        let answer = if is_refused { ProviderAnswer::Refused } else { ProviderAnswer::NoAnswer };
        (*turn == self.turn).then_some(answer)
    }
}

fn release(server: &mut Server, session: &SessionId, status: &'static str) {
    let Some(pending) = server.pending_logins.waiting.remove(session) else { return };
    answer(server, session, status, pending.reply);
    for event in pending.held.into_iter().flatten() {
        server.show(&event);
    }
}

fn answer(server: &mut Server, session: &SessionId, status: &'static str, reply: Reply<Prompt>) {
    let (chat_id, model) = (server.chat_key(session), server.model_of(session));
    server.respond(reply, Ok(PromptResult::Published { chat_id, model, status }));
}

/// Of `provider/model`.
fn provider(model: &str) -> &str {
    model.split_once('/').map_or(model, |(provider, _)| provider)
}
