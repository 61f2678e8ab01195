//! All servers of a workspace or of one session, as the engine sees them: a source of tools, prompts and resources.
//!
//! Invariants: no method but `act` and `shutdown` waits for a server, and these two not for long; dropping the source
//! ends every server.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::command::ServerSpec;
use domain::tool::{Resource, ServerAction, ServerPrompt, ServerStatus, Tool, ToolServer, ToolSource};
use domain::{BoxFuture, Failure, Part};
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::content;
use crate::lifecycle::{LifecycleCommand, run_server_task};
use crate::options::{Options, ServerConfig};
use crate::server_state::ServerState;
use crate::text::single_line;
use crate::wire::{PromptResult, ReadResult};

/// Longer than closing a server takes: farewell, grace and the end of its tree.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub struct Supervisor {
    servers: Vec<Server>,
}

struct Server {
    state: Arc<ServerState>,
    commands: mpsc::Sender<LifecycleCommand>,
    /// Until the first command, which starts the task that obeys.
    inbox: Mutex<Option<mpsc::Receiver<LifecycleCommand>>>,
}

/// The servers that a client handed over with a session: started at once, ended when the source is shut down or dropped.
/// Call it within a tokio runtime.
pub fn session_servers(specs: &[ServerSpec], options: Options) -> Arc<dyn ToolSource> {
    let supervisor = Supervisor::new(specs.iter().map(ServerConfig::fixed).collect(), options);
    supervisor.start();
    Arc::new(supervisor)
}

impl Supervisor {
    /// Starts nothing yet.
    pub fn new(servers: Vec<ServerConfig>, options: Options) -> Self {
        let options = Arc::new(options);
        let mut names = HashSet::new();
        let server = |config: ServerConfig| {
            let refused = name_problem(&config.name, names.insert(config.name.clone()));
            let (commands, inbox) = mpsc::channel(16);
            let state = Arc::new(ServerState::new(config, options.clone(), refused));
            Server { state, commands, inbox: Mutex::new(Some(inbox)) }
        };
        Self { servers: servers.into_iter().map(server).collect() }
    }

    /// Starts every server that is not disabled, all at once, in the background. Call it within a tokio runtime.
    pub fn start(&self) {
        for server in self.servers.iter().filter(|server| !server.state.config.disabled) {
            server.start();
        }
    }

    fn find(&self, name: &str) -> Result<&Server, Failure> {
        let found = self.servers.iter().find(|server| server.state.config.name == name);
        found.ok_or_else(|| Failure::user(format!("There is no MCP server {}.", single_line(name, 100))))
    }
}

/// Why a server of this name cannot be.
fn name_problem(name: &str, new: bool) -> Option<String> {
    if name.trim().is_empty() || name.len() > 100 || name.contains(char::is_control) {
        return Some("A server needs a name of 1 to 100 ordinary characters. Rename it.".to_owned());
    }
    if name.eq_ignore_ascii_case("eca") {
        return Some("The name eca belongs to the built-in tools. Rename the server.".to_owned());
    }
    (!new).then(|| format!("There is another server called {name}. Rename one of them."))
}

impl Server {
    fn start(&self) {
        if matches!(self.state.status(), ServerStatus::Starting | ServerStatus::Running) {
            return;
        }
        if self.state.status() != ServerStatus::Stopping {
            self.state.set_status(ServerStatus::Starting, None);
        }
        self.send_command(LifecycleCommand::Start);
    }

    async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        self.send_command(LifecycleCommand::Stop(done));
        let _ = tokio::time::timeout(STOP_TIMEOUT, stopped).await;
    }

    fn send_command(&self, command: LifecycleCommand) {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(inbox) = inbox {
            tokio::spawn(run_server_task(self.state.clone(), inbox));
        }
        // Full means that sixteen commands wait already, the last of them no older than this one's sender.
        let _ = self.commands.try_send(command);
    }
}

impl ToolSource for Supervisor {
    fn servers(&self) -> Vec<ToolServer> {
        self.servers.iter().map(|server| server.state.server()).collect()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.servers.iter().flat_map(|server| server.state.tools()).collect()
    }

    fn instructions(&self) -> Vec<String> {
        let said = |server: &Server| {
            // The text must not close its own tag and continue outside of it.
            let text = server.state.offer().instructions?.replace("</instructions", "< /instructions");
            let name = &server.state.config.name;
            Some(format!("<instructions server=\"{name}\">\n{}\n</instructions>", text.trim()))
        };
        self.servers.iter().filter_map(said).collect()
    }

    fn act<'a>(&'a self, server: &'a str, action: ServerAction) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let server = self.find(server)?;
            match action {
                ServerAction::Start => server.start(),
                ServerAction::Stop => server.stop().await,
            }
            Ok(())
        })
    }

    fn prompts(&self) -> Vec<ServerPrompt> {
        let offers = self.servers.iter().flat_map(|server| server.state.offer().prompts);
        offers.map(|entry| entry.prompt.clone()).collect()
    }

    fn prompt<'a>(&'a self, name: &'a str, arguments: Value) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        Box::pin(async move {
            let entry = |server: &Server| {
                let entry =
                    server.state.offer().prompts.into_iter().find(|entry| entry.prompt.name == name)?;
                Some((server.state.clone(), entry))
            };
            let (state, entry) = (self.servers.iter().find_map(entry))
                .ok_or_else(|| Failure::user(format!("There is no prompt {}.", single_line(name, 100))))?;
            let missing = entry
                .prompt
                .arguments
                .iter()
                .find(|known| known.required && arguments.get(&known.name).is_none());
            if let Some(missing) = missing {
                return Err(Failure::user(format!("The prompt {name} needs the argument {}.", missing.name)));
            }
            let params = json!({"name": entry.wire_name, "arguments": as_texts(arguments)});
            let result: PromptResult = state.request("prompts/get", &params).await?;
            Ok(content::from_prompt(result))
        })
    }

    fn resources(&self) -> Vec<Resource> {
        self.servers.iter().flat_map(|server| server.state.offer().resources).collect()
    }

    fn resource<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        Box::pin(async move {
            let state = &self.find(server)?.state;
            let result: ReadResult = state.request("resources/read", &json!({"uri": uri})).await?;
            Ok(content::from_resource(result))
        })
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { drop(join_all(self.servers.iter().map(Server::stop)).await) })
    }
}

/// Arguments of prompts are strings in the protocol.
fn as_texts(arguments: Value) -> Map<String, Value> {
    let Value::Object(arguments) = arguments else { return Map::new() };
    let as_text = |(name, value)| match value {
        Value::String(_) => (name, value),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            (name, Value::String(other.to_string()))
        }
    };
    arguments.into_iter().map(as_text).collect()
}
