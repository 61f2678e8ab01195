//! Settings, known agents and PATH → agents that can be used as models, and how each is started.
//!
//! Invariants: making the list looks at no file; an agent runs behind the wall unless the user's own settings say otherwise;
//! its own login is the only secret that it is shown.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use acp_client::{Agent, AgentModel, AgentOptions, Launch, Launcher, Limits};
use config::{AcpAgent, Environment, Resolved, SecretSource};
use domain::agent::{AgentOpening, ExternalAgent};
use domain::model::{Model, ModelInfo, ModelStream, Prompt};
use domain::{BoxFuture, Failure};
use platform::programs::{self, Found};
use process::Spawn;
use process::sandbox::{Allowance, Facts, Grant, Mode, Sandbox};
use serde_json::{Value, json};

use crate::agent_settings;
use crate::known_agents::{self, KNOWN_AGENTS, KnownAgent};
use crate::sandboxing::{self, WorkspaceSandbox};
use crate::servers;

/// What begins the names of these models.
pub(crate) const PREFIX: &str = "acp:";

/// An agent as it would be started.
#[derive(Clone)]
pub(crate) struct AgentEntry {
    pub(crate) name: String,
    pub(crate) title: String,
    /// `None`: it is not installed.
    pub(crate) program: Option<PathBuf>,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) is_confined: bool,
    /// The settings name it.
    pub(crate) is_configured: bool,
    pub(crate) install: &'static str,
    env: Vec<(String, SecretSource)>,
    grants: Vec<String>,
    state: Vec<String>,
    known: Option<&'static KnownAgent>,
}

impl AgentEntry {
    /// The name of the agent as a model.
    pub(crate) fn model(&self) -> String {
        format!("{PREFIX}{}/default", self.name)
    }
}

/// The agents of a workspace.
pub(crate) struct ExternalAgents {
    environment: Arc<Environment>,
    configured: Vec<AcpAgent>,
    required: bool,
    memory_megabytes: Option<u64>,
    has_sandbox: bool,
    /// The user's own grants for every command.
    grants: Vec<Grant>,
    secret_variables: Vec<String>,
    entries: OnceLock<Vec<AgentEntry>>,
    running: Mutex<BTreeMap<String, Arc<Agent>>>,
}

impl ExternalAgents {
    pub(crate) fn new(
        environment: Arc<Environment>,
        resolved: &Resolved,
        sandbox: Option<&WorkspaceSandbox>,
    ) -> Arc<Self> {
        Arc::new(Self {
            configured: resolved.settings.acp_agents.clone(),
            required: resolved.settings.sandbox.required,
            memory_megabytes: resolved.settings.sandbox.memory_megabytes,
            has_sandbox: sandbox.is_some(),
            grants: sandbox.map(|sandbox| sandbox.grants.clone()).unwrap_or_default(),
            secret_variables: resolved.secret_variables.clone(),
            entries: OnceLock::new(),
            running: Mutex::default(),
            environment,
        })
    }

