//! From events to the contents of the published protocol: the projection. No IO; replayed and live chats go through it
//! alike.
//!
//! Invariants: each byte of a streamed text is sent once, whether it came as a delta, as a fact or only at the end;
//! `toolCallPrepare` precedes `toolCallRun`, `reasonStarted` precedes `reasonText`; a title never precedes the user's
//! text; every turn ends with progress `finished`.

use std::borrow::Cow;
use std::collections::HashMap;

use domain::event::{Channel, ContextUse, EventBody, Fact, Level, Notice, SessionUsage};
use domain::item::{HookRun, Item, ItemKind, Part};
use domain::tool_call::{ToolCall, ToolState};
use domain::{AskId, AskKind, Event, Failure, ItemId, Outcome, TextCursor, visible_json};

use crate::call_ids::CallIds;
use crate::compaction;
use crate::dialect_interface::Projection;
use crate::selection;
use crate::tool_calls::{self, CallName};
use crate::wire::ChatId;
use crate::wire::contents::{
    Content, ContentReceived, ContextBreakdown, ContextCategory, Role, TokenLimits, Usage,
};
use crate::wire::notifications::{Outbound, ShowMessage, StatusChanged};

/// What the client of one chat has been sent.
#[derive(Default)]
pub(crate) struct PublishedProjection {
    items: HashMap<ItemId, SentItem>,
    /// Approvals that wait, by the call they are about.
    asks: HashMap<ItemId, AskId>,
    call_ids: CallIds,
    has_user_text: bool,
    /// The turn is a command of the user, and whether it is the one that compacts the chat.
    is_command: bool,
    is_compacting: bool,
    /// A title that waits for the user's text.
    held_title: Option<String>,
    /// The newest item of a turn that is over. Its facts have shown its text; parts of it may still come after them.
    newest_over: u64,
}

#[derive(Default)]
struct SentItem {
    /// Of the streamed text.
    cursor: TextCursor,
    phase: Phase,
    /// For the argument deltas of a tool call.
    call: Option<CallName>,
}

/// How far a tool call or a reasoning has been sent.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Unseen,
    Started,
    Run,
    Running,
    Over,
}

/// The notifications of one event.
struct Sink<'a> {
    chat: ChatId<'a>,
    out: Vec<Outbound<'a>>,
}

impl<'a> Sink<'a> {
    fn push(&mut self, role: Role, content: Content<'a>) {
        let (chat_id, parent_chat_id) = (self.chat, None);
        self.out.push(Outbound::Content(ContentReceived { chat_id, parent_chat_id, role, content }));
    }

    fn system_text(&mut self, text: String) {
        self.push(Role::System, Content::Text { text: Cow::Owned(text), content_id: None });
    }

    fn progress(&mut self, text: Cow<'a, str>) {
        self.push(Role::System, Content::Progress { state: "running", text: Some(text) });
    }

    fn status(&mut self, status: &'static str) {
        self.out.push(Outbound::Status(StatusChanged { chat_id: self.chat.to_key(), status }));
    }

    /// The end of every turn, in both vocabularies.
    fn finished(&mut self) {
        self.push(Role::System, Content::Progress { state: "finished", text: None });
        self.status("idle");
    }
}

impl Projection for PublishedProjection {
    fn project<'a>(&mut self, chat: ChatId<'a>, event: &'a Event) -> Vec<Outbound<'a>> {
        let mut sink = Sink { chat, out: Vec::new() };
        match &event.body {
            EventBody::Delta(delta)
                if delta.item.0 <= self.newest_over && !self.items.contains_key(&delta.item) => {}
            EventBody::Delta(delta) => {
                self.append_text(delta.item, delta.channel, delta.offset, &delta.text, &mut sink);
            }
            EventBody::Fact(recorded) => self.project_fact(&recorded.fact, &mut sink),
            EventBody::Progress { text } => sink.progress(Cow::Borrowed(text)),
            EventBody::Lost { failure } => {
                sink.system_text(format!("\n{failure}\n"));
                sink.finished();
            }
            EventBody::Catalog(_) => {}
        }
        sink.out
    }

    fn ask_of(&self, call: &str) -> Option<AskId> {
        self.asks.get(&self.call_ids.find(call)?).copied()
    }

