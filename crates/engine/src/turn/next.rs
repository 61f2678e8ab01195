//! What follows an answer of the model.

use domain::Failure;
use domain::event::Outcome;
use domain::model::StopReason;

use super::answer::AnswerEnd;

pub(super) enum Next {
    Step,
    /// The same step with another model.
    Retry,
    /// The same step with a shorter history.
    Compact,
    End(Outcome),
}

/// What the model must still hear when it is done.
pub(super) enum Said {
    User(String),
    /// Of a subagent in the background.
    Report(String),
}

/// The outcome of a turn that an answer ends; `None`: the model is done or wants its calls run.
pub(super) fn outcome_of(end: AnswerEnd) -> Option<Outcome> {
    match end {
        AnswerEnd::Model(StopReason::Cut { message }) => {
            Some(Outcome::Failed { failure: Failure::provider(message).hint("Ask to continue.") })
        }
        AnswerEnd::Model(StopReason::Refused { reason }) => Some(Outcome::Refused { reason }),
        AnswerEnd::Model(StopReason::MaxTokens) => Some(Outcome::MaxTokens),
        AnswerEnd::Model(StopReason::Done | StopReason::ToolCalls) => None,
        AnswerEnd::Stopped => Some(Outcome::Stopped),
        AnswerEnd::Failed(failure) => Some(Outcome::Failed { failure }),
    }
}
