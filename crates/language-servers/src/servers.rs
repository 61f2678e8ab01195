//! The servers of a workspace: found when something is asked, started once, ended when nobody has asked for a while.
//!
//! Invariants: one server for a language and folder; at most four run; a server that failed is not started again at once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use domain::host::{LanguageAnswer, LanguageServices};
use domain::{BoxFuture, Failure, HostCall};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep_until};

use crate::Options;
use crate::languages::{Language, languages};
use crate::server::{Server, all_answers};

const MOST_RUNNING: usize = 4;
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// A server without a call for so long ends.
const IDLE_TIME: Duration = Duration::from_secs(600);

/// Language servers of the machine for one workspace.
pub struct LanguageServers {
    shared: Arc<Shared>,
    roots: Vec<PathBuf>,
    is_useful: OnceLock<bool>,
}

struct Shared {
    options: Options,
    languages: OnceLock<Vec<Language>>,
    running: Mutex<Vec<Entry>>,
    idle_time: Duration,
}

struct Entry {
    language: usize,
    folder: PathBuf,
    cell: Started,
}

type Started = Arc<OnceCell<Result<Arc<Server>, StartFailure>>>;

struct StartFailure {
    reason: String,
    at: Instant,
}

impl LanguageServers {
    /// Looks at nothing yet.
    pub fn new(options: Options, roots: Vec<PathBuf>) -> Self {
        Self::with_idle_time(options, roots, IDLE_TIME)
    }

    /// Ends servers after another time than ten minutes.
    pub fn with_idle_time(options: Options, roots: Vec<PathBuf>, idle_time: Duration) -> Self {
        let shared = Shared { options, languages: OnceLock::new(), running: Mutex::default(), idle_time };
        Self { shared: Arc::new(shared), roots, is_useful: OnceLock::new() }
    }

    async fn answer(
        &self,
        call: HostCall,
        roots: &[PathBuf],
        deadline: Duration,
    ) -> Result<LanguageAnswer, Failure> {
        let until = Instant::now() + deadline;
        match call {
            HostCall::Diagnostics { path: None } => self.shared.all_diagnostics(roots, until).await,
            HostCall::Diagnostics { path: Some(path) } => {
                let server = self.shared.server_for(&path, roots, until).await?;
                server.unless_ended(server.diagnostics_of(&path, until)).await
            }
            HostCall::Definition { path, position } => {
                let server = self.shared.server_for(&path, roots, until).await?;
                server.unless_ended(server.definition(&path, position, until)).await
            }
            HostCall::References { path, position, include_declaration } => {
                let server = self.shared.server_for(&path, roots, until).await?;
                let places = server.references(&path, position, include_declaration, until);
                server.unless_ended(places).await
            }
            HostCall::ReadText { .. }
            | HostCall::ReadLines { .. }
            | HostCall::ReadBytes { .. }
            | HostCall::WriteText { .. }
            | HostCall::Stat { .. }
            | HostCall::Glob { .. }
            | HostCall::Terminal(_) => Err(Failure::user("A language server cannot do that.")),
        }
    }
}

impl LanguageServices for LanguageServers {
    fn are_useful(&self) -> bool {
        *self.is_useful.get_or_init(|| {
            let shared = &self.shared;
            let serves = |language: &Language| {
                language.installed(&shared.options).is_some()
                    && self.roots.iter().any(|root| language.is_at_home_in(root))
            };
            shared.languages().iter().any(serves)
        })
    }

    fn ask<'a>(
        &'a self,
        call: HostCall,
        roots: &'a [PathBuf],
        deadline: Duration,
    ) -> BoxFuture<'a, Result<LanguageAnswer, Failure>> {
        Box::pin(self.answer(call, roots, deadline))
    }

    fn is_running_for(&self, path: &Path, roots: &[PathBuf]) -> bool {
        let Some((index, language)) = self.shared.language_of(path) else { return false };
        let Some(folder) = language.project_of(path, roots) else { return false };
        self.shared.lock().iter().any(|entry| {
            let is_ready = matches!(entry.cell.get(), Some(Ok(server)) if !server.has_ended());
            is_ready && entry.language == index && entry.folder == folder
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let entries = std::mem::take(&mut *self.shared.lock());
            for entry in entries {
                if let Some(Ok(server)) = entry.cell.get() {
                    server.stop().await;
                }
            }
        })
    }
}

