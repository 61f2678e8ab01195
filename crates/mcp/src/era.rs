//! The two eras of the protocol: revisions that begin with `initialize`, and the stateless revision 2026-07-28.
//!
//! Owns which era a server was last seen to speak, for this process; `kept` tells it what an earlier one saw. Knows no
//! transport. Invariant: the memory is only a hint; a server that proves it wrong is asked again.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use domain::command::ServerTransport;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Era {
    /// 2024-11-05 to 2025-11-25.
    Handshake,
    /// 2026-07-28.
    Stateless,
}

/// `None`: what was remembered has proven wrong.
static KNOWN: LazyLock<Mutex<HashMap<String, Option<Era>>>> = LazyLock::new(Mutex::default);

/// The name under which the era of a server is remembered: its command, or the origin of its address.
pub(crate) fn key(transport: &ServerTransport) -> String {
    match transport {
        ServerTransport::Stdio { command, args, .. } => format!("{command}\0{}", args.join("\0")),
        ServerTransport::Http { url, .. } => reqwest::Url::parse(url)
            .map(|url| url.origin().ascii_serialization())
            .unwrap_or_else(|_| url.clone()),
    }
}

pub(crate) fn remembered(key: &str) -> Option<Era> {
    known().get(key).copied().flatten()
}

pub(crate) fn remember(key: &str, era: Era) {
    known().insert(key.to_owned(), Some(era));
}

/// What an earlier process saw; this one knows better where it has seen something.
pub(crate) fn remember_earlier(key: &str, era: Era) {
    known().entry(key.to_owned()).or_insert(Some(era));
}

pub(crate) fn forget(key: &str) {
    known().insert(key.to_owned(), None);
}

fn known() -> MutexGuard<'static, HashMap<String, Option<Era>>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}
