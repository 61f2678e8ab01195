//! One answer of a model: the fold of its events into items, deltas and journal facts. The hot path.
//!
//! Invariants: the first text of an item is in the journal before anybody sees it; later text is at most
//! [`FLUSH_AFTER`] or [`FLUSH_BYTES`] ahead of the journal; nothing here waits for a front-end.

use std::pin::pin;
use std::time::Duration;

use domain::event::Channel;
use domain::item::{Item, ItemKind};
use domain::model::{BlockKind, ModelEvent, StopReason, Tokens};
use domain::tool_call::{Origin, ToolCall, ToolState};
use domain::{CancellationToken, Event, Fact, Failure, ItemDelta, ItemId, ModelStream, TurnId};
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::session::Session;
use crate::session::journal::Recording;

/// Shown text reaches the journal within 250 ms; the commit itself takes the rest, which a busy disk needs.
const FLUSH_AFTER: Duration = Duration::from_millis(100);
const FLUSH_BYTES: usize = 4096;
/// Past this, the model waits for the disk.
const BEHIND_BYTES: usize = 256 << 10;

/// How an answer ended.
pub enum Ending {
    Model(StopReason),
    Stopped,
    Failed(Failure),
}

/// What an answer brought.
pub struct Answered {
    /// Ended items in the order the model made them; tool calls among them are still preparing.
    pub items: Vec<Item>,
    pub tokens: Option<Tokens>,
    pub ending: Ending,
}

/// Where an answer stands in its chat.
#[derive(Clone, Copy)]
pub struct Place {
    pub turn: TurnId,
    pub step: u32,
}

/// Splits `server__name`; a name without a server is one of ours.
pub type Naming<'a> = &'a (dyn Fn(&str) -> (String, String, Origin) + Sync);

pub async fn receive(
    session: &Session,
    place: Place,
    naming: Naming<'_>,
    mut stream: ModelStream,
    cancel: &CancellationToken,
) -> Answered {
    let mut answer = Answer::new(session, place, naming);
    let mut cancelled = pin!(cancel.cancelled());
    let ending = loop {
        let flush_at = answer.flush_at;
        let event = tokio::select! {
            biased;
            () = &mut cancelled => break Ending::Stopped,
            event = stream.next() => event,
            () = tokio::time::sleep_until(flush_at.unwrap_or_else(Instant::now)), if flush_at.is_some() => {
                answer.flush(true);
                continue;
            }
        };
        match event {
            Some(Ok(ModelEvent::Ended { reason })) => break Ending::Model(reason),
            Some(Ok(event)) => {
                if let Err(failure) = answer.take(event).await {
                    break Ending::Failed(failure);
                }
            }
            Some(Err(failure)) => break Ending::Failed(failure),
            None => {
                break Ending::Model(StopReason::Cut { message: "The model's answer ended early.".into() });
            }
        }
    };
    drop(stream);
    answer.finish(ending)
}

struct Answer<'a> {
    session: &'a Session,
    place: Place,
    naming: Naming<'a>,
    open: Vec<Open>,
    done: Vec<Item>,
    tokens: Option<Tokens>,
    generating: bool,
    /// The last recording of grown text; another one waits for it.
    pending: Option<Recording>,
    flush_at: Option<Instant>,
}

struct Open {
    block: u32,
    item: Item,
    channel: Option<Channel>,
    /// `ItemStarted` is in the journal.
    started: bool,
    /// Bytes of the channel that are in the journal or on the way there.
    journalled: usize,
    since: Instant,
}

impl<'a> Answer<'a> {
    fn new(session: &'a Session, place: Place, naming: Naming<'a>) -> Self {
        Self {
            session,
            place,
            naming,
            open: Vec::new(),
            done: Vec::new(),
            tokens: None,
            generating: false,
            pending: None,
            flush_at: None,
        }
    }

    async fn take(&mut self, event: ModelEvent) -> Result<(), Failure> {
        match event {
            ModelEvent::BlockDelta { block, text } => self.delta(block, text).await?,
            ModelEvent::BlockStarted { block, kind } => self.start(block, kind).await?,
            ModelEvent::BlockEnded { block, provider } => {
                if let Some(at) = self.open.iter().position(|open| open.block == block) {
                    let mut open = self.open.remove(at);
                    set_provider(&mut open.item, provider);
                    self.end(open);
                }
            }
            ModelEvent::Usage(tokens) => self.tokens = Some(tokens),
            ModelEvent::Waiting { text } => {
                self.generating = false;
                self.session.progress(text);
            }
            ModelEvent::Warning { text } => {
                let item = self.new_item(ItemKind::SystemText { text });
                self.session.journal.note(Fact::ItemEnded { item: item.clone() });
                self.done.push(item);
            }
            ModelEvent::Ended { .. } => {}
        }
        Ok(())
    }

    async fn start(&mut self, block: u32, kind: BlockKind) -> Result<(), Failure> {
        self.show_generating();
        let (channel, kind) = self.kind_of(kind);
        let item = self.new_item(kind);
        let mut open = Open { block, item, channel, started: false, journalled: 0, since: Instant::now() };
        match channel {
            // Its first delta starts it.
            Some(Channel::Text | Channel::Reasoning) => {}
            // A call is shown before its arguments.
            Some(_) => {
                open.started = true;
                self.record(vec![Fact::ItemStarted { item: open.item.clone() }]).await?;
            }
            None => {
                self.end(open);
                return Ok(());
            }
        }
        self.open.push(open);
        Ok(())
    }

