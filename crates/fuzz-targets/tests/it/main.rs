//! A short run over the corpus: every input, and changed copies of it that are the same in every run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "tests read their scale from the environment")]
#![allow(clippy::print_stdout, reason = "`make figures` collects the lines that begin with `figure:`")]

use std::fs;
use std::path::{Path, PathBuf};

use fuzz_targets::TARGETS;

/// Changed copies of all inputs of a target together, at scale 1.
const COPIES: usize = 400;

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Bytes are changed, removed, repeated, or taken from another input.
fn change(inputs: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = inputs[dice.below(inputs.len())].clone();
    for _ in 0..=dice.below(6) {
        let at = dice.below(bytes.len());
        let end = (at + 1 + dice.below(16)).min(bytes.len());
        match dice.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at.min(end)..end)),
            2 => {
                let part = bytes[at.min(end)..end].to_vec();
                bytes.splice(at.min(end)..end, part.repeat(2 + dice.below(5)));
            }
            3 => {
                let other = &inputs[dice.below(inputs.len())];
                let from = dice.below(other.len());
                bytes.splice(at.min(end)..end, other[from..(from + 32).min(other.len())].to_vec());
            }
            4 => bytes.insert(at, [0, 0xff, b'\n', b'"', b'\\', b'{', b'<', 0x80][dice.below(8)]),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << dice.below(8)),
        }
    }
    bytes
}

#[test]
fn no_parser_panics_on_the_corpus_or_on_changed_copies_of_it() {
    let scale: usize =
        std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1);
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    for (name, target) in TARGETS {
        let inputs = corpus(name);
        assert!(!inputs.is_empty(), "{name} has no corpus");
        inputs.iter().for_each(|input| target(input));
        for _ in 0..COPIES * scale {
            target(&change(&inputs, &mut dice));
        }
        let count = inputs.len() + COPIES * scale;
        println!("figure: {name}: {count} bad inputs, 0 panics");
    }
}
