//! One configured agent: a process for each chat that uses it, kept between prompts.
//!
//! Invariants: a chat has at most one process; the number of processes is bounded, and the one that was unused the longest
//! goes first; dropping the agent ends all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::agent::{
    AgentChoice, AgentOffers, AgentOpening, AgentStream, AgentToolCall, ExternalAgent, OpenedAgent,
};
use domain::item::Part;
use domain::{BoxFuture, Failure, SessionId};
use futures_util::stream;
use rpc::Outgoing;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::bridge::Bridge;
use crate::driver::{Driver, DriverState, PromptCommand};
use crate::handshake::{self, AuthMethod, OpenSession, SessionOpener};
use crate::model_choice::{DEFAULT, ModelChoice};
use crate::offers::OfferBook;
use crate::options::{AgentOptions, Launch};
use crate::terminals::Terminals;
use crate::wire::{AgentCapabilities, method};

/// Events that wait for the engine; while they do, the agent is not read.
const EVENTS: usize = 64;
/// How long an agent must say nothing after it loaded a session, and how long that is waited for.
const QUIET_AFTER_REPLAY: Duration = Duration::from_millis(200);
const LONGEST_REPLAY: Duration = Duration::from_secs(5);
/// Calls of our tools that wait.
const TOOL_CALLS: usize = 16;

/// An agent with its processes. Models of it are made by [`Agent::with_model`].
pub struct Agent {
    options: AgentOptions,
    running: Mutex<HashMap<SessionId, Arc<Running>>>,
}

/// A process that has a session.
struct Running {
    outgoing: Outgoing,
    capabilities: AgentCapabilities,
    auth_methods: Vec<AuthMethod>,
    title: String,
    is_confined: bool,
    seals_forbidden: bool,
    /// It was started for a behavior that forbids changes.
    is_read_only: bool,
    commands: mpsc::Sender<PromptCommand>,
    state: watch::Receiver<DriverState>,
    session: Mutex<SessionState>,
    offers: OfferBook,
    /// The server that gives the agent our tools.
    bridge: Option<Value>,
    /// When the agent last sent an update outside of a prompt.
    heard: watch::Receiver<Instant>,
}

struct SessionState {
    id: String,
    choice: ModelChoice,
    /// What was chosen last.
    model: String,
    used: Instant,
    /// No prompt was sent to it yet.
    is_unused: bool,
}

impl Running {
    fn state(&self) -> DriverState {
        *self.state.borrow()
    }

    fn session(&self) -> MutexGuard<'_, SessionState> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of what the agent repeats of a session: it would be taken for a part of the next answer.
    async fn until_quiet(&self) {
        let (mut heard, end) = (self.heard.clone(), Instant::now() + LONGEST_REPLAY);
        while tokio::time::timeout(QUIET_AFTER_REPLAY, heard.changed()).await.is_ok_and(|it| it.is_ok())
            && Instant::now() < end
        {}
    }

    async fn until_not_working(&self) {
        let mut state = self.state.clone();
        // An error means that the driver is gone.
        let _ = state.wait_for(|state| *state != DriverState::Working).await;
    }
}

