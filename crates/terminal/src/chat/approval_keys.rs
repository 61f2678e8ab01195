//! Keys in a question of approval: the list of answers, their letters and digits, and what the user types for one.
//!
//! Must not know how the question is drawn. Invariants: a key that was typed before the question could be read answers
//! nothing; several calls are allowed at once only after a page has shown all of them whole.

#![allow(clippy::wildcard_enum_match_arm, reason = "most keys have no meaning here")]

use domain::ask::{Answer, AskKind};
use domain::item::ItemKind;
use domain::tool_call::{Details, ToolCall};
use domain::{AskId, ItemId};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::allow_rule::ExplainedCall;
use super::asks::{Amendment, AmendmentKind, ApprovalOption};
use super::input::Input;
use super::page::{Page, PageLine};
use super::screen::{Effect, Overlay, Screen};
use super::tool;

impl Screen {
    /// The answers that the first approval offers, in the order of the list.
    pub(super) fn approval_options(&self) -> Vec<ApprovalOption> {
        let Some(AskKind::Approval { keys, .. }) = self.asks.first().map(|ask| &ask.kind) else {
            return Vec::new();
        };
        let mut options = vec![ApprovalOption::Once];
        if !keys.is_empty() {
            options.push(ApprovalOption::Session);
        }
        if self.project_rule().is_some() {
            options.push(ApprovalOption::Project);
        }
        if self.asks.approvals().count() > 1 {
            options.push(ApprovalOption::All);
        }
        options.extend([ApprovalOption::No, ApprovalOption::NoWithReason]);
        options
    }

    /// Handles a key of an approval. Returns false for keys that belong to the input.
    pub(super) fn approval_key(&mut self, key: KeyEvent) -> bool {
        if key.code == KeyCode::Tab {
            self.approval_tab();
            return true;
        }
        let is_plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        let lists = matches!(key.code, KeyCode::Up | KeyCode::Down | KeyCode::Enter);
        if !is_plain || (lists && (!self.asks.focused || !self.input.is_empty())) {
            return false;
        }
        let options = self.approval_options();
        let is_armed = self.asks.is_armed(self.now);
        match key.code {
            KeyCode::Up | KeyCode::Down | KeyCode::Enter if !is_armed => {}
            KeyCode::Up => self.asks.option = (self.asks.option + options.len() - 1) % options.len().max(1),
            KeyCode::Down => self.asks.option = (self.asks.option + 1) % options.len().max(1),
            KeyCode::Enter => {
                if let Some(option) = options.get(self.asks.option) {
                    self.take_option(*option);
                }
            }
            KeyCode::Char(character) => return self.approval_letter(character, &options, is_armed),
            _ => return false,
        }
        true
    }

    fn approval_letter(&mut self, character: char, options: &[ApprovalOption], is_armed: bool) -> bool {
        let digit = character.to_digit(10).and_then(|digit| usize::try_from(digit).ok()?.checked_sub(1));
        let by_letter = |option: &&ApprovalOption| option.letter() == character.to_ascii_lowercase();
        let option = match digit {
            Some(at) => options.get(at),
            None => options.iter().find(by_letter),
        };
        match option {
            Some(option) if is_armed => self.take_option(*option),
            _ if is_armed && character == '?' => self.explain_call(),
            // Nothing of this call can be remembered, and yes is meant all the same.
            _ if is_armed && character.eq_ignore_ascii_case(&'a') => {
                self.take_option(ApprovalOption::Session)
            }
            // It was typed for a rule that this call cannot have, and is no beginning of a sentence.
            _ if is_armed && character.eq_ignore_ascii_case(&'p') => self.preview_project_rule(),
            _ => {
                // The user typed it before the question, or begins to write: the letters that follow are no answers.
                self.asks.focused = false;
                return false;
            }
        }
        true
    }

    fn take_option(&mut self, option: ApprovalOption) {
        match option {
            ApprovalOption::Once => self.answer(Answer::Allow { remember: false }),
            ApprovalOption::Session => self.answer(Answer::Allow { remember: true }),
            ApprovalOption::Project => self.preview_project_rule(),
            ApprovalOption::All => self.show_all_approvals(),
            ApprovalOption::No => self.answer(Answer::Deny { remember: false, reason: None }),
            ApprovalOption::NoWithReason => self.amend(AmendmentKind::Refusal, ""),
        }
    }

    /// Tab goes to the question; in it, it changes the marked answer.
    fn approval_tab(&mut self) {
        if !self.asks.focused || !self.input.is_empty() {
            self.asks.focused = !self.asks.focused;
            return;
        }
        if !self.asks.is_armed(self.now) {
            return;
        }
        let option = self.approval_options().get(self.asks.option).copied();
        let command = self.asked_call().and_then(command_of).map(str::to_owned);
        match (option, command) {
            (None, _) => {}
            (Some(ApprovalOption::No | ApprovalOption::NoWithReason), _) => {
                self.amend(AmendmentKind::Refusal, "");
            }
            (Some(_), Some(command)) => self.amend(AmendmentKind::Command, &command),
            (Some(_), None) => self.amend(AmendmentKind::Addition, ""),
        }
    }

    fn amend(&mut self, kind: AmendmentKind, text: &str) {
        let mut input = Input::default();
        input.set(text);
        self.asks.amendment = Some(Amendment { kind, input });
    }

