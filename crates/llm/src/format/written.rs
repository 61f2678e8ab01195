//! Bodies of requests whose history is written once: a request only grows at its end, so the messages that the request
//! before already held are kept as bytes in a place of the chat.
//!
//! Must not know the formats' messages. Invariant: the bytes equal those of a body that is written whole.

use std::ops::Range;
use std::sync::PoisonError;

use domain::Part;
use domain::model::{Prompt, PromptEntry, WrittenHistory};
use serde_json::Value;

use super::Api;

/// The written messages of the oldest entries of a chat.
struct Written {
    /// Everything but the entries that decides how messages are written.
    target: String,
    /// The keys of the entries.
    keys: Vec<u64>,
    /// The messages, with a comma after each.
    bytes: Vec<u8>,
}

/// The body of the prompt as bytes, or nothing where it has to be written whole. `encode` writes the body of a prompt;
/// `target` names everything else that its messages depend on.
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
    let mut written = match kept {
        Some(kept)
            if kept.target == target && kept.keys.len() <= end && history.keys.starts_with(&kept.keys) =>
        {
            kept
        }
        _ => Box::new(Written { target, keys: Vec::new(), bytes: Vec::new() }),
    };
    let done = written.keys.len();
    let part = |entries: Range<usize>| Prompt {
        entries: prompt.entries[entries].to_vec(),
        written: None,
        ..without_entries(prompt)
    };
    let mut body = encode(&part(done..prompt.entries.len()));
    let messages = body.get_mut(api.history_member())?.as_array_mut()?;
    // The system prompt stands before the history.
    let first = usize::from(messages.first().is_some_and(|message| message["role"] == "system"));
    if end > done {
        let rest = encode(&part(end..prompt.entries.len()));
        let rest = rest.get(api.history_member())?.as_array()?.len();
        let count = messages.len().checked_sub(rest)?;
        for message in messages.drain(first..first + count) {
            serde_json::to_writer(&mut written.bytes, &message).ok()?;
            written.bytes.push(b',');
        }
        written.keys.extend_from_slice(&history.keys[done..end]);
    }
    let bytes = with_messages(&body, api.history_member(), first, &written.bytes);
    *place = Some(written);
    bytes
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
        deferred: None,
        entries: Vec::new(),
        written: None,
        max_output: prompt.max_output,
        temperature: prompt.temperature,
        variant: prompt.variant.clone(),
        output_schema: prompt.output_schema.clone(),
        web_search: prompt.web_search,
        has_alternative: prompt.has_alternative,
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

/// The body with more messages at `position` of its list.
fn with_messages(body: &Value, member: &str, position: usize, messages: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(messages.len() + 16 * 1024);
    for (name, value) in body.as_object()? {
        bytes.push(if bytes.is_empty() { b'{' } else { b',' });
        serde_json::to_writer(&mut bytes, name).ok()?;
        bytes.push(b':');
        if name != member {
            serde_json::to_writer(&mut bytes, value).ok()?;
            continue;
        }
        bytes.push(b'[');
        for (at, message) in value.as_array()?.iter().enumerate() {
            if at == position {
                bytes.extend_from_slice(messages);
            }
            serde_json::to_writer(&mut bytes, message).ok()?;
            bytes.push(b',');
        }
        // The comma after the last message; there always is one behind the kept ones.
        if bytes.last() == Some(&b',') {
            bytes.pop();
        }
        bytes.push(b']');
    }
    bytes.push(b'}');
    Some(bytes)
}
