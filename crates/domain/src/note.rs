//! Messages of Dragoman itself in a history: people see a line, the model gets the parts.
//!
//! Must not know when a note is written. Invariant: what a note says to the model are never the user's words.

use crate::ids::ItemId;
use crate::item::Part;

#[derive(Clone, PartialEq, Debug)]
pub struct Note {
    pub about: NoteAbout,
    /// What people see.
    pub text: String,
    /// What the model gets; empty: the note is for people alone.
    pub parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum NoteAbout {
    /// The turn changed files and ran no check: the model is asked to verify.
    Verification,
    /// The goal of the chat, as it is from here on.
    Goal(Box<Goal>),
    /// Files with instructions have changed.
    Instructions,
    /// The results of calls before this item are left out of what the model gets.
    ResultsCleared { before: ItemId },
    /// What a reviewing model said about a call.
    Review,
    /// Text of a subagent or a hook.
    Report,
}

/// What a chat works toward, turn after turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Goal {
    /// A shell line, or a condition in plain words.
    pub condition: String,
    pub is_command: bool,
    pub max_steps: u32,
    pub max_millis: u64,
    /// What was used of both, as of this note.
    pub steps: u32,
    pub millis: u64,
    pub state: GoalState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GoalState {
    Active,
    /// The model was asked whether the result is what was requested.
    Audited,
    /// The user stopped the turn.
    Paused,
    Reached,
    /// The budget is spent.
    Spent,
    /// The user ended it.
    Off,
}

impl Goal {
    /// Whether turns go on for it.
    pub fn is_open(&self) -> bool {
        matches!(self.state, GoalState::Active | GoalState::Audited)
    }

    /// Whether it can be taken up again.
    pub fn can_resume(&self) -> bool {
        self.is_open() || matches!(self.state, GoalState::Paused | GoalState::Spent)
    }
}

impl Note {
    /// A line for people alone.
    pub fn for_people(about: NoteAbout, text: impl Into<String>) -> Self {
        Self { about, text: text.into(), parts: Vec::new() }
    }

    /// A line for people and a text for the model.
    pub fn for_model(about: NoteAbout, text: impl Into<String>, message: impl Into<String>) -> Self {
        Self { about, text: text.into(), parts: vec![Part::text(message)] }
    }
}
