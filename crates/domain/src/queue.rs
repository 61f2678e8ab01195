//! The event queue of one front-end. Pushing never waits; a slow reader costs bounded memory.
//!
//! While the reader is behind, deltas of one item are joined. When the queue is full, deltas are dropped and a fact
//! that finds no room marks the queue as lagged: everything is dropped until the reader has emptied it, and then the
//! reader gets [`Received::Lagged`] and reads the journal. Invariant: at most [`LIMIT`] bytes of text and [`COUNT`] events are held.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::event::{Event, EventBody, Fact, ItemDelta, Recorded};
use crate::ids::SessionId;
use crate::item::{ItemKind, Part};

/// Bytes of queued text, about.
pub const LIMIT: usize = 1 << 20;
/// Queued events.
pub const COUNT: usize = 4096;

/// A delta stops growing here, so that one message stays a readable size.
const MAX_JOINED_BYTES: usize = 16 << 10;

/// What a reader gets.
#[derive(Clone, PartialEq, Debug)]
pub enum Received {
    Event(Event),
    /// Facts were lost on the way: read the journal of every followed session.
    Lagged,
    /// The engine is gone.
    Closed,
}

#[derive(Clone)]
pub struct EventSender {
    shared: Arc<SharedQueue>,
}

pub struct EventReceiver {
    shared: Arc<SharedQueue>,
}

struct SharedQueue {
    state: Mutex<QueueState>,
    ready: Notify,
}

#[derive(Default)]
struct QueueState {
    events: VecDeque<Event>,
    bytes: usize,
    lagged: bool,
    closed: bool,
}

pub fn queue() -> (EventSender, EventReceiver) {
    let shared = Arc::new(SharedQueue { state: Mutex::default(), ready: Notify::new() });
    (EventSender { shared: shared.clone() }, EventReceiver { shared })
}

impl SharedQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // A panic while the lock is held leaves only counts that are a little off.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSender {
    /// Never waits and never grows without bound.
    pub fn push(&self, event: Event) {
        let mut state = self.shared.lock();
        if state.closed {
            return;
        }
        state.push(event);
        drop(state);
        self.shared.ready.notify_one();
    }

    /// The reader gets what is queued, then [`Received::Closed`].
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.ready.notify_one();
    }

    /// The reader gets what is queued, then [`Received::Lagged`].
    pub fn lag(&self) {
        self.shared.lock().lagged = true;
        self.shared.ready.notify_one();
    }

    /// The reader was dropped.
    pub fn is_closed(&self) -> bool {
        self.shared.lock().closed
    }
}

impl QueueState {
    fn push(&mut self, event: Event) {
        if self.lagged {
            return;
        }
        let event = match self.join(event) {
            Some(event) => event,
            None => return,
        };
        let size = weight(&event);
        if self.events.len() >= COUNT || (self.bytes + size > LIMIT && !self.events.is_empty()) {
            // Deltas and progress may be lost; facts, catalogs and notices may not.
            if !matches!(event.body, EventBody::Delta(_) | EventBody::Progress { .. }) {
                self.lagged = true;
            }
            return;
        }
        self.bytes += size;
        self.events.push_back(event);
    }

    /// Joins a delta to the one before it.
    fn join(&mut self, event: Event) -> Option<Event> {
        let Some(last) = self.events.back_mut() else { return Some(event) };
        if last.session != event.session {
            return Some(event);
        }
        match (&mut last.body, event.body) {
            (EventBody::Delta(last), EventBody::Delta(delta)) if continues(last, &delta) => {
                self.bytes += delta.text.len();
                last.text.push_str(&delta.text);
                None
            }
            (_, body) => Some(Event { session: event.session, body }),
        }
    }
}

fn continues(last: &ItemDelta, delta: &ItemDelta) -> bool {
    last.item == delta.item
        && last.channel == delta.channel
        && last.offset + last.text.len() as u64 == delta.offset
        && last.text.len() + delta.text.len() <= MAX_JOINED_BYTES
}

impl EventReceiver {
    /// The next event. Safe to drop between polls.
    pub async fn recv(&mut self) -> Received {
        loop {
            if let Some(received) = self.try_recv() {
                return received;
            }
            self.shared.ready.notified().await;
        }
    }

    /// Whether a fact of this session with at most this number waits to be read.
    pub fn holds_fact_up_to(&self, session: &SessionId, number: u64) -> bool {
        let is_it = |event: &Event| {
            event.session.as_ref() == Some(session)
                && matches!(&event.body, EventBody::Fact(recorded) if recorded.number <= number)
        };
        self.shared.lock().events.iter().any(is_it)
    }

    pub fn try_recv(&mut self) -> Option<Received> {
        let mut state = self.shared.lock();
        if let Some(event) = state.events.pop_front() {
            state.bytes = state.bytes.saturating_sub(weight(&event));
            return Some(Received::Event(event));
        }
        state.bytes = 0;
        if state.lagged {
            state.lagged = false;
            return Some(Received::Lagged);
        }
        state.closed.then_some(Received::Closed)
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.events.clear();
    }
}

