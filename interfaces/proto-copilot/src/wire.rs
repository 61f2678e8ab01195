//! The contract's messages as they are written. Plain data: no rule of the contract is decided here.
//!
//! Invariant: unknown members are ignored; missing members have the contract's default.

use rpc::Id;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The names of the methods.
pub(crate) mod method {
    pub(crate) const INITIALIZE: &str = "initialize";
    pub(crate) const GENERATE: &str = "generate";
    pub(crate) const CUSTOMIZE: &str = "customize";
    pub(crate) const CHAT: &str = "chat";
    pub(crate) const EXIT: &str = "exit";
    pub(crate) const STREAM_CHUNK: &str = "stream/chunk";
}

/// The codes beside those of JSON-RPC itself.
pub(crate) mod code {
    pub(crate) const GENERATION_FAILED: i64 = -32000;
    pub(crate) const CUSTOMIZATION_FAILED: i64 = -32001;
    pub(crate) const SPEC_INVALID: i64 = -32002;
    pub(crate) const CONTEXT_TOO_LARGE: i64 = -32003;
    pub(crate) const RATE_LIMITED: i64 = -32004;
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct InitializeParams {
    pub client_name: Option<String>,
    pub client_version: Option<String>,
    pub capabilities: Option<ClientCapabilities>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClientCapabilities {
    pub streaming: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeResult {
    pub server_name: &'static str,
    pub server_version: &'static str,
    pub capabilities: ServerCapabilities,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerCapabilities {
    pub code_generation: bool,
    pub customization: bool,
    pub streaming: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct GenerateParams<'a> {
    /// The host's NormalizedSpec, or a raw document as a text or an object.
    #[serde(borrow, default)]
    pub spec: Option<&'a RawValue>,
    #[serde(default)]
    pub format: Option<String>,
    #[serde(default)]
    pub theme: Option<String>,
    #[serde(default)]
    pub options: Option<GenerateOptions>,
    /// A wish that the first version fulfills, if it can.
    #[serde(default)]
    pub prompt: Option<String>,
    #[serde(default)]
    pub tools: Vec<OfferedTool>,
    #[serde(default, rename = "toolResults")]
    pub tool_results: Vec<ToolOutcome>,
}

/// Tools that the host can call, and what calls brought so far. Both are additions to the contract.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub offered: Vec<OfferedTool>,
    pub results: Vec<ToolOutcome>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OfferedTool {
    pub server: String,
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

/// A call that the host made, or that its user did not allow.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ToolOutcome {
    pub server: String,
    pub name: String,
    pub arguments: Value,
    pub result: String,
    pub is_error: bool,
    pub is_denied: bool,
}

/// One call that the host is asked to make, if its user allows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ToolCall {
    pub server: String,
    pub name: String,
    pub arguments: Value,
    pub reason: String,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GenerateOptions {
    pub layout: Option<String>,
    pub include_auth: Option<bool>,
    pub pagination: Option<bool>,
}

/// What `generate` answers: code, or a tool call that its wish needs.
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum GenerateResult {
    Generated { code: String, component_count: usize, description: String, assumptions: Vec<String> },
    NeedsTool { code: (), tool_call: ToolCall },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StreamChunk<'a> {
    pub request_id: &'a Id,
    pub chunk: &'a str,
    pub done: bool,
    pub index: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CustomizeParams<'a> {
    pub current_code: String,
    pub prompt: String,
    #[serde(borrow, default)]
    pub spec: Option<&'a RawValue>,
    #[serde(default)]
    pub history: Option<Vec<Message>>,
    #[serde(default)]
    pub tools: Vec<OfferedTool>,
    #[serde(default, rename = "toolResults")]
    pub tool_results: Vec<ToolOutcome>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    #[serde(default)]
    pub role: String,
    #[serde(default)]
    pub content: Value,
}

/// What `customize` answers: changed code, a question, or a tool call that the wish needs.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum CustomizeResult {
    Changed { code: String, description: String, assumptions: Vec<String>, clarification_needed: bool },
    Clarify { code: (), clarification_needed: bool, question: String, options: Vec<String> },
    NeedsTool { code: (), clarification_needed: bool, tool_call: ToolCall },
}

impl CustomizeResult {
    pub(crate) fn changed(code: String, description: String, assumptions: Vec<String>) -> Self {
        Self::Changed { code, description, assumptions, clarification_needed: false }
    }

    pub(crate) fn clarify(question: String, options: Vec<String>) -> Self {
        Self::Clarify { code: (), clarification_needed: true, question, options }
    }

    pub(crate) fn needs_tool(tool_call: ToolCall) -> Self {
        Self::NeedsTool { code: (), clarification_needed: false, tool_call }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChatParams {
    pub message: String,
    #[serde(default)]
    pub context: Option<ChatContext>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ChatContext {
    pub has_active_spec: bool,
    pub has_active_interface: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ChatResult {
    pub message: String,
    pub suggestions: Vec<String>,
}
