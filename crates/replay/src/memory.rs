//! The store of a replay: the facts of one chat, in memory, with processes that can die.
//!
//! Must not know what facts mean, except the end of a turn. Invariant: a process that has died writes nothing more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::store::{Lease, ListFilter, Preview, SearchHit, SearchQuery, SessionSummary};
use domain::{BoxFuture, Fact, Failure, Recorded, SessionId, Store};

/// The store as one process of the replay sees it.
#[derive(Clone, Default)]
pub(super) struct Memory {
    data: Arc<Mutex<Data>>,
    process: u64,
}

#[derive(Default)]
struct Data {
    facts: Vec<Recorded>,
    /// Processes with a smaller number have died.
    living: u64,
    dies_at_turn_end: bool,
}

impl Memory {
    /// The same facts, seen by the next process. The one before it is dead.
    pub(super) fn next_process(&self) -> Self {
        let mut data = self.lock();
        data.living += 1;
        data.dies_at_turn_end = false;
        Self { data: self.data.clone(), process: data.living }
    }

    /// The process dies when it is about to write the end of a turn.
    pub(super) fn die_at_turn_end(&self) {
        self.lock().dies_at_turn_end = true;
    }

    pub(super) fn is_dead(&self) -> bool {
        self.process < self.lock().living
    }

    /// Adds facts without an engine.
    pub(super) fn adopt(&self, facts: impl IntoIterator<Item = Fact>) {
        self.lock().push(facts);
    }

    pub(super) fn len(&self) -> usize {
        self.lock().facts.len()
    }

    pub(super) fn facts(&self) -> Vec<Recorded> {
        self.facts_from(0)
    }

    pub(super) fn facts_from(&self, start: usize) -> Vec<Recorded> {
        self.lock().facts.iter().skip(start).cloned().collect()
    }

    /// Whether one of the facts from `start` on fits.
    pub(super) fn has(&self, start: usize, fits: impl Fn(&Fact) -> bool) -> bool {
        self.lock().facts.iter().skip(start).any(|recorded| fits(&recorded.fact))
    }

    fn lock(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_now(&self, mut facts: Vec<Fact>) -> Result<Vec<Recorded>, Failure> {
        let dead = || Failure::internal("This process is dead.");
        let mut data = self.lock();
        if self.process < data.living {
            return Err(dead());
        }
        let end = facts.iter().position(|fact| matches!(fact, Fact::TurnEnded { .. }));
        if let Some(end) = end.filter(|_| data.dies_at_turn_end) {
            facts.truncate(end);
            data.push(facts);
            data.living += 1;
            return Err(dead());
        }
        Ok(data.push(facts))
    }
}

impl Data {
    fn push(&mut self, facts: impl IntoIterator<Item = Fact>) -> Vec<Recorded> {
        let first = self.facts.len() as u64 + 1;
        let added: Vec<Recorded> =
            (first..).zip(facts).map(|(number, fact)| Recorded { number, at: 0, fact }).collect();
        self.facts.extend(added.iter().cloned());
        added
    }
}

impl Store for Memory {
    fn lease<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<Lease, Failure>> {
        Box::pin(async { Ok(Lease::Held) })
    }

    fn release<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    fn append<'a>(
        &'a self,
        _: &'a SessionId,
        facts: Vec<Fact>,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, Failure>> {
        Box::pin(async move { self.append_now(facts) })
    }

    fn read<'a>(
        &'a self,
        _: &'a SessionId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, Failure>> {
        Box::pin(async move {
            let after = usize::try_from(after).unwrap_or(usize::MAX);
            Ok(self.lock().facts.iter().skip(after).take(limit).cloned().collect())
        })
    }

    fn preview<'a>(
        &'a self,
        _: &'a SessionId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Preview>, Failure>> {
        Box::pin(async move {
            let facts = &self.lock().facts;
            let facts = facts[facts.len().saturating_sub(limit)..].to_vec();
            Ok(Some(Preview { title: None, facts }))
        })
    }

    fn newest<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<Option<u64>, Failure>> {
        Box::pin(async { Ok(Some(self.len() as u64)) })
    }

    fn list(&self, _: ListFilter) -> BoxFuture<'_, Result<Vec<SessionSummary>, Failure>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn search(&self, _: SearchQuery) -> BoxFuture<'_, Result<Vec<SearchHit>, Failure>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn delete<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async { Ok(false) })
    }

    fn get<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Option<String>, Failure>> {
        Box::pin(async { Ok(None) })
    }

    fn add<'a>(&'a self, _: &'a str, _: &'a str, amount: f64) -> BoxFuture<'a, Result<f64, Failure>> {
        Box::pin(async move { Ok(amount) })
    }

    fn put<'a>(&'a self, _: &'a str, _: &'a str, _: String) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }
}
