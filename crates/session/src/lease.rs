//! The right to write a chat: taken when it is free, kept until the chat closes; a chat of another process is followed.
//!
//! Invariants: only the holder of the store's lease commits; what a dead holder left open is ended before anything new
//! is committed; after the journal failed, nothing is committed before the state is that of the store again.

use std::sync::Arc;
use std::time::Duration;

use domain::store::Lease;
use domain::{Event, Failure, Outcome};
use futures_util::FutureExt;
use tokio::time::Instant;

use super::actor_data::{Actor, LeaseState};
use super::log::Journal;
use super::{PAGE, SessionCore, load};
use crate::work::SessionWork;

/// How often a chat that another process writes is looked at.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(400);

/// How often a lease at risk is looked at.
const RISK_INTERVAL: Duration = Duration::from_millis(500);

impl<S: SessionWork> Actor<S> {
    /// Makes sure that this process may commit.
    pub(crate) async fn ensure_writable(&mut self) -> Result<(), Failure> {
        self.recover().await?;
        match &self.lease {
            LeaseState::HeldBy { holder, .. } => match &self.unattached {
                // It says what to do: restart a program of another version for instance.
                Some(failure) => Err(Failure::taken(failure.to_string())),
                None => Err(taken(holder).hint("Close it there, or fork the chat to go on here.")),
            },
            LeaseState::Held | LeaseState::Unknown => Ok(()),
        }
    }

    /// Takes the lease where it is free, reads what another process wrote, and ends what a dead one left open.
    pub(crate) async fn recover(&mut self) -> Result<(), Failure> {
        if self.remote.is_some() {
            return Ok(());
        }
        // A store on another machine may have given it to another process, after this one slept for instance.
        let is_safe = self.lease == LeaseState::Held && (self.is_busy() || !is_at_risk(&self.session));
        if is_safe || self.session.log.failure().is_some() {
            return self.recover_journal().await;
        }
        self.take_lease().await?;
        self.read_on().await?;
        if self.lease != LeaseState::Held {
            self.attach().await;
            return Ok(());
        }
        self.session.commit_with(|state| state.closing_facts(Outcome::Interrupted)).on_disk().await?;
        self.session.finish_interrupted().await;
        Ok(())
    }

    /// Goes on from what the store holds where the journal failed.
    async fn recover_journal(&mut self) -> Result<(), Failure> {
        if self.is_busy() || self.session.log.failure().is_none() {
            return Ok(());
        }
        // The store may have given the lease to another process meanwhile.
        self.take_lease().await?;
        let session = &self.session;
        let loaded = load(session.store.as_ref(), &session.id).await?;
        if loaded.state.newest() == 0 {
            return Err(Failure::internal("This chat could not be stored.").hint("Begin a new chat."));
        }
        let (id, store, audience) = (session.id.clone(), session.store.clone(), session.audience.clone());
        let journal = Journal::start(id, store, audience, loaded.state.newest());
        session.log.restart(loaded.state, journal);
        if self.lease == LeaseState::Held {
            session.commit_with(|state| state.closing_facts(Outcome::Interrupted));
        }
        Ok(())
    }

    pub(crate) async fn take_lease(&mut self) -> Result<(), Failure> {
        // Before the lease is there: its reader attaches at once.
        if let Some(address) = self.peers.as_ref().and_then(|peers| peers.listen()) {
            self.session.store.announce(&address);
        }
        self.lease = match self.session.store.lease(&self.session.id).await? {
            Lease::Held => LeaseState::Held,
            Lease::HeldBy { holder, address } => LeaseState::HeldBy { holder, address },
        };
        if self.session.store.leases_end()
            && self.lease == LeaseState::Held
            && !std::mem::replace(&mut self.is_guarded, true)
        {
            tokio::spawn(guard_programs(self.session.clone()));
        }
        Ok(())
    }

    pub(crate) fn is_follower(&self) -> bool {
        matches!(self.lease, LeaseState::HeldBy { .. })
            && self.remote.is_none()
            && !self.session.audience.is_empty()
    }

    /// Publishes what another process wrote.
    pub(crate) async fn follow(&mut self) {
        let read = if self.wants_remote { self.find_holder().await } else { self.read_on().await };
        if let Err(failure) = read {
            tracing::warn!(session = %self.session.id, %failure, "the journal cannot be read");
        }
        self.next_look = Instant::now() + FOLLOW_INTERVAL;
    }

    pub(super) async fn read_on(&mut self) -> Result<(), Failure> {
        let session = &self.session;
        loop {
            let newest = session.state().newest();
            let page = session.store.read(&session.id, newest, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            self.updated_at = last.at;
            session.log.adopt(&page);
            for recorded in page {
                session.audience.publish(Event::fact(session.id.clone(), Arc::new(recorded)));
            }
        }
    }
}

/// Ends the programs of a chat before its lease may end, and starts its servers again when the lease is safe. The calls of
/// a turn end by themselves.
async fn guard_programs<S: SessionWork>(session: Arc<S>) {
    loop {
        tokio::select! {
            () = session.closed.cancelled() => return,
            () = session.store.lease_at_risk(&session.id) => {}
        }
        tracing::warn!(session = %session.id, "the lease of a chat may end; its programs are stopped");
        let mut is_suspended = false;
        while is_at_risk(&session) {
            session.stop_jobs().await;
            if !std::mem::replace(&mut is_suspended, true) {
                session.suspend_programs().await;
            }
            tokio::select! {
                () = session.closed.cancelled() => return,
                () = tokio::time::sleep(RISK_INTERVAL) => {}
            }
        }
        session.resume_programs();
    }
}

/// Whether another process may hold the lease of a session soon, or holds it already.
pub fn is_at_risk(session: &SessionCore) -> bool {
    session.store.lease_at_risk(&session.id).now_or_never().is_some()
}

/// Waits until another process may have written: the store wakes, or it is time for the next look. That time is the caller's:
/// one that is begun again with each command would never come in a window that is used.
pub(crate) async fn next_change(session: &SessionCore, next_look: Instant) {
    let _ = tokio::time::timeout_at(next_look, session.store.changed(&session.id)).await;
}

/// Another process has what is asked for.
pub(crate) fn taken(holder: &str) -> Failure {
    Failure::taken(format!("Another Dragoman writes this chat now: {holder}."))
}
