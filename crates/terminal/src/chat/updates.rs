//! The results of effects and their places on the screen. Decides nothing that an effect did not ask for.

use domain::command::SessionInfo;
use domain::event::Level;
use domain::taint::Taint;

use super::completion::{self, Completion, CompletionKind, Suggestion};
use super::page;
use super::picker::Picker;
use super::screen::{Overlay, Screen, Update};

impl Screen {
    pub fn apply_update(&mut self, update: Update) {
        match update {
            Update::Catalog(catalog) => self.catalog = catalog,
            Update::Jobs(running) => self.jobs = running,
            Update::Opened(info) => self.show_session(*info),
            Update::Commands { query, found } => {
                self.looked_up = Some((query.clone(), found.iter().any(|command| command.name == query)));
                let suggestions = completion::commands(&query, found);
                self.set_completion(CompletionKind::Command, &query, suggestions);
                if self.submits.take_if(|line| *line == query).is_some() {
                    self.submit();
                }
            }
            Update::Arguments(line, found) => {
                self.set_completion(CompletionKind::Argument, &line, completion::arguments(found));
            }
            Update::Contexts { query, found } => {
                let suggestions = completion::contexts(found, &self.roots);
                let typed = format!("@{query}");
                if let Some(suggestion) = suggestions.iter().find(|suggestion| suggestion.text == typed) {
                    self.attach(suggestion.clone());
                }
                self.set_completion(CompletionKind::File, &query, suggestions);
            }
            Update::Chats(chats) => {
                let picker = Picker::chats(chats, self.session.as_ref(), self.clock);
                self.overlay = Some(Overlay::Picker(picker));
            }
            Update::Servers(servers) => self.update_servers(servers),
            Update::ShellOutput { command, output } => self.add_shell_output(&command, output),
            Update::Diff { diff, new_files } => {
                self.overlay = Some(Overlay::Page(page::diff_page(&diff, &new_files)));
            }
            Update::Explained(lines) => self.show_explanation(lines),
            Update::Status(text) => self.look.status_output = text,
            Update::Info(text) => self.add_info(text),
            Update::Edited(Ok(text)) => self.input.set(text.trim_end()),
            Update::Edited(Err(failure)) | Update::Failed(failure) => {
                self.transcript.add_notice(Level::Error, failure.to_string());
            }
            Update::NotSteered(text) => self.send_unsteered(text),
            Update::Sent => self.held_by = None,
            Update::NotSent { text, contexts, failure } => {
                self.transcript.add_notice(Level::Error, failure.to_string());
                self.next_contexts.extend(contexts);
                self.restore_to_input(&text);
            }
        }
    }

    fn show_session(&mut self, info: SessionInfo) {
        if self.session.as_ref() != Some(&info.id) {
            self.transcript.clear();
            self.asks.clear();
            (self.steering, self.is_steering_late) = (None, false);
            self.taint = Taint::default();
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
        self.attached_to = info.attached_to;
    }

    /// Says below the chat whose keys and rules count.
    pub(super) fn tell_of_holder(&mut self) {
        if let Some(holder) = self.attached_to.take() {
            let text = format!(
                "This chat runs in {holder}. Its keys, rules, sandbox and folder count; you can prompt, stop and answer here."
            );
            self.transcript.add_notice(Level::Info, text);
        }
    }

    /// Ignores suggestions for a word that is not at the cursor any more.
    /// Whether the word before the cursor is `@query`.
    pub(super) fn completes_file(&self, query: &str) -> bool {
        let word = completion::word_at(self.input.text(), self.input.cursor());
        word.is_some_and(|word| word.kind == CompletionKind::File && word.query == query)
    }

    fn set_completion(&mut self, kind: CompletionKind, query: &str, suggestions: Vec<Suggestion>) {
        let word = completion::word_at(self.input.text(), self.input.cursor());
        let Some(word) = word.filter(|word| word.kind == kind && word.query == query) else { return };
        self.completion = (!suggestions.is_empty()).then_some(Completion { word, suggestions, chosen: 0 });
    }
}
