//! All servers of a workspace or of one session, as the engine sees them: a source of tools, prompts and resources.
//!
//! Invariants: no method but `act`, `first_lists` and `shutdown` waits for a server, and these not for long; dropping the
//! source ends every server.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use domain::command::{ServerSpec, ServerTransport};
use domain::names::is_same_name;
use domain::tool::{Resource, ServerAction, ServerPrompt, ServerStatus, Tool, ToolServer, ToolSource};
use domain::{BoxFuture, Failure, Part};
use futures_util::future::join_all;
use reqwest::Url;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::auth::{self, Authorization, LoginDone, LoginPrompt};
use crate::content;
use crate::kept;
use crate::lifecycle::{LifecycleCommand, run_server_task};
use crate::list_store::ListStore;
use crate::options::{Options, ServerConfig};
use crate::server_state::ServerState;
use crate::text::single_line;
use crate::wire::PromptResult;

/// Longer than closing a server takes: farewell, grace and the end of its tree.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub struct Supervisor {
    servers: RwLock<Vec<Arc<Server>>>,
    options: Arc<Options>,
    /// Servers that ran when the source was suspended.
    suspended: Mutex<Vec<Arc<Server>>>,
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
        let supervisor =
            Self { servers: RwLock::default(), options: Arc::new(options), suspended: Mutex::default() };
        for config in servers {
            supervisor.insert(config);
        }
        supervisor
    }

    /// Starts every server that is not disabled, all at once, in the background. Call it within a tokio runtime.
    pub fn start(&self) {
        for server in self.all().iter().filter(|server| !server.state.config.disabled) {
            server.start();
        }
    }

    /// Adds a server and starts it, unless it is disabled.
    pub fn add(&self, config: ServerConfig) {
        let is_disabled = config.disabled;
        let server = self.insert(config);
        if !is_disabled {
            server.start();
        }
        (self.options.changed)();
    }

    /// Stops a server and takes it out.
    pub async fn remove(&self, name: &str) -> Result<(), Failure> {
        let server = self.find(name)?;
        server.stop().await;
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|known| !Arc::ptr_eq(known, &server));
        drop(servers);
        (self.options.changed)();
        Ok(())
    }

    /// Forgets the tools that a server offered before, so that it may offer others.
    pub fn forget_list(&self, name: &str, lists: &dyn ListStore) -> Result<(), Failure> {
        let server = self.find(name)?;
        [kept::key(&server.state.config), kept::written_key(&server.state.config)]
            .iter()
            .for_each(|key| lists.remove(key));
        Ok(())
    }

    /// The revision of the protocol that a running server speaks.
    pub fn revision(&self, name: &str) -> Option<String> {
        let client = self.find(name).ok()?.state.client().ok()?;
        Some(client.revision().to_owned())
    }

    /// The version that the program of a running server says it has.
    pub fn program_version(&self, name: &str) -> Option<String> {
        let client = self.find(name).ok()?.state.client().ok()?;
        client.program_version().map(str::to_owned)
    }

    /// Logs in to a server; returns when the person has, or when it cannot be done.
    pub async fn login(&self, name: &str, prompt: &dyn LoginPrompt) -> Result<LoginDone, Failure> {
        let authorization = self.find(name)?.authorization().await?;
        auth::login(&authorization, prompt).await.map_err(|reason| login_failure(name, &reason))
    }

    /// Forgets the login of a server; whether there was one.
    pub async fn logout(&self, name: &str) -> Result<bool, Failure> {
        let server = self.find(name)?;
        let url = server.url().await?;
        match &self.options.logins {
            Some(logins) => auth::logout(&url, logins),
            None => Ok(false),
        }
    }

    fn insert(&self, config: ServerConfig) -> Arc<Server> {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = !servers.iter().any(|known| known.state.config.name == config.name);
        let refused = name_problem(&config.name, is_new);
        let (commands, inbox) = mpsc::channel(16);
        let state = Arc::new(ServerState::new(config, self.options.clone(), refused));
        let server = Arc::new(Server { state, commands, inbox: Mutex::new(Some(inbox)) });
        servers.push(server.clone());
        server
    }

    fn all(&self) -> Vec<Arc<Server>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find(&self, name: &str) -> Result<Arc<Server>, Failure> {
        let servers = self.all();
        let by =
            |is_it: &dyn Fn(&str) -> bool| servers.iter().find(|it| is_it(&it.state.config.name)).cloned();
        let found = by(&|known| known == name).or_else(|| by(&|known| is_same_name(known, name)));
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
        self.state.begin();
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

impl Server {
    /// The address of a server over HTTP.
    async fn url(&self) -> Result<Url, Failure> {
        let name = &self.state.config.name;
        match (self.state.config.lookup)().await? {
            ServerTransport::Http { url, .. } => Url::parse(&url)
                .map_err(|error| Failure::user(format!("The url of {name} cannot be read: {error}."))),
            ServerTransport::Stdio { .. } => {
                Err(Failure::user(format!("{name} is a program: it has no login."))
                    .hint("Give it its keys as environment variables (`env` in its entry)."))
            }
        }
    }

    async fn authorization(&self) -> Result<Authorization, Failure> {
        let url = self.url().await?;
        let logins = self.state.options.logins.clone();
        let logins = logins.ok_or_else(|| Failure::internal("Logins are not kept here."))?;
        Ok(Authorization::new(&url, (self.state.config.oauth)().await?, logins))
    }

    /// Waits for a person; the server's message holds the address for the browser meanwhile.
    fn login_in_background(&self, authorization: Authorization) {
        let (state, commands) = (self.state.clone(), self.commands.clone());
        tokio::spawn(async move {
            let prompt = StatusPrompt(state.clone());
            match auth::login(&authorization, &prompt).await {
                Ok(_) => drop(commands.send(LifecycleCommand::Start).await),
                Err(reason) => {
                    let failure = login_failure(&state.config.name, &reason);
                    state.set_status(ServerStatus::RequiresAuth, Some(failure.to_string()));
                }
            }
        });
    }
}

/// Shows the address of a login as the message of the server.
struct StatusPrompt(Arc<ServerState>);

impl LoginPrompt for StatusPrompt {
    fn show(&self, url: &str) {
        let text = format!("Open this address to log in: {url}");
        self.0.set_status(ServerStatus::RequiresAuth, Some(text));
        if let Some(open) = &self.0.options.open_browser {
            open(url);
        }
    }

    fn pasted(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::pending())
    }
}

