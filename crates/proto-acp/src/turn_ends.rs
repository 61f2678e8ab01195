//! How a turn ended, as a client learns it. Pure.

use domain::{Failure, Outcome};

use crate::wire::acp;

/// The text that an outcome adds to the chat; a failure is in the response.
pub(crate) fn outcome_text(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Refused { reason } => Some(format!("The model refused: {reason}\n")),
        Outcome::Interrupted => Some("This answer was interrupted.\n".to_owned()),
        Outcome::Done
        | Outcome::Stopped
        | Outcome::MaxTokens
        | Outcome::MaxSteps
        | Outcome::Repeating
        | Outcome::Failed { .. } => None,
    }
}

pub(crate) fn stop_reason(outcome: &Outcome) -> Result<acp::StopReason, Failure> {
    match outcome {
        Outcome::Done => Ok(acp::StopReason::EndTurn),
        Outcome::Stopped => Ok(acp::StopReason::Cancelled),
        Outcome::Interrupted => Err(Failure::interrupted()),
        Outcome::MaxTokens => Ok(acp::StopReason::MaxTokens),
        Outcome::MaxSteps | Outcome::Repeating => Ok(acp::StopReason::MaxTurnRequests),
        Outcome::Refused { .. } => Ok(acp::StopReason::Refusal),
        Outcome::Failed { failure } => Err(failure.clone()),
    }
}
