//! Another model where one fails: the list of the prompt, else of the settings, in order.
//!
//! Invariant: a model that failed in a turn is not asked again in it.

use std::sync::Arc;

use domain::event::{Fact, Level, Notice};
use domain::{Failure, FailureKind, Model};

use super::Turn;
use crate::spending;

impl Turn {
    /// Switches to the next model where another model can help. False: there is none.
    pub(super) fn fail_over(&mut self, failure: &Failure) -> bool {
        if !matches!(failure.kind, FailureKind::Auth | FailureKind::Quota | FailureKind::Provider) {
            return false;
        }
        let failed = self.model.info().id;
        self.failed_models.push(failed.clone());
        let Some(next) = self.next_model() else { return false };
        let id = next.info().id;
        tracing::warn!(session = %self.session.id, failed, next = id, "going on with another model");
        let text = format!("{failed} failed: {failure} Going on with {id}.");
        self.session.commit(vec![Fact::Notice { notice: Notice { level: Level::Warning, text } }]);
        self.model = next;
        true
    }

    /// Whether another model of the list is left, so that this one need not be tried for long.
    pub(super) fn has_alternative(&self) -> bool {
        let current = self.model.info().id;
        let models = &self.session.workspace.models;
        let mut left = self.failover_list().iter().filter(|name| !self.failed_models.contains(name));
        left.any(|name| *name != current && models.find(name).is_ok())
    }

    fn failover_list(&self) -> &[String] {
        let own = &self.limits.failover;
        if own.is_empty() { &self.session.workspace.settings.failover } else { own }
    }

    fn next_model(&self) -> Option<Arc<dyn Model>> {
        let workspace = &self.session.workspace;
        let left = self.failover_list().iter().filter(|name| !self.failed_models.contains(name));
        let mut usable = left.filter_map(|name| workspace.models.find(name).ok());
        usable.find(|model| spending::check_price(&self.limits, &model.info()).is_ok())
    }
}
