//! Events of the engine on their way to the client: shown, held back, or the reason to show a chat again.

use std::sync::Arc;

use domain::event::{EventBody, Outcome};
use domain::item::ItemKind;
use domain::{Event, Fact, Recorded, SessionId};

use crate::server::Server;
use crate::{catalog, history, host, pending_logins, sessions};

impl Server {
    /// Shows stored facts, then new ones. Of past turns that went well only the last one's state is shown.
    pub(crate) fn replay(&mut self, session: &SessionId, facts: Vec<Arc<Recorded>>) {
        let newest = facts.last().map_or(0, |last| last.number);
        let dialect = self.dialect;
        self.add_session(session);
        let mut shown_from = None;
        if let Some(open) = self.sessions.get_mut(session) {
            open.projection = dialect.new_projection();
            shown_from = open.shown_from;
        }
        let mut facts = domain::replay::visible_facts(facts);
        if let Some(first) = shown_from {
            facts = history::from_item(facts, first);
        }
        let last = |is: fn(&Fact) -> bool| facts.iter().rposition(|recorded| is(&recorded.fact));
        let usage = last(|fact| matches!(fact, Fact::UsageChanged { .. }));
        let turn = last(|fact| matches!(fact, Fact::TurnStarted { .. } | Fact::TurnEnded { .. }));
        for (at, recorded) in facts.into_iter().enumerate() {
            let is_past = match &recorded.fact {
                Fact::UsageChanged { .. } => Some(at) != usage,
                Fact::TurnStarted { .. } | Fact::TurnEnded { outcome: Outcome::Done, .. } => Some(at) != turn,
                // A window of its own, which a person has closed.
                Fact::Notice { .. } => true,
                Fact::SessionOpened(_)
                | Fact::SessionChanged { .. }
                | Fact::TurnEnded { .. }
                | Fact::ItemStarted { .. }
                | Fact::ItemChanged { .. }
                | Fact::ItemGrew { .. }
                | Fact::ItemEnded { .. }
                | Fact::HistoryReplaced { .. }
                | Fact::AskRaised { .. }
                | Fact::AskSettled { .. }
                | Fact::TaintChanged { .. } => false,
            };
            if !is_past {
                self.project(&Event::fact(session.clone(), recorded));
            }
        }
        self.follow(session.clone(), newest);
    }

    pub(crate) fn show(&mut self, event: &Event) {
        if pending_logins::defers(self, event) {
            return;
        }
        if let EventBody::Catalog(kind) = &event.body {
            return catalog::handle_change(self, *kind);
        }
        if let (Some(session), EventBody::Fact(recorded)) = (&event.session, &event.body) {
            if matches!(&recorded.fact, Fact::HistoryReplaced { .. }) || is_new_flag(&recorded.fact) {
                return match self.changing.get_mut(session) {
                    Some(is_changed) => *is_changed = true,
                    None => sessions::show_again(self, session.clone(), |_, _| {}),
                };
            }
            if let Fact::AskRaised { ask } = &recorded.fact {
                host::ask_user(self, session, ask);
            }
            if let Fact::SessionChanged { change } = &recorded.fact {
                self.set_model(session, change.model.as_deref());
            }
        }
        self.project(event);
    }
}

/// A bookmark that another window set: its place is not at the end.
fn is_new_flag(fact: &Fact) -> bool {
    let Fact::ItemEnded { item } = fact else { return false };
    matches!(&item.kind, ItemKind::Flag { text } if !text.is_empty())
}
