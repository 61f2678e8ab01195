//! The engine's open asks, and the keys that answer them.
//!
//! Invariants: a key that was typed before the user could read a question does not answer it; the screen shows the
//! subject of an approval before a key can allow it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use domain::ask::{Answer, Ask, AskKind};
use domain::{AskId, ItemId};
use serde_json::Value;

use super::form::Form;
use super::input::Input;

/// Keys answer only after this time: a user who is typing does not answer by accident.
pub(crate) const ARM_DELAY: Duration = Duration::from_millis(400);

/// The answers to an approval, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ApprovalOption {
    Once,
    Session,
    Project,
    /// All questions that wait.
    All,
    No,
    NoWithReason,
}

impl ApprovalOption {
    /// The key that stands for it, beside its number.
    pub(crate) fn letter(self) -> char {
        match self {
            Self::Once => 'y',
            Self::Session => 'a',
            Self::Project => 'p',
            Self::All => 'l',
            Self::No => 'n',
            Self::NoWithReason => 'r',
        }
    }
}

/// What the user types for an answer.
pub struct Amendment {
    pub(crate) kind: AmendmentKind,
    pub(crate) input: Input,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AmendmentKind {
    /// Why the call is refused.
    Refusal,
    /// The call runs, and the model is told this.
    Addition,
    /// Another command in place of the model's.
    Command,
}

#[derive(Default)]
pub struct Asks {
    waiting: VecDeque<Ask>,
    /// When the first ask appeared.
    since: Option<Instant>,
    /// The keys belong to the question, not to the line below it.
    pub focused: bool,
    /// What the user adds to an answer, while it is typed.
    pub amendment: Option<Amendment>,
    /// The index of the selected option.
    pub option: usize,
    /// A command that the user wrote in place of the model's: a call with exactly this input needs no second answer.
    pub(super) expected: Option<Value>,
    /// The form of the first ask.
    pub form: Option<Form>,
}

impl Asks {
    /// `typing`: the user is in the middle of a line.
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

    /// Keys answer the ask now.
    pub fn is_armed(&self, now: Instant) -> bool {
        self.focused && self.since.is_some_and(|since| now.duration_since(since) >= ARM_DELAY)
    }

    /// When keys will answer, if only time is missing.
    pub fn arms_at(&self, now: Instant) -> Option<Instant> {
        let at = self.since? + ARM_DELAY;
        (self.focused && !self.waiting.is_empty() && at > now).then_some(at)
    }

    /// Removes the first ask and returns its answer.
    pub fn answer(&mut self, answer: Answer, now: Instant) -> Option<(AskId, Answer)> {
        let ask = self.waiting.pop_front()?;
        self.show(true, now);
        Some((ask.id, answer))
    }

    /// Removes an ask wherever it waits; false if it is settled already.
    pub fn remove(&mut self, id: AskId, now: Instant) -> bool {
        let known = self.waiting.iter().any(|ask| ask.id == id);
        self.settle(id, false, now);
        known
    }

    /// The approvals that wait, in order.
    pub(crate) fn approvals(&self) -> impl Iterator<Item = &Ask> {
        self.waiting.iter().filter(|ask| matches!(ask.kind, AskKind::Approval { .. }))
    }

    /// The text of an option of the first question.
    pub fn option_text(&self, at: usize) -> Option<String> {
        match &self.first()?.kind {
            AskKind::Question { options, .. } => Some(options.get(at)?.label.clone()),
            AskKind::Approval { .. } | AskKind::Form { .. } => None,
        }
    }

    pub fn options(&self) -> usize {
        match self.first().map(|ask| &ask.kind) {
            Some(AskKind::Question { options, .. }) => options.len(),
            _ => 0,
        }
    }

    /// The form that receives typed and pasted text now.
    pub fn open_form(&mut self, now: Instant) -> Option<&mut Form> {
        let armed = self.is_armed(now);
        self.form.as_mut().filter(|_| armed)
    }

    /// The first ask, if it is a form that a terminal cannot show.
    pub fn unsupported_form(&self) -> Option<&Ask> {
        self.first().filter(|ask| matches!(ask.kind, AskKind::Form { .. }) && self.form.is_none())
    }

    fn show(&mut self, focused: bool, now: Instant) {
        self.focused = focused && !self.waiting.is_empty();
        self.since = (!self.waiting.is_empty()).then_some(now);
        self.amendment = None;
        self.option = 0;
        self.form = match self.waiting.front().map(|ask| &ask.kind) {
            Some(AskKind::Form { schema, .. }) => Form::read(schema),
            _ => None,
        };
    }
}
