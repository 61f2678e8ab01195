//! A front-end whose one task does everything: what it began comes back to it, and what happens comes one at a time.
//!
//! It must not know who the front-end speaks with: what that side says is a message of any type. Invariants: results
//! come before messages and events, so that the response to a command leaves before the events the command causes;
//! messages come as they were sent; events come only while that side reads.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;

use crate::BoxFuture;
use crate::command::{Command, Reply, reply};
use crate::event::Event;
use crate::failure::{Failure, FailureKind};
use crate::host::{Abilities, HostRequest};
use crate::ids::SessionId;
use crate::link::{Commands, Engine, Follower};

/// What to do with a result, on the task of the front-end `S`.
pub type Then<S> = Box<dyn FnOnce(&mut S) + Send>;

/// Work that runs beside what else the task of a front-end does.
pub struct Pending<S>(FuturesUnordered<BoxFuture<'static, Then<S>>>);

/// The engine, as a front-end `S` holds it.
pub struct FrontendLink<S> {
    engine: Engine,
    link: Option<Attached>,
    pub pending: Pending<S>,
}

/// There from the front-end's first `attach` on.
struct Attached {
    commands: Commands,
    follower: Follower,
    host: mpsc::Receiver<HostRequest>,
}

/// What a front-end does next.
pub enum FrontendEvent<S, M> {
    Reply(Then<S>),
    Message(M),
    Host(HostRequest),
    Event(Event),
    /// The other side reads again.
    Room,
    End,
}

impl<S: 'static> Pending<S> {
    /// Runs `work` beside the task and `then` on it.
    pub fn later<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&mut S, T) + Send + 'static,
    ) {
        self.0.push(Box::pin(async move {
            let done = work.await;
            Box::new(move |front: &mut S| then(front, done)) as Then<S>
        }));
    }

    /// The next result; `None` when nothing is under way.
    pub async fn next(&mut self) -> Option<Then<S>> {
        self.0.next().await
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<S> Default for Pending<S> {
    fn default() -> Self {
        Self(FuturesUnordered::new())
    }
}

impl<S: 'static> FrontendLink<S> {
    pub fn new(engine: Engine) -> Self {
        Self { engine, link: None, pending: Pending::default() }
    }

    /// Attaches with what the other side can do.
    pub async fn attach(&mut self, abilities: Abilities) -> Result<Commands, Failure> {
        let link = self.engine.attach(abilities).await?;
        let follower = Follower::new(link.commands.clone(), link.events);
        self.link = Some(Attached { commands: link.commands.clone(), follower, host: link.host });
        Ok(link.commands)
    }

    /// `None` before the first `attach`.
    pub fn commands(&self) -> Option<Commands> {
        self.link.as_ref().map(|link| link.commands.clone())
    }

    /// Sends a command that has no reply.
    pub async fn post(&mut self, command: Command) {
        if let Some(link) = &self.link {
            let _ = link.commands.send(command).await;
        }
    }

    /// Sends a command now; the future is its reply.
    pub async fn send<T: Send + 'static>(
        &mut self,
        make: impl FnOnce(Reply<T>) -> Command,
    ) -> BoxFuture<'static, Result<T, Failure>> {
        let (reply, answer) = reply();
        self.post(make(reply)).await;
        Box::pin(answer)
    }

    /// Sends a command now; `then` gets its reply on this task, before any event that the command causes.
    pub async fn call<T: Send + 'static>(
        &mut self,
        make: impl FnOnce(Reply<T>) -> Command,
        then: impl FnOnce(&mut S, Result<T, Failure>) + Send + 'static,
    ) {
        let (reply, answer) = reply();
        self.later(answer, then);
        self.post(make(reply)).await;
    }

    /// Deletes a chat. One that does not exist counts as deleted; one that may not be deleted does not.
    pub async fn delete(
        &mut self,
        session: SessionId,
        then: impl FnOnce(&mut S, Result<(), Failure>) + Send + 'static,
    ) {
        let deleted = self.send(|reply| Command::Delete { session: session.clone(), reply }).await;
        let commands = self.commands();
        let done = async move {
            match (deleted.await, commands) {
                (Err(failure), Some(commands)) if failure.kind == FailureKind::User => {
                    let found = commands.call(|reply| Command::Preview { session, limit: 1, reply }).await;
                    if matches!(found, Ok(Some(_))) { Err(failure) } else { Ok(()) }
                }
                (done, _) => done,
            }
        };
        self.later(done, then);
    }

    /// See [`Pending::later`].
    pub fn later<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&mut S, T) + Send + 'static,
    ) {
        self.pending.later(work, then);
    }

    /// See [`Follower::follow`].
    pub fn follow(&mut self, session: SessionId, after: u64) {
        if let Some(link) = &mut self.link {
            link.follower.follow(session, after);
        }
    }

    pub fn forget(&mut self, session: &SessionId) {
        if let Some(link) = &mut self.link {
            link.follower.forget(session);
        }
    }

    /// What to do next. `full` resolves when the other side reads again: until then no event is taken, and the queue
    /// of events may lag. Safe to drop between polls: nothing is lost.
    pub async fn next<M>(
        &mut self,
        inbox: &mut mpsc::Receiver<M>,
        full: Option<impl Future>,
        ended: impl Future,
    ) -> FrontendEvent<S, M> {
        let has_room = full.is_none();
        let (follower, host) = match &mut self.link {
            Some(link) => (Some(&mut link.follower), Some(&mut link.host)),
            None => (None, None),
        };
        tokio::select! {
            biased;
            Some(then) = self.pending.next(), if !self.pending.is_empty() => FrontendEvent::Reply(then),
            message = inbox.recv() => message.map_or(FrontendEvent::End, FrontendEvent::Message),
            Some(request) = when_there(host.map(mpsc::Receiver::recv)) => FrontendEvent::Host(request),
            _ = when_there(full) => FrontendEvent::Room,
            event = when_there(follower.map(Follower::next)), if has_room => {
                event.map_or(FrontendEvent::End, FrontendEvent::Event)
            }
            _ = ended => FrontendEvent::End,
        }
    }
}

