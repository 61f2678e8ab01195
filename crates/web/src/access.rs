//! Who may use the pages: one-time tokens of links, the cookie of the browser, and the secrets of its pages.
//!
//! Must not know requests. Invariants: a token works once; secrets are compared in constant time and never printed.

use std::collections::VecDeque;
use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};

/// Links that were not used yet, and pages that are open: the oldest go first.
const MOST: usize = 32;

pub struct Access {
    cookie: String,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    tokens: VecDeque<String>,
    secrets: VecDeque<String>,
}

impl Access {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { cookie: random_text()?, known: Mutex::default() })
    }

    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// A token for one link.
    pub fn new_token(&self) -> std::io::Result<String> {
        let token = random_text()?;
        keep(&mut self.known().tokens, token.clone());
        Ok(token)
    }

    /// Takes a token and gives the secret of a page.
    pub(crate) fn exchange(&self, token: &str) -> std::io::Result<Option<String>> {
        let secret = random_text()?;
        let mut known = self.known();
        let Some(at) = position(&known.tokens, token) else { return Ok(None) };
        known.tokens.remove(at);
        keep(&mut known.secrets, secret.clone());
        Ok(Some(secret))
    }

    pub(crate) fn is_cookie(&self, text: &str) -> bool {
        is_equal(&self.cookie, text)
    }

    pub(crate) fn is_secret(&self, text: &str) -> bool {
        position(&self.known().secrets, text).is_some()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn keep(list: &mut VecDeque<String>, text: String) {
    list.push_back(text);
    if list.len() > MOST {
        list.pop_front();
    }
}

/// Looks at every entry, so that the time does not tell which one it was.
fn position(list: &VecDeque<String>, text: &str) -> Option<usize> {
    let mut found = None;
    for (at, known) in list.iter().enumerate() {
        if is_equal(known, text) {
            found = Some(at);
        }
    }
    found
}

fn is_equal(left: &str, right: &str) -> bool {
    let differing = left.bytes().zip(right.bytes()).fold(0, |sum, (left, right)| sum | (left ^ right));
    left.len() == right.len() && differing == 0
}

/// 256 random bits as text.
pub fn random_text() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    let failed = |_| std::io::Error::other("The system gives no random numbers.");
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_works_once_and_gives_a_secret_of_its_own() {
        let access = Access::new().unwrap();
        let (first, second) = (access.new_token().unwrap(), access.new_token().unwrap());
        assert_eq!(access.exchange("").unwrap(), None);
        assert_eq!(access.exchange(&first[1..]).unwrap(), None);
        let secret = access.exchange(&first).unwrap().unwrap();
        assert_eq!(access.exchange(&first).unwrap(), None);
        let other = access.exchange(&second).unwrap().unwrap();
        assert_ne!(secret, other);
        assert!(access.is_secret(&secret) && access.is_secret(&other));
        assert!(!access.is_secret(&second) && !access.is_secret(""));
        assert!(!access.is_cookie(&secret) && access.is_cookie(access.cookie()));
    }
}
