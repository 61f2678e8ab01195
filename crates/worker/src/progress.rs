//! How far the chat of a task has come, by its journal alone.

use domain::event::{Fact, Outcome};
use domain::item::ItemKind;
use domain::{Failure, SessionId, Store};

const PAGE: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The task was told to the model.
    pub(crate) has_begun: bool,
    /// How the newest turn ended, where it has.
    pub(crate) outcome: Option<Outcome>,
    /// The newest answer.
    pub(crate) text: String,
    pub(crate) cost: Option<f64>,
}

impl Progress {
    pub(crate) async fn read(store: &dyn Store, chat: &SessionId) -> Result<Self, Failure> {
        let (mut progress, mut newest) = (Self::default(), 0);
        loop {
            let page = store.read(chat, newest, PAGE).await?;
            let Some(last) = page.last() else { return Ok(progress) };
            newest = last.number;
            page.into_iter().for_each(|recorded| progress.add(recorded.fact));
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "other facts say nothing about it")]
    fn add(&mut self, fact: Fact) {
        match fact {
            Fact::TurnStarted { .. } => self.outcome = None,
            Fact::TurnEnded { outcome, .. } => self.outcome = Some(outcome),
            Fact::UsageChanged { usage } => self.cost = usage.session_cost.or(self.cost),
            Fact::ItemEnded { item } => match item.kind {
                ItemKind::UserMessage { .. } => {
                    self.has_begun = true;
                    self.text.clear();
                }
                ItemKind::AgentMessage { text, .. } => self.text = text,
                _ => {}
            },
            _ => {}
        }
    }

    /// The outcome, where no worker goes on after it.
    pub(crate) fn final_outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref().filter(|outcome| !matches!(outcome, Outcome::Stopped | Outcome::Interrupted))
    }
}
