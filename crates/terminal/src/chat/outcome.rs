//! The words for the end of a turn.

use domain::Outcome;
use domain::event::Level;

/// How a turn ended, where that is not as expected.
pub(super) fn notice(outcome: &Outcome) -> Option<(Level, String)> {
    match outcome {
        Outcome::Done => None,
        Outcome::Stopped => Some((Level::Warning, "Stopped.".to_owned())),
        Outcome::MaxTokens => {
            Some((Level::Warning, "The model reached its output limit. Say “go on” for the rest.".to_owned()))
        }
        Outcome::MaxSteps => {
            Some((Level::Warning, "The step limit was reached. Say “go on” to continue.".to_owned()))
        }
        Outcome::Repeating => Some((
            Level::Warning,
            "The model repeated the same call, so the turn was stopped. Say what to do instead.".to_owned(),
        )),
        Outcome::Refused { reason } => Some((Level::Error, format!("The model refused: {reason}"))),
        Outcome::Failed { failure } => Some((Level::Error, failure.to_string())),
        Outcome::Interrupted => Some((
            Level::Warning,
            "Dragoman ended in the middle of this; say “go on” to continue.".to_owned(),
        )),
    }
}
