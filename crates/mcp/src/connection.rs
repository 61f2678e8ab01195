//! One connection to a server, from its start to its end, whatever carries it.
//!
//! Invariant: `close` leaves nothing behind (process tree, HTTP session, tasks); dropping it does the same without
//! waiting.

use std::sync::Arc;
use std::time::Duration;

use domain::command::ServerTransport;
use domain::tool::ServerStatus;
use process::Exit;
use rpc::{CancelMethod, Fault, Peer, PeerOptions, RequestError, Transport};
use serde_json::{Value, json};

use crate::auth::Authorization;
use crate::calls::Calls;
use crate::client::{Client, ClientFacts};
use crate::definitions::ToolDefinition;
use crate::era::{self, Era};
use crate::handler::{ChangedLists, ServerMessageHandler};
use crate::http::{self, HttpBridge, Refusal};
use crate::read_cache::ReadCache;
use crate::request_error::describe_error;
use crate::server_state::ServerState;
use crate::stdio::{self, ServerProcess, ServerProgram};
use crate::text::{Secrets, single_line};
use crate::wire::{self, Discovered, Initialized, Offered, STATELESS_ERRORS, STATELESS_VERSION, VERSIONS};

/// How long a server may take to exit after its input was closed, before it is killed.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(300);

pub(crate) struct Connection {
    peer: Peer,
    link: Link,
    calls: Arc<Calls>,
    offered: Offered,
    probe_timeout: Duration,
    server: String,
    roots: Value,
    /// The name under which the era of the server is remembered.
    era_key: String,
    secrets: Arc<Secrets>,
    pub changed: Arc<ChangedLists>,
    read_cache: Arc<ReadCache>,
}

enum Link {
    Pipes(Box<ServerProcess>),
    Http(HttpBridge),
}

/// The reason why a server does not run, and the status it gets.
pub(crate) struct ServerError {
    pub status: ServerStatus,
    pub message: String,
    /// The server ended because of the question for its era, and can be started again at once.
    pub is_probed_away: bool,
    /// The server refused the handshake because it is of the stateless era: it was only late to say so.
    pub is_stateless: bool,
    /// It ended before it answered the handshake.
    pub is_closed: bool,
    /// Nothing answers at its address now; it may later.
    pub is_unreachable: bool,
}

impl Connection {
    pub(crate) async fn open(state: &ServerState) -> Result<Self, ServerError> {
        let target =
            (state.config.lookup)().await.map_err(|failure| ServerError::failed(failure.to_string()))?;
        let secrets = Arc::new(Secrets::new(match &target {
            ServerTransport::Stdio { env: pairs, .. } | ServerTransport::Http { headers: pairs, .. } => {
                pairs.iter().map(|(_, value)| value.as_str())
            }
        }));
        let (transport, link) = match &target {
            ServerTransport::Stdio { command, args, env } => {
                let options = &state.options;
                let directory = options.roots.first().map(|root| root.as_path());
                let withheld = &options.withheld_environment;
                let confine = options.sandbox.clone().map(|sandbox| (sandbox, state.config.grants.clone()));
                let program = ServerProgram { command, args, env, withheld, directory, confine };
                let (transport, running) = stdio::start(program).await.map_err(ServerError::failed)?;
                (transport, Link::Pipes(Box::new(running)))
            }
            ServerTransport::Http { url, headers } => {
                let (transport, bridge) = http::open(url, headers, authorization(state, url, headers).await?)
                    .await
                    .map_err(ServerError::failed)?;
                (transport, Link::Http(bridge))
            }
        };
        let era_key = era::key(&target);
        if state.kept().has_handshake {
            era::remember_earlier(&era_key, Era::Handshake);
        }
        Self::attach(state, transport, link, secrets, era_key)
    }

    fn attach(
        state: &ServerState,
        transport: Transport,
        link: Link,
        secrets: Arc<Secrets>,
        era_key: String,
    ) -> Result<Self, ServerError> {
        let (calls, changed) = (Arc::<Calls>::default(), Arc::<ChangedLists>::default());
        let read_cache = Arc::<ReadCache>::default();
        let (server, roots) = (state.config.name.clone(), wire::roots(&state.options.roots));
        let side = ServerMessageHandler {
            server: server.clone(),
            roots: roots.clone(),
            calls: calls.clone(),
            changed: changed.clone(),
            read_cache: read_cache.clone(),
            secrets: secrets.clone(),
            sampling: state.config.sampling,
        };
        let peer = Peer::start(peer_options(), transport, |_| side)
            .map_err(|error| ServerError::failed(format!("It could not be served: {error}.")))?;
        let offered = Offered { forms: state.options.forms, sampling: state.config.sampling };
        let probe_timeout = state.options.probe_timeout;
        Ok(Self {
            peer,
            link,
            calls,
            offered,
            probe_timeout,
            server,
            roots,
            era_key,
            secrets,
            changed,
            read_cache,
        })
    }

