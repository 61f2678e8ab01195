//! The files that a server was sent, and the messages that keep it up to date.
//!
//! Knows no process. Invariants: a server has at most so many files open; what it is sent is what is on the disk when a
//! call needs it.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::position::uri_of;

const MOST_OPEN: usize = 64;
/// Larger files are not sent.
const MOST_BYTES: u64 = 4 << 20;

#[derive(Debug, Default)]
pub(crate) struct Documents {
    /// The one that was used last comes last.
    open: VecDeque<Document>,
}

#[derive(Debug)]
struct Document {
    path: PathBuf,
    version: u64,
    hash: u64,
}

/// A notification.
pub(crate) type Message = (&'static str, Value);

impl Documents {
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.open.iter().map(|document| document.path.clone()).collect()
    }

    /// The messages that bring the server to this text; none where it has it.
    pub(crate) fn update(&mut self, path: &Path, language: &str, text: &str) -> Vec<Message> {
        let hash = hash(text);
        let uri = uri_of(path);
        let Some(at) = self.open.iter().position(|document| document.path == path) else {
            let document = json!({"uri": uri, "languageId": language, "version": 1, "text": text});
            let mut messages = vec![("textDocument/didOpen", json!({"textDocument": document}))];
            self.open.push_back(Document { path: path.to_owned(), version: 1, hash });
            if self.open.len() > MOST_OPEN
                && let Some(old) = self.open.pop_front()
            {
                messages.push(close(&old.path));
            }
            return messages;
        };
        let Some(mut document) = self.open.remove(at) else { return Vec::new() };
        let mut messages = Vec::new();
        if document.hash != hash {
            (document.hash, document.version) = (hash, document.version + 1);
            let changes = json!({
                "textDocument": {"uri": uri, "version": document.version},
                "contentChanges": [{"text": text}]
            });
            messages.push(("textDocument/didChange", changes));
            messages.push(("textDocument/didSave", json!({"textDocument": {"uri": uri}})));
        }
        self.open.push_back(document);
        messages
    }

    /// The messages for a file that is gone.
    pub(crate) fn forget(&mut self, path: &Path) -> Vec<Message> {
        let before = self.open.len();
        self.open.retain(|document| document.path != path);
        if self.open.len() < before { vec![close(path)] } else { Vec::new() }
    }
}

fn close(path: &Path) -> Message {
    ("textDocument/didClose", json!({"textDocument": {"uri": uri_of(path)}}))
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The text of a file; the sentence says why there is none.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let found = path.metadata().map_err(|error| format!("{shown}: {error}."))?;
    if !found.is_file() || found.len() > MOST_BYTES {
        return Err(format!("{shown} is not a file of at most {} MiB.", MOST_BYTES >> 20));
    }
    std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_opened_once_and_then_changed() {
        let mut documents = Documents::default();
        let names = |messages: Vec<Message>| messages.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let path = Path::new("/a.rs");
        assert_eq!(names(documents.update(path, "rust", "1")), ["textDocument/didOpen"]);
        assert_eq!(names(documents.update(path, "rust", "1")), [""; 0]);
        let changed = documents.update(path, "rust", "2");
        assert_eq!(changed[0].1["textDocument"]["version"], 2);
        assert_eq!(names(changed), ["textDocument/didChange", "textDocument/didSave"]);
        for number in 0..MOST_OPEN {
            documents.update(Path::new(&format!("/{number}.rs")), "rust", "");
        }
        assert_eq!(documents.paths().len(), MOST_OPEN);
        assert_eq!(names(documents.update(path, "rust", "2")).len(), 2, "it was closed, and another one is");
        assert_eq!(names(documents.forget(path)), ["textDocument/didClose"]);
    }
}
