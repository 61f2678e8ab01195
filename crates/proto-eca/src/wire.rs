//! ECA's messages as plain data: what is read and what is written, and the names of the methods.
//!
//! Knows no engine and no chat. Invariants: the same types read the messages of every generation of clients
//! (unknown members ignored, `null` and absent alike); costs are strings, statuses numbers, arguments objects,
//! because real clients break otherwise.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) mod method {
    //! Names of what we send.
    pub(crate) const CONTENT_RECEIVED: &str = "chat/contentReceived";
    pub(crate) const CHAT_OPENED: &str = "chat/opened";
    pub(crate) const CHAT_CLEARED: &str = "chat/cleared";
    pub(crate) const CHAT_DELETED: &str = "chat/deleted";
    pub(crate) const STATUS_CHANGED: &str = "chat/statusChanged";
    pub(crate) const CONFIG_UPDATED: &str = "config/updated";
    pub(crate) const SERVER_UPDATED: &str = "tool/serverUpdated";
    pub(crate) const SHOW_MESSAGE: &str = "$/showMessage";
    pub(crate) const GET_DIAGNOSTICS: &str = "editor/getDiagnostics";
    pub(crate) const GET_DEFINITION: &str = "editor/getDefinition";
    pub(crate) const GET_REFERENCES: &str = "editor/getReferences";
    pub(crate) const ASK_QUESTION: &str = "chat/askQuestion";
}

// What clients send.

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct InitializeParams {
    pub process_id: Option<i64>,
    pub client_info: Option<ClientInfo>,
    pub initialization_options: Option<Value>,
    pub capabilities: Option<Capabilities>,
    pub workspace_folders: Option<Vec<WorkspaceFolder>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClientInfo {
    pub name: Option<String>,
    pub version: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Capabilities {
    pub code_assistant: Option<CodeAssistant>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CodeAssistant {
    pub chat_capabilities: Option<ChatCapabilities>,
    pub editor: Option<EditorCapabilities>,
    // Only the draft protocol has these.
    pub doc: Option<bool>,
    pub edit: Option<bool>,
    pub fix: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ChatCapabilities {
    pub ask_question: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EditorCapabilities {
    pub diagnostics: Option<bool>,
    pub definition: Option<bool>,
    pub references: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WorkspaceFolder {
    pub uri: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PromptParams {
    pub chat_id: Option<String>,
    pub message: String,
    pub model: Option<String>,
    pub behavior: Option<String>,
    pub agent: Option<String>,
    pub variant: Option<String>,
    pub trust: Option<bool>,
    pub contexts: Option<Vec<Context>>,
    /// The draft's name for `contexts`.
    pub context: Option<Vec<Context>>,
}

/// Every context of the three generations of clients; `kind` says which members count.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Context {
    #[serde(rename = "type")]
    pub kind: String,
    pub path: Option<String>,
    pub lines_range: Option<LinesRange>,
    pub selection: Option<Selection>,
    pub cursor: Option<LinePosition>,
    pub url: Option<String>,
    pub position: Option<Range>,
    pub uri: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    pub server: Option<String>,
    pub content: Option<String>,
    pub text: Option<String>,
    pub language: Option<String>,
    pub media_type: Option<String>,
    pub base64: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
pub(crate) struct LinesRange {
    pub start: u32,
    pub end: u32,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Selection {
    pub start_line: u32,
    pub end_line: u32,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
pub(crate) struct LinePosition {
    pub line: u32,
    pub character: u32,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
pub(crate) struct Range {
    pub start: LinePosition,
    pub end: LinePosition,
}

/// The members of all small requests and notifications about a chat.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ChatParams {
    pub chat_id: Option<String>,
    pub tool_call_id: Option<String>,
    pub content_id: Option<String>,
    pub save: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub title: Option<String>,
    pub trust: Option<bool>,
    pub model: Option<String>,
    pub variant: Option<String>,
    pub behavior: Option<String>,
    pub agent: Option<String>,
    pub query: Option<String>,
    pub name: Option<String>,
    pub limit: Option<usize>,
    pub contexts: Option<Vec<Context>>,
}

// What we send.

/// A notification on its way to the client.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Out<'a> {
    Content(ContentReceived<'a>),
    Draft(crate::draft::DraftContent<'a>),
    Plain { method: &'static str, params: Value },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContentReceived<'a> {
    pub chat_id: &'a str,
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
        title: &'a str,
    },
    ToolCallPrepare {
        #[serde(flatten)]
        call: Call<'a>,
        arguments_text: Cow<'a, str>,
    },
    ToolCallRun {
        #[serde(flatten)]
        call: Call<'a>,
        arguments: Cow<'a, Value>,
        manual_approval: bool,
    },
    ToolCallRunning {
        #[serde(flatten)]
        call: Call<'a>,
        arguments: Cow<'a, Value>,
    },
    ToolCalled {
        #[serde(flatten)]
        call: Call<'a>,
        arguments: Cow<'a, Value>,
        error: bool,
        outputs: Vec<Output<'a>>,
        total_time_ms: u64,
    },
    ToolCallRejected {
        #[serde(flatten)]
        call: Call<'a>,
        arguments: Cow<'a, Value>,
        reason: &'static str,
    },
}

/// What every tool content has.
#[derive(Debug, Serialize)]
pub(crate) struct Call<'a> {
    pub id: String,
    pub name: Cow<'a, str>,
    pub server: Cow<'a, str>,
    pub origin: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub summary: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Output<'a> {
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
    pub limit: Option<Limit>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Limit {
    pub context: u64,
    pub output: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeResult {
    /// Without this string no client opens its chat window.
    pub chat_welcome_message: String,
}

/// An empty object, `{}`.
pub(crate) fn empty() -> Value {
    Value::Object(Map::new())
}

// What clients answer.

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DiagnosticsResult {
    pub diagnostics: Option<Vec<Diagnostic>>,
    /// Emacs reports its own failures in the result.
    pub status: Option<String>,
    pub message: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Diagnostic {
    pub uri: String,
    #[serde(default)]
    pub severity: Option<String>,
    #[serde(default)]
    pub source: Option<String>,
    pub range: Range,
    #[serde(default)]
    pub code: Option<Value>,
    pub message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LocationsResult {
    pub locations: Option<Vec<Location>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Location {
    pub uri: String,
    pub range: Range,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct QuestionResult {
    pub answer: Option<String>,
    pub cancelled: Option<bool>,
}
