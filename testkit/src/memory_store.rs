//! A store in memory that several processes share: leases, kills and full disks without a disk.
//!
//! Invariants: like the real store, it numbers the facts of a session from 1 without gaps, and only the holder of the
//! lease appends; a killed process has no lease, and nothing it sends afterwards takes effect.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::store::{Lease, ListFilter, Preview, SearchHit, SearchQuery, SessionSummary, check_changeable};
use domain::{BoxFuture, Fact, Failure, ItemKind, Recorded, SessionId, Store};
use tokio::sync::Notify;

/// What a commit to disk takes.
const COMMIT: Duration = Duration::from_millis(1);

/// The store as one process sees it.
#[derive(Clone, Default)]
pub struct MemoryStore {
    data: Arc<Mutex<Data>>,
    process: u64,
    address: Arc<Mutex<Option<String>>>,
    risk: Arc<Risk>,
}

/// Whether the leases of all processes may end soon.
#[derive(Default)]
struct Risk {
    is_there: AtomicBool,
    changed: Notify,
}

#[derive(Default)]
struct Data {
    sessions: HashMap<SessionId, Vec<Recorded>>,
    leases: HashMap<SessionId, (u64, Option<String>)>,
    sums: HashMap<(String, String), f64>,
    values: HashMap<(String, String), String>,
    killed: HashSet<u64>,
    processes: u64,
    append_failure: Option<Failure>,
    /// What a commit takes, where it is not the usual time.
    commit: Option<Duration>,
    leases_end: bool,
    clock: u64,
    /// Groups of records that were inserted together.
    groups: usize,
}

impl MemoryStore {
    /// The same chats, seen by another process.
    pub fn other_process(&self) -> Self {
        let mut data = self.lock();
        data.processes += 1;
        let (process, address) = (data.processes, Arc::default());
        Self { data: self.data.clone(), process, address, risk: self.risk.clone() }
    }

    /// This process has the lease from now on, as after the lease of another one ended.
    pub fn take_over(&self, session: &SessionId) {
        self.lock().leases.insert(session.clone(), (self.process, self.address()));
    }

    /// The lease of a chat names another address.
    pub fn set_lease_address(&self, address: &str, session: &SessionId) {
        self.lock().leases.insert(session.clone(), (self.process, Some(address.to_owned())));
    }

    /// No lease can be renewed, or all can again.
    pub fn set_leases_at_risk(&self, are_at_risk: bool) {
        self.risk.is_there.store(are_at_risk, Ordering::SeqCst);
        self.risk.changed.notify_waiters();
    }

    /// This process dies now.
    pub fn kill(&self) {
        let mut data = self.lock();
        data.killed.insert(self.process);
        data.leases.retain(|_, (holder, _)| *holder != self.process);
    }

    /// Every append fails from now on; `None`: they work again.
    pub fn fail_appends(&self, failure: Option<Failure>) {
        self.lock().append_failure = failure;
    }

    /// How often several records were inserted together: each is one wait for a disk.
    pub fn count_of_groups(&self) -> usize {
        self.lock().groups
    }

    /// What a commit takes from now on.
    pub fn set_commit_time(&self, time: Duration) {
        self.lock().commit = Some(time);
    }

    /// The store is as one on another machine, whose leases end by time.
    pub fn set_leases_end(&self, do_end: bool) {
        self.lock().leases_end = do_end;
    }

    /// A fact gets into the journal past the lease, as a broken disk lock allows.
    pub fn intrude(&self, session: &SessionId, fact: Fact) {
        let mut data = self.lock();
        let known = data.sessions.entry(session.clone()).or_default();
        let number = known.len() as u64 + 1;
        known.push(Recorded { number, at: 0, fact });
    }

    pub fn facts(&self, session: &SessionId) -> Vec<Recorded> {
        self.lock().sessions.get(session).cloned().unwrap_or_default()
    }

    pub fn sessions(&self) -> Vec<SessionId> {
        self.lock().sessions.keys().cloned().collect()
    }

    pub fn holds_lease(&self, session: &SessionId) -> bool {
        self.lock().leases.get(session).is_some_and(|(holder, _)| *holder == self.process)
    }

