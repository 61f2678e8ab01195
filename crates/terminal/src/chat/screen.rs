//! The state of the chat screen: events, keys and replies go in, effects come out.
//!
//! Pure: no terminal, no clock, no engine. Invariant: the screen shows only events and replies of the link; a key
//! never waits.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use domain::command::{Catalog, Context, SessionSettings};
use domain::event::{CatalogKind, EventBody, Fact, Level, SessionUsage};
use domain::item::ItemKind;
use domain::taint::Taint;
use domain::tool::ToolServer;
use domain::{Answer, AskId, AskKind, Event, Outcome, SessionId};

use super::allow_rule::AllowRule;
use super::asks::Asks;
use super::bindings::Bindings;
use super::completion::{self, Completion, CompletionKind, Suggestion, Word};
pub use super::effect::{Effect, Update};
use super::input::Input;
use super::intro::Intro;
use super::login_entry::LoginEntry;
use super::look::Look;
use super::outcome;
use super::page::Page;
use super::picker::Picker;
use super::selection::Selection;
use super::theme::Theme;
use super::transcript::Transcript;
use super::vi::Vi;

/// How long the status line shows a sentence.
const FLASH_DURATION: Duration = Duration::from_secs(4);
/// The end of a turn that took this long is worth a notification.
const LONG_TURN: Duration = Duration::from_secs(10);
/// A second Ctrl-C within this time leaves.
pub const LEAVE_WINDOW: Duration = Duration::from_millis(1500);

pub enum Overlay {
    Page(Page),
    Picker(Picker),
    /// An allow rule that Enter writes.
    Rule {
        page: Page,
        ask: AskId,
        rule: AllowRule,
    },
    /// All approvals that wait, which Enter gives.
    AllowAll {
        page: Page,
        asks: Vec<AskId>,
    },
    Login(LoginEntry),
}

pub struct Screen {
    /// The current time, set by the loop.
    pub now: Instant,
    /// The current time in milliseconds since 1970.
    pub clock: u64,
    pub theme: Theme,
    pub look: Look,
    pub roots: Vec<PathBuf>,
    pub intro: Intro,
    pub catalog: Catalog,
    pub servers: Vec<ToolServer>,
    /// Commands that run in the background.
    pub jobs: usize,
    /// Outputs of shell commands for the next prompt.
    pub(super) next_contexts: Vec<Context>,
    /// Images that were pasted so far.
    pub(super) images: usize,
    pub session: Option<SessionId>,
    pub settings: SessionSettings,
    pub usage: SessionUsage,
    /// What the chat has read that could misuse it.
    pub taint: Taint,
    pub held_by: Option<String>,
    /// The process that this window works through, until it is told.
    pub(super) attached_to: Option<String>,
    pub transcript: Transcript,
    pub input: Input,
    pub completion: Option<Completion>,
    pub overlay: Option<Overlay>,
    pub asks: Asks,
    /// When the running turn started.
    pub busy: Option<Instant>,
    pub stopping: bool,
    pub progress: String,
    /// Text that was sent to the running turn and is not part of it yet.
    pub steering: Option<String>,
    /// The running turn does not take it any more: it becomes a prompt when the turn has ended.
    pub(super) is_steering_late: bool,
    flash: Option<(String, Instant)>,
    pub(super) leaving: Option<Instant>,
    /// When Esc was pressed while nothing ran.
    pub(super) escaped: Option<Instant>,
    /// What the mouse marks.
    pub(super) selection: Option<Selection>,
    /// The contexts of the `@words` in the input.
    pub(super) attached: HashMap<String, Context>,
    /// The last query for commands, and whether the engine has this one.
    pub(super) looked_up: Option<(String, bool)>,
    /// Enter was pressed before it was known whether this command exists.
    pub(super) submits: Option<String>,
    effects: Vec<Effect>,
    /// The terminal has the focus; `None` where it does not tell.
    pub focused: Option<bool>,
    /// The user's own keys.
    pub bindings: Bindings,
    pub vi: Vi,
    /// When the progress text appeared, for its countdown.
    pub(super) progress_since: Instant,
    /// A question was raised since the last look.
    asked: bool,
}

