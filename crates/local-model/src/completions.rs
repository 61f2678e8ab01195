//! Owns the completions of an editor: a session of their own for one model, and how much text this machine evaluates within a
//! second. Must not know editors. Invariant: a chat keeps what it remembers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use domain::middle::Middle;

use crate::engine::Engine;
use crate::error::ModelError;
use crate::generation::AnswerOptions;
use crate::sampler::Sampling;
use crate::session::{AnswerReport, Limits, Session};

/// How many tokens of a prompt this machine evaluates within a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadingSpeed {
    per_second: f64,
}

/// Before anything was measured, and the bounds of what is believed.
const FIRST_SPEED: f64 = 192.0;
const SLOWEST: f64 = 96.0;
const FASTEST: f64 = 4096.0;
/// Fewer tokens say little about the speed.
const TELLING: usize = 48;

impl Default for ReadingSpeed {
    fn default() -> Self {
        Self { per_second: FIRST_SPEED }
    }
}

impl ReadingSpeed {
    /// Learns that `tokens` took `time`.
    pub(crate) fn learn(&mut self, tokens: usize, time: Duration) {
        let seconds = time.as_secs_f64();
        if tokens >= TELLING && seconds > 0.0 {
            let measured = (tokens as f64 / seconds).clamp(SLOWEST, FASTEST);
            // A single slow moment of the machine does not count fully.
            self.per_second = (self.per_second + measured) / 2.0;
        }
    }

    pub(crate) fn tokens(self) -> usize {
        self.per_second as usize
    }
}

/// The completions of one model: a session of their own, so that a chat keeps what it remembers.
#[derive(Default)]
pub(crate) struct Completions {
    session: Option<Session>,
    speed: ReadingSpeed,
}

impl Completions {
    /// Writes what belongs between the two texts of `middle`, at most `limit` tokens. The prompt is as long as this machine
    /// evaluates within a second.
    pub(crate) fn fill(
        &mut self,
        engine: &Arc<Engine>,
        limits: Limits,
        middle: &Middle,
        limit: usize,
        stop: &AtomicBool,
        mut text: impl FnMut(&str),
    ) -> Result<AnswerReport, ModelError> {
        let session = self.session.get_or_insert_with(|| Session::new(engine.clone(), limits));
        let room = self.speed.tokens().min(session.window().saturating_sub(limit + 1));
        let tokens = engine
            .fill_prompt(middle, room)
            .ok_or_else(|| ModelError::unsupported("it was not trained to fill the middle of a text"))?;
        let options = AnswerOptions::new(limit, Sampling::default()).ending_at_marks();
        let (begun, mut first) = (Instant::now(), None);
        let report = session.answer_with(&tokens, options, stop, |piece| {
            first.get_or_insert_with(|| begun.elapsed());
            text(piece);
        })?;
        if let Some(first) = first {
            self.speed.learn(report.prompt_tokens - report.reused_tokens, first);
        }
        Ok(report)
    }
}
