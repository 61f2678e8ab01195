//! Changes of MCP servers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::notifications::ServerUpdated;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServerParams {
    pub name: Option<String>,
}

/// A server's entry, or the members of it that change.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AddServerParams {
    pub name: Option<String>,
    pub command: Option<Value>,
    pub args: Option<Value>,
    pub env: Option<Value>,
    pub url: Option<Value>,
    pub headers: Option<Value>,
    pub client_id: Option<Value>,
    pub client_secret: Option<Value>,
    pub oauth_port: Option<Value>,
    pub disabled: Option<Value>,
    /// `workspace`: the file of the project instead of the user's own.
    pub scope: Option<String>,
    pub workspace_uri: Option<String>,
}

/// Clients look for problems in the result.
#[derive(Debug, Serialize)]
pub(crate) struct ServerProblem {
    pub code: &'static str,
    pub message: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum AddServerResult {
    Server(ServerUpdated),
    Error(ServerProblem),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum RemoveServerResult {
    Removed { name: String, removed: bool },
    Problem { error: ServerProblem },
}
