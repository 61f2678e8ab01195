//! Counts of the corpus, as rows for docs/quality.md.

use std::collections::BTreeMap;

use tools::edit::matching::Repair;

use super::cases::Format;

#[derive(Debug)]
pub(super) enum Outcome {
    Applied { repair: Repair },
    Refused { is_usable: bool, told: String },
    Wrong { told: String },
}

#[derive(Default)]
pub(super) struct Report {
    /// By format and whether they are held back.
    counts: BTreeMap<(Format, bool), Counts>,
    repairs: BTreeMap<Repair, [usize; 2]>,
    useless: Vec<String>,
    wrong: Vec<String>,
}

#[derive(Default, Clone)]
struct Counts {
    applied: usize,
    refused: usize,
    useless: usize,
    wrong: usize,
}

impl Counts {
    fn all(&self) -> usize {
        self.applied + self.refused + self.useless + self.wrong
    }

    fn row(&self) -> String {
        format!("{} | {} | {} | {}", self.all(), self.applied, self.refused, self.wrong)
    }
}

/// The repair that an answer tells of.
pub(super) fn repair_of(told: &str) -> Repair {
    let is_told = |repair: &Repair| repair.notice().is_some_and(|notice| told.contains(notice));
    Repair::ALL.into_iter().find(is_told).unwrap_or_default()
}

fn is_held_back(format: Format, seed: u64) -> bool {
    let name = format!("{format:?} {seed}");
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.is_multiple_of(3)
}

impl Report {
    pub(super) fn add(&mut self, format: Format, seed: u64, outcome: Outcome) {
        let held_back = is_held_back(format, seed);
        let counts = self.counts.entry((format, held_back)).or_default();
        match outcome {
            Outcome::Applied { repair } => {
                counts.applied += 1;
                self.repairs.entry(repair).or_default()[usize::from(held_back)] += 1;
            }
            Outcome::Refused { is_usable: true, told } => {
                counts.refused += 1;
                if std::env::var("QUALITY_SHOW").is_ok_and(|it| it == format!("{format:?}")) && !held_back {
                    println!("refused {format:?} {seed}: {told}\n");
                }
            }
            Outcome::Refused { is_usable: false, told } => {
                counts.useless += 1;
                self.useless.push(format!("{format:?} {seed}: {told}"));
            }
            Outcome::Wrong { told } => {
                counts.wrong += 1;
                self.wrong.push(format!("{format:?} {seed} (held back: {held_back}): {told}"));
            }
        }
    }

    pub(super) fn print(&self) {
        for format in super::FORMATS {
            let of = |held_back| self.counts.get(&(format, held_back)).cloned().unwrap_or_default();
            println!("quality: edits | {} | {} | {} |", format.name(), of(false).row(), of(true).row());
        }
        for (repair, [open, held_back]) in &self.repairs {
            let name = match repair {
                Repair::Exact => "none needed",
                Repair::LineNumbers => "line numbers taken off",
                Repair::Escapes => "literal `\\n` read as line ends",
                Repair::Typography => "typographic quotes and dashes",
                Repair::Whitespace => "whitespace",
            };
            println!("quality: edits-repairs | {name} | {open} | {held_back} |");
        }
    }

    pub(super) fn check(&self) {
        assert!(
            self.wrong.is_empty(),
            "{} wrong:\n{}",
            self.wrong.len(),
            self.wrong[..self.wrong.len().min(3)].join("\n\n")
        );
        assert!(
            self.useless.is_empty(),
            "no use:\n{}",
            self.useless[..self.useless.len().min(5)].join("\n\n")
        );
        for ((format, held_back), counts) in &self.counts {
            let least = if held_back == &true { 0 } else { format.least_applied() };
            assert!(
                counts.applied * 100 >= counts.all() * least,
                "{format:?}: {} of {}",
                counts.applied,
                counts.all()
            );
            if *format == Format::Stale {
                assert_eq!(counts.applied, 0, "stale context was applied");
            }
        }
    }
}
