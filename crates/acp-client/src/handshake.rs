//! From a started process to a session that takes prompts: `initialize`, login, `session/new`, `load`, `resume`, the model.
//!
//! Invariants: each step has a deadline; a session that cannot be continued is replaced by a new one, and the result says so.

use std::path::Path;

use domain::Failure;
use domain::agent::AgentOpening;
use process::Spawn;
use rpc::{Inbound, Outgoing, Peer, PeerOptions, RequestError};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::child::{self, AgentChild};
use crate::driver::{login_needed, refused};
use crate::model_choice::ModelChoice;
use crate::options::Limits;
use crate::wire::{
    AUTH_REQUIRED, AgentCapabilities, InitializeResult, PROTOCOL_VERSION, SessionResult, initialize_params,
    method,
};

/// A process that has answered `initialize`.
pub(crate) struct Connected {
    pub(crate) peer: Peer,
    pub(crate) inbox: mpsc::Receiver<Inbound>,
    pub(crate) child: AgentChild,
    pub(crate) title: String,
    pub(crate) capabilities: AgentCapabilities,
    pub(crate) auth_methods: Vec<AuthMethod>,
}

/// A way to log in that an agent offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthMethod {
    pub id: String,
    pub name: String,
    pub description: String,
    /// The program and arguments that log in on a terminal; `None`: the agent does it when asked.
    pub terminal: Option<(Option<String>, Vec<String>)>,
}

/// What an agent says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub title: String,
    pub auth_methods: Vec<AuthMethod>,
    pub can_load: bool,
    /// Whether it refuses to work without a login; `None`: that was not tried.
    pub needs_login: Option<bool>,
}

/// A session that is open.
pub(crate) struct OpenSession {
    pub(crate) id: String,
    pub(crate) is_known: bool,
    /// The agent sends what was said in it, perhaps after its answer.
    pub(crate) is_replayed: bool,
    pub(crate) result: SessionResult,
}

/// Starts an agent, asks what it is, and ends it. With a folder, it also opens a session there.
pub async fn probe(
    name: &str,
    spawn: Spawn,
    folder: Option<&Path>,
    limits: &Limits,
) -> Result<Probe, Failure> {
    let connected = connect(name, spawn, limits, true).await?;
    let Connected { title, auth_methods, capabilities, child, peer, .. } = &connected;
    let needs_login = match folder {
        Some(folder) => {
            let params = json!({"cwd": folder, "mcpServers": []});
            match call(&peer.outgoing(), method::SESSION_NEW, &params, limits).await {
                Ok(_) => Some(false),
                Err(RequestError::Fault(fault)) if fault.code == AUTH_REQUIRED => Some(true),
                Err(_) => None,
            }
        }
        None => None,
    };
    let can_load = capabilities.load_session || capabilities.can_resume();
    let probe = Probe { title: title.clone(), auth_methods: auth_methods.clone(), can_load, needs_login };
    child.stop().await;
    Ok(probe)
}

/// Starts an agent and asks it to log in; it may open a browser.
pub async fn authenticate(name: &str, spawn: Spawn, method: &str, limits: &Limits) -> Result<(), Failure> {
    let connected = connect(name, spawn, limits, true).await?;
    let (outgoing, params) = (connected.peer.outgoing(), json!({"methodId": method}));
    let answer = call(&outgoing, method::AUTHENTICATE, &params, limits).await;
    let done = answer.map(drop).map_err(|error| refused(name, &error));
    connected.child.stop().await;
    done
}

pub(crate) async fn connect(
    name: &str,
    spawn: Spawn,
    limits: &Limits,
    reads_files: bool,
) -> Result<Connected, Failure> {
    let not_started = |why: String| {
        Failure::provider(format!("The agent {name} could not be started: {why}"))
            .hint("`dragoman acp-agents list` shows the agents of this machine.")
    };
    let (transport, child) = child::start(spawn).await.map_err(not_started)?;
    let options = PeerOptions { message_limit: limits.message, ..PeerOptions::newline() };
    let (peer, inbox) = rpc::inbox(options, transport).map_err(|error| not_started(error.to_string()))?;
    let params = initialize_params(reads_files);
    let answer = call(&peer.outgoing(), method::INITIALIZE, &params, limits).await;
    let result = answer.and_then(|answer| {
        serde_json::from_value::<InitializeResult>(answer).map_err(RequestError::Unexpected)
    });
    let result = match result {
        Ok(result) => result,
        Err(error) => {
            let why = child.explain_end().await;
            let failure = refused(name, &error);
            child.stop().await;
            return Err(Failure {
                message: format!("{} {why}", failure.message).trim_end().to_owned(),
                ..failure
            });
        }
    };
    if result.protocol_version != json!(PROTOCOL_VERSION) {
        child.stop().await;
        let version = result.protocol_version.to_string();
        return Err(Failure::provider(format!(
            "The agent {name} speaks version {version} of the Agent Client Protocol; Dragoman speaks version 1."
        )));
    }
    Ok(Connected {
        title: title_of(name, &result),
        auth_methods: result.auth_methods.iter().filter_map(auth_method).take(20).collect(),
        capabilities: result.agent_capabilities,
        peer,
        inbox,
        child,
    })
}

fn title_of(name: &str, result: &InitializeResult) -> String {
    let Some(info) = &result.agent_info else { return name.to_owned() };
    let title = info.title.as_ref().filter(|title| !title.is_empty()).unwrap_or(&info.name);
    let text: String = format!("{title} {}", info.version).chars().take(100).collect();
    domain::visible_line(text.trim()).into_owned()
}

