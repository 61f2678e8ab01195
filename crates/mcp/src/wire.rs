//! The messages of the protocol as far as we read and write them. Unknown members are tolerated; what one item of a
//! list has wrong costs that item only.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The revisions that begin with `initialize`, newest first. The newest is offered.
pub(crate) const VERSIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The stateless revision: no handshake, every request says who asks and what the client can do.
pub(crate) const STATELESS_VERSION: &str = "2026-07-28";

/// The largest message a server may send.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// The errors that only servers of the stateless era give.
pub(crate) const STATELESS_ERRORS: std::ops::RangeInclusive<i64> = -32022..=-32020;

/// What the client offers to a server, beside its roots.
#[derive(Clone, Copy)]
pub(crate) struct Offered {
    /// The front-end can show forms.
    pub forms: bool,
    /// The user allowed the server to use their model.
    pub sampling: bool,
}

impl Offered {
    pub(crate) const NOTHING: Self = Self { forms: false, sampling: false };
}

pub(crate) fn initialize_params(offered: Offered) -> Value {
    json!({
        "protocolVersion": VERSIONS[0],
        "capabilities": client_capabilities(offered),
        "clientInfo": client_info(),
    })
}

/// The `_meta` of each request in the stateless era.
pub(crate) fn meta(offered: Offered) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
        "io.modelcontextprotocol/clientCapabilities": client_capabilities(offered),
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/logLevel": "info",
    })
}

/// Servers of 2025-06-18 read any elicitation as forms.
fn client_capabilities(offered: Offered) -> Value {
    let mut capabilities = json!({"roots": {}});
    if offered.forms {
        capabilities["elicitation"] = json!({"form": {}, "url": {}});
    }
    if offered.sampling {
        capabilities["sampling"] = json!({});
    }
    capabilities
}

fn client_info() -> Value {
    json!({"name": "dragoman", "title": "Dragoman", "version": env!("CARGO_PKG_VERSION")})
}

/// The answer to `server/discover`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Discovered {
    #[serde(default)]
    pub supported_versions: Vec<String>,
    #[serde(default)]
    pub capabilities: Capabilities,
    #[serde(default)]
    pub instructions: Option<String>,
    #[serde(default)]
    pub server_info: Option<ServerInfo>,
}

/// A result of the stateless era that asks for input: each question under a key of the server.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InputRequired {
    #[serde(default)]
    pub result_type: Option<String>,
    #[serde(default)]
    pub input_requests: Option<serde_json::Map<String, Value>>,
    #[serde(default)]
    pub request_state: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialized {
    pub protocol_version: String,
    #[serde(default)]
    pub capabilities: Capabilities,
    #[serde(default)]
    pub instructions: Option<String>,
    #[serde(default)]
    pub server_info: Option<ServerInfo>,
}

/// What a server says about its own program.
#[derive(Deserialize)]
pub(crate) struct ServerInfo {
    #[serde(default)]
    pub version: Option<String>,
}

/// A capability is there when its member is, whatever it holds.
#[derive(Clone, Deserialize, Default)]
pub(crate) struct Capabilities {
    #[serde(default)]
    pub tools: Option<Value>,
    #[serde(default)]
    pub prompts: Option<Value>,
    #[serde(default)]
    pub resources: Option<Value>,
    #[serde(default)]
    pub completions: Option<Value>,
}

/// One page of any list.
#[derive(Deserialize)]
pub(crate) struct Page {
    #[serde(default, alias = "tools", alias = "prompts", alias = "resources", alias = "resourceTemplates")]
    pub items: Vec<Box<RawValue>>,
    #[serde(default, rename = "nextCursor")]
    pub next_cursor: Option<String>,
    /// How long the list counts as fresh, in the stateless era.
    #[serde(default, rename = "ttlMs")]
    pub ttl_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolItem {
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub input_schema: Option<Box<RawValue>>,
    #[serde(default)]
    pub annotations: Option<Annotations>,
    #[serde(default)]
    pub execution: Option<Execution>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Annotations {
    #[serde(default)]
    pub read_only_hint: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Execution {
    #[serde(default)]
    pub task_support: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct PromptItem {
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub arguments: Vec<PromptArgument>,
}

#[derive(Deserialize)]
pub(crate) struct PromptArgument {
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub required: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceItem {
    pub uri: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub mime_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateItem {
    pub uri_template: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub mime_type: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct UpdatedResource {
    pub uri: String,
}

/// The answer to `completion/complete`.
#[derive(Deserialize)]
pub(crate) struct Completed {
    pub completion: CompletionValues,
}

#[derive(Deserialize)]
pub(crate) struct CompletionValues {
    #[serde(default)]
    pub values: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallResult {
    #[serde(default)]
    pub content: Vec<Box<RawValue>>,
    #[serde(default)]
    pub structured_content: Option<Value>,
    #[serde(default)]
    pub is_error: bool,
}

/// A piece of a result or of a prompt.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block {
    Text {
        text: String,
    },
    Image {
        data: String,
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    Audio {
        #[serde(default, rename = "mimeType")]
        mime_type: String,
    },
    Resource {
        resource: ResourceContent,
    },
    ResourceLink {
        uri: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        description: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceContent {
    #[serde(default)]
    pub uri: String,
    #[serde(default)]
    pub mime_type: Option<String>,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub blob: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct ReadResult {
    #[serde(default)]
    pub contents: Vec<ResourceContent>,
    /// How long it counts as fresh, in the stateless era.
    #[serde(default, rename = "ttlMs")]
    pub ttl_ms: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct PromptResult {
    #[serde(default)]
    pub messages: Vec<PromptMessage>,
}

#[derive(Deserialize)]
pub(crate) struct PromptMessage {
    #[serde(default)]
    pub role: String,
    pub content: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Progress {
    /// We send numbers; servers have sent them back as strings.
    pub progress_token: Value,
    #[serde(default)]
    pub progress: f64,
    #[serde(default)]
    pub total: Option<f64>,
    #[serde(default)]
    pub message: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct LogMessage {
    #[serde(default)]
    pub level: String,
    #[serde(default)]
    pub data: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Elicitation {
    #[serde(default)]
    pub mode: Option<String>,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub requested_schema: Option<Box<RawValue>>,
    /// The address to open, in the mode `url`.
    #[serde(default)]
    pub url: Option<String>,
}

/// The answer to `roots/list`.
pub(crate) fn roots(roots: &[PathBuf]) -> Value {
    let root = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        json!({"uri": platform::file_uri::from_path(path), "name": name.unwrap_or_else(|| "/".to_owned())})
    };
    json!({"roots": roots.iter().map(root).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_proper_uri() {
        assert_eq!(
            platform::file_uri::from_path(std::path::Path::new("/home/a b/größe#1")),
            "file:///home/a%20b/gr%C3%B6%C3%9Fe%231"
        );
    }

    #[test]
    fn one_page_type_reads_every_list() {
        for list in ["tools", "prompts", "resources", "resourceTemplates"] {
            let page: Page =
                serde_json::from_str(&format!(r#"{{"{list}":[{{}},7],"nextCursor":"x"}}"#)).unwrap();
            assert_eq!((page.items.len(), page.next_cursor.as_deref()), (2, Some("x")));
        }
    }
}
