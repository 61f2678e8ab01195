//! One tool call: its data and its states as a pure state machine. Effects live in the engine.
//!
//! Invariant: a call ends exactly once, in `Done`, `Rejected` or `Stopped`, and never leaves such a state.

use std::path::PathBuf;

use serde_json::Value;

use crate::ids::{AskId, SessionId};
use crate::part::{Part, PlanEntry, ProviderBlock};

#[derive(Clone, PartialEq, Debug)]
pub struct ToolCall {
    /// The provider's id, sent back with the result. May be empty or repeated; the item's id is ours.
    pub call_id: String,
    /// The bare name: `read_file`.
    pub name: String,
    /// The server that offers it: `eca` for built-in tools, else the MCP server's name.
    pub server: String,
    pub origin: Origin,
    /// The arguments as the model streamed them.
    pub input_text: String,
    /// The arguments once they are whole; always an object. `None` while preparing or when they are not JSON.
    pub input: Option<Value>,
    pub state: ToolState,
    pub summary: String,
    pub details: Option<Details>,
    /// A person was asked (or is being asked) before it ran.
    pub manual_approval: bool,
    /// Output streamed while it ran, for people; bounded.
    pub live_output: String,
    /// The result for the model.
    pub result: Vec<Part>,
    /// The result is an error.
    pub error: bool,
    pub millis: u64,
    /// Files the call names, for clients that follow along.
    pub locations: Vec<Location>,
    pub provider: Option<ProviderBlock>,
}

impl ToolCall {
    /// A call that a model has begun.
    pub fn new(call_id: String, server: String, name: String, origin: Origin) -> Self {
        Self {
            call_id,
            name,
            server,
            origin,
            input_text: String::new(),
            input: None,
            state: ToolState::Preparing,
            summary: String::new(),
            details: None,
            manual_approval: false,
            live_output: String::new(),
            result: Vec::new(),
            error: false,
            millis: 0,
            locations: Vec::new(),
            provider: None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    Native,
    Mcp,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    pub path: PathBuf,
    /// 1-based.
    pub line: Option<u32>,
}

/// More about a call, for clients that show it in a form of its own.
#[derive(Clone, PartialEq, Debug)]
pub enum Details {
    FileChange(FileChange),
    /// The commands of a shell line and whether each is remembered for this session.
    Shell {
        commands: Vec<ShellPart>,
    },
    Tasks {
        entries: Vec<PlanEntry>,
    },
    Json {
        jsons: Vec<String>,
    },
    Subagent {
        session: SessionId,
        name: String,
        model: String,
        step: u32,
        max_steps: u32,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileChange {
    pub path: PathBuf,
    /// Unified diff.
    pub diff: String,
    pub lines_added: u32,
    pub lines_removed: u32,
    /// `None`: the file did not exist before. Left out of what is stored beyond 256 KiB.
    pub old_text: Option<String>,
    pub new_text: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShellPart {
    pub key: String,
    pub remembered: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ToolState {
    /// The model is still writing the arguments.
    Preparing,
    /// A person is asked.
    Waiting {
        ask: AskId,
    },
    /// It runs; an intent is in the journal.
    Running,
    Done,
    Rejected {
        by: RejectedBy,
    },
    /// It ended without an outcome of its own. `unknown`: it ran when the process died, nobody knows how far.
    Stopped {
        unknown: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RejectedBy {
    User,
    Policy,
    /// Policy would have asked, but nobody can be.
    Unasked,
    /// A hook of the user's.
    Hook,
}

/// What can happen to a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ToolInput {
    MustAsk {
        ask: AskId,
    },
    /// Policy or a person allowed it.
    Allowed,
    Refused {
        by: RejectedBy,
    },
    Finished,
    Stop,
    /// The process died; found at the next start.
    Crashed,
}

/// An input that a state does not take; the state is unchanged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a tool call that is {state:?} cannot take {input:?}")]
pub struct Illegal {
    pub state: ToolState,
    pub input: ToolInput,
}

impl ToolState {
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Done | Self::Rejected { .. } | Self::Stopped { .. })
    }
}

/// The whole life of a call.
pub fn next(state: &ToolState, input: ToolInput) -> Result<ToolState, Illegal> {
    use ToolInput as In;
    use ToolState as St;
    match (state, &input) {
        (St::Preparing, In::MustAsk { ask }) => Ok(St::Waiting { ask: *ask }),
        (St::Preparing | St::Waiting { .. }, In::Allowed) => Ok(St::Running),
        (St::Preparing | St::Waiting { .. }, In::Refused { by }) => Ok(St::Rejected { by: *by }),
        (St::Running, In::Finished) => Ok(St::Done),
        (St::Preparing | St::Waiting { .. } | St::Running, In::Stop) => Ok(St::Stopped { unknown: false }),
        (St::Running, In::Crashed) => Ok(St::Stopped { unknown: true }),
        (St::Preparing | St::Waiting { .. }, In::Crashed) => Ok(St::Stopped { unknown: false }),
        _ => Err(Illegal { state: state.clone(), input }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn input(number: u8) -> ToolInput {
        match number % 7 {
            0 => ToolInput::MustAsk { ask: AskId(1) },
            1 => ToolInput::Allowed,
            2 => ToolInput::Refused { by: RejectedBy::User },
            3 => ToolInput::Refused { by: RejectedBy::Policy },
            4 => ToolInput::Finished,
            5 => ToolInput::Stop,
            _ => ToolInput::Crashed,
        }
    }

    proptest! {
        #[test]
        fn every_path_ends_once_and_runs_at_most_once(inputs in prop::collection::vec(any::<u8>(), 0..24)) {
            let mut state = ToolState::Preparing;
            let mut runs = 0;
            let mut ends = 0;
            for number in inputs {
                let input = input(number);
                let before = state.clone();
                match next(&state, input.clone()) {
                    Ok(after) => {
                        prop_assert!(!before.is_over(), "{before:?} left by {input:?}");
                        prop_assert_ne!(&after, &before);
                        runs += u32::from(after == ToolState::Running);
                        ends += u32::from(after.is_over());
                        if matches!(after, ToolState::Stopped { unknown: true }) {
                            prop_assert_eq!(before, ToolState::Running);
                        }
                        state = after;
                    }
                    Err(illegal) => prop_assert_eq!(illegal.state, before),
                }
            }
            prop_assert!(runs <= 1 && ends <= 1);
            if !state.is_over() {
                prop_assert!(next(&state, ToolInput::Stop).is_ok(), "{state:?} cannot be stopped");
            }
        }
    }
}
