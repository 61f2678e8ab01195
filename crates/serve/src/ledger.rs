//! What accounts have spent: sums in the store, and a watcher for each chat in which an account's turn runs.
//!
//! Must not know HTTP. Invariants: sums survive the process; a turn is paid by the account that began it, and each of its
//! calls once: by the reservation where this process makes the call, else by the watcher; a chat whose turn runs is kept open,
//! whether its client stays or not.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use domain::command::WorkspaceSpec;
use domain::link::Engine;
use domain::spending::{Gate, Payer, Reservation};
use domain::{
    Abilities, BoxFuture, Command, EventBody, Fact, Failure, FailureKind, Follower, SessionId, Store,
};

use crate::audit::{Act, Audit};
use crate::caller::Caller;
use crate::policy::{least, over_budget};
use crate::reservations::Reservations;

/// US dollars by account.
const SPENT: &str = "serve.spent";
/// US dollars of all accounts.
const TEAM: (&str, &str) = ("serve.team", "spent");
/// The balance of all accounts; no account has this name.
const TEAM_ACCOUNT: &str = "";
/// All accounts, in a sentence.
const SERVER: &str = "This server";
/// How long a call waits for other calls of its account.
const RESERVE_DEADLINE: std::time::Duration = std::time::Duration::from_secs(600);
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
    reservations: Reservations,
}

#[derive(Clone)]
struct Watched {
    /// The account that pays the next turn.
    payer: String,
    /// Counts up with each prompt, so that the end of a turn does not end the watch over the next one.
    prompts: u64,
    /// The calls of this chat are made by this process, which charges them itself.
    is_charged: bool,
}

/// An account that pays for calls.
struct Account {
    ledger: Ledger,
    name: String,
    budget: Option<f64>,
    chat: Option<SessionId>,
}

impl Payer for Account {
    fn reserve(&self, most: Option<f64>) -> BoxFuture<'_, Result<Reservation, Failure>> {
        Box::pin(async move {
            if let Some(chat) = &self.chat
                && let Some(watched) = self.ledger.watched().get_mut(chat)
            {
                watched.is_charged = true;
            }
            self.ledger.reserve(self, most).await
        })
    }
}

impl Ledger {
    pub(crate) fn new(engine: Engine, store: Arc<dyn Store>, audit: Audit, team_budget: Option<f64>) -> Self {
        Self(Arc::new(Shared {
            engine,
            store,
            audit,
            team_budget,
            watched: Mutex::default(),
            reservations: Reservations::default(),
        }))
    }

    /// What an account has spent, in US dollars.
    pub async fn spent(&self, name: &str) -> Result<f64, Failure> {
        let stored = spent(self.0.store.as_ref(), name).await?;
        Ok(self.0.reservations.spent(name, stored))
    }

    async fn team_spent(&self) -> Result<f64, Failure> {
        let stored = self.0.store.add(TEAM.0, TEAM.1, 0.0).await?;
        Ok(self.0.reservations.spent(TEAM_ACCOUNT, stored))
    }

    /// The payer of the caller's turns in a chat, or of a call beside all chats.
    pub(crate) fn gate(&self, caller: &Caller, chat: Option<SessionId>) -> Gate {
        let (name, budget) = (caller.name.clone(), caller.budget);
        Gate::new(Arc::new(Account { ledger: self.clone(), name, budget, chat }))
    }

    /// Parallel calls are let through while the most that they can cost fits into each budget; near its end one at a time.
    async fn reserve(&self, account: &Account, most: Option<f64>) -> Result<Reservation, Failure> {
        let budgets = [(account.name.as_str(), account.budget), (TEAM_ACCOUNT, self.0.team_budget)];
        if most.is_none() && budgets.iter().any(|(_, budget)| budget.is_some()) {
            return Err(Failure::user("A model without a known price cannot be used with a budget.")
                .hint("Choose another model."));
        }
        let amount = most.unwrap_or(0.0);
        let late = tokio::time::Instant::now() + RESERVE_DEADLINE;
        loop {
            let changed = self.0.reservations.changed();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if account.budget.is_some() {
                rest(&account.name, self.spent(&account.name).await?, account.budget)?;
            }
            if self.0.team_budget.is_some() {
                rest(SERVER, self.team_spent().await?, self.0.team_budget)?;
            }
            if self.0.reservations.take(&budgets, amount) {
                break;
            }
            if tokio::time::timeout_at(late, changed).await.is_err() {
                return Err(Failure::new(
                    FailureKind::Quota,
                    "Other requests use what is left of the budget, and they do not end.",
                )
                .hint("Stop them, or try again later."));
            }
        }
        let (ledger, name) = (self.clone(), account.name.clone());
        Ok(Reservation::new(move |cost| ledger.settle(name, amount, cost)))
    }

    /// The sums of this process change at once, those of the store soon after.
    fn settle(&self, name: String, amount: f64, cost: f64) {
        let cost = if cost.is_finite() && cost > 0.0 { cost } else { 0.0 };
        self.0.reservations.give_back(&[name.as_str(), TEAM_ACCOUNT], amount, cost);
        if cost > 0.0
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let ledger = self.clone();
            runtime.spawn(async move { ledger.charge(&name, cost).await });
        }
    }

    /// What the caller may still spend; fails where nothing is left. `None`: there is no budget.
    pub(crate) async fn check(&self, caller: &Caller) -> Result<Option<f64>, Failure> {
        let mut left = None;
        if let Some(budget) = caller.budget {
            left = rest(&caller.name, self.spent(&caller.name).await?, Some(budget))?;
        }
        if self.0.team_budget.is_some() {
            left = least(left, rest(SERVER, self.team_spent().await?, self.0.team_budget)?);
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
            let known = watched.get(chat);
            let prompts = known.map_or(0, |known| known.prompts) + 1;
            let is_charged = known.is_some_and(|known| known.is_charged);
            let payer = name.to_owned();
            if watched.insert(chat.clone(), Watched { payer, prompts, is_charged }).is_some() {
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
                    if let Some(payer) = &payer
                        && !self.is_charged(chat)
                    {
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

    fn is_charged(&self, chat: &SessionId) -> bool {
        self.watched().get(chat).is_some_and(|known| known.is_charged)
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

fn rest(who: &str, spent: f64, budget: Option<f64>) -> Result<Option<f64>, Failure> {
    match budget {
        Some(budget) if spent >= budget => Err(over_budget(who, spent, budget)),
        budget => Ok(budget.map(|budget| budget - spent)),
    }
}
