//! The list of choices for a person: what the hub says of each, and the advice which one suits this machine.

use std::fmt::Write;

use config::Environment;
use domain::Failure;

use crate::choices::{CHOICES, Choice};
use crate::{Output, hub};

/// Computing on fewer cores than this makes the larger models too slow to wait for.
const CORES_FOR_LARGE: usize = 4;

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
