//! What the engine asks a person, and the keys that answer.
//!
//! Invariants: a key that was typed before the question could be read answers nothing; what is asked about is shown
//! before it can be allowed.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use domain::ask::{Answer, Ask, AskKind};
use domain::{AskId, ItemId};

use super::form::Form;
use super::input::Input;

/// Keys count from so long after a question appeared: whoever types does not answer by accident.
pub const READ: Duration = Duration::from_millis(400);

#[derive(Default)]
pub struct Asks {
    waiting: VecDeque<Ask>,
    /// Since when the first one is shown.
    since: Option<Instant>,
    /// The keys belong to the question, not to the line below it.
    pub focused: bool,
    /// The reason of a refusal, while it is typed.
    pub reason: Option<Input>,
    /// Which option of a question is chosen.
    pub option: usize,
    /// The form that is filled in.
    pub form: Option<Form>,
}

impl Asks {
    /// `typing`: a person is in the middle of a line.
    pub fn raise(&mut self, ask: Ask, typing: bool, now: Instant) {
        if self.waiting.iter().any(|known| known.id == ask.id) {
            return;
        }
        self.waiting.push_back(ask);
        if self.waiting.len() == 1 {
            self.show(!typing, now);
        }
    }

    pub fn settle(&mut self, id: AskId, typing: bool, now: Instant) {
        let first = self.waiting.front().is_some_and(|ask| ask.id == id);
        self.waiting.retain(|ask| ask.id != id);
        if first {
            self.show(!typing, now);
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn first(&self) -> Option<&Ask> {
        self.waiting.front()
    }

    pub fn count(&self) -> usize {
        self.waiting.len()
    }

    /// The item the first ask is about.
    pub fn item(&self) -> Option<ItemId> {
        self.first()?.item
    }

    /// A key answers now.
    pub fn is_armed(&self, now: Instant) -> bool {
        self.focused && self.since.is_some_and(|since| now.duration_since(since) >= READ)
    }

    /// When it will be, where that is a matter of time.
    pub fn arms_at(&self, now: Instant) -> Option<Instant> {
        let at = self.since? + READ;
        (self.focused && !self.waiting.is_empty() && at > now).then_some(at)
    }

    /// The answer that one key means; the question is gone with it.
    pub fn answer(&mut self, answer: Answer, now: Instant) -> Option<(AskId, Answer)> {
        let ask = self.waiting.pop_front()?;
        self.show(true, now);
        Some((ask.id, answer))
    }

    /// What a key means to an approval.
    pub fn approval(key: char) -> Option<Answer> {
        match key.to_ascii_lowercase() {
            'y' => Some(Answer::Allow { remember: false }),
            'a' => Some(Answer::Allow { remember: true }),
            'n' => Some(Answer::Deny { remember: false, reason: None }),
            _ => None,
        }
    }

    /// The text an option of the first question stands for.
    pub fn option_text(&self, at: usize) -> Option<String> {
        match &self.first()?.kind {
            AskKind::Question { options, .. } => Some(options.get(at)?.label.clone()),
            _ => None,
        }
    }

    pub fn options(&self) -> usize {
        match self.first().map(|ask| &ask.kind) {
            Some(AskKind::Question { options, .. }) => options.len(),
            _ => 0,
        }
    }

    /// The form that takes what is typed or pasted now.
    pub fn open_form(&mut self, now: Instant) -> Option<&mut Form> {
        let armed = self.is_armed(now);
        self.form.as_mut().filter(|_| armed)
    }

    /// The first ask, where it is a form that cannot be shown.
    pub fn unshown(&self) -> Option<&Ask> {
        self.first().filter(|ask| matches!(ask.kind, AskKind::Form { .. }) && self.form.is_none())
    }

    fn show(&mut self, focused: bool, now: Instant) {
        self.focused = focused && !self.waiting.is_empty();
        self.since = (!self.waiting.is_empty()).then_some(now);
        self.reason = None;
        self.option = 0;
        self.form = match self.waiting.front().map(|ask| &ask.kind) {
            Some(AskKind::Form { schema, .. }) => Form::read(schema),
            _ => None,
        };
    }
}
