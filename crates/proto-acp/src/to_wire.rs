//! From events to session updates: the projection. No IO; replayed and live chats go through it alike.
//!
//! Invariants: each byte of a streamed text is sent once, whether it came as a delta, as a fact or only at the end;
//! `tool_call` precedes every `tool_call_update` of a call; every turn ends with exactly one [`Effect::Ended`]; text that the
//! client itself sent is not sent back to it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::command::{Catalog, SessionSettings};
use domain::event::{Channel, EventBody, Fact, Level, Notice, Recorded, SessionUsage};
use domain::item::{Item, ItemKind, Part};
use domain::model::Tokens;
use domain::tool_call::{ToolCall, ToolState};
use domain::{Ask, AskId, AskKind, Event, ItemId, SessionId, TextCursor, TurnId};

use crate::turn_ends::{outcome_text, stop_reason};
use crate::wire::{ClientFeatures, Effect, acp};
use crate::{asks, options, terminals, tool_calls, v2};

/// How much of a running tool's output is shown while it runs: the end of it.
const LIVE: usize = 4096;

/// What the client of one session has been sent.
pub(crate) struct Projection {
    session: SessionId,
    features: ClientFeatures,
    pub catalog: Arc<Catalog>,
    pub settings: SessionSettings,
    items: HashMap<ItemId, Shown>,
    /// Turns whose message this client typed.
    own: HashSet<TurnId>,
    plan: Option<acp::Plan>,
    /// Asks about calls that are not shown as waiting yet.
    early: HashMap<AskId, Ask>,
    /// Tokens of all turns.
    usage: Option<Tokens>,
    /// Delays that were shown, for the ids of their messages.
    delays: u64,
    /// The newest item of a turn that is over. Its facts have shown its text; parts of it may still come after them.
    newest_over: u64,
}

#[derive(Default)]
struct Shown {
    /// Of the streamed text.
    cursor: TextCursor,
    over: bool,
    /// The fields of a tool call that the client has.
    call: Option<acp::ToolCallUpdateFields>,
    /// The ask that a call waits for.
    waits: Option<AskId>,
    /// The end of a running tool's output.
    live: String,
    live_cursor: TextCursor,
    terminal: Option<acp::TerminalId>,
}

impl Projection {
    pub(crate) fn new(
        session: SessionId,
        features: ClientFeatures,
        catalog: Arc<Catalog>,
        settings: SessionSettings,
    ) -> Self {
        let (items, own, early) = (HashMap::new(), HashSet::new(), HashMap::new());
        let (plan, usage, delays, newest_over) = (None, None, 0, 0);
        Self { session, features, catalog, settings, items, own, plan, early, usage, delays, newest_over }
    }

    /// The message of this turn came from this client, which shows it already.
    pub(crate) fn mark_own_turn(&mut self, turn: TurnId) {
        self.own.insert(turn);
    }

    pub(crate) fn modes(&self) -> acp::SessionModeState {
        options::modes(&self.catalog, &self.settings)
    }

    pub(crate) fn options(&self) -> Vec<acp::SessionConfigOption> {
        options::options(&self.catalog, &self.settings, self.features.boolean_options)
    }

    /// Takes over a changed catalog.
    pub(crate) fn update_catalog(&mut self, catalog: Arc<Catalog>) -> Option<Effect> {
        let before = self.options();
        self.catalog = catalog;
        let now = self.options();
        (now != before)
            .then(|| update(acp::SessionUpdate::ConfigOptionUpdate(acp::ConfigOptionUpdate::new(now))))
    }

    /// A call runs in a terminal of the client, which shows the output itself.
    pub(crate) fn show_terminal(&mut self, item: ItemId, terminal: acp::TerminalId) -> Option<Effect> {
        let shown = self.items.get_mut(&item)?;
        let content = vec![acp::ToolCallContent::Terminal(acp::Terminal::new(terminal.clone()))];
        shown.terminal = Some(terminal);
        shown.call.as_mut()?.content = Some(content.clone());
        Some(call_update(item, acp::ToolCallUpdateFields::new().content(content)))
    }

