//! Owns one conversation with a model: what it remembers, and answering a prompt token by token.
//! Must not know providers or threads of a runtime. Invariants: what the cache holds is exactly `past`; a
//! stopped answer leaves the session usable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::Engine;
use crate::error::ModelError;
use crate::generation::{AnswerEnd, AnswerOptions, Generation};
use crate::kernels::{self, Kernels};
use crate::lookup::Lookup;
use crate::model::{BATCH, Cache, Pass, Stopped};
use crate::sampler::Sampling;

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

/// The token counts and the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerReport {
    pub prompt_tokens: usize,
    /// Prompt tokens that were remembered from before.
    pub reused_tokens: usize,
    pub answer_tokens: usize,
    /// Tokens that were guessed from the text before them, and those of them that the model chose.
    pub guessed_tokens: usize,
    pub confirmed_tokens: usize,
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
        text: impl FnMut(&str),
    ) -> Result<AnswerReport, ModelError> {
        self.answer_with(prompt, AnswerOptions::new(limit, sampling), stop, text)
    }

    /// The same, made as `options` say.
    pub fn answer_with(
        &mut self,
        prompt: &[u32],
        mut options: AnswerOptions,
        stop: &AtomicBool,
        mut text: impl FnMut(&str),
    ) -> Result<AnswerReport, ModelError> {
        let reused_tokens = self.reuse_prefix(prompt)?;
        options.limit = options.limit.min(self.window - prompt.len());
        let mut lookup = options.guesses.then(Lookup::default);
        let mut generation = Generation::new(self.engine.clone(), options, &mut text);
        let ended = match self.read(&prompt[reused_tokens..], 1, stop) {
            Ok(()) => self.generate(&mut generation, &mut lookup, stop),
            Err(Stopped) => AnswerEnd::Stopped,
        };
        generation.finish();
        let (guessed_tokens, confirmed_tokens) = lookup.map(|lookup| lookup.counts()).unwrap_or_default();
        Ok(AnswerReport {
            prompt_tokens: prompt.len(),
            reused_tokens,
            answer_tokens: generation.len(),
            guessed_tokens,
            confirmed_tokens,
            ended,
        })
    }

    /// Makes an answer after the prompt, whose logits are there.
    fn generate(
        &mut self,
        generation: &mut Generation,
        lookup: &mut Option<Lookup>,
        stop: &AtomicBool,
    ) -> AnswerEnd {
        // Tokens of the last pass that are guesses; the logits of row `right` come after so many right ones.
        let mut guess: Vec<u32> = Vec::new();
        let mut right = 0;
        loop {
            let token = generation.choose(self.pass.logits(right));
            let is_stopped = || stop.load(Ordering::Relaxed).then_some(AnswerEnd::Stopped);
            let ended = generation.push(token).or_else(is_stopped);
            if ended.is_none() && guess.get(right) == Some(&token) {
                right += 1;
                continue;
            }
            // The model was given guesses that it did not choose.
            self.past.truncate(self.past.len() - (guess.len() - right));
            if let Some(ended) = ended {
                return ended;
            }
            let mut next = vec![token];
            if let Some(lookup) = lookup {
                lookup.learn(guess.len(), right);
                self.past.push(token);
                next.extend(lookup.guess(&self.past, generation.room().saturating_sub(1)));
                self.past.pop();
            }
            if self.read(&next, next.len(), stop).is_err() {
                return AnswerEnd::Stopped;
            }
            guess = next.split_off(1);
            right = 0;
        }
    }

    /// The logits after `prompt`, for callers that choose the token themselves. `None` when stopped.
    pub fn logits(&mut self, prompt: &[u32], stop: &AtomicBool) -> Result<Option<Vec<f32>>, ModelError> {
        let known = self.reuse_prefix(prompt)?;
        Ok(self.read(&prompt[known..], 1, stop).ok().map(|()| self.pass.logits(0).to_vec()))
    }

    /// How many tokens of `prompt` are remembered.
    pub(crate) fn known(&self, prompt: &[u32]) -> usize {
        self.past.iter().zip(prompt).take_while(|(past, new)| past == new).count()
    }

    /// The largest number of tokens, at most `tokens`, whose memory can be saved and restored.
    pub(crate) fn whole_pages(&self, tokens: usize) -> usize {
        self.cache.whole_pages(tokens)
    }

    /// The memory of `tokens`, whole pages of them, as bytes; `None` where they are not remembered.
    pub(crate) fn saved(&self, tokens: &[u32]) -> Option<Vec<u8>> {
        (self.known(tokens) == tokens.len()).then(|| self.cache.to_bytes(tokens.len()))
    }

    /// Takes over what `saved` gave for the same tokens, model and kernels. `false`: it is not that, and nothing changed.
    pub(crate) fn restore(&mut self, tokens: &[u32], bytes: &[u8]) -> bool {
        let fits = tokens.len() < self.window && self.cache.restore(tokens.len(), bytes);
        if fits {
            self.past = tokens.to_vec();
        }
        fits
    }

    /// Forgets what `prompt` does not begin with; says how many of its tokens are remembered.
    fn reuse_prefix(&mut self, prompt: &[u32]) -> Result<usize, ModelError> {
        if prompt.is_empty() {
            return Err(ModelError::EmptyPrompt);
        }
        if prompt.len() >= self.window {
            return Err(ModelError::TooLong { tokens: prompt.len(), window: self.window });
        }
        // The last token is always computed: its logits are wanted.
        let known = self.known(prompt).min(prompt.len() - 1);
        self.past.truncate(known);
        self.cache.shrink(known);
        Ok(known)
    }

    /// Reads `tokens` in batches. The logits after the last `wanted` of them, all of the last batch, are there then.
    fn read(&mut self, tokens: &[u32], wanted: usize, stop: &AtomicBool) -> Result<(), Stopped> {
        let (last, batches) = batches(tokens);
        for batch in batches {
            self.pass.run(&self.engine.model, &mut self.cache, self.past.len(), batch, 0, stop)?;
            self.past.extend_from_slice(batch);
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        self.pass.run(&self.engine.model, &mut self.cache, self.past.len(), last, wanted, stop)?;
        self.past.extend_from_slice(last);
        Ok(())
    }
}

/// The last batch, and those before it.
fn batches(tokens: &[u32]) -> (&[u32], std::slice::Chunks<'_, u32>) {
    let last = tokens.len().saturating_sub(1) / BATCH * BATCH;
    (&tokens[last..], tokens[..last].chunks(BATCH))
}
