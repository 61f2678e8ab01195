//! An answer that comes in parts: text as it arrives, without the credentials that an API may repeat.
//!
//! Invariant: no text that is handed on, alone or with the one before it, contains a secret.

use crate::console::MASK;

/// Cuts text out of the bytes of a stream.
#[derive(Default)]
pub(crate) struct PartReader {
    secrets: Vec<String>,
    /// Bytes of a letter whose rest has not come.
    bytes: Vec<u8>,
    /// Text that may be the beginning of a secret.
    held: String,
}

impl PartReader {
    pub(crate) fn new(secrets: Vec<String>) -> Self {
        Self { secrets, ..Self::default() }
    }

    /// The text that can be shown now that these bytes came.
    pub(crate) fn push(&mut self, piece: &[u8]) -> String {
        self.bytes.extend_from_slice(piece);
        let end = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text.len(),
            // An error with a length is in the middle: it is shown as a replacement character.
            Err(error) if error.error_len().is_some() => self.bytes.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.bytes.split_off(end);
        let text = String::from_utf8_lossy(&std::mem::replace(&mut self.bytes, rest)).into_owned();
        self.held.push_str(&text);
        self.mask();
        let kept = self.secret_start();
        let ready = self.held.len() - kept;
        let rest = self.held.split_off(ready);
        std::mem::replace(&mut self.held, rest)
    }

    /// What is left at the end.
    pub(crate) fn finish(mut self) -> String {
        self.held.push_str(&String::from_utf8_lossy(&self.bytes));
        self.mask();
        self.held
    }

    fn mask(&mut self) {
        for secret in &self.secrets {
            if self.held.contains(secret.as_str()) {
                self.held = self.held.replace(secret.as_str(), MASK);
            }
        }
    }

    /// The length of the longest end of the text that a secret begins with.
    fn secret_start(&self) -> usize {
        let starts = self.secrets.iter().flat_map(|secret| {
            let longest = (secret.len() - 1).min(self.held.len());
            (1..=longest)
                .rev()
                .find(|length| secret.is_char_boundary(*length) && self.held.ends_with(&secret[..*length]))
        });
        starts.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_secrets_that_are_cut_in_two() {
        let text = "data: é and a-long-secret, a-long-way\n\n";
        for size in 1..text.len() {
            let mut reader = PartReader::new(vec!["a-long-secret".to_owned()]);
            let mut shown = String::new();
            for piece in text.as_bytes().chunks(size) {
                shown.push_str(&reader.push(piece));
            }
            shown.push_str(&reader.finish());
            assert_eq!(shown, format!("data: é and {MASK}, a-long-way\n\n"), "{size}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_stop_nothing() {
        let mut reader = PartReader::new(Vec::new());
        assert_eq!(reader.push(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(reader.push("é".as_bytes()), "é");
        assert_eq!(reader.push(b"\xc3"), "");
        assert_eq!(reader.finish(), "\u{fffd}");
    }
}
