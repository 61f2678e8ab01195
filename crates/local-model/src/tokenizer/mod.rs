//! Owns turning text into the token ids of a model file and back. Knows byte-level BPE and nothing of weights.
//! Invariant: `decode(encode(text, false))` gives back the bytes of `text` for a vocabulary that has all bytes.

mod bytes;
mod index;
mod merge;
mod split;

use std::ops::Range;

use crate::error::ModelError;
use crate::gguf::{Gguf, Source};
use index::Index;
use split::Splitter;

/// The vocabulary of a model file.
pub(crate) struct Tokenizer {
    source: Source,
    tokens: Vec<Range<usize>>,
    merges: Vec<Range<usize>>,
    ids: Index,
    ranks: Index,
    splitter: Splitter,
    /// Tokens that are never made by merging, longest first.
    marks: Vec<Mark>,
    ends: Vec<u32>,
    start: Option<u32>,
    end: Option<u32>,
    adds_start: bool,
}

/// A token that stands for itself, such as the beginning of a message.
struct Mark {
    id: u32,
    text: Range<usize>,
    /// Whether it steers the model, so that no user may write it.
    control: bool,
}

const KIND_UNKNOWN: i32 = 2;
const KIND_CONTROL: i32 = 3;
const KIND_USER_DEFINED: i32 = 4;

/// Every text is searched for every mark; real vocabularies have some hundreds.
const MARK_LIMIT: usize = 4096;

/// Texts by which models end their turn, whatever the file says.
const END_TEXTS: [&str; 9] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<end_of_turn>",
    "<EOT>",
    "</s>",
];

/// Fill-in-the-middle: the marks before the text before a cursor, before the text after it, and before the answer, in each
/// family of models.
pub(crate) const FILL_MARKS: [[&str; 3]; 3] = [
    ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"],
    ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"],
    ["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"],
];

impl Tokenizer {
    pub(crate) fn read(file: &Gguf) -> Result<Tokenizer, ModelError> {
        let model = file.text("tokenizer.ggml.model").unwrap_or("missing");
        if model != "gpt2" {
            return Err(ModelError::unsupported(format!(
                "its tokenizer is {model:?}, and byte-level BPE is known"
            )));
        }
        let splitter = Splitter::named(file.text("tokenizer.ggml.pre").unwrap_or("missing"))?;
        let bytes = file.bytes();
        let tokens = file.strings("tokenizer.ggml.tokens")?;
        let merges = file.strings("tokenizer.ggml.merges")?;
        let kinds = match file.array("tokenizer.ggml.token_type") {
            Some(kinds) => kinds.integers(bytes)?,
            None => Vec::new(),
        };
        let marks = marks(bytes, &tokens, &kinds);
        if marks.len() > MARK_LIMIT {
            return Err(ModelError::unsupported(format!("it has {} special tokens", marks.len())));
        }
        let known = |key: &str| {
            let id = file.unsigned(&format!("tokenizer.ggml.{key}_token_id"))?;
            u32::try_from(id).ok().filter(|&id| (id as usize) < tokens.len())
        };
        let end = known("eos");
        let mut ends: Vec<u32> = [end, known("eot"), known("eom")].into_iter().flatten().collect();
        let ending = |mark: &&Mark| END_TEXTS.iter().any(|text| bytes[mark.text.clone()] == *text.as_bytes());
        ends.extend(marks.iter().filter(ending).map(|mark| mark.id));
        Ok(Tokenizer {
            ids: Index::new(bytes, &tokens),
            ranks: Index::new(bytes, &merges),
            source: file.source().clone(),
            splitter,
            marks,
            ends,
            start: known("bos"),
            end,
            adds_start: file.flag("tokenizer.ggml.add_bos_token").unwrap_or(false),
            tokens,
            merges,
        })
    }

    /// Token ids of a text. With `marks`, texts such as `<|im_start|>` become the tokens that steer the model;
    /// never pass what a user wrote that way.
    pub(crate) fn encode(&self, text: &str, marks: bool) -> Vec<u32> {
        let mut out = Vec::with_capacity(text.len() / 3);
        self.encode_marked(text, marks, 0, &mut out);
        out
    }

    /// The bytes a token stands for; tokens that steer the model stand for none.
    pub(crate) fn decode(&self, id: u32, out: &mut Vec<u8>) {
        let Some(range) = self.tokens.get(id as usize) else { return };
        match self.marks.iter().find(|mark| mark.id == id) {
            Some(mark) if mark.control => {}
            Some(_) => out.extend_from_slice(&self.bytes()[range.clone()]),
            None => bytes::decode(&self.bytes()[range.clone()], out),
        }
    }