    fn address(&self) -> Option<String> {
        self.address.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> Result<MutexGuard<'_, Data>, Failure> {
        let data = self.lock();
        if data.killed.contains(&self.process) {
            Err(Failure::internal("This process is dead."))
        } else {
            Ok(data)
        }
    }

    fn append_now(&self, session: &SessionId, facts: Vec<Fact>) -> Result<Vec<Recorded>, Failure> {
        let mut data = self.live()?;
        if let Some(failure) = &data.append_failure {
            return Err(failure.clone());
        }
        if data.leases.get(session).is_none_or(|(holder, _)| *holder != self.process) {
            return Err(Failure::internal("An append without the lease."));
        }
        let opens = matches!(facts.first(), Some(Fact::SessionOpened(_)));
        if !opens && !data.sessions.contains_key(session) {
            return Err(Failure::user(format!("There is no chat {session}.")));
        }
        data.clock += 1;
        let at = data.clock;
        let known = data.sessions.entry(session.clone()).or_default();
        let first = known.len() as u64 + 1;
        let recorded: Vec<Recorded> =
            (first..).zip(facts).map(|(number, fact)| Recorded { number, at, fact }).collect();
        known.extend(recorded.iter().cloned());
        Ok(recorded)
    }
}

impl Store for MemoryStore {
    fn lease<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Lease, Failure>> {
        Box::pin(async move {
            let mut data = self.live()?;
            let own = (self.process, self.address());
            let (holder, address) = data.leases.entry(session.clone()).or_insert(own).clone();
            if holder == self.process {
                return Ok(Lease::Held);
            }
            Ok(Lease::HeldBy { holder: format!("process {holder}"), address })
        })
    }

