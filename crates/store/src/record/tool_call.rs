//! The stored form of a tool call, version 1.
//!
//! Must not know SQL or files. Invariant: as in `record`.

use std::borrow::Cow;
use std::path::Path;

use domain::SessionId;
use domain::ids::AskId;
use domain::tool_call::{Details, FileChange, Location, ShellPart, ToolCall, ToolState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::convert::{all, borrow_all, owned};
use super::parts::{OriginV1, PartV1, PlanEntryV1, ProviderBlockV1, RejectedByV1};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ToolCallV1<'a> {
    #[serde(borrow)]
    call_id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    server: Cow<'a, str>,
    origin: OriginV1,
    #[serde(borrow, default)]
    input_text: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<Cow<'a, Value>>,
    state: ToolStateV1,
    #[serde(borrow, default)]
    summary: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    details: Option<DetailsV1<'a>>,
    #[serde(default)]
    manual_approval: bool,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    live_output: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    result: Vec<PartV1<'a>>,
    #[serde(default)]
    error: bool,
    #[serde(default)]
    millis: u64,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    locations: Vec<LocationV1<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    provider: Option<ProviderBlockV1<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct LocationV1<'a> {
    path: Cow<'a, Path>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum DetailsV1<'a> {
    #[serde(borrow)]
    FileChange(FileChangeV1<'a>),
    Shell {
        #[serde(borrow)]
        commands: Vec<ShellPartV1<'a>>,
    },
    Tasks {
        #[serde(borrow)]
        entries: Vec<PlanEntryV1<'a>>,
    },
    Json {
        jsons: Cow<'a, [String]>,
    },
    Subagent {
        #[serde(borrow)]
        session: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow)]
        model: Cow<'a, str>,
        step: u32,
        max_steps: u32,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct FileChangeV1<'a> {
    path: Cow<'a, Path>,
    #[serde(borrow)]
    diff: Cow<'a, str>,
    lines_added: u32,
    lines_removed: u32,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    old_text: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    new_text: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShellPartV1<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    remembered: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
enum ToolStateV1 {
    Preparing,
    Waiting { ask: u64 },
    Running,
    Done,
    Rejected { by: RejectedByV1 },
    Stopped { unknown: bool },
}

impl<'a> From<&'a ToolCall> for ToolCallV1<'a> {
    fn from(call: &'a ToolCall) -> Self {
        Self {
            call_id: (&call.call_id).into(),
            name: (&call.name).into(),
            server: (&call.server).into(),
            origin: call.origin.into(),
            input_text: (&call.input_text).into(),
            input: call.input.as_ref().map(Cow::Borrowed),
            state: (&call.state).into(),
            summary: (&call.summary).into(),
            details: call.details.as_ref().map(Into::into),
            manual_approval: call.manual_approval,
            live_output: (&call.live_output).into(),
            result: borrow_all(&call.result),
            error: call.error,
            millis: call.millis,
            locations: borrow_all(&call.locations),
            provider: call.provider.as_ref().map(Into::into),
        }
    }
}

impl From<ToolCallV1<'_>> for ToolCall {
    fn from(stored: ToolCallV1<'_>) -> Self {
        Self {
            call_id: stored.call_id.into_owned(),
            name: stored.name.into_owned(),
            server: stored.server.into_owned(),
            origin: stored.origin.into(),
            input_text: stored.input_text.into_owned(),
            input: stored.input.map(Cow::into_owned),
            state: stored.state.into(),
            summary: stored.summary.into_owned(),
            details: stored.details.map(Into::into),
            manual_approval: stored.manual_approval,
            live_output: stored.live_output.into_owned(),
            result: all(stored.result),
            error: stored.error,
            millis: stored.millis,
            locations: all(stored.locations),
            provider: stored.provider.map(Into::into),
        }
    }
}

impl<'a> From<&'a Location> for LocationV1<'a> {
    fn from(location: &'a Location) -> Self {
        Self { path: location.path.as_path().into(), line: location.line }
    }
}

