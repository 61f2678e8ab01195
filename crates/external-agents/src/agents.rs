//! Settings, known agents and PATH → the agents of a workspace, as models.
//!
//! Invariant: making the list looks at no file.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use acp_client::{Agent, AgentModel, AgentOptions, BridgeProgram, Launch, Launcher, Limits};
use config::{AcpAgent, Environment, Resolved};
use domain::Failure;
use domain::agent::{AgentOpening, ExternalAgent};
use domain::model::{Model, ModelInfo, ModelStream, Prompt};
use platform::programs::{self, Found};
use process::sandbox::Grant;

use crate::entry::{AgentEntry, PREFIX};
use crate::kept_models::ModelKeeper;
use crate::known::{self, KNOWN_AGENTS, KnownAgent};
use crate::launcher::{AgentLauncher, FactsOf, LaunchSettings};

/// What the agents of a workspace get from the program around them.
pub struct Surroundings {
    pub environment: Arc<Environment>,
    pub facts: FactsOf,
    /// The user's own grants for every command; `None`: the sandbox is switched off.
    pub grants: Option<Vec<Grant>>,
    /// Called when an agent changes what it offers without being asked.
    pub on_offers: Option<Arc<dyn Fn() + Send + Sync>>,
    /// The program through which agents call the tools of our servers.
    pub bridge: Option<BridgeProgram>,
}

/// The agents of a workspace.
pub struct ExternalAgents {
    surroundings: Surroundings,
    configured: Vec<AcpAgent>,
    required: bool,
    memory_megabytes: Option<u64>,
    secret_variables: Vec<String>,
    entries: OnceLock<Vec<AgentEntry>>,
    running: Mutex<BTreeMap<String, Arc<Agent>>>,
}

impl ExternalAgents {
    pub fn new(resolved: &Resolved, surroundings: Surroundings) -> Arc<Self> {
        Arc::new(Self {
            surroundings,
            configured: resolved.settings.acp_agents.clone(),
            required: resolved.settings.sandbox.required,
            memory_megabytes: resolved.settings.sandbox.memory_megabytes,
            secret_variables: resolved.secret_variables.clone(),
            entries: OnceLock::new(),
            running: Mutex::default(),
        })
    }

    /// All agents that are known or configured. Looks for their programs once.
    pub fn entries(&self) -> &[AgentEntry] {
        self.entries.get_or_init(|| {
            let known = KNOWN_AGENTS.iter().map(|agent| agent.name.to_owned());
            let own = self.configured.iter().map(|agent| agent.name.clone());
            let mut names: Vec<String> = known.chain(own).collect();
            names.sort();
            names.dedup();
            names.iter().filter_map(|name| self.entry(name)).collect()
        })
    }

    /// Those that can be started.
    pub fn installed(&self) -> impl Iterator<Item = &AgentEntry> {
        self.entries().iter().filter(|entry| entry.program.is_some())
    }

    fn entry(&self, name: &str) -> Option<AgentEntry> {
        let known = known::find(name);
        let own = self.configured.iter().find(|agent| agent.name == name);
        if own.is_some_and(|own| own.disabled) {
            return None;
        }
        let (command, mut args, program) = match own.and_then(|own| own.command.clone()) {
            Some(command) => {
                let program = self.find_program(&command);
                (command, Vec::new(), program)
            }
            None => self.find_known(known?),
        };
        if let Some(own) = own.and_then(|own| own.args.clone()) {
            args = own;
        }
        let is_confined = self.surroundings.grants.is_some() && own.is_none_or(|own| own.sandbox);
        if is_confined && let Some(known) = known {
            args.extend(known.without_own_sandbox.iter().map(|&arg| arg.to_owned()));
        }
        Some(AgentEntry {
            name: name.to_owned(),
            title: known.map_or_else(|| name.to_owned(), |known| known.title.to_owned()),
            program,
            command,
            args,
            is_confined,
            is_configured: own.is_some(),
            install: known.map_or("", |known| known.install),
            env: own.map(|own| own.env.clone()).unwrap_or_default(),
            grants: own.map(|own| own.grants.clone()).unwrap_or_default(),
            state: own.map(|own| own.state.clone()).unwrap_or_default(),
            known,
        })
    }

    fn find_known(&self, known: &KnownAgent) -> (String, Vec<String>, Option<PathBuf>) {
        let found = known.programs.iter().find_map(|entry| Some((entry, self.find_program(entry.0)?)));
        let ((command, args), program) = match found {
            Some((entry, program)) => (entry, Some(program)),
            None => (&known.programs[0], None),
        };
        ((*command).to_owned(), args.iter().map(|&arg| arg.to_owned()).collect(), program)
    }

    fn find_program(&self, command: &str) -> Option<PathBuf> {
        let path = self.surroundings.environment.var("PATH").map(OsStr::new);
        let endings = self.surroundings.environment.var("PATHEXT").map(OsStr::new);
        match programs::find(OsStr::new(command), path, endings, Path::new(".")) {
            Found::Program(path) => Some(path),
            Found::NotExecutable | Found::Nothing => None,
        }
    }

