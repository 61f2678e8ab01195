//! What servers define, as we keep it: tools, prompts, and both from an earlier process. Plain data.

use std::sync::Arc;

use domain::tool::{ServerPrompt, ToolSpec};

use crate::digest::Digest;
use crate::http::ParamHeader;

/// A tool as its server defines it and as we offer it.
pub(crate) struct ToolDefinition {
    /// The name the server knows it by.
    pub wire_name: String,
    pub spec: ToolSpec,
    /// The server says that it changes nothing. A hint: see `tool`.
    pub read_only_hint: bool,
    pub digest: Digest,
    /// The server runs it as a task of the protocol only.
    pub runs_as_task: bool,
    /// Arguments that are repeated as headers over HTTP.
    pub param_headers: Vec<ParamHeader>,
    /// The definition as JSON: what its digest covers, and nothing else.
    pub source: String,
}

pub(crate) struct PromptDefinition {
    pub wire_name: String,
    pub prompt: ServerPrompt,
}

impl PromptDefinition {
    /// The same without the name of the server in its name.
    pub(crate) fn as_named_by_server(&self) -> ServerPrompt {
        ServerPrompt { name: self.wire_name.clone(), ..self.prompt.clone() }
    }
}

/// What is known of a server from earlier processes.
#[derive(Clone, Default)]
pub(crate) struct KeptList {
    pub tools: Vec<Arc<ToolDefinition>>,
    pub instructions: Option<String>,
    /// It has resources, so the tool that reads them is offered.
    pub has_resources: bool,
    /// It began with `initialize`, so that the next start asks for nothing else first.
    pub has_handshake: bool,
}
