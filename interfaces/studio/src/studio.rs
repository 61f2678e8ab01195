//! The state of the process and how it changes: one lock, one stream of events, one archive.
//!
//! Invariants: the lock is never held while waiting; what the page is told is in the archive first, except for what a
//! restart may lose (progress, the console, the state of connections).

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use domain::store::Lease;
use domain::{Failure, SessionId, Store};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use web::ApiError;

use crate::archive::{Archive, TabList};
use crate::cli::{Cli, Launch};
use crate::connections::CredentialFile;
use crate::console::{CallEntry, EntryKind, Level};
use crate::model::{MessageStatus, Problem, TabRecord};
use crate::network::Network;
use crate::plugin::{Plugin, PluginHost};
use crate::sign_ins::SignIns;
use crate::state::{Model, shown_plugins};
use crate::waiting_call::WaitingCall;

/// Events that a slow page may fall behind.
const EVENTS: usize = 1024;

/// The files of a project besides the generated ones, by the name of its package.
pub type ProjectFiles = fn(&str) -> Vec<(String, String)>;

pub struct StudioOptions {
    pub store: Arc<dyn Store>,
    pub launcher: Arc<dyn Launch>,
    /// Keeps credentials for users who ask for it.
    pub credentials: Arc<dyn CredentialFile>,
    pub plugins: Arc<dyn PluginHost>,
    /// React's bundle, for the export of one page.
    pub react: Option<&'static str>,
    pub project_files: ProjectFiles,
    /// Where the page is, for the way back from a sign-in.
    pub origin: String,
    /// How often connections are looked at.
    pub health_check: Duration,
}

/// The handle that routes and tasks share.
#[derive(Clone)]
pub struct Studio {
    inner: Arc<Inner>,
}

pub struct Inner {
    pub(crate) cli: Cli,
    pub(crate) archive: Archive,
    pub(crate) network: Network,
    pub(crate) sign_ins: SignIns,
    pub(crate) credentials: Arc<dyn CredentialFile>,
    pub(crate) plugins: Arc<dyn PluginHost>,
    pub(crate) react: Option<&'static str>,
    pub(crate) project_files: ProjectFiles,
    pub(crate) origin: String,
    pub(crate) health_check: Duration,
    model: Mutex<Model>,
    events: broadcast::Sender<Event>,
    store: Arc<dyn Store>,
}

pub(crate) type Event = (&'static str, Arc<str>);

impl Studio {
    /// Loads what is kept and starts the child. Only one process of a user runs it at a time.
    pub async fn open(options: StudioOptions) -> Result<Self, Failure> {
        let lease = lease_name();
        if let Lease::HeldBy { holder, .. } = options.store.lease(&lease).await? {
            return Err(Failure::taken(format!("Studio runs already ({holder})."))
                .hint("Use its page, or end it first."));
        }
        let archive = Archive::new(options.store.clone());
        let loaded = archive.load().await?;
        let (events, _) = broadcast::channel(EVENTS);
        let mut model = Model { preferences: loaded.preferences, closed: loaded.closed, ..Model::default() };
        model.tabs = loaded.tabs.into_iter().map(interrupted).collect();
        model.plugins = options.plugins.names().into_iter().map(Plugin::untried).collect();
        model.connections.load(options.credentials.as_ref());
        let inner = Arc::new_cyclic(|inner: &std::sync::Weak<Inner>| {
            let inner = inner.clone();
            let diagnostics = Arc::new(move |line: String| {
                if let Some(inner) = inner.upgrade() {
                    inner.log(None, EntryKind::Cli, Level::Info, &line, None);
                }
            });
            Inner {
                cli: Cli::start(options.launcher, diagnostics),
                archive,
                network: Network::default(),
                sign_ins: SignIns::default(),
                credentials: options.credentials,
                plugins: options.plugins,
                react: options.react,
                project_files: options.project_files,
                origin: options.origin,
                health_check: options.health_check,
                model: Mutex::new(model),
                events,
                store: options.store,
            }
        });
        let studio = Self { inner };
        tokio::spawn(studio.clone().follow_cli());
        tokio::spawn(studio.clone().watch_connections());
        Ok(studio)
    }

    /// Ends the child and gives the right to run back.
    pub async fn close(&self) {
        self.inner.cli.stop().await;
        let _ = self.inner.store.release(&lease_name()).await;
    }

    async fn follow_cli(self) {
        let mut status = self.cli.status();
        while status.changed().await.is_ok() {
            let now = status.borrow_and_update().clone();
            self.publish("cli", &now);
        }
    }

    pub(crate) fn state(&self) -> Value {
        let model = self.model();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "cli": *self.cli.status().borrow(),
            "tabs": model.tabs.iter().map(|tab| tab.shown(&model.plugins)).collect::<Vec<_>>(),
            "closed": closed_list(&model),
            "connections": model.connections.shown(&model.tabs),
            "plugins": shown_plugins(&model),
            "toolCalls": model.tool_calls.iter().map(WaitingCall::shown).collect::<Vec<_>>(),
            "preferences": model.preferences,
        })
    }

    /// The events from now on, the whole state first.
    pub(crate) fn subscribe(&self) -> (Event, broadcast::Receiver<Event>) {
        let receiver = self.events.subscribe();
        (("state", self.state().to_string().into()), receiver)
    }
}