    fn kind_of(&self, kind: BlockKind) -> (Option<Channel>, ItemKind) {
        match kind {
            BlockKind::Text => (
                Some(Channel::Text),
                ItemKind::AgentMessage { text: String::new(), interrupted: false, provider: None },
            ),
            BlockKind::Reasoning => (
                Some(Channel::Reasoning),
                ItemKind::Reasoning { text: String::new(), millis: 0, provider: None },
            ),
            BlockKind::Citation { title, url } => (None, ItemKind::Citation { title, url }),
            BlockKind::ToolCall { call_id, name } => {
                let (server, name, origin) = (self.naming)(&name);
                (
                    Some(Channel::ToolInput),
                    ItemKind::ToolCall(Box::new(new_call(call_id, server, name, origin))),
                )
            }
        }
    }

    fn new_item(&self, kind: ItemKind) -> Item {
        Item {
            id: ItemId(self.session.next_item()),
            turn: self.place.turn,
            step: self.place.step,
            parent: None,
            kind,
        }
    }

    async fn delta(&mut self, block: u32, text: String) -> Result<(), Failure> {
        let Some(at) = self.open.iter().rposition(|open| open.block == block) else { return Ok(()) };
        let open = &mut self.open[at];
        let Some(channel) = open.channel else { return Ok(()) };
        let id = open.item.id;
        let Some(whole) = open.item.channel_text_mut(channel) else { return Ok(()) };
        let offset = whole.len();
        whole.push_str(&text);
        let length = whole.len();
        if !open.started {
            open.started = true;
            open.journalled = length;
            let started = Fact::ItemStarted { item: open.item.clone() };
            self.record(vec![started]).await?;
        }
        let open = &self.open[at];
        let ahead = length - open.journalled;
        let delta = ItemDelta { item: id, channel, offset: offset as u64, text };
        self.session.audience.publish(Event::delta(self.session.id.clone(), delta));
        if ahead >= FLUSH_BYTES {
            self.flush(false);
            if ahead >= BEHIND_BYTES
                && let Some(pending) = self.pending.take()
            {
                pending.done().await?;
            }
        } else if ahead > 0 && self.flush_at.is_none() {
            self.flush_at = Some(Instant::now() + FLUSH_AFTER);
        }
        Ok(())
    }

    /// Sends grown text to the journal. Unless `now`, a recording under way is waited for by skipping this one.
    fn flush(&mut self, now: bool) {
        if !now && self.pending.as_mut().is_some_and(|pending| !pending.is_done()) {
            return;
        }
        self.flush_at = None;
        let mut facts = Vec::new();
        for open in &mut self.open {
            let Some(channel) = open.channel else { continue };
            let Some(text) = open.item.channel_text(channel) else { continue };
            if open.started && text.len() > open.journalled {
                let grown = text[open.journalled..].to_owned();
                let offset = open.journalled as u64;
                open.journalled = text.len();
                facts.push(Fact::ItemGrew { item: open.item.id, channel, offset, text: grown });
            }
        }
        if !facts.is_empty() {
            self.pending = Some(self.session.journal.record(facts));
        }
    }

    /// An item is whole. Calls stay open in the journal until they ran.
    fn end(&mut self, mut open: Open) {
        match &mut open.item.kind {
            ItemKind::AgentMessage { text, .. } if text.is_empty() => return,
            ItemKind::Reasoning { text, provider, .. } if text.is_empty() && provider.is_none() => return,
            ItemKind::Reasoning { millis, .. } => *millis = open.since.elapsed().as_millis() as u64,
            _ => {}
        }
        if !matches!(open.item.kind, ItemKind::ToolCall(_)) {
            self.session.journal.note(Fact::ItemEnded { item: open.item.clone() });
        }
        self.done.push(open.item);
    }

    async fn record(&self, facts: Vec<Fact>) -> Result<(), Failure> {
        self.session.journal.record(facts).done().await
    }

    fn show_generating(&mut self) {
        if !self.generating {
            self.generating = true;
            self.session.progress("Generating".into());
        }
    }

    fn finish(mut self, ending: Ending) -> Answered {
        let cut = !matches!(ending, Ending::Model(ref reason) if !matches!(reason, StopReason::Cut { .. }));
        for mut open in std::mem::take(&mut self.open) {
            if cut && let ItemKind::AgentMessage { interrupted, .. } = &mut open.item.kind {
                *interrupted = true;
            }
            self.end(open);
        }
        self.done.sort_by_key(|item| item.id);
        Answered { items: self.done, tokens: self.tokens, ending }
    }
}

fn set_provider(item: &mut Item, block: Option<domain::item::ProviderBlock>) {
    match &mut item.kind {
        ItemKind::AgentMessage { provider, .. } | ItemKind::Reasoning { provider, .. } => *provider = block,
        ItemKind::ToolCall(call) => call.provider = block,
        _ => {}
    }
}

fn new_call(call_id: String, server: String, name: String, origin: Origin) -> ToolCall {
    ToolCall {
        call_id,
        name,
        server,
        origin,
        input_text: String::new(),
        input: None,
        state: ToolState::Preparing,
        summary: String::new(),
        details: None,
        manual_approval: false,
        live_output: String::new(),
        result: Vec::new(),
        error: false,
        millis: 0,
        locations: Vec::new(),
        provider: None,
    }
}