    fn call_id(&self, call: ItemId) -> String {
        self.call_ids.of(call)
    }
}

impl PublishedProjection {
    fn project_fact<'a>(&mut self, fact: &'a Fact, sink: &mut Sink<'a>) {
        match fact {
            Fact::SessionChanged { change } => {
                if let Some(title) = &change.title {
                    self.held_title = Some(title.clone());
                }
                if self.has_user_text {
                    self.send_title(sink);
                }
                if self.is_command {
                    let chosen = selection::chosen_by_command(sink.chat, change);
                    sink.out.extend(chosen.map(Outbound::Config));
                }
            }
            Fact::TurnStarted { .. } => sink.status("running"),
            Fact::TurnEnded { outcome, .. } => {
                let newest = self.items.keys().map(|id| id.0).max().unwrap_or_default();
                self.newest_over = self.newest_over.max(newest);
                self.items.retain(|_, sent| sent.phase < Phase::Over);
                self.asks.clear();
                self.send_title(sink);
                if let Some(text) = outcome_text(outcome) {
                    sink.system_text(text);
                }
                sink.finished();
            }
            Fact::ItemStarted { item } | Fact::ItemChanged { item } => self.project_item(item, false, sink),
            Fact::ItemEnded { item } => self.project_item(item, true, sink),
            Fact::ItemGrew { item, channel, offset, text } => {
                self.append_text(*item, *channel, *offset, text, sink);
            }
            Fact::AskRaised { ask } => {
                if let (Some(item), AskKind::Approval { reason, keys }) = (ask.item, &ask.kind) {
                    self.asks.insert(item, ask.id);
                    sink.progress(Cow::Owned(approval_progress(reason, keys)));
                }
            }
            Fact::AskSettled { id, .. } => self.asks.retain(|_, ask| ask != id),
            Fact::UsageChanged { usage } => sink.push(Role::System, Content::Usage(usage_content(usage))),
            Fact::Notice { notice } => sink.out.push(Outbound::Message(message(notice))),
            // The server sends the chat again after a replaced history.
            Fact::HistoryReplaced { .. } | Fact::SessionOpened(_) | Fact::TaintChanged { .. } => {}
        }
    }

    fn send_title(&mut self, sink: &mut Sink<'_>) {
        if let Some(title) = self.held_title.take() {
            sink.push(Role::System, Content::Metadata { title: Cow::Owned(title) });
        }
    }

    fn project_item<'a>(&mut self, item: &'a Item, ended: bool, sink: &mut Sink<'a>) {
        let id = item.id;
        match &item.kind {
            ItemKind::UserMessage { text, .. } | ItemKind::Command { text } if ended => {
                self.project_user_text(item, text, sink);
            }
            ItemKind::AgentMessage { text, .. } => {
                self.append_text(id, Channel::Text, 0, text, sink);
                self.mark_ended(id, ended);
            }
            ItemKind::Reasoning { text, millis, .. } => {
                self.append_text(id, Channel::Reasoning, 0, text, sink);
                if ended && self.phase(id) < Phase::Over {
                    self.start_reasoning(id, sink);
                    let total_time_ms = (*millis).max(1);
                    let finished = Content::ReasonFinished { id: id.to_string(), total_time_ms };
                    sink.push(Role::Assistant, finished);
                }
                self.mark_ended(id, ended);
            }
            ItemKind::ToolCall(call) => self.project_call(id, call, ended, sink),
            ItemKind::Citation { title, url } if ended => {
                sink.push(Role::Assistant, Content::Url { title, url });
            }
            ItemKind::SystemText { text } if ended => sink.system_text(format!("\n{text}\n")),
            ItemKind::Note(note) if ended => sink.system_text(format!("\n{}\n", note.text)),
            ItemKind::Compaction { summary, .. } if ended && self.is_compacting => {
                compaction::contents(id, summary)
                    .into_iter()
                    .for_each(|(role, content)| sink.push(role, content));
            }
            ItemKind::Compaction { .. } if ended => {
                sink.system_text("\nEarlier messages are now represented by a summary.\n".into());
            }
            ItemKind::Hook(run) => self.project_hook(id, run, ended, sink),
            ItemKind::Flag { text } if ended && !text.is_empty() => {
                sink.push(Role::User, Content::Flag { text, content_id: id.to_string() });
            }
            ItemKind::UserMessage { .. }
            | ItemKind::Command { .. }
            | ItemKind::Citation { .. }
            | ItemKind::SystemText { .. }
            | ItemKind::Note(_)
            | ItemKind::Flag { .. }
            | ItemKind::Compaction { .. } => {}
        }
    }

    fn project_user_text<'a>(&mut self, item: &Item, text: &str, sink: &mut Sink<'a>) {
        let shown = Cow::Owned(format!("{text}\n"));
        sink.push(Role::User, Content::Text { text: shown, content_id: Some(item.id.to_string()) });
        self.has_user_text = true;
        self.is_command = matches!(item.kind, ItemKind::Command { .. });
        self.is_compacting = self.is_command && compaction::is_command(text);
        self.send_title(sink);
    }

    fn project_hook<'a>(&mut self, id: ItemId, run: &'a HookRun, ended: bool, sink: &mut Sink<'a>) {
        let sent = self.items.entry(id).or_default();
        if sent.phase == Phase::Unseen {
            sent.phase = Phase::Started;
            let started =
                Content::HookActionStarted { id: id.to_string(), name: &run.name, action_type: "shell" };
            sink.push(Role::System, started);
        }
        if ended && sent.phase < Phase::Over {
            sent.phase = Phase::Over;
            let text = |text: &'a String| Some(text.as_str()).filter(|text| !text.is_empty());
            let finished = Content::HookActionFinished {
                id: id.to_string(),
                name: &run.name,
                action_type: "shell",
                // A client expects a number; a hook that did not end by itself has no code.
                status: run.status.unwrap_or(-1),
                output: text(&run.output),
                error: text(&run.error),
                tool_call_id: run.call.map(|call| self.call_ids.of(call)),
            };
            sink.push(Role::System, finished);
        }
    }

    fn phase(&self, id: ItemId) -> Phase {
        self.items.get(&id).map_or(Phase::Unseen, |sent| sent.phase)
    }

    fn mark_ended(&mut self, id: ItemId, ended: bool) {
        if ended {
            self.items.entry(id).or_default().phase = Phase::Over;
        }
    }

    /// `text` is at byte `offset` of the item's channel; sends the part that the client lacks.
    fn append_text<'a>(
        &mut self,
        id: ItemId,
        channel: Channel,
        offset: u64,
        text: &'a str,
        sink: &mut Sink<'a>,
    ) {
        let sent = self.items.entry(id).or_default();
        // The protocol has no place for a tool's output while it runs.
        if sent.phase == Phase::Over || channel == Channel::ToolOutput {
            return;
        }
        let call = sent.call.as_ref();
        if channel == Channel::ToolInput && call.is_none() {
            return;
        }
        let Some(rest) = sent.cursor.advance(offset, text) else { return };
        let text = Cow::Borrowed(rest);
        let content = match (channel, call) {
            (Channel::ToolInput, Some(call)) => {
                let prepare =
                    Content::ToolCallPrepare { call: call.head(), arguments_text: visible_json(rest) };
                sent.phase = sent.phase.max(Phase::Started);
                prepare
            }
            (Channel::Reasoning, _) => {
                self.start_reasoning(id, sink);
                Content::ReasonText { id: id.to_string(), text }
            }
            (Channel::Text | Channel::ToolInput | Channel::ToolOutput, _) => {
                Content::Text { text, content_id: None }
            }
        };
        sink.push(Role::Assistant, content);
    }

    fn start_reasoning(&mut self, id: ItemId, sink: &mut Sink<'_>) {
        let sent = self.items.entry(id).or_default();
        if sent.phase == Phase::Unseen {
            sent.phase = Phase::Started;
            sink.push(Role::Assistant, Content::ReasonStarted { id: id.to_string() });
        }
    }

    /// A call is shown when it begins, without arguments; each piece of them is a `toolCallPrepare` of its own. A call
    /// that is over its beginning has one with all of them.
    fn project_call<'a>(&mut self, id: ItemId, call: &'a ToolCall, ended: bool, sink: &mut Sink<'a>) {
        let sent = self.items.entry(id).or_default();
        if sent.phase == Phase::Over {
            return;
        }
        let call_id = self.call_ids.assign(id, &call.call_id);
        sent.call.get_or_insert_with(|| CallName::of(call, call_id.clone()));
        let is_preparing = call.state == ToolState::Preparing;
        let text = sent.cursor.advance(0, &call.input_text);
        if sent.phase == Phase::Unseen || (sent.phase == Phase::Started && text.is_some()) {
            sent.phase = Phase::Started;
            let arguments_text = visible_json(text.unwrap_or_default());
            let call = tool_calls::preparing_head(&call_id, call);
            sink.push(Role::Assistant, Content::ToolCallPrepare { call, arguments_text });
        }
        if is_preparing {
            return;
        }
        let arguments = || tool_calls::arguments(call);
        if sent.phase < Phase::Run {
            sent.phase = Phase::Run;
            let (call, manual_approval) = (tool_calls::head(&call_id, call), call.manual_approval);
            sink.push(
                Role::Assistant,
                Content::ToolCallRun { call, arguments: arguments(), manual_approval },
            );
        }
        if matches!(call.state, ToolState::Running | ToolState::Done) && sent.phase < Phase::Running {
            sent.phase = Phase::Running;
            let call = tool_calls::head(&call_id, call);
            sink.push(Role::Assistant, Content::ToolCallRunning { call, arguments: arguments() });
        }
        if !ended {
            return;
        }
        let was_running = sent.phase == Phase::Running;
        sent.phase = Phase::Over;
        sink.push(Role::Assistant, tool_calls::end(&call_id, call, was_running));
        for part in &call.result {
            if let Part::Image { mime, data } = part {
                sink.push(Role::Assistant, Content::Image { media_type: mime, base64: data });
            }
        }
    }
}

