//! Room for a download: on the disk and in memory, checked before anything is fetched.

use std::io::ErrorKind;
use std::path::Path;

use domain::Failure;

use crate::model_list::ListedModel;

/// Space that a download leaves on the disk.
const SPARE_BYTES: u64 = 500_000_000;

/// Whether the disk of the folder has room for so many bytes.
pub(crate) fn check(models: &Path, needed: u64) -> Result<(), Failure> {
    let Some(free) = platform::free_space(models) else { return Ok(()) };
    if needed.saturating_add(SPARE_BYTES) <= free {
        return Ok(());
    }
    let (needed, free) = (needed / 1_000_000, free / 1_000_000);
    let text =
        format!("{} has {free} MB free, and the download needs {needed} MB and some room.", models.display());
    Err(Failure::user(text).hint("Make room, or set DRAGOMAN_MODELS to a folder on another disk."))
}

/// A file of the download cannot be written; a full disk is named.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let text = format!("{} cannot be written: {error}.", path.display());
    let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    let hint = if is_full {
        "Make room, or set DRAGOMAN_MODELS to a folder on another disk; the same command then goes on where it stopped."
    } else {
        "Check the rights of the folder, or set DRAGOMAN_MODELS to another one."
    };
    Failure::user(text).hint(hint)
}

/// Whether a machine with so much memory (in gigabytes) can run the model.
pub(crate) fn check_memory(
    model: &ListedModel,
    memory: Option<u64>,
    smaller: Option<&str>,
) -> Result<(), Failure> {
    let Some(memory) = memory.filter(|memory| *memory < model.memory) else { return Ok(()) };
    let text = format!(
        "{} needs {} GB of memory while it answers, and this machine has {memory} GB.",
        model.id, model.memory
    );
    let hint = match smaller {
        Some(id) => format!("`dragoman models pull {id}` fetches one that fits."),
        None => "`dragoman models pull smollm2` fetches one that fits.".to_owned(),
    };
    Err(Failure::user(text).hint(hint))
}

/// Gigabytes of memory in this machine, where the system tells.
pub fn total_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some((kibibytes + (1 << 19)) >> 20)
}
