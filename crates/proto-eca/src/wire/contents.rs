//! The contents of `chat/contentReceived`.
//!
//! Knows no event. Invariant: a content carries what the protocol's page names; members that only some clients read
//! are marked with the client.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::ChatId;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContentReceived<'a> {
    pub chat_id: ChatId<'a>,
    /// The chat that a subagent works for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_chat_id: Option<String>,
    pub role: Role,
    pub content: Content<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Role {
    User,
    System,
    Assistant,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Content<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content_id: Option<String>,
    },
    Image {
        media_type: &'a str,
        base64: &'a str,
    },
    Progress {
        state: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Cow<'a, str>>,
    },
    Usage(Usage),
    ReasonStarted {
        id: String,
    },
    ReasonText {
        id: String,
        text: Cow<'a, str>,
    },
    ReasonFinished {
        id: String,
        total_time_ms: u64,
    },
    Url {
        title: &'a str,
        url: &'a str,
    },
    Metadata {
        title: Cow<'a, str>,
    },
    HookActionStarted {
        id: String,
        name: &'a str,
        action_type: &'static str,
    },
    HookActionFinished {
        id: String,
        name: &'a str,
        action_type: &'static str,
        status: i32,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<String>,
    },
    Flag {
        text: &'a str,
        content_id: String,
    },
    ToolCallPrepare {
        #[serde(flatten)]
        call: CallHead<'a>,
        arguments_text: Cow<'a, str>,
    },
    ToolCallRun {
        #[serde(flatten)]
        call: CallHead<'a>,
        arguments: Cow<'a, Value>,
        manual_approval: bool,
    },
    ToolCallRunning {
        #[serde(flatten)]
        call: CallHead<'a>,
        arguments: Cow<'a, Value>,
    },
    ToolCalled {
        #[serde(flatten)]
        call: CallHead<'a>,
        arguments: Cow<'a, Value>,
        error: bool,
        outputs: Vec<CallOutput<'a>>,
        total_time_ms: u64,
    },
    ToolCallRejected {
        #[serde(flatten)]
        call: CallHead<'a>,
        arguments: Cow<'a, Value>,
        reason: &'static str,
    },
}

/// The members of every content about a tool call.
#[derive(Debug, Serialize)]
pub(crate) struct CallHead<'a> {
    pub id: String,
    pub name: Cow<'a, str>,
    pub server: Cow<'a, str>,
    pub origin: &'static str,
    pub summary: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<CallDetails<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum CallDetails<'a> {
    FileChange {
        path: Cow<'a, str>,
        diff: &'a str,
        lines_added: u32,
        lines_removed: u32,
    },
    ShellCommand {
        commands: Vec<ShellCommand<'a>>,
        /// Empty; eca-nvim of 2025 reads it of every kind of details.
        diff: &'static str,
        /// The command in one line that is not empty: eca-nvim of 2025-09 puts it above the diff, and crashes without it.
        path: Cow<'a, str>,
    },
    Task {
        tasks: Vec<TaskItem<'a>>,
        in_progress_task_ids: Vec<usize>,
        summary: TaskCounts,
    },
    JsonOutputs {
        jsons: &'a [String],
    },
    Subagent {
        subagent_chat_id: &'a str,
        agent_name: &'a str,
        model: &'a str,
        step: u32,
        max_steps: u32,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShellCommand<'a> {
    pub command: String,
    pub args: Vec<String>,
    pub approval_key: &'a str,
    pub remembered: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskItem<'a> {
    pub id: usize,
    pub subject: &'a str,
    pub description: &'static str,
    pub status: &'static str,
    pub priority: &'a str,
    pub is_blocked: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskCounts {
    pub done: usize,
    pub in_progress: usize,
    pub pending: usize,
    pub total: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct CallOutput<'a> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub text: Cow<'a, str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Usage {
    pub session_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message_cost: Option<String>,
    /// Emacs reads this name, the web view the one above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_cost: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_cost: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<TokenLimits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_breakdown: Option<ContextBreakdown>,
}

/// What fills the context window. Clients draw it with these colors.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContextBreakdown {
    pub categories: Vec<ContextCategory>,
    pub used_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_tokens: Option<u64>,
    pub free_color: &'static str,
    pub free_emoji: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_limit: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ContextCategory {
    pub name: &'static str,
    pub tokens: u64,
    pub color: &'static str,
    pub emoji: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct TokenLimits {
    pub context: u64,
    pub output: u64,
}
