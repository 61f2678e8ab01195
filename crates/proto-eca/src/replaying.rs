//! Stored facts on their way to the client, before the new ones.

use std::sync::Arc;

use domain::event::Outcome;
use domain::{Event, Fact, Recorded, SessionId};

use crate::history;
use crate::server::Server;

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
}
