//! The messages that a server sends by itself, and what is known from them: diagnostics, and whether it works.
//!
//! Knows no process. Invariants: every request of a server is answered; what is kept of a server is bounded; no request
//! of a server changes anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rpc::{Handler, Params, Responder};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::position::uri_of;
use crate::wire::{Progress, PublishedDiagnostics, ServerStatus, WireDiagnostic};

/// A server that was silent for so long, and says that it does nothing, is done.
const QUIET: Duration = Duration::from_millis(500);
const MOST_FILES: usize = 2_000;
const MOST_IN_FILE: usize = 500;
const MOST_PROGRESS: usize = 256;

/// What is known of a server at work.
pub(crate) struct ServerState {
    known: Mutex<Known>,
    changes: watch::Sender<()>,
}

struct Known {
    published: BTreeMap<String, Published>,
    /// Counts the messages with diagnostics.
    serial: u64,
    progress: BTreeSet<String>,
    is_quiescent: bool,
    watches_files: bool,
    last_sign: Instant,
}

struct Published {
    serial: u64,
    diagnostics: Vec<WireDiagnostic>,
}

impl ServerState {
    pub(crate) fn new() -> Self {
        let known = Known {
            published: BTreeMap::new(),
            serial: 0,
            progress: BTreeSet::new(),
            is_quiescent: true,
            watches_files: false,
            last_sign: Instant::now(),
        };
        Self { known: Mutex::new(known), changes: watch::Sender::new(()) }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        let mut known = self.lock();
        known.last_sign = Instant::now();
        change(&mut known);
        drop(known);
        self.changes.send_replace(());
    }

    /// The server was given something to do.
    pub(crate) fn touch(&self) {
        self.change(|_| ());
    }

    /// Whether the server relies on its client for changes on the disk.
    pub(crate) fn watches_files(&self) -> bool {
        self.lock().watches_files
    }

    /// The number of the last message with diagnostics.
    pub(crate) fn serial(&self) -> u64 {
        self.lock().serial
    }

    /// What was published for a file last.
    pub(crate) fn published(&self, uri: &str) -> Vec<WireDiagnostic> {
        self.lock().published.get(uri).map(|published| published.diagnostics.clone()).unwrap_or_default()
    }

    pub(crate) fn all_published(&self) -> Vec<(String, Vec<WireDiagnostic>)> {
        let known = self.lock();
        let all = known.published.iter().filter(|(_, published)| !published.diagnostics.is_empty());
        all.map(|(uri, published)| (uri.clone(), published.diagnostics.clone())).collect()
    }

    /// Waits until the server has nothing more to do; whether it came to that.
    pub(crate) async fn settle(&self, until: Instant) -> bool {
        self.wait(until, |known| {
            let is_busy = !known.progress.is_empty() || !known.is_quiescent;
            if is_busy { None } else { Some(known.last_sign + QUIET) }
        })
        .await
    }

    /// Waits until diagnostics of a file came after this message.
    pub(crate) async fn wait_for_file(&self, uri: &str, serial: u64, until: Instant) -> bool {
        self.wait(until, |known| {
            let is_there = known.published.get(uri).is_some_and(|published| published.serial > serial);
            is_there.then(Instant::now)
        })
        .await
    }

    /// Waits for the time at which a condition holds, if nothing changes until then.
    async fn wait(&self, until: Instant, holds_at: impl Fn(&Known) -> Option<Instant>) -> bool {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let holds_at = holds_at(&self.lock());
            let now = Instant::now();
            if holds_at.is_some_and(|at| at <= now) {
                return true;
            }
            if now >= until {
                return false;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep_until(holds_at.unwrap_or(until).min(until)) => {}
            }
        }
    }

    fn publish(&self, published: PublishedDiagnostics) {
        self.change(|known| {
            known.serial += 1;
            let mut diagnostics = published.diagnostics;
            diagnostics.truncate(MOST_IN_FILE);
            if known.published.len() < MOST_FILES || known.published.contains_key(&published.uri) {
                known.published.insert(published.uri, Published { serial: known.serial, diagnostics });
            }
        });
    }

    fn note_progress(&self, progress: &Progress) {
        let token = progress.token.to_string();
        self.change(|known| match progress.value.kind.as_str() {
            "end" => drop(known.progress.remove(&token)),
            _ if known.progress.len() < MOST_PROGRESS => drop(known.progress.insert(token)),
            _ => {}
        });
    }
}

pub(crate) struct ServerMessages {
    pub state: Arc<ServerState>,
    pub folder: PathBuf,
}

impl Handler for ServerMessages {
    fn on_request(&mut self, method: &str, params: Params<'_>, responder: Responder) {
        let params: Value = params.decode().unwrap_or_default();
        match method {
            "workspace/configuration" => {
                let count = params["items"].as_array().map_or(1, Vec::len).min(1_000);
                responder.succeed(&vec![Value::Null; count]);
            }
            "workspace/workspaceFolders" => {
                let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
                responder.succeed(&json!([{"uri": uri_of(&self.folder), "name": name}]));
            }
            "client/registerCapability" => {
                let all = params["registrations"].as_array().into_iter().flatten();
                let watches = |entry: &Value| entry["method"] == "workspace/didChangeWatchedFiles";
                if all.into_iter().any(watches) {
                    self.state.change(|known| known.watches_files = true);
                }
                responder.succeed(&());
            }
            "workspace/applyEdit" => responder.succeed(&json!({"applied": false})),
            "window/workDoneProgress/create"
            | "client/unregisterCapability"
            | "window/showMessageRequest" => {
                responder.succeed(&());
            }
            method if method.starts_with("workspace/") && method.ends_with("/refresh") => {
                responder.succeed(&());
            }
            method => responder.method_not_found(method),
        }
    }

    fn on_notification(&mut self, method: &str, params: Params<'_>) {
        match method {
            "textDocument/publishDiagnostics" => {
                if let Ok(published) = params.decode() {
                    self.state.publish(published);
                }
            }
            "$/progress" => {
                if let Ok(progress) = params.decode() {
                    self.state.note_progress(&progress);
                }
            }
            "experimental/serverStatus" => {
                if let Ok(ServerStatus { quiescent: Some(is_quiescent) }) = params.decode() {
                    self.state.change(|known| known.is_quiescent = is_quiescent);
                }
            }
            _ => {}
        }
    }
}
