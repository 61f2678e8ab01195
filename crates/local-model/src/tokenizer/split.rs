//! Owns the first cut of a text into words, numbers, punctuation and space, as each family of vocabularies was
//! trained with. Knows no vocabulary. Invariant: the pieces, in a row, are the text.

use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;

use crate::error::ModelError;

/// The cut of one family.
pub(super) struct Splitter {
    stages: Vec<Stage>,
    /// Whether a piece that is a token is taken whole, without merging.
    pub whole_words_first: bool,
}

/// One pattern; what it does not match is a piece too. Compiled when first used.
struct Stage {
    pattern: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

// The originals end in `\s+(?!\S)|\s+`: spaces before a word leave the last one to it. `split` does that by hand.
const DIGITS: &str = r"\p{N}";
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";
const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);

impl Splitter {
    /// The cut that `tokenizer.ggml.pre` names.
    pub(super) fn named(name: &str) -> Result<Splitter, ModelError> {
        let (patterns, whole_words_first): (&[&str], bool) = match name {
            "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" => (&[DIGITS, GPT2], false),
            "gpt-2" | "olmo" => (&[GPT2], false),
            "llama-bpe" | "llama3" | "llama-v3" => (&[LLAMA3], true),
            "qwen2" | "stablelm2" | "deepseek-r1-qwen" => (&[QWEN2], false),
            _ => {
                return Err(ModelError::unsupported(format!(
                    "its text is cut by {name:?}, which is not known"
                )));
            }
        };
        let stage = |pattern: &&'static str| Stage { pattern, compiled: OnceLock::new() };
        Ok(Splitter { stages: patterns.iter().map(stage).collect(), whole_words_first })
    }

    /// The pieces of `text`, in order.
    pub(super) fn split<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut pieces: Vec<Range<usize>> = std::iter::once(0..text.len()).collect();
        for stage in &self.stages {
            let mut finer = Vec::new();
            for piece in pieces {
                stage.split(text, piece, &mut finer);
            }
            pieces = finer;
        }
        pieces.into_iter().filter(|piece| !piece.is_empty()).map(|piece| &text[piece]).collect()
    }
}

impl Stage {
    fn split(&self, text: &str, piece: Range<usize>, out: &mut Vec<Range<usize>>) {
        // The patterns are constants that a test compiles; a piece left whole is still encoded, only worse.
        let compiled = self.compiled.get_or_init(|| Regex::new(self.pattern).ok());
        let Some(regex) = compiled else { return out.push(piece) };
        let (whole, offset) = (&text[piece.clone()], piece.start);
        let mut place = 0;
        while let Some(found) = regex.find_at(whole, place) {
            let end = end_of(whole, found.range(), self.pattern == GPT2);
            out.push(offset + place..offset + found.start());
            out.push(offset + found.start()..offset + end);
            place = end;
        }
        out.push(offset + place..piece.end);
    }
}

/// Where a match really ends: a run of spaces before something else leaves its last space to it. In all patterns
/// but one, a run that ends a line was matched as such and keeps its end.
fn end_of(whole: &str, found: Range<usize>, cuts_lines: bool) -> usize {
    let run = &whole[found.clone()];
    let last = run.chars().next_back().unwrap_or('x');
    let shortens = found.end < whole.len()
        && last.is_whitespace()
        && (cuts_lines || !matches!(last, '\r' | '\n'))
        && run.len() > last.len_utf8()
        && run.chars().all(char::is_whitespace);
    if shortens { found.end - last.len_utf8() } else { found.end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expected: &[&str]) {
        assert_eq!(Splitter::named(name).unwrap().split(text), expected, "{name}: {text:?}");
    }

    #[test]
    fn cuts_as_each_family_was_trained() {
        for pattern in [DIGITS, GPT2, LLAMA3, QWEN2] {
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
        }
        check("smollm", "", &[]);
        check("smollm", "I'm 42, ok", &["I", "'m", " ", "4", "2", ",", " ok"]);
        check("smollm", "a  1  b   ", &["a", "  ", "1", " ", " b", "   "]);
        check("gpt-2", "I'm 42  ok", &["I", "'m", " 42", " ", " ok"]);
        check("gpt-2", "x\n\n  y", &["x", "\n\n ", " y"]);
        check("gpt-2", "x\n\ny\n", &["x", "\n", "\n", "y", "\n"]);
        check("llama-bpe", "x\n\n  y 12345", &["x", "\n\n", " ", " y", " ", "123", "45"]);
        check("llama-bpe", "I'M there!\n\nok", &["I", "'M", " there", "!\n\n", "ok"]);
        check("qwen2", "12 ab", &["1", "2", " ab"]);
    }
}