    /// Finds out the era of the server and makes it ready: the client to use from now on, and the server's instructions.
    /// The stateless era is tried first, unless the server was seen to be of the other.
    pub(crate) async fn negotiate(
        &self,
        deadline: Duration,
    ) -> Result<(Client, Option<String>), ServerError> {
        let known = era::remembered(&self.era_key);
        if known != Some(Era::Handshake)
            && let Some(discovered) = self.discover(deadline.min(self.probe_timeout)).await?
        {
            era::remember(&self.era_key, Era::Stateless);
            return Ok((
                self.client(
                    Era::Stateless,
                    STATELESS_VERSION,
                    discovered.capabilities,
                    discovered.server_info,
                ),
                discovered.instructions,
            ));
        }
        let initialized = self.initialize(deadline).await;
        if initialized.as_ref().is_err_and(|error| error.is_stateless)
            && let Some(discovered) = self.discover(deadline).await?
        {
            era::remember(&self.era_key, Era::Stateless);
            let client = self.client(
                Era::Stateless,
                STATELESS_VERSION,
                discovered.capabilities,
                discovered.server_info,
            );
            return Ok((client, discovered.instructions));
        }
        match &initialized {
            // It ended over the question for its era, only later.
            Err(error) if error.is_closed && known.is_none() => return Err(self.probed_away()),
            Ok(_) => era::remember(&self.era_key, Era::Handshake),
            Err(error) if known == Some(Era::Handshake) && error.status == ServerStatus::Failed => {
                // It may have been updated since.
                era::forget(&self.era_key);
            }
            Err(_) => {}
        }
        initialized
    }