    pub(super) fn amendment_key(&mut self, key: KeyEvent) {
        let Some(amendment) = &mut self.asks.amendment else { return };
        let input = &mut amendment.input;
        let breaks_line = key
            .modifiers
            .intersects(KeyModifiers::ALT.union(KeyModifiers::SHIFT).union(KeyModifiers::CONTROL));
        match key.code {
            KeyCode::Enter if breaks_line => input.insert("\n"),
            KeyCode::Enter => {
                let (kind, text) = (amendment.kind, input.take());
                self.send_amended(kind, text.trim());
            }
            KeyCode::Char('a') if key.modifiers.contains(KeyModifiers::CONTROL) => input.home(),
            KeyCode::Char('e') if key.modifiers.contains(KeyModifiers::CONTROL) => input.end(),
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => input.delete_to_start(),
            KeyCode::Char('k') if key.modifiers.contains(KeyModifiers::CONTROL) => input.delete_to_end(),
            KeyCode::Char('w') if key.modifiers.contains(KeyModifiers::CONTROL) => input.delete_word(),
            KeyCode::Char(_) if key.modifiers.intersects(KeyModifiers::CONTROL.union(KeyModifiers::ALT)) => {}
            code => drop(input.edit(code)),
        }
    }

    fn send_amended(&mut self, kind: AmendmentKind, text: &str) {
        self.asks.amendment = None;
        let deny = |reason: Option<String>| Answer::Deny { remember: false, reason };
        match kind {
            AmendmentKind::Refusal => self.answer(deny(Some(text.to_owned()).filter(|it| !it.is_empty()))),
            AmendmentKind::Addition => {
                self.answer(Answer::Allow { remember: false });
                if !text.is_empty() {
                    self.prompt(text.to_owned());
                }
            }
            AmendmentKind::Command => {
                let call = self.asked_call();
                if text.is_empty() || call.and_then(command_of).is_none_or(|command| command.trim() == text) {
                    return self.answer(Answer::Allow { remember: false });
                }
                let mut input = call.and_then(|call| call.input.clone()).unwrap_or_default();
                input["command"] = text.into();
                let reason = format!(
                    "Run this command instead, exactly as it is written here, with the same tool: {text}"
                );
                self.answer(deny(Some(reason)));
                self.asks.expected = Some(input);
            }
        }
    }

    /// Allows the call that runs what the user wrote, once.
    pub(super) fn answer_expected_call(&mut self) {
        let Some(expected) = &self.asks.expected else { return };
        let is_it = self.asked_call().is_some_and(|call| call.input.as_ref() == Some(expected));
        if is_it {
            self.asks.expected = None;
            self.flash("Allowed: this is the command as you wrote it.");
            self.answer(Answer::Allow { remember: false });
        }
    }

    /// The page with everything that would run.
    fn show_all_approvals(&mut self) {
        let (mut lines, mut asks): (Vec<PageLine>, Vec<AskId>) = (Vec::new(), Vec::new());
        for ask in self.asks.approvals() {
            let AskKind::Approval { reason, .. } = &ask.kind else { continue };
            let Some(call) = ask.item.and_then(|item| self.call(item)) else { continue };
            lines.push(PageLine::Heading(tool::title(call)));
            lines.push(PageLine::Text(reason.clone()));
            match &call.details {
                Some(Details::FileChange(change)) => {
                    lines.extend(change.diff.lines().map(|line| PageLine::Diff(line.to_owned())));
                }
                _ => lines.extend(tool::input_text(call).lines().map(|line| PageLine::Code(line.to_owned()))),
            }
            asks.push(ask.id);
        }
        let title = format!("Allow all {}? Enter allows them once", asks.len());
        self.overlay = Some(Overlay::AllowAll { page: Page::new(title, lines), asks });
    }

    /// Enter on that page: the calls that it showed, and no other ones.
    pub(super) fn allow_all(&mut self, asks: &[AskId]) {
        for ask in asks {
            if self.asks.remove(*ask, self.now) {
                self.push_effect(Effect::Answer { ask: *ask, answer: Answer::Allow { remember: false } });
            }
        }
        self.transcript.go_to_end();
    }

    /// `?`: the rule behind the question.
    fn explain_call(&mut self) {
        let Some(call) = self.asked_call() else { return };
        let explained = ExplainedCall {
            tool: format!("{}__{}", call.server, call.name),
            input: call.input.clone().unwrap_or(Value::Null),
            plan: self.behavior() == "plan",
            tainted: self.taint.is_tainted(),
        };
        self.push_effect(Effect::Explain(Box::new(explained)));
    }

    pub(super) fn show_explanation(&mut self, mut lines: Vec<String>) {
        if let Some(AskKind::Approval { reason, keys }) = self.asks.first().map(|ask| &ask.kind) {
            let remembered = match keys.as_slice() {
                [] => "It is asked each time: no answer for this chat covers it.".to_owned(),
                keys => format!("“For the rest of this chat” would allow: {}.", keys.join(", ")),
            };
            let asked = [format!("Asked because: {reason}"), remembered, String::new()];
            lines.splice(0..0, asked);
        }
        let lines = lines.into_iter().map(PageLine::Text).collect();
        self.overlay = Some(Overlay::Page(Page::new("Why this is asked", lines)));
    }

    /// The call that the first question is about.
    pub(super) fn asked_call(&self) -> Option<&ToolCall> {
        self.call(self.asks.item()?)
    }

    fn call(&self, item: ItemId) -> Option<&ToolCall> {
        match &self.transcript.item(item)?.kind {
            ItemKind::ToolCall(call) => Some(call),
            _ => None,
        }
    }
}

/// The command of a call of the shell.
pub(super) fn command_of(call: &ToolCall) -> Option<&str> {
    let is_shell = call.server == "eca" && call.name == "shell_command";
    call.input.as_ref().filter(|_| is_shell)?.get("command")?.as_str()
}
