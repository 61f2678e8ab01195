//! One running server: its process behind the wall, the files it was sent, its answers.
//!
//! Invariants: every request has a deadline; the process tree ends with this handle; errors that the server prints are
//! read, and only their end is kept.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::host::{Diagnostic, LanguageAnswer, Position};
use domain::{Failure, HostReply};
use process::sandbox::{Allowance, Support};
use process::{Child, OutputPipe, Spawn};
use rpc::{CancelMethod, Peer, PeerOptions, RequestError, Transport};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::documents::{self, Documents, Message};
use crate::languages::Language;
use crate::position::{Units, uri_of};
use crate::server_messages::{ServerMessages, ServerState};
use crate::watched_files::{self, Snapshot};
use crate::wire::{self, Capabilities, DiagnosticReport, InitializeResult, WireDiagnostic, WirePlaces};
use crate::{Options, answers};

const MOST_MESSAGE: usize = 16 << 20;
const MOST_ERRORS: usize = 2_000;
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// A server that says nothing about a file it was sent has nothing to say.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(8);
/// The document changed while the server computed, or the server took up something else.
const RETRIED: [i64; 2] = [-32801, -32802];
const ATTEMPTS: usize = 4;

const STILL_WORKING: &str = "The language server is still working; ask again later for the rest.";
const NO_WALL: &str = "A language server may run code of the project, and this machine has no sandbox that contains it. \
                       Trust the folder first: `dragoman trust`.";

pub(crate) struct Server {
    name: String,
    language: Language,
    folder: PathBuf,
    peer: Peer,
    child: Child,
    state: Arc<ServerState>,
    documents: Mutex<Documents>,
    snapshot: Mutex<Option<Snapshot>>,
    capabilities: Capabilities,
    units: Units,
    errors: Arc<Mutex<String>>,
    last_used: Mutex<Instant>,
    _error_reader: AbortOnDropHandle<()>,
}

