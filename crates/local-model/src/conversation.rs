//! Owns fitting a prompt of the domain into a small window: which messages stay, and how long they may be.
//! Must not know how answers are made. Invariant: what comes out, with room for an answer, fits the window, and its
//! beginning stays the same from turn to turn for as long as possible, so that the cache of the session hits.

use domain::model::{Prompt, PromptEntry};

use crate::engine::Engine;
use crate::error::ModelError;
use crate::template::{Message, Role};
use crate::tool_chat::{self, text_of};

/// Said where the instructions of the engine, written for large models with tools, would fill the window.
const SYSTEM: &str = "You are a helpful assistant for programmers. Answer briefly and in plain words.";
/// Said before the schema of an answer. The answer fits it in any case; a model that knows it writes better values.
const SCHEMA: &str = "Answer with one JSON value only, without a fence, that is valid for this JSON schema:";
/// Tokens of instructions a small model can still follow.
const SYSTEM_LIMIT: usize = 300;
/// Old messages leave this many at a time, so that the rest keeps its place for some turns.
const STEP: usize = 4;

/// A prompt in tokens.
pub(crate) struct FittedPrompt {
    pub tokens: Vec<u32>,
    /// The tools had no place in the window.
    pub lost_tools: bool,
}

/// The tokens of `prompt` for `engine`, at most `room` of them. A window that has no room for the tools keeps the question.
pub(crate) fn fit(engine: &Engine, prompt: &Prompt, room: usize) -> Result<FittedPrompt, ModelError> {
    if let Some(schema) = &prompt.output_schema {
        let mut told = Prompt { output_schema: None, ..prompt.clone() };
        told.system.push(format!("{SCHEMA}\n{schema}").into());
        return fit(engine, &told, room);
    }
    if !engine.offers_tools() {
        return Ok(FittedPrompt { tokens: fit_text(engine, prompt, room)?, lost_tools: false });
    }
    match tool_chat::fit(engine, prompt, room) {
        Err(ModelError::TooLong { .. }) if !prompt.tools.is_empty() && !has_called(&prompt.entries) => {
            Ok(FittedPrompt { tokens: fit_text(engine, prompt, room)?, lost_tools: true })
        }
        fitted => Ok(FittedPrompt { tokens: fitted?, lost_tools: false }),
    }
}

/// Whether the last turn has calls, whose results the answer needs.
fn has_called(entries: &[PromptEntry]) -> bool {
    let last_turn = entries.iter().rev().take_while(|entry| !matches!(entry, PromptEntry::User { .. }));
    last_turn.into_iter().any(|entry| matches!(entry, PromptEntry::Call { .. }))
}

/// Instructions that a small model can follow, and as many messages as fit.
fn fit_text(engine: &Engine, prompt: &Prompt, room: usize) -> Result<Vec<u32>, ModelError> {
    let system = Message::new(Role::System, system(engine, prompt));
    let history = history(&prompt.entries);
    let mut dropped = surely_too_old(engine, &history, room);
    while dropped < history.len() {
        let kept = &history[dropped..];
        // A chat begins with the user: an answer whose question is gone only confuses.
        if kept[0].role == Role::User {
            let tokens = encode(engine, &system, kept)?;
            if tokens.len() <= room {
                return Ok(tokens);
            }
        }
        dropped += if dropped + STEP < history.len() { STEP - dropped % STEP } else { 1 };
    }
    let Some(last) = history.iter().rev().find(|message| message.role == Role::User) else {
        return Err(ModelError::EmptyPrompt);
    };
    shorten(engine, &system, last, room)
}

/// How many messages, from the oldest on, cannot have a place: their texts alone, with all after them, fill the room.
fn surely_too_old(engine: &Engine, history: &[Message], room: usize) -> usize {
    let mut used = 0;
    for (index, message) in history.iter().enumerate().rev() {
        used += engine.encode(&message.content, false).len();
        if used > room {
            return (index + 1).next_multiple_of(STEP).min(history.len() - 1);
        }
    }
    0
}

fn encode(engine: &Engine, system: &Message, rest: &[Message]) -> Result<Vec<u32>, ModelError> {
    let messages: Vec<Message> = std::iter::once(system).chain(rest).cloned().collect();
    engine.encode_chat(&messages)
}

/// The instructions that a small model can follow: the first part of the prompt's, which a user may have set, or a short
/// one in its place where it is too long; then every other part that still fits.
fn system(engine: &Engine, prompt: &Prompt) -> String {
    let mut parts = prompt.system.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    let mut left = SYSTEM_LIMIT;
    let mut fits = |part: &str| {
        // Four letters a token, about: a long text is not worth counting.
        let tokens = if part.len() <= left * 8 { engine.encode(part, false).len() } else { usize::MAX };
        let fits = tokens <= left;
        left -= if fits { tokens } else { 0 };
        fits
    };
    let first = parts.next().filter(|part| fits(part)).unwrap_or(SYSTEM);
    let others = parts.filter(|part| fits(part));
    std::iter::once(first).chain(others).collect::<Vec<_>>().join("\n\n")
}

/// The messages without tools and reasoning.
fn history(entries: &[PromptEntry]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for entry in entries {
        let (role, text) = match entry {
            PromptEntry::User { parts } => (Role::User, text_of(parts)),
            PromptEntry::Agent { text, .. } => (Role::Assistant, text.trim().to_owned()),
            PromptEntry::Reasoning { .. } | PromptEntry::Call { .. } | PromptEntry::Result { .. } => continue,
        };
        match messages.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.role == role => {
                last.content.push_str("\n\n");
                last.content.push_str(&text);
            }
            _ => messages.push(Message::new(role, text)),
        }
    }
    messages
}

/// One message that is too long keeps its beginning and its end.
fn shorten(engine: &Engine, system: &Message, last: &Message, room: usize) -> Result<Vec<u32>, ModelError> {
    let all = engine.encode(&last.content, false);
    let frame = encode(engine, system, &[Message::new(Role::User, "")])?.len();
    // Some tokens for the mark in the middle, and for words that come apart at the cut.
    let keep = room.saturating_sub(frame + 16);
    if keep < 16 {
        return Err(ModelError::TooLong { tokens: frame + all.len(), window: room });
    }
    let (head, tail) = (keep / 2, keep - keep / 2);
    let start = engine.decode(&all[..head.min(all.len())]);
    let end = engine.decode(&all[all.len().saturating_sub(tail).max(head.min(all.len()))..]);
    let cut = Message::new(Role::User, format!("{start}\n[…]\n{end}"));
    let tokens = encode(engine, system, &[cut])?;
    if tokens.len() > room {
        return Err(ModelError::TooLong { tokens: tokens.len(), window: room });
    }
    Ok(tokens)
}
