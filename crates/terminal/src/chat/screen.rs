//! Everything the chat shows and how it changes: events, keys and replies in, effects out.
//!
//! Pure: no terminal, no clock, no engine. Invariant: what is shown comes from events and replies of the link alone;
//! a key never waits for anything.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use domain::command::{Catalog, Context, SessionInfo, SessionSettings, SlashCommand, UserPrompt};
use domain::event::{CatalogKind, EventBody, Fact, Level, SessionUsage};
use domain::item::ItemKind;
use domain::store::SessionSummary;
use domain::{Answer, AskId, AskKind, Event, Failure, ItemId, Outcome, SessionId};

use super::asks::Asks;
use super::completion::{self, Completion, Kind, Offer, Word};
use super::input::Input;
use super::picker::Picker;
use super::theme::Theme;
use super::transcript::Transcript;

/// How long a sentence stands in the status line.
const FLASH: Duration = Duration::from_secs(4);
/// A second Esc or Ctrl-C within this leaves.
pub const TWICE: Duration = Duration::from_millis(1500);

/// What the loop must do for the screen.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// To the open chat, or to a new one.
    Prompt(Box<UserPrompt>),
    Steer(String),
    TakeBack,
    Cancel,
    Answer {
        ask: AskId,
        answer: Answer,
    },
    Configure(SessionSettings),
    Load(SessionId),
    Fork(Option<ItemId>),
    New,
    ListChats,
    Commands {
        query: String,
    },
    Contexts {
        query: String,
    },
    Catalog,
    Edit(String),
    Suspend,
    Leave,
}

/// What came of it.
#[derive(Debug)]
pub enum Update {
    Catalog(Catalog),
    /// This chat is shown from now on.
    Opened(Box<SessionInfo>),
    Commands {
        query: String,
        found: Vec<SlashCommand>,
    },
    Contexts {
        query: String,
        found: Vec<Context>,
    },
    Chats(Vec<SessionSummary>),
    Edited(Result<String, Failure>),
    /// Nothing ran any more: it is a prompt of its own.
    NotSteered(String),
    /// The prompt was taken: this chat is ours to write.
    Sent,
    /// The prompt was not taken; its text goes back to the line.
    NotSent(String, Failure),
    Failed(Failure),
}

pub enum Overlay {
    Help,
    Picker(Picker),
}

