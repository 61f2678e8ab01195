//! What a person allowed or refused for the rest of a session.
//!
//! Must not know rules. Invariant: what must be asked each time is never remembered and never allowed by what is.

use domain::tool::{Review, ToolEffect, ToolSpec};

/// What a person allowed or refused for the rest of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Remembered {
    commands: Vec<String>,
    tools: Vec<String>,
    denied: Vec<String>,
}

impl Remembered {
    pub fn allow(&mut self, spec: &ToolSpec, review: &Review) {
        if review.keys.is_empty() {
            if spec.effect != ToolEffect::RunsCommands {
                self.tools.push(spec.offered_name());
            }
        } else if review.must_ask.is_none() {
            self.commands.extend(review.keys.iter().cloned());
        }
    }

    pub fn deny(&mut self, spec: &ToolSpec) {
        self.denied.push(spec.offered_name());
    }

    pub(super) fn is_denied(&self, spec: &ToolSpec) -> bool {
        self.denied.contains(&spec.offered_name())
    }

    pub fn commands(&self) -> Vec<String> {
        self.commands.clone()
    }

    pub(super) fn allows(&self, spec: &ToolSpec, review: &Review) -> bool {
        if review.must_ask.is_some() {
            return false;
        }
        if review.keys.is_empty() {
            return self.tools.contains(&spec.offered_name());
        }
        review.keys.iter().all(|key| self.commands.contains(key))
    }
}
