//! One answer of a model: the fold of its events into items, deltas and journal facts. The hot path.
//!
//! Must not know front-ends. Invariants: the first text of an item is in the journal before a client sees it; later
//! text is at most [`FLUSH_AFTER`] or [`FLUSH_BYTES`] ahead of the journal; nothing here waits for a front-end.

use std::pin::pin;
use std::time::Duration;

use domain::event::{Channel, EventBody};
use domain::item::{Item, ItemKind, ProviderBlock};
use domain::model::{BlockKind, ModelEvent, StopReason, Tokens};
use domain::tool_call::ToolCall;
use domain::{CancellationToken, Event, Fact, Failure, ItemDelta, ModelStream, TurnId};
use futures_util::StreamExt;
use session::log::PendingCommit;
use tokio::time::Instant;

use super::goal_run::foreign_id;
use crate::session::Session;
use crate::tool_search::{CARRIER, ToolList, carried_call};

/// Shown text reaches the journal within 250 ms; the commit itself takes the rest, which a busy disk needs.
const FLUSH_AFTER: Duration = Duration::from_millis(100);
/// A call that is whole by then is committed together with its intent to run.
const START_AFTER: Duration = Duration::from_millis(3);
const FLUSH_BYTES: usize = 4096;
/// Past this, the model waits for the disk.
const BEHIND_BYTES: usize = 256 << 10;

/// How an answer ended.
pub(crate) enum AnswerEnd {
    Model(StopReason),
    Stopped,
    Failed(Failure),
}

/// What an answer brought, beside what it committed.
pub(crate) struct Answer {
    /// The tool calls in the order the model made them, still preparing.
    pub(crate) calls: Vec<Item>,
    /// The model said nothing.
    pub(crate) is_empty: bool,
    pub(crate) tokens: Option<Tokens>,
    /// The provider would not have the images of the prompt.
    pub(crate) images_refused: bool,
    pub(crate) end: AnswerEnd,
}

/// The place of an answer in its chat.
#[derive(Clone, Copy)]
pub(crate) struct StepPosition {
    pub(crate) turn: TurnId,
    pub(crate) step: u32,
}

pub(crate) async fn receive(
    session: &Session,
    position: StepPosition,
    tools: &ToolList,
    mut stream: ModelStream,
    cancel: &CancellationToken,
) -> Answer {
    let mut answer = AnswerReader::new(session, position, tools);
    let mut cancelled = pin!(cancel.cancelled());
    let end = loop {
        let flush_at = answer.flush_at;
        let event = tokio::select! {
            biased;
            () = &mut cancelled => break AnswerEnd::Stopped,
            event = stream.next() => event,
            () = tokio::time::sleep_until(flush_at.unwrap_or_else(Instant::now)), if flush_at.is_some() => {
                match answer.flush(true) {
                    Ok(()) => continue,
                    Err(failure) => break AnswerEnd::Failed(failure),
                }
            }
        };
        match event {
            Some(Ok(ModelEvent::Ended { reason })) => break AnswerEnd::Model(reason),
            Some(Ok(event)) => {
                if let Err(failure) = answer.handle(event).await {
                    break AnswerEnd::Failed(failure);
                }
            }
            Some(Err(failure)) => break AnswerEnd::Failed(failure),
            None => {
                break AnswerEnd::Model(StopReason::Cut {
                    message: "The model's answer ended early.".into(),
                });
            }
        }
    };
    drop(stream);
    answer.finish(end)
}

pub(super) struct AnswerReader<'a> {
    session: &'a Session,
    position: StepPosition,
    tools: &'a ToolList,
    open: Vec<OpenBlock>,
    /// Calls of the carrier, which nobody sees before the tool that they mean is known.
    carried: Vec<CarriedCall>,
    calls: Vec<Item>,
    is_empty: bool,
    tokens: Option<Tokens>,
    images_refused: bool,
    generating: bool,
    /// The last commit of grown text; the next one waits for it.
    pending: Option<PendingCommit>,
    pub(super) flush_at: Option<Instant>,
    /// Stands in texts and thoughts from their start on: the session of an external agent.
    pub(super) mark: Option<ProviderBlock>,
}

