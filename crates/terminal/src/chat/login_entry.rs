//! A field of a login while it is typed. Invariant: a key is neither drawn nor printed.

use std::fmt;

use domain::provider::LoginField;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::wrap::{self, Indent};
use crate::text::clean_line;

/// A text that is not for the screen.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

/// A field of a login while it is typed.
pub struct LoginEntry {
    pub(super) provider: String,
    pub(super) field: LoginField,
    pub(super) typed: Secret,
}

impl LoginEntry {
    pub(super) fn insert(&mut self, text: &str) {
        self.typed.0.extend(text.chars().filter(|character| !character.is_control()));
    }

    pub(super) fn rows(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let length = self.typed.0.chars().count();
        let typed = if self.field.is_secret { "•".repeat(length) } else { clean_line(&self.typed.0) };
        let line = format!("{}: {typed}", clean_line(&self.field.label));
        let hint = "It is stored for you alone and is no part of the chat. Enter stores it, Esc cancels.";
        let rows =
            |text: String, style| wrap::words(&[Span::styled(text, style)], columns, &Indent::default());
        let mut all = rows(line, theme.warning);
        all.extend(rows(hint.to_owned(), theme.dim));
        all
    }
}
