//! The link between a front-end and the engine: commands one way, events and host calls the other.
//!
//! [`Follower`] turns the lossy queue into a stream that is whole: it holds the last number it delivered per session
//! and reads from the journal what the queue lost. Invariant: a follower delivers every fact of a followed session
//! exactly once and in order, however slow its reader is.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use crate::BoxFuture;
use crate::command::{Command, Reply, reply};
use crate::event::{Event, EventBody, Recorded};
use crate::failure::Failure;
use crate::host::{Abilities, HostRequest};
use crate::ids::{FrontendId, SessionId};
use crate::queue::{EventReceiver, EventSender, Received, queue};

pub use crate::frontend_port::FrontendPort;

/// Commands waiting for the engine; a front-end that fills it waits.
const COMMANDS: usize = 256;
/// Host calls waiting for a front-end.
const HOST_CALLS: usize = 64;
/// Facts read from the journal at a time.
const PAGE: usize = 128;

/// A command and its sender.
#[derive(Debug)]
pub struct Envelope {
    pub front: FrontendId,
    pub command: Command,
}

/// The engine, seen from outside. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    commands: mpsc::Sender<Envelope>,
}

/// The engine, for a part of the program that must not keep it alive.
#[derive(Clone, Debug)]
pub struct WeakEngine {
    commands: mpsc::WeakSender<Envelope>,
}

impl WeakEngine {
    /// `None` when the engine is gone.
    pub fn upgrade(&self) -> Option<Engine> {
        self.commands.upgrade().map(|commands| Engine { commands })
    }
}

/// The front-end's side.
pub struct Link {
    pub commands: Commands,
    pub events: EventReceiver,
    pub host: mpsc::Receiver<HostRequest>,
}

/// Sends commands in the name of one front-end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Commands {
    pub front: FrontendId,
    sender: mpsc::Sender<Envelope>,
}

/// A way to an engine, and the engine's end of it.
pub fn engine() -> (Engine, mpsc::Receiver<Envelope>) {
    let (commands, receiver) = mpsc::channel(COMMANDS);
    (Engine { commands }, receiver)
}

impl Engine {
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine { commands: self.commands.downgrade() }
    }

    /// Passes on a command of a front-end that attached elsewhere: what stands between a front-end and the engine uses it.
    pub async fn pass(&self, envelope: Envelope) -> Result<(), Failure> {
        self.commands.send(envelope).await.map_err(|_| Failure::closed())
    }

    pub async fn attach(&self, abilities: Abilities) -> Result<Link, Failure> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let front = FrontendId(NEXT.fetch_add(1, Ordering::Relaxed));
        let (events_in, events) = queue();
        let (host_in, host) = mpsc::channel(HOST_CALLS);
        let commands = Commands { front, sender: self.commands.clone() };
        commands
            .send(Command::Attach { port: FrontendPort { abilities, events: events_in, host: host_in } })
            .await?;
        Ok(Link { commands, events, host })
    }
}

impl Link {
    /// A link whose other end is in another process: somebody carries the commands there and the events here.
    pub fn carried() -> (Link, mpsc::Receiver<Envelope>, EventSender) {
        let (sender, commands) = mpsc::channel(COMMANDS);
        let (events_in, events) = queue();
        let (_, host) = mpsc::channel(1);
        (Link { commands: Commands { front: FrontendId(0), sender }, events, host }, commands, events_in)
    }

    /// A link with both ends in hand, for tests of a front-end without an engine.
    pub async fn memory(abilities: Abilities) -> (Link, FrontendPort, mpsc::Receiver<Envelope>) {
        let (engine, mut receiver) = engine();
        let link = engine.attach(abilities).await;
        let attached = receiver.recv().await;
        match (link, attached) {
            (Ok(link), Some(Envelope { command: Command::Attach { port }, .. })) => (link, port, receiver),
            // The receiver is alive and `attach` sends exactly that command first.
            _ => unreachable!("attach sends Attach"),
        }
    }
}