struct CarriedCall {
    block: u32,
    call_id: String,
    text: String,
}

struct OpenBlock {
    block: u32,
    item: Item,
    channel: Option<Channel>,
    /// `ItemStarted` is committed.
    started: bool,
    /// Bytes of the channel that are committed.
    committed: usize,
    /// Where the pieces of arguments end that came before the call was started: they are shown as they came.
    pieces: Vec<usize>,
    since: Instant,
}

impl<'a> AnswerReader<'a> {
    pub(super) fn new(session: &'a Session, position: StepPosition, tools: &'a ToolList) -> Self {
        Self {
            session,
            position,
            tools,
            open: Vec::new(),
            carried: Vec::new(),
            calls: Vec::new(),
            is_empty: true,
            tokens: None,
            images_refused: false,
            generating: false,
            pending: None,
            flush_at: None,
            mark: None,
        }
    }

    pub(super) async fn handle(&mut self, event: ModelEvent) -> Result<(), Failure> {
        match event {
            ModelEvent::BlockDelta { block, text } => self.delta(block, text).await?,
            ModelEvent::BlockStarted { block, kind } => self.start(block, kind).await?,
            ModelEvent::BlockEnded { block, provider } => {
                self.unpack(block).await?;
                if let Some(at) = self.open.iter().position(|open| open.block == block) {
                    let mut open = self.open.remove(at);
                    set_provider(&mut open.item, provider);
                    self.end(open);
                }
            }
            ModelEvent::Usage(tokens) => self.tokens = Some(tokens),
            ModelEvent::Waiting { text } => {
                self.generating = false;
                self.session.show_progress(text);
            }
            ModelEvent::Warning { text } => {
                let StepPosition { turn, step } = self.position;
                let item = self.session.new_item(turn, step, ItemKind::SystemText { text });
                self.is_empty = false;
                self.start_calls();
                self.session.commit(vec![Fact::ItemEnded { item }]);
            }
            ModelEvent::ImagesRefused => self.images_refused = true,
            ModelEvent::Ended { .. } => {}
        }
        Ok(())
    }

    async fn start(&mut self, block: u32, kind: BlockKind) -> Result<(), Failure> {
        self.show_generating();
        if let BlockKind::ToolCall { call_id, name } = &kind
            && self.tools.is_carrier(name)
        {
            self.carried.push(CarriedCall { block, call_id: call_id.clone(), text: String::new() });
            return Ok(());
        }
        self.open_block(block, kind).await
    }

    async fn open_block(&mut self, block: u32, kind: BlockKind) -> Result<(), Failure> {
        self.start_calls();
        let (channel, kind) = self.kind_of(kind);
        let item = self.session.new_item(self.position.turn, self.position.step, kind);
        let (pieces, since) = (Vec::new(), Instant::now());
        let open = OpenBlock { block, item, channel, started: false, committed: 0, pieces, since };
        match channel {
            // Its first delta starts it.
            Some(Channel::Text | Channel::Reasoning) => {}
            // A call is shown before its arguments, unless they come at once.
            Some(_) => {
                let at = Instant::now() + START_AFTER;
                self.flush_at = Some(self.flush_at.map_or(at, |known| known.min(at)));
            }
            None => {
                self.end(open);
                return Ok(());
            }
        }
        self.open.push(open);
        Ok(())
    }

    /// A call of the carrier is whole: the call of the tool that it means takes its place.
    async fn unpack(&mut self, block: u32) -> Result<(), Failure> {
        let Some(at) = self.carried.iter().position(|carried| carried.block == block) else { return Ok(()) };
        let (kind, text) = self.carried.remove(at).into_call();
        self.open_block(block, kind).await?;
        self.delta(block, text).await
    }

