//! The chats as the pages see them: one front-end of this process that keeps chats open, and what the store lists.
//!
//! Must not know HTTP. Invariant: this front-end leaves a chat only when no page shows it and no turn runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::caller::Caller;
use crate::guard::Guard;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::ask::Answer;
use domain::command::{
    Accepted, Catalog, RollbackScope, SessionInfo, SessionSettings, UserPrompt, WorkspaceSpec,
};
use domain::link::{Commands, Engine};
use domain::queue::Received;
use domain::store::{ListFilter, ListPosition, SearchQuery, SessionSummary};
use domain::{Abilities, AskId, BoxFuture, Command, Failure, FailureKind, ItemId, Link, SessionId, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How often chats without a page are looked at.
const SWEEP: Duration = Duration::from_secs(20);
/// The most chats of a list.
const LONGEST_LIST: usize = 200;
/// Streams that one account, or the pages of this machine, may have open: each holds a whole chat until it is read.
const MOST_STREAMS: usize = 16;
const PREFERENCES: (&str, &str) = ("serve", "preferences");

/// What a program holds at this moment.
pub struct RunningChat {
    pub id: SessionId,
    /// Program and process id.
    pub holder: String,
    pub state: RunningState,
    /// US dollars.
    pub cost: Option<f64>,
}

pub enum RunningState {
    Idle,
    Answering,
    /// With what it waits for.
    Waiting(String),
}

pub(crate) type Running =
    Box<dyn Fn() -> BoxFuture<'static, Result<Vec<RunningChat>, Failure>> + Send + Sync>;

pub struct Options {
    pub engine: Engine,
    pub store: Arc<dyn Store>,
    /// The folders in which new chats are opened.
    pub folders: Vec<PathBuf>,
    pub running: Running,
    pub version: &'static str,
    /// On a server: who it is.
    pub scope: Option<Scope>,
}

/// An account of a server, whose chats these are.
#[derive(Clone)]
pub struct Scope {
    pub guard: Guard,
    pub caller: Caller,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Chats(Arc<Shared>);

struct Shared {
    options: Options,
    /// The front-end that keeps chats open.
    commands: Commands,
    /// How many pages show a chat that this process opened.
    shown: Mutex<HashMap<SessionId, usize>>,
    streams: Arc<Semaphore>,
}

/// A page that shows a chat; dropping it leaves the chat.
pub(crate) struct Shown {
    chats: Chats,
    id: SessionId,
    pub(crate) link: Option<Link>,
    commands: Commands,
}

/// The chats of a list, and the place where the next page of it begins.
pub(crate) struct Listed {
    pub(crate) chats: Vec<(SessionSummary, Option<String>)>,
    pub(crate) is_whole: bool,
}

impl Chats {
    /// Attaches to the engine; ends with it.
    pub async fn open(options: Options) -> Result<Self, Failure> {
        let Link { commands, mut events, host } = options.engine.attach(abilities()).await?;
        let streams = Arc::new(Semaphore::new(MOST_STREAMS));
        let shared = Shared { options, commands: commands.clone(), shown: Mutex::default(), streams };
        let chats = Self(Arc::new(shared));
        chats.enter(&commands).await?;
        // Nothing is shown by this front-end; pages have their own.
        tokio::spawn(async move {
            let _host = host;
            while !matches!(events.recv().await, Received::Closed) {}
        });
        let sweeping = Arc::downgrade(&chats.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(shared) = sweeping.upgrade() else { return };
                Self(shared).leave_unused().await;
            }
        });
        Ok(chats)
    }

    async fn enter(&self, commands: &Commands) -> Result<Catalog, Failure> {
        let folders = &self.0.options.folders;
        // The folders of a server are projects of their own, not one workspace.
        let count = if self.scope().is_some() { 1 } else { folders.len() };
        let roots = folders.iter().take(count).cloned().collect();
        let workspace = WorkspaceSpec { roots, options: None };
        commands.call(|reply| Command::Enter { workspace, reply }).await
    }

    pub(crate) fn version(&self) -> &'static str {
        self.0.options.version
    }

    pub(crate) fn scope(&self) -> Option<&Scope> {
        self.0.options.scope.as_ref()
    }

    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.0.options.folders
    }

    pub(crate) async fn catalog(&self) -> Result<Catalog, Failure> {
        self.0.commands.call(|reply| Command::Catalog { reply }).await
    }

    pub(crate) async fn running(&self) -> Result<Vec<RunningChat>, Failure> {
        (self.0.options.running)().await
    }

    /// The newest chats, or those that match the text in a title or a message.
    pub(crate) async fn list(
        &self,
        text: Option<&str>,
        after: Option<ListPosition>,
        limit: usize,
        is_here: bool,
    ) -> Result<Listed, Failure> {
        let limit = limit.clamp(1, LONGEST_LIST);
        let workspace = (is_here || self.scope().is_some()).then(|| self.0.options.folders.clone());
        let store = &self.0.options.store;
        let filter = ListFilter {
            workspace: workspace.clone(),
            text: text.map(str::to_owned),
            limit: Some(limit + 1),
            after,
        };
        let mut found = store.list(filter).await?;
        let is_whole = found.len() <= limit;
        found.truncate(limit);
        let mut chats: Vec<_> = found.into_iter().map(|chat| (chat, None)).collect();
        if let Some(text) = text {
            let query = SearchQuery { text: text.to_owned(), workspace, limit: Some(limit) };
            for hit in store.search(query).await? {
                match chats.iter_mut().find(|(known, _)| known.id == hit.chat.id) {
                    Some((_, excerpt)) => *excerpt = Some(hit.excerpt),
                    None => chats.push((hit.chat, Some(hit.excerpt))),
                }
            }
            chats.sort_by_key(|(chat, _)| std::cmp::Reverse(chat.updated_at));
            chats.truncate(limit);
        }
        if let Some(scope) = self.scope() {
            let own = |folder: &PathBuf| scope.caller.workspaces.contains(folder);
            chats.retain(|(chat, _)| !chat.workspace.is_empty() && chat.workspace.iter().all(own));
        }
        Ok(Listed { chats, is_whole: is_whole || text.is_some() })
    }

    /// The place of a chat in the list, for readers that know its key only.
    pub(crate) async fn position(&self, id: &SessionId) -> Result<Option<ListPosition>, Failure> {
        if !self.exists(id).await? {
            return Ok(None);
        }
        let store = &self.0.options.store;
        let Some(newest) = store.newest(id).await? else { return Ok(None) };
        let last = store.read(id, newest.saturating_sub(1), 1).await?;
        Ok(last.first().map(|last| ListPosition { updated_at: last.at, id: id.clone() }))
    }

    /// A new chat in one of the folders, or in those of this process.
    pub(crate) async fn new_chat(
        &self,
        folder: Option<PathBuf>,
        settings: SessionSettings,
    ) -> Result<SessionInfo, Failure> {
        if let Some(folder) = folder.as_ref().filter(|folder| !self.folders().contains(folder)) {
            return Err(Failure::user(format!("{} is not a folder of this server.", folder.display()))
                .hint("Choose one of those that `GET /state` names."));
        }
        let workspace = folder.map(|folder| vec![folder]);
        let info = self
            .0
            .commands
            .call(|reply| Command::Open { id: None, workspace, settings, servers: Vec::new(), reply })
            .await?;
        self.shown().entry(info.id.clone()).or_default();
        Ok(info)
    }

    /// Opens a stored chat here, or attaches to the program that holds it.
    pub(crate) async fn load(&self, id: &SessionId) -> Result<SessionInfo, Failure> {
        let session = id.clone();
        let info =
            self.0.commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await?;
        self.shown().entry(id.clone()).or_default();
        Ok(info)
    }

    /// Whether a chat of this id is open here or stored.
    pub(crate) async fn exists(&self, id: &SessionId) -> Result<bool, Failure> {
        if let Some(scope) = self.scope() {
            return scope.guard.may_see(&scope.caller, id).await;
        }
        if self.shown().contains_key(id) {
            return Ok(true);
        }
        Ok(self.0.options.store.newest(id).await?.is_some())
    }

    /// A front-end of its own for one page and one chat.
    pub(crate) async fn show(&self, id: &SessionId) -> Result<(Shown, SessionInfo), Failure> {
        self.load(id).await?;
        let link = self.0.options.engine.attach(abilities()).await?;
        *self.shown().entry(id.clone()).or_default() += 1;
        let commands = link.commands.clone();
        let shown =
            Shown { chats: self.clone(), id: id.clone(), link: Some(link), commands: commands.clone() };
        self.enter(&commands).await?;
        let session = id.clone();
        let info = commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await?;
        Ok((shown, info))
    }

    /// A place for one more stream.
    pub(crate) fn stream_place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        self.0.streams.clone().try_acquire_owned().map_err(|_| {
            Failure::new(FailureKind::Quota, format!("{MOST_STREAMS} streams are open already."))
                .hint("Close one of them.")
        })
    }

    pub(crate) fn commands(&self) -> &Commands {
        &self.0.commands
    }

    pub(crate) async fn prompt(&self, id: &SessionId, prompt: UserPrompt) -> Result<Accepted, Failure> {
        self.load(id).await?;
        let session = id.clone();
        self.0.commands.call(|reply| Command::Prompt { session, prompt, reply }).await
    }

    pub(crate) async fn steer(&self, id: &SessionId, text: Option<String>) -> Result<(), Failure> {
        self.load(id).await?;
        let session = id.clone();
        self.0.commands.call(|reply| Command::Steer { session, text, reply }).await
    }

    pub(crate) async fn stop(&self, id: &SessionId) -> Result<(), Failure> {
        self.load(id).await?;
        self.0.commands.send(Command::Cancel { session: id.clone() }).await
    }

    /// Gives the answer that settled the question: this one, or an earlier one.
    pub(crate) async fn answer(&self, id: &SessionId, ask: AskId, answer: Answer) -> Result<Answer, Failure> {
        self.load(id).await?;
        let session = id.clone();
        self.0.commands.call(|reply| Command::Answer { session, ask, answer, reply }).await
    }

    pub(crate) async fn configure(
        &self,
        id: &SessionId,
        change: SessionSettings,
    ) -> Result<SessionSettings, Failure> {
        self.load(id).await?;
        let session = Some(id.clone());
        self.0.commands.call(|reply| Command::Configure { session, change, reply }).await
    }

    pub(crate) async fn fork(&self, id: &SessionId, until: Option<ItemId>) -> Result<SessionInfo, Failure> {
        let session = id.clone();
        let info = self.0.commands.call(|reply| Command::Fork { session, until, id: None, reply }).await?;
        self.shown().entry(info.id.clone()).or_default();
        Ok(info)
    }

    pub(crate) async fn roll_back(
        &self,
        id: &SessionId,
        from: Option<ItemId>,
        scope: RollbackScope,
    ) -> Result<(), Failure> {
        self.load(id).await?;
        let session = id.clone();
        self.0.commands.call(|reply| Command::Rollback { session, from, scope, reply }).await
    }

    pub(crate) async fn theme(&self) -> String {
        let kept = self.0.options.store.get(PREFERENCES.0, &self.preferences_key()).await;
        kept.ok().flatten().unwrap_or_else(|| "auto".to_owned())
    }

    pub(crate) async fn set_theme(&self, theme: String) -> Result<(), Failure> {
        self.0.options.store.put(PREFERENCES.0, &self.preferences_key(), theme).await
    }

    /// Each account has its own.
    fn preferences_key(&self) -> String {
        match self.scope() {
            Some(scope) => format!("{}/{}", PREFERENCES.1, scope.caller.name),
            None => PREFERENCES.1.to_owned(),
        }
    }

    /// Leaves the chats that no page shows and in which nothing runs, so that other programs may hold them.
    async fn leave_unused(&self) {
        let unused: Vec<SessionId> =
            self.shown().iter().filter(|(_, pages)| **pages == 0).map(|(id, _)| id.clone()).collect();
        for id in unused {
            let session = id.clone();
            let loaded =
                self.0.commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await;
            if loaded.as_ref().is_ok_and(|info| info.busy) {
                continue;
            }
            // A page may have come meanwhile.
            let is_unused = {
                let mut shown = self.shown();
                let is_unused = shown.get(&id) == Some(&0);
                if is_unused {
                    shown.remove(&id);
                }
                is_unused
            };
            if is_unused {
                let session = id.clone();
                let _ = self.0.commands.call(|reply| Command::Close { session, reply }).await;
            }
        }
    }

    fn shown(&self) -> MutexGuard<'_, HashMap<SessionId, usize>> {
        self.0.shown.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(pages) = self.chats.shown().get_mut(&self.id) {
            *pages = pages.saturating_sub(1);
        }
        // An engine that cannot take it now finds the closed queue later.
        let _ = self.commands.try_send(Command::Detach);
    }
}

/// A person sits before the page and can be asked everything.
fn abilities() -> Abilities {
    Abilities {
        client: "web page".to_owned(),
        approvals: true,
        questions: true,
        forms: true,
        ..Abilities::default()
    }
}

/// A chat in a path, which has no escapes: its id where that is plain, else in base64.
pub(crate) fn key_of(id: &SessionId) -> String {
    let text = id.as_str();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':');
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("~{}", URL_SAFE_NO_PAD.encode(text))
    }
}

pub(crate) fn id_of(key: &str) -> Option<SessionId> {
    match key.strip_prefix('~') {
        None => Some(SessionId::new(key)),
        Some(encoded) => {
            let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
            String::from_utf8(bytes).ok().map(SessionId::new)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_stands_in_a_path() {
        for id in ["0198c2d4-aa", "chat", "", "a b", "a/../b", "ü%2f", "~x", "claude:1"] {
            let key = key_of(&SessionId::new(id));
            assert!(!key.contains(['/', '%', ' ', '.']) && !key.is_empty(), "{key}");
            assert_eq!(id_of(&key).as_ref().map(SessionId::as_str), Some(id));
        }
    }
}
