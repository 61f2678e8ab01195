//! Sends what the user typed: a prompt, a command, a shell command or a note.
//!
//! Invariant: a word that looks like a command and is none is not sent to the model by mistake.

use domain::command::{Context, UserPrompt};
use domain::slash_commands::{self, SLASH_COMMANDS};

use super::screen::{Effect, Screen};

impl Screen {
    pub(super) fn submit(&mut self) {
        let typed = self.input.expanded();
        let text = typed.trim();
        if text.is_empty() {
            return self.input.clear();
        }
        // A space before the slash makes text of it.
        let is_text = text.starts_with('/') && typed.starts_with(char::is_whitespace);
        let text = if is_text { format!(" {text}") } else { text.to_owned() };
        self.vi.is_normal = false;
        self.completion = None;
        if let Some(command) = text.strip_prefix('!') {
            self.input.take();
            return self.run_shell_command(command.trim());
        }
        if let Some(note) = text.strip_prefix('#').filter(|_| !text.contains('\n') && !text.starts_with("##"))
        {
            self.input.take();
            return self.add_instruction(note.trim());
        }
        if let Some(line) = text.strip_prefix('/')
            && self.handle_command(line)
        {
            return;
        }
        let written = self.input.text().to_owned();
        self.input.take();
        self.send(text, &written);
    }

    /// Handles `/line`. False: it is a command of the engine, or text that begins with a slash.
    fn handle_command(&mut self, line: &str) -> bool {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if self.is_terminal_command(name, rest) {
            self.input.take();
            self.run_command(name, rest.trim());
            return true;
        }
        if line.is_empty() {
            self.flash("Type the name of a command after the slash.");
            return true;
        }
        let is_name = |c: char| c.is_alphanumeric() || "-_:.".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return false;
        }
        match self.looked_up.take_if(|(query, _)| query == name) {
            Some((_, true)) => return false,
            Some((_, false)) => return self.handle_other_name(name, rest),
            None => {
                self.submits = Some(name.to_owned());
                self.push_effect(Effect::Commands { query: name.to_owned() });
            }
        }
        true
    }

    /// A name that the lists do not have: an alias, a command that is not listed, or a mistake.
    fn handle_other_name(&mut self, name: &str, rest: &str) -> bool {
        let command = slash_commands::by_name(name).or_else(|| slash_commands::by_alias(name));
        match command {
            Some(command) if self.is_terminal_command(command.name, rest) => {
                self.input.take();
                self.run_command(command.name, rest.trim());
            }
            Some(command) if command.is_of_engine() => return false,
            Some(command) if command.argument.is_some() => {
                let argument = command.argument.unwrap_or_default();
                self.flash(format!("/{} takes words after it: {argument}.", command.name));
            }
            Some(command) => self.flash(format!("/{} takes no words after it.", command.name)),
            None => self.suggest_command(name),
        }
        true
    }

    fn suggest_command(&mut self, name: &str) {
        let names = SLASH_COMMANDS
            .iter()
            .flat_map(|command| std::iter::once(command.name).chain(command.aliases.iter().copied()));
        let meant = match slash_commands::nearest(name, names) {
            Some(near) => format!(" Did you mean /{near}?"),
            None => String::new(),
        };
        self.flash(format!("There is no command /{name}.{meant} / lists them; a space first sends text."));
    }

    /// Sends a message: to the running turn if there is one, else as a prompt.
    pub(super) fn prompt(&mut self, text: String) {
        self.send(text, "");
    }

    /// `written` is what the user sees in the input: files that a large paste names are not added.
    fn send(&mut self, text: String, written: &str) {
        self.transcript.go_to_end();
        let bare = |word: &str| word.trim_end_matches([',', '.', '?', '!', ':', ';', ')']).to_owned();
        if self.busy.is_some() {
            // A running turn takes text alone.
            let is_image = |word: &str| matches!(self.attached.get(&bare(word)), Some(Context::Image { .. }));
            if text.split_whitespace().any(is_image) {
                self.input.set(&text);
                return self.flash("Images wait for the end of the answer: Enter sends this then.");
            }
            self.steering = Some(match self.steering.take() {
                Some(before) => format!("{before}\n{text}"),
                None => text.clone(),
            });
            return self.push_effect(Effect::Steer(text));
        }
        let names_files = written
            .split_whitespace()
            .any(|word| word.len() > 1 && word.starts_with('@') && !self.attached.contains_key(&bare(word)));
        let mut contexts: Vec<Context> = Vec::new();
        for context in text.split_whitespace().filter_map(|word| self.attached.get(&bare(word))) {
            if !contexts.contains(context) {
                contexts.push(context.clone());
            }
        }
        self.attached.clear();
        contexts.append(&mut self.next_contexts);
        let prompt = Box::new(UserPrompt { text, contexts, ..UserPrompt::default() });
        self.push_effect(match names_files {
            true => Effect::PromptWithFiles { prompt, written: written.to_owned() },
            false => Effect::Prompt(prompt),
        });
    }
}
