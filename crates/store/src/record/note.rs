//! The stored form of a note's subject, version 1.
//!
//! Must not know SQL or files. Invariants: as in `record`; a subject that this build does not know leaves the text of the
//! note, for people.

use domain::ItemId;
use domain::note::{Goal, GoalState, NoteAbout};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum NoteAboutV1 {
    Verification,
    Goal {
        condition: String,
        is_command: bool,
        max_steps: u32,
        max_millis: u64,
        steps: u32,
        millis: u64,
        state: GoalStateV1,
    },
    Instructions,
    ResultsCleared {
        before: u64,
    },
    Review,
    Report,
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum GoalStateV1 {
    Active,
    Audited,
    Paused,
    Reached,
    Spent,
    Off,
}

impl From<&NoteAbout> for NoteAboutV1 {
    fn from(about: &NoteAbout) -> Self {
        match about {
            NoteAbout::Verification => Self::Verification,
            NoteAbout::Goal(goal) => {
                let Goal { condition, is_command, max_steps, max_millis, steps, millis, state } = &**goal;
                Self::Goal {
                    condition: condition.clone(),
                    is_command: *is_command,
                    max_steps: *max_steps,
                    max_millis: *max_millis,
                    steps: *steps,
                    millis: *millis,
                    state: (*state).into(),
                }
            }
            NoteAbout::Instructions => Self::Instructions,
            NoteAbout::ResultsCleared { before } => Self::ResultsCleared { before: before.0 },
            NoteAbout::Review => Self::Review,
            NoteAbout::Report => Self::Report,
        }
    }
}

impl NoteAboutV1 {
    /// `None`: a later build wrote it.
    pub(super) fn into_domain(self) -> Option<NoteAbout> {
        Some(match self {
            Self::Verification => NoteAbout::Verification,
            Self::Goal { condition, is_command, max_steps, max_millis, steps, millis, state } => {
                let state = state.into();
                NoteAbout::Goal(Box::new(Goal {
                    condition,
                    is_command,
                    max_steps,
                    max_millis,
                    steps,
                    millis,
                    state,
                }))
            }
            Self::Instructions => NoteAbout::Instructions,
            Self::ResultsCleared { before } => NoteAbout::ResultsCleared { before: ItemId(before) },
            Self::Review => NoteAbout::Review,
            Self::Report => NoteAbout::Report,
            Self::Unknown => return None,
        })
    }
}

impl From<GoalState> for GoalStateV1 {
    fn from(state: GoalState) -> Self {
        match state {
            GoalState::Active => Self::Active,
            GoalState::Audited => Self::Audited,
            GoalState::Paused => Self::Paused,
            GoalState::Reached => Self::Reached,
            GoalState::Spent => Self::Spent,
            GoalState::Off => Self::Off,
        }
    }
}

impl From<GoalStateV1> for GoalState {
    fn from(state: GoalStateV1) -> Self {
        match state {
            GoalStateV1::Active => Self::Active,
            GoalStateV1::Audited => Self::Audited,
            GoalStateV1::Paused => Self::Paused,
            GoalStateV1::Reached => Self::Reached,
            GoalStateV1::Spent => Self::Spent,
            GoalStateV1::Off => Self::Off,
        }
    }
}
