//! Owns fitting a prompt of the domain into the window of a model that can use tools: all instructions, the tools, calls
//! and results, in the form of the model's own chat template. Must not know how answers are made.
//! Invariant: a result is never without its call; the oldest turns leave first.

use domain::item::Part;
use domain::model::{Prompt, PromptEntry};
use domain::tool::ToolSpec;
use domain::tool_call::Origin;

use crate::engine::Engine;
use crate::error::ModelError;
use crate::template::{Message, RequestedCall, Role};

/// Letters that a result keeps at each end when the last turn alone does not fit.
const RESULT_LETTERS: usize = 1500;

/// The tokens with which every chat with these instructions and tools begins, where they are Dragoman's own and hold nothing
/// of a user or a project.
pub(crate) fn opening(engine: &Engine, prompt: &Prompt) -> Option<Vec<u32>> {
    let is_own = |tool: &ToolSpec| tool.origin == Origin::Native;
    if !prompt.has_own_instructions || prompt.output_schema.is_some() || !prompt.tools.iter().all(is_own) {
        return None;
    }
    let question = Message::new(Role::User, "\u{1}");
    let messages: Vec<Message> = system(prompt).into_iter().chain([question]).collect();
    engine.encode_chat_with(&messages, &prompt.tools).ok()
}

fn system(prompt: &Prompt) -> Option<Message> {
    let parts: Vec<&str> =
        prompt.system.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| Message::new(Role::System, parts.join("\n\n")))
}

/// The tokens of `prompt` for `engine`, at most `room` of them.
pub(crate) fn fit(engine: &Engine, prompt: &Prompt, room: usize) -> Result<Vec<u32>, ModelError> {
    let system = system(prompt);
    let history = history(&prompt.entries);
    let encode = |kept: &[Message]| {
        let messages: Vec<Message> = system.iter().chain(kept).cloned().collect();
        engine.encode_chat_with(&messages, &prompt.tools)
    };
    let turns: Vec<usize> = history
        .iter()
        .enumerate()
        .filter(|(_, message)| message.role == Role::User)
        .map(|(at, _)| at)
        .collect();
    let Some(&last) = turns.last() else { return Err(ModelError::EmptyPrompt) };
    for &start in &turns {
        let tokens = encode(&history[start..])?;
        if tokens.len() <= room {
            return Ok(tokens);
        }
    }
    let mut shortened = history[last..].to_vec();
    shortened.iter_mut().filter(|message| message.role == Role::Tool).for_each(shorten);
    let tokens = encode(&shortened)?;
    if tokens.len() > room {
        return Err(ModelError::TooLong { tokens: tokens.len(), window: room });
    }
    Ok(tokens)
}

fn history(entries: &[PromptEntry]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for entry in entries {
        let next = match entry {
            PromptEntry::User { parts } => Message::new(Role::User, text_of(parts)),
            PromptEntry::Agent { text, .. } => Message::new(Role::Assistant, text.trim()),
            PromptEntry::Call { name, input, .. } => {
                let call = RequestedCall { name: name.clone(), arguments: input.clone() };
                Message { calls: vec![call], ..Message::new(Role::Assistant, "") }
            }
            PromptEntry::Result { parts, .. } => Message::new(Role::Tool, text_of(parts)),
            PromptEntry::Reasoning { .. } => continue,
        };
        match messages.last_mut() {
            // The text and the calls of one answer are one message; two messages of the user are too.
            Some(old) if old.role == next.role && next.role != Role::Tool => {
                if !old.content.is_empty() && !next.content.is_empty() {
                    old.content.push_str("\n\n");
                }
                old.content.push_str(&next.content);
                old.calls.extend(next.calls);
            }
            _ => messages.push(next),
        }
    }
    messages
}

/// A long result keeps its beginning and its end.
fn shorten(message: &mut Message) {
    let letters: Vec<char> = message.content.chars().collect();
    if letters.len() > 2 * RESULT_LETTERS {
        let start: String = letters[..RESULT_LETTERS].iter().collect();
        let end: String = letters[letters.len() - RESULT_LETTERS..].iter().collect();
        message.content = format!("{start}\n[…]\n{end}");
    }
}

pub(crate) fn text_of(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text { text } => text.trim().to_owned(),
        Part::Image { .. } => "[an image, which this model cannot see]".to_owned(),
    };
    parts.iter().map(text).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}