fn login_failure(name: &str, reason: &str) -> Failure {
    Failure::user(format!("The login to {name} failed: {reason}"))
}

impl ToolSource for Supervisor {
    fn servers(&self) -> Vec<ToolServer> {
        self.all().iter().map(|server| server.state.server()).collect()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.all().iter().flat_map(|server| server.state.tools()).collect()
    }

    fn instructions(&self) -> Vec<String> {
        let said = |server: &Arc<Server>| {
            // The text must not close its own tag and continue outside of it.
            let text = server.state.offer().instructions?.replace("</instructions", "< /instructions");
            let name = &server.state.config.name;
            Some(format!("<instructions server=\"{name}\">\n{}\n</instructions>", text.trim()))
        };
        self.all().iter().filter_map(said).collect()
    }

    fn act<'a>(&'a self, server: &'a str, action: ServerAction) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let server = self.find(server)?;
            match action {
                ServerAction::Start | ServerAction::Enable => server.start(),
                ServerAction::Stop | ServerAction::Disable => server.stop().await,
                ServerAction::Login => server.login_in_background(server.authorization().await?),
                ServerAction::Logout => {
                    self.logout(&server.state.config.name).await?;
                    server.stop().await;
                    server.start();
                }
                ServerAction::Remove => self.remove(&server.state.config.name).await?,
                ServerAction::Add { .. } | ServerAction::Update { .. } => {
                    return Err(Failure::user("This server is not one of the configuration."));
                }
            }
            Ok(())
        })
    }

    fn prompts(&self) -> Vec<ServerPrompt> {
        let servers = self.all();
        servers.iter().for_each(|server| server.state.refresh_old_lists());
        let offers = servers.iter().flat_map(|server| server.state.offer().prompts);
        offers.map(|entry| entry.prompt.clone()).collect()
    }

    fn prompt<'a>(&'a self, name: &'a str, arguments: Value) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        Box::pin(async move {
            let entry = |server: &Arc<Server>| {
                let entry = server
                    .state
                    .offer()
                    .prompts
                    .into_iter()
                    .find(|entry| is_same_name(&entry.prompt.name, name))?;
                Some((server.state.clone(), entry))
            };
            let (state, entry) = (self.all().iter().find_map(entry))
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

    fn complete_prompt<'a>(&'a self, name: &'a str, arguments: &'a [String]) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async move {
            let entry = |server: &Arc<Server>| {
                let prompts = server.state.offer().prompts;
                let entry = prompts.into_iter().find(|entry| is_same_name(&entry.prompt.name, name))?;
                Some((server.state.clone(), entry))
            };
            match self.all().iter().find_map(entry) {
                Some((state, entry)) => state.complete_prompt(&entry, arguments).await,
                None => Vec::new(),
            }
        })
    }

    fn templated_resources<'a>(&'a self, typed: &'a str) -> BoxFuture<'a, Vec<Resource>> {
        Box::pin(async move {
            let servers = self.all();
            let found = join_all(servers.iter().map(|server| server.state.templated_resources(typed))).await;
            found.into_iter().flatten().collect()
        })
    }

    fn resources(&self) -> Vec<Resource> {
        self.all().iter().for_each(|server| server.state.refresh_old_lists());
        self.all().iter().flat_map(|server| server.state.offer().resources).collect()
    }

    fn resource<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        Box::pin(async move {
            let state = self.find(server)?.state.clone();
            state.read_resource(uri).await
        })
    }

    fn first_lists(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            for server in self.all() {
                server.state.first_list().await;
            }
        })
    }

    fn suspend(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let mut running = self.all();
            running.retain(|server| {
                matches!(server.state.status(), ServerStatus::Starting | ServerStatus::Running)
            });
            self.suspended.lock().unwrap_or_else(PoisonError::into_inner).extend(running.iter().cloned());
            drop(join_all(running.iter().map(|server| server.stop())).await);
        })
    }

    fn resume(&self) {
        let suspended = std::mem::take(&mut *self.suspended.lock().unwrap_or_else(PoisonError::into_inner));
        let known = self.all();
        // One that was removed meanwhile stays away.
        for server in suspended.iter().filter(|server| known.iter().any(|one| Arc::ptr_eq(one, server))) {
            server.start();
        }
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let servers = self.all();
            servers.iter().for_each(|server| server.state.begin_end());
            drop(join_all(servers.iter().map(|server| server.stop())).await);
        })
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
