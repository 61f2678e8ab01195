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
use serde_json::Value;

use crate::calls::Calls;
use crate::client::{Client, describe_error};
use crate::handler::{ChangedLists, ServerMessageHandler};
use crate::http::{self, HttpBridge};
use crate::server_state::ServerState;
use crate::stdio::{self, Running, ServerProgram};
use crate::text::{Secrets, single_line};
use crate::wire::{self, Initialized, VERSIONS};

/// The largest message a server may send.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// How long a server may take to exit after its input was closed, before it is killed.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(300);

pub(crate) struct Connection {
    peer: Peer,
    link: Link,
    calls: Arc<Calls>,
    forms: bool,
    secrets: Arc<Secrets>,
    pub changed: Arc<ChangedLists>,
}

enum Link {
    Pipes(Running),
    Http(HttpBridge),
}

/// The reason why a server does not run, and the status it gets.
pub(crate) struct ServerError {
    pub status: ServerStatus,
    pub message: String,
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
                let program =
                    ServerProgram { command, args, env, withheld: &options.withheld_environment, directory };
                let (transport, running) = stdio::start(program).await.map_err(ServerError::failed)?;
                (transport, Link::Pipes(running))
            }
            ServerTransport::Http { url, headers } => {
                let (transport, bridge) = http::open(url, headers).await.map_err(ServerError::failed)?;
                (transport, Link::Http(bridge))
            }
        };
        Self::attach(state, transport, link, secrets)
    }

    fn attach(
        state: &ServerState,
        transport: Transport,
        link: Link,
        secrets: Arc<Secrets>,
    ) -> Result<Self, ServerError> {
        let (calls, changed) = (Arc::<Calls>::default(), Arc::<ChangedLists>::default());
        let side = ServerMessageHandler {
            server: state.config.name.clone(),
            roots: wire::roots(&state.options.roots),
            calls: calls.clone(),
            changed: changed.clone(),
            secrets: secrets.clone(),
        };
        let peer = Peer::start(peer_options(), transport, |_| side)
            .map_err(|error| ServerError::failed(format!("It could not be served: {error}.")))?;
        Ok(Self { peer, link, calls, forms: state.options.forms, secrets, changed })
    }

    /// The handshake: the client to use from now on and the server's instructions.
    pub(crate) async fn initialize(
        &self,
        deadline: Duration,
    ) -> Result<(Client, Option<String>), ServerError> {
        let outgoing = self.peer.outgoing();
        let reply = outgoing
            .request("initialize", &wire::initialize_params(self.forms), deadline)
            .decode::<Initialized>()
            .await;
        let welcome = match reply {
            Ok(welcome) => welcome,
            Err(error) => return Err(self.initialize_error(&error, deadline).await),
        };
        if !VERSIONS.contains(&welcome.protocol_version.as_str()) {
            let theirs = single_line(&welcome.protocol_version, 100);
            return Err(ServerError::failed(format!(
                "It speaks the revision {theirs} of the protocol; known are {}. Update Dragoman or the server.",
                VERSIONS.join(", ")
            )));
        }
        // The writer takes it before any request that follows.
        let _ = outgoing.notify("notifications/initialized", &Value::Null);
        let client = Client::new(outgoing, self.calls.clone(), welcome.capabilities);
        Ok((client, welcome.instructions))
    }

    /// Resolves when the server is gone by itself.
    pub(crate) async fn ended(&self) {
        let Link::Pipes(running) = &self.link else {
            self.peer.ended().await;
            return;
        };
        tokio::select! {
            _ = self.peer.ended() => drop(tokio::time::timeout(CLOSE_TIMEOUT, running.child.wait()).await),
            // What it said last may still be in the pipe.
            _ = running.child.wait() => drop(tokio::time::timeout(CLOSE_TIMEOUT, self.peer.ended()).await),
        }
    }

    /// Resolves when the server has answered a request with 401, at any time.
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
        if matches!(&self.link, Link::Http(bridge) if bridge.wants_login()) {
            return ServerError::requires_login();
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
        let message = match newer {
            Some(theirs) => format!(
                "It speaks only the revisions {theirs} of the protocol; known are {}. Update Dragoman or the server.",
                VERSIONS.join(", ")
            ),
            None => describe_error("initialize", error, deadline),
        };
        ServerError::failed(self.secrets.mask(&message))
    }
}

impl ServerError {
    pub(crate) fn requires_login() -> Self {
        Self {
            status: ServerStatus::RequiresAuth,
            message: "It requires a login (HTTP 401). Set an Authorization header for it in the configuration, then \
                      start it again."
                .to_owned(),
        }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { status: ServerStatus::Failed, message: message.into() }
    }
}

fn peer_options() -> PeerOptions {
    PeerOptions {
        message_limit: MAX_MESSAGE_BYTES,
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

/// The revisions that a server names in its error when it supports none of the known ones.
fn supported_revisions(fault: &Fault) -> Option<String> {
    let data: Value = serde_json::from_str(fault.data.as_ref()?.get()).ok()?;
    let theirs: Vec<&str> = data.get("supported")?.as_array()?.iter().filter_map(Value::as_str).collect();
    (!theirs.is_empty()).then(|| single_line(&theirs.join(", "), 200))
}