impl Commands {
    /// Waits only while the engine has not taken what was sent before.
    pub async fn send(&self, command: Command) -> Result<(), Failure> {
        self.sender.send(Envelope { front: self.front, command }).await.map_err(|_| Failure::closed())
    }

    /// Sends without waiting; gives the command back where that is not possible now.
    pub fn try_send(&self, command: Command) -> Result<(), Box<Command>> {
        self.sender.try_send(Envelope { front: self.front, command }).map_err(|refused| {
            Box::new(match refused {
                mpsc::error::TrySendError::Full(envelope) | mpsc::error::TrySendError::Closed(envelope) => {
                    envelope.command
                }
            })
        })
    }

    /// Nobody receives commands.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends the command that `make` builds and waits for its reply.
    pub async fn call<T>(&self, make: impl FnOnce(Reply<T>) -> Command) -> Result<T, Failure> {
        let (reply, answer) = reply();
        self.send(make(reply)).await?;
        answer.await
    }
}

/// The events of a front-end, made whole.
pub struct Follower {
    commands: Commands,
    events: EventReceiver,
    /// The number of the last fact delivered, per session.
    places: HashMap<SessionId, u64>,
    ready: VecDeque<Event>,
    /// Sessions whose journal must be read on, up to at least the number given.
    behind: VecDeque<(SessionId, u64)>,
    /// The page under way for the first of them. Kept between calls: a caller that drops [`Follower::next`] again and
    /// again before the store has answered would never get the page, and the store would drown in requests.
    reading: Option<BoxFuture<'static, Result<Vec<Arc<Recorded>>, Failure>>>,
}

impl Follower {
    pub fn new(commands: Commands, events: EventReceiver) -> Self {
        let (places, ready, behind) = (HashMap::new(), VecDeque::new(), VecDeque::new());
        Self { commands, events, places, ready, behind, reading: None }
    }

    /// Delivers the facts after `after`. With 0 the whole chat is replayed; with the newest number only what comes.
    pub fn follow(&mut self, session: SessionId, after: u64) {
        self.places.insert(session.clone(), after);
        self.behind.push_back((session, u64::MAX));
        self.reading = None;
    }

    pub fn forget(&mut self, session: &SessionId) {
        self.places.remove(session);
        self.behind.retain(|(behind, _)| behind != session);
        self.ready.retain(|event| event.session.as_ref() != Some(session));
        self.reading = None;
    }

    /// Everything asked for by `follow` so far has been delivered.
    pub fn is_caught_up(&self) -> bool {
        self.behind.is_empty() && self.ready.is_empty()
    }

    /// The number of the last fact delivered.
    pub fn place(&self, session: &SessionId) -> Option<u64> {
        self.places.get(session).copied()
    }