    pub(crate) fn project(&mut self, event: &Event) -> Vec<Effect> {
        let mut out = Vec::new();
        match &event.body {
            EventBody::Delta(delta)
                if delta.item.0 <= self.newest_over && !self.items.contains_key(&delta.item) => {}
            EventBody::Delta(delta) => {
                self.append_text(delta.item, delta.channel, delta.offset, &delta.text, &mut out);
            }
            EventBody::Fact(recorded) => self.fact(recorded, &mut out),
            EventBody::Lost { failure } => out.push(Effect::Lost(failure.clone())),
            EventBody::Progress { text } => self.delayed(text, &mut out),
            // `serve` asks for changed lists.
            EventBody::Catalog(_) => {}
        }
        out
    }

    /// The protocol has no status line. A state ("Generating") is a word or two and is not shown; a sentence is about
    /// a delay, a retry for instance, and every client shows thoughts.
    fn delayed(&mut self, text: &str, out: &mut Vec<Effect>) {
        if !text.ends_with('.') {
            return;
        }
        let notice = Notice { level: Level::Info, text: text.to_owned() };
        if self.features.notices {
            return out.push(notice_effect(&notice, self.features));
        }
        self.delays += 1;
        let chunk = chunk(format!("delay-{}", self.delays), text_block(format!("{text}\n")));
        out.push(update(acp::SessionUpdate::AgentThoughtChunk(chunk)));
    }

    /// The tokens of all turns so far, for the response to a prompt.
    pub(crate) fn usage(&self) -> Option<acp::Usage> {
        let total = self.usage.as_ref()?;
        let usage = acp::Usage::new(total.all(), total.input, total.output)
            .cached_read_tokens(total.cache_read)
            .cached_write_tokens(total.cache_write);
        Some(if total.reasoning > 0 { usage.thought_tokens(total.reasoning) } else { usage })
    }

    fn fact(&mut self, recorded: &Recorded, out: &mut Vec<Effect>) {
        match &recorded.fact {
            Fact::SessionChanged { change } => self.settings_changed(change, recorded.at, out),
            Fact::TurnEnded { turn, outcome } => {
                let newest = self.items.keys().map(|id| id.0).max().unwrap_or_default();
                self.newest_over = self.newest_over.max(newest);
                self.items.retain(|_, shown| !shown.over);
                self.own.remove(turn);
                self.early.clear();
                out.extend(outcome_text(outcome).map(|text| agent_text(format!("{turn}-end"), text)));
                out.push(Effect::Ended(*turn, stop_reason(outcome)));
            }
            Fact::ItemStarted { item } | Fact::ItemChanged { item } => self.item(item, false, out),
            Fact::ItemEnded { item } => self.item(item, true, out),
            Fact::ItemGrew { item, channel, offset, text } => {
                self.append_text(*item, *channel, *offset, text, out)
            }
            Fact::AskRaised { ask } => self.handle_ask(ask, out),
            Fact::AskSettled { id, .. } => {
                self.early.remove(id);
                out.push(Effect::Settled(*id));
            }
            Fact::UsageChanged { usage } => {
                self.usage = Some(usage.total);
                out.extend(usage_update(usage));
            }
            Fact::Notice { notice: it } if it.text.is_empty() => {}
            Fact::Notice { notice: it } => out.push(notice_effect(it, self.features)),
            Fact::HistoryReplaced { .. } => {
                let text = "Another window removed earlier messages of this chat.\n".to_owned();
                out.push(agent_text(format!("fact-{}", recorded.number), text));
            }
            Fact::TurnStarted { .. } => out.push(Effect::Started),
            Fact::SessionOpened(_) | Fact::TaintChanged { .. } => {}
        }
    }

    /// Sends the settings that the client does not know; those it set itself are in `settings` already.
    fn settings_changed(&mut self, change: &SessionSettings, at: u64, out: &mut Vec<Effect>) {
        let before = self.settings.clone();
        self.settings.apply(change);
        let SessionSettings { title, behavior, model, variant, trust } = &self.settings;
        if *title != before.title {
            out.push(info(title.clone(), at));
        }
        if *behavior != before.behavior {
            let mode = self.modes().current_mode_id;
            out.push(update(acp::SessionUpdate::CurrentModeUpdate(acp::CurrentModeUpdate::new(mode))));
        }
        if (behavior, model, variant, trust)
            != (&before.behavior, &before.model, &before.variant, &before.trust)
        {
            let options = acp::ConfigOptionUpdate::new(self.options());
            out.push(update(acp::SessionUpdate::ConfigOptionUpdate(options)));
        }
    }

