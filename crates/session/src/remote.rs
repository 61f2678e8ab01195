//! A chat that another process holds: commands go to the holder, its events come here, and when it is gone this process
//! may hold the chat.
//!
//! Must not know sockets. Invariants: the journal is read from the store, events only say that it grew; a command is
//! carried to one holder and never sent again; a process that takes over runs nothing until somebody prompts.

use std::time::Duration;

use domain::event::{EventBody, Fact, Level, Notice};
use domain::queue::Received;
use domain::{Abilities, Command, Event, Failure, FailureKind, RemoteChat};

use super::actor_data::{Actor, LeaseState};
use crate::attached_frontend::AttachedFrontend;
use crate::refusal::refuse;
use crate::work::SessionWork;

/// The holder answers at once, or it is busy dying.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(1);
/// The lock of a process that died may outlive its connections for a moment.
const TAKE_OVER_PAUSES: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(50)];

/// The next event of the holder; never resolves where there is no link to one.
pub(super) async fn remote_event(remote: &mut Option<RemoteChat>) -> Received {
    match remote {
        Some(remote) => remote.link.events.recv().await,
        None => std::future::pending().await,
    }
}

impl<S: SessionWork> Actor<S> {
    /// A front-end joins the audience.
    pub(super) fn welcome(&mut self, frontend: &AttachedFrontend) {
        if self.session.audience.add(frontend.id, &frontend.events, &frontend.abilities)
            && frontend.abilities.remote
        {
            self.visitors.retain(|visitor| !visitor.is_closed());
            self.visitors.push(frontend.events.clone());
        }
        if !frontend.abilities.remote {
            self.abilities = Some(frontend.abilities.clone());
        }
    }

    /// Makes a link to the holder, where it lets other processes attach.
    pub(super) async fn attach(&mut self) {
        let (Some(peers), LeaseState::HeldBy { address: Some(address), holder }) = (&self.peers, &self.lease)
        else {
            return;
        };
        // What a person here may be asked; what is allowed without asking is the holder's to say.
        let known = self.abilities.clone().unwrap_or_default();
        let Abilities { client, approvals, questions, forms, proposes_changes, subagents, .. } = known;
        let abilities = Abilities {
            client,
            approvals,
            questions,
            forms,
            proposes_changes,
            subagents,
            remote: true,
            ..Abilities::default()
        };
        let attached = peers.attach(address, &self.session.id, abilities);
        let attached = tokio::time::timeout(ATTACH_TIMEOUT, attached).await;
        let late =
            |_| Failure::taken(format!("The Dragoman that holds this chat ({holder}) does not answer."));
        match attached.map_err(late).and_then(|attached| attached) {
            Ok(remote) => {
                self.remote = Some(remote);
                (self.wants_remote, self.unattached) = (false, None);
                // What was written between the last look and the link.
                if let Err(failure) = self.read_on().await {
                    tracing::warn!(session = %self.session.id, %failure, "the journal cannot be read");
                }
            }
            Err(failure) => {
                tracing::info!(session = %self.session.id, %failure, "the holder of a chat cannot be reached");
                // Another version and a refusal stay what they are.
                self.wants_remote = failure.kind == FailureKind::Taken;
                self.unattached = Some(failure);
            }
        }
    }

    /// Hands a command to the holder, where another process is it; gives back what is handled here.
    #[allow(clippy::wildcard_enum_match_arm, reason = "every other command is handled here")]
    pub(super) async fn forward(&mut self, command: Command) -> Option<Command> {
        let is_prompt = match command {
            Command::Prompt { .. }
            | Command::Configure { .. }
            | Command::Rollback { .. }
            | Command::Flag { .. }
            | Command::Steer { .. } => true,
            Command::Cancel { .. } | Command::CancelCall { .. } | Command::Answer { .. } => false,
            // The agent works where the chat is held.
            Command::Agent { .. } if matches!(self.lease, LeaseState::HeldBy { .. }) => {
                let failure = Failure::taken("Another Dragoman holds this chat, and its agent runs there.");
                refuse(command, failure);
                return None;
            }
            _ => return Some(command),
        };
        if self.remote.as_ref().is_some_and(|remote| remote.link.commands.is_closed()) {
            self.handle_remote(Received::Closed).await;
        }
        // A stop or an answer that finds no link would be lost without a word.
        let looks = is_prompt || self.wants_remote;
        if looks && self.remote.is_none() && matches!(self.lease, LeaseState::HeldBy { .. }) {
            // It may be free by now, or reachable. What is wrong is told by the command itself.
            let _ = self.find_holder().await;
        }
        let Some(remote) = &self.remote else { return Some(command) };
        if let Err(command) = remote.link.commands.try_send(command) {
            let failure = Failure::taken(format!(
                "The Dragoman that holds this chat ({}) does not answer.",
                remote.holder
            ));
            refuse(*command, failure.hint("Try again."));
        }
        None
    }

    /// Takes in what the holder published.
    pub(super) async fn handle_remote(&mut self, received: Received) {
        match received {
            Received::Event(Event { body: EventBody::Fact(recorded), .. }) => {
                let newest = self.session.state().newest();
                if recorded.number == newest + 1 {
                    self.updated_at = recorded.at;
                    self.session.log.adopt(std::slice::from_ref(&recorded));
                    self.session.audience.publish(Event::fact(self.session.id.clone(), recorded));
                } else if recorded.number > newest {
                    self.follow().await;
                }
            }
            Received::Event(Event { body, .. }) => {
                self.session.audience.publish(Event { session: Some(self.session.id.clone()), body });
            }
            Received::Lagged => self.follow().await,
            Received::Closed => {
                let Some(lost) = self.remote.take() else { return };
                self.wants_remote = true;
                if let Err(failure) = self.look_for_holder(&lost).await {
                    tracing::warn!(session = %self.session.id, %failure, "the chat has no holder");
                }
            }
        }
    }

    async fn look_for_holder(&mut self, lost: &RemoteChat) -> Result<(), Failure> {
        for pause in TAKE_OVER_PAUSES {
            tokio::time::sleep(pause).await;
            self.find_holder().await?;
            if self.lease == LeaseState::Held {
                tracing::info!(session = %self.session.id, holder = lost.holder, "this process holds the chat now");
                return Ok(());
            }
            if self.remote.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Attaches to the holder, or becomes it: what the last one left open ends as interrupted.
    pub(super) async fn find_holder(&mut self) -> Result<(), Failure> {
        self.recover().await?;
        if self.lease == LeaseState::Held && std::mem::take(&mut self.wants_remote) {
            self.unattached = None;
            let me = self.peers.as_ref().map(|peers| peers.name()).unwrap_or_default();
            let text = format!(
                "The Dragoman that held this chat has ended. {me} holds it now: its settings, keys and rules count. \
                 Nothing goes on until somebody sends a prompt."
            );
            let notice = Notice { level: Level::Info, text };
            self.session.commit(vec![Fact::Notice { notice }]);
        }
        Ok(())
    }
}
