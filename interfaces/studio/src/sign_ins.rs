//! Sign-ins to APIs that were begun and did not end yet.
//!
//! Invariant: a `state` works once and for ten minutes.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::Deserialize;

const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(600);
const MOST_SIGN_INS: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SignInInput {
    pub authorization_url: String,
    pub token_url: String,
    pub client_id: String,
    #[serde(default)]
    pub client_secret: Option<String>,
    #[serde(default)]
    pub scopes: Vec<String>,
    #[serde(default)]
    pub keep: bool,
}

/// Sign-ins that were begun, by their `state`.
#[derive(Default)]
pub(crate) struct SignIns(Mutex<HashMap<String, SignIn>>);

pub(crate) struct SignIn {
    pub tab: String,
    pub origin: String,
    pub verifier: String,
    pub input: SignInInput,
    pub since: Instant,
}

impl SignIns {
    pub(crate) fn add(&self, state: String, sign_in: SignIn) {
        let mut open = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        open.retain(|_, other| other.since.elapsed() < SIGN_IN_TIMEOUT);
        if open.len() < MOST_SIGN_INS {
            open.insert(state, sign_in);
        }
    }

    pub(crate) fn take(&self, state: &str) -> Option<SignIn> {
        let mut open = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        open.remove(state).filter(|sign_in| sign_in.since.elapsed() < SIGN_IN_TIMEOUT)
    }
}
