//! The contract's messages as they are written. Plain data: no rule of the contract is decided here.
//!
//! Invariant: whatever a host adds is passed over; what it leaves out has the contract's default.

use rpc::Id;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The names of the methods.
pub mod method {
    pub const INITIALIZE: &str = "initialize";
    pub const GENERATE: &str = "generate";
    pub const CUSTOMIZE: &str = "customize";
    pub const CHAT: &str = "chat";
    pub const EXIT: &str = "exit";
    pub const STREAM_CHUNK: &str = "stream/chunk";
}

/// The codes beside those of JSON-RPC itself.
pub mod code {
    pub const GENERATION_FAILED: i64 = -32000;
    pub const CUSTOMIZATION_FAILED: i64 = -32001;
    pub const SPEC_INVALID: i64 = -32002;
    pub const CONTEXT_TOO_LARGE: i64 = -32003;
    pub const RATE_LIMITED: i64 = -32004;
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitializeParams {
    pub client_name: Option<String>,
    pub client_version: Option<String>,
    pub capabilities: Option<ClientCapabilities>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientCapabilities {
    pub streaming: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    pub server_name: &'static str,
    pub server_version: &'static str,
    pub capabilities: ServerCapabilities,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    pub code_generation: bool,
    pub customization: bool,
    pub streaming: bool,
}

#[derive(Debug, Deserialize)]
pub struct GenerateParams<'a> {
    /// The host's NormalizedSpec, or a raw document as a text or an object.
    #[serde(borrow, default)]
    pub spec: Option<&'a RawValue>,
    #[serde(default)]
    pub format: Option<String>,
    #[serde(default)]
    pub theme: Option<String>,
    #[serde(default)]
    pub options: Option<GenerateOptions>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GenerateOptions {
    pub layout: Option<String>,
    pub include_auth: Option<bool>,
    pub pagination: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerateResult {
    pub code: String,
    pub component_count: usize,
    pub description: String,
    pub assumptions: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamChunk<'a> {
    pub request_id: &'a Id,
    pub chunk: &'a str,
    pub done: bool,
    pub index: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomizeParams<'a> {
    pub current_code: String,
    pub prompt: String,
    #[serde(borrow, default)]
    pub spec: Option<&'a RawValue>,
    #[serde(default)]
    pub history: Option<Vec<Message>>,
}

#[derive(Debug, Deserialize)]
pub struct Message {
    #[serde(default)]
    pub role: String,
    #[serde(default)]
    pub content: Value,
}

/// What `customize` answers: changed code, or a question.
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum CustomizeResult {
    Changed { code: String, description: String, assumptions: Vec<String>, clarification_needed: bool },
    Clarify { code: (), clarification_needed: bool, question: String, options: Vec<String> },
}

impl CustomizeResult {
    pub fn changed(code: String, description: String, assumptions: Vec<String>) -> Self {
        Self::Changed { code, description, assumptions, clarification_needed: false }
    }

    pub fn clarify(question: String, options: Vec<String>) -> Self {
        Self::Clarify { code: (), clarification_needed: true, question, options }
    }
}

#[derive(Debug, Deserialize)]
pub struct ChatParams {
    pub message: String,
    #[serde(default)]
    pub context: Option<ChatContext>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChatContext {
    pub has_active_spec: bool,
    pub has_active_interface: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ChatResult {
    pub message: String,
    pub suggestions: Vec<String>,
}