    fn kind_of(&self, kind: BlockKind) -> (Option<Channel>, ItemKind) {
        let provider = self.mark.clone();
        match kind {
            BlockKind::Text => (
                Some(Channel::Text),
                ItemKind::AgentMessage { text: String::new(), interrupted: false, provider },
            ),
            BlockKind::Reasoning => {
                (Some(Channel::Reasoning), ItemKind::Reasoning { text: String::new(), millis: 0, provider })
            }
            BlockKind::Citation { title, url } => (None, ItemKind::Citation { title, url }),
            BlockKind::ToolCall { call_id, name } => {
                let (server, name, origin) = self.tools.resolve(&name);
                (
                    Some(Channel::ToolInput),
                    ItemKind::ToolCall(Box::new(ToolCall::new(foreign_id(call_id), server, name, origin))),
                )
            }
        }
    }

    async fn delta(&mut self, block: u32, text: String) -> Result<(), Failure> {
        if let Some(carried) = self.carried.iter_mut().find(|carried| carried.block == block) {
            carried.text.push_str(&text);
            return Ok(());
        }
        let Some(at) = self.open.iter().rposition(|open| open.block == block) else { return Ok(()) };
        let open = &mut self.open[at];
        let Some(channel) = open.channel else { return Ok(()) };
        let id = open.item.id;
        let Some(whole) = open.item.channel_text_mut(channel) else { return Ok(()) };
        let offset = whole.len();
        whole.push_str(&text);
        let length = whole.len();
        if !open.started && channel == Channel::ToolInput {
            open.pieces.push(length);
            return if length >= FLUSH_BYTES { self.flush(true) } else { Ok(()) };
        }
        if !open.started {
            open.started = true;
            open.committed = length;
            self.start_calls();
            let started = Fact::ItemStarted { item: self.open[at].item.clone() };
            self.commit(vec![started]).await?;
        }
        let open = &self.open[at];
        let ahead = length - open.committed;
        let delta = ItemDelta { item: id, channel, offset: offset as u64, text };
        match channel {
            Channel::Text | Channel::Reasoning => {
                self.session.audience.publish(Event::delta(self.session.id.clone(), delta));
            }
            // Nobody waits for them: they need not be faster than the fact that starts the call.
            Channel::ToolInput | Channel::ToolOutput => {
                self.session.log.publish(EventBody::Delta(delta));
            }
        }
        if ahead >= FLUSH_BYTES {
            self.flush(false)?;
            if ahead >= BEHIND_BYTES
                && let Some(pending) = self.pending.take()
            {
                pending.on_disk().await?;
            }
        } else if ahead > 0 && self.flush_at.is_none() {
            self.flush_at = Some(Instant::now() + FLUSH_AFTER);
        }
        Ok(())
    }

    /// Commits grown text. Unless `now`, it is left for later while a commit is under way.
    pub(super) fn flush(&mut self, now: bool) -> Result<(), Failure> {
        if let Some(pending) = &mut self.pending {
            match pending.outcome() {
                Some(outcome) => outcome.clone()?,
                None if !now => return Ok(()),
                None => {}
            }
        }
        self.flush_at = None;
        self.start_calls();
        let mut facts = Vec::new();
        for open in &mut self.open {
            let Some(channel) = open.channel else { continue };
            let Some(text) = open.item.channel_text(channel) else { continue };
            if open.started && text.len() > open.committed {
                let grown = text[open.committed..].to_owned();
                let offset = open.committed as u64;
                open.committed = text.len();
                facts.push(Fact::ItemGrew { item: open.item.id, channel, offset, text: grown });
            }
        }
        if !facts.is_empty() {
            self.pending = Some(self.session.commit(facts));
        }
        Ok(())
    }

    /// What comes later in an answer is after its calls.
    fn start_calls(&mut self) {
        for open in &mut self.open {
            start_call(self.session, open);
        }
    }

