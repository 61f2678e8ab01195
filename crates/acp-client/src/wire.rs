//! The parts of the protocol that this side reads and writes, as plain structs.
//!
//! Invariant: unknown members are ignored and missing ones have a default, because agents are of many versions.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) const PROTOCOL_VERSION: u64 = 1;
/// The code of an error that asks for a login.
pub(crate) const AUTH_REQUIRED: i64 = -32000;
/// The code of an error about a file that is not there.
pub(crate) const NOT_FOUND: i64 = -32002;

pub(crate) mod method {
    //! Names of methods.

    // This side calls these.
    pub(crate) const INITIALIZE: &str = "initialize";
    pub(crate) const AUTHENTICATE: &str = "authenticate";
    pub(crate) const SESSION_NEW: &str = "session/new";
    pub(crate) const SESSION_LOAD: &str = "session/load";
    pub(crate) const SESSION_RESUME: &str = "session/resume";
    pub(crate) const SESSION_PROMPT: &str = "session/prompt";
    pub(crate) const SESSION_CANCEL: &str = "session/cancel";
    pub(crate) const SESSION_SET_MODE: &str = "session/set_mode";
    pub(crate) const SESSION_SET_MODEL: &str = "session/set_model";
    pub(crate) const SESSION_SET_CONFIG_OPTION: &str = "session/set_config_option";

    // The agent calls these.
    pub(crate) const SESSION_UPDATE: &str = "session/update";
    pub(crate) const REQUEST_PERMISSION: &str = "session/request_permission";
    pub(crate) const READ_TEXT_FILE: &str = "fs/read_text_file";
    pub(crate) const WRITE_TEXT_FILE: &str = "fs/write_text_file";
    pub(crate) const TERMINAL_CREATE: &str = "terminal/create";
    pub(crate) const TERMINAL_OUTPUT: &str = "terminal/output";
    pub(crate) const TERMINAL_WAIT: &str = "terminal/wait_for_exit";
    pub(crate) const TERMINAL_KILL: &str = "terminal/kill";
    pub(crate) const TERMINAL_RELEASE: &str = "terminal/release";
}

/// `reads_files`: the agent may have us read files.
pub(crate) fn initialize_params(reads_files: bool) -> Value {
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": {
            "fs": {"readTextFile": reads_files, "writeTextFile": true},
            "terminal": true,
            "_meta": {"terminal-auth": true},
        },
        "clientInfo": {"name": "dragoman", "title": "Dragoman", "version": env!("CARGO_PKG_VERSION")},
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct InitializeResult {
    pub(crate) protocol_version: Value,
    pub(crate) agent_info: Option<AgentInfo>,
    pub(crate) agent_capabilities: AgentCapabilities,
    pub(crate) auth_methods: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentInfo {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AgentCapabilities {
    pub(crate) load_session: bool,
    pub(crate) prompt_capabilities: PromptCapabilities,
    /// A capability is there where its member is an object.
    pub(crate) session_capabilities: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PromptCapabilities {
    pub(crate) image: bool,
}

impl AgentCapabilities {
    pub(crate) fn can_resume(&self) -> bool {
        self.session_capabilities["resume"].is_object()
    }

    pub(crate) fn takes_more_folders(&self) -> bool {
        self.session_capabilities["additionalDirectories"].is_object()
    }
}

/// The answer to `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SessionResult {
    pub(crate) session_id: String,
    pub(crate) modes: Value,
    pub(crate) models: Value,
    pub(crate) config_options: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PromptResult {
    pub(crate) stop_reason: String,
    pub(crate) usage: Option<UsageResult>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct UsageResult {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) thought_tokens: Option<u64>,
    pub(crate) cached_read_tokens: Option<u64>,
    pub(crate) cached_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct UpdateParams {
    pub(crate) session_id: String,
    pub(crate) update: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PermissionParams {
    pub(crate) session_id: String,
    pub(crate) tool_call: Value,
    pub(crate) options: Vec<PermissionOption>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PermissionOption {
    pub(crate) option_id: String,
    pub(crate) kind: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReadFileParams {
    pub(crate) session_id: String,
    pub(crate) path: String,
    pub(crate) line: Option<u32>,
    pub(crate) limit: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WriteFileParams {
    pub(crate) session_id: String,
    pub(crate) path: String,
    pub(crate) content: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CreateTerminalParams {
    pub(crate) session_id: String,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<Variable>,
    pub(crate) cwd: Option<String>,
    pub(crate) output_byte_limit: Option<u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TerminalParams {
    pub(crate) session_id: String,
    pub(crate) terminal_id: String,
}
