//! What a chat has read that could misuse it: text that strangers wrote, and secrets.
//!
//! Must not know tools, files or policy. Invariants: the lists are short and hold no hidden character, so they can be
//! shown as they are; a full list keeps its first entries, because one entry is enough to decide.

use crate::visible::visible_line;

const MOST_ENTRIES: usize = 12;
const MOST_CHARS: usize = 160;
/// What an entry begins with that is not certain, as people read it.
const POSSIBLE: &str = "perhaps ";

/// A chat is tainted as soon as there is one source.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Taint {
    sources: Vec<String>,
    secrets: Vec<String>,
}

impl Taint {
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.secrets.is_empty()
    }

    /// The chat holds text that may be instructions of a stranger.
    pub fn is_tainted(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Where such text came from, for people: `the web page https://…`.
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// The secrets that the chat has read, for people: `.env`.
    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    pub fn add_source(&mut self, source: impl AsRef<str>) {
        add(&mut self.sources, source.as_ref());
    }

    pub fn add_secret(&mut self, secret: impl AsRef<str>) {
        add(&mut self.secrets, secret.as_ref());
    }

    /// A secret that a command could have read, though nobody knows that it did.
    pub fn add_possible_secret(&mut self, secret: impl AsRef<str>) {
        add(&mut self.secrets, &format!("{POSSIBLE}{}", secret.as_ref()));
    }

    /// The first secret that was certainly read.
    pub fn certain_secret(&self) -> Option<&String> {
        self.secrets.iter().find(|secret| !secret.starts_with(POSSIBLE))
    }

    /// Takes in what another text brings along.
    pub fn merge(&mut self, other: &Taint) {
        other.sources.iter().for_each(|source| self.add_source(source));
        other.secrets.iter().for_each(|secret| self.add_secret(secret));
    }
}

fn add(list: &mut Vec<String>, entry: &str) {
    let visible = visible_line(entry);
    let mut text: String = visible.chars().take(MOST_CHARS).collect();
    if text.len() < visible.len() {
        text.push('…');
    }
    if list.len() < MOST_ENTRIES && !list.contains(&text) {
        list.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_few_short_visible_and_different() {
        let mut taint = Taint::default();
        for _ in 0..2 {
            (0..40).for_each(|number| taint.add_source(format!("page {number}")));
        }
        assert_eq!(taint.sources().len(), MOST_ENTRIES);
        let mut other = Taint::default();
        other.add_secret(format!("a\u{1b}[31m{}", "x".repeat(1000)));
        other.merge(&taint);
        assert!(other.secrets()[0].starts_with("a\\u{1b}[31mx") && other.secrets()[0].chars().count() == 161);
        assert_eq!(other.sources(), taint.sources());
    }
}
