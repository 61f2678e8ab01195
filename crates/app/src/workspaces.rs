//! Builds the engine: the store, and the settings, models, tools and files of each workspace.
//!
//! Invariant: starting the engine and entering a workspace do not connect, spawn or walk; both happen before
//! `initialize` is answered.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use config::{CredentialFile, Environment, Inputs};
use domain::command::{ServerSpec, WorkspaceSpec};
use domain::event::{CatalogKind, Level, Notice};
use domain::link::Engine;
use domain::model::Models;
use domain::tool::{ToolSource, ToolSpec};
use domain::{Abilities, BoxFuture, Failure, Store};
use engine::{Texts, Workspace, WorkspaceSource};
use llm::{RateLimiter, RetryPolicy, SharedResets};
use providers::ProviderDeps;
use serde_json::{Map, Value};

use crate::accounts::WorkspaceAccounts;
use crate::agents;
use crate::attaching;
use crate::built_in_tools::{self, PREPARE_DELAY};
use crate::hooks::WorkspaceHooks;
use crate::logging;
use crate::models::{self, AllModels};
use crate::project_rules::AddedRules;
use crate::retention;
use crate::sandboxing::{self, WorkspaceSandbox};
use crate::servers;
use crate::settings_review;
use crate::stores;
use crate::telemetry;
use crate::texts::WorkspaceTexts;
use crate::worktrees::WorkspaceWorktrees;

/// Discovery starts after this delay, so that it does not slow the first answer.
const DISCOVERY_DELAY: Duration = Duration::from_millis(150);

pub(crate) struct Workspaces {
    environment: Arc<Environment>,
    changes: engine::CatalogChanges,
    deps: ProviderDeps,
    options: EngineOptions,
    retention_started: AtomicBool,
    /// The front-end can show forms, so that MCP servers may ask the user.
    shows_forms: AtomicBool,
    /// Opened with the settings of the first workspace; only the user's own settings decide about it.
    undo: OnceLock<Arc<engine::UndoLog>>,
}

/// What a command line sets for its engine.
#[derive(Default)]
pub(crate) struct EngineOptions {
    /// The user chose a model, so the notice about the default one is not needed.
    pub(crate) model_chosen: bool,
    /// Settings that win over those of files.
    pub(crate) overrides: Map<String, Value>,
    /// Replaces the built-in instructions.
    pub(crate) system_prompt: Option<String>,
    /// Follows the instructions.
    pub(crate) appended_prompt: Option<String>,
    /// How often a failed request to a model is repeated.
    pub(crate) retries: Option<u32>,
    /// Rules that the user adds while the engine runs.
    pub(crate) added_rules: AddedRules,
    /// The chats live in a temporary folder and end with it.
    pub(crate) is_ephemeral: bool,
    /// The settings of these folders, as they were read before the engine started; for the first workspace.
    pub(crate) resolved: Mutex<Option<(Vec<PathBuf>, config::Resolved)>>,
}

/// An engine, and the folder that must outlive it.
pub(crate) struct StartedEngine {
    pub(crate) engine: Engine,
    /// Why chats are not stored, if the user did not ask for that.
    pub(crate) notice: Option<String>,
    pub(crate) store: Arc<dyn Store>,
    _temporary: Option<tempfile::TempDir>,
}

impl Workspaces {
    /// Starts the engine on the user's store.
    pub(crate) fn open(environment: Environment) -> Result<Engine, Failure> {
        let store = stores::open(&environment)?;
        tokio::spawn(prepare(store.clone()));
        Self::open_on(store, environment, EngineOptions::default())
    }

    /// Starts the engine with the options of a command line. Without a folder that can be written, chats are not stored.
    pub(crate) fn start_engine(
        environment: Environment,
        options: EngineOptions,
    ) -> Result<StartedEngine, Failure> {
        let data = environment.data_dir();
        let database = if options.is_ephemeral { None } else { stores::open_database(&environment)? };
        if database.is_some() || !options.is_ephemeral && is_writable(&data) {
            let store = database.map_or_else(|| stores::open_file(&environment), Ok)?;
            let engine = Self::open_on(store.clone(), environment, options)?;
            return Ok(StartedEngine { engine, notice: None, store, _temporary: None });
        }
        let temporary = tempfile::Builder::new()
            .prefix("dragoman-")
            .tempdir()
            .map_err(|error| Failure::user(format!("There is no temporary folder for the chat: {error}.")))?;
        let notice = (!options.is_ephemeral)
            .then(|| format!("{} cannot be written, so this chat is not stored.", data.display()));
        let store: Arc<dyn Store> = Arc::new(store::Journal::open(temporary.path())?);
        let engine = Self::open_on(store.clone(), environment, options)?;
        Ok(StartedEngine { engine, notice, store, _temporary: Some(temporary) })
    }

