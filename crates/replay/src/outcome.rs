//! What a replay found. Plain data.

use domain::TurnId;

/// How a replay ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// Facts of the journal.
    pub facts: usize,
    pub turns: usize,
    /// Turns that were taken as they are, and why.
    pub limits: Vec<Limit>,
    pub difference: Option<Difference>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    pub turn: TurnId,
    pub reason: &'static str,
}

/// The first fact that is not the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The recorded fact; [`u64::MAX`]: the journal has nothing of this kind.
    pub number: u64,
    /// `None`: the journal has no such fact.
    pub recorded: Option<String>,
    /// `None`: the replay has no such fact.
    pub replayed: Option<String>,
}
