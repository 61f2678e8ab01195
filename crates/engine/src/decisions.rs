//! Where a turn can go one way or another: the user's rules and settings decide, or the record of a chat that is replayed.
//!
//! Must not know what is decided about. Invariant: every engine gets its decisions here when it starts, the product as a
//! replay does.

use domain::item::Part;
use domain::note::Note;
use domain::{BoxFuture, Fact, Failure, ItemId, TurnId};

use crate::tool_calls::approval::ApprovalDecision;

/// What decides for the sessions of an engine. Each method says what the user's rules and settings would do.
pub trait Decisions: Send + Sync {
    /// Whether a call runs, is asked about or is refused. `by_rules`: the decision of the user's rules.
    fn decide_call(&self, item: ItemId, by_rules: &dyn Fn() -> ApprovalDecision) -> ApprovalDecision {
        let _ = item;
        by_rules()
    }

    /// What the model is sent for the prompt of a turn. `None`: what the user wrote, with what was attached; or a slash
    /// command answers.
    fn message(&self, turn: TurnId) -> Option<Vec<Part>> {
        let _ = turn;
        None
    }

    /// What a slash command does and says. `None`: it is run.
    fn command_output(&self, turn: TurnId) -> Option<CommandOutput> {
        let _ = turn;
        None
    }

    /// Whether a chat without a title gets one.
    fn makes_titles(&self) -> bool {
        true
    }

    /// Whether the history is replaced by a summary before the next step. `None`: the settings say.
    fn is_compaction_due(&self) -> Option<bool> {
        None
    }

    /// Whether what happens was recorded before: goals, checks, files with instructions and old results are not looked at.
    fn is_recorded(&self) -> bool {
        false
    }

    /// What Dragoman told the model after the answer at hand, where that is recorded.
    fn take_notes(&self) -> Vec<Note> {
        Vec::new()
    }

    /// Whether requests are measured before they are sent: a long one is compacted first, or warned of.
    fn measures_requests(&self) -> bool {
        true
    }
}

/// What a slash command did and says.
pub struct CommandOutput {
    pub facts: Vec<Fact>,
    pub text: BoxFuture<'static, Result<String, Failure>>,
}

/// The user's rules and settings decide everything.
pub(crate) struct ByRules;

impl Decisions for ByRules {}
