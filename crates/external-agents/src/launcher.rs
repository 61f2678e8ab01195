//! The process of an agent: its program, its variables, and the sandbox around it.
//!
//! Invariants: an agent runs in the sandbox unless the user's own settings say otherwise; its own login is the only secret
//! that it is shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp_client::{Launch, Launcher};
use config::{Environment, SecretSource};
use domain::agent::AgentOpening;
use domain::{BoxFuture, Failure};
use process::Spawn;
use process::sandbox::{Allowance, Facts, Grant, Mode, Sandbox};

use crate::entry::AgentEntry;
use crate::settings_watch;

/// Makes the facts of a sandbox around these folders.
pub type FactsOf = Arc<dyn Fn(&[PathBuf]) -> Facts + Send + Sync>;

/// What the starts of all agents of a workspace share.
#[derive(Clone)]
pub(crate) struct LaunchSettings {
    pub(crate) environment: Arc<Environment>,
    pub(crate) facts: FactsOf,
    pub(crate) required: bool,
    pub(crate) memory_megabytes: Option<u64>,
    /// The user's own grants for every command.
    pub(crate) grants: Vec<Grant>,
    pub(crate) secret_variables: Vec<String>,
}

/// The sandbox around an agent.
pub struct AgentWall {
    pub sandbox: Arc<Sandbox>,
    pub allowance: Allowance,
    /// Namespaces hold it.
    pub is_whole: bool,
    /// It keeps the agent from opening what rules forbid to read.
    pub seals_forbidden: bool,
}

/// Makes the process of one agent.
pub struct AgentLauncher {
    pub(crate) settings: LaunchSettings,
    pub(crate) entry: AgentEntry,
}

impl Launcher for AgentLauncher {
    fn launch<'a>(
        &'a self,
        opening: &'a AgentOpening,
        port: Option<u16>,
    ) -> BoxFuture<'a, Result<Launch, Failure>> {
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
            self.confine(spawn, opening, port).await
        })
    }
}

impl AgentLauncher {
    /// The program with its variables, outside of the wall.
    pub async fn spawn(&self) -> Result<Spawn, Failure> {
        let AgentEntry { command, args, known, env, .. } = &self.entry;
        let environment = &self.settings.environment;
        let own = known.map(|known| known.variables).unwrap_or_default();
        let own = own.iter().filter_map(|name| Some((*name, environment.var(name)?)));
        let told = known.filter(|_| self.entry.is_confined).map(|known| known.sandbox_variables);
        Ok(Spawn::new(command)
            .args(args)
            .without_env(&self.settings.secret_variables)
            // The runtime of most agents reads proxy variables only when asked to.
            .env("NODE_USE_ENV_PROXY", "1")
            .envs(own)
            .envs(told.unwrap_or_default().iter().copied())
            .envs(resolve_secrets(env).await?))
    }

    async fn confine(
        &self,
        spawn: Spawn,
        opening: &AgentOpening,
        port: Option<u16>,
    ) -> Result<Launch, Failure> {
        let AgentWall { sandbox, allowance, is_whole, seals_forbidden } = self.wall(opening, port).await?;
        Ok(Launch {
            spawn: spawn.confine(sandbox.clone(), allowance),
            sandbox: Some(sandbox),
            is_confined: is_whole,
            seals_forbidden,
            settings_watch: Some(settings_watch::watch(&self.kept_paths())),
        })
    }

    /// The sandbox around the process, and what it may do there. `port`: one of this program that it must reach.
    pub async fn wall(&self, opening: &AgentOpening, port: Option<u16>) -> Result<AgentWall, Failure> {
        let (own_state, kept_state) = (self.state_paths(), self.kept_paths());
        for folder in own_state.iter().filter(|path| path.extension().is_none()) {
            // A folder that is not there could not be made writable.
            let _ = std::fs::create_dir_all(folder);
        }
        let hosts = self.entry.known.map(|known| known.hosts).unwrap_or_default();
        let facts = Facts {
            hosts: hosts.iter().map(|host| ((*host).to_owned(), None)).collect(),
            required: self.settings.required,
            memory_megabytes: self.settings.memory_megabytes,
            own_state,
            kept_state,
            ..(self.settings.facts)(&opening.roots)
        };
        let sandbox = Arc::new(Sandbox::new(facts));
        let Some(mode) = process::sandbox_support(&sandbox).await.mode() else {
            return Err(self.no_sandbox());
        };
        let mut grants = self.grants()?;
        grants.extend(self.settings.grants.iter().cloned());
        let is_whole = mode == Mode::Namespaces;
        let (unreadable, seals_forbidden) =
            if is_whole { sealed_paths(opening).await } else { (Vec::new(), false) };
        let allowance = Allowance {
            unreadable,
            keeps_run_later: opening.tainted || opening.read_only,
            // The folders themselves are what must stay as it is.
            run_later: if opening.read_only { opening.roots.to_vec() } else { Vec::new() },
            own_ports: port.into_iter().collect(),
            ..Allowance::new(grants)
        };
        Ok(AgentWall { sandbox, allowance, is_whole, seals_forbidden })
    }

    fn no_sandbox(&self) -> Failure {
        let name = &self.entry.name;
        Failure::config(format!("There is no sandbox on this machine to hold the agent {name}.")).hint(format!(
            "To run it with all your rights, set `acpAgents.{name}.sandbox` to false in your own settings. `dragoman doctor` \
             says what is missing."
        ))
    }

    fn grants(&self) -> Result<Vec<Grant>, Failure> {
        let name = &self.entry.name;
        let read = |text: &String| {
            Grant::parse(text)
                .map_err(|reason| Failure::config(format!("`acpAgents.{name}.grants`: {reason}")))
        };
        self.entry.grants.iter().map(read).collect()
    }

    /// The agent's own files and folders.
    fn state_paths(&self) -> Vec<PathBuf> {
        let environment = &self.settings.environment;
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
        let home = self.settings.environment.home();
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
        self.settings.environment.var(variable).map(PathBuf::from)
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

async fn resolve_secrets(values: &[(String, SecretSource)]) -> Result<Vec<(String, String)>, Failure> {
    let mut pairs = Vec::with_capacity(values.len());
    for (name, value) in values {
        pairs.push((name.clone(), value.get().await?.expose().to_owned()));
    }
    Ok(pairs)
}
