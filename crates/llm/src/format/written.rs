//! Bodies of requests whose history is written once: a request only grows at its end, so the messages that the request
//! before already held are kept as bytes in a place of the chat, and so is everything around the messages.
//!
//! Must not know the formats' messages. Invariant: the bytes equal those of a body that is written whole.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use domain::Part;
use domain::model::{Prompt, PromptEntry, WrittenHistory};
use serde_json::Value;

use super::Api;

/// So many entries are written at once.
const PART: usize = 256;

/// The written messages of the oldest entries of a chat.
struct Written {
    /// Everything but the prompt that decides how a body is written.
    target: String,
    /// The keys of the entries.
    keys: Vec<u64>,
    /// The messages, with a comma after each.
    bytes: Vec<u8>,
    frame: Option<Frame>,
}

/// A body without its history.
struct Frame {
    /// The prompt it was made of, without entries.
    prompt: Prompt,
    /// Up to the first message of the history.
    before: Vec<u8>,
    /// From the end of the list of messages on.
    after: Vec<u8>,
}

/// The body of the prompt as bytes, or nothing where it has to be written whole. `encode` writes the body of a prompt;
/// `target` names everything else that it depends on.
pub(crate) fn body(
    api: Api,
    prompt: &Prompt,
    target: String,
    encode: impl Fn(&Prompt) -> Value,
) -> Option<Vec<u8>> {
    let history = prompt.written.as_ref().filter(|history| can_be_kept(prompt, history))?;
    let end = end_of_kept(&prompt.entries);
    let mut place = history.place.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = place.take().and_then(|kept| kept.downcast::<Written>().ok());
    let mut written = match kept.filter(|kept| kept.target == target) {
        Some(kept) => kept,
        None => Box::new(Written { target, keys: Vec::new(), bytes: Vec::new(), frame: None }),
    };
    if written.keys.len() > end || !history.keys.starts_with(&written.keys) {
        written.keys.clear();
        written.bytes.clear();
    }
    let messages = |part: Range<usize>| {
        let entries = prompt.entries[part].to_vec();
        let mut body = encode(&Prompt { entries, ..of_history(prompt) });
        match body.get_mut(api.history_member()).map(Value::take) {
            Some(Value::Array(messages)) => Some(messages),
            _ => None,
        }
    };
    written.write_until(end, &prompt.entries, &history.keys, &messages)?;
    let rest = messages(end..prompt.entries.len())?;
    let frame = match written.frame.take().filter(|frame| frame.is_of(prompt)) {
        Some(frame) => frame,
        None => Frame::new(api, without_entries(prompt), encode)?,
    };
    let bytes = frame.around(&written.bytes, &rest);
    written.frame = Some(frame);
    *place = Some(written);
    bytes
}

impl Written {
    /// Writes the messages of the entries before `end`. A long history is written in parts: as values it is several times as
    /// large as its bytes.
    fn write_until(
        &mut self,
        end: usize,
        entries: &[PromptEntry],
        keys: &[u64],
        messages: &impl Fn(Range<usize>) -> Option<Vec<Value>>,
    ) -> Option<()> {
        let mut until = self.keys.len() + PART;
        while self.keys.len() < end {
            let done = self.keys.len();
            let (to, cut) = match entries.get(..until) {
                Some(part) => (until, end_of_kept(part)),
                None => (entries.len(), end),
            };
            until += PART;
            if cut <= done {
                continue;
            }
            let newer = messages(done..to)?;
            let count = newer.len().checked_sub(messages(cut..to)?.len())?;
            write_messages(newer.get(..count)?, &mut self.bytes)?;
            self.keys.extend_from_slice(&keys[done..cut]);
            until = cut + PART;
        }
        Some(())
    }
}

fn write_messages(messages: &[Value], bytes: &mut Vec<u8>) -> Option<()> {
    for message in messages {
        serde_json::to_writer(&mut *bytes, message).ok()?;
        bytes.push(b',');
    }
    Some(())
}

impl Frame {
    /// `prompt`: without entries.
    fn new(api: Api, prompt: Prompt, encode: impl Fn(&Prompt) -> Value) -> Option<Self> {
        let body = encode(&prompt);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut bytes = &mut before;
        for (at, (name, value)) in body.as_object()?.iter().enumerate() {
            bytes.push(if at == 0 { b'{' } else { b',' });
            serde_json::to_writer(&mut *bytes, name).ok()?;
            bytes.push(b':');
            if name == api.history_member() {
                bytes.push(b'[');
                // The system prompt, where it is before the history.
                write_messages(value.as_array()?, bytes)?;
                bytes = &mut after;
                bytes.push(b']');
            } else {
                serde_json::to_writer(&mut *bytes, value).ok()?;
            }
        }
        bytes.push(b'}');
        // Without a history there is no place to put one.
        (!after.is_empty()).then_some(Self { prompt, before, after })
    }

