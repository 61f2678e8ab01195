//! The stored form of facts, version 1: the JSON in `facts.body` and in the lines of an exported chat.
//!
//! Must not know SQL or files. Invariants: these types alone decide which bytes are stored, so a change of a domain type
//! cannot change the format by accident; encoding borrows every text; every record that an earlier build wrote decodes,
//! also where the domain no longer has a word for it (see `decode`).

mod convert;
mod decode;
mod encode;
mod note;
mod parts;
mod stored;
mod tool_call;

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use domain::{Failure, Recorded};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use decode::decode_fact;
pub(crate) use encode::to_json;
use note::NoteAboutV1;
use parts::{ChannelV1, FailureKindV1, LevelV1, PartV1, PlanEntryV1, ProviderBlockV1};
pub use stored::Stored;
use tool_call::ToolCallV1;

/// One fact.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "camelCase")]
pub(crate) enum RecordV1<'a> {
    #[serde(borrow)]
    SessionOpened(SessionOpenedV1<'a>),
    SessionChanged {
        #[serde(borrow)]
        change: SettingsV1<'a>,
    },
    /// Only older versions wrote it.
    SessionClosed,
    TurnStarted {
        turn: u64,
        #[serde(borrow)]
        model: Cow<'a, str>,
    },
    TurnEnded {
        turn: u64,
        #[serde(borrow)]
        outcome: OutcomeV1<'a>,
    },
    ItemStarted {
        #[serde(borrow)]
        item: ItemV1<'a>,
    },
    ItemChanged {
        #[serde(borrow)]
        item: ItemV1<'a>,
    },
    ItemGrew(#[serde(borrow)] ItemGrewV1<'a>),
    ItemEnded {
        #[serde(borrow)]
        item: ItemV1<'a>,
    },
    HistoryReplaced {
        keep: Option<u64>,
    },
    AskRaised {
        #[serde(borrow)]
        ask: AskV1<'a>,
    },
    AskSettled {
        id: u64,
        #[serde(borrow)]
        answer: AnswerV1<'a>,
    },
    UsageChanged {
        #[serde(borrow)]
        usage: UsageV1<'a>,
    },
    Notice {
        #[serde(borrow)]
        notice: NoticeV1<'a>,
    },
    TaintChanged {
        #[serde(default)]
        sources: Cow<'a, [String]>,
        #[serde(default)]
        secrets: Cow<'a, [String]>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionOpenedV1<'a> {
    workspace: Vec<Cow<'a, Path>>,
    #[serde(borrow)]
    settings: SettingsV1<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    parent: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    client: Cow<'a, str>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SettingsV1<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    behavior: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    variant: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<bool>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub(crate) enum OutcomeV1<'a> {
    Done,
    Stopped,
    MaxTokens,
    MaxSteps,
    Repeating,
    Refused {
        #[serde(borrow)]
        reason: Cow<'a, str>,
    },
    Failed {
        #[serde(borrow)]
        failure: FailureV1<'a>,
    },
    Interrupted,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FailureV1<'a> {
    kind: FailureKindV1,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    hint: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<Duration>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ItemGrewV1<'a> {
    item: u64,
    channel: ChannelV1,
    offset: u64,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ItemV1<'a> {
    id: u64,
    turn: u64,
    #[serde(default)]
    step: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    #[serde(borrow)]
    kind: ItemKindV1<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum ItemKindV1<'a> {
    UserMessage {
        #[serde(borrow)]
        text: Cow<'a, str>,
        #[serde(borrow)]
        parts: Vec<PartV1<'a>>,
    },
    AgentMessage {
        #[serde(borrow)]
        text: Cow<'a, str>,
        #[serde(default)]
        interrupted: bool,
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        provider: Option<ProviderBlockV1<'a>>,
    },
    Reasoning {
        #[serde(borrow)]
        text: Cow<'a, str>,
        #[serde(default)]
        millis: u64,
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        provider: Option<ProviderBlockV1<'a>>,
    },
    #[serde(borrow)]
    ToolCall(Box<ToolCallV1<'a>>),
    Citation {
        #[serde(borrow)]
        title: Cow<'a, str>,
        #[serde(borrow)]
        url: Cow<'a, str>,
    },
    /// Only older versions wrote it.
    Plan {
        #[serde(borrow)]
        entries: Vec<PlanEntryV1<'a>>,
    },
    Compaction {
        #[serde(borrow)]
        summary: Cow<'a, str>,
        #[serde(borrow, default)]
        kept: Vec<PartV1<'a>>,
    },
    /// Only older versions wrote it. Its `session` is not read.
    Subagent {
        #[serde(borrow)]
        name: Cow<'a, str>,
    },
    /// Only older versions wrote it. Its `kind` and `status` are not read.
    Hook {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow, default)]
        output: Cow<'a, str>,
    },
    /// Only older versions wrote it.
    Flag {
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    HookRun {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<i32>,
        #[serde(borrow, default)]
        output: Cow<'a, str>,
        #[serde(borrow, default)]
        error: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<u64>,
    },
    Bookmark {
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    Command {
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    SystemText {
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    Note {
        about: NoteAboutV1,
        #[serde(borrow)]
        text: Cow<'a, str>,
        #[serde(borrow, default)]
        parts: Vec<PartV1<'a>>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AskV1<'a> {
    id: u64,
    turn: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<u64>,
    #[serde(borrow)]
    kind: AskKindV1<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum AskKindV1<'a> {
    Approval {
        #[serde(borrow)]
        reason: Cow<'a, str>,
        #[serde(default)]
        keys: Cow<'a, [String]>,
    },
    Question {
        #[serde(borrow)]
        text: Cow<'a, str>,
        #[serde(borrow, default)]
        options: Vec<ChoiceV1<'a>>,
        freeform: bool,
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        url: Option<Cow<'a, str>>,
    },
    Form {
        #[serde(borrow)]
        text: Cow<'a, str>,
        schema: Cow<'a, Value>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChoiceV1<'a> {
    #[serde(borrow)]
    label: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum AnswerV1<'a> {
    Allow {
        remember: bool,
    },
    Deny {
        remember: bool,
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        reason: Option<Cow<'a, str>>,
    },
    Text {
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    Form {
        data: Cow<'a, Value>,
    },
    Cancelled,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct UsageV1<'a> {
    last: TokensV1,
    total: TokensV1,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<ContextUseV1>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    spent: Vec<SpentV1<'a>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    breaks: Vec<PrefixBreakV1<'a>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContextUseV1 {
    system_prompt: u64,
    rules: u64,
    skills: u64,
    instructions: u64,
    tool_definitions: u64,
    tool_calls: u64,
    conversation: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TokensV1 {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SpentV1<'a> {
    #[serde(borrow)]
    purpose: Cow<'a, str>,
    #[serde(borrow)]
    model: Cow<'a, str>,
    calls: u64,
    tokens: TokensV1,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PrefixBreakV1<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NoticeV1<'a> {
    level: LevelV1,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// A fact with its number and time: a line of an exported chat.
#[derive(Serialize, Deserialize)]
struct NumberedV1<'a> {
    number: u64,
    at: u64,
    #[serde(borrow)]
    fact: RecordV1<'a>,
}

/// The line of an exported chat that holds this fact, without the line's end.
pub fn export_line(recorded: &Recorded) -> Result<String, Failure> {
    let Recorded { number, at, fact } = recorded;
    to_json(&NumberedV1 { number: *number, at: *at, fact: fact.into() })
}

/// Reads a line that [`export_line`] of this or an earlier build wrote. The error names the kind of the mistake.
pub fn import_line(line: &str) -> Result<Recorded, String> {
    let NumberedV1 { number, at, fact } = serde_json::from_str(line).map_err(|error| error.to_string())?;
    Ok(Recorded { number, at, fact: fact.into() })
}
