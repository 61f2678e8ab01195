//! `/login PROVIDER` in a chat: a code to type elsewhere, or a key that is typed here and shown as dots.
//!
//! Must not know where keys are kept. Invariant: a key is neither drawn nor printed, and it never becomes part of the chat.

#![allow(clippy::wildcard_enum_match_arm, reason = "most keys have no meaning here")]

use domain::provider::LoginStep;
use domain::{Command, Failure};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::ChatLoop;
use super::login_entry::{LoginEntry, Secret};
use super::screen::{Effect, Overlay, Screen, Update};
use crate::text::clean_line;

const USAGE: &str = "Usage: /login PROVIDER; /login alone lists the providers";

impl Screen {
    /// `/login PROVIDER [METHOD]`.
    pub(super) fn log_in(&mut self, words: &str) {
        let mut words = words.split_whitespace().map(str::to_owned);
        match (words.next(), words.next(), words.next()) {
            (Some(provider), method, None) => self.push_effect(Effect::Login { provider, method }),
            _ => self.flash(USAGE),
        }
    }

    pub(super) fn show_login_step(&mut self, provider: &str, step: LoginStep) {
        match step {
            LoginStep::DeviceCode { url, code } => self.add_info(format!(
                "Open {} and type the code {}. The models of {provider} appear when you have done so.",
                clean_line(&url),
                clean_line(&code)
            )),
            LoginStep::Choose { methods } => {
                let ways: Vec<&str> = methods.iter().map(|method| method.key).collect();
                self.add_info(format!("Choose a way: /login {provider} {}", ways.join(" or ")));
            }
            LoginStep::Fields(fields) => {
                let Some(field) = fields.into_iter().next() else { return };
                let provider = provider.to_owned();
                self.overlay = Some(Overlay::Login(LoginEntry { provider, field, typed: Secret::default() }));
            }
        }
    }

    pub(super) fn login_key(&mut self, key: KeyEvent) {
        let Some(Overlay::Login(entry)) = &mut self.overlay else { return };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if control => entry.typed = Secret::default(),
            KeyCode::Char(character) if !control => entry.insert(character.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => drop(entry.typed.0.pop()),
            KeyCode::Enter => {
                let Some(Overlay::Login(entry)) = self.overlay.take() else { return };
                let LoginEntry { provider, field, typed } = entry;
                self.push_effect(Effect::FinishLogin { provider, field: field.key, typed });
            }
            _ => {}
        }
    }
}

impl ChatLoop {
    pub(super) fn log_in(&mut self, provider: String, method: Option<String>) {
        let named = provider.clone();
        self.call(
            |reply| Command::Login { provider, method, reply },
            move |chat_loop, step| match step {
                Ok(step) => chat_loop.screen.show_login_step(&named, step),
                Err(failure) => chat_loop.screen.apply_update(Update::Failed(failure)),
            },
        );
    }

    pub(super) fn finish_login(&mut self, provider: String, field: &'static str, typed: Secret) {
        let done = format!("The key of {provider} is stored. /model lists what can be used now.");
        let fields = vec![(field.to_owned(), typed.0)];
        self.call(
            |reply| Command::FinishLogin { provider, fields, reply },
            move |chat_loop, stored: Result<(), Failure>| chat_loop.report(stored.map(|()| done)),
        );
    }
}
