//! The current state of one server: its status, its offer, and the client that reaches it. Snapshots come from here.
//!
//! Only `lifecycle` writes it; every other module reads it. Invariants: no lock is held while foreign code runs; prompts and
//! resources are there only while the server runs, tools also while it starts and an earlier process kept them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::tool::{Resource, ServerStatus, ToolServer};
use domain::tool_call::Origin;
use domain::{CancellationToken, Failure, FailureKind};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;

use crate::client::Client;
use crate::definitions::{KeptList, PromptDefinition, ToolDefinition};
use crate::kept;
use crate::options::{Options, ServerConfig};
use crate::read_cache::ResourceTemplate;
use crate::resource_tool_spec::{READ_TOOL, tool_spec};

/// A server of which nothing is known is worth this wait, once.
const FIRST_LIST_WAIT: Duration = Duration::from_secs(2);

pub(crate) struct ServerState {
    pub config: ServerConfig,
    pub options: Arc<Options>,
    /// Why it is never started.
    pub refused: Option<String>,
    fields: Mutex<ServerFields>,
    /// What earlier processes know of it.
    known: Mutex<Known>,
    /// Counts changes of the status.
    changes: watch::Sender<u64>,
    /// The process ends: a stop is no decision of the user's.
    is_ending: AtomicBool,
}

#[derive(Default)]
struct Known {
    /// The text that is kept; `None`: this server never started before.
    text: Option<String>,
    list: KeptList,
    /// Nothing was kept when it started first.
    is_new: bool,
    started: Option<Instant>,
}

struct ServerFields {
    status: ServerStatus,
    error: Option<String>,
    client: Option<Client>,
    offer: Offer,
    /// It was reached with a login.
    has_login: bool,
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
    pub templates: Vec<ResourceTemplate>,
    pub instructions: Option<String>,
    /// An earlier process saw resources, and the server is still starting.
    pub had_resources: bool,
}

impl ServerState {
    pub(crate) fn new(config: ServerConfig, options: Arc<Options>, refused: Option<String>) -> Self {
        let status = if config.disabled { ServerStatus::Disabled } else { ServerStatus::Stopped };
        let fields =
            ServerFields { status, error: None, client: None, offer: Offer::default(), has_login: false };
        let (known, changes) = (Mutex::default(), watch::Sender::new(0));
        let is_ending = AtomicBool::new(false);
        Self { config, options, refused, fields: Mutex::new(fields), known, changes, is_ending }
    }

    /// What is kept stays as it is from now on.
    pub(crate) fn begin_end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Called before each start: reads what is kept, the first time.
    pub(crate) fn begin(&self) {
        let mut known = self.known();
        if known.started.is_some() {
            return;
        }
        known.started = Some(Instant::now());
        if let Some(store) = &self.options.kept_lists {
            let written = || store.read(&kept::written_key(&self.config));
            known.text = store.read(&kept::key(&self.config)).or_else(written);
            let list = known.text.as_deref().and_then(|text| KeptList::decode(text, &self.config.name));
            known.list = list.unwrap_or_default();
            known.is_new = known.text.is_none();
        }
    }

    pub(crate) fn kept(&self) -> KeptList {
        self.known().list.clone()
    }

    /// Keeps the list for the next process. Without tools it says that the server started before.
    pub(crate) fn keep(&self, list: KeptList) {
        let Some(store) =
            self.options.kept_lists.as_ref().filter(|_| !self.is_ending.load(Ordering::Relaxed))
        else {
            return;
        };
        let Some(text) = list.encode() else { return };
        let mut known = self.known();
        known.list = list;
        if known.text.as_deref() != Some(text.as_str()) {
            known.text = Some(text.clone());
            drop(known);
            store.write(&kept::key(&self.config), &text);
        }
    }

    /// Whether an earlier process started it, or this one has kept something.
    pub(crate) fn is_known(&self) -> bool {
        self.options.kept_lists.is_none() || self.known().text.is_some()
    }

