//! Owns guesses of the next tokens from the text itself: an answer that repeats a piece of the prompt, as a rewritten file
//! does, goes on like that piece. Must not know the model. Invariant: a guess is only ever compared with what the model
//! chooses, so it changes the speed of an answer and not its text.

/// Tokens at the end of the text that must have come before, in the same order.
const SHORTEST_MATCH: usize = 3;
/// A longer match is no better.
const LONGEST_MATCH: usize = 24;
/// Tokens of a guess: the first one, and those after good guesses. With the token before them they fill whole blocks of the
/// kernels.
const FIRST_GUESS: usize = 7;
const LONGEST_GUESS: usize = 23;
/// How much longer the match must be after each guess that was wrong from its first token on.
const CAUTION: usize = 2;

/// Guesses the tokens of one answer.
#[derive(Debug)]
pub(crate) struct Lookup {
    longest: usize,
    shortest_match: usize,
    /// Guesses and tokens of them that the model chose too.
    guessed: usize,
    confirmed: usize,
}

impl Default for Lookup {
    fn default() -> Self {
        Self { longest: FIRST_GUESS, shortest_match: SHORTEST_MATCH, guessed: 0, confirmed: 0 }
    }
}

impl Lookup {
    /// The tokens that followed the longest earlier copy of the end of `text`, at most `room` of them.
    pub(crate) fn guess(&self, text: &[u32], room: usize) -> Vec<u32> {
        let length = self.longest.min(room);
        let Some((&last, before)) = text.split_last().filter(|_| length > 0) else { return Vec::new() };
        let mut best = (0, 0);
        for end in (1..text.len()).rev() {
            if text[end - 1] != last {
                continue;
            }
            let pairs = text[..end - 1].iter().rev().zip(before.iter().rev());
            let matched = 1 + pairs.take(LONGEST_MATCH - 1).take_while(|(one, other)| one == other).count();
            // Of equal ones the latest.
            if matched > best.0 {
                best = (matched, end);
                if matched == LONGEST_MATCH {
                    break;
                }
            }
        }
        let (matched, end) = best;
        if matched < self.shortest_match {
            return Vec::new();
        }
        text[end..text.len().min(end + length)].to_vec()
    }

    /// Learns how many tokens of a guess were right.
    pub(crate) fn learn(&mut self, guessed: usize, right: usize) {
        if guessed == 0 {
            return;
        }
        self.guessed += guessed;
        self.confirmed += right;
        if right == guessed {
            self.longest = (2 * self.longest + 1).min(LONGEST_GUESS);
        } else if right < guessed / 2 {
            self.longest = FIRST_GUESS;
        }
        if right == 0 {
            self.shortest_match = (self.shortest_match + CAUTION).min(LONGEST_MATCH);
        } else if 2 * right >= guessed {
            self.shortest_match = SHORTEST_MATCH;
        }
    }

    /// Tokens that were guessed, and those of them that were right.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.guessed, self.confirmed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_after_the_longest_earlier_copy_is_guessed() {
        let lookup = Lookup::default();
        let guess = |text: &[u32]| lookup.guess(text, 4);
        assert_eq!(guess(&[]), Vec::<u32>::new());
        assert_eq!(guess(&[1, 2, 3]), Vec::<u32>::new());
        assert_eq!(guess(&[1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]), [4, 5, 6, 7]);
        assert_eq!(guess(&[1, 2, 3, 4, 9, 1, 2]), Vec::<u32>::new(), "two tokens are no copy");
        // The longer match wins, and of equal ones the latest.
        assert_eq!(guess(&[0, 1, 2, 3, 7, 7, 1, 2, 3, 8, 8, 0, 1, 2, 3]), [7, 7, 1, 2]);
        assert_eq!(guess(&[1, 2, 3, 7, 7, 1, 2, 3, 8, 8, 5, 1, 2, 3]), [8, 8, 5, 1]);
        assert_eq!(lookup.guess(&[1, 2, 3, 4, 1, 2, 3], 0), Vec::<u32>::new());
    }

    #[test]
    fn wrong_guesses_make_careful_and_right_ones_bold() {
        let mut lookup = Lookup::default();
        let text: Vec<u32> = (0..40).chain(0..4).collect();
        assert_eq!(lookup.guess(&text, 99).len(), FIRST_GUESS);
        lookup.learn(7, 7);
        lookup.learn(15, 15);
        assert_eq!(lookup.guess(&text, 99).len(), LONGEST_GUESS);
        lookup.learn(23, 0);
        assert_eq!(
            lookup.guess(&text, 99),
            Vec::<u32>::new(),
            "four tokens are not enough after a wrong guess"
        );
        lookup.learn(7, 6);
        assert_eq!(lookup.guess(&text, 99).len(), FIRST_GUESS);
        assert_eq!(lookup.counts(), (52, 28));
    }
}