    fn item(&mut self, item: &Item, ended: bool, out: &mut Vec<Effect>) {
        let id = item.id;
        match &item.kind {
            ItemKind::UserMessage { text, parts } if ended => self.user_message(item, text, parts, out),
            ItemKind::Command { text } if ended => self.user_message(item, text, &[], out),
            ItemKind::AgentMessage { text, .. } => self.message(id, Channel::Text, text, ended, out),
            ItemKind::Reasoning { text, .. } => self.message(id, Channel::Reasoning, text, ended, out),
            ItemKind::ToolCall(call) => self.call(id, call, ended, out),
            ItemKind::Citation { title, url } if ended => {
                out.push(agent_text(id.to_string(), format!("\n[{title}]({url})\n")));
            }
            ItemKind::Compaction { summary, .. } => {
                out.extend(compaction(id, summary, ended, self.features));
            }
            ItemKind::SystemText { text } if ended => {
                out.push(agent_text(id.to_string(), format!("{text}\n")))
            }
            ItemKind::Note(note) if ended => {
                out.push(agent_text(id.to_string(), format!("\n{}\n", note.text)));
            }
            ItemKind::Hook(run) if ended && !(run.output.is_empty() && run.error.is_empty()) => {
                let text = [run.output.as_str(), run.error.as_str()].join("\n");
                out.push(agent_text(id.to_string(), format!("\nHook {}: {}\n", run.name, text.trim())));
            }
            ItemKind::UserMessage { .. }
            | ItemKind::Command { .. }
            | ItemKind::Citation { .. }
            | ItemKind::SystemText { .. }
            | ItemKind::Hook(_)
            | ItemKind::Note(_)
            | ItemKind::Flag { .. } => {}
        }
    }

    /// A message of the user's, unless the client typed it and shows it already.
    fn user_message(&self, item: &Item, text: &str, parts: &[Part], out: &mut Vec<Effect>) {
        if item.step == 0 && self.own.contains(&item.turn) {
            return;
        }
        let images = parts.iter().filter_map(|part| match part {
            Part::Image { mime, data } => {
                Some(acp::ContentBlock::Image(acp::ImageContent::new(data.to_string(), mime.clone())))
            }
            Part::Text { .. } => None,
        });
        let blocks = std::iter::once(text_block(text.to_owned())).chain(images);
        if self.features.version_two {
            let message = v2::message("user_message", item.id, blocks.collect());
            return out.push(Effect::VersionTwo(message));
        }
        let say = |block| acp::SessionUpdate::UserMessageChunk(chunk(item.id.to_string(), block));
        out.extend(blocks.map(|block| update(say(block))));
    }

    /// A text of the model, which grows until it has ended. Version 2 gets one that has not streamed as a whole.
    fn message(&mut self, id: ItemId, channel: Channel, text: &str, ended: bool, out: &mut Vec<Effect>) {
        let shown = self.items.entry(id).or_default();
        let is_whole = ended && !shown.over && shown.cursor == TextCursor::default() && !text.is_empty();
        if self.features.version_two && is_whole {
            let kind = if channel == Channel::Text { "agent_message" } else { "agent_thought" };
            out.push(Effect::VersionTwo(v2::message(kind, id, vec![text_block(text.to_owned())])));
        } else {
            self.append_text(id, channel, 0, text, out);
        }
        if ended {
            self.items.entry(id).or_default().over = true;
        }
    }

    /// `text` is at byte `offset` of the item's channel; sends the part that the client lacks.
    fn append_text(&mut self, id: ItemId, channel: Channel, offset: u64, text: &str, out: &mut Vec<Effect>) {
        let shown = self.items.entry(id).or_default();
        if shown.over {
            return;
        }
        let wrap = match channel {
            Channel::Text => acp::SessionUpdate::AgentMessageChunk,
            Channel::Reasoning => acp::SessionUpdate::AgentThoughtChunk,
            Channel::ToolOutput if self.features.version_two && shown.terminal.is_some() => {
                let rest = shown.live_cursor.advance(offset, text);
                return out.extend(rest.map(|rest| Effect::VersionTwo(terminals::output(id, rest))));
            }
            Channel::ToolOutput => return out.extend(live_output(id, shown, offset, text)),
            // The input of a call is shown when it is whole.
            Channel::ToolInput => return,
        };
        let Some(rest) = shown.cursor.advance(offset, text) else { return };
        out.push(update(wrap(chunk(id.to_string(), text_block(rest.to_owned())))));
    }

