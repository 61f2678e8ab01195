//! The stream of one chat for one page: first the whole chat, then what happens in it.
//!
//! Invariant: what was stored and what comes live go through the same projection, without a gap between them.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::link::Commands;
use domain::replay::{read, visible_facts};
use domain::{CancellationToken, Command, EventBody, Fact, Failure, Follower, Recorded, SessionId};
use futures_util::Stream;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::caller::ENDED;
use crate::chats::{Chats, Shown};
use crate::to_wire::{PageEvent, Projection, chat_value};

/// Why a stream ends whose account may still read the chat.
const INTERRUPTED: &str = "Dragoman has ended, or the chat cannot be read at this moment.";

struct ChatStream {
    id: SessionId,
    commands: Commands,
    follower: Follower,
    projection: Projection,
    ready: VecDeque<PageEvent>,
    /// Cancelled when the account may no longer read it; the last event says so.
    revoked: Option<CancellationToken>,
    /// The last event was given.
    is_over: bool,
    /// Leaves the chat when the page has gone.
    _shown: Shown,
    _place: OwnedSemaphorePermit,
}

/// Begins with the event `snapshot`; ends with the event `end`, unless the page goes first.
pub(crate) async fn open(
    chats: &Chats,
    id: SessionId,
) -> Result<impl Stream<Item = (&'static str, String)> + Send + 'static, Failure> {
    let place = chats.stream_place()?;
    let (mut shown, _) = chats.show(&id).await?;
    let link = shown.link.take().ok_or_else(Failure::closed)?;
    let commands = link.commands.clone();
    let mut stream = ChatStream {
        id,
        follower: Follower::new(commands.clone(), link.events),
        commands,
        projection: Projection::default(),
        ready: VecDeque::new(),
        revoked: chats.scope().map(|scope| scope.caller.ended.clone()),
        is_over: false,
        _shown: shown,
        _place: place,
    };
    let first = stream.snapshot().await?;
    stream.ready.push_back(first);
    Ok(futures_util::stream::unfold(stream, |mut stream| async move {
        let event = stream.next().await?;
        Some(((event.name, event.data.to_string()), stream))
    }))
}

impl ChatStream {
    /// The next event; `end` is the last one, whatever ends the stream.
    async fn next(&mut self) -> Option<PageEvent> {
        if self.is_over {
            return None;
        }
        let event = self.next_event().await;
        self.is_over = event.is_none();
        Some(event.unwrap_or_else(|| self.last_event()))
    }

    fn last_event(&self) -> PageEvent {
        let is_revoked = self.revoked.as_ref().is_some_and(CancellationToken::is_cancelled);
        let message = if is_revoked { ENDED } else { INTERRUPTED };
        PageEvent { name: "end", data: json!({"message": message, "again": !is_revoked}) }
    }

    async fn next_event(&mut self) -> Option<PageEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let event = self.follower.next().await?;
            let fact = match &event.body {
                EventBody::Fact(recorded) => Some(&recorded.fact),
                EventBody::Delta(_)
                | EventBody::Progress { .. }
                | EventBody::Catalog(_)
                | EventBody::Lost { .. } => None,
            };
            if matches!(fact, Some(Fact::HistoryReplaced { .. })) {
                // What is left is read anew.
                return self.snapshot().await.ok();
            }
            let changes_chat = matches!(
                fact,
                Some(
                    Fact::TurnStarted { .. }
                        | Fact::TurnEnded { .. }
                        | Fact::SessionChanged { .. }
                        | Fact::Notice { .. }
                )
            );
            self.ready.extend(self.projection.event(&event));
            if changes_chat && let Ok(chat) = read_chat(self.commands.clone(), self.id.clone()).await {
                self.ready.push_back(PageEvent { name: "chat", data: chat });
            }
        }
    }

    /// The whole chat; what comes behind it follows.
    async fn snapshot(&mut self) -> Result<PageEvent, Failure> {
        let all = read(&self.commands, &self.id).await?;
        let newest = all.last().map_or(0, |last| last.number);
        self.projection = Projection::default();
        let entries = entries(all, &mut self.projection);
        self.follower.follow(self.id.clone(), newest);
        let chat = read_chat(self.commands.clone(), self.id.clone()).await?;
        Ok(PageEvent { name: "snapshot", data: json!({"chat": chat, "entries": entries}) })
    }
}

async fn read_chat(commands: Commands, session: SessionId) -> Result<Value, Failure> {
    let info = commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await?;
    Ok(chat_value(&info))
}

/// The events that show a stored chat.
pub(crate) fn entries(all: Vec<Arc<Recorded>>, projection: &mut Projection) -> Vec<Value> {
    let visible = visible_facts(all);
    let events = visible.iter().filter_map(|recorded| projection.fact(recorded));
    events.map(|event| json!({"event": event.name, "data": event.data})).collect()
}