impl Shared {
    fn languages(&self) -> &[Language] {
        self.languages.get_or_init(|| languages(&self.options.configured))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The language of a file that a server is installed for.
    fn language_of(&self, path: &Path) -> Option<(usize, &Language)> {
        let is_served = |language: &Language| {
            language.id_of(path).is_some() && language.installed(&self.options).is_some()
        };
        self.languages().iter().enumerate().find(|(_, language)| is_served(language))
    }

    async fn server_for(
        self: &Arc<Self>,
        path: &Path,
        roots: &[PathBuf],
        until: Instant,
    ) -> Result<Arc<Server>, Failure> {
        let Some((index, language)) = self.language_of(path) else {
            return Err(Failure::user(format!("No language server is installed for {}.", path.display())));
        };
        let folder = language.project_of(path, roots).ok_or_else(|| Failure::user("There is no folder."))?;
        self.server(index, folder, until).await
    }

    async fn server(
        self: &Arc<Self>,
        index: usize,
        folder: PathBuf,
        until: Instant,
    ) -> Result<Arc<Server>, Failure> {
        let cell = self.cell(index, &folder);
        let start = || async {
            let language = &self.languages()[index];
            let timeout = until.saturating_duration_since(Instant::now());
            match Server::start(language, &folder, &self.options, timeout).await {
                Ok(server) => {
                    let server = Arc::new(server);
                    tokio::spawn(end_when_idle(Arc::downgrade(self), Arc::downgrade(&server)));
                    Ok(server)
                }
                Err(reason) => Err(StartFailure { reason, at: Instant::now() }),
            }
        };
        match cell.get_or_init(start).await {
            Ok(server) => Ok(server.clone()),
            Err(failure) => Err(Failure::user(failure.reason.clone())),
        }
    }

    /// The place of a server, which may run there already. A server that ended leaves its place to a new one.
    fn cell(&self, language: usize, folder: &Path) -> Started {
        let mut running = self.lock();
        running.retain(|entry| match entry.cell.get() {
            None => true,
            Some(Ok(server)) => !server.has_ended(),
            Some(Err(failure)) => failure.at.elapsed() < RETRY_AFTER,
        });
        let is_same = |entry: &&Entry| entry.language == language && entry.folder == folder;
        if let Some(entry) = running.iter().find(is_same) {
            return entry.cell.clone();
        }
        if running.len() >= MOST_RUNNING {
            let used = |entry: &Entry| match entry.cell.get() {
                Some(Ok(server)) => Some(server.last_used()),
                Some(Err(_)) | None => None,
            };
            let oldest = (0..running.len()).filter(|at| running[*at].cell.get().is_some());
            if let Some(oldest) = oldest.min_by_key(|at| used(&running[*at])) {
                end(running.remove(oldest).cell);
            }
        }
        let cell = Started::default();
        running.push(Entry { language, folder: folder.to_owned(), cell: cell.clone() });
        cell
    }

    async fn all_diagnostics(
        self: &Arc<Self>,
        roots: &[PathBuf],
        until: Instant,
    ) -> Result<LanguageAnswer, Failure> {
        let mut wanted = Vec::new();
        for root in roots {
            for (index, language) in self.languages().iter().enumerate() {
                let is_project = !language.marks.is_empty() && language.is_at_home_in(root);
                if is_project && language.installed(&self.options).is_some() {
                    wanted.push((index, root.clone()));
                }
            }
        }
        let running =
            self.lock().iter().map(|entry| (entry.language, entry.folder.clone())).collect::<Vec<_>>();
        wanted.extend(
            running.into_iter().filter(|(_, folder)| roots.iter().any(|root| folder.starts_with(root))),
        );
        wanted.sort();
        wanted.dedup();
        wanted.truncate(MOST_RUNNING);
        if wanted.is_empty() {
            return Err(Failure::user("No language server is installed for this project."));
        }
        let (mut all, mut is_finished, mut failure) = (Vec::new(), true, None);
        for (index, folder) in wanted {
            let answer = async {
                let server = self.server(index, folder, until).await?;
                server.unless_ended(server.all_diagnostics(until)).await
            };
            match answer.await {
                Ok((diagnostics, is_done)) => {
                    all.extend(diagnostics);
                    is_finished &= is_done;
                }
                Err(problem) => failure = Some(problem),
            }
        }
        match failure {
            Some(failure) if all.is_empty() => Err(failure),
            _ => Ok(all_answers(all, is_finished)),
        }
    }
}

/// Ends a server in the background.
fn end(cell: Started) {
    tokio::spawn(async move {
        if let Some(Ok(server)) = cell.get() {
            server.stop().await;
        }
    });
}

async fn end_when_idle(shared: Weak<Shared>, server: Weak<Server>) {
    loop {
        let (Some(strong), Some(shared)) = (server.upgrade(), shared.upgrade()) else { return };
        let at = strong.last_used() + shared.idle_time;
        if at <= Instant::now() {
            let is_this =
                |entry: &Entry| matches!(entry.cell.get(), Some(Ok(other)) if Arc::ptr_eq(other, &strong));
            shared.lock().retain(|entry| !is_this(entry));
            tracing::debug!("a language server ends after a time without calls");
            return strong.stop().await;
        }
        drop((strong, shared));
        sleep_until(at).await;
    }
}