    /// All agents that are known or configured. Looks for their programs once.
    pub(crate) fn entries(&self) -> &[AgentEntry] {
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
    pub(crate) fn installed(&self) -> impl Iterator<Item = &AgentEntry> {
        self.entries().iter().filter(|entry| entry.program.is_some())
    }

    fn entry(&self, name: &str) -> Option<AgentEntry> {
        let known = known_agents::find(name);
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
        let is_confined = self.has_sandbox && own.is_none_or(|own| own.sandbox);
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
        let path = self.environment.var("PATH").map(OsStr::new);
        let endings = self.environment.var("PATHEXT").map(OsStr::new);
        match programs::find(OsStr::new(command), path, endings, Path::new(".")) {
            Found::Program(path) => Some(path),
            Found::NotExecutable | Found::Nothing => None,
        }
    }

    /// The models of the installed agents; empty while nobody has looked for them.
    pub(crate) fn list(&self) -> Vec<ModelInfo> {
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
    pub(crate) fn find(self: &Arc<Self>, name: &str) -> Result<Arc<dyn Model>, Failure> {
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
            let keeper = ModelKeeper::of(&self.environment);
            let name = entry.name.clone();
            Agent::new(AgentOptions {
                name: entry.name.clone(),
                launcher: Arc::new(AgentLauncher { agents: self.settings(), entry: entry.clone() }),
                auth_methods: login.map(|(method, _)| method.to_owned()).into_iter().collect(),
                on_models: Some(Arc::new(move |models: &[AgentModel]| keeper.keep(&name, models))),
                limits: Limits::default(),
            })
        };
        running.entry(entry.name.clone()).or_insert_with(make).clone()
    }

    fn has_variable(&self, entry: &AgentEntry, name: &str) -> bool {
        entry.env.iter().any(|(known, _)| known == name) || self.environment.var(name).is_some()
    }

    /// The launcher of an agent, for commands that look at it.
    pub(crate) fn launcher(&self, entry: &AgentEntry) -> AgentLauncher {
        AgentLauncher { agents: self.settings(), entry: entry.clone() }
    }

    /// The process of an agent as a chat in this folder would start it.
    pub(crate) async fn launch_in(&self, entry: &AgentEntry, folder: &Path) -> Result<Launch, Failure> {
        let opening = AgentOpening {
            chat: domain::SessionId::new("check"),
            roots: Arc::from([folder.to_owned()]),
            known: None,
            forbidden_paths: Arc::from([]),
            tainted: false,
            read_only: true,
        };
        self.launcher(entry).launch(&opening).await
    }

    fn settings(&self) -> LaunchSettings {
        LaunchSettings {
            environment: self.environment.clone(),
            required: self.required,
            memory_megabytes: self.memory_megabytes,
            grants: self.grants.clone(),
            secret_variables: self.secret_variables.clone(),
        }
    }

    fn kept_models(&self) -> BTreeMap<String, Vec<String>> {
        ModelKeeper::of(&self.environment).read()
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

/// The models that agents offered last, in a file of the cache.
struct ModelKeeper(PathBuf);

impl ModelKeeper {
    fn of(environment: &Environment) -> Self {
        Self(environment.cache_dir().join("agent-models.json"))
    }

    fn read(&self) -> BTreeMap<String, Vec<String>> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn keep(&self, agent: &str, models: &[AgentModel]) {
        let mut all = self.read();
        let ids: Vec<String> = models.iter().map(|model| model.id.clone()).collect();
        if all.get(agent) == Some(&ids) || ids.is_empty() {
            return;
        }
        all.insert(agent.to_owned(), ids);
        let text = json!(all).to_string();
        let folder = self.0.parent().map(Path::to_owned).unwrap_or_default();
        let written = std::fs::create_dir_all(&folder)
            .and_then(|()| tempfile::NamedTempFile::new_in(&folder))
            .and_then(|file| std::fs::write(file.path(), text).map(|()| file))
            .and_then(|file| file.persist(&self.0).map_err(|error| error.error));
        if let Err(error) = written {
            tracing::info!(%error, "the models of an agent could not be kept");
        }
    }
}

#[derive(Clone)]
struct LaunchSettings {
    environment: Arc<Environment>,
    required: bool,
    memory_megabytes: Option<u64>,
    grants: Vec<Grant>,
    secret_variables: Vec<String>,
}

/// Makes the process of one agent.
pub(crate) struct AgentLauncher {
    agents: LaunchSettings,
    entry: AgentEntry,
}

impl Launcher for AgentLauncher {
    fn launch<'a>(&'a self, opening: &'a AgentOpening) -> BoxFuture<'a, Result<Launch, Failure>> {
        Box::pin(async move {
            let mut spawn = self.spawn().await?;
            if let Some(root) = opening.roots.first() {
                spawn = spawn.directory(root);
            }
            if !self.entry.is_confined {
                return Ok(Launch {
                    spawn,
                    is_confined: false,
                    seals_forbidden: false,
                    settings_watch: None,
                    sandbox: None,
                });
            }
            self.confine(spawn, opening).await
        })
    }
}

impl AgentLauncher {
    /// The program with its variables, outside of the wall.
    pub(crate) async fn spawn(&self) -> Result<Spawn, Failure> {
        let AgentEntry { command, args, known, env, .. } = &self.entry;
        let environment = &self.agents.environment;
        let own = known.map(|known| known.variables).unwrap_or_default();
        let own = own.iter().filter_map(|name| Some((*name, environment.var(name)?)));
        let told = known.filter(|_| self.entry.is_confined).map(|known| known.sandbox_variables);
        Ok(Spawn::new(command)
            .args(args)
            .without_env(&self.agents.secret_variables)
            // The runtime of most agents reads proxy variables only when asked to.
            .env("NODE_USE_ENV_PROXY", "1")
            .envs(own)
            .envs(told.unwrap_or_default().iter().copied())
            .envs(servers::resolve_secrets(env).await?))
    }

    async fn confine(&self, spawn: Spawn, opening: &AgentOpening) -> Result<Launch, Failure> {
        let (own_state, kept_state) = (self.state_paths(), self.kept_paths());
        for folder in own_state.iter().filter(|path| path.extension().is_none()) {
            // A folder that is not there could not be made writable.
            let _ = std::fs::create_dir_all(folder);
        }
        let known = self.entry.known;
        let hosts = known.map(|known| known.hosts).unwrap_or_default();
        let facts = Facts {
            hosts: hosts.iter().map(|host| ((*host).to_owned(), None)).collect(),
            required: self.agents.required,
            memory_megabytes: self.agents.memory_megabytes,
            own_state,
            kept_state: kept_state.clone(),
            ..sandboxing::facts(&self.agents.environment, &opening.roots)
        };
        let sandbox = Arc::new(Sandbox::new(facts));
        let Some(mode) = process::sandbox_support(&sandbox).await.mode() else {
            let name = &self.entry.name;
            return Err(Failure::config(format!("There is no sandbox on this machine to hold the agent {name}."))
                .hint(format!(
                    "To run it with all your rights, set `acpAgents.{name}.sandbox` to false in your own settings. \
                     `dragoman doctor` says what is missing."
                )));
        };
        let mut notices = Vec::new();
        let key = format!("acpAgents.{}.grants", self.entry.name);
        let mut grants = sandboxing::read_grants(&self.entry.grants, &key, &mut notices);
        if let Some(notice) = notices.into_iter().next() {
            return Err(Failure::config(notice.text));
        }
        grants.extend(self.agents.grants.iter().cloned());
        let is_whole = mode == Mode::Namespaces;
        let (unreadable, seals_forbidden) =
            if is_whole { sealed_paths(opening).await } else { (Vec::new(), false) };
        let allowance = Allowance {
            unreadable,
            keeps_run_later: opening.tainted || opening.read_only,
            // The folders themselves are what must stay as it is.
            run_later: if opening.read_only { opening.roots.to_vec() } else { Vec::new() },
            ..Allowance::new(grants)
        };
        Ok(Launch {
            spawn: spawn.confine(sandbox.clone(), allowance),
            sandbox: Some(sandbox),
            is_confined: is_whole,
            seals_forbidden,
            settings_watch: Some(agent_settings::watch(kept_state)),
        })
    }

    /// The agent's own files and folders.
    fn state_paths(&self) -> Vec<PathBuf> {
        let environment = &self.agents.environment;
        let mut paths: Vec<PathBuf> =
            self.entry.state.iter().map(|path| environment.expand_home(path)).collect();
        if let Some(known) = self.entry.known {
            match self.moved_state() {
                Some(folder) => paths.push(folder),
                None => paths.extend(known.state.iter().map(|path| environment.home().join(path))),
            }
        }
        paths
    }

    fn kept_paths(&self) -> Vec<PathBuf> {
        let Some(known) = self.entry.known else { return Vec::new() };
        let home = self.agents.environment.home();
        let moved = self.moved_state();
        let place = |path: &&str| match (&moved, known.state.first()) {
            (Some(folder), Some(usual)) => match Path::new(path).strip_prefix(usual) {
                Ok(rest) => folder.join(rest),
                Err(_) => home.join(path),
            },
            _ => home.join(path),
        };
        known.kept.iter().map(place).collect()
    }

    fn moved_state(&self) -> Option<PathBuf> {
        let variable = self.entry.known?.state_variable?;
        self.agents.environment.var(variable).map(PathBuf::from)
    }
}

/// What of the workspace the agent must not open, and whether that is everything that rules forbid.
async fn sealed_paths(opening: &AgentOpening) -> (Vec<PathBuf>, bool) {
    let scope = domain::tool::Scope {
        session: opening.chat.clone(),
        roots: opening.roots.clone(),
        read_only: opening.read_only,
        remembered: Arc::from([]),
        forbidden_paths: opening.forbidden_paths.clone(),
        tainted: opening.tainted,
        secret_read: false,
    };
    let sealed = tokio::task::spawn_blocking(move || tools::sealed_paths(&scope)).await;
    sealed.unwrap_or_default()
}

/// An agent for scripts.
pub(crate) fn entry_json(entry: &AgentEntry) -> Value {
    json!({
        "name": entry.name,
        "title": entry.title,
        "model": entry.model(),
        "installed": entry.program.is_some(),
        "program": entry.program,
        "command": entry.command,
        "args": entry.args,
        "sandbox": entry.is_confined,
        "configured": entry.is_configured,
        "install": entry.install,
    })
}