impl Screen {
    pub fn new(
        theme: Theme,
        roots: Vec<PathBuf>,
        settings: SessionSettings,
        now: Instant,
        clock: u64,
    ) -> Self {
        Self {
            now,
            clock,
            theme,
            look: Look::default(),
            roots,
            intro: Intro::default(),
            catalog: Catalog::default(),
            servers: Vec::new(),
            jobs: 0,
            next_contexts: Vec::new(),
            images: 0,
            session: None,
            settings,
            usage: SessionUsage::default(),
            taint: Taint::default(),
            held_by: None,
            attached_to: None,
            transcript: Transcript::default(),
            input: Input::default(),
            completion: None,
            overlay: None,
            asks: Asks::default(),
            busy: None,
            stopping: false,
            progress: String::new(),
            steering: None,
            is_steering_late: false,
            flash: None,
            leaving: None,
            escaped: None,
            selection: None,
            attached: HashMap::new(),
            looked_up: None,
            submits: None,
            effects: Vec::new(),
            focused: None,
            bindings: Bindings::default(),
            vi: Vi::default(),
            progress_since: now,
            asked: false,
        }
    }

    /// Takes the effects that were requested since the last call.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    pub(super) fn push_effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Pushes an effect in place of the same kind that still waits: one run of it shows the newest values.
    pub(super) fn push_newest(&mut self, effect: Effect) {
        let kind = std::mem::discriminant(&effect);
        self.effects.retain(|waiting| std::mem::discriminant(waiting) != kind);
        self.effects.push(effect);
    }

    /// Shows a sentence in the status line for a moment.
    pub fn flash(&mut self, text: impl Into<String>) {
        self.flash = Some((text.into(), self.now + FLASH_DURATION));
    }

    pub fn flash_text(&self) -> Option<&str> {
        self.flash.as_ref().filter(|(_, until)| *until > self.now).map(|(text, _)| text.as_str())
    }

    pub(super) fn end_flash(&mut self) {
        self.flash = None;
    }

    /// The next time at which the screen changes by itself.
    pub fn next_wake(&self) -> Option<Instant> {
        let flash = self.flash.as_ref().map(|(_, until)| *until).filter(|until| *until > self.now);
        let spinner = self.busy.filter(|_| !self.look.is_calm).map(|_| self.now + Duration::from_millis(120));
        [flash, spinner, self.asks.arms_at(self.now)].into_iter().flatten().min()
    }

    pub fn model(&self) -> Option<&str> {
        self.settings.model.as_deref().or(self.catalog.default_model.as_deref())
    }

    pub fn behavior(&self) -> &str {
        self.settings.behavior.as_deref().unwrap_or(&self.catalog.default_behavior)
    }

    /// The user is typing.
    pub(super) fn is_typing(&self) -> bool {
        !self.input.is_empty() || self.overlay.is_some()
    }

    pub fn handle_event(&mut self, event: &Event) {
        match &event.body {
            EventBody::Fact(recorded) => self.apply_fact(&recorded.fact),
            EventBody::Delta(delta) => {
                self.transcript.grow(delta.item, delta.channel, delta.offset, &delta.text);
            }
            EventBody::Progress { text } => {
                self.progress.clone_from(text);
                self.progress_since = self.now;
            }
            EventBody::Catalog(CatalogKind::Models) => self.push_effect(Effect::Catalog),
            EventBody::Catalog(CatalogKind::ToolServers) => self.request_servers(),
            EventBody::Catalog(CatalogKind::Jobs) => self.push_effect(Effect::Jobs),
            EventBody::Catalog(CatalogKind::Agents) => {}
            EventBody::Lost { failure } => {
                self.transcript.add_notice(Level::Error, failure.to_string());
                self.is_steering_late = false;
                self.end_turn();
            }
        }
    }

    fn apply_fact(&mut self, fact: &Fact) {
        match fact {
            Fact::SessionOpened(opened) => self.settings.apply(&opened.settings),
            Fact::SessionChanged { change } => self.apply_settings(change),
            Fact::TurnStarted { .. } => {
                self.busy = Some(self.now);
                self.stopping = false;
                self.progress.clear();
            }
            Fact::TurnEnded { outcome, .. } => {
                if let Some((level, text)) = outcome::notice(outcome) {
                    self.transcript.add_notice(level, text);
                }
                // Nothing is sent after a stop that the user did not see coming.
                self.is_steering_late &= *outcome != Outcome::Stopped;
                self.end_turn();
            }
            Fact::ItemStarted { item } | Fact::ItemChanged { item } => {
                self.transcript.put(item.clone(), false);
            }
            Fact::ItemEnded { item } => {
                if let ItemKind::UserMessage { text, .. } = &item.kind {
                    self.forget_steering(text);
                    self.input.remember(text);
                }
                self.transcript.put(item.clone(), true);
            }
            Fact::ItemGrew { item, channel, offset, text } => {
                self.transcript.grow(*item, *channel, *offset, text);
            }
            Fact::HistoryReplaced { keep } => {
                if keep.is_none() {
                    self.taint = Taint::default();
                }
                self.transcript.truncate_after(*keep);
            }
            Fact::AskRaised { ask } => {
                let typing = self.is_typing();
                self.asks.raise(ask.clone(), typing, self.now);
                self.asked = true;
            }
            Fact::AskSettled { id, .. } => {
                let typing = self.is_typing();
                self.asks.settle(*id, typing, self.now);
            }
            Fact::UsageChanged { usage } => self.change_usage(usage),
            Fact::TaintChanged { taint } => self.change_taint(taint),
            Fact::Notice { notice } => self.transcript.add_notice(notice.level, &notice.text),
        }
    }

