//! The notifications and requests that the server sends, each as a type.
//!
//! Knows no chat. Invariant: a notification's name and its parameters are one type; a request's answer has a type.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::contents::ContentReceived;
use super::draft::DraftContent;
use super::{ChatKey, LinePosition, Range};

/// A notification to the client.
pub(crate) trait Notification: Serialize {
    const NAME: &'static str;
}

/// The method of both kinds of contents.
const CONTENT_RECEIVED: &str = "chat/contentReceived";

/// The notifications that a projection makes.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are contents, and none is kept")]
pub(crate) enum Outbound<'a> {
    Content(ContentReceived<'a>),
    Draft(DraftContent<'a>),
    Status(StatusChanged),
    Config(Box<ConfigUpdated>),
    Message(ShowMessage),
}

impl Notification for ContentReceived<'_> {
    const NAME: &'static str = CONTENT_RECEIVED;
}

impl Notification for DraftContent<'_> {
    const NAME: &'static str = CONTENT_RECEIVED;
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusChanged {
    pub chat_id: ChatKey,
    pub status: &'static str,
}

/// A content of a rewrite.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RewriteReceived<'a> {
    pub rewrite_id: &'a str,
    pub content: RewriteContent<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum RewriteContent<'a> {
    Started,
    Text { text: &'a str },
    Replace { text: &'a str },
    Error { message: String },
    Finished { total_time_ms: u64 },
}

impl Notification for RewriteReceived<'_> {
    const NAME: &'static str = "rewrite/contentReceived";
}

impl Notification for StatusChanged {
    const NAME: &'static str = "chat/statusChanged";
}

#[derive(Debug, Serialize)]
pub(crate) struct ShowMessage {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub message: String,
}

impl Notification for ShowMessage {
    const NAME: &'static str = "$/showMessage";
}

/// A task of the start. Every start has its finish.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitProgress {
    #[serde(rename = "type")]
    kind: &'static str,
    task_id: &'static str,
    title: &'static str,
}

impl InitProgress {
    pub(crate) fn start(task_id: &'static str, title: &'static str) -> Self {
        Self { kind: "start", task_id, title }
    }

    pub(crate) fn finish(task_id: &'static str, title: &'static str) -> Self {
        Self { kind: "finish", task_id, title }
    }
}

impl Notification for InitProgress {
    const NAME: &'static str = "$/progress";
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Opened {
    pub chat_id: ChatKey,
    pub title: String,
}

impl Notification for Opened {
    const NAME: &'static str = "chat/opened";
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cleared {
    pub chat_id: ChatKey,
    pub messages: bool,
}

impl Notification for Cleared {
    const NAME: &'static str = "chat/cleared";
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Deleted {
    pub chat_id: ChatKey,
}

impl Notification for Deleted {
    const NAME: &'static str = "chat/deleted";
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigUpdated {
    /// The update is about one chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatKey>,
    pub chat: ChatConfig,
}

impl Notification for ConfigUpdated {
    const NAME: &'static str = "config/updated";
}

/// Models, behaviors and defaults in both vocabularies. An absent member did not change: a client overwrites its
/// selection with a null.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChatConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variants: Option<Vec<String>>,
    /// `Some(None)` clears the selection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_variant: Option<Option<String>>,
    /// Of one chat; for all of them it is in `behaviors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_trust: Option<bool>,
    #[serde(flatten)]
    pub behaviors: Option<BehaviorConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub welcome_message: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BehaviorConfig {
    pub behaviors: Vec<String>,
    pub agents: Vec<String>,
    pub select_behavior: String,
    pub select_agent: String,
    pub default_behavior: String,
    pub default_agent: String,
}

/// A tool server as clients list it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct ServerUpdated {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub name: String,
    pub status: &'static str,
    pub tools: Vec<OfferedTool>,
    #[serde(flatten)]
    pub mcp: Option<McpDetails>,
}

impl ServerUpdated {
    /// The same server a moment before.
    pub(crate) fn as_starting(&self) -> Self {
        let nothing = |mcp| McpDetails { error: None, prompts: Vec::new(), resources: Vec::new(), ..mcp };
        let mcp = self.mcp.clone().map(nothing);
        Self { status: "starting", tools: Vec::new(), mcp, name: self.name.clone(), kind: self.kind }
    }
}

impl Notification for ServerUpdated {
    const NAME: &'static str = "tool/serverUpdated";
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct OfferedTool {
    pub name: String,
    pub description: String,
    pub parameters: Value,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct McpDetails {
    pub command: String,
    pub args: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub disabled: bool,
    pub has_auth: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<OfferedPrompt>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<OfferedResource>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct OfferedPrompt {
    pub name: String,
    pub description: String,
    pub arguments: Vec<OfferedArgument>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct OfferedArgument {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub required: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfferedResource {
    pub uri: String,
    pub name: String,
    pub description: String,
    pub mime_type: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct ServerRemoved {
    pub name: String,
}

impl Notification for ServerRemoved {
    const NAME: &'static str = "tool/serverRemoved";
}

// Requests to the editor.

pub(crate) const GET_DIAGNOSTICS: &str = "editor/getDiagnostics";
pub(crate) const GET_DEFINITION: &str = "editor/getDefinition";
pub(crate) const GET_REFERENCES: &str = "editor/getReferences";
pub(crate) const ASK_QUESTION: &str = "chat/askQuestion";

#[derive(Debug, Serialize)]
pub(crate) struct DiagnosticsParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LocationParams {
    pub uri: String,
    pub position: LinePosition,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_declaration: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuestionParams {
    pub chat_id: ChatKey,
    pub question: String,
    pub options: Vec<QuestionOption>,
    pub allow_freeform: bool,
    pub tool_call_id: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct QuestionOption {
    pub label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DiagnosticsResult {
    pub diagnostics: Option<Vec<Diagnostic>>,
    /// Emacs reports its own failures in the result.
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
    /// `error`, where the editor could not look.
    pub status: Option<String>,
    pub message: Option<String>,
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