impl std::ops::Deref for Studio {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl Inner {
    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn publish(&self, name: &'static str, value: &impl Serialize) {
        if let Ok(text) = serde_json::to_string(value) {
            // Nobody listens: nobody misses it.
            let _ = self.events.send((name, text.into()));
        }
    }

    /// Changes a tab, keeps it and tells the page.
    pub(crate) async fn change_tab<T>(
        &self,
        id: &str,
        change: impl FnOnce(&mut TabRecord) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let changed = {
            let mut model = self.model();
            let tab = model.tab_mut(id).ok_or_else(no_tab)?;
            change(tab)?
        };
        self.keep_tab(id).await?;
        Ok(changed)
    }

    pub(crate) async fn keep_tab(&self, id: &str) -> Result<(), ApiError> {
        let read = || {
            let model = self.model();
            model.tab(id).or_else(|| model.closed.iter().find(|tab| tab.id == id)).cloned()
        };
        self.archive.save_tab(id, read).await.map_err(|failure| not_kept(&failure))?;
        self.show_tab(id);
        Ok(())
    }

    /// Tells the page how a tab is now.
    pub(crate) fn show_tab(&self, id: &str) {
        let model = self.model();
        if let Some(tab) = model.tab(id) {
            self.publish("tab", &tab.shown(&model.plugins));
        }
    }

    pub(crate) async fn keep_list(&self) -> Result<(), ApiError> {
        let ids = |tabs: &[TabRecord]| tabs.iter().map(|tab| tab.id.clone()).collect();
        let read = || {
            let model = self.model();
            TabList { order: ids(&model.tabs), closed: ids(&model.closed) }
        };
        self.archive.save_list(read).await.map_err(|failure| not_kept(&failure))?;
        let model = self.model();
        let order: Vec<&str> = model.tabs.iter().map(|tab| tab.id.as_str()).collect();
        self.publish("tabs", &json!({"order": order, "closed": closed_list(&model)}));
        Ok(())
    }

    pub(crate) fn log(
        &self,
        tab: Option<&str>,
        kind: EntryKind,
        level: Level,
        message: &str,
        call: Option<CallEntry>,
    ) {
        let mut model = self.model();
        let entry = model.console.add(tab, kind, level, message, call);
        self.publish("console", &entry);
    }
}

/// The name of the right to run.
pub(crate) fn lease_name() -> SessionId {
    SessionId::new("studio")
}

fn closed_list(model: &Model) -> Vec<Value> {
    let entry = |tab: &TabRecord| json!({"id": tab.id, "title": tab.title, "closedAt": tab.closed_at});
    model.closed.iter().map(entry).collect()
}

/// What was under way when the process ended is not under way any more.
fn interrupted(mut tab: TabRecord) -> TabRecord {
    for message in &mut tab.chat {
        if matches!(message.status, MessageStatus::Pending | MessageStatus::Queued) {
            message.status = MessageStatus::Error;
            message.problem = Some(Problem {
                kind: "unavailable".to_owned(),
                message: "Studio was closed before this was done.".to_owned(),
                hint: Some("Send it again.".to_owned()),
                data: None,
            });
        }
    }
    tab
}

pub(crate) fn no_tab() -> ApiError {
    ApiError::not_found("There is no such tab.")
}

pub(crate) fn not_kept(failure: &Failure) -> ApiError {
    let error = ApiError::internal(failure.message.clone());
    match &failure.hint {
        Some(hint) => error.hint(hint.clone()),
        None => error,
    }
}

pub(crate) fn problem_of(error: &ApiError) -> Problem {
    Problem {
        kind: error.kind.to_owned(),
        message: error.message.clone(),
        hint: error.hint.clone(),
        data: error.data.as_deref().cloned(),
    }
}