    fn announce(&self, address: &str) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address.to_owned());
    }

    fn release<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let mut data = self.live()?;
            if data.leases.get(session).is_some_and(|(holder, _)| *holder == self.process) {
                data.leases.remove(session);
            }
            Ok(())
        })
    }

    fn leases_end(&self) -> bool {
        self.lock().leases_end
    }

    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        facts: Vec<Fact>,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, Failure>> {
        Box::pin(async move {
            let commit = self.lock().commit.unwrap_or(COMMIT);
            tokio::time::sleep(commit).await;
            self.append_now(session, facts)
        })
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, Failure>> {
        Box::pin(async move {
            let data = self.live()?;
            let all = data.sessions.get(session).map(Vec::as_slice).unwrap_or_default();
            Ok(all.iter().filter(|recorded| recorded.number > after).take(limit).cloned().collect())
        })
    }

    fn preview<'a>(
        &'a self,
        session: &'a SessionId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Preview>, Failure>> {
        Box::pin(async move {
            let data = self.live()?;
            Ok(data.sessions.get(session).map(|all| {
                let facts = all[all.len().saturating_sub(limit)..].to_vec();
                Preview { title: summary(session, all).title, facts }
            }))
        })
    }

    fn newest<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<u64>, Failure>> {
        Box::pin(async move { Ok(self.live()?.sessions.get(session).map(|all| all.len() as u64)) })
    }

    fn list(&self, filter: ListFilter) -> BoxFuture<'_, Result<Vec<SessionSummary>, Failure>> {
        Box::pin(async move {
            let data = self.live()?;
            let mut all: Vec<_> = data.sessions.iter().map(|(id, facts)| summary(id, facts)).collect();
            all.sort_by_key(|chat| std::cmp::Reverse(chat.updated_at));
            let limit = filter.limit.unwrap_or(usize::MAX);
            if let Some(after) = &filter.after {
                let position = all.iter().position(|chat| chat.id == after.id).unwrap_or(all.len());
                all.drain(..all.len().min(position + 1));
            }
            Ok(all.into_iter().take(limit).collect())
        })
    }

    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<Vec<SearchHit>, Failure>> {
        Box::pin(async move {
            let data = self.live()?;
            let said = |fact: &Fact| match fact {
                Fact::ItemEnded { item } => match &item.kind {
                    ItemKind::UserMessage { text, .. } | ItemKind::AgentMessage { text, .. } => {
                        Some(text.clone())
                    }
                    _ => None,
                },
                _ => None,
            };
            let hits = data.sessions.iter().filter_map(|(id, facts)| {
                let mut texts = facts.iter().filter_map(|recorded| said(&recorded.fact));
                let excerpt = texts.find(|text| text.contains(&query.text))?;
                Some(SearchHit { chat: summary(id, facts), excerpt })
            });
            Ok(hits.take(query.limit.unwrap_or(usize::MAX)).collect())
        })
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move { Ok(self.live()?.sessions.remove(session).is_some()) })
    }

    fn get<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<String>, Failure>> {
        Box::pin(async move { Ok(self.live()?.values.get(&(kind.to_owned(), key.to_owned())).cloned()) })
    }

    fn add<'a>(&'a self, kind: &'a str, key: &'a str, amount: f64) -> BoxFuture<'a, Result<f64, Failure>> {
        Box::pin(async move {
            let mut data = self.live()?;
            let sum = data.sums.entry((kind.to_owned(), key.to_owned())).or_default();
            *sum += amount;
            Ok(*sum)
        })
    }

    fn put<'a>(&'a self, kind: &'a str, key: &'a str, value: String) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            check_changeable(kind)?;
            self.live()?.values.insert((kind.to_owned(), key.to_owned()), value);
            Ok(())
        })
    }

    fn insert<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: String,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move {
            let mut data = self.live()?;
            let place = (kind.to_owned(), key.to_owned());
            let is_new = !data.values.contains_key(&place);
            if is_new {
                data.values.insert(place, value);
            }
            Ok(is_new)
        })
    }

    fn insert_all<'a>(
        &'a self,
        kind: &'a str,
        records: Vec<(String, String)>,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move {
            // Others have their turn meanwhile, as with a disk.
            tokio::task::yield_now().await;
            let mut data = self.live()?;
            data.groups += 1;
            let place = |key: &String| (kind.to_owned(), key.clone());
            if records.iter().any(|(key, _)| data.values.contains_key(&place(key))) {
                return Ok(false);
            }
            for (key, value) in records {
                data.values.insert(place(&key), value);
            }
            Ok(true)
        })
    }

    fn remove<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move {
            check_changeable(kind)?;
            Ok(self.live()?.values.remove(&(kind.to_owned(), key.to_owned())).is_some())
        })
    }

    fn records<'a>(
        &'a self,
        kind: &'a str,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, Failure>> {
        Box::pin(async move {
            let data = self.live()?;
            let of_kind =
                data.values.iter().filter(|((known, key), _)| known == kind && key.as_str() > after);
            let mut found: Vec<_> = of_kind.map(|((_, key), value)| (key.clone(), value.clone())).collect();
            found.sort();
            found.truncate(limit);
            Ok(found)
        })
    }

    fn last_record<'a>(&'a self, kind: &'a str) -> BoxFuture<'a, Result<Option<(String, String)>, Failure>> {
        Box::pin(async move { Ok(self.records(kind, "", usize::MAX).await?.pop()) })
    }

    fn lease_at_risk<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async {
            loop {
                let changed = self.risk.changed.notified();
                if self.risk.is_there.load(Ordering::SeqCst) {
                    return;
                }
                changed.await;
            }
        })
    }
}

fn summary(id: &SessionId, facts: &[Recorded]) -> SessionSummary {
    let mut summary = SessionSummary {
        id: id.clone(),
        title: None,
        model: None,
        workspace: Vec::new(),
        parent: None,
        created_at: facts.first().map_or(0, |first| first.at),
        updated_at: facts.last().map_or(0, |last| last.at),
        message_count: 0,
        newest: facts.len() as u64,
    };
    for recorded in facts {
        match &recorded.fact {
            Fact::SessionOpened(opened) => {
                summary.workspace = opened.workspace.clone();
                summary.parent = opened.parent.clone();
                summary.title = opened.settings.title.clone();
            }
            Fact::SessionChanged { change } => summary.title = change.title.clone().or(summary.title),
            Fact::ItemEnded { item } => {
                let is_message =
                    matches!(item.kind, ItemKind::UserMessage { .. } | ItemKind::AgentMessage { .. });
                summary.message_count += u64::from(is_message);
            }
            _ => {}
        }
    }
    summary
}