    /// The body with these messages: those that are written, then the others.
    fn around(&self, written: &[u8], messages: &[Value]) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.before.len() + written.len() + self.after.len() + 4096);
        bytes.extend_from_slice(&self.before);
        bytes.extend_from_slice(written);
        write_messages(messages, &mut bytes)?;
        // The comma after the last message.
        if bytes.last() == Some(&b',') {
            bytes.pop();
        }
        bytes.extend_from_slice(&self.after);
        Some(bytes)
    }

    /// Whether the body of this prompt has the same frame.
    fn is_of(&self, prompt: &Prompt) -> bool {
        let known = &self.prompt;
        Arc::ptr_eq(&known.tools, &prompt.tools)
            && known.system == prompt.system
            && known.session == prompt.session
            && (known.max_output, known.temperature) == (prompt.max_output, prompt.temperature)
            && (&known.variant, &known.output_schema) == (&prompt.variant, &prompt.output_schema)
            && known.web_search == prompt.web_search
            && (&known.text_tools, known.is_sequential) == (&prompt.text_tools, prompt.is_sequential)
    }
}

/// Tools that are named by the history, or loaded by it, make messages that depend on more than their own entries.
fn can_be_kept(prompt: &Prompt, history: &WrittenHistory) -> bool {
    history.keys.len() == prompt.entries.len() && !prompt.tools.is_empty() && prompt.deferred.is_none()
}

fn without_entries(prompt: &Prompt) -> Prompt {
    Prompt {
        session: prompt.session.clone(),
        system: prompt.system.clone(),
        tools: prompt.tools.clone(),
        output_schema: prompt.output_schema.clone(),
        web_search: prompt.web_search,
        is_sequential: prompt.is_sequential,
        ..of_history(prompt)
    }
}

/// The prompt without entries and without all that no message of the history depends on.
fn of_history(prompt: &Prompt) -> Prompt {
    Prompt {
        max_output: prompt.max_output,
        temperature: prompt.temperature,
        variant: prompt.variant.clone(),
        text_tools: prompt.text_tools.clone(),
        ..Prompt::default()
    }
}

/// How many entries can be kept: those before an answer that says something, so that no message reaches over
/// the end, and not the last two messages of the user, which carry the marks of caches.
fn end_of_kept(entries: &[PromptEntry]) -> usize {
    let mut users = 0;
    for at in (1..entries.len()).rev() {
        let (before, entry) = (is_of_user(&entries[at - 1]), is_of_user(&entries[at]));
        users += usize::from(entry && !before && makes_message(entries, at));
        if users >= 2 && before && !entry && speaks(&entries[at..]) {
            let start = entries[..at].iter().rposition(|entry| !is_of_user(entry)).map_or(0, |last| last + 1);
            if makes_message(entries, start) {
                return at;
            }
        }
    }
    0
}

fn is_of_user(entry: &PromptEntry) -> bool {
    matches!(entry, PromptEntry::User { .. } | PromptEntry::Result { .. })
}

/// Whether the entries of the user that start here make a message in every format.
fn makes_message(entries: &[PromptEntry], start: usize) -> bool {
    let is_call = start > 0 && matches!(entries[start - 1], PromptEntry::Call { .. });
    entries[start..].iter().take_while(|entry| is_of_user(entry)).any(|entry| match entry {
        PromptEntry::User { parts } => parts.iter().any(|part| match part {
            Part::Text { text } => !text.trim().is_empty(),
            Part::Image { .. } => true,
        }),
        PromptEntry::Result { .. } => is_call,
        PromptEntry::Reasoning { .. } | PromptEntry::Agent { .. } | PromptEntry::Call { .. } => false,
    })
}

/// Whether the answer at the beginning of the entries makes a message in every format.
fn speaks(entries: &[PromptEntry]) -> bool {
    entries.iter().take_while(|entry| !is_of_user(entry)).any(|entry| match entry {
        PromptEntry::Agent { text, .. } => !text.trim().is_empty(),
        PromptEntry::Call { .. } => true,
        PromptEntry::Reasoning { .. } | PromptEntry::User { .. } | PromptEntry::Result { .. } => false,
    })
}
