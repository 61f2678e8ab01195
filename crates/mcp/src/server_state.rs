//! What is known of one server at this moment: its state, what it offers, and how to reach it. Snapshots come from here.
//!
//! Written by the server's `life` alone, read by everybody. Invariants: no lock is held while foreign code runs; tools,
//! prompts and resources are there only while the server runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::tool::{Resource, ServerStatus, Tool, ToolServer};
use domain::tool_call::Origin;
use domain::{Failure, FailureKind};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::catalog::{Definition, PromptEntry};
use crate::client::Client;
use crate::options::{Options, ServerConfig};
use crate::tool::McpTool;

pub(crate) struct ServerState {
    pub config: ServerConfig,
    pub options: Arc<Options>,
    /// Why it is never started.
    pub refused: Option<String>,
    state: Mutex<ServerFields>,
}

struct ServerFields {
    status: ServerStatus,
    error: Option<String>,
    client: Option<Client>,
    offer: Offer,
}

/// What a running server offers.
#[derive(Clone, Default)]
pub(crate) struct Offer {
    pub tools: Vec<Arc<Definition>>,
    /// Tools whose definition changed.
    pub withheld: Vec<String>,
    /// What else was left out, as sentences.
    pub notes: Vec<String>,
    pub prompts: Vec<Arc<PromptEntry>>,
    pub resources: Vec<Resource>,
    pub instructions: Option<String>,
}

impl ServerState {
    pub(crate) fn new(config: ServerConfig, options: Arc<Options>, refused: Option<String>) -> Self {
        let status = if config.disabled { ServerStatus::Disabled } else { ServerStatus::Stopped };
        let state = ServerFields { status, error: None, client: None, offer: Offer::default() };
        Self { config, options, refused, state: Mutex::new(state) }
    }

    /// A state in which nothing is offered.
    pub(crate) fn show(&self, status: ServerStatus, error: Option<String>) {
        let mut state = self.state();
        let changed = state.status != status || state.error != error;
        let before = std::mem::replace(
            &mut *state,
            ServerFields { status, error, client: None, offer: Offer::default() },
        );
        drop(state);
        drop(before);
        if changed {
            (self.options.changed)();
        }
    }

    pub(crate) fn run(&self, client: Client, offer: Offer) {
        *self.state() =
            ServerFields { status: ServerStatus::Running, error: None, client: Some(client), offer };
        (self.options.changed)();
    }

    /// Changes what a running server offers.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Offer)) {
        change(&mut self.state().offer);
        (self.options.changed)();
    }

    pub(crate) fn status(&self) -> ServerStatus {
        self.state().status
    }

    pub(crate) fn offer(&self) -> Offer {
        self.state().offer.clone()
    }

    pub(crate) fn server(&self) -> ToolServer {
        let state = self.state();
        let shown = &self.config.shown;
        ToolServer {
            name: self.config.name.clone(),
            origin: Origin::Mcp,
            status: state.status,
            command: shown.command.clone(),
            args: shown.args.clone(),
            url: shown.url.clone(),
            error: state.error.clone().or_else(|| state.offer.remarks()),
            tools: state.offer.tools.iter().map(|definition| definition.spec.clone()).collect(),
        }
    }

    pub(crate) fn tools(self: &Arc<Self>) -> Vec<Arc<dyn Tool>> {
        let tool = |definition| -> Arc<dyn Tool> { Arc::new(McpTool { state: self.clone(), definition }) };
        self.offer().tools.into_iter().map(tool).collect()
    }

    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let state = self.state();
        state.client.clone().ok_or_else(|| {
            let name = &self.config.name;
            let is = match state.status {
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
    pub(crate) async fn ask<T: DeserializeOwned>(&self, method: &str, params: &Value) -> Result<T, Failure> {
        let reply = self.client()?.request(method, params, self.options.call_deadline).await;
        reply.map_err(|reason| {
            Failure::new(FailureKind::Tool, format!("The MCP server {} failed. {reason}", self.config.name))
        })
    }

    /// The way to a tool, unless its definition is not the one that is offered any more.
    pub(crate) fn client_for(&self, definition: &Definition) -> Result<Client, Failure> {
        let client = self.client()?;
        let offered = |known: &Arc<Definition>| known.digest == definition.digest;
        if self.state().offer.tools.iter().any(offered) {
            return Ok(client);
        }
        let (tool, server) = (&definition.spec.name, &self.config.name);
        Err(Failure::user(format!("The MCP server {server} does not offer {tool} as it was any more."))
            .hint("The user can allow changed definitions by stopping and starting the server."))
    }

    fn state(&self) -> MutexGuard<'_, ServerFields> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Offer {
    /// What the user should know of a server that runs.
    fn remarks(&self) -> Option<String> {
        let mut remarks = self.notes.clone();
        if !self.withheld.is_empty() {
            remarks.push(format!(
                "It changed the definition of {} after it was first listed; what changed is withheld. \
                 To allow the new definition, stop the server and start it again.",
                self.withheld.join(", ")
            ));
        }
        (!remarks.is_empty()).then(|| remarks.join(" "))
    }
}
