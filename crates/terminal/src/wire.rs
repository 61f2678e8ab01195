//! `dragoman run --json`: one event a line, stable, with a version in the first. Documented in docs/run.md.

use domain::Failure;
use domain::event::SessionUsage;
use serde::Serialize;
use serde_json::Value;

/// Raised when a member is removed or changes its meaning; additions do not count.
pub const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Line<'a> {
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
    /// Once for each state a call reaches: `running`, `done`, `rejected`, `stopped`.
    Tool {
        id: String,
        name: String,
        state: &'static str,
        summary: &'a str,
        error: bool,
    },
    /// What is being waited for.
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
        /// The answer, where `--output-schema` was given and it fits.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
}

impl<'a> Line<'a> {
    pub fn usage(usage: &SessionUsage) -> Line<'a> {
        Line::Usage { tokens: usage.last.all(), cost: usage.session_cost }
    }

    /// The end of a run that never began.
    pub fn failed(exit: u8, failure: &Failure) -> Line<'a> {
        Line::End { outcome: "failed", exit, message: Some(failure.to_string()), result: None }
    }
}