    fn apply_settings(&mut self, change: &SessionSettings) {
        self.settings.apply(change);
        self.request_status();
    }

    fn change_usage(&mut self, usage: &SessionUsage) {
        self.usage = usage.clone();
        self.request_status();
    }

    /// Explains the word once, where it appears.
    fn change_taint(&mut self, taint: &Taint) {
        if taint.is_tainted() && !self.taint.is_tainted() {
            let text = "This chat is tainted now: it has read text that strangers may have written. It asks before it changes \
                        what runs later, and before it sends anything once it has read secrets (/taint).";
            self.transcript.add_notice(Level::Info, text);
        }
        self.taint = taint.clone();
    }

    /// Called when all recorded facts are applied, so the remaining asks are open. Declines forms that a terminal
    /// cannot show, unless another process writes the chat and answers them.
    pub fn finish_replay(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        self.tell_of_holder();
        if self.held_by.is_some() {
            return;
        }
        self.answer_expected_call();
        if asked && self.asks.first().is_some() {
            self.notify("Dragoman waits for your answer");
        }
        while let Some(ask) = self.asks.unsupported_form() {
            let id = ask.id;
            if let AskKind::Form { text, .. } = &ask.kind {
                let text = format!("{text}\nThis form cannot be shown in a terminal, so it was declined.");
                self.transcript.add_notice(Level::Warning, text);
            }
            let typing = self.is_typing();
            self.asks.settle(id, typing, self.now);
            let answer = Answer::Deny { remember: false, reason: None };
            self.push_effect(Effect::Answer { ask: id, answer });
        }
    }

    /// Calls the user, unless the terminal is known to have the focus.
    fn notify(&mut self, text: &'static str) {
        if self.look.notifies_always || self.focused != Some(true) {
            self.push_effect(Effect::Notify(text));
        }
    }

    fn end_turn(&mut self) {
        if self.busy.take().is_some_and(|since| self.now.duration_since(since) >= LONG_TURN) {
            self.notify("Dragoman has finished");
        }
        self.stopping = false;
        self.progress.clear();
        self.asks.clear();
        self.end_steering();
    }

    /// Puts text that was not sent back into the input.
    pub(super) fn restore_to_input(&mut self, text: &str) {
        let typed = self.input.text().to_owned();
        self.input.set(&if typed.is_empty() { text.to_owned() } else { format!("{text}\n{typed}") });
    }

    pub fn request_servers(&mut self) {
        self.push_effect(Effect::Servers);
    }

    /// Requests suggestions for the word at the cursor.
    pub(super) fn request_completion(&mut self) {
        let word = completion::word_at(self.input.text(), self.input.cursor());
        self.completion.take_if(|_| word.as_ref().is_none_or(|it| it.kind == CompletionKind::Argument));
        let Some(Word { kind, query, .. }) = word else { return };
        self.push_effect(match kind {
            CompletionKind::Command | CompletionKind::Argument => Effect::Commands { query },
            CompletionKind::File => Effect::Contexts { query },
        });
    }

    pub(super) fn accept_suggestion(&mut self) {
        let Some(completion) = self.completion.take() else { return };
        let Some(suggestion) = completion.suggestions.get(completion.chosen).cloned() else { return };
        let folder = suggestion.text.ends_with('/');
        let text = if folder { suggestion.text.clone() } else { format!("{} ", suggestion.text) };
        self.input.replace(completion.word.range, &text);
        self.attach(suggestion);
        if folder {
            self.request_completion();
        }
    }

    pub(super) fn attach_context(&mut self, mark: String, context: Context) {
        self.attached.insert(mark, context);
    }

    pub(super) fn attach(&mut self, suggestion: Suggestion) {
        if let Some(context) = suggestion.context {
            self.attached.insert(suggestion.text, context);
        }
    }

    /// Starts a new chat with the same model and behavior.
    pub fn start_new_session(&mut self) {
        self.session = None;
        self.settings.title = None;
        self.usage = SessionUsage::default();
        self.taint = Taint::default();
        self.held_by = None;
        self.transcript.clear();
        self.asks.clear();
        (self.busy, self.steering, self.is_steering_late) = (None, None, false);
    }
}