impl From<LocationV1<'_>> for Location {
    fn from(stored: LocationV1<'_>) -> Self {
        Self { path: stored.path.into_owned(), line: stored.line }
    }
}

impl<'a> From<&'a Details> for DetailsV1<'a> {
    fn from(details: &'a Details) -> Self {
        match details {
            Details::FileChange(change) => Self::FileChange(change.into()),
            Details::Shell { commands } => Self::Shell { commands: borrow_all(commands) },
            Details::Tasks { entries } => Self::Tasks { entries: borrow_all(entries) },
            Details::Json { jsons } => Self::Json { jsons: jsons.into() },
            Details::Subagent { session, name, model, step, max_steps } => Self::Subagent {
                session: session.as_str().into(),
                name: name.into(),
                model: model.into(),
                step: *step,
                max_steps: *max_steps,
            },
        }
    }
}

impl From<DetailsV1<'_>> for Details {
    fn from(stored: DetailsV1<'_>) -> Self {
        match stored {
            DetailsV1::FileChange(change) => Self::FileChange(change.into()),
            DetailsV1::Shell { commands } => Self::Shell { commands: all(commands) },
            DetailsV1::Tasks { entries } => Self::Tasks { entries: all(entries) },
            DetailsV1::Json { jsons } => Self::Json { jsons: jsons.into_owned() },
            DetailsV1::Subagent { session, name, model, step, max_steps } => Self::Subagent {
                session: SessionId::new(session),
                name: name.into_owned(),
                model: model.into_owned(),
                step,
                max_steps,
            },
        }
    }
}

impl<'a> From<&'a FileChange> for FileChangeV1<'a> {
    fn from(change: &'a FileChange) -> Self {
        Self {
            path: change.path.as_path().into(),
            diff: (&change.diff).into(),
            lines_added: change.lines_added,
            lines_removed: change.lines_removed,
            old_text: change.old_text.as_deref().map(Into::into),
            new_text: change.new_text.as_deref().map(Into::into),
        }
    }
}

impl From<FileChangeV1<'_>> for FileChange {
    fn from(stored: FileChangeV1<'_>) -> Self {
        Self {
            path: stored.path.into_owned(),
            diff: stored.diff.into_owned(),
            lines_added: stored.lines_added,
            lines_removed: stored.lines_removed,
            old_text: owned(stored.old_text),
            new_text: owned(stored.new_text),
        }
    }
}

impl<'a> From<&'a ShellPart> for ShellPartV1<'a> {
    fn from(part: &'a ShellPart) -> Self {
        Self { key: (&part.key).into(), remembered: part.remembered }
    }
}

impl From<ShellPartV1<'_>> for ShellPart {
    fn from(stored: ShellPartV1<'_>) -> Self {
        Self { key: stored.key.into_owned(), remembered: stored.remembered }
    }
}

impl From<&ToolState> for ToolStateV1 {
    fn from(state: &ToolState) -> Self {
        match state {
            ToolState::Preparing => Self::Preparing,
            ToolState::Waiting { ask } => Self::Waiting { ask: ask.0 },
            ToolState::Running => Self::Running,
            ToolState::Done => Self::Done,
            ToolState::Rejected { by } => Self::Rejected { by: (*by).into() },
            ToolState::Stopped { unknown } => Self::Stopped { unknown: *unknown },
        }
    }
}

impl From<ToolStateV1> for ToolState {
    fn from(stored: ToolStateV1) -> Self {
        match stored {
            ToolStateV1::Preparing => Self::Preparing,
            ToolStateV1::Waiting { ask } => Self::Waiting { ask: AskId(ask) },
            ToolStateV1::Running => Self::Running,
            ToolStateV1::Done => Self::Done,
            ToolStateV1::Rejected { by } => Self::Rejected { by: by.into() },
            ToolStateV1::Stopped { unknown } => Self::Stopped { unknown },
        }
    }
}
