//! What accounts have spent: sums in the store, and a watcher for each chat in which an account's turn runs.
//!
//! Must not know HTTP. Invariants: sums survive the process; a turn is paid by the account that began it; a chat whose turn
//! runs is kept open, whether its client stays or not.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use domain::command::WorkspaceSpec;
use domain::link::Engine;
use domain::{Abilities, Command, EventBody, Fact, Failure, Follower, SessionId, Store};

use crate::audit::{Act, Audit};
use crate::caller::Caller;
use crate::guard::over_budget;

/// US dollars by account.
const SPENT: &str = "serve.spent";
/// US dollars of all accounts.
const TEAM: (&str, &str) = ("serve.team", "spent");
/// A prompt that begins no turn within this time is forgotten.
const TURN_DEADLINE: std::time::Duration = std::time::Duration::from_secs(120);

/// Cheap to clone.
#[derive(Clone)]
pub struct Ledger(Arc<Shared>);

struct Shared {
    engine: Engine,
    store: Arc<dyn Store>,
    audit: Audit,
    team_budget: Option<f64>,
    /// The chats that are watched.
    watched: Mutex<HashMap<SessionId, Watched>>,
}

#[derive(Clone)]
struct Watched {
    /// The account that pays the next turn.
    payer: String,
    /// Counts up with each prompt, so that the end of a turn does not end the watch over the next one.
    prompts: u64,
}

impl Ledger {
    pub(crate) fn new(engine: Engine, store: Arc<dyn Store>, audit: Audit, team_budget: Option<f64>) -> Self {
        Self(Arc::new(Shared { engine, store, audit, team_budget, watched: Mutex::default() }))
    }

    /// What an account has spent, in US dollars.
    pub async fn spent(&self, name: &str) -> Result<f64, Failure> {
        spent(self.0.store.as_ref(), name).await
    }

    /// What the caller may still spend; fails where nothing is left. `None`: there is no budget.
    pub(crate) async fn check(&self, caller: &Caller) -> Result<Option<f64>, Failure> {
        let mut left = None;
        if let Some(budget) = caller.budget {
            left = Some(rest(&caller.name, self.spent(&caller.name).await?, budget)?);
        }
        if let Some(budget) = self.0.team_budget {
            let spent = self.0.store.add(TEAM.0, TEAM.1, 0.0).await?;
            let rest = rest("This server", spent, budget)?;
            left = Some(left.map_or(rest, |left: f64| left.min(rest)));
        }
        Ok(left)
    }

    pub(crate) async fn charge(&self, name: &str, cost: f64) {
        if !cost.is_finite() || cost <= 0.0 {
            return;
        }
        for (kind, key) in [(SPENT, name), TEAM] {
            if let Err(failure) = self.0.store.add(kind, key, cost).await {
                tracing::error!(%failure, "what an account spent could not be recorded");
            }
        }
    }

    /// The next turn of this chat is paid by `name`. Returns when it is watched.
    pub(crate) async fn watch(
        &self,
        name: &str,
        chat: &SessionId,
        folders: Vec<PathBuf>,
    ) -> Result<(), Failure> {
        {
            let mut watched = self.watched();
            let prompts = watched.get(chat).map_or(0, |known| known.prompts) + 1;
            if watched.insert(chat.clone(), Watched { payer: name.to_owned(), prompts }).is_some() {
                return Ok(());
            }
        }
        let watched = self.start(name, chat, folders).await;
        if watched.is_err() {
            self.watched().remove(chat);
        }
        watched
    }

    async fn start(&self, name: &str, chat: &SessionId, folders: Vec<PathBuf>) -> Result<(), Failure> {
        let abilities = Abilities { client: format!("{name} (server)"), ..Abilities::default() };
        let link = self.0.engine.attach(abilities).await?;
        let commands = link.commands.clone();
        let workspace = WorkspaceSpec { roots: folders, options: None };
        commands.call(|reply| Command::Enter { workspace, reply }).await?;
        let session = chat.clone();
        let info = commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await?;
        let mut follower = Follower::new(commands.clone(), link.events);
        follower.follow(chat.clone(), info.newest);
        let (ledger, chat) = (self.clone(), chat.clone());
        let before = info.usage.session_cost.unwrap_or(0.0);
        tokio::spawn(async move {
            let _host = link.host;
            ledger.follow(&chat, follower, before, info.busy).await;
            let session = chat.clone();
            let _ = commands.call(|reply| Command::Close { session, reply }).await;
            let _ = commands.send(Command::Detach).await;
        });
        Ok(())
    }

    /// Until a turn has ended and no other prompt is under way.
    #[allow(clippy::wildcard_enum_match_arm, reason = "other facts cost nothing")]
    async fn follow(&self, chat: &SessionId, mut follower: Follower, mut before: f64, mut busy: bool) {
        let (mut payer, mut prompts) = self.payer(chat);
        loop {
            let event = if busy {
                follower.next().await
            } else {
                // The prompt may have been refused: then no turn begins.
                tokio::time::timeout(TURN_DEADLINE, follower.next()).await.unwrap_or(None)
            };
            let Some(event) = event else { return drop(self.watched().remove(chat)) };
            let EventBody::Fact(recorded) = &event.body else { continue };
            match &recorded.fact {
                Fact::TurnStarted { turn, .. } => {
                    busy = true;
                    (payer, prompts) = self.payer(chat);
                    let (who, detail) = (payer.as_deref().unwrap_or_default(), turn.to_string());
                    let act = Act { who, action: "turn", chat: Some(chat.as_str()), detail: Some(&detail) };
                    if let Err(failure) = self.0.audit.write(act).await {
                        tracing::error!(%failure, "a turn could not be written to the audit log");
                    }
                }
                Fact::UsageChanged { usage } => {
                    let now = usage.session_cost.unwrap_or(0.0);
                    if let Some(payer) = &payer {
                        self.charge(payer, now - before).await;
                    }
                    before = now;
                }
                Fact::TurnEnded { .. } if self.forget(chat, prompts) => return,
                Fact::TurnEnded { .. } => busy = false,
                _ => {}
            }
        }
    }

    fn payer(&self, chat: &SessionId) -> (Option<String>, u64) {
        let watched = self.watched();
        let known = watched.get(chat);
        (known.map(|known| known.payer.clone()), known.map_or(0, |known| known.prompts))
    }

    /// Ends the watch, unless another prompt came.
    fn forget(&self, chat: &SessionId, prompts: u64) -> bool {
        let mut watched = self.watched();
        let is_last = watched.get(chat).is_none_or(|known| known.prompts == prompts);
        if is_last {
            watched.remove(chat);
        }
        is_last
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<SessionId, Watched>> {
        self.0.watched.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// What an account has spent, in US dollars.
pub async fn spent(store: &dyn Store, name: &str) -> Result<f64, Failure> {
    store.add(SPENT, name, 0.0).await
}

fn rest(who: &str, spent: f64, budget: f64) -> Result<f64, Failure> {
    if spent >= budget { Err(over_budget(who, spent, budget)) } else { Ok(budget - spent) }
}
