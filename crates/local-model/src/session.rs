//! Owns one conversation with a model: what it remembers, and answering a prompt token by token.
//! Must not know providers or threads of a runtime. Invariants: what the cache holds is exactly `past`; a
//! stopped answer leaves the session usable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::Engine;
use crate::error::ModelError;
use crate::kernels::{self, Kernels};
use crate::model::{BATCH, Cache, Pass, Stopped};
use crate::sampler::{Sampler, Sampling};

/// How much a session may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Tokens of prompt and answer together; the cache grows with those really used.
    pub window: usize,
    /// Threads that compute, the calling one included.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { window: 2048, threads: 1 }
    }
}

/// A conversation. Give it the whole chat each time: what it has seen before is not computed again.
pub struct Session {
    engine: Arc<Engine>,
    pass: Pass,
    cache: Cache,
    past: Vec<u32>,
    window: usize,
}

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

/// Tokens at the end of an answer that are one phrase again and again, before it is cut off.
const REPEATED_TOKENS: usize = 64;
/// Longer phrases that come again are taken for meant.
const LONGEST_PHRASE: usize = 96;

/// The token counts and the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerReport {
    pub prompt_tokens: usize,
    /// Prompt tokens that were remembered from before.
    pub reused_tokens: usize,
    pub answer_tokens: usize,
    pub ended: AnswerEnd,
}

impl Session {
    pub fn new(engine: Arc<Engine>, limits: Limits) -> Session {
        Session::with_kernels(engine, limits, kernels::best())
    }

    pub(crate) fn with_kernels(engine: Arc<Engine>, limits: Limits, kernels: &'static Kernels) -> Session {
        let window = limits.window.min(engine.trained_window());
        let cache = Cache::new(&engine.model.shape);
        Session { pass: Pass::new(kernels, limits.threads.max(1)), engine, cache, past: Vec::new(), window }
    }

    /// Tokens of prompt and answer together.
    pub fn window(&self) -> usize {
        self.window
    }

    /// The instruction set in use.
    pub fn kernels(&self) -> &'static str {
        self.pass.kernels()
    }

    /// Bytes that what is remembered takes.
    pub fn memory(&self) -> usize {
        self.cache.size()
    }

    /// Answers `prompt` with at most `limit` tokens, handing out text as it comes.
    pub fn answer(
        &mut self,
        prompt: &[u32],
        limit: usize,
        sampling: Sampling,
        stop: &AtomicBool,
        mut text: impl FnMut(&str),
    ) -> Result<AnswerReport, ModelError> {
        let reused_tokens = self.reuse_prefix(prompt)?;
        let mut outcome = AnswerReport {
            prompt_tokens: prompt.len(),
            reused_tokens,
            answer_tokens: 0,
            ended: AnswerEnd::Full,
        };
        let mut sampler = Sampler::new(sampling);
        let mut utf8 = Utf8Buffer::default();
        let mut answer = Vec::new();
        let mut next = self.read(&prompt[reused_tokens..], stop, |logits| sampler.choose(logits, &[]));
        let limit = limit.min(self.window - prompt.len());
        outcome.ended = loop {
            let token = match next {
                Err(Stopped) => break AnswerEnd::Stopped,
                Ok(token) if self.engine.tokenizer.is_end(token) => break AnswerEnd::Finished,
                Ok(_) if outcome.answer_tokens >= limit => break AnswerEnd::Full,
                Ok(token) => token,
            };
            outcome.answer_tokens += 1;
            answer.push(token);
            self.engine.tokenizer.decode(token, &mut utf8.pending);
            utf8.flush(false, &mut text);
            if outcome.answer_tokens >= limit {
                break AnswerEnd::Full;
            }
            if is_repeating(&answer) {
                break AnswerEnd::Repeating;
            }
            next = self.read(&[token], stop, |logits| sampler.choose(logits, &answer));
        };
        utf8.flush(true, &mut text);
        Ok(outcome)
    }

    /// The logits after `prompt`, for callers that choose the token themselves. `None` when stopped.
    pub fn logits(&mut self, prompt: &[u32], stop: &AtomicBool) -> Result<Option<Vec<f32>>, ModelError> {
        let known = self.reuse_prefix(prompt)?;
        Ok(self.read(&prompt[known..], stop, |logits| logits.to_vec()).ok())
    }

    /// Forgets what `prompt` does not begin with; says how many of its tokens are remembered.
    fn reuse_prefix(&mut self, prompt: &[u32]) -> Result<usize, ModelError> {
        if prompt.is_empty() {
            return Err(ModelError::EmptyPrompt);
        }
        if prompt.len() >= self.window {
            return Err(ModelError::TooLong { tokens: prompt.len(), window: self.window });
        }
        let common = self.past.iter().zip(prompt).take_while(|(past, new)| past == new).count();
        // The last token is always computed: its logits are wanted.
        let known = common.min(prompt.len() - 1);
        self.past.truncate(known);
        self.cache.shrink(known);
        Ok(known)
    }

    /// Reads `tokens` in batches and gives `look` the logits after the last one.
    fn read<T>(
        &mut self,
        tokens: &[u32],
        stop: &AtomicBool,
        look: impl FnOnce(&[f32]) -> T,
    ) -> Result<T, Stopped> {
        let (last, batches) = batches(tokens);
        for batch in batches {
            self.pass.run(&self.engine.model, &mut self.cache, self.past.len(), batch, false, stop)?;
            self.past.extend_from_slice(batch);
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        let logits = self.pass.run(&self.engine.model, &mut self.cache, self.past.len(), last, true, stop)?;
        let looked = look(logits);
        self.past.extend_from_slice(last);
        Ok(looked)
    }
}

/// The last batch, and those before it.
fn batches(tokens: &[u32]) -> (&[u32], std::slice::Chunks<'_, u32>) {
    let last = tokens.len().saturating_sub(1) / BATCH * BATCH;
    (&tokens[last..], tokens[..last].chunks(BATCH))
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
    fn flush(&mut self, end: bool, text: &mut impl FnMut(&str)) {
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