    /// Whether a token ends the model's turn.
    pub(crate) fn is_end(&self, id: u32) -> bool {
        self.ends.contains(&id)
    }

    /// Whether a token is a mark such as the end of a file, and no text of an author.
    pub(crate) fn is_mark(&self, id: u32) -> bool {
        self.marks.iter().any(|mark| mark.id == id && self.mark_text(mark).starts_with('<'))
    }

    /// The mark that is written as `text`.
    pub(crate) fn mark(&self, text: &str) -> Option<u32> {
        self.marks.iter().find(|mark| self.mark_text(mark) == text).map(|mark| mark.id)
    }

    /// The token every prompt begins with, where the file asks for one.
    pub(crate) fn prefix(&self) -> Option<u32> {
        self.start.filter(|_| self.adds_start)
    }

    /// The texts of the tokens that begin and end a text, as chat templates want them.
    pub(crate) fn start_and_end(&self) -> (String, String) {
        (self.text(self.start), self.text(self.end))
    }

    /// How many tokens there are.
    pub(crate) fn size(&self) -> usize {
        self.tokens.len()
    }

    /// Breaks every text in `content` that would steer the model, by a zero-width space after its first letter.
    pub(crate) fn escape_specials(&self, content: &str) -> String {
        let mut content = content.to_owned();
        for mark in self.marks.iter().filter(|mark| mark.control) {
            let text = self.mark_text(mark);
            if content.contains(text) {
                let first = text.chars().next().map_or(0, char::len_utf8);
                let broken = format!("{}\u{200b}{}", &text[..first], &text[first..]);
                content = content.replace(text, &broken);
            }
        }
        content
    }

    fn bytes(&self) -> &[u8] {
        self.source.as_ref().as_ref()
    }

    fn text(&self, id: Option<u32>) -> String {
        let range = id.and_then(|id| self.tokens.get(id as usize));
        range.map_or_else(String::new, |range| {
            String::from_utf8_lossy(&self.bytes()[range.clone()]).into_owned()
        })
    }

    fn mark_text(&self, mark: &Mark) -> &str {
        // Marks that are not UTF-8 were left out when the file was read.
        std::str::from_utf8(&self.bytes()[mark.text.clone()]).unwrap_or_default()
    }

    /// Cuts `text` at the marks from number `next` on, then encodes what lies between.
    fn encode_marked(&self, text: &str, controls: bool, next: usize, out: &mut Vec<u32>) {
        let mut rest = text;
        for (number, mark) in self.marks.iter().enumerate().skip(next) {
            if mark.control && !controls {
                continue;
            }
            let name = self.mark_text(mark);
            while let Some(place) = rest.find(name) {
                self.encode_marked(&rest[..place], controls, number + 1, out);
                out.push(mark.id);
                rest = &rest[place + name.len()..];
            }
        }
        self.encode_plain(rest, out);
    }

    fn encode_plain(&self, text: &str, out: &mut Vec<u32>) {
        let mut piece_text = String::new();
        for piece in self.splitter.split(text) {
            bytes::encode(piece.as_bytes(), &mut piece_text);
            self.encode_piece(&piece_text, out);
        }
    }

    fn encode_piece(&self, piece: &str, out: &mut Vec<u32>) {
        let find = |part: &str| self.ids.find(self.bytes(), &self.tokens, &[part.as_bytes()]);
        if self.splitter.whole_words_first
            && let Some(id) = find(piece)
        {
            return out.push(id);
        }
        let rank = |left: &str, right: &str| {
            self.ranks.find(self.bytes(), &self.merges, &[left.as_bytes(), b" ", right.as_bytes()])
        };
        merge::merge(piece, rank, |part| match find(part) {
            Some(id) => out.push(id),
            None => {
                let letters =
                    part.char_indices().map(|(place, letter)| &part[place..place + letter.len_utf8()]);
                out.extend(letters.filter_map(find));
            }
        });
    }
}

fn marks(bytes: &[u8], tokens: &[Range<usize>], kinds: &[i32]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for ((id, text), &kind) in tokens.iter().enumerate().zip(kinds) {
        let special = matches!(kind, KIND_UNKNOWN | KIND_CONTROL | KIND_USER_DEFINED);
        if special && !text.is_empty() && std::str::from_utf8(&bytes[text.clone()]).is_ok() {
            let control = kind != KIND_USER_DEFINED;
            marks.push(Mark { id: id as u32, text: text.clone(), control });
        }
    }
    marks.sort_by_key(|mark| std::cmp::Reverse(mark.text.len()));
    marks
}
