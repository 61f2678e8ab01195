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
use crate::client::{Client, reason};
use crate::handler::{ClientSide, Stale};
use crate::http::{self, Bridge};
use crate::server_state::ServerState;
use crate::stdio::{self, Program, Running};
use crate::text::{Secrets, line};
use crate::wire::{self, Initialized, VERSIONS};

/// The largest message a server may send.
pub(crate) const LARGEST_MESSAGE: usize = 16 << 20;

/// How long a server that was told the end of its input may take to leave before it is ended.
const FAREWELL: Duration = Duration::from_millis(300);

pub(crate) struct Connection {
    peer: Peer,
    carrier: Carrier,
    calls: Arc<Calls>,
    secrets: Arc<Secrets>,
    pub stale: Arc<Stale>,
}

enum Carrier {
    Pipes(Running),
    Http(Bridge),
}

/// Why a server does not run, for people.
pub(crate) struct Trouble {
    pub status: ServerStatus,
    pub message: String,
}

impl Connection {
    pub(crate) async fn open(state: &ServerState) -> Result<Self, Trouble> {
        let target = (state.config.lookup)().await.map_err(|failure| Trouble::failed(failure.to_string()))?;
        let secrets = Arc::new(Secrets::new(match &target {
            ServerTransport::Stdio { env: pairs, .. } | ServerTransport::Http { headers: pairs, .. } => {
                pairs.iter().map(|(_, value)| value.as_str())
            }
        }));
        let (transport, carrier) = match &target {
            ServerTransport::Stdio { command, args, env } => {
                let options = &state.options;
                let directory = options.roots.first().map(|root| root.as_path());
                let program =
                    Program { command, args, env, withheld: &options.withheld_environment, directory };
                let (transport, running) = stdio::start(program).await.map_err(Trouble::failed)?;
                (transport, Carrier::Pipes(running))
            }
            ServerTransport::Http { url, headers } => {
                let (transport, bridge) = http::open(url, headers).await.map_err(Trouble::failed)?;
                (transport, Carrier::Http(bridge))
            }
        };
        Self::over(state, transport, carrier, secrets)
    }

    fn over(
        state: &ServerState,
        transport: Transport,
        carrier: Carrier,
        secrets: Arc<Secrets>,
    ) -> Result<Self, Trouble> {
        let (calls, stale) = (Arc::<Calls>::default(), Arc::<Stale>::default());
        let side = ClientSide {
            server: state.config.name.clone(),
            roots: wire::roots(&state.options.roots),
            calls: calls.clone(),
            stale: stale.clone(),
            secrets: secrets.clone(),
        };
        let peer = Peer::start(settings(), transport, |_| side)
            .map_err(|error| Trouble::failed(format!("It could not be served: {error}.")))?;
        Ok(Self { peer, carrier, calls, secrets, stale })
    }

    /// The handshake: the client to use from now on and the server's instructions.
    pub(crate) async fn initialize(&self, deadline: Duration) -> Result<(Client, Option<String>), Trouble> {
        let outgoing = self.peer.outgoing();
        let reply = outgoing
            .request("initialize", &wire::initialize_params(), deadline)
            .decode::<Initialized>()
            .await;
        let welcome = match reply {
            Ok(welcome) => welcome,
            Err(error) => return Err(self.refused(&error, deadline).await),
        };
        if !VERSIONS.contains(&welcome.protocol_version.as_str()) {
            let theirs = line(&welcome.protocol_version, 100);
            return Err(Trouble::failed(format!(
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
        let Carrier::Pipes(running) = &self.carrier else {
            self.peer.ended().await;
            return;
        };
        tokio::select! {
            _ = self.peer.ended() => drop(tokio::time::timeout(FAREWELL, running.child.wait()).await),
            // What it said last may still be in the pipe.
            _ = running.child.wait() => drop(tokio::time::timeout(FAREWELL, self.peer.ended()).await),
        }
    }

    /// How the server is, for people: its exit and the last lines of its errors.
    pub(crate) async fn state(&self) -> String {
        let Carrier::Pipes(running) = &self.carrier else { return String::new() };
        let lines = self.secrets.mask(&running.last_lines().await);
        let end = running.child.exit().map(ending).unwrap_or_default();
        match (end.is_empty(), lines.is_empty()) {
            (_, true) => end,
            (true, false) => format!("Its last lines:\n{lines}"),
            (false, false) => format!("{end} Its last lines:\n{lines}"),
        }
    }

    pub(crate) async fn close(self) {
        match self.carrier {
            Carrier::Pipes(running) => {
                // It closes the server's input; a decent one leaves then.
                self.peer.close(FAREWELL).await;
                let _ = tokio::time::timeout(FAREWELL, running.child.wait()).await;
                running.child.stop().await;
            }
            Carrier::Http(bridge) => {
                self.peer.close(FAREWELL).await;
                bridge.closed().await;
            }
        }
    }

    async fn refused(&self, error: &RequestError, deadline: Duration) -> Trouble {
        if matches!(&self.carrier, Carrier::Http(bridge) if bridge.wants_login()) {
            return Trouble {
                status: ServerStatus::RequiresAuth,
                message:
                    "It wants a login (HTTP 401). Set an Authorization header for it in the configuration."
                        .into(),
            };
        }
        if matches!(error, RequestError::Closed) {
            // Its exit code is known a moment after the end of its output.
            self.ended().await;
        }
        let newer = match error {
            RequestError::Fault(fault) => supported(fault),
            RequestError::Deadline
            | RequestError::Closed
            | RequestError::Full
            | RequestError::TooLarge
            | RequestError::Unserialisable(_)
            | RequestError::Unexpected(_) => None,
        };
        let message = match newer {
            Some(theirs) => format!(
                "It speaks only the revisions {theirs} of the protocol; known are {}. Update Dragoman or the server.",
                VERSIONS.join(", ")
            ),
            None => reason("initialize", error, deadline),
        };
        Trouble::failed(self.secrets.mask(&message))
    }
}

impl Trouble {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { status: ServerStatus::Failed, message: message.into() }
    }
}

fn settings() -> PeerOptions {
    PeerOptions {
        message_limit: LARGEST_MESSAGE,
        in_flight_limit: 16,
        stall_limit: Duration::from_secs(20),
        cancel: Some(CancelMethod { method: "notifications/cancelled", parameter: "requestId" }),
        ..PeerOptions::newline()
    }
}

fn ending(exit: Exit) -> String {
    match exit {
        Exit { code: Some(code), .. } => format!("It ended with exit code {code}."),
        Exit { signal: Some(signal), .. } => format!("It was ended by signal {signal}."),
        _ => "It ended.".to_owned(),
    }
}

/// The revisions that a server without ours names with its error.
fn supported(fault: &Fault) -> Option<String> {
    let data: Value = serde_json::from_str(fault.data.as_ref()?.get()).ok()?;
    let theirs: Vec<&str> = data.get("supported")?.as_array()?.iter().filter_map(Value::as_str).collect();
    (!theirs.is_empty()).then(|| line(&theirs.join(", "), 200))
}