    /// The next event; `None` when the engine is gone. Safe to drop between polls: nothing is lost.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if let Some((session, until)) = self.behind.front().cloned() {
                self.catch_up(session, until).await;
                continue;
            }
            match self.events.recv().await {
                Received::Event(event) => self.handle_event(event),
                Received::Lagged => {
                    self.behind.extend(self.places.keys().map(|session| (session.clone(), u64::MAX)));
                }
                Received::Closed => return None,
            }
        }
    }

    /// Delivers an event, or finds that facts before it are missing. A session that is not followed (any more, or
    /// yet: its reply is on the way) is passed over; `follow` reads what it missed.
    fn handle_event(&mut self, event: Event) {
        let Some(session) = &event.session else {
            self.ready.push_back(event);
            return;
        };
        let Some(place) = self.places.get_mut(session) else { return };
        let EventBody::Fact(recorded) = &event.body else {
            // Facts that came after it were read from the journal already: it is of the past.
            let is_old = matches!(event.body, EventBody::Progress { .. })
                && self.events.holds_fact_up_to(session, *place);
            if !is_old {
                self.ready.push_back(event);
            }
            return;
        };
        if recorded.number == *place + 1 {
            *place += 1;
            self.ready.push_back(event);
        } else if recorded.number > *place {
            self.behind.push_back((session.clone(), recorded.number));
        }
    }

    /// Reads one page of a session's journal; it stays at the head of `behind` while there may be more.
    async fn catch_up(&mut self, session: SessionId, until: u64) {
        let Some(&after) = self.places.get(&session) else {
            self.behind.pop_front();
            return;
        };
        if after >= until {
            self.behind.pop_front();
            return;
        }
        let reading = self.reading.get_or_insert_with(|| {
            let (commands, session) = (self.commands.clone(), session.clone());
            Box::pin(async move {
                commands.call(|reply| Command::Read { session, after, limit: PAGE, reply }).await
            })
        });
        let page = reading.await.unwrap_or_default();
        self.reading = None;
        if page.is_empty() {
            self.behind.pop_front();
        }
        for recorded in page {
            self.deliver(&session, recorded);
        }
    }

    fn deliver(&mut self, session: &SessionId, recorded: Arc<Recorded>) {
        let Some(place) = self.places.get_mut(session) else { return };
        if recorded.number > *place {
            *place = recorded.number;
            self.ready.push_back(Event::fact(session.clone(), recorded));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::event::Fact;
    use crate::ids::TurnId;

    /// A front-end that looks away all the time gets the page of the one request that it sent.
    #[tokio::test]
    async fn a_page_under_way_is_kept_when_the_reader_looks_away() {
        let (link, _port, mut commands) = Link::memory(Abilities::default()).await;
        let mut follower = Follower::new(link.commands, link.events);
        follower.follow(SessionId::new("s"), 0);
        for _ in 0..20 {
            assert!(follower.next().now_or_never().is_none());
        }
        let Some(Envelope { command: Command::Read { reply, .. }, .. }) = commands.recv().await else {
            panic!("a follower reads the journal");
        };
        assert!(commands.try_recv().is_err(), "it asks once");
        let fact = Fact::TurnStarted { turn: TurnId(1), model: String::new() };
        reply.send(Ok(vec![Arc::new(Recorded { number: 1, at: 0, fact })])).unwrap();
        assert!(follower.next().await.is_some());
        assert_eq!(follower.place(&SessionId::new("s")), Some(1));
    }
    /// What was shown before facts that the journal gave is not shown after them.
    #[tokio::test]
    async fn progress_of_the_past_is_not_shown_late() {
        let (link, port, mut commands) = Link::memory(Abilities::default()).await;
        let mut follower = Follower::new(link.commands, link.events);
        let session = SessionId::new("s");
        let fact = |number| {
            let fact = Fact::TurnStarted { turn: TurnId(number), model: String::new() };
            Arc::new(Recorded { number, at: 0, fact })
        };
        let progress = |text: &str| Event {
            session: Some(session.clone()),
            body: EventBody::Progress { text: text.to_owned() },
        };
        follower.follow(session.clone(), 0);
        for event in [progress("old"), Event::fact(session.clone(), fact(1)), progress("now")] {
            port.events.push(event);
        }
        assert!(follower.next().now_or_never().is_none());
        for page in [vec![fact(1)], Vec::new()] {
            let Some(Envelope { command: Command::Read { reply, .. }, .. }) = commands.recv().await else {
                panic!("a follower reads the journal");
            };
            reply.send(Ok(page)).unwrap();
            if follower.place(&session) == Some(0) {
                assert!(matches!(follower.next().await.unwrap().body, EventBody::Fact(_)));
                assert!(follower.next().now_or_never().is_none());
            }
        }
        let shown = follower.next().await.unwrap().body;
        assert!(matches!(&shown, EventBody::Progress { text } if text == "now"), "{shown:?}");
    }
}
