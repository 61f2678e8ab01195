//! What an [`Agent`](crate::Agent) is made of, and the bounds on what its child may do to us.

use std::sync::Arc;
use std::time::Duration;

use domain::agent::AgentOpening;
use domain::{BoxFuture, Failure};
use process::Spawn;
use process::sandbox::Sandbox;

use crate::bridge::BridgeProgram;
use crate::model_choice::AgentModel;
use crate::offers::OffersObserver;

/// Told of the models that an agent offers.
pub(crate) type ModelsObserver = Arc<dyn Fn(&[AgentModel]) + Send + Sync>;

/// How an agent is started and spoken to.
pub struct AgentOptions {
    /// The short name, as in `acp:NAME/…`.
    pub name: String,
    pub launcher: Arc<dyn Launcher>,
    /// Ways to log in that need nobody, in the order in which they are tried where the agent asks for a login.
    pub auth_methods: Vec<String>,
    /// Told of the models that the agent offers.
    pub on_models: Option<ModelsObserver>,
    /// The agent may have us read files. Some agents take a missing file for a failure then, and read better themselves.
    pub reads_files: bool,
    /// Called when the agent changes what it offers in a session.
    pub on_offers: Option<OffersObserver>,
    /// The program that gives the agent the tools of our servers; `None`: it gets none.
    pub bridge: Option<BridgeProgram>,
    pub limits: Limits,
}

/// Makes the process of an agent for a chat.
pub trait Launcher: Send + Sync {
    /// `port`: one of this process that the agent must reach.
    fn launch<'a>(
        &'a self,
        opening: &'a AgentOpening,
        port: Option<u16>,
    ) -> BoxFuture<'a, Result<Launch, Failure>>;
}

/// A process that is ready to start.
pub struct Launch {
    pub spawn: Spawn,
    /// The sandbox holds it.
    pub is_confined: bool,
    /// The sandbox keeps it from opening what rules forbid to read.
    pub seals_forbidden: bool,
    /// Looks at the agent's own settings before and after each prompt, and at its end.
    pub settings_watch: Option<SettingsLook>,
    /// The sandbox, whose temporary folder must be there as long as the process.
    pub sandbox: Option<Arc<Sandbox>>,
}

/// Takes back settings that appeared since the process was started; a sentence for people about each.
pub type SettingsLook = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Bounds. Every one is finite.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest message, in bytes.
    pub message: usize,
    /// How long the start and each step of the opening may take. A package manager may fetch the program first.
    pub opening: Duration,
    /// How long the agent may say nothing while it works on a prompt.
    pub silence: Duration,
    /// How long it may take to stop.
    pub stop: Duration,
    /// How long it is kept without a prompt.
    pub idle: Duration,
    /// Bytes of text in one prompt's answer.
    pub text: usize,
    /// Tool calls in one prompt's answer.
    pub calls: usize,
    /// Terminals at the same time.
    pub terminals: usize,
    /// Agents of this name at the same time, one for each chat.
    pub children: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 32 << 20,
            opening: Duration::from_secs(120),
            silence: Duration::from_secs(30 * 60),
            stop: Duration::from_secs(5),
            idle: Duration::from_secs(20 * 60),
            text: 64 << 20,
            calls: 5_000,
            terminals: 32,
            children: 8,
        }
    }
}
