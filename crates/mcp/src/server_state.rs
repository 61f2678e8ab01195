//! The current state of one server: its status, its offer, and the client that reaches it. Snapshots come from here.
//!
//! Only `lifecycle` writes it; every other module reads it. Invariants: no lock is held while foreign code runs; tools,
//! prompts and resources are there only while the server runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::tool::{Resource, ServerStatus, Tool, ToolServer};
use domain::tool_call::Origin;
use domain::{Failure, FailureKind};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::catalog::{PromptDefinition, ToolDefinition};
use crate::client::Client;
use crate::options::{Options, ServerConfig};
use crate::tool::McpTool;

pub(crate) struct ServerState {
    pub config: ServerConfig,
    pub options: Arc<Options>,
    /// Why it is never started.
    pub refused: Option<String>,
    fields: Mutex<ServerFields>,
}

struct ServerFields {
    status: ServerStatus,
    error: Option<String>,
    client: Option<Client>,
    offer: Offer,
}

/// The tools, prompts and resources of a running server.
#[derive(Clone, Default)]
pub(crate) struct Offer {
    pub tools: Vec<Arc<ToolDefinition>>,
    /// Tools whose definition changed.
    pub withheld: Vec<String>,
    /// Sentences about omitted items.
    pub notes: Vec<String>,
    pub prompts: Vec<Arc<PromptDefinition>>,
    pub resources: Vec<Resource>,
    pub instructions: Option<String>,
}

impl ServerState {
    pub(crate) fn new(config: ServerConfig, options: Arc<Options>, refused: Option<String>) -> Self {
        let status = if config.disabled { ServerStatus::Disabled } else { ServerStatus::Stopped };
        let fields = ServerFields { status, error: None, client: None, offer: Offer::default() };
        Self { config, options, refused, fields: Mutex::new(fields) }
    }

    /// A state in which nothing is offered.
    pub(crate) fn set_status(&self, status: ServerStatus, error: Option<String>) {
        let mut fields = self.fields();
        let changed = fields.status != status || fields.error != error;
        let before = std::mem::replace(
            &mut *fields,
            ServerFields { status, error, client: None, offer: Offer::default() },
        );
        drop(fields);
        drop(before);
        if changed {
            (self.options.changed)();
        }
    }

    pub(crate) fn set_running(&self, client: Client, offer: Offer) {
        *self.fields() =
            ServerFields { status: ServerStatus::Running, error: None, client: Some(client), offer };
        (self.options.changed)();
    }

    /// Changes what a running server offers.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Offer)) {
        change(&mut self.fields().offer);
        (self.options.changed)();
    }

    pub(crate) fn status(&self) -> ServerStatus {
        self.fields().status
    }

    pub(crate) fn offer(&self) -> Offer {
        self.fields().offer.clone()
    }

    pub(crate) fn server(&self) -> ToolServer {
        let fields = self.fields();
        let display = &self.config.display;
        ToolServer {
            name: self.config.name.clone(),
            origin: Origin::Mcp,
            status: fields.status,
            command: display.command.clone(),
            args: display.args.clone(),
            url: display.url.clone(),
            error: fields.error.clone().or_else(|| fields.offer.notice()),
            tools: fields.offer.tools.iter().map(|definition| definition.spec.clone()).collect(),
        }
    }

    pub(crate) fn tools(self: &Arc<Self>) -> Vec<Arc<dyn Tool>> {
        let tool = |definition| -> Arc<dyn Tool> { Arc::new(McpTool { state: self.clone(), definition }) };
        self.offer().tools.into_iter().map(tool).collect()
    }

    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let fields = self.fields();
        fields.client.clone().ok_or_else(|| {
            let name = &self.config.name;
            let is = match fields.status {
                ServerStatus::Starting => "is still starting",
                ServerStatus::Failed => "has failed",
                ServerStatus::RequiresAuth => "wants a login",
                ServerStatus::Running
                | ServerStatus::Stopping
                | ServerStatus::Stopped
                | ServerStatus::Disabled => "is not running",
            };
            Failure::user(format!("The MCP server {name} {is}.")).hint("Wait for it or start it again.")
        })
    }

    /// One request with the deadline of a call.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<T, Failure> {
        let reply = self.client()?.request(method, params, self.options.call_timeout).await;
        reply.map_err(|reason| {
            Failure::new(FailureKind::Tool, format!("The MCP server {} failed. {reason}", self.config.name))
        })
    }

    /// The way to a tool, unless its definition is not the one that is offered any more.
    pub(crate) fn client_for(&self, definition: &ToolDefinition) -> Result<Client, Failure> {
        let client = self.client()?;
        let offered = |known: &Arc<ToolDefinition>| known.digest == definition.digest;
        if self.fields().offer.tools.iter().any(offered) {
            return Ok(client);
        }
        let (tool, server) = (&definition.spec.name, &self.config.name);
        Err(Failure::user(format!("The MCP server {server} does not offer {tool} as it was any more."))
            .hint("The user can allow changed definitions by stopping and starting the server."))
    }

    fn fields(&self) -> MutexGuard<'_, ServerFields> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Offer {
    /// Omissions of a running server that the user should know.
    fn notice(&self) -> Option<String> {
        let mut notice = self.notes.clone();
        if !self.withheld.is_empty() {
            notice.push(format!(
                "It changed the definition of {} after it was first listed; what changed is withheld. \
                 To allow the new definition, stop the server and start it again.",
                self.withheld.join(", ")
            ));
        }
        (!notice.is_empty()).then(|| notice.join(" "))
    }
}
