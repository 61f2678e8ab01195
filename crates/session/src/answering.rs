//! Answers to questions that this process has raised. Must not know what is asked.
//!
//! Invariant: the first answer counts, and each front-end that answers learns which one it was.

use domain::{Answer, AskId, Failure};

use crate::actor_data::Actor;
use crate::attached_frontend::AttachedFrontend;
use crate::work::SessionWork;

impl<S: SessionWork> Actor<S> {
    /// The first answer counts, whoever gives it; each gets the one that counted.
    pub(super) fn settle(
        &self,
        frontend: Option<&AttachedFrontend>,
        ask: AskId,
        answer: Answer,
    ) -> Result<Answer, Failure> {
        if answer == Answer::Cancelled && frontend.is_some_and(|frontend| self.cannot_be_asked(frontend, ask))
        {
            return Err(Failure::user("This window cannot show the question; another one can."));
        }
        if let Some(settled) = self.session.asks.settle(ask, answer) {
            return Ok(settled);
        }
        let first = self.session.state().answer_to(ask).cloned();
        first.ok_or_else(|| Failure::user("Nobody waits for this answer."))
    }

    /// A window that cannot show a question does not decline it for the others.
    fn cannot_be_asked(&self, frontend: &AttachedFrontend, ask: AskId) -> bool {
        let state = self.session.state();
        let Some(ask) = state.open_asks().find(|open| open.id == ask) else { return false };
        !frontend.abilities.can_answer(&ask.kind) && self.session.audience.has_others(frontend.id)
    }
}
