//! The short list of models that `dragoman models pull` offers, and the advice which one suits this machine.
//!
//! Owns names, repositories and our estimate of the memory a model needs. Size, license and SHA-256 are never written
//! here: they come from the hub when they are shown or used.

use std::fmt::Write;

use config::Environment;
use domain::Failure;

use crate::{Output, hub};

pub struct Choice {
    /// The name here; `local/<id>` in the list of models.
    pub id: &'static str,
    /// The repository on the hub. Its file of the format Q4_K_M is meant.
    pub repository: &'static str,
    /// Gigabytes of memory that the model needs while it answers, with its context.
    pub memory: u64,
    pub use_for: &'static str,
}

pub(crate) const CHOICES: [Choice; 3] = [
    Choice {
        id: "qwen2.5-coder-1.5b",
        repository: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        memory: 2,
        use_for: "questions about code, small edits",
    },
    Choice {
        id: "qwen2.5-coder-3b",
        repository: "Qwen/Qwen2.5-Coder-3B-Instruct-GGUF",
        memory: 4,
        use_for: "the same with more knowledge, slower",
    },
    Choice {
        id: "qwen3-4b",
        repository: "Qwen/Qwen3-4B-GGUF",
        memory: 5,
        use_for: "for work with tools, the slowest",
    },
];

/// Computing on fewer cores than this makes the larger models too slow to wait for.
const CORES_FOR_LARGE: usize = 4;

pub fn find(name: &str) -> Option<&'static Choice> {
    let name = name.strip_prefix("local/").unwrap_or(name);
    CHOICES.iter().find(|choice| choice.id == name)
}

/// The choice that fits a machine: half of its memory must stay free.
fn recommended(memory: Option<u64>, cores: usize) -> Option<&'static Choice> {
    let fits = |choice: &&Choice| memory.is_none_or(|memory| choice.memory * 2 <= memory);
    let fitting: Vec<&Choice> = CHOICES.iter().filter(fits).collect();
    match (memory, cores >= CORES_FOR_LARGE) {
        (Some(_), true) => fitting.last().copied(),
        (None, _) | (_, false) => fitting.first().copied(),
    }
}

/// Prints the choice with the facts that the hub states.
pub async fn print(environment: &Environment, output: Output) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = total_memory();
    let advice = recommended(memory, cores).map(|choice| choice.id);
    let mut text = String::from("Models that run inside Dragoman, without a server and without a key:\n");
    let mut unreachable = None;
    for choice in &CHOICES {
        let facts = match unreachable {
            None => hub::facts_of_choice(environment, choice).await,
            Some(_) => Err(Failure::user("")),
        };
        let mark = if advice == Some(choice.id) { "  <- recommended for this machine" } else { "" };
        let _ =
            writeln!(text, "\n  {:<20} {} GB of memory; {}{mark}", choice.id, choice.memory, choice.use_for);
        match facts {
            Ok(facts) => {
                let size = facts.bytes as f64 / 1e9;
                let _ = writeln!(text, "  {:<20} {size:.1} GB to download, license {}", "", facts.license);
            }
            Err(failure) if unreachable.is_none() => unreachable = Some(failure),
            Err(_) => {}
        }
    }
    let _ = writeln!(
        text,
        "\n  {:<20} 98 MB; the offline default: too small for facts, arithmetic and tools",
        "smollm2"
    );
    let _ = writeln!(
        text,
        "\n`dragoman models pull NAME` fetches one; `hf:OWNER/REPO/FILE.gguf` is any other file of the hub."
    );
    if let Some(failure) = unreachable {
        let _ = writeln!(text, "\nSizes and licenses are missing: {failure}");
    }
    (output.print)(&text)
}

/// Gigabytes of memory in this machine, where the system tells.
fn total_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some((kibibytes + (1 << 19)) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_fits_the_machine() {
        for (memory, cores, expected) in [
            (Some(2), 8, None),
            (Some(4), 8, Some("qwen2.5-coder-1.5b")),
            (Some(8), 8, Some("qwen2.5-coder-3b")),
            (Some(64), 8, Some("qwen3-4b")),
            (Some(64), 2, Some("qwen2.5-coder-1.5b")),
            (None, 8, Some("qwen2.5-coder-1.5b")),
        ] {
            let choice = recommended(memory, cores).map(|choice| choice.id);
            assert_eq!(choice, expected, "{memory:?} GB, {cores} cores");
        }
    }
}