    /// Resolves when the server has answered or failed; at once where it is known from before; after two seconds in any case.
    pub(crate) async fn first_list(&self) {
        let mut changes = self.changes.subscribe();
        let started = Some(self.known()).filter(|known| known.is_new).and_then(|known| known.started);
        let Some(left) = started.and_then(|at| FIRST_LIST_WAIT.checked_sub(at.elapsed())) else { return };
        let answered = async {
            while self.status() == ServerStatus::Starting {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(left, answered).await;
    }

    /// A state in which nothing is offered.
    pub(crate) fn set_status(&self, status: ServerStatus, error: Option<String>) {
        let mut fields = self.fields();
        let changed = fields.status != status || fields.error != error;
        let before = std::mem::replace(
            &mut *fields,
            ServerFields { status, error, client: None, offer: Offer::default(), has_login: false },
        );
        drop(fields);
        drop(before);
        self.changes.send_modify(|count| *count += 1);
        if changed {
            (self.options.changed)();
        }
    }

    pub(crate) fn set_running(&self, client: Client, offer: Offer, has_login: bool) {
        let (status, client) = (ServerStatus::Running, Some(client));
        *self.fields() = ServerFields { status, error: None, client, offer, has_login };
        self.changes.send_modify(|count| *count += 1);
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

    /// What is offered now. While the server starts, it is what an earlier process kept.
    pub(crate) fn offer(&self) -> Offer {
        let fields = self.fields();
        if fields.status != ServerStatus::Starting {
            return fields.offer.clone();
        }
        drop(fields);
        let KeptList { tools, instructions, has_resources, .. } = self.kept();
        Offer { tools, instructions, had_resources: has_resources, ..Offer::default() }
    }

    pub(crate) fn server(&self) -> ToolServer {
        let offer = self.offer();
        let fields = self.fields();
        let display = &self.config.display;
        ToolServer {
            name: self.config.name.clone(),
            origin: Origin::Mcp,
            status: fields.status,
            command: display.command.clone(),
            args: display.args.clone(),
            url: display.url.clone(),
            error: fields.error.clone().or_else(|| offer.notice()),
            tools: offer
                .tools
                .iter()
                .map(|definition| definition.spec.clone())
                .chain(offer.reads_resources().then(|| tool_spec(&self.config.name)))
                .collect(),
            prompts: offer.prompts.iter().map(|entry| entry.as_named_by_server()).collect(),
            resources: offer.resources,
            has_login: fields.has_login,
        }
    }

    /// Lists that the server called fresh only until now are read again, for the next time.
    pub(crate) fn refresh_old_lists(&self) {
        if let Ok(client) = self.client() {
            client.changed().refresh_old();
        }
    }

    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let fields = self.fields();
        fields.client.clone().ok_or_else(|| {
            let name = &self.config.name;
            let wait = "Wait for it or start it again.".to_owned();
            let (is, hint) = match fields.status {
                ServerStatus::Starting => ("is still starting", wait),
                ServerStatus::Failed => ("has failed", wait),
                ServerStatus::RequiresAuth => {
                    ("requires a login", format!("Run `dragoman mcp login {name}`."))
                }
                ServerStatus::Running
                | ServerStatus::Stopping
                | ServerStatus::Stopped
                | ServerStatus::Disabled => ("is not running", wait),
            };
            Failure::user(format!("The MCP server {name} {is}.")).hint(hint)
        })
    }

    /// One request with the deadline of a call.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<T, Failure> {
        let client = self.client()?;
        let reply = client.request(method, params, self.options.call_timeout).await;
        reply.map_err(|reason| self.request_failure(&client, &reason))
    }

    /// Why a request has no result: the server requires a login, or failed.
    pub(crate) fn request_failure(&self, client: &Client, reason: &str) -> Failure {
        match client.login_required() {
            Some(help) => {
                let message = format!("The MCP server {} requires a login.", self.config.name);
                Failure::new(FailureKind::Tool, message).hint(help)
            }
            None => self.failure(reason),
        }
    }

    pub(crate) fn failure(&self, reason: &str) -> Failure {
        Failure::new(FailureKind::Tool, format!("The MCP server {} failed. {reason}", self.config.name))
    }

    /// The way to a tool of a server that runs or is about to.
    pub(crate) async fn ready_client_for(
        &self,
        definition: &ToolDefinition,
        stop: &CancellationToken,
    ) -> Result<Client, Failure> {
        self.ready_client(stop).await?;
        self.client_for(definition)
    }

    /// Waits for a server that is starting.
    pub(crate) async fn ready_client(&self, stop: &CancellationToken) -> Result<Client, Failure> {
        let mut changes = self.changes.subscribe();
        let started = async {
            while self.status() == ServerStatus::Starting {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return Err(Failure::user("The call was stopped before the server ran.")),
            _ = tokio::time::timeout(self.options.start_timeout, started) => {}
        }
        self.client()
    }

    /// The way to a tool, unless its definition is no longer the offered one.
    fn client_for(&self, definition: &ToolDefinition) -> Result<Client, Failure> {
        let client = self.client()?;
        let offered = |known: &Arc<ToolDefinition>| known.digest == definition.digest;
        if self.fields().offer.tools.iter().any(offered) {
            return Ok(client);
        }
        let (tool, server) = (&definition.spec.name, &self.config.name);
        Err(Failure::user(format!("The MCP server {server} no longer offers {tool} as it was."))
            .hint("The user can allow changed definitions by stopping and starting the server."))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fields(&self) -> MutexGuard<'_, ServerFields> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Offer {
    /// Whether it has resources at all.
    pub(crate) fn has_resources(&self) -> bool {
        self.had_resources || !self.resources.is_empty() || !self.templates.is_empty()
    }

    /// Whether our tool for resources is offered: a tool of the server with its name comes first.
    pub(crate) fn reads_resources(&self) -> bool {
        self.has_resources() && self.tools.iter().all(|tool| tool.spec.name != READ_TOOL)
    }

    /// Omissions of a running server that the user should know.
    fn notice(&self) -> Option<String> {
        let mut notice = self.notes.clone();
        if !self.withheld.is_empty() {
            notice.push(format!(
                "It changed the definition of {} after it was first listed; what changed is withheld. \
                 To allow the new definition, stop the server and start it again, or run `dragoman mcp enable` with its name.",
                self.withheld.join(", ")
            ));
        }
        (!notice.is_empty()).then(|| notice.join(" "))
    }
}
