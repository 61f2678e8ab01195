//! The events of `dragoman run --json`, one per line, and the object of `--output json`.
//!
//! docs/run.md documents them, docs/run-events.schema.json is their JSON Schema. Invariant: a member keeps its meaning
//! while the version stays the same.

use domain::event::SessionUsage;
use domain::model::Tokens;
use serde::Serialize;
use serde_json::Value;

/// Increases when a member disappears or changes its meaning, not when one is added.
pub const EVENT_VERSION: u32 = 1;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum RunEvent<'a> {
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
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<&'a Value>,
        /// The result that the model receives, once the call has ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// The unified diff of a change to a file.
        #[serde(skip_serializing_if = "Option::is_none")]
        diff: Option<&'a str>,
    },
    /// The step that the turn waits for.
    Progress {
        text: &'a str,
    },
    Notice {
        text: &'a str,
    },
    Usage(UsageMembers),
    /// With `--input stream-json`: a question, which a line of the input answers.
    Ask {
        ask: u64,
        /// `approval`, `question` or `form`.
        kind: &'static str,
        text: &'a str,
        /// The call that waits.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<&'a Value>,
        /// What `remember` would allow for the rest of the chat.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        remembers: Vec<&'a str>,
        /// The answers to choose from.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        options: Vec<&'a str>,
        /// The JSON Schema of a form.
        #[serde(skip_serializing_if = "Option::is_none")]
        schema: Option<&'a Value>,
    },
    /// With `--input stream-json`: the end of the answer to one prompt.
    Turn {
        outcome: &'static str,
        message: Option<&'a str>,
        text: &'a str,
    },
    /// Always the last line.
    End {
        outcome: &'static str,
        exit: u8,
        message: Option<&'a str>,
        /// The final text of the answer.
        text: &'a str,
        /// The answer as JSON, if `--output-schema` was given and the answer matches it.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Value>,
    },
}

/// The tokens and the cost of the chat so far.
#[derive(Debug, Default, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageMembers {
    /// The tokens of the last request: the size of the context.
    tokens: u64,
    /// Dollars; null if the model has no price.
    cost: Option<f64>,
    last: TokenMembers,
    total: TokenMembers,
}

/// Tokens by kind.
#[derive(Debug, Default, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenMembers {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
}

/// The object of `--output json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary<'a> {
    pub(crate) version: u32,
    pub(crate) session: &'a str,
    pub(crate) model: &'a str,
    pub(crate) outcome: &'static str,
    pub(crate) exit: u8,
    pub(crate) message: Option<&'a str>,
    pub(crate) text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<&'a Value>,
    pub(crate) usage: &'a UsageMembers,
}

impl UsageMembers {
    pub(crate) fn cost(&self) -> Option<f64> {
        self.cost
    }

    pub(crate) fn new(usage: &SessionUsage) -> Self {
        Self {
            tokens: usage.last.all(),
            cost: usage.session_cost,
            last: TokenMembers::new(&usage.last),
            total: TokenMembers::new(&usage.total),
        }
    }
}

impl TokenMembers {
    fn new(tokens: &Tokens) -> Self {
        let Tokens { input, cache_read, cache_write, output, reasoning } = *tokens;
        Self { input, cache_read, cache_write, output, reasoning }
    }
}

impl<'a> RunEvent<'a> {
    /// The only event of a run that could not start.
    pub(crate) fn never_started(outcome: &'static str, exit: u8, message: &'a str) -> Self {
        RunEvent::End { outcome, exit, message: Some(message), text: "", result: None }
    }
}

impl<'a> Summary<'a> {
    /// The object of a run that could not start.
    pub(crate) fn never_started(
        outcome: &'static str,
        exit: u8,
        message: &'a str,
        usage: &'a UsageMembers,
    ) -> Self {
        Self {
            version: EVENT_VERSION,
            session: "",
            model: "",
            outcome,
            exit,
            message: Some(message),
            text: "",
            result: None,
            usage,
        }
    }
}
