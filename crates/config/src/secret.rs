//! Secrets: a value that is never shown, and the redactor that masks known values in any text.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, RwLock};

use serde::{Serialize, Serializer};

pub(crate) const MASK: &str = "********";

/// A value that is shown as a mask wherever it is printed or serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the code that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// Shorter values are no secrets, and masking them would garble ordinary text.
const MIN_SECRET_LENGTH: usize = 6;

/// Knows every secret value so far and masks it in any text. Copies share their secrets.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Vec<String>>>);

impl Redactor {
    pub fn add_secret(&self, secret: &str) {
        let secret = secret.trim();
        if secret.len() < MIN_SECRET_LENGTH {
            return;
        }
        let Ok(mut known) = self.0.write() else { return };
        // `Bearer …` is a secret with and without its first word.
        let bare =
            secret.split_once(' ').map(|(_, bare)| bare).filter(|bare| bare.len() >= MIN_SECRET_LENGTH);
        for form in [Some(secret), bare].into_iter().flatten().flat_map(forms) {
            if !known.contains(&form) {
                known.push(form);
            }
        }
        // The longest first, so that a secret inside another leaves no rest behind.
        known.sort_by_key(|form| std::cmp::Reverse(form.len()));
    }

    /// The text with every known secret masked.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        let Ok(known) = self.0.read() else { return Cow::Borrowed(MASK) };
        for secret in known.iter().filter(|secret| !secret.is_empty()) {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), MASK));
            }
        }
        text
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

/// The secret as it is, and as JSON writes it.
fn forms(secret: &str) -> Vec<String> {
    let quoted = serde_json::Value::from(secret).to_string();
    let inside = quoted[1..quoted.len() - 1].to_owned();
    if inside == secret { vec![inside] } else { vec![secret.to_owned(), inside] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_itself_only_when_asked() {
        let secret = Secret::new("sk-very-secret");
        let shown = format!("{secret} {secret:?} {}", serde_json::to_string(&secret).unwrap());
        assert_eq!((shown.contains("secret"), secret.expose()), (false, "sk-very-secret"));
    }

    #[test]
    fn known_secrets_are_masked_wherever_they_stand() {
        let redactor = Redactor::default();
        let copy = redactor.clone();
        for secret in ["Bearer abc-123456", "abc-123456-longer", "short", "with\"quote\n"] {
            redactor.add_secret(secret);
        }
        let rows = [
            ("nothing here", "nothing here"),
            ("key=abc-123456;", "key=********;"),
            ("abc-123456-longer", "********"),
            ("a short one", "a short one"),
            ("{\"key\":\"with\\\"quote\"}", "{\"key\":\"********\"}"),
            ("abc-123456 abc-123456", "******** ********"),
        ];
        for (text, want) in rows {
            assert_eq!(copy.redact(text), want);
        }
    }
}
