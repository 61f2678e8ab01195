//! The part of a streamed text that a client has: the one rule for text that arrives as deltas, as facts, and whole.
//!
//! Knows no item, no protocol and no client. Invariant: the parts that a cursor gives out, joined, are a prefix of the
//! text, however often and in whatever pieces the text arrives. Only [`TextCursor::skip_to`] leaves a gap, where a
//! client shows the end of a text only.

/// A position in a text that grows at its end, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TextCursor {
    seen: u64,
}

impl TextCursor {
    /// A cursor of a client that has the first `seen` bytes.
    pub fn at(seen: usize) -> Self {
        Self { seen: seen as u64 }
    }

    /// `piece` is at byte `offset` of the text. Gives the part of it that the client lacks and moves behind it;
    /// `None` when the piece brings nothing new, or when text before it is missing.
    pub fn advance<'a>(&mut self, offset: u64, piece: &'a str) -> Option<&'a str> {
        let known = usize::try_from(self.seen.checked_sub(offset)?).ok()?;
        let rest = piece.get(known..).filter(|rest| !rest.is_empty())?;
        self.seen += rest.len() as u64;
        Some(rest)
    }

    /// Moves to `offset` where text before it is missing, and says whether some is; a later call of
    /// [`advance`](Self::advance) goes on from there.
    pub fn skip_to(&mut self, offset: u64) -> bool {
        let is_missing = offset > self.seen;
        self.seen = self.seen.max(offset);
        is_missing
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_piece_is_given_out_once() {
        let mut cursor = TextCursor::default();
        assert_eq!(cursor.advance(0, "Grü"), Some("Grü"));
        assert_eq!(cursor.advance(0, "Grü"), None);
        assert_eq!(cursor.advance(2, "üße"), Some("ße"));
        // Text is missing before it; the whole text brings it.
        assert_eq!(cursor.advance(99, "!"), None);
        assert_eq!(cursor.advance(0, "Grüße, Welt!"), Some(", Welt!"));
        assert_eq!(cursor.advance(0, ""), None);
    }

    #[test]
    fn a_gap_is_skipped_where_the_caller_allows_it() {
        let mut cursor = TextCursor::at(2);
        assert!(!cursor.skip_to(1));
        assert_eq!(cursor.advance(2, "c"), Some("c"));
        assert!(cursor.skip_to(10));
        assert_eq!(cursor.advance(10, "k"), Some("k"));
        assert_eq!(cursor.advance(0, "abcdefghijk"), None);
    }

    #[test]
    fn a_piece_that_splits_a_character_is_refused_until_the_whole_comes() {
        let mut cursor = TextCursor::at(1);
        assert_eq!(cursor.advance(0, "ü"), None);
    }

    proptest! {
        /// Pieces in any order, overlapping, lost and repeated; then the whole text.
        #[test]
        fn the_parts_are_the_text(
            text in "[a-zü€😀\n]{0,40}",
            pieces in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..20),
        ) {
            let mut bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            bounds.push(text.len());
            let mut cursor = TextCursor::default();
            let mut shown = String::new();
            for (one, other) in pieces {
                let (one, other) = (bounds[one.index(bounds.len())], bounds[other.index(bounds.len())]);
                let (start, end) = (one.min(other), one.max(other));
                shown.push_str(cursor.advance(start as u64, &text[start..end]).unwrap_or_default());
                prop_assert!(text.starts_with(&shown));
            }
            shown.push_str(cursor.advance(0, &text).unwrap_or_default());
            prop_assert_eq!(shown, text);
        }
    }
}