    fn call(&mut self, id: ItemId, call: &ToolCall, ended: bool, out: &mut Vec<Effect>) {
        let shown = self.items.entry(id).or_default();
        if shown.over {
            return;
        }
        shown.over = ended;
        let is_version_two = self.features.version_two;
        if is_version_two && (shown.terminal.is_some() || terminals::has_terminal(call)) {
            follow_terminal(id, call, shown, ended, out);
        }
        let mut now = tool_calls::fields(call, shown.terminal.as_ref(), is_version_two);
        // Version 2 has a status of its own for it.
        if is_version_two && matches!(call.state, ToolState::Stopped { .. }) {
            now.status = None;
        }
        let is_new_state = shown.call.as_ref().is_none_or(|before| before.status != now.status);
        if call.state == ToolState::Running && !shown.live.is_empty() {
            now.content = Some(tool_calls::live_content(&shown.live));
        }
        match shown.call.replace(now.clone()) {
            None => out.push(update(acp::SessionUpdate::ToolCall(tool_calls::first(id, now)))),
            Some(before) => {
                let content = now.content.clone();
                let fields = tool_calls::changed(&before, now).map(|mut fields| {
                    // Clients replace the live output by the content of the last update.
                    if ended {
                        fields.content = content;
                    }
                    fields
                });
                out.extend(fields.map(|fields| call_update(id, fields)));
            }
        }
        if is_version_two && is_new_state {
            out.extend(v2::call_state(id, call).map(Effect::VersionTwo));
        }
        if let ToolState::Waiting { ask } = &call.state {
            shown.waits = Some(*ask);
            if let Some(ask) = self.early.remove(ask) {
                self.ask(&ask, out);
            }
        }
        if let Some(plan) = tool_calls::plan_of(call) {
            self.plan(plan, out);
        }
    }

    fn plan(&mut self, plan: acp::Plan, out: &mut Vec<Effect>) {
        if self.plan.as_ref() != Some(&plan) {
            self.plan = Some(plan.clone());
            out.push(update(acp::SessionUpdate::Plan(plan)));
        }
    }

    /// The client shows the waiting call first, then the question about it.
    fn handle_ask(&mut self, ask: &Ask, out: &mut Vec<Effect>) {
        let shown = ask.item.and_then(|item| self.items.get(&item));
        if shown.is_some_and(|shown| shown.call.is_some() && shown.waits != Some(ask.id))
            && matches!(ask.kind, AskKind::Approval { .. })
        {
            self.early.insert(ask.id, ask.clone());
        } else {
            self.ask(ask, out);
        }
    }

    fn ask(&self, ask: &Ask, out: &mut Vec<Effect>) {
        let fields = ask.item.and_then(|item| self.items.get(&item)?.call.clone());
        match asks::question(&self.session, ask, fields, self.features.addresses) {
            Ok(question) => out.push(Effect::Ask(ask.id, question)),
            Err(failure) => {
                tracing::warn!(%failure, "an ask cannot be put to the client");
                out.push(Effect::Decline(ask.id));
            }
        }
    }
}

/// An update of state; a client that loads a session gets the state once, after the contents.
pub(crate) fn is_state(out: &Effect) -> bool {
    matches!(
        out,
        Effect::Update(
            acp::SessionUpdate::CurrentModeUpdate(_)
                | acp::SessionUpdate::ConfigOptionUpdate(_)
                | acp::SessionUpdate::SessionInfoUpdate(_)
                | acp::SessionUpdate::UsageUpdate(_)
                | acp::SessionUpdate::Notice(_)
        )
    )
}

/// The title and the time of the last change.
pub(crate) fn info(title: Option<String>, at: u64) -> Effect {
    let mut info = acp::SessionInfoUpdate::new().updated_at(time(at));
    if let Some(title) = title {
        info = info.title(title);
    }
    update(acp::SessionUpdate::SessionInfoUpdate(info))
}

