//! Where everything is put together: the store, and for each workspace its settings, models, tools and files.
//!
//! Invariant: opening the house and entering a workspace connect, spawn and walk nothing; they are on the way to
//! `initialize`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::{CredentialFile, Environment, Inputs};
use domain::command::{ServerSpec, WorkspaceSpec};
use domain::event::{CatalogKind, Level, Notice};
use domain::link::Engine;
use domain::model::Models;
use domain::tool::ToolSource;
use domain::{BoxFuture, Failure, Store};
use engine::{Workspace, WorkspaceSource};
use llm::{RateLimiter, RetryPolicy, SharedResets};

use crate::logging;
use crate::models::{self, AllModels};
use crate::providers::{self, ProviderDeps};
use crate::servers;
use crate::texts::WorkspaceTexts;

/// The way to the first answer is left alone for so long.
const DISCOVERY_DELAY: Duration = Duration::from_millis(150);
/// Servers of this machine answer at once or not at all.
const DISCOVERY_TIMEOUT: Duration = Duration::from_millis(500);

pub struct Workspaces {
    environment: Arc<Environment>,
    changes: engine::CatalogChanges,
    deps: ProviderDeps,
    /// The user named a model, and need not be told which one there is by default.
    chosen: bool,
}

impl Workspaces {
    /// The engine on the user's own store.
    pub fn open(environment: Environment) -> Result<Engine, Failure> {
        Self::open_for(environment, false)
    }

    /// The same for a front-end that says whether a model was chosen.
    pub fn open_for(environment: Environment, chosen: bool) -> Result<Engine, Failure> {
        let store: Arc<dyn Store> = Arc::new(store::Journal::open(&environment.data_dir())?);
        let (changes, receiver) = engine::changes();
        let deps = ProviderDeps {
            credentials: Arc::new(CredentialFile::new(&environment)),
            rate_limiter: Arc::new(RateLimiter::new(Arc::new(MachineResets(store.clone())))),
            attempts: RetryPolicy::default().attempts,
        };
        let house = Arc::new(Workspaces { environment: Arc::new(environment), changes, deps, chosen });
        Ok(engine::start(store, house, receiver))
    }
}

impl WorkspaceSource for Workspaces {
    fn surroundings(&self, workspace: &WorkspaceSpec) -> Arc<Workspace> {
        let roots = workspace.roots.clone();
        let inputs = Inputs {
            workspace_roots: roots.clone(),
            initialization_options: workspace.options.clone(),
            ..Inputs::default()
        };
        let resolved = Arc::new(config::resolve(&self.environment, &inputs));
        logging::redact_with(&resolved.redactor);
        let mut configured = providers::configured(&resolved, &self.deps);
        let problems: Vec<String> =
            std::mem::take(&mut configured.problems).iter().map(ToString::to_string).collect();
        let models = Arc::new(AllModels::new(configured, &self.environment));
        self.start_discovery(models.clone());
        let mut notices = resolved.notices.clone();
        if models.is_small() && !self.chosen {
            notices.push(Notice { level: Level::Info, text: models::SMALL.to_owned() });
        }
        notices.extend(problems.iter().map(|problem| Notice { level: Level::Error, text: problem.clone() }));
        let built_in = Arc::new(tools::BuiltInTools::new(self.tool_options(&resolved)));
        let files = built_in.files();
        let mut sources: Vec<Arc<dyn ToolSource>> = vec![built_in];
        sources.extend(servers::of_workspace(&resolved, &roots, &self.changes));
        let texts = WorkspaceTexts {
            environment: self.environment.clone(),
            resolved: resolved.clone(),
            roots: roots.clone(),
            models: models.clone(),
            problems,
            credentials: self.deps.credentials.clone(),
            changes: self.changes.clone(),
        };
        Arc::new(Workspace {
            settings: Arc::new(resolved.settings.clone()),
            models,
            sources,
            files,
            notices,
            texts: Arc::new(texts),
            roots,
        })
    }

    fn session_servers(&self, servers: &[ServerSpec], roots: &[PathBuf]) -> Vec<Arc<dyn ToolSource>> {
        vec![servers::of_session(servers, roots, &self.changes)]
    }
}

/// When a provider may be asked again, for all processes of the machine.
struct MachineResets(Arc<dyn Store>);

const RESETS: &str = "rate-limit";

impl SharedResets for MachineResets {
    fn get<'a>(&'a self, provider: &'a str) -> BoxFuture<'a, Option<i64>> {
        Box::pin(async move { self.0.get(RESETS, provider).await.ok()??.parse().ok() })
    }

    fn set<'a>(&'a self, provider: &'a str, until: i64) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(failure) = self.0.put(RESETS, provider, until.to_string()).await {
                tracing::warn!(%failure, "a rate limit could not be told to other processes");
            }
        })
    }
}

impl Workspaces {
    /// Beside everything else, and not at once: a newer list of models, and model servers of this machine.
    fn start_discovery(&self, models: Arc<AllModels>) {
        let (environment, changes) = (self.environment.clone(), self.changes.clone());
        tokio::spawn(async move {
            tokio::time::sleep(DISCOVERY_DELAY).await;
            let newer = models::use_cached_list(&environment);
            if models.discover().await || newer {
                changes.tell(CatalogKind::Models);
            }
        });
    }

    fn tool_options(&self, resolved: &config::Resolved) -> tools::Options {
        let settings = &resolved.settings.tools;
        let shell = settings
            .shell
            .program
            .clone()
            .map(|program| std::iter::once(program).chain(settings.shell.args.iter().cloned()).collect());
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        tools::Options {
            home: Some(self.environment.home().to_owned()),
            shell,
            withheld_environment: resolved.secret_variables.clone(),
            private_hosts: settings.fetch_allowed_hosts.clone(),
            limits: tools::Limits {
                read_lines: number(settings.read_file_max_lines),
                output_bytes: number(settings.output_max_bytes),
                host_time: settings.editor_timeout,
                ..tools::Limits::default()
            },
            ..tools::Options::default()
        }
    }
}

/// The model of a server of this machine, where nothing is configured: better than the embedded one.
pub async fn discover_local_model(environment: &Environment) -> Option<String> {
    let inputs = Inputs { workspace_roots: here(), ..Inputs::default() };
    let resolved = config::resolve(environment, &inputs);
    let models =
        AllModels::new(providers::configured(&resolved, &ProviderDeps::new(environment)), environment);
    if models.default_model().is_some_and(|model| !model.starts_with("local/")) {
        return None;
    }
    let _ = tokio::time::timeout(DISCOVERY_TIMEOUT, models.discover()).await;
    models.default_model().filter(|model| !model.starts_with("local/"))
}

/// The folder the program was started in, as a workspace.
pub fn here() -> Vec<PathBuf> {
    std::env::current_dir().into_iter().collect()
}
