//! Owns one answer while it is made: the choice of each token within the rules of the answer, its text, and its end.
//! Must not know caches or passes. Invariant: a token that the rules forbid is chosen only where they forbid every token.

use std::sync::Arc;

use domain::tool::ToolSpec;
use serde_json::Value;

use crate::engine::Engine;
use crate::grammar::{Progress, Rules};
use crate::sampler::{Sampler, Sampling};

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnd {
    /// The model finished its turn.
    Finished,
    /// The limit of the answer or the window was reached.
    Full,
    /// The model said the same over and over, as small ones do.
    Repeating,
    /// The caller asked to stop.
    Stopped,
}

/// How an answer is made.
#[derive(Debug, Clone)]
pub struct AnswerOptions {
    pub(crate) limit: usize,
    pub(crate) guesses: bool,
    sampling: Sampling,
    ends_at_marks: bool,
    rules: Option<Progress>,
}

impl AnswerOptions {
    /// At most `limit` tokens.
    pub fn new(limit: usize, sampling: Sampling) -> Self {
        Self { limit, sampling, guesses: true, ends_at_marks: false, rules: None }
    }

    /// Tokens are not guessed from the text before them. It changes the speed and not the answer.
    pub fn without_guesses(self) -> Self {
        Self { guesses: false, ..self }
    }

    /// Every mark ends the answer, as is right inside of a file.
    pub fn ending_at_marks(self) -> Self {
        Self { ends_at_marks: true, ..self }
    }

    /// Calls in the answer must fit the schemas of `tools`, and with `schema` the answer is JSON of it. With `is_thinking` the
    /// prompt has opened a thought.
    pub fn with_rules(self, tools: &[ToolSpec], schema: Option<&Value>, is_thinking: bool) -> Self {
        let rules = Rules::new(tools, schema).map(|rules| Progress::new(rules, is_thinking));
        Self { rules, ..self }
    }
}

/// Tokens at the end of an answer that are one phrase again and again, before it is cut off.
const REPEATED_TOKENS: usize = 64;
/// Longer phrases that come again are taken for meant.
const LONGEST_PHRASE: usize = 96;

/// An answer that is being made.
pub(crate) struct Generation<'a> {
    engine: Arc<Engine>,
    sampler: Sampler,
    rules: Option<Progress>,
    ends_at_marks: bool,
    limit: usize,
    answer: Vec<u32>,
    utf8: Utf8Buffer,
    /// The bytes of one token.
    bytes: Vec<u8>,
    text: &'a mut dyn FnMut(&str),
}

impl<'a> Generation<'a> {
    pub(crate) fn new(engine: Arc<Engine>, options: AnswerOptions, text: &'a mut dyn FnMut(&str)) -> Self {
        let AnswerOptions { limit, sampling, ends_at_marks, rules, guesses: _ } = options;
        Self {
            engine,
            sampler: Sampler::new(sampling),
            rules,
            ends_at_marks,
            limit,
            answer: Vec::new(),
            utf8: Utf8Buffer::default(),
            bytes: Vec::new(),
            text,
        }
    }

    /// Tokens of the answer so far.
    pub(crate) fn len(&self) -> usize {
        self.answer.len()
    }

    /// Tokens that the answer may still have.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.answer.len())
    }

    /// The next token by the logits after the last one.
    pub(crate) fn choose(&mut self, logits: &[f32]) -> u32 {
        let Some(rules) = &self.rules else {
            return self.sampler.choose(logits, &self.answer, &mut |_| true);
        };
        let (tokenizer, bytes) = (&self.engine.tokenizer, &mut self.bytes);
        // What a call changes in a file it writes twice, so phrases come again there.
        let answer = if rules.is_restricted() { &[] } else { &self.answer[..] };
        self.sampler.choose(logits, answer, &mut |token| {
            if tokenizer.is_end(token) {
                return rules.may_end();
            }
            bytes.clear();
            tokenizer.decode(token, bytes);
            // Tokens that steer the model have no text.
            if bytes.is_empty() { !rules.is_restricted() } else { rules.allows(bytes) }
        })
    }

    /// Takes a chosen token; says why the answer ends with it, if it does.
    pub(crate) fn push(&mut self, token: u32) -> Option<AnswerEnd> {
        let tokenizer = &self.engine.tokenizer;
        if tokenizer.is_end(token) || self.ends_at_marks && tokenizer.is_mark(token) {
            return Some(AnswerEnd::Finished);
        }
        if self.room() == 0 {
            return Some(AnswerEnd::Full);
        }
        self.answer.push(token);
        self.bytes.clear();
        tokenizer.decode(token, &mut self.bytes);
        if let Some(rules) = &mut self.rules
            && !rules.push(&self.bytes)
        {
            // No token was allowed; the rest is free, and its reader refuses it.
            self.rules = None;
        }
        self.utf8.pending.extend_from_slice(&self.bytes);
        self.utf8.flush(false, self.text);
        if self.room() == 0 {
            return Some(AnswerEnd::Full);
        }
        is_repeating(&self.answer).then_some(AnswerEnd::Repeating)
    }

    /// Hands out what is left of the text.
    pub(crate) fn finish(&mut self) {
        self.utf8.flush(true, self.text);
    }
}

/// Whether the end of an answer is one phrase again and again: a short one at least four times, a longer one three.
fn is_repeating(answer: &[u32]) -> bool {
    (1..=LONGEST_PHRASE).any(|period| {
        let length = REPEATED_TOKENS.max(3 * period);
        let tail = answer.len().checked_sub(length).map(|start| &answer[start..]);
        tail.is_some_and(|tail| tail[period..] == tail[..length - period])
    })
}

/// Bytes of tokens, handed out as whole characters.
#[derive(Default)]
struct Utf8Buffer {
    pending: Vec<u8>,
}

impl Utf8Buffer {
    /// Hands out what is complete; at the end also what is broken, as replacement characters.
    fn flush(&mut self, end: bool, text: &mut dyn FnMut(&str)) {
        loop {
            let (valid, broken) = match std::str::from_utf8(&self.pending) {
                Ok(_) => (self.pending.len(), 0),
                Err(error) => {
                    let rest = self.pending.len() - error.valid_up_to();
                    let broken = error.error_len().or(end.then_some(rest));
                    (error.valid_up_to(), broken.unwrap_or(0))
                }
            };
            if valid > 0 {
                text(&String::from_utf8_lossy(&self.pending[..valid]));
            }
            if broken > 0 {
                text("\u{fffd}");
            }
            self.pending.drain(..valid + broken);
            if broken == 0 {
                return;
            }
        }
    }
}
