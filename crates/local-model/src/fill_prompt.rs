//! Owns fill-in-the-middle: the marks that models of code were trained with, and how much of a file is given to the model.
//! Must not know models or answers. Invariant: the prompt has at most as many tokens as the caller allows, and its beginning
//! stays the same while somebody types, so that the cache of the session hits.

use domain::middle::Middle;

use crate::tokenizer::{FILL_MARKS, Tokenizer};

/// The text before the cursor begins at a line whose number is a multiple of one of these, so that it seldom begins elsewhere;
/// of the first one that leaves enough text.
const STEPS: [usize; 3] = [16, 4, 1];
/// Bytes of code in one token, at most about.
const BYTES_PER_TOKEN: usize = 6;
/// The share of the tokens after the cursor.
const AFTER_SHARE: usize = 4;

/// The tokens of the three marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FillMarks {
    before: u32,
    after: u32,
    middle: u32,
}

impl FillMarks {
    /// Those of a vocabulary that has them.
    pub(crate) fn of(tokenizer: &Tokenizer) -> Option<Self> {
        FILL_MARKS.iter().find_map(|[before, after, middle]| {
            Some(Self {
                before: tokenizer.mark(before)?,
                after: tokenizer.mark(after)?,
                middle: tokenizer.mark(middle)?,
            })
        })
    }

    /// The tokens of a prompt that asks for `middle`, at most `room` of them.
    pub(crate) fn prompt(self, tokenizer: &Tokenizer, middle: &Middle, room: usize) -> Vec<u32> {
        let room = room.saturating_sub(3);
        let after = head(&middle.after, room / AFTER_SHARE * BYTES_PER_TOKEN);
        let mut after = tokenizer.encode(after, false);
        after.truncate(room / AFTER_SHARE);
        let before = before(tokenizer, &middle.before, room - after.len());
        let mut tokens = vec![self.before];
        tokens.extend(before);
        tokens.push(self.after);
        tokens.extend(after);
        tokens.push(self.middle);
        tokens
    }
}

/// The tokens at the end of `text`, from a line on that stays the same for a while.
fn before(tokenizer: &Tokenizer, text: &str, room: usize) -> Vec<u32> {
    for step in STEPS {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        let starts = line_starts.step_by(step).filter(|start| text.len() - start <= room * BYTES_PER_TOKEN);
        let mut encoded = starts.map(|start| (start, tokenizer.encode(&text[start..], false)));
        let fitting = encoded.find(|(_, tokens)| tokens.len() <= room);
        if let Some((start, tokens)) = fitting
            && (start == 0 || 2 * tokens.len() >= room)
        {
            return tokens;
        }
    }
    let tokens = tokenizer.encode(tail(text, room * BYTES_PER_TOKEN), false);
    tokens[tokens.len().saturating_sub(room)..].to_vec()
}

/// At most so many bytes from the beginning.
fn head(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// At most so many bytes from the end.
fn tail(text: &str, bytes: usize) -> &str {
    let start = (text.len().saturating_sub(bytes)..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[start.unwrap_or(text.len())..]
}
