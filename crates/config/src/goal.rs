//! `goal`: how far a chat may go by itself toward a goal.

use crate::cursor::Cursor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoalSettings {
    /// Answers of the model.
    pub max_steps: u64,
    pub max_minutes: u64,
}

impl GoalSettings {
    pub(crate) fn read(section: &Cursor) -> Self {
        Self {
            max_steps: section.get("maxSteps").number(1..=100_000).unwrap_or_default(),
            max_minutes: section.get("maxMinutes").number(1..=10_000).unwrap_or_default(),
        }
    }
}
