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
    /// How much less likely a token is that would go on with a phrase of the answer once more; 1 changes nothing.
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
const PENALTY_WINDOW: usize = 256;
/// So many tokens in a row must have come before in the same order: names, numbers and signs may come again at any time,
/// as in `2 + 2 = 4`.
const PHRASE: usize = 4;
/// What a penalty of 2 takes off the logit of a token after the shortest phrase, and how that grows with each token.
const STRENGTH: f32 = 10.0;
const GROWTH: f32 = 1.75;
/// Longer phrases are not penalized more.
const LONGEST_PHRASE: usize = 12;

/// Draws before the likeliest allowed token is taken.
const REDRAWS: usize = 16;

/// Tokens further below the best than this have no chance worth sorting for.
const DEPTH: f32 = 20.0;

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Sampler {
        Sampler { sampling, state: sampling.seed, candidates: Vec::new(), adjusted: Vec::new() }
    }

    /// The next token after `answer`, one that is allowed if any is.
    pub(crate) fn choose(
        &mut self,
        logits: &[f32],
        answer: &[u32],
        is_allowed: &mut dyn FnMut(u32) -> bool,
    ) -> u32 {
        let penalty = self.sampling.repetition_penalty;
        if answer.is_empty() || !(penalty > 1.0 && penalty.is_finite()) {
            return self.draw_allowed(logits, is_allowed);
        }
        let mut adjusted = std::mem::take(&mut self.adjusted);
        adjusted.clear();
        adjusted.extend_from_slice(logits);
        for (token, length) in repeated(&answer[answer.len().saturating_sub(PENALTY_WINDOW)..]) {
            if let Some(logit) = adjusted.get_mut(token as usize) {
                // A loop becomes less likely with each token.
                *logit -= (penalty - 1.0) * STRENGTH * GROWTH.powi((length - PHRASE) as i32);
            }
        }
        let token = self.draw_allowed(&adjusted, is_allowed);
        self.adjusted = adjusted;
        token
    }

    /// Nearly always the first token is allowed, so the others are asked about only where it is not.
    fn draw_allowed(&mut self, logits: &[f32], is_allowed: &mut dyn FnMut(u32) -> bool) -> u32 {
        let first = self.draw(logits);
        if is_allowed(first) {
            return first;
        }
        if self.sampling.temperature > 0.0 {
            let mut left = logits.to_vec();
            let mut refused = first;
            for _ in 0..REDRAWS {
                left[refused as usize] = f32::NEG_INFINITY;
                refused = self.draw(&left);
                if is_allowed(refused) {
                    return refused;
                }
            }
        }
        likeliest_allowed(logits, is_allowed).unwrap_or(first)
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

/// The tokens that would go on with a phrase that the answer ends with and that occurs in it before, each with the length
/// of the longest such phrase.
fn repeated(answer: &[u32]) -> Vec<(u32, usize)> {
    let mut found: Vec<(u32, usize)> = Vec::new();
    for next in 1..answer.len() {
        let length = common_end(&answer[..next], answer);
        if length < PHRASE {
            continue;
        }
        match found.iter_mut().find(|(token, _)| *token == answer[next]) {
            Some((_, longest)) => *longest = length.max(*longest),
            None => found.push((answer[next], length)),
        }
    }
    found
}

/// How many tokens two sequences have in common at their ends.
fn common_end(one: &[u32], other: &[u32]) -> usize {
    let pairs = one.iter().rev().zip(other.iter().rev());
    pairs.take(LONGEST_PHRASE).take_while(|(one, other)| one == other).count()
}

/// The allowed token with the largest logit. Only those that are better than the best so far are asked about.
fn likeliest_allowed(logits: &[f32], is_allowed: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
    let mut best = None;
    let mut most = f32::NEG_INFINITY;
    for (id, &logit) in logits.iter().enumerate() {
        if logit > most && is_allowed(id as u32) {
            (best, most) = (Some(id as u32), logit);
        }
    }
    best
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_come_again_and_a_phrase_becomes_less_likely() {
        // "2 + 2 =": the second 2, and whatever stands alone, is not held against the answer.
        let [two, plus, equals] = [2, 10, 11];
        for answer in [&[two][..], &[two, plus], &[two, plus, two], &[two, plus, two, equals], &[two, two]] {
            assert!(repeated(answer).is_empty(), "{answer:?}");
            let mut logits = vec![0.0; 12];
            logits[two as usize] = 1.0;
            logits[3] = 0.99;
            let sampling = Sampling { repetition_penalty: 1.15, ..Sampling::default() };
            assert_eq!(Sampler::new(sampling).choose(&logits, answer, &mut |_| true), two, "{answer:?}");
        }
        // A phrase of four tokens that came before.
        assert_eq!(repeated(&[1, 2, 3, 4, 5, 1, 2, 3, 4]), [(5, 4)]);
        assert_eq!(repeated(&[7, 1, 2, 3, 4, 5, 7, 1, 2, 3, 4]), [(5, 5)]);
        // A loop of one token is penalized more with each step.
        let loops = |length: usize| repeated(&vec![9; length]);
        assert_eq!((loops(4), loops(5), loops(8)), (vec![], vec![(9, 4)], vec![(9, 7)]));
        assert_eq!(loops(200), [(9, LONGEST_PHRASE)]);
    }

    #[test]
    fn a_penalty_leads_out_of_a_loop() {
        let mut logits = vec![0.0; 4];
        (logits[1], logits[2]) = (4.0, 3.0);
        let sampling = Sampling { repetition_penalty: 1.15, ..Sampling::default() };
        let mut sampler = Sampler::new(sampling);
        let mut answer = Vec::new();
        for _ in 0..12 {
            answer.push(sampler.choose(&logits, &answer, &mut |_| true));
        }
        assert!(answer[..4] == [1, 1, 1, 1] && answer.contains(&2), "{answer:?}");
    }

    #[test]
    fn a_forbidden_token_is_never_chosen_while_another_is_there() {
        let logits = [1.0, 5.0, 4.0, 3.0, f32::NAN];
        for temperature in [0.0, 0.7, 2.0] {
            let mut sampler = Sampler::new(Sampling { temperature, ..Sampling::default() });
            for _ in 0..50 {
                let token = sampler.choose(&logits, &[], &mut |token| token == 3 || token == 0);
                assert!(token == 3 || token == 0 && temperature > 0.0, "{token}");
            }
            assert_eq!(sampler.choose(&logits, &[], &mut |token| token == 0), 0);
        }
        let mut asked = 0;
        let mut sampler = Sampler::new(Sampling::default());
        sampler.choose(&logits, &[], &mut |_| {
            asked += 1;
            true
        });
        assert_eq!(asked, 1);
        assert_eq!(
            sampler.choose(&logits, &[], &mut |_| false),
            1,
            "where none is allowed the best one comes"
        );
    }
}