    pub(crate) fn open_on(
        store: Arc<dyn Store>,
        environment: Environment,
        options: EngineOptions,
    ) -> Result<Engine, Failure> {
        let store = telemetry::observe_store(store);
        let (changes, receiver) = engine::changes();
        let deps = ProviderDeps {
            credentials: Arc::new(CredentialFile::new(&environment)),
            rate_limiter: Arc::new(RateLimiter::new(Arc::new(MachineResets(store.clone())))),
            attempts: options.retries.map_or(RetryPolicy::default().attempts, |retries| retries + 1),
        };
        // A chat that is not stored is seen by nobody else.
        let peers = (!options.is_ephemeral).then(|| Arc::new(attaching::peers(&environment)));
        let workspaces = Arc::new(Workspaces {
            environment: Arc::new(environment),
            changes,
            deps,
            options,
            retention_started: AtomicBool::new(false),
            shows_forms: AtomicBool::new(false),
            undo: OnceLock::new(),
        });
        let Some(peers) = peers else { return Ok(engine::start(store, workspaces, receiver)) };
        let (engine, _) = engine::start_with_peers(store, workspaces, receiver, peers.clone());
        peers.serve(engine.downgrade());
        Ok(engine)
    }
}

/// Opens the store while the user has not prompted yet. The first use reports what goes wrong.
async fn prepare(store: Arc<dyn Store>) {
    tokio::time::sleep(PREPARE_DELAY).await;
    if let Err(failure) = store.prepare().await {
        tracing::debug!(%failure, "the store could not be opened early");
    }
}

impl WorkspaceSource for Workspaces {
    fn attached(&self, abilities: &Abilities) {
        self.shows_forms.store(abilities.forms, Ordering::Relaxed);
    }

    fn workspace(&self, workspace: &WorkspaceSpec) -> Arc<Workspace> {
        let roots = workspace.roots.clone();
        let resolved = self.resolve(workspace);
        logging::redact_with(&resolved.redactor);
        withhold_secrets(&resolved);
        telemetry::start(&resolved);
        let mut configured = providers::configured(&resolved, &self.deps);
        let problems: Vec<String> =
            std::mem::take(&mut configured.problems).iter().map(ToString::to_string).collect();
        let mut notices = Vec::new();
        let sandbox = sandboxing::workspace_sandbox(&self.environment, &resolved, &roots, &mut notices);
        let agents = self.agents(&resolved, sandbox.as_ref());
        let models = Arc::new(AllModels::new(configured, &self.environment).with_agents(agents));
        self.start_chores(models.clone(), &resolved);
        let built_in = self.built_in_tools(&resolved, sandbox.as_ref(), &roots);
        let files = built_in.files();
        let specs: Vec<ToolSpec> = built_in.tools().iter().map(|tool| tool.spec().clone()).collect();
        notices.extend(settings_review::notices(&resolved, &specs));
        notices.extend(self.model_notices(&models));
        notices.extend(problems.iter().map(|problem| Notice { level: Level::Error, text: problem.clone() }));
        let mut sources: Vec<Arc<dyn ToolSource>> = vec![built_in];
        let confined = sandbox.as_ref();
        sources.push(self.servers(&resolved, &roots, confined, &mut notices));
        let hooks = WorkspaceHooks::new(&resolved, confined);
        let texts = self.texts(resolved.clone(), roots.clone(), models.clone(), problems);
        let texts: Arc<dyn Texts> = Arc::new(texts);
        let accounts = self.accounts(resolved.clone(), models.clone());
        let worktrees = self.worktrees(&resolved, models.clone(), texts.clone(), roots.clone());
        Arc::new(Workspace {
            settings: Arc::new(resolved.settings.clone()),
            models,
            sources,
            files,
            notices,
            is_trusted: worktrees.is_trusted,
            texts,
            accounts: Some(Arc::new(accounts)),
            roots,
            hooks: Some(hooks),
            undo: Some(worktrees.undo.clone()),
            worktrees: Some(Arc::new(worktrees)),
        })
    }

    fn session_servers(&self, servers: &[ServerSpec], roots: &[PathBuf]) -> Vec<Arc<dyn ToolSource>> {
        let inputs = Inputs { workspace_roots: roots.to_vec(), ..Inputs::default() };
        let resolved = config::resolve(&self.environment, &inputs);
        let sandbox = sandboxing::workspace_sandbox(&self.environment, &resolved, roots, &mut Vec::new());
        let run = self.server_run();
        vec![servers::session_servers(&self.environment, servers, roots, &self.changes, sandbox, run)]
    }
}