/// ISO 8601.
pub(crate) fn time(millis: u64) -> Option<String> {
    let millis = i64::try_from(millis).ok()?;
    jiff::Timestamp::from_millisecond(millis).ok().map(|time| time.to_string())
}

pub(crate) fn usage_update(usage: &SessionUsage) -> Option<Effect> {
    let size = usage.context_limit?;
    let cost = usage.session_cost.filter(|cost| cost.is_finite()).map(|cost| acp::Cost::new(cost, "USD"));
    Some(update(acp::SessionUpdate::UsageUpdate(acp::UsageUpdate::new(usage.last.all(), size).cost(cost))))
}

/// A client without notices gets them as text of the chat.
pub(crate) fn notice_effect(notice: &Notice, features: ClientFeatures) -> Effect {
    let severity = match notice.level {
        Level::Info => acp::NoticeSeverity::Info,
        Level::Warning => acp::NoticeSeverity::Warning,
        Level::Error => acp::NoticeSeverity::Error,
    };
    if features.notices {
        return update(acp::SessionUpdate::Notice(acp::Notice::new(severity, notice.text.clone())));
    }
    agent_text("notice".to_owned(), format!("{}\n", notice.text))
}

/// The terminal of a call: it appears, gets what it lacks of the output when the call ends, and ends.
fn follow_terminal(id: ItemId, call: &ToolCall, shown: &mut Shown, ended: bool, out: &mut Vec<Effect>) {
    if shown.terminal.is_none() {
        shown.terminal = Some(acp::TerminalId::new(id.to_string()));
        out.push(Effect::VersionTwo(terminals::begin(id, call)));
    }
    if ended {
        let rest = shown.live_cursor.advance(0, &call.live_output);
        out.extend(rest.map(|rest| Effect::VersionTwo(terminals::output(id, rest))));
        out.push(Effect::VersionTwo(terminals::end(id, call)));
    }
}

/// Stands for live output that this connection has missed.
const GAP: &str = "[…]\n";

fn live_output(id: ItemId, shown: &mut Shown, offset: u64, text: &str) -> Option<Effect> {
    // A terminal of the client shows it already; output of an unknown call has no place.
    if shown.terminal.is_some() || shown.call.is_none() {
        return None;
    }
    // Only the end is shown, so text that was lost is not missed; what stood before it does not seem to go on.
    if shown.live_cursor.skip_to(offset) {
        shown.live = GAP.to_owned();
    }
    let rest = shown.live_cursor.advance(offset, text)?;
    shown.live.push_str(rest);
    if shown.live.len() > LIVE {
        let start = shown.live.ceil_char_boundary(shown.live.len() - LIVE);
        shown.live.drain(..start);
    }
    let content = tool_calls::live_content(&shown.live);
    if let Some(call) = &mut shown.call {
        call.content = Some(content.clone());
    }
    Some(call_update(id, acp::ToolCallUpdateFields::new().content(content)))
}

fn update(update: acp::SessionUpdate) -> Effect {
    Effect::Update(update)
}

fn call_update(id: ItemId, fields: acp::ToolCallUpdateFields) -> Effect {
    update(acp::SessionUpdate::ToolCallUpdate(acp::ToolCallUpdate::new(id.to_string(), fields)))
}

fn chunk(message: String, content: acp::ContentBlock) -> acp::ContentChunk {
    acp::ContentChunk::new(content).message_id(acp::MessageId::new(message))
}

fn text_block(text: String) -> acp::ContentBlock {
    acp::ContentBlock::Text(acp::TextContent::new(text))
}

fn agent_text(message: String, text: String) -> Effect {
    update(acp::SessionUpdate::AgentMessageChunk(chunk(message, text_block(text))))
}

fn compaction(id: ItemId, summary: &str, ended: bool, features: ClientFeatures) -> Option<Effect> {
    if !features.compaction {
        let text = "Earlier messages are now represented by a summary.\n".to_owned();
        return ended.then(|| agent_text(id.to_string(), text));
    }
    let status = if ended { acp::CompactionStatus::Completed } else { acp::CompactionStatus::InProgress };
    let mut it = acp::CompactionUpdate::new(id.to_string(), status);
    if ended {
        it = it.summary(vec![text_block(summary.to_owned())]);
    }
    Some(update(acp::SessionUpdate::CompactionUpdate(it)))
}