pub struct Screen {
    /// The time of what is happening now, set by the loop.
    pub now: Instant,
    /// The same in milliseconds since 1970.
    pub clock: u64,
    pub theme: Theme,
    pub roots: Vec<PathBuf>,
    pub catalog: Catalog,
    pub session: Option<SessionId>,
    pub settings: SessionSettings,
    pub usage: SessionUsage,
    pub held_by: Option<String>,
    pub transcript: Transcript,
    pub input: Input,
    pub completion: Option<Completion>,
    pub overlay: Option<Overlay>,
    pub asks: Asks,
    /// Since when a turn runs.
    pub busy: Option<Instant>,
    pub stopping: bool,
    pub progress: String,
    /// Said to the running turn, not taken up yet.
    pub steering: Option<String>,
    flash: Option<(String, Instant)>,
    pub(super) leaving: Option<Instant>,
    /// What `@word`s in the line stand for.
    attached: HashMap<String, Context>,
    /// A query no command was found for.
    pub(super) unknown_command: Option<String>,
    effects: Vec<Effect>,
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
            roots,
            catalog: Catalog::default(),
            session: None,
            settings,
            usage: SessionUsage::default(),
            held_by: None,
            transcript: Transcript::default(),
            input: Input::default(),
            completion: None,
            overlay: None,
            asks: Asks::default(),
            busy: None,
            stopping: false,
            progress: String::new(),
            steering: None,
            flash: None,
            leaving: None,
            attached: HashMap::new(),
            unknown_command: None,
            effects: Vec::new(),
        }
    }

    /// What there is to do since it was asked last.
    pub fn take_deeds(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    pub(super) fn ask_for(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// A sentence for a moment.
    pub fn flash(&mut self, text: impl Into<String>) {
        self.flash = Some((text.into(), self.now + FLASH));
    }

    pub fn flash_text(&self) -> Option<&str> {
        self.flash.as_ref().filter(|(_, until)| *until > self.now).map(|(text, _)| text.as_str())
    }

    pub(super) fn end_flash(&mut self) {
        self.flash = None;
    }

    /// When the screen changes by itself.
    pub fn wakes_at(&self) -> Option<Instant> {
        let flash = self.flash.as_ref().map(|(_, until)| *until).filter(|until| *until > self.now);
        let spinner = self.busy.map(|_| self.now + Duration::from_millis(120));
        [flash, spinner, self.asks.arms_at(self.now)].into_iter().flatten().min()
    }

    pub fn model(&self) -> Option<&str> {
        self.settings.model.as_deref().or(self.catalog.default_model.as_deref())
    }

    pub fn behavior(&self) -> &str {
        self.settings.behavior.as_deref().unwrap_or(&self.catalog.default_behavior)
    }

    /// A person is in the middle of a line.
    pub(super) fn is_typing(&self) -> bool {
        !self.input.is_empty() || self.overlay.is_some()
    }

    pub fn happened(&mut self, event: &Event) {
        match &event.body {
            EventBody::Fact(recorded) => self.fact(&recorded.fact),
            EventBody::Delta(delta) => {
                self.transcript.grow(delta.item, delta.channel, delta.offset, &delta.text);
            }
            EventBody::Progress { text } => self.progress.clone_from(text),
            EventBody::Catalog(CatalogKind::Models) => self.ask_for(Effect::Catalog),
            EventBody::Catalog(_) => {}
            EventBody::Notice(notice) => self.transcript.note(notice.level, &notice.text),
            EventBody::Lost { failure } => {
                self.transcript.note(Level::Error, failure.to_string());
                self.turn_over();
            }
        }
    }

    fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::SessionOpened(opened) => self.settings.apply(&opened.settings),
            Fact::SessionChanged { change } => self.settings.apply(change),
            Fact::SessionClosed => {}
            Fact::TurnStarted { .. } => {
                self.busy = Some(self.now);
                self.stopping = false;
                self.progress.clear();
            }
            Fact::TurnEnded { outcome, .. } => {
                if let Some((level, text)) = outcome_note(outcome) {
                    self.transcript.note(level, text);
                }
                self.turn_over();
            }
            Fact::ItemStarted { item } | Fact::ItemChanged { item } => {
                self.transcript.put(item.clone(), false);
            }
            Fact::ItemEnded { item } => {
                if let ItemKind::UserMessage { text, .. } = &item.kind {
                    if self.steering.as_ref() == Some(text) {
                        self.steering = None;
                    }
                    self.input.remember(text);
                }
                self.transcript.put(item.clone(), true);
            }
            Fact::ItemGrew { item, channel, offset, text } => {
                self.transcript.grow(*item, *channel, *offset, text);
            }
            Fact::HistoryReplaced { keep } => self.transcript.keep(*keep),
            Fact::AskRaised { ask } => {
                let typing = self.is_typing();
                self.asks.raise(ask.clone(), typing, self.now);
            }
            Fact::AskSettled { id, .. } => {
                let typing = self.is_typing();
                self.asks.settle(*id, typing, self.now);
            }
            Fact::UsageChanged { usage } => self.usage = usage.clone(),
            Fact::Notice { notice } => self.transcript.note(notice.level, &notice.text),
        }
    }

    /// All that was recorded has been taken in: what is asked now is open. Forms that cannot be shown are declined;
    /// those of a chat that another process writes are its own to answer.
    pub fn caught_up(&mut self) {
        if self.held_by.is_some() {
            return;
        }
        while let Some(ask) = self.asks.unshown() {
            let id = ask.id;
            if let AskKind::Form { text, .. } = &ask.kind {
                let text = format!("{text}\nThis form cannot be shown in a terminal, so it was declined.");
                self.transcript.note(Level::Warning, text);
            }
            let typing = self.is_typing();
            self.asks.settle(id, typing, self.now);
            let answer = Answer::Deny { remember: false, reason: None };
            self.ask_for(Effect::Answer { ask: id, answer });
        }
    }

    fn turn_over(&mut self) {
        self.busy = None;
        self.stopping = false;
        self.progress.clear();
        self.asks.clear();
        if let Some(text) = self.steering.take() {
            self.ask_for(Effect::TakeBack);
            self.give_back(&text);
        }
    }

    /// Text that was not said is not lost.
    fn give_back(&mut self, text: &str) {
        let typed = self.input.text().to_owned();
        self.input.set(&if typed.is_empty() { text.to_owned() } else { format!("{text}\n{typed}") });
    }

    pub fn update(&mut self, told: Update) {
        match told {
            Update::Catalog(catalog) => self.catalog = catalog,
            Update::Opened(info) => self.opened(*info),
            Update::Commands { query, found } => {
                let offers = completion::commands(&query, found);
                self.unknown_command = offers.is_empty().then(|| query.clone());
                self.offer(Kind::Command, &query, offers);
            }
            Update::Contexts { query, found } => {
                let offers = completion::contexts(found, &self.roots);
                let typed = format!("@{query}");
                if let Some(offer) = offers.iter().find(|offer| offer.text == typed) {
                    self.attach(offer.clone());
                }
                self.offer(Kind::File, &query, offers);
            }
            Update::Chats(chats) => {
                let picker = Picker::chats(chats, self.session.as_ref(), self.clock);
                self.overlay = Some(Overlay::Picker(picker));
            }
            Update::Edited(Ok(text)) => self.input.set(text.trim_end()),
            Update::Edited(Err(failure)) | Update::Failed(failure) => {
                self.transcript.note(Level::Error, failure.to_string());
            }
            Update::NotSteered(text) => {
                self.steering = None;
                self.prompt(text);
            }
            Update::Sent => self.held_by = None,
            Update::NotSent(text, failure) => {
                self.transcript.note(Level::Error, failure.to_string());
                self.give_back(&text);
            }
        }
    }

    fn opened(&mut self, info: SessionInfo) {
        if self.session.as_ref() != Some(&info.id) {
            self.transcript.clear();
            self.asks.clear();
            self.steering = None;
        }
        self.session = Some(info.id);
        self.settings = info.settings;
        self.usage = info.usage;
        self.busy = info.busy.then_some(self.now);
        self.held_by = info.held_by;
        if let Some(holder) = self.held_by.clone() {
            let text = format!(
                "Another Dragoman ({holder}) writes this chat. You can follow it; /fork goes on in a copy."
            );
            self.flash(text);
        }
    }

    /// An answer to what the line asked before, and does not any more, changes nothing.
    fn offer(&mut self, kind: Kind, query: &str, offers: Vec<Offer>) {
        let word = completion::word_at(self.input.text(), self.input.cursor());
        let Some(word) = word.filter(|word| word.kind == kind && word.query == query) else { return };
        self.completion = (!offers.is_empty()).then_some(Completion { word, offers, chosen: 0 });
    }

    /// Asks for what completes the word at the cursor.
    pub(super) fn look_up(&mut self) {
        match completion::word_at(self.input.text(), self.input.cursor()) {
            Some(Word { kind: Kind::Command, query, .. }) => self.ask_for(Effect::Commands { query }),
            Some(Word { kind: Kind::File, query, .. }) => self.ask_for(Effect::Contexts { query }),
            None => self.completion = None,
        }
    }

    pub(super) fn accept_offer(&mut self) {
        let Some(completion) = self.completion.take() else { return };
        let Some(offer) = completion.offers.get(completion.chosen).cloned() else { return };
        let folder = offer.text.ends_with('/');
        let text = if folder { offer.text.clone() } else { format!("{} ", offer.text) };
        self.input.replace(completion.word.range, &text);
        self.attach(offer);
        if folder {
            self.look_up();
        }
    }

    fn attach(&mut self, offer: Offer) {
        if let Some(context) = offer.context {
            self.attached.insert(offer.text, context);
        }
    }

    /// Sends a message: to the running turn where one runs.
    pub(super) fn prompt(&mut self, text: String) {
        self.transcript.go_to_end();
        if self.busy.is_some() {
            self.steering = Some(match self.steering.take() {
                Some(before) => format!("{before}\n{text}"),
                None => text.clone(),
            });
            return self.ask_for(Effect::Steer(text));
        }
        let words =
            text.split_whitespace().map(|word| word.trim_end_matches([',', '.', '?', '!', ':', ';', ')']));
        let mut contexts: Vec<Context> = Vec::new();
        for context in words.filter_map(|word| self.attached.get(word)) {
            if !contexts.contains(context) {
                contexts.push(context.clone());
            }
        }
        self.attached.clear();
        let prompt = UserPrompt { text, contexts, ..UserPrompt::default() };
        self.ask_for(Effect::Prompt(Box::new(prompt)));
    }

    /// Begins anew, with the same model and behavior.
    pub fn start_anew(&mut self) {
        self.session = None;
        self.settings.title = None;
        self.usage = SessionUsage::default();
        self.held_by = None;
        self.transcript.clear();
        self.asks.clear();
        self.busy = None;
    }
}

fn outcome_note(outcome: &Outcome) -> Option<(Level, String)> {
    match outcome {
        Outcome::Done => None,
        Outcome::Stopped => Some((Level::Warning, "Stopped.".to_owned())),
        Outcome::MaxTokens => {
            Some((Level::Warning, "The model reached its output limit. Say “go on” for the rest.".to_owned()))
        }
        Outcome::MaxSteps => {
            Some((Level::Warning, "The step limit was reached. Say “go on” to continue.".to_owned()))
        }
        Outcome::Refused { reason } => Some((Level::Error, format!("The model refused: {reason}"))),
        Outcome::Failed { failure } => Some((Level::Error, failure.to_string())),
        Outcome::Interrupted => Some((
            Level::Warning,
            "Dragoman ended in the middle of this; say “go on” to continue.".to_owned(),
        )),
    }
}