    /// The models of the installed agents; empty while nobody has looked for them.
    pub fn list(&self) -> Vec<ModelInfo> {
        if self.entries.get().is_none() {
            return Vec::new();
        }
        let kept = self.kept_models();
        let of_agent = |entry: &AgentEntry| {
            let more = kept.get(&entry.name).cloned().unwrap_or_default();
            let names = std::iter::once("default".to_owned()).chain(more);
            names.map(|model| info(&entry.name, &model)).collect::<Vec<_>>()
        };
        self.installed().flat_map(of_agent).collect()
    }

    /// `name` without the prefix: `codex/default`, or `codex`.
    pub fn find(self: &Arc<Self>, name: &str) -> Result<Arc<dyn Model>, Failure> {
        let (agent, model) = name.split_once('/').unwrap_or((name, "default"));
        let Some(entry) = self.entries().iter().find(|entry| entry.name == agent) else {
            let names: Vec<&str> = self.installed().map(|entry| entry.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Failure::user(format!("There is no agent {agent}. Installed: {names}."))
                .hint("`dragoman acp-agents list` shows the agents and how to install them."));
        };
        if entry.program.is_none() {
            let install =
                if entry.install.is_empty() { "Check `acpAgents` in your settings." } else { entry.install };
            return Err(Failure::config(format!(
                "The program {} of the agent {agent} is not installed.",
                entry.command
            ))
            .hint(format!("Install it: {install}")));
        }
        let running = self.agent(entry);
        Ok(Arc::new(AgentAsModel { info: info(agent, model), agent: running.with_model(model) }))
    }

    fn agent(self: &Arc<Self>, entry: &AgentEntry) -> Arc<Agent> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let login = entry.known.and_then(|known| known.login);
            let login = login.filter(|(_, variable)| self.has_variable(entry, variable));
            let keeper = ModelKeeper::of(&self.surroundings.environment);
            let name = entry.name.clone();
            Agent::new(AgentOptions {
                name: entry.name.clone(),
                launcher: Arc::new(self.launcher(entry)),
                auth_methods: login.map(|(method, _)| method.to_owned()).into_iter().collect(),
                on_models: Some(Arc::new(move |models: &[AgentModel]| keeper.keep(&name, models))),
                reads_files: !entry.known.is_some_and(|known| known.reads_itself),
                on_offers: self.surroundings.on_offers.clone(),
                bridge: self.surroundings.bridge.clone(),
                limits: Limits::default(),
            })
        };
        running.entry(entry.name.clone()).or_insert_with(make).clone()
    }

    fn has_variable(&self, entry: &AgentEntry, name: &str) -> bool {
        entry.env.iter().any(|(known, _)| known == name) || self.surroundings.environment.var(name).is_some()
    }

    /// The launcher of an agent, for commands that look at it.
    pub fn launcher(&self, entry: &AgentEntry) -> AgentLauncher {
        AgentLauncher { settings: self.settings(), entry: entry.clone() }
    }

    /// The process of an agent as a chat in this folder would start it.
    pub async fn launch_in(&self, entry: &AgentEntry, folder: &Path) -> Result<Launch, Failure> {
        let opening = AgentOpening {
            chat: domain::SessionId::new("check"),
            roots: Arc::from([folder.to_owned()]),
            known: None,
            forbidden_paths: Arc::from([]),
            tainted: false,
            read_only: true,
            tools: Arc::from([]),
        };
        self.launcher(entry).launch(&opening, None).await
    }

    fn settings(&self) -> LaunchSettings {
        LaunchSettings {
            environment: self.surroundings.environment.clone(),
            facts: self.surroundings.facts.clone(),
            required: self.required,
            memory_megabytes: self.memory_megabytes,
            grants: self.surroundings.grants.clone().unwrap_or_default(),
            secret_variables: self.secret_variables.clone(),
        }
    }

    fn kept_models(&self) -> BTreeMap<String, Vec<String>> {
        ModelKeeper::of(&self.surroundings.environment).read()
    }
}

fn info(agent: &str, model: &str) -> ModelInfo {
    ModelInfo { id: format!("{PREFIX}{agent}/{model}"), tools: true, images: true, ..ModelInfo::default() }
}

/// The agent that a model's name means.
struct AgentAsModel {
    info: ModelInfo,
    agent: Arc<dyn ExternalAgent>,
}

impl Model for AgentAsModel {
    fn stream(&self, _: Prompt) -> ModelStream {
        let failure = Failure::user(format!(
            "{} is an agent: it answers prompts of chats and nothing else.",
            self.info.id
        ))
        .hint("Choose a model of a provider for this.");
        Box::pin(futures_util::stream::once(async move { Err(failure) }))
    }

    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn agent(&self) -> Option<Arc<dyn ExternalAgent>> {
        Some(self.agent.clone())
    }
}
