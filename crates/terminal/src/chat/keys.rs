//! Maps keys to changes of the screen; holds the table of the help page.

#![allow(clippy::wildcard_enum_match_arm, reason = "most keys have no meaning here")]

use domain::command::SessionSettings;
use domain::{Answer, AskKind};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::bindings::Binding;
use super::picker::{Choice, Picker};
use super::screen::{Effect, LEAVE_WINDOW, Overlay, Screen};

/// The help page: keys and their meaning.
pub(crate) const KEY_HELP: [(&str, &str); 30] = [
    ("Enter", "send; while an answer comes: send it at the next step"),
    ("Shift-Enter, Ctrl-Enter", "a new line, where the terminal tells them from Enter"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Esc", "close a list or page; stop the answer"),
    ("Esc Esc", "clear what was typed; else: go back to an earlier prompt"),
    ("Ctrl-C", "the same; twice: leave"),
    ("↑ ↓ ← →, Esc", "in a form: another field, choose; decline"),
    ("↑ ↓ Enter, 1 … 9", "in a question of approval: mark an answer, take it"),
    ("y  a  p  n  r", "allow once, for this session, in this project; refuse, with a reason"),
    ("Tab", "complete; change the command or the answer of a question; to and from a question"),
    ("?", "in a question of approval: the rule behind it"),
    ("/", "commands"),
    ("@", "add a file or folder to the prompt"),
    ("!command", "run a shell command; the next prompt takes its output along"),
    ("#note", "add an instruction to AGENTS.md, or to the file in use"),
    ("Up, Down", "earlier prompts"),
    ("wheel, PgUp, PgDn, Ctrl-Home, Ctrl-End", "scroll; a click opens an entry, a drag copies text"),
    ("Ctrl-PgUp, Ctrl-PgDn", "the prompt before, the prompt after"),
    ("Ctrl-Up, Ctrl-Down", "choose a tool call (also Alt-Up, Alt-Down)"),
    ("Ctrl-O", "open or close it (or the last one)"),
    ("Shift-Tab", "the next behavior"),
    ("Ctrl-T, Alt-E", "choose the model; how hard it thinks"),
    ("Ctrl-R", "search the prompts of this chat"),
    ("Ctrl-V", "attach the image in the clipboard"),
    ("F2, /chats", "earlier chats"),
    ("Ctrl-N", "a new chat"),
    (
        "Ctrl-A E B F P K U W Y _",
        "edit as in Emacs; Ctrl-Y puts back what was deleted, Ctrl-_ takes a change back",
    ),
    (
        "Alt-B F D U L C < >",
        "a word back, on, deleted, in large, small or capital letters; the start, the end",
    ),
    ("Ctrl-G", "write in your editor"),
    ("Ctrl-D, Ctrl-Z", "leave, suspend"),
];

impl Screen {
    pub fn handle_key(&mut self, key: KeyEvent) {
        match self.bindings.find(key).cloned() {
            Some(Binding::Key(other)) => self.handle_usual_key(other),
            Some(Binding::Command(command)) => self.run_bound_command(&command),
            None => self.handle_usual_key(key),
        }
    }

    /// What was typed stays in the input.
    fn run_bound_command(&mut self, command: &str) {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        if self.is_terminal_command(name, rest) {
            return self.run_command(name, rest.trim());
        }
        self.prompt(format!("/{command}"));
    }

    fn handle_usual_key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_interrupt = key.code == KeyCode::Esc || (control && key.code == KeyCode::Char('c'));
        self.submits = None;
        if !is_interrupt {
            self.leaving = None;
            self.end_flash();
        }
        match key.code {
            KeyCode::Char('c') if control => self.interrupt(true),
            KeyCode::Esc if self.is_editing() && self.vi.escape(&mut self.input) => {}
            KeyCode::Esc => self.interrupt(false),
            _ if self.overlay.is_some() => self.overlay_key(key),
            _ if self.asks.amendment.is_some() => self.amendment_key(key),
            _ if self.completion.is_some() && self.completion_key(key) => {}
            _ if self.ask_key(key) => {}
            _ if control => self.control_key(key),
            _ => self.plain_key(key),
        }
    }

    /// Nothing lies over the input.
    fn is_editing(&self) -> bool {
        self.overlay.is_none()
            && self.completion.is_none()
            && self.asks.amendment.is_none()
            && self.asks.form.is_none()
    }

    /// Terminals send the line ends of a paste as carriage returns.
    pub fn handle_paste(&mut self, text: &str) {
        let text = &text.replace("\r\n", "\n").replace('\r', "\n");
        if let Some(Overlay::Picker(picker)) = &mut self.overlay {
            return picker.type_in(text);
        }
        if let Some(Overlay::Login(entry)) = &mut self.overlay {
            return entry.insert(text);
        }
        if let Some(form) = self.asks.open_form(self.now) {
            return form.handle_paste(text);
        }
        if let Some(amendment) = &mut self.asks.amendment {
            return amendment.input.insert(text);
        }
        if !self.paste_image(text) {
            self.input.insert_paste(text);
            self.asks.focused = false;
        }
        self.completion = None;
    }

    /// Closes an open list, else stops the turn. Ctrl-C twice leaves; Esc never does.
    fn interrupt(&mut self, control_c: bool) {
        if self.overlay.take().is_some()
            || self.asks.amendment.take().is_some()
            || self.completion.take().is_some()
        {
            return;
        }
        if self.transcript.is_selecting() {
            return self.transcript.go_to_end();
        }
        if !control_c && self.asks.open_form(self.now).is_some() {
            self.flash("Declined.");
            return self.answer(Answer::Deny { remember: false, reason: None });
        }
        let again = self.leaving.is_some_and(|since| self.now.duration_since(since) < LEAVE_WINDOW);
        if control_c && again {
            return self.push_effect(Effect::Leave);
        }
        if control_c && self.busy.is_none() && !self.input.is_empty() {
            return self.input.clear();
        }
        if self.busy.is_some() {
            self.stopping = true;
            self.push_effect(Effect::Cancel);
        }
        match (control_c, self.busy.is_some()) {
            (true, true) => self.flash("Stopping. Ctrl-C again leaves."),
            (true, false) => self.flash("Ctrl-C again leaves; the chat is stored."),
            (false, true) => self.flash("Stopping."),
            (false, false) => self.escape_idle(),
        }
        if control_c {
            self.leaving = Some(self.now);
        }
    }

    /// Esc while nothing runs; the second one within a moment clears the input, or goes back.
    fn escape_idle(&mut self) {
        let again = self.escaped.take().is_some_and(|since| self.now.duration_since(since) < LEAVE_WINDOW);
        match (again, self.input.is_empty()) {
            (true, true) => return self.open_rewind(),
            (true, false) => return self.input.clear(),
            (false, true) => self.flash("Esc again: go back to an earlier prompt. Ctrl-D leaves."),
            (false, false) => self.flash("Esc again clears the line."),
        }
        self.escaped = Some(self.now);
    }

    fn overlay_key(&mut self, key: KeyEvent) {
        if matches!(self.overlay, Some(Overlay::Login(_))) {
            return self.login_key(key);
        }
        if key.code == KeyCode::Enter
            && let Some(Overlay::Rule { ask, rule, .. }) =
                self.overlay.take_if(|it| matches!(it, Overlay::Rule { .. }))
        {
            return self.accept_rule(ask, rule);
        }
        if key.code == KeyCode::Enter
            && let Some(Overlay::AllowAll { asks, .. }) =
                self.overlay.take_if(|it| matches!(it, Overlay::AllowAll { .. }))
        {
            return self.allow_all(&asks);
        }
        if let Some(Overlay::Page(page) | Overlay::Rule { page, .. } | Overlay::AllowAll { page, .. }) =
            &mut self.overlay
        {
            match key.code {
                KeyCode::Up => return page.scroll(-1),
                KeyCode::Down => return page.scroll(1),
                KeyCode::PageUp => return page.scroll(-page.page_rows()),
                KeyCode::PageDown | KeyCode::Char(' ') => return page.scroll(page.page_rows()),
                KeyCode::Home => return page.scroll(isize::MIN),
                KeyCode::End => return page.scroll(isize::MAX),
                _ => self.overlay = None,
            }
        }
        let Some(Overlay::Picker(picker)) = &mut self.overlay else { return };
        match key.code {
            KeyCode::Up => picker.move_by(-1),
            KeyCode::Down | KeyCode::Tab => picker.move_by(1),
            KeyCode::PageUp => picker.move_by(-10),
            KeyCode::PageDown => picker.move_by(10),
            KeyCode::Backspace => picker.erase(),
            KeyCode::Char(character) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                picker.type_in(character.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Enter => {
                if let Some(choice) = picker.choice() {
                    self.overlay = None;
                    self.choose(choice);
                }
            }
            _ => {}
        }
    }

    pub(super) fn choose(&mut self, choice: Choice) {
        match choice {
            Choice::Model(model) => {
                self.configure(SessionSettings { model: Some(model), ..SessionSettings::default() })
            }
            Choice::Behavior(behavior) => {
                self.configure(SessionSettings { behavior: Some(behavior), ..SessionSettings::default() });
            }
            Choice::Chat(session) => self.push_effect(Effect::Load(session)),
            Choice::Fork(until) => self.push_effect(Effect::Fork(until)),
            Choice::Prompt(text) => self.input.set(&text),
            Choice::RewindTo(item) => self.choose_rewind(item),
            Choice::Rewind(item, scope) => self.rewind(item, scope),
            Choice::Theme(name) => self.choose_theme(&name),
            Choice::Show(item) => self.transcript.show_item(item, &self.theme),
            Choice::Effort(level) => self.choose_effort(&level),
        }
    }

    pub(super) fn configure(&mut self, change: SessionSettings) {
        self.settings.apply(&change);
        if self.session.is_some() {
            self.push_effect(Effect::Configure(change));
        }
    }

    /// Returns false if the key does not belong to the list.
    fn completion_key(&mut self, key: KeyEvent) -> bool {
        let Some(completion) = &mut self.completion else { return false };
        match key.code {
            KeyCode::Up => completion.move_by(false),
            KeyCode::Down => completion.move_by(true),
            KeyCode::Tab => self.accept_suggestion(),
            KeyCode::Enter if key.modifiers.is_empty() => {
                // A command that is already complete needs no second Enter.
                let whole =
                    completion.suggestions.iter().any(|suggestion| suggestion.text == self.input.text())
                        || super::completion::is_other_name(self.input.text());
                if whole {
                    self.completion = None;
                    return false;
                }
                let is_command = completion.word.kind == super::completion::CompletionKind::Command;
                self.accept_suggestion();
                if is_command && super::completion::needs_no_words(self.input.text().trim()) {
                    self.submit();
                }
            }
            _ => return false,
        }
        true
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        if let Some((ask, answer)) = self.asks.answer(answer, self.now) {
            self.push_effect(Effect::Answer { ask, answer });
            self.transcript.go_to_end();
        }
    }

    /// Handles a key that answers an ask. Returns false for other keys.
    fn ask_key(&mut self, key: KeyEvent) -> bool {
        let Some(ask) = self.asks.first() else { return false };
        match &ask.kind {
            AskKind::Approval { .. } => self.approval_key(key),
            _ if key.code == KeyCode::Tab => {
                self.asks.focused = !self.asks.focused;
                true
            }
            _ if self.asks.form.is_some() => self.form_key(key),
            _ if self.asks.unsupported_form().is_some() => false,
            _ => self.question_key(key),
        }
    }

    fn form_key(&mut self, key: KeyEvent) -> bool {
        let types = matches!(key.code, KeyCode::Char(_));
        if types && !self.asks.is_armed(self.now) {
            // The user typed it before the form: it belongs to the input.
            self.asks.focused = false;
        }
        let scrolls = matches!(key.code, KeyCode::PageUp | KeyCode::PageDown | KeyCode::F(_));
        if !self.asks.focused || scrolls || key.modifiers.contains(KeyModifiers::CONTROL) {
            return false;
        }
        let data = self.asks.open_form(self.now).and_then(|form| form.handle_key(key));
        if let Some(data) = data {
            self.answer(Answer::Form { data });
        }
        true
    }

    fn question_key(&mut self, key: KeyEvent) -> bool {
        if !self.input.is_empty() {
            let sends = key.code == KeyCode::Enter && key.modifiers.is_empty();
            if sends {
                let text = self.input.take();
                self.answer(Answer::Text { text });
            }
            return sends;
        }
        let count = self.asks.options();
        match key.code {
            KeyCode::Up if count > 0 => self.asks.option = (self.asks.option + count - 1) % count,
            KeyCode::Down if count > 0 => self.asks.option = (self.asks.option + 1) % count,
            KeyCode::Enter if count > 0 => {
                if let Some(text) = self.asks.option_text(self.asks.option) {
                    self.answer(Answer::Text { text });
                }
            }
            KeyCode::Char(digit @ '1'..='9') if self.asks.is_armed(self.now) => {
                let at = digit as usize - '1' as usize;
                match self.asks.option_text(at) {
                    Some(text) => self.answer(Answer::Text { text }),
                    None => return false,
                }
            }
            _ => return false,
        }
        true
    }

    fn control_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Char('d') if self.input.is_empty() => self.push_effect(Effect::Leave),
            KeyCode::Char('d') => self.input.delete(),
            KeyCode::Char('z') => self.push_effect(Effect::Suspend),
            KeyCode::Char('j') | KeyCode::Enter => self.input.insert("\n"),
            KeyCode::Char('g') => self.push_effect(Effect::Edit(self.input.expanded())),
            KeyCode::Char('o') => self.transcript.toggle(&self.theme),
            KeyCode::Char('r') => {
                self.overlay = Some(Overlay::Picker(Picker::prompts(self.input.earlier())));
                return;
            }
            KeyCode::Char('v') => self.push_effect(Effect::ClipboardImage),
            KeyCode::Char('t') => self.run_command("model", ""),
            KeyCode::Char('n') => self.run_command("new", ""),
            KeyCode::Char('a') => self.input.home(),
            KeyCode::Char('e') => self.input.end(),
            KeyCode::Char('b') => self.input.left(),
            KeyCode::Char('f') => self.input.right(),
            KeyCode::Char('u') => self.input.delete_to_start(),
            KeyCode::Char('k') => self.input.delete_to_end(),
            KeyCode::Char('y') => self.input.yank(),
            // Terminals send Ctrl-_ as Ctrl-7.
            KeyCode::Char('_' | '-' | '/' | '7') => drop(self.input.undo()),
            KeyCode::Char('p') => drop(self.input.up()),
            KeyCode::Char('w' | 'h') | KeyCode::Backspace => self.input.delete_word(),
            KeyCode::Left => self.input.word_left(),
            KeyCode::Right => self.input.word_right(),
            KeyCode::Up => self.transcript.select(true, &self.theme),
            KeyCode::Down => self.transcript.select(false, &self.theme),
            KeyCode::PageUp => self.transcript.jump_to_prompt(true, &self.theme),
            KeyCode::PageDown => self.transcript.jump_to_prompt(false, &self.theme),
            KeyCode::Home => self.transcript.go_to_start(&self.theme),
            KeyCode::End => self.transcript.go_to_end(),
            _ => return,
        }
        self.request_completion();
    }

    fn plain_key(&mut self, key: KeyEvent) {
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        if !alt && self.vi.handle_key(key.code, &mut self.input) {
            return;
        }
        let selecting = self.transcript.is_selecting() && self.input.is_empty();
        match key.code {
            KeyCode::Enter if alt || shift => self.input.insert("\n"),
            KeyCode::Enter | KeyCode::Char(' ') if selecting => return self.transcript.toggle(&self.theme),
            KeyCode::Enter if self.input.text()[..self.input.cursor()].ends_with('\\') => {
                self.input.backspace();
                self.input.insert("\n");
            }
            KeyCode::Enter => return self.submit(),
            KeyCode::Char('?') if self.input.is_empty() => self.run_command("help", ""),
            KeyCode::F(1) => self.run_command("help", ""),
            KeyCode::F(2) => self.run_command("chats", ""),
            KeyCode::BackTab => return self.next_behavior(),
            KeyCode::Up if alt => self.transcript.select(true, &self.theme),
            KeyCode::Down if alt => self.transcript.select(false, &self.theme),
            KeyCode::Left if alt => self.input.word_left(),
            KeyCode::Right if alt => self.input.word_right(),
            KeyCode::Char('b') if alt => self.input.word_left(),
            KeyCode::Char('f') if alt => self.input.word_right(),
            KeyCode::Char('e') if alt => return self.choose_effort(""),
            KeyCode::Char('d') if alt => self.input.delete_next_word(),
            KeyCode::Char('u') if alt => self.input.change_word(str::to_uppercase),
            KeyCode::Char('l') if alt => self.input.change_word(str::to_lowercase),
            KeyCode::Char('c') if alt => self.input.change_word(capitalized),
            KeyCode::Char('<') if alt => self.input.move_to(0),
            KeyCode::Char('>') if alt => self.input.move_to(self.input.text().len()),
            KeyCode::Backspace if alt => self.input.delete_word(),
            KeyCode::Char(_) if alt => return,
            KeyCode::Up => drop(self.input.up()),
            KeyCode::Down => drop(self.input.down()),
            KeyCode::PageUp => self.scroll(false),
            KeyCode::PageDown => self.scroll(true),
            code if self.input.edit(code) => {}
            _ => return,
        }
        if matches!(key.code, KeyCode::Char(_) | KeyCode::Backspace | KeyCode::Delete) {
            self.request_completion();
        } else {
            self.completion = None;
        }
    }

    fn scroll(&mut self, down: bool) {
        let page = self.transcript.page();
        self.transcript.scroll(if down { page } else { -page }, &self.theme);
    }

    fn next_behavior(&mut self) {
        let all = &self.catalog.behaviors;
        let now = all.iter().position(|behavior| behavior == self.behavior());
        let next = now.map_or(0, |at| (at + 1) % all.len().max(1));
        if let Some(behavior) = all.get(next).cloned() {
            self.flash(format!("Behavior: {behavior}"));
            self.configure(SessionSettings { behavior: Some(behavior), ..SessionSettings::default() });
        }
    }
}

/// The first letter large, the others small.
fn capitalized(word: &str) -> String {
    let start = word.find(char::is_alphanumeric).unwrap_or(0);
    let (before, word) = word.split_at(start);
    let mut letters = word.chars();
    let first: String = letters.next().map(|letter| letter.to_uppercase().collect()).unwrap_or_default();
    format!("{before}{first}{}", letters.as_str().to_lowercase())
}