/// A prompt that was refused, as contents.
pub(crate) fn failed<'a>(chat: ChatId<'a>, failure: &Failure) -> Vec<Outbound<'a>> {
    let mut sink = Sink { chat, out: Vec::new() };
    sink.system_text(format!("\n{failure}\n"));
    sink.push(Role::System, Content::Progress { state: "finished", text: None });
    sink.out
}

/// A text of Dragoman itself in a chat, outside every turn.
pub(crate) fn system_text(chat: ChatId<'_>, text: String) -> Vec<Outbound<'_>> {
    let mut sink = Sink { chat, out: Vec::new() };
    sink.system_text(text);
    sink.out
}

/// The end of a command that has no turn.
pub(crate) fn finished(chat: ChatId<'_>) -> Vec<Outbound<'_>> {
    let mut sink = Sink { chat, out: Vec::new() };
    sink.finished();
    sink.out
}

pub(crate) fn message(notice: &Notice) -> ShowMessage {
    let kind = match notice.level {
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    ShowMessage { kind, message: notice.text.clone() }
}

/// The text that an outcome adds to the chat.
fn outcome_text(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Done => None,
        Outcome::Stopped => Some("\nStopped.\n".into()),
        Outcome::MaxTokens => Some("\nThe model reached its output limit. Ask it to continue.\n".into()),
        Outcome::MaxSteps => Some("\nStopped: too many steps.\n".into()),
        Outcome::Repeating => Some("\nStopped: the same call over and over.\n".into()),
        Outcome::Refused { reason } => Some(format!("\nThe model refused: {reason}\n")),
        Outcome::Failed { failure } => Some(format!("\n{failure}\n")),
        Outcome::Interrupted => Some("\nThis answer was interrupted.\n".into()),
    }
}

/// Costs are strings: a number breaks a client's mode line.
fn usage_content(usage: &SessionUsage) -> Usage {
    let money = |cost: Option<f64>| {
        cost.map(|cost| format!("{cost:.6}").trim_end_matches('0').trim_end_matches('.').to_owned())
    };
    Usage {
        session_tokens: usage.last.all(),
        last_message_cost: money(usage.last_cost),
        message_cost: money(usage.last_cost),
        session_cost: money(usage.session_cost),
        limit: usage
            .context_limit
            .map(|context| TokenLimits { context, output: usage.output_limit.unwrap_or(0) }),
        context_breakdown: usage.context.map(|context| breakdown(&context, usage.context_limit)),
    }
}

/// The colors of the parts, in the order of [`ContextUse::parts`].
const COLORS: [(&str, &str); 7] = [
    ("#61afef", "🟦"),
    ("#e5c07b", "🟨"),
    ("#c678dd", "🟪"),
    ("#d19a66", "🟧"),
    ("#e06c75", "🟥"),
    ("#a0522d", "🟫"),
    ("#98c379", "🟩"),
];

fn breakdown(context: &ContextUse, limit: Option<u64>) -> ContextBreakdown {
    let parts = context.parts().into_iter().zip(COLORS).filter(|((_, tokens), _)| *tokens > 0);
    let category = |((name, tokens), (color, emoji))| ContextCategory { name, tokens, color, emoji };
    let used_tokens = context.total();
    ContextBreakdown {
        categories: parts.map(category).collect(),
        used_tokens,
        free_tokens: limit.map(|limit| limit.saturating_sub(used_tokens)),
        free_color: "#5c6370",
        free_emoji: "⬜",
        context_limit: limit,
    }
}

/// Why a person is asked, and exactly what an answer for the whole chat would cover: the protocol has no other place.
fn approval_progress(reason: &str, keys: &[String]) -> String {
    let scope = match keys {
        [] => String::new(),
        keys => format!(" Remembering it covers: {}", keys.join(", ")),
    };
    format!("Waiting for approval. {reason}{scope}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::{Answer, Ask, Recorded, SessionId, TurnId};

    use super::*;

    fn event(fact: Fact) -> Event {
        Event::fact(SessionId::new("s"), Arc::new(Recorded { number: 1, at: 0, fact }))
    }

    fn ended(kind: ItemKind) -> Event {
        event(Fact::ItemEnded { item: Item { id: ItemId(1), turn: TurnId(1), step: 0, parent: None, kind } })
    }

    fn contents(event: &Event) -> Vec<String> {
        let sent = PublishedProjection::default().project(ChatId::Text("c"), event);
        let texts = sent.iter().filter_map(|sent| match sent {
            Outbound::Content(it) => Some(serde_json::to_string(&it.content).expect("JSON")),
            Outbound::Draft(_) | Outbound::Status(_) | Outbound::Config(_) | Outbound::Message(_) => None,
        });
        texts.collect()
    }

    #[test]
    fn system_texts_and_named_flags_are_shown() {
        let [text] = &contents(&ended(ItemKind::SystemText { text: "told".to_owned() }))[..] else {
            panic!()
        };
        assert!(text.contains("\\ntold\\n"), "{text}");
        let [flag] = &contents(&ended(ItemKind::Flag { text: "here".to_owned() }))[..] else { panic!() };
        assert!(flag.contains("here"), "{flag}");
        assert!(
            contents(&ended(ItemKind::Flag { text: String::new() })).is_empty(),
            "a flag that was taken away"
        );
    }

    #[test]
    fn a_source_is_shown_once_it_is_whole() {
        let kind = ItemKind::Citation { title: "Title".to_owned(), url: "https://a.example".to_owned() };
        let [source] = &contents(&ended(kind.clone()))[..] else { panic!() };
        assert!(source.contains("https://a.example") && source.contains("Title"), "{source}");
        let item = Item { id: ItemId(1), turn: TurnId(1), step: 0, parent: None, kind };
        assert!(contents(&event(Fact::ItemStarted { item })).is_empty());
    }

    #[test]
    fn a_call_has_its_question_until_it_is_settled() {
        let mut projection = PublishedProjection::default();
        let kind = AskKind::Approval { reason: "why".to_owned(), keys: Vec::new() };
        let ask = Ask { id: AskId(7), turn: TurnId(1), item: Some(ItemId(3)), kind };
        projection.project(ChatId::Text("c"), &event(Fact::AskRaised { ask }));
        assert_eq!(projection.ask_of("item-3"), Some(AskId(7)));
        assert_eq!(projection.ask_of("item-4"), None);
        let settled = Fact::AskSettled { id: AskId(7), answer: Answer::Cancelled };
        projection.project(ChatId::Text("c"), &event(settled));
        assert_eq!(projection.ask_of("item-3"), None);
    }
}
