//! How a recorded turn ended, or why it cannot be replayed. Plain data.

use domain::Outcome;

/// Why a turn cannot be replayed, as a sentence.
pub(super) struct Unreplayable(pub(super) &'static str);

#[derive(Clone, PartialEq, Debug)]
pub(super) enum TurnEnd {
    Itself(Outcome),
    /// The program ended and did not wait for a tool.
    Aborted,
    /// The process died, or its disk took no more.
    Killed,
}