impl Workspaces {
    fn resolve(&self, workspace: &WorkspaceSpec) -> Arc<config::Resolved> {
        let inputs = Inputs {
            workspace_roots: workspace.roots.clone(),
            initialization_options: workspace.options.clone(),
            overrides: self.options.overrides.clone(),
            ..Inputs::default()
        };
        let known = self.options.resolved.lock().unwrap_or_else(PoisonError::into_inner).take();
        Arc::new(match known {
            Some((known, resolved)) if known == workspace.roots && workspace.options.is_none() => resolved,
            Some(_) | None => config::resolve(&self.environment, &inputs),
        })
    }

    fn built_in_tools(
        &self,
        resolved: &config::Resolved,
        sandbox: Option<&WorkspaceSandbox>,
        roots: &[PathBuf],
    ) -> Arc<tools::BuiltInTools> {
        let (observer, is_ephemeral) = (self.jobs_observer(), self.options.is_ephemeral);
        built_in_tools::of_workspace(&self.environment, resolved, sandbox, observer, roots, is_ephemeral)
    }

    fn agents(
        &self,
        resolved: &config::Resolved,
        sandbox: Option<&WorkspaceSandbox>,
    ) -> Arc<external_agents::ExternalAgents> {
        let changes = self.changes.clone();
        let on_offers: agents::OffersObserver = Arc::new(move || changes.publish(CatalogKind::Agents));
        agents::of_workspace(&self.environment, resolved, sandbox, Some(on_offers))
    }

    /// What a user without a provider should know.
    fn model_notices(&self, models: &AllModels) -> Vec<Notice> {
        if self.options.model_chosen {
            return Vec::new();
        }
        let small = models.uses_embedded_model().then(|| models::SMALL_MODEL_NOTICE.to_owned());
        let texts = small.into_iter().chain(models.agent_notice());
        texts.map(|text| Notice { level: Level::Info, text }).collect()
    }

    fn worktrees(
        &self,
        resolved: &Arc<config::Resolved>,
        models: Arc<AllModels>,
        texts: Arc<dyn Texts>,
        roots: Vec<PathBuf>,
    ) -> WorkspaceWorktrees {
        WorkspaceWorktrees {
            environment: self.environment.clone(),
            resolved: resolved.clone(),
            models,
            texts,
            undo: self.undo_log(resolved),
            jobs_observer: self.jobs_observer(),
            is_ephemeral: self.options.is_ephemeral,
            roots,
            is_trusted: resolved.folders.iter().all(config::trust::Folder::is_trusted),
        }
    }

    fn undo_log(&self, resolved: &config::Resolved) -> Arc<engine::UndoLog> {
        let open =
            || Arc::new(engine::UndoLog::new(stores::undo_store(&self.environment, resolved.settings.undo)));
        self.undo.get_or_init(open).clone()
    }

    fn servers(
        &self,
        resolved: &config::Resolved,
        roots: &[PathBuf],
        sandbox: Option<&WorkspaceSandbox>,
        notices: &mut Vec<Notice>,
    ) -> Arc<dyn ToolSource> {
        let (environment, run) = (&self.environment, self.server_run());
        servers::workspace_servers(environment, resolved, roots, &self.changes, sandbox, run, notices)
    }

    fn accounts(&self, resolved: Arc<config::Resolved>, models: Arc<AllModels>) -> WorkspaceAccounts {
        let (credentials, changes) = (self.deps.credentials.clone(), self.changes.clone());
        WorkspaceAccounts { resolved, models, credentials, changes }
    }

    /// Clients show what runs in the background.
    fn jobs_observer(&self) -> tools::jobs::JobsObserver {
        let changes = self.changes.clone();
        tools::jobs::JobsObserver(Some(Arc::new(move || changes.publish(CatalogKind::Jobs))))
    }

    fn server_run(&self) -> servers::ServerRun {
        let forms = self.shows_forms.load(Ordering::Relaxed);
        servers::ServerRun { forms, is_ephemeral: self.options.is_ephemeral }
    }

    fn texts(
        &self,
        resolved: Arc<config::Resolved>,
        roots: Vec<PathBuf>,
        models: Arc<AllModels>,
        problems: Vec<String>,
    ) -> WorkspaceTexts {
        WorkspaceTexts {
            environment: self.environment.clone(),
            resolved,
            roots,
            models,
            problems,
            credentials: self.deps.credentials.clone(),
            changes: self.changes.clone(),
            system_prompt: self.options.system_prompt.clone(),
            appended_prompt: self.options.appended_prompt.clone(),
            added_rules: self.options.added_rules.clone(),
        }
    }
}