impl Server {
    /// Starts it; the sentence says why it could not.
    pub(crate) async fn start(
        language: &Language,
        folder: &Path,
        options: &Options,
        timeout: Duration,
    ) -> Result<Self, String> {
        let (program, arguments) =
            language.installed(options).ok_or("No language server is installed for it.")?;
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let spawn = Spawn::new(&program).args(arguments).directory(folder).piped_input();
        let spawn = confine(spawn.without_env(&options.withheld_environment), options).await?;
        let mut child = spawn.start().await.map_err(|error| error.to_string())?;
        let pipes = (child.take_stdin(), child.take_stdout(), child.take_stderr());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err("Its pipes could not be opened.".to_owned());
        };
        let errors = Arc::<Mutex<String>>::default();
        let error_reader = AbortOnDropHandle::new(tokio::spawn(read_errors(stderr, errors.clone())));
        let cancel = Some(CancelMethod { method: "$/cancelRequest", parameter: "id" });
        let peer_options = PeerOptions { message_limit: MOST_MESSAGE, cancel, ..PeerOptions::header() };
        let state = Arc::new(ServerState::new());
        let messages = ServerMessages { state: state.clone(), folder: folder.to_owned() };
        let peer = Peer::start(peer_options, Transport::stream(stdout, stdin), |_| messages)
            .map_err(|error| error.to_string())?;
        let request = peer.outgoing().request("initialize", &wire::initialize(folder), timeout);
        let result = request.decode::<InitializeResult>().await;
        let capabilities = match result {
            Ok(result) => result.capabilities,
            Err(error) => return Err(describe_failure(&name, &error, &errors).await),
        };
        let sent = peer.outgoing().notify("initialized", &json!({}));
        sent.map_err(|error| format!("{name} could not be reached: {error}."))?;
        state.touch();
        Ok(Self {
            units: Units::named(capabilities.position_encoding.as_deref()),
            name,
            language: language.clone(),
            folder: folder.to_owned(),
            peer,
            child,
            state,
            documents: Mutex::default(),
            snapshot: Mutex::default(),
            capabilities,
            errors,
            last_used: Mutex::new(Instant::now()),
            _error_reader: error_reader,
        })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.child.exit().is_some()
    }

    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks it to end, and ends it.
    pub(crate) async fn stop(&self) {
        let outgoing = self.peer.outgoing();
        let _ = outgoing.request("shutdown", &(), SHUTDOWN_TIMEOUT).await;
        let _ = outgoing.notify("exit", &());
        self.child.stop().await;
    }

    /// Runs a call; the end of the server ends it.
    pub(crate) async fn unless_ended<T>(
        &self,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        tokio::select! {
            result = call => result,
            _ = self.peer.ended() => {
                let reason = describe_failure(&self.name, &RequestError::Closed, &self.errors).await;
                Err(Failure::user(reason))
            }
        }
    }

    pub(crate) async fn diagnostics_of(
        &self,
        path: &Path,
        until: Instant,
    ) -> Result<LanguageAnswer, Failure> {
        let serial = self.state.serial();
        let is_changed = self.update(path).await?.1;
        let uri = uri_of(path);
        let mut is_finished = true;
        let mut found = Vec::new();
        if self.capabilities.diagnostic_provider.is_some() {
            is_finished &= self.state.settle(until).await;
            found = self.pull(&uri, until).await?;
        } else if is_changed {
            let published =
                self.state.wait_for_file(&uri, serial, until.min(Instant::now() + PUBLISH_TIMEOUT));
            let _ = published.await;
        }
        is_finished &= self.state.settle(until).await;
        found.extend(self.state.published(&uri));
        Ok(answer_with(self.convert(vec![(uri, found)]).await?, is_finished))
    }

    /// What is known of all files.
    pub(crate) async fn all_diagnostics(&self, until: Instant) -> Result<(Vec<Diagnostic>, bool), Failure> {
        self.update_open_files().await?;
        let is_finished = self.state.settle(until).await;
        let mut all = self.state.all_published();
        if self.capabilities.diagnostic_provider.is_some() {
            let open = self.lock_documents().paths();
            for path in open {
                let uri = uri_of(&path);
                all.push((uri.clone(), self.pull(&uri, until).await?));
            }
        }
        Ok((self.convert(all).await?, is_finished))
    }

    pub(crate) async fn definition(
        &self,
        path: &Path,
        position: Position,
        until: Instant,
    ) -> Result<LanguageAnswer, Failure> {
        self.check_ability(self.capabilities.definition_provider.as_ref(), "definitions")?;
        self.places("textDocument/definition", path, position, json!({}), until).await
    }

    pub(crate) async fn references(
        &self,
        path: &Path,
        position: Position,
        include_declaration: bool,
        until: Instant,
    ) -> Result<LanguageAnswer, Failure> {
        self.check_ability(self.capabilities.references_provider.as_ref(), "references")?;
        let more = json!({"context": {"includeDeclaration": include_declaration}});
        self.places("textDocument/references", path, position, more, until).await
    }

    fn check_ability(&self, provider: Option<&Value>, what: &str) -> Result<(), Failure> {
        let can = provider.is_some_and(|provider| !provider.is_null() && provider != &Value::Bool(false));
        if can { Ok(()) } else { Err(Failure::user(format!("{} cannot find {what}.", self.name))) }
    }

    async fn places(
        &self,
        method: &str,
        path: &Path,
        position: Position,
        mut params: Value,
        until: Instant,
    ) -> Result<LanguageAnswer, Failure> {
        let (text, _) = self.update(path).await?;
        // Most of the time is for a server that still reads the project, the rest for its answer.
        let now = Instant::now();
        let is_finished = self.state.settle(now + until.saturating_duration_since(now).mul_f32(0.8)).await;
        let place = self.units.encode(position, &text);
        params["textDocument"] = json!({"uri": uri_of(path)});
        params["position"] = json!({"line": place.line, "character": place.character});
        let found: WirePlaces = self.request(method, &params, until).await?;
        let (found, units) = (found.into_vec(), self.units);
        let places = blocking(move || answers::places(found, units)).await?;
        let note = (!is_finished).then(|| STILL_WORKING.to_owned());
        Ok(LanguageAnswer { reply: HostReply::Locations(places), note })
    }

    async fn pull(&self, uri: &str, until: Instant) -> Result<Vec<WireDiagnostic>, Failure> {
        let params = json!({"textDocument": {"uri": uri}});
        let report: DiagnosticReport = self.request("textDocument/diagnostic", &params, until).await?;
        Ok(report.items)
    }

    async fn request<T: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
        until: Instant,
    ) -> Result<T, Failure> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let left = until.saturating_duration_since(Instant::now());
            let error = match self.peer.outgoing().request(method, params, left).decode().await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            let may_retry = matches!(&error, RequestError::Fault(fault) if RETRIED.contains(&fault.code));
            if !may_retry || attempts == ATTEMPTS {
                return Err(Failure::user(describe_failure(&self.name, &error, &self.errors).await));
            }
            self.state.settle(until).await;
        }
    }

    async fn convert(&self, found: Vec<(String, Vec<WireDiagnostic>)>) -> Result<Vec<Diagnostic>, Failure> {
        let units = self.units;
        blocking(move || answers::diagnostics(found, units)).await
    }

    fn lock_documents(&self) -> std::sync::MutexGuard<'_, Documents> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what the server does not have of this file and of others; the file's text, and whether it was sent.
    async fn update(&self, path: &Path) -> Result<(String, bool), Failure> {
        self.update_open_files().await?;
        let file = path.to_owned();
        let text = blocking(move || documents::read(&file)).await?.map_err(Failure::user)?;
        let id = self.language.id_of(path).unwrap_or("plaintext").to_owned();
        let is_changed = self.send(|documents| documents.update(path, &id, &text))?;
        Ok((text, is_changed))
    }

    /// Sends the changes on the disk of the files that it has open, and of others where it relies on that.
    async fn update_open_files(&self) -> Result<(), Failure> {
        let open = self.lock_documents().paths();
        let read =
            move || open.into_iter().map(|path| (documents::read(&path).ok(), path)).collect::<Vec<_>>();
        for (text, path) in blocking(read).await? {
            let id = self.language.id_of(&path).unwrap_or("plaintext").to_owned();
            self.send(|documents| match &text {
                Some(text) => documents.update(&path, &id, text),
                None => documents.forget(&path),
            })?;
        }
        if !self.state.watches_files() {
            return Ok(());
        }
        let (folder, language) = (self.folder.clone(), self.language.clone());
        let matters = move |path: &Path| {
            let is_mark =
                path.file_name().is_some_and(|name| language.marks.iter().any(|mark| name == mark.as_str()));
            is_mark || language.id_of(path).is_some()
        };
        let now = blocking(move || watched_files::look(&folder, matters)).await?;
        let mut snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        let changes =
            snapshot.as_ref().map(|before| watched_files::changes(before, &now)).unwrap_or_default();
        *snapshot = Some(now);
        drop(snapshot);
        if changes.is_empty() {
            return Ok(());
        }
        self.notify(vec![("workspace/didChangeWatchedFiles", json!({"changes": changes}))])
    }

    /// Sends messages in the order of the changes; whether there were any.
    fn send(&self, change: impl FnOnce(&mut Documents) -> Vec<Message>) -> Result<bool, Failure> {
        let mut documents = self.lock_documents();
        let messages = change(&mut documents);
        let is_changed = !messages.is_empty();
        self.notify(messages)?;
        Ok(is_changed)
    }

    fn notify(&self, messages: Vec<Message>) -> Result<(), Failure> {
        for (method, params) in messages {
            let sent = self.peer.outgoing().notify(method, &params);
            sent.map_err(|error| Failure::user(format!("{} could not be reached: {error}.", self.name)))?;
            self.state.touch();
        }
        Ok(())
    }
}

