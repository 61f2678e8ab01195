//! A chat of another program as plain data, and what the readers of all programs share: files, lines and times.

use std::path::{Path, PathBuf};

use platform::project_files;
use serde_json::{Value, json};

use crate::plan::Program;

/// A file with more than this is left out.
pub(crate) const MAX_CHAT_BYTES: u64 = 64 << 20;

/// A chat as another program stored it.
#[derive(Debug, PartialEq)]
pub(crate) struct ForeignChat {
    pub program: Program,
    /// The id there.
    pub id: String,
    pub file: PathBuf,
    pub folder: Option<PathBuf>,
    pub title: Option<String>,
    /// The day of its last entry, `2026-11-15`, where it is known.
    pub day: String,
    /// When it was last changed, in milliseconds since 1970; that of the file where the chat does not say it.
    pub updated: u64,
    pub turns: Vec<ForeignTurn>,
    /// Lines or parts of it that are no JSON.
    pub unreadable: usize,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct ForeignTurn {
    pub prompt: String,
    pub model: String,
    /// Milliseconds since 1970; 0 where it is not known.
    pub at: u64,
    /// With their times.
    pub entries: Vec<(u64, ForeignEntry)>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum ForeignEntry {
    Answer(String),
    Reasoning(String),
    Call { id: String, name: String, input: Value, output: String, failed: bool },
}

/// Collects the entries of one chat in their order.
#[derive(Default)]
pub(crate) struct Turns {
    turns: Vec<ForeignTurn>,
    model: String,
    at: u64,
}

impl Turns {
    /// The time of what follows.
    pub(crate) fn time(&mut self, time: &Value) {
        self.at = millis(time).unwrap_or(self.at);
    }

    /// The newest time.
    pub(crate) fn newest(&self) -> Option<u64> {
        Some(self.at).filter(|at| *at > 0)
    }

    pub(crate) fn model(&mut self, model: &str) {
        model.clone_into(&mut self.model);
        if let Some(turn) = self.turns.last_mut().filter(|turn| turn.model.is_empty()) {
            model.clone_into(&mut turn.model);
        }
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        let (prompt, model) = (text.to_owned(), self.model.clone());
        self.turns.push(ForeignTurn { prompt, model, at: self.at, entries: Vec::new() });
    }

    pub(crate) fn entry(&mut self, entry: ForeignEntry) {
        if self.turns.is_empty() {
            let model = self.model.clone();
            self.turns.push(ForeignTurn { model, at: self.at, ..ForeignTurn::default() });
        }
        if let Some(turn) = self.turns.last_mut() {
            turn.entries.push((self.at, entry));
        }
    }

    pub(crate) fn answer(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.entry(ForeignEntry::Answer(text.to_owned()));
        }
    }

    pub(crate) fn reasoning(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.entry(ForeignEntry::Reasoning(text.to_owned()));
        }
    }

    pub(crate) fn call(&mut self, id: &str, name: &str, input: Value) {
        let (id, name) = (id.to_owned(), name.to_owned());
        self.entry(ForeignEntry::Call { id, name, input, output: String::new(), failed: false });
    }

    /// The result of an earlier call.
    pub(crate) fn result(&mut self, call: &str, text: &str, is_error: bool) {
        let entries = self.turns.iter_mut().rev().flat_map(|turn| turn.entries.iter_mut().rev());
        for (_, entry) in entries {
            if let ForeignEntry::Call { id, output, failed, .. } = entry
                && id == call
            {
                text.clone_into(output);
                *failed = is_error;
                return;
            }
        }
        // The call itself is not in the file; its result still belongs to the chat.
        if !text.trim().is_empty() {
            let (id, name, output) = (call.to_owned(), "unknown_tool".to_owned(), text.to_owned());
            self.entry(ForeignEntry::Call { id, name, input: json!({}), output, failed: is_error });
        }
    }

    pub(crate) fn finish(self) -> Vec<ForeignTurn> {
        self.turns
    }
}

/// A file or a chat that cannot be used, with the reason.
pub(crate) type Unusable = (PathBuf, String);

/// The lines of a file that are JSON objects, and the number of those that are not, as a crash leaves one.
pub(super) fn json_lines(path: &Path) -> Result<(Vec<Value>, usize), Unusable> {
    let bytes = read(path)?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let parsed = lines.map(|line| serde_json::from_slice::<Value>(line).ok().filter(Value::is_object));
    let (read, unread): (Vec<_>, Vec<_>) = parsed.partition(Option::is_some);
    Ok((read.into_iter().flatten().collect(), unread.len()))
}

/// Stands for an image or a file of a message, which is not imported.
pub(super) fn mark_of(kind: &str) -> String {
    format!("[{kind}, not imported]")
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Unusable> {
    let unreadable = |error: std::io::Error| (path.to_owned(), format!("it cannot be read ({error})"));
    project_files::read_named(path, MAX_CHAT_BYTES).map_err(unreadable)
}

/// The files beneath a folder with this extension, in the order of their names.
pub(super) fn files(folder: &Path, extension: &str, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    entries.sort();
    for path in entries {
        // The user's own links are followed; the depth ends a circle of them.
        let Ok(kind) = path.metadata().map(|metadata| metadata.file_type()) else { continue };
        if kind.is_dir() && depth > 0 {
            found.extend(files(&path, extension, depth - 1));
        } else if kind.is_file() && path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found
}

/// `2026-11-15` of a time in this form or in milliseconds.
pub(super) fn day(time: &Value) -> String {
    match time {
        Value::String(text) => text.get(..10).unwrap_or_default().to_owned(),
        Value::Number(_) => {
            let time = time.as_i64().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
            time.map(|time| time.strftime("%Y-%m-%d").to_string()).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// Milliseconds of a time as a text or a number.
pub(super) fn millis(time: &Value) -> Option<u64> {
    let millis = match time.as_str() {
        Some(text) => text.parse::<jiff::Timestamp>().ok()?.as_millisecond(),
        None => time.as_i64()?,
    };
    u64::try_from(millis).ok().filter(|millis| *millis > 0)
}

/// When a file was last changed.
pub(super) fn file_time(file: &Path) -> u64 {
    let modified = std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.and_then(|since| u64::try_from(since.as_millis()).ok()).unwrap_or(0)
}