/// No child inherits a variable that holds a key, whatever its name is.
fn withhold_secrets(resolved: &config::Resolved) {
    let (names, redactor) = (resolved.secret_variables.clone(), resolved.redactor.clone());
    let passed = resolved.passed_variables.clone();
    let is_secret = move |name: &str, value: &str| {
        !passed.iter().any(|passed| passed == name)
            && (names.iter().any(|known| known == name) || redactor.redact(value) != value)
    };
    process::withhold_environment(Arc::new(is_secret));
}

/// Looks up prompts that come from commands, so that the first turn does not wait for them.
fn start_prompt_lookup(resolved: Arc<config::Resolved>) {
    let prompts = |settings: &config::Settings| {
        let own = settings.behaviors.values().map(|behavior| &behavior.prompts);
        own.chain([&settings.prompts]).any(config::Prompts::needs_lookup)
    };
    if !prompts(&resolved.settings) {
        return;
    }
    tokio::spawn(async move {
        tokio::time::sleep(DISCOVERY_DELAY).await;
        let own = resolved.settings.behaviors.values().map(|behavior| &behavior.prompts);
        for text in own.chain([&resolved.settings.prompts]).flat_map(config::Prompts::all) {
            if let Err(failure) = text.get().await {
                tracing::warn!(%failure, "a prompt of the settings is not used");
            }
        }
    });
}

/// The times at which rate limits end, shared by all processes of the machine.
struct MachineResets(Arc<dyn Store>);

const RESETS_TABLE: &str = "rate-limit";

impl SharedResets for MachineResets {
    fn get<'a>(&'a self, provider: &'a str) -> BoxFuture<'a, Option<i64>> {
        Box::pin(async move { self.0.get(RESETS_TABLE, provider).await.ok()??.parse().ok() })
    }

    fn set<'a>(&'a self, provider: &'a str, until: i64) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(failure) = self.0.put(RESETS_TABLE, provider, until.to_string()).await {
                tracing::warn!(%failure, "a rate limit could not be shared with other processes");
            }
        })
    }
}

impl Workspaces {
    /// Loads a newer list of models and finds local model servers, in the background after a delay.
    fn start_discovery(&self, models: Arc<AllModels>) {
        let (environment, changes) = (self.environment.clone(), self.changes.clone());
        tokio::spawn(async move {
            tokio::time::sleep(DISCOVERY_DELAY).await;
            let newer = models::use_cached_list(&environment);
            let looking = models.clone();
            let agents = tokio::task::spawn_blocking(move || looking.look_for_agents());
            if models.discover().await | newer | agents.await.unwrap_or(false) {
                changes.publish(CatalogKind::Models);
            }
        });
    }

    /// Starts what goes on beside the chats of a workspace.
    fn start_chores(&self, models: Arc<AllModels>, resolved: &Arc<config::Resolved>) {
        self.start_discovery(models);
        start_prompt_lookup(resolved.clone());
        logging::use_configured_level(resolved.settings.log_level);
        if let Some(days) = resolved.settings.chat.retention_days {
            self.start_retention(days);
        }
    }

    /// Deletes old chats, once for each process.
    fn start_retention(&self, days: u64) {
        if !self.retention_started.swap(true, Ordering::Relaxed) {
            tokio::spawn(retention::run(self.environment.clone(), days));
        }
    }
}

/// The model of a server of this machine, where nothing is configured: better than the embedded one. Keeps the settings
/// that it reads for the engine.
pub(crate) async fn discover_local_model(
    environment: &Environment,
    roots: &[PathBuf],
    options: &mut EngineOptions,
) -> Option<String> {
    let overrides = options.overrides.clone();
    let inputs = Inputs { workspace_roots: roots.to_vec(), overrides, ..Inputs::default() };
    let resolved = config::resolve(environment, &inputs);
    let models =
        AllModels::new(providers::configured(&resolved, &ProviderDeps::new(environment)), environment);
    options.resolved = Mutex::new(Some((inputs.workspace_roots, resolved)));
    if !discover_where_needed(&models).await {
        return None;
    }
    models.default_model().filter(|model| !model.starts_with("local/"))
}

/// Asks the model servers of this machine, where no better model than the embedded one is configured; `false`: one is.
pub(crate) async fn discover_where_needed(models: &AllModels) -> bool {
    if models.default_model().is_some_and(|model| !model.starts_with("local/")) {
        return false;
    }
    models.discover_servers().await;
    true
}

/// The folder is there, or can be made, and can be written.
fn is_writable(folder: &Path) -> bool {
    platform::create_private_folder(folder).is_ok() && platform::is_writable(folder)
}