/// About how many bytes an event keeps alive.
fn weight(event: &Event) -> usize {
    const BASE: usize = 128;
    BASE + match &event.body {
        EventBody::Delta(delta) => delta.text.len(),
        EventBody::Fact(recorded) => fact_weight(recorded),
        EventBody::Progress { text } => text.len(),
        EventBody::Catalog(_) | EventBody::Lost { .. } => 0,
    }
}

fn fact_weight(recorded: &Recorded) -> usize {
    match &recorded.fact {
        Fact::ItemGrew { text, .. } => text.len(),
        Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item } => {
            match &item.kind {
                ItemKind::UserMessage { text, parts } => {
                    text.len() + parts.iter().map(part_weight).sum::<usize>()
                }
                ItemKind::AgentMessage { text, .. } | ItemKind::Reasoning { text, .. } => text.len(),
                ItemKind::ToolCall(call) => {
                    2 * call.input_text.len()
                        + call.live_output.len()
                        + call.result.iter().map(part_weight).sum::<usize>()
                        + 512
                }
                ItemKind::Compaction { summary, .. } => summary.len(),
                ItemKind::SystemText { text } => text.len(),
                ItemKind::Note(note) => note.text.len() + note.parts.iter().map(part_weight).sum::<usize>(),
                ItemKind::Hook(run) => run.output.len() + run.error.len() + 256,
                ItemKind::Flag { .. } | ItemKind::Citation { .. } | ItemKind::Command { .. } => 256,
            }
        }
        Fact::SessionOpened(_)
        | Fact::SessionChanged { .. }
        | Fact::TurnStarted { .. }
        | Fact::TurnEnded { .. }
        | Fact::HistoryReplaced { .. }
        | Fact::AskRaised { .. }
        | Fact::AskSettled { .. }
        | Fact::UsageChanged { .. }
        | Fact::Notice { .. }
        | Fact::TaintChanged { .. } => 128,
    }
}

fn part_weight(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.len(),
        Part::Image { data, .. } => data.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Channel;
    use crate::ids::{ItemId, TurnId};

    fn delta(offset: u64, text: &str) -> Event {
        Event::delta(
            SessionId::new("s"),
            ItemDelta { item: ItemId(1), channel: Channel::Text, offset, text: text.into() },
        )
    }

    fn fact(number: u64) -> Event {
        let fact = Fact::TurnStarted { turn: TurnId(number), model: String::new() };
        Event::fact(SessionId::new("s"), Arc::new(Recorded { number, at: 0, fact }))
    }

    #[test]
    fn deltas_are_joined_only_while_the_reader_is_behind() {
        let (sender, mut receiver) = queue();
        sender.push(delta(0, "a"));
        assert_eq!(receiver.try_recv(), Some(Received::Event(delta(0, "a"))));
        sender.push(delta(1, "b"));
        sender.push(delta(2, "c"));
        sender.push(delta(9, "gap"));
        assert_eq!(receiver.try_recv(), Some(Received::Event(delta(1, "bc"))));
        assert_eq!(receiver.try_recv(), Some(Received::Event(delta(9, "gap"))));
        assert_eq!(receiver.try_recv(), None);
    }

    #[test]
    fn a_full_queue_drops_deltas_and_tells_of_lost_facts() {
        let (sender, mut receiver) = queue();
        for number in 0..COUNT as u64 {
            sender.push(fact(number + 1));
        }
        sender.push(delta(0, "lost"));
        for number in 0..10 {
            assert_eq!(receiver.try_recv(), Some(Received::Event(fact(number + 1))));
        }
        for number in COUNT as u64..COUNT as u64 + 20 {
            sender.push(fact(number + 1));
        }
        let mut seen = 10;
        loop {
            match receiver.try_recv() {
                Some(Received::Event(event)) => {
                    seen += 1;
                    assert_eq!(event, fact(seen));
                }
                other => {
                    assert_eq!(other, Some(Received::Lagged));
                    break;
                }
            }
        }
        assert_eq!(seen, COUNT as u64 + 10);
        sender.push(fact(7));
        assert_eq!(receiver.try_recv(), Some(Received::Event(fact(7))));
        sender.close();
        assert_eq!(receiver.try_recv(), Some(Received::Closed));
    }

    #[test]
    fn a_flood_is_bounded() {
        let (sender, _receiver) = queue();
        let mut offset = 0;
        for _ in 0..10_000 {
            sender.push(delta(offset, &"x".repeat(1000)));
            offset += 1000;
        }
        let state = sender.shared.lock();
        let held: usize = state.events.iter().map(weight).sum();
        assert!(held <= LIMIT + MAX_JOINED_BYTES, "{held}");
    }
}