    /// What a server of the stateless era says of itself; `None`: it is not of that era.
    async fn discover(&self, deadline: Duration) -> Result<Option<Discovered>, ServerError> {
        let params = json!({"_meta": wire::meta(self.offered)});
        let ask =
            || self.peer.outgoing().request("server/discover", &params, deadline).decode::<Discovered>();
        let mut answer = ask().await;
        // A server that refuses the revision and names it as supported may have meant a header on the way.
        if matches!(&answer, Err(RequestError::Fault(fault)) if is_supported_after_all(fault)) {
            answer = ask().await;
        }
        match answer {
            Ok(found) if found.supported_versions.iter().any(|version| version == STATELESS_VERSION) => {
                Ok(Some(found))
            }
            Err(RequestError::Fault(fault)) if STATELESS_ERRORS.contains(&fault.code) => {
                let theirs =
                    supported_revisions(&fault).unwrap_or_else(|| "none of the known ones".to_owned());
                Err(ServerError::failed(format!(
                    "It speaks only the revisions {theirs} of the protocol; supported: {STATELESS_VERSION}, {}. \
                     Update Dragoman or the server.",
                    VERSIONS.join(", ")
                )))
            }
            Err(RequestError::Closed) => Err(self.probed_away()),
            Err(_) if self.refusal().is_some() => Err(self.refusal_error()),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Some servers end when their first message is not `initialize`: the next start sends only that.
    fn probed_away(&self) -> ServerError {
        era::remember(&self.era_key, Era::Handshake);
        ServerError {
            is_probed_away: true,
            ..ServerError::failed("It ended when it was asked for its revision.")
        }
    }

    fn client(
        &self,
        era: Era,
        revision: &str,
        capabilities: wire::Capabilities,
        info: Option<wire::ServerInfo>,
    ) -> Client {
        let facts = ClientFacts {
            server: self.server.clone(),
            era,
            offered: self.offered,
            roots: self.roots.clone(),
            capabilities,
            is_http: matches!(self.link, Link::Http(_)),
            refusal: match &self.link {
                Link::Pipes(_) => Arc::default(),
                Link::Http(bridge) => bridge.shared_refusal(),
            },
            login_help: self.login_help(),
            revision: revision.to_owned(),
            program_version: info.and_then(|info| info.version),
            changed: self.changed.clone(),
            read_cache: self.read_cache.clone(),
        };
        Client::new(self.peer.outgoing(), self.calls.clone(), facts)
    }

    /// The handshake of the older revisions.
    async fn initialize(&self, deadline: Duration) -> Result<(Client, Option<String>), ServerError> {
        let outgoing = self.peer.outgoing();
        let reply = outgoing
            .request("initialize", &wire::initialize_params(self.offered), deadline)
            .decode::<Initialized>()
            .await;
        let welcome = match reply {
            Ok(welcome) => welcome,
            Err(error) => return Err(self.initialize_error(&error, deadline).await),
        };
        if !VERSIONS.contains(&welcome.protocol_version.as_str()) {
            let theirs = single_line(&welcome.protocol_version, 100);
            return Err(ServerError::failed(format!(
                "It speaks the revision {theirs} of the protocol; supported: {}. Update Dragoman or the server.",
                VERSIONS.join(", ")
            )));
        }
        // The writer takes it before any request that follows.
        let _ = outgoing.notify("notifications/initialized", &Value::Null);
        let client =
            self.client(Era::Handshake, &welcome.protocol_version, welcome.capabilities, welcome.server_info);
        Ok((client, welcome.instructions))
    }

    /// Resolves when the server is gone by itself.
    pub(crate) async fn ended(&self) {
        let running = match &self.link {
            Link::Pipes(running) => running,
            Link::Http(bridge) => {
                tokio::select! {
                    _ = self.peer.ended() => {}
                    () = bridge.ended() => {}
                }
                return;
            }
        };
        tokio::select! {
            _ = self.peer.ended() => drop(tokio::time::timeout(CLOSE_TIMEOUT, running.child.wait()).await),
            // What it said last may still be in the pipe.
            _ = running.child.wait() => drop(tokio::time::timeout(CLOSE_TIMEOUT, self.peer.ended()).await),
        }
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.refusal().is_some()
    }

    /// Whether the server was sent a token of the user's login.
    pub(crate) fn has_login(&self) -> bool {
        match &self.link {
            Link::Pipes(_) => false,
            Link::Http(bridge) => bridge.has_login(),
        }
    }

    /// Whether nothing answers at the address of the server.
    pub(crate) fn is_unreachable(&self) -> bool {
        match &self.link {
            Link::Pipes(_) => false,
            Link::Http(bridge) => bridge.is_unreachable(),
        }
    }

    fn refusal(&self) -> Option<Refusal> {
        match &self.link {
            Link::Pipes(_) => None,
            Link::Http(bridge) => bridge.refusal(),
        }
    }

    /// The status of a server that refuses requests because they need a login, or another one than this.
    pub(crate) fn refusal_error(&self) -> ServerError {
        let refusal =
            self.refusal().unwrap_or(Refusal { reason: "It requires a login.".to_owned(), is_login: true });
        let (status, message) = match refusal.is_login {
            true => (ServerStatus::RequiresAuth, format!("{} {}", refusal.reason, self.login_help())),
            false => (ServerStatus::Failed, refusal.reason),
        };
        ServerError { status, ..ServerError::failed(message) }
    }

    /// What a person does to log in.
    fn login_help(&self) -> String {
        match &self.link {
            Link::Http(bridge) if bridge.has_own_credentials() => {
                "Check the Authorization header in its entry, then start it again.".to_owned()
            }
            Link::Http(_) | Link::Pipes(_) => format!("Run `dragoman mcp login {}`.", self.server),
        }
    }

    /// The arguments of these tools are repeated as headers.
    pub(crate) fn use_param_headers(&self, tools: &[Arc<ToolDefinition>]) {
        let Link::Http(bridge) = &self.link else { return };
        let annotated = tools.iter().filter(|tool| !tool.param_headers.is_empty());
        bridge.set_param_headers(
            annotated.map(|tool| (tool.wire_name.clone(), tool.param_headers.clone())).collect(),
        );
    }

    /// Resolves when the server has refused a request because it needs a login, at any time.
    pub(crate) async fn login_required(&self) {
        match &self.link {
            Link::Pipes(_) => std::future::pending().await,
            Link::Http(bridge) => bridge.login_required().await,
        }
    }

    /// The exit of the server and the last lines of its stderr, for the user.
    pub(crate) async fn exit_report(&self) -> String {
        let Link::Pipes(running) = &self.link else { return String::new() };
        let lines = self.secrets.mask(&running.last_lines().await);
        let end = running.child.exit().map(describe_exit).unwrap_or_default();
        match (end.is_empty(), lines.is_empty()) {
            (_, true) => end,
            (true, false) => format!("Its last lines:\n{lines}"),
            (false, false) => format!("{end} Its last lines:\n{lines}"),
        }
    }

    pub(crate) async fn close(self) {
        match self.link {
            Link::Pipes(running) => {
                // It closes the server's input; a decent one leaves then.
                self.peer.close(CLOSE_TIMEOUT).await;
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, running.child.wait()).await;
                running.child.stop().await;
            }
            Link::Http(bridge) => {
                self.peer.close(CLOSE_TIMEOUT).await;
                bridge.closed().await;
            }
        }
    }

    async fn initialize_error(&self, error: &RequestError, deadline: Duration) -> ServerError {
        if self.refusal().is_some() {
            return self.refusal_error();
        }
        if matches!(error, RequestError::Closed) {
            // Its exit code is known a moment after the end of its output.
            self.ended().await;
        }
        let newer = match error {
            RequestError::Fault(fault) => supported_revisions(fault),
            RequestError::Deadline
            | RequestError::Closed
            | RequestError::Full
            | RequestError::TooLarge
            | RequestError::Unserializable(_)
            | RequestError::Unexpected(_) => None,
        };
        let is_stateless =
            newer.as_ref().is_some_and(|theirs| theirs.split(", ").any(|it| it == STATELESS_VERSION));
        let message = match newer {
            Some(theirs) => format!(
                "It speaks only the revisions {theirs} of the protocol; supported: {}. Update Dragoman or the server.",
                VERSIONS.join(", ")
            ),
            None => describe_error("initialize", error, deadline),
        };
        let is_closed = matches!(error, RequestError::Closed);
        let is_late = matches!((&self.link, error), (Link::Http(_), RequestError::Deadline));
        let is_unreachable = is_late || self.is_unreachable();
        ServerError {
            is_stateless,
            is_closed,
            is_unreachable,
            ..ServerError::failed(self.secrets.mask(&message))
        }
    }
}

impl ServerError {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            status: ServerStatus::Failed,
            message: message.into(),
            is_probed_away: false,
            is_stateless: false,
            is_closed: false,
            is_unreachable: false,
        }
    }
}

