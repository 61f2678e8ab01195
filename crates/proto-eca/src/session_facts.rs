//! The stored facts of a chat, and what a window on it must know of them.

use std::sync::Arc;

use domain::command::SessionInfo;
use domain::{Ask, Fact, Failure, Level, Notice, Recorded, SessionId};

use crate::server::Server;
use crate::to_wire;
use crate::wire::notifications::Outbound;

pub(crate) fn read_facts(
    server: &mut Server,
    session: &SessionId,
    then: impl FnOnce(&mut Server, Result<Vec<Arc<Recorded>>, Failure>) + Send + 'static,
) {
    let Some(commands) = server.engine.commands() else { return };
    let session = session.clone();
    server.engine.later(async move { domain::replay::read(&commands, &session).await }, then);
}

/// Questions that wait for a person.
pub(crate) fn open_questions(facts: &[Arc<Recorded>]) -> Vec<Ask> {
    let mut open: Vec<Ask> = Vec::new();
    for recorded in facts {
        if let Fact::AskRaised { ask } = &recorded.fact {
            open.push(ask.clone());
        } else if let Fact::AskSettled { id, .. } = &recorded.fact {
            open.retain(|ask| ask.id != *id);
        }
    }
    open
}

/// Says in a window on a chat of another process whose keys and rules count.
pub(crate) fn tell_of_holder(server: &mut Server, info: &SessionInfo) {
    if let Some(holder) = &info.attached_to {
        let text = format!("This chat runs in {holder}. Its keys, rules, sandbox and folder count.");
        let notice = Notice { level: Level::Info, text };
        server.send(vec![Outbound::Message(to_wire::message(&notice))]);
    }
}

/// How the title of an inline chat begins.
pub(crate) const TITLE_MARK: &str = "inline: ";

pub(crate) fn is_inline(title: Option<&str>) -> bool {
    title.is_some_and(|title| title.starts_with(TITLE_MARK))
}
