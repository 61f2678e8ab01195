//! What a decision about a tool call depends on, and what it says. Plain data; decides nothing.

use config::ApprovalRules;
use domain::host::Grants;
use domain::taint::Taint;
use domain::tool::{Review, ToolSpec};
use serde_json::Value;
use session::Remembered;

/// What is around the reason of a refusal.
const REFUSED: [&str; 2] = ["This call was refused and not run. ", " Go on without it or ask the user."];

/// Everything a decision depends on.
pub struct Case<'a> {
    pub rules: &'a ApprovalRules,
    pub spec: &'a ToolSpec,
    pub input: &'a Value,
    pub review: &'a Review,
    pub remembered: &'a Remembered,
    /// The behavior forbids changes.
    pub read_only: bool,
    pub trust: bool,
    /// A person can be asked.
    pub can_ask: bool,
    pub granted: Grants,
    /// What hooks say about the call.
    pub hook: Option<HookVerdict>,
    /// What the chat has read.
    pub taint: &'a Taint,
}

/// What hooks say about a call, the strictest of them. An allow never goes before a rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HookVerdict {
    Allow { hook: String },
    Ask { reason: String },
    Deny { reason: String },
}

/// Stricter is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Decision {
    Allow,
    Ask,
    Deny,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApprovalDecision {
    pub decision: Decision,
    /// Why, as a sentence for people.
    pub reason: String,
    /// It would have been asked, but nobody can be.
    pub unasked: bool,
    /// It is allowed because its sandbox contains it, and for no other reason.
    pub contained: bool,
    /// An approval covers this call alone and is not remembered.
    pub once: bool,
    /// A hook refused it.
    pub by_hook: bool,
    /// A model that the user named may allow it before a person is asked.
    pub reviewable: bool,
}

impl ApprovalDecision {
    pub(super) fn new(decision: Decision, reason: impl Into<String>) -> Self {
        // Paths and hooks are in it: every character of them is visible.
        let reason = domain::visible_text(&reason.into()).into_owned();
        let (unasked, contained, once, by_hook, reviewable) = (false, false, false, false, false);
        Self { decision, reason, unasked, contained, once, by_hook, reviewable }
    }

    /// Where nobody can be asked, the answer is no.
    pub(super) fn refuse_unasked(self) -> Self {
        let reason = format!("{} Nobody can be asked here.", self.reason);
        Self { unasked: true, ..Self::new(Decision::Deny, reason) }
    }

    /// The text that the model gets for a refused call.
    pub fn message_for_model(&self) -> String {
        let [before, after] = REFUSED;
        format!("{before}{}{after}", self.reason)
    }

    /// The reason in such a text.
    pub fn reason_in(message: &str) -> Option<&str> {
        message.strip_prefix(REFUSED[0])?.strip_suffix(REFUSED[1])
    }
}