async fn when_there<T>(work: Option<impl Future<Output = T>>) -> T {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::event::{CatalogKind, EventBody};
    use crate::link::{Envelope, FrontendPort, engine};
    use std::future::{Ready, pending, ready};

    const ROOM: Option<Ready<()>> = None;

    /// What a front-end did, in order.
    type Done = Vec<&'static str>;

    async fn attached() -> (FrontendLink<Done>, FrontendPort, mpsc::Receiver<Envelope>) {
        let (engine, mut commands) = engine();
        let mut front = FrontendLink::new(engine);
        front.attach(Abilities::default()).await.unwrap();
        let Some(Envelope { command: Command::Attach { port }, .. }) = commands.recv().await else {
            panic!("attach sends Attach");
        };
        (front, port, commands)
    }

    fn event() -> Event {
        Event { session: None, body: EventBody::Catalog(CatalogKind::Models) }
    }

    #[tokio::test]
    async fn replies_come_before_messages_and_events_last() {
        let (mut front, port, mut commands) = attached().await;
        let (sender, mut inbox) = mpsc::channel(1);
        sender.send("message").await.unwrap();
        port.events.push(event());
        front
            .call(|reply| Command::Shutdown { reply }, |done, reply| done.extend(reply.map(|()| "reply")))
            .await;
        let Some(Envelope { command: Command::Shutdown { reply }, .. }) = commands.recv().await else {
            panic!("another command");
        };
        reply.send(Ok(())).unwrap();
        let mut done = Done::new();
        while done.len() < 3 {
            match front.next(&mut inbox, ROOM, pending::<()>()).await {
                FrontendEvent::Reply(then) => then(&mut done),
                FrontendEvent::Message(message) => done.push(message),
                FrontendEvent::Event(_) => done.push("event"),
                FrontendEvent::Host(_) | FrontendEvent::Room | FrontendEvent::End => {
                    done.push("something else")
                }
            }
        }
        assert_eq!(done, ["reply", "message", "event"]);
    }

    #[tokio::test]
    async fn events_wait_for_a_reader() {
        let (mut front, port, _commands) = attached().await;
        let (_sender, mut inbox) = mpsc::channel::<()>(1);
        port.events.push(event());
        let ended = front.next(&mut inbox, Some(pending::<()>()), ready(())).await;
        assert!(matches!(ended, FrontendEvent::End));
        let room = front.next(&mut inbox, Some(ready(())), ready(())).await;
        assert!(matches!(room, FrontendEvent::Room));
        let event = front.next(&mut inbox, ROOM, ready(())).await;
        assert!(matches!(event, FrontendEvent::Event(_)));
    }

    #[tokio::test]
    async fn a_command_without_an_engine_fails() {
        let (engine, _commands) = engine();
        let mut front = FrontendLink::<Option<Failure>>::new(engine);
        front.call(|reply| Command::Shutdown { reply }, |failed, reply| *failed = reply.err()).await;
        let mut failed = None;
        front.pending.next().await.unwrap()(&mut failed);
        assert_eq!(failed.unwrap().kind, Failure::closed().kind);
    }
}
