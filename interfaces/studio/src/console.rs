//! The debug console: what the child, the frame and the API said, newest last.
//!
//! Invariants: at most `MOST` entries; headers that carry secrets are masked before an entry is made.

use std::collections::VecDeque;

use serde::Serialize;

use crate::model::now;

const MOST: usize = 1000;
/// The longest message, and the longest body, in bytes.
const LONGEST_MESSAGE: usize = 16 * 1024;
const LONGEST_BODY: usize = 64 * 1024;
pub(crate) const MASK: &str = "•••";

#[derive(Debug, Default)]
pub(crate) struct Console {
    entries: VecDeque<ConsoleEntry>,
    newest: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct ConsoleEntry {
    pub id: u64,
    pub time: u64,
    pub tab: Option<String>,
    pub kind: EntryKind,
    pub level: Level,
    pub message: String,
    #[serde(flatten)]
    pub call: Option<CallEntry>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EntryKind {
    Api,
    Cli,
    Frame,
    Studio,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Info,
    Warning,
    Error,
}

/// A request to the API and its answer.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallEntry {
    pub method: String,
    pub url: String,
    pub request_headers: Vec<(String, String)>,
    pub request_body: Option<String>,
    pub status: Option<u16>,
    pub response_headers: Vec<(String, String)>,
    pub response_body: Option<String>,
    pub size: usize,
    pub duration: u64,
}

impl Console {
    pub(crate) fn add(
        &mut self,
        tab: Option<&str>,
        kind: EntryKind,
        level: Level,
        message: &str,
        call: Option<CallEntry>,
    ) -> ConsoleEntry {
        self.newest += 1;
        let entry = ConsoleEntry {
            id: self.newest,
            time: now(),
            tab: tab.map(str::to_owned),
            kind,
            level,
            message: shortened(message, LONGEST_MESSAGE),
            call,
        };
        self.entries.push_back(entry.clone());
        if self.entries.len() > MOST {
            self.entries.pop_front();
        }
        entry
    }

    pub(crate) fn after(&self, id: u64) -> Vec<&ConsoleEntry> {
        self.entries.iter().filter(|entry| entry.id > id).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

/// A body as the console shows it.
pub(crate) fn shown_body(bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(shortened(text, LONGEST_BODY)),
        Err(_) => Some(format!("({} bytes that are not text)", bytes.len())),
    }
}

/// The value of a header that may carry a secret is not shown.
pub(crate) fn masked(name: &str, value: &str) -> String {
    let name = name.to_ascii_lowercase();
    let words =
        ["authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "x-key", "session"];
    if words.iter().any(|word| name.contains(word)) { MASK.to_owned() } else { value.to_owned() }
}

fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}
