//! Text of strangers made fit to show, to store and to send: bounded, without control characters, without secrets.

use std::borrow::Cow;

/// The longest name of a tool or prompt.
const MAX_NAME_LENGTH: usize = 64;

/// Shorter values are no secrets but words and switches.
const MIN_SECRET_LENGTH: usize = 8;

/// The first `limit` bytes, at a character's border; what was cut is marked.
pub(crate) fn truncate(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(limit)]))
}

/// Without anything that could steer a terminal: escape sequences and control characters go, line ends and tabs
/// stay.
pub(crate) fn strip_controls(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            // A CSI sequence ends with its first letter.
            '\u{1b}' if characters.next_if_eq(&'[').is_some() => {
                while characters.next_if(|c| !('@'..='~').contains(c)).is_some() {}
                characters.next();
            }
            '\n' | '\t' => cleaned.push(character),
            '\r' if characters.peek() == Some(&'\n') => cleaned.push(character),
            character if character.is_control() => {}
            character => cleaned.push(character),
        }
    }
    cleaned
}

/// Clean and bounded; the bound comes first, so that a huge text costs nothing.
pub(crate) fn sanitize(text: &str, limit: usize) -> String {
    strip_controls(&truncate(text, limit))
}

/// The same on one line.
pub(crate) fn single_line(text: &str, limit: usize) -> String {
    sanitize(text, limit).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A name as every model API accepts it; `None` where nothing of it is left.
pub(crate) fn plain_name(name: &str) -> Option<String> {
    let plain: String = name
        .chars()
        .take(MAX_NAME_LENGTH)
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' })
        .collect();
    plain.contains(|c: char| c.is_ascii_alphanumeric()).then_some(plain)
}

/// Values that must not be seen in errors and logs: what configuration gave a server as variables and headers.
#[derive(Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn new<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let last_word = |value: &'a str| value.rsplit(' ').next().unwrap_or(value);
        let mut values: Vec<String> = values
            .map(last_word)
            .filter(|value| value.len() >= MIN_SECRET_LENGTH)
            .map(str::to_owned)
            .collect();
        // A secret may hold another one.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }

    pub(crate) fn mask(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_only_what_every_api_accepts() {
        for (raw, plain) in [
            ("get-sum_2", Some("get-sum_2")),
            ("files.read/all", Some("files_read_all")),
            ("größe", Some("gr__e")),
            ("a\u{1b}[2Jb", Some("a__2Jb")),
            ("日本", None),
            ("__", None),
            ("", None),
        ] {
            assert_eq!(plain_name(raw).as_deref(), plain, "{raw}");
        }
        assert_eq!(plain_name(&"x".repeat(1000)).map(|name| name.len()), Some(64));
    }

    #[test]
    fn text_cannot_steer_a_terminal() {
        assert_eq!(strip_controls("a\u{1b}[31mred\u{1b}[0m\u{7}\r\nb\u{9b}c\td"), "ared\r\nbc\td");
        assert_eq!(single_line("a\n  b\u{1b}]0;title\u{7}", 100), "a b]0;title");
        assert_eq!(truncate("größer", 3), "gr…");
    }

    #[test]
    fn secrets_are_masked_and_words_are_not() {
        let secrets = Secrets::new(["Bearer sk-123456789", "debug"].into_iter());
        assert_eq!(secrets.mask("debug: sk-123456789 refused"), "debug: *** refused");
    }
}