    /// An item is whole. Calls stay open in the journal until they ran.
    fn end(&mut self, mut open: OpenBlock) {
        match &mut open.item.kind {
            ItemKind::AgentMessage { text, .. } if text.is_empty() => return,
            ItemKind::Reasoning { text, provider, .. } if text.is_empty() && provider.is_none() => return,
            ItemKind::Reasoning { millis, .. } => *millis = open.since.elapsed().as_millis() as u64,
            ItemKind::UserMessage { .. }
            | ItemKind::AgentMessage { .. }
            | ItemKind::ToolCall(_)
            | ItemKind::Citation { .. }
            | ItemKind::Compaction { .. }
            | ItemKind::Command { .. }
            | ItemKind::SystemText { .. }
            | ItemKind::Hook(_)
            | ItemKind::Note(_)
            | ItemKind::Flag { .. } => {}
        }
        self.is_empty = false;
        start_call(self.session, &mut open);
        if matches!(open.item.kind, ItemKind::ToolCall(_)) {
            self.calls.push(open.item);
        } else {
            self.session.commit(vec![Fact::ItemEnded { item: open.item }]);
        }
    }

    async fn commit(&self, facts: Vec<Fact>) -> Result<(), Failure> {
        self.session.commit(facts).on_disk().await
    }

    fn show_generating(&mut self) {
        if !self.generating {
            self.generating = true;
            self.session.show_progress("Generating");
        }
    }

    /// An answer broke off within a call of the carrier.
    fn end_carried(&mut self, carried: CarriedCall) {
        let (kind, text) = carried.into_call();
        let (_, kind) = self.kind_of(kind);
        let mut item = self.session.new_item(self.position.turn, self.position.step, kind);
        self.session.commit(vec![Fact::ItemStarted { item: item.clone() }]);
        if let Some(whole) = item.channel_text_mut(Channel::ToolInput) {
            *whole = text;
        }
        self.is_empty = false;
        self.calls.push(item);
    }

    pub(super) fn finish(mut self, end: AnswerEnd) -> Answer {
        let cut = !matches!(end, AnswerEnd::Model(ref reason) if !matches!(reason, StopReason::Cut { .. }));
        for mut open in std::mem::take(&mut self.open) {
            if cut && let ItemKind::AgentMessage { interrupted, .. } = &mut open.item.kind {
                *interrupted = true;
            }
            self.end(open);
        }
        for carried in std::mem::take(&mut self.carried) {
            self.end_carried(carried);
        }
        self.calls.sort_by_key(|item| item.id);
        let (calls, is_empty, tokens, images_refused) =
            (self.calls, self.is_empty, self.tokens, self.images_refused);
        Answer { calls, is_empty, tokens, images_refused, end }
    }
}

/// Shows a call that is not shown yet, and its arguments, which follow it through the journal.
fn start_call(session: &Session, open: &mut OpenBlock) {
    if open.started || open.channel != Some(Channel::ToolInput) {
        return;
    }
    open.started = true;
    let (item, channel) = (open.item.id, Channel::ToolInput);
    let Some(text) = open.item.channel_text_mut(channel).map(std::mem::take) else { return };
    session.commit(vec![Fact::ItemStarted { item: open.item.clone() }]);
    if let Some(whole) = open.item.channel_text_mut(channel) {
        whole.clone_from(&text);
    }
    let mut from = 0;
    for to in std::mem::take(&mut open.pieces) {
        let delta = ItemDelta { item, channel, offset: from as u64, text: text[from..to].to_owned() };
        from = to;
        session.log.publish(EventBody::Delta(delta));
    }
}

impl CarriedCall {
    /// The call of the tool that it means, and its arguments. One that means no tool stays what it is.
    fn into_call(self) -> (BlockKind, String) {
        let Self { call_id, text, .. } = self;
        let (name, text) = carried_call(&text).unwrap_or_else(|| (format!("eca__{CARRIER}"), text));
        (BlockKind::ToolCall { call_id, name }, text)
    }
}

fn set_provider(item: &mut Item, block: Option<domain::item::ProviderBlock>) {
    match &mut item.kind {
        ItemKind::AgentMessage { provider, .. } | ItemKind::Reasoning { provider, .. } => *provider = block,
        ItemKind::ToolCall(call) => call.provider = block,
        ItemKind::UserMessage { .. }
        | ItemKind::Citation { .. }
        | ItemKind::Compaction { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. }
        | ItemKind::Hook(_)
        | ItemKind::Note(_)
        | ItemKind::Flag { .. } => {}
    }
}
