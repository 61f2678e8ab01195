//! `dragoman run --json`: one event per line, with a format version in the first event. docs/run.md documents it.

use domain::Failure;
use domain::event::SessionUsage;
use serde::Serialize;
use serde_json::Value;

/// Increases when a member disappears or changes its meaning, not when one is added.
pub const EVENT_VERSION: u32 = 1;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunEvent<'a> {
    /// Always the first line.
    Start {
        version: u32,
        session: &'a str,
        model: &'a str,
    },
    Text {
        text: &'a str,
    },
    Reasoning {
        text: &'a str,
    },
    /// Printed once for each state that a call reaches: `running`, `done`, `rejected`, `stopped`.
    Tool {
        id: String,
        name: String,
        state: &'static str,
        summary: &'a str,
        error: bool,
    },
    /// The step that the turn waits for.
    Progress {
        text: &'a str,
    },
    Notice {
        text: &'a str,
    },
    Usage {
        tokens: u64,
        cost: Option<f64>,
    },
    /// Always the last line.
    End {
        outcome: &'static str,
        exit: u8,
        message: Option<String>,
        /// The answer as JSON, if `--output-schema` was given and the answer matches it.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
}

impl<'a> RunEvent<'a> {
    pub fn usage(usage: &SessionUsage) -> RunEvent<'a> {
        RunEvent::Usage { tokens: usage.last.all(), cost: usage.session_cost }
    }

    /// The only event of a run that could not start.
    pub fn failed(exit: u8, failure: &Failure) -> RunEvent<'a> {
        RunEvent::End { outcome: "failed", exit, message: Some(failure.to_string()), result: None }
    }
}