/// The login of an HTTP server; `None` where the user set a header for it.
async fn authorization(
    state: &ServerState,
    url: &str,
    headers: &[(String, String)],
) -> Result<Option<Authorization>, ServerError> {
    let has_header = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let (Some(logins), false, Ok(url)) = (&state.options.logins, has_header, reqwest::Url::parse(url)) else {
        return Ok(None);
    };
    let settings =
        (state.config.oauth)().await.map_err(|failure| ServerError::failed(failure.to_string()))?;
    Ok(Some(Authorization::new(&url, settings, logins.clone())))
}

fn peer_options() -> PeerOptions {
    PeerOptions {
        message_limit: wire::MAX_MESSAGE_BYTES,
        in_flight_limit: 16,
        stall_limit: Duration::from_secs(20),
        cancel: Some(CancelMethod { method: "notifications/cancelled", parameter: "requestId" }),
        ..PeerOptions::newline()
    }
}

fn describe_exit(exit: Exit) -> String {
    match exit {
        Exit { code: Some(code), .. } => {
            format!("It ended with exit code {code}. Check its command and arguments in the configuration.")
        }
        Exit { signal: Some(signal), .. } => format!("It was ended by signal {signal}."),
        _ => "It ended.".to_owned(),
    }
}

fn is_supported_after_all(fault: &Fault) -> bool {
    let supported = supported_revisions(fault).unwrap_or_default();
    STATELESS_ERRORS.contains(&fault.code) && supported.split(", ").any(|theirs| theirs == STATELESS_VERSION)
}

/// The revisions that a server names in its error when it supports none of the known ones.
fn supported_revisions(fault: &Fault) -> Option<String> {
    let data: Value = serde_json::from_str(fault.data.as_ref()?.get()).ok()?;
    let theirs: Vec<&str> = data.get("supported")?.as_array()?.iter().filter_map(Value::as_str).collect();
    (!theirs.is_empty()).then(|| single_line(&theirs.join(", "), 200))
}