fn auth_method(value: &Value) -> Option<AuthMethod> {
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|it| Some(it.as_str()?.to_owned())).collect()
    };
    let in_meta = &value["_meta"]["terminal-auth"];
    let terminal = if in_meta.is_object() {
        Some((in_meta["command"].as_str().map(ToOwned::to_owned), texts(&in_meta["args"])))
    } else {
        (value["type"] == "terminal").then(|| (None, texts(&value["args"])))
    };
    let text = |member: &str| value[member].as_str().unwrap_or_default().to_owned();
    let id = text("id");
    (!id.is_empty()).then(|| AuthMethod {
        name: text("name"),
        description: text("description"),
        id,
        terminal,
    })
}

/// A request while no prompt runs; what the agent sends meanwhile is read by its driver.
async fn call(
    outgoing: &Outgoing,
    method: &str,
    params: &Value,
    limits: &Limits,
) -> Result<Value, RequestError> {
    outgoing
        .request(method, params, limits.opening)
        .decode::<Option<Value>>()
        .await
        .map(Option::unwrap_or_default)
}

/// Opens the session of a chat on a connection whose driver runs.
pub(crate) struct SessionOpener<'a> {
    pub(crate) name: &'a str,
    pub(crate) outgoing: &'a Outgoing,
    pub(crate) capabilities: &'a AgentCapabilities,
    pub(crate) auth_methods: &'a [AuthMethod],
    /// Ways to log in that need nobody.
    pub(crate) silent_logins: &'a [String],
    /// The server that gives the agent our tools.
    pub(crate) bridge: Option<Value>,
    pub(crate) limits: &'a Limits,
}

impl SessionOpener<'_> {
    /// The known session where the agent can go on with it, else a new one.
    pub(crate) async fn open(&self, opening: &AgentOpening) -> Result<OpenSession, Failure> {
        if let Some(known) = &opening.known {
            match self.go_on(opening, known).await {
                Ok(Some(open)) => return Ok(open),
                Ok(None) => {}
                Err(error) => tracing::info!(agent = self.name, %error, "a session cannot be continued"),
            }
        }
        let result = match self.request_session(method::SESSION_NEW, opening, None).await {
            Err(RequestError::Fault(fault)) if fault.code == AUTH_REQUIRED => {
                self.log_in().await?;
                self.request_session(method::SESSION_NEW, opening, None).await
            }
            result @ (Ok(_) | Err(_)) => result,
        };
        let result = result.map_err(|error| refused(self.name, &error))?;
        if result.session_id.is_empty() {
            return Err(Failure::provider(format!("The agent {} opened no session.", self.name)));
        }
        Ok(OpenSession { id: result.session_id.clone(), is_known: false, is_replayed: false, result })
    }

    /// Tries the ways to continue a session that the agent says it has. Some agents name one that they do not have.
    async fn go_on(&self, opening: &AgentOpening, known: &str) -> Result<Option<OpenSession>, RequestError> {
        let ways = [
            (self.capabilities.can_resume(), method::SESSION_RESUME),
            (self.capabilities.load_session, method::SESSION_LOAD),
        ];
        let mut failed = Ok(None);
        for (_, method) in ways.into_iter().filter(|(is_there, _)| *is_there) {
            let result = match self.request_session(method, opening, Some(known)).await {
                Err(RequestError::Fault(fault)) if fault.code == AUTH_REQUIRED => {
                    if self.log_in().await.is_err() {
                        return Ok(None);
                    }
                    self.request_session(method, opening, Some(known)).await
                }
                result @ (Ok(_) | Err(_)) => result,
            };
            match result {
                Ok(result) => {
                    let is_replayed = method == method::SESSION_LOAD;
                    let id = known.to_owned();
                    return Ok(Some(OpenSession { id, is_known: true, is_replayed, result }));
                }
                Err(error) => failed = Err(error),
            }
        }
        failed
    }

    async fn request_session(
        &self,
        method: &str,
        opening: &AgentOpening,
        known: Option<&str>,
    ) -> Result<SessionResult, RequestError> {
        let servers: Vec<&Value> = self.bridge.iter().collect();
        let mut params = json!({"cwd": opening.roots.first(), "mcpServers": servers});
        if opening.roots.len() > 1 && self.capabilities.takes_more_folders() {
            params["additionalDirectories"] = json!(opening.roots[1..]);
        }
        if let Some(known) = known {
            params["sessionId"] = json!(known);
        }
        let answer = call(self.outgoing, method, &params, self.limits).await?;
        if answer.is_null() {
            return Ok(SessionResult::default());
        }
        serde_json::from_value(answer).map_err(RequestError::Unexpected)
    }

    /// Logs in by a way that needs nobody, where there is one.
    async fn log_in(&self) -> Result<(), Failure> {
        for wanted in self.silent_logins {
            if !self.auth_methods.iter().any(|method| method.id == *wanted) {
                continue;
            }
            let params = json!({"methodId": wanted});
            match call(self.outgoing, method::AUTHENTICATE, &params, self.limits).await {
                Ok(_) => return Ok(()),
                Err(error) => tracing::info!(agent = self.name, method = wanted, %error, "a login failed"),
            }
        }
        Err(login_needed(self.name))
    }

    /// Chooses the model of the session.
    pub(crate) async fn choose_model(
        &self,
        session: &str,
        choice: &ModelChoice,
        wanted: &str,
    ) -> Result<(), Failure> {
        let request = choice.request(wanted, session).map_err(Failure::user)?;
        let Some((method, params)) = request else { return Ok(()) };
        self.request(method, &params).await.map(drop)
    }

    /// A request about the session, while a prompt runs too.
    pub(crate) async fn request(&self, method: &str, params: &Value) -> Result<Value, Failure> {
        call(self.outgoing, method, params, self.limits).await.map_err(|error| refused(self.name, &error))
    }
}