fn answer_with(diagnostics: Vec<Diagnostic>, is_finished: bool) -> LanguageAnswer {
    let note = (!is_finished).then(|| STILL_WORKING.to_owned());
    LanguageAnswer { reply: HostReply::Diagnostics(diagnostics), note }
}

pub(crate) fn all_answers(diagnostics: Vec<Diagnostic>, is_finished: bool) -> LanguageAnswer {
    answer_with(diagnostics, is_finished)
}

/// Puts it behind the wall that contains it; where there is none, only trust lets it run.
async fn confine(spawn: Spawn, options: &Options) -> Result<Spawn, String> {
    let contains = match &options.sandbox {
        Some(sandbox) => process::sandbox_support(sandbox).await == Support::Namespaces,
        None => false,
    };
    if !contains && !options.is_trusted {
        return Err(NO_WALL.to_owned());
    }
    let Some(sandbox) = &options.sandbox else { return Ok(spawn) };
    let cache = options.cache.clone();
    let made =
        blocking(move || std::fs::create_dir_all(&cache)).await.map_err(|failure| failure.to_string())?;
    made.map_err(|error| format!("{}: {error}.", options.cache.display()))?;
    let allowance = Allowance {
        strict: contains,
        keeps_run_later: true,
        run_later: options.read_only.clone(),
        ..Allowance::default()
    };
    Ok(spawn.env("CARGO_TARGET_DIR", options.cache.join("cargo")).confine(sandbox.clone(), allowance))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Failure::internal(error.to_string()))
}

async fn read_errors(mut stderr: OutputPipe, errors: Arc<Mutex<String>>) {
    let mut buffer = vec![0; 4 << 10];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let mut errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let start = errors.ceil_char_boundary(errors.len().saturating_sub(MOST_ERRORS));
        errors.drain(..start);
    }
}

/// A sentence with the last line that the server printed.
async fn describe_failure(name: &str, error: &RequestError, errors: &Mutex<String>) -> String {
    /// The last errors come a little after the end of the answers.
    const DRAIN: Duration = Duration::from_millis(200);
    if matches!(error, RequestError::Closed) {
        tokio::time::sleep(DRAIN).await;
    }
    let errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
    let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let last = if last.is_empty() { String::new() } else { format!(" Its last words: {last}") };
    format!("The language server {name} failed: {error}.{last}")
}