impl Agent {
    pub fn new(options: AgentOptions) -> Arc<Self> {
        Arc::new(Self { options, running: Mutex::default() })
    }

    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// The agent with one of its models; `default`: the one that the agent chooses.
    pub fn with_model(self: &Arc<Self>, model: &str) -> Arc<dyn ExternalAgent> {
        Arc::new(AgentWithModel { agent: self.clone(), model: model.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, chat: &SessionId) -> Option<Arc<Running>> {
        let mut running = self.lock();
        running.retain(|_, running| running.state() != DriverState::Ended);
        running.get(chat).cloned()
    }

    fn opener<'a>(&'a self, running: &'a Running) -> SessionOpener<'a> {
        SessionOpener {
            name: &self.options.name,
            outgoing: &running.outgoing,
            capabilities: &running.capabilities,
            auth_methods: &running.auth_methods,
            silent_logins: &self.options.auth_methods,
            bridge: running.bridge.clone(),
            limits: &self.options.limits,
        }
    }

    async fn open(&self, model: &str, opening: AgentOpening) -> Result<OpenedAgent, Failure> {
        let running = self.find(&opening.chat);
        // Another wall needs another process.
        if let Some(running) = running.filter(|running| running.is_read_only == opening.read_only) {
            running.until_not_working().await;
            if running.state() == DriverState::Idle {
                let (is_known, is_unused) = {
                    let session = running.session();
                    (opening.known.as_deref() == Some(session.id.as_str()), session.is_unused)
                };
                if !is_known && !is_unused {
                    let open =
                        self.opener(&running).open(&AgentOpening { known: None, ..opening.clone() }).await?;
                    self.take_session(&running, open);
                }
                return self.choose(&running, model, is_known, false).await;
            }
        }
        let running = self.start(&opening).await?;
        let open = self.opener(&running).open(&opening).await?;
        let (is_known, is_replayed) = (open.is_known, open.is_replayed);
        self.take_session(&running, open);
        if is_replayed {
            running.until_quiet().await;
        }
        self.make_room();
        self.lock().insert(opening.chat, running.clone());
        self.choose(&running, model, is_known, true).await
    }

    fn take_session(&self, running: &Running, open: OpenSession) {
        let choice = ModelChoice::of(&open.result);
        if let Some(on_models) = &self.options.on_models {
            on_models(&choice.models);
        }
        running.offers.open(&open.id, &open.result);
        let (model, used, is_unused) = (DEFAULT.to_owned(), Instant::now(), !open.is_known);
        *running.session() = SessionState { id: open.id, choice, model, used, is_unused };
    }

    async fn choose(
        &self,
        running: &Running,
        model: &str,
        is_known: bool,
        is_started: bool,
    ) -> Result<OpenedAgent, Failure> {
        let (session, choice, current) = {
            let mut state = running.session();
            state.used = Instant::now();
            (state.id.clone(), state.choice.clone(), state.model.clone())
        };
        if current != model {
            self.opener(running).choose_model(&session, &choice, model).await?;
            let mut state = running.session();
            state.model = model.to_owned();
            if model != DEFAULT {
                state.choice.current = model.to_owned();
            }
        }
        Ok(OpenedAgent {
            agent: self.options.name.clone(),
            title: running.title.clone(),
            session,
            is_known,
            is_started,
            is_confined: running.is_confined,
            seals_forbidden: running.seals_forbidden,
        })
    }

    /// Starts a process that has no session yet.
    async fn start(&self, opening: &AgentOpening) -> Result<Arc<Running>, Failure> {
        let (name, limits) = (&self.options.name, self.options.limits);
        let (tool_sender, tool_calls) = mpsc::channel(TOOL_CALLS);
        let bridge = self.start_bridge(opening, &tool_sender).await;
        let port = bridge.as_ref().map(|bridge| bridge.port);
        let Launch { spawn, is_confined, seals_forbidden, settings_watch, sandbox } =
            self.options.launcher.launch(opening, port).await?;
        let connected = handshake::connect(name, spawn, &limits, self.options.reads_files).await?;
        let ((commands, taken), (state, watched)) = (mpsc::channel(1), watch::channel(DriverState::Idle));
        let (outgoing, offers) = (connected.peer.outgoing(), OfferBook::default());
        let server = bridge.as_ref().map(|bridge| bridge.server());
        let (heard, hearing) = watch::channel(Instant::now());
        let driver = Driver {
            name: name.clone(),
            peer: connected.peer,
            inbox: connected.inbox,
            commands: taken,
            state: Arc::new(state),
            child: connected.child,
            limits,
            takes_images: connected.capabilities.prompt_capabilities.image,
            terminals: Terminals::default(),
            settings_watch,
            _sandbox: sandbox,
            open_requests: Arc::default(),
            offers: offers.clone(),
            on_offers: self.options.on_offers.clone(),
            heard,
            tool_calls,
            _bridge: (tool_sender, bridge),
        };
        tokio::spawn(driver.run());
        let (id, model, used) = (String::new(), DEFAULT.to_owned(), Instant::now());
        let session = SessionState { id, choice: ModelChoice::default(), model, used, is_unused: false };
        Ok(Arc::new(Running {
            outgoing,
            capabilities: connected.capabilities,
            auth_methods: connected.auth_methods,
            title: connected.title,
            is_confined,
            seals_forbidden,
            is_read_only: opening.read_only,
            commands,
            state: watched,
            session: Mutex::new(session),
            offers,
            bridge: server,
            heard: hearing,
        }))
    }

    /// The way to our tools, where there are any for this chat.
    async fn start_bridge(
        &self,
        opening: &AgentOpening,
        calls: &mpsc::Sender<AgentToolCall>,
    ) -> Option<Arc<Bridge>> {
        let program = self.options.bridge.clone().filter(|_| !opening.tools.is_empty())?;
        match Bridge::start(program, opening.tools.clone(), calls.clone()).await {
            Ok(bridge) => Some(Arc::new(bridge)),
            Err(error) => {
                tracing::warn!(%error, "an agent gets no tools of our servers");
                None
            }
        }
    }

    async fn choose_offered(&self, chat: &SessionId, choice: AgentChoice) -> Result<(), Failure> {
        let Some(running) = self.find(chat) else { return Err(self.gone()) };
        let session = running.session().id.clone();
        let opener = self.opener(&running);
        match choice {
            AgentChoice::Mode { id } => {
                let params = json!({"sessionId": session, "modeId": id});
                opener.request(method::SESSION_SET_MODE, &params).await?;
                running.offers.choose_mode(&session, &json!(id));
            }
            AgentChoice::Model { id } => {
                let params = json!({"sessionId": session, "modelId": id});
                opener.request(method::SESSION_SET_MODEL, &params).await?;
                running.offers.choose_model(&session, &json!(id));
            }
            AgentChoice::Option { id, value } => {
                let mut params = json!({"sessionId": session, "configId": id, "value": value});
                if value.is_boolean() {
                    params["type"] = json!("boolean");
                }
                let answer = opener.request(method::SESSION_SET_CONFIG_OPTION, &params).await?;
                running.offers.set_options(&session, &answer["configOptions"]);
            }
        }
        Ok(())
    }

    fn gone(&self) -> Failure {
        Failure::provider(format!("The agent {} no longer runs.", self.options.name))
    }

    /// Ends the processes that were unused the longest, where there are too many.
    fn make_room(&self) {
        let mut running = self.lock();
        while running.len() >= self.options.limits.children {
            let idle = running.iter().filter(|(_, it)| it.state() != DriverState::Working);
            let oldest = idle.min_by_key(|(_, it)| it.session().used).map(|(chat, _)| chat.clone());
            let Some(oldest) = oldest else { return };
            running.remove(&oldest);
        }
    }

    fn prompt(&self, chat: &SessionId, parts: Vec<Part>) -> AgentStream {
        let Some(running) = self.find(chat) else {
            let failure = self.gone();
            return Box::pin(stream::once(async move { Err(failure) }));
        };
        let (events, mut received) = mpsc::channel(EVENTS);
        let session = {
            let mut session = running.session();
            session.is_unused = false;
            session.id.clone()
        };
        if running.commands.try_send(PromptCommand { session, parts, events }).is_err() {
            let failure = self.gone();
            return Box::pin(stream::once(async move { Err(failure) }));
        }
        Box::pin(stream::poll_fn(move |context| received.poll_recv(context)))
    }
}

struct AgentWithModel {
    agent: Arc<Agent>,
    model: String,
}

impl ExternalAgent for AgentWithModel {
    fn open(&self, opening: AgentOpening) -> BoxFuture<'_, Result<OpenedAgent, Failure>> {
        Box::pin(self.agent.open(&self.model, opening))
    }

    fn prompt(&self, chat: &SessionId, parts: Vec<Part>) -> AgentStream {
        self.agent.prompt(chat, parts)
    }

    fn wait_until_idle<'a>(&'a self, chat: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(running) = self.agent.find(chat) {
                running.until_not_working().await;
            }
        })
    }

    fn offers(&self, chat: &SessionId) -> Option<AgentOffers> {
        let running = self.agent.find(chat)?;
        let session = running.session().id.clone();
        Some(running.offers.get(&session))
    }

    fn choose<'a>(&'a self, chat: &'a SessionId, choice: AgentChoice) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.agent.choose_offered(chat, choice))
    }
}
