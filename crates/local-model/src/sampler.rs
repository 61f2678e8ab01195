//! Owns the choice of the next token from the logits. Must not know what the tokens mean.
//! Invariant: the same logits, settings and seed give the same token; broken numbers are never chosen.

/// How the next token is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Zero takes the likeliest token always.
    pub temperature: f32,
    /// Only the likeliest tokens that together reach this share are drawn from.
    pub top_p: f32,
    pub seed: u64,
    /// How much less likely a token of the answer is to come again; 1 changes nothing.
    pub repetition_penalty: f32,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { temperature: 0.0, top_p: 1.0, seed: 0, repetition_penalty: 1.0 }
    }
}

/// Draws tokens, one after the other.
pub(crate) struct Sampler {
    sampling: Sampling,
    state: u64,
    candidates: Vec<(f32, u32)>,
    adjusted: Vec<f32>,
}

/// Tokens of the answer that the penalty looks back at.
const PENALTY_WINDOW: usize = 64;

/// Tokens further below the best than this have no chance worth sorting for.
const DEPTH: f32 = 20.0;

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Sampler {
        Sampler { sampling, state: sampling.seed, candidates: Vec::new(), adjusted: Vec::new() }
    }

    /// The next token after `answer`.
    pub(crate) fn choose(&mut self, logits: &[f32], answer: &[u32]) -> u32 {
        let penalty = self.sampling.repetition_penalty;
        if answer.is_empty() || !(penalty > 1.0 && penalty.is_finite()) {
            return self.draw(logits);
        }
        let mut adjusted = std::mem::take(&mut self.adjusted);
        adjusted.clear();
        adjusted.extend_from_slice(logits);
        let recent = &answer[answer.len().saturating_sub(PENALTY_WINDOW)..];
        for (at, token) in recent.iter().enumerate() {
            // Each token once, however often it stands there.
            if let (false, Some(logit)) = (recent[..at].contains(token), adjusted.get_mut(*token as usize)) {
                *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
            }
        }
        let token = self.draw(&adjusted);
        self.adjusted = adjusted;
        token
    }

    fn draw(&mut self, logits: &[f32]) -> u32 {
        let best = likeliest(logits);
        if self.sampling.temperature.is_nan() || self.sampling.temperature <= 0.0 {
            return best;
        }
        let top = logits.get(best as usize).copied().unwrap_or(0.0);
        let temperature = self.sampling.temperature;
        self.candidates.clear();
        for (id, &logit) in logits.iter().enumerate() {
            let below = (logit - top) / temperature;
            if below > -DEPTH {
                self.candidates.push((below.exp(), id as u32));
            }
        }
        self.candidates.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let total: f32 = self.candidates.iter().map(|candidate| candidate.0).sum();
        let share = total * self.sampling.top_p.clamp(0.0, 1.0);
        let mut reached = 0.0;
        let enough = self.candidates.iter().position(|candidate| {
            reached += candidate.0;
            reached >= share
        });
        self.candidates.truncate(enough.map_or(self.candidates.len(), |last| last + 1));
        let mut left = self.uniform() * reached;
        let drawn = self.candidates.iter().find(|candidate| {
            left -= candidate.0;
            left <= 0.0
        });
        drawn.map_or(best, |candidate| candidate.1)
    }

    /// A number in [0, 1), by the SplitMix64 generator.
    fn uniform(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// The token with the largest logit, the first of equals.
pub(crate) fn likeliest(logits: &[f32]) -> u32 {
    let mut best = (f32::NEG_INFINITY, 0);
    for (id, &logit) in logits.iter().enumerate() {
        if logit > best.0 {
            best = (logit, id as u32);
        }
    }
    best.1
}
