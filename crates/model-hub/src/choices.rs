//! What `dragoman models pull` prints: the models of the list, which of them suit this machine, which are installed, and how
//! fast they are here.

use std::fmt::Write;

use config::Environment;
use domain::Failure;
use local_model::{DEFAULT, Registry};

use crate::model_list::{self, CODER, ListedModel};
use crate::{Output, space, speed};

/// Computing on fewer cores than this makes the larger models too slow to wait for.
const CORES_FOR_LARGE: usize = 4;

/// The model that fits a machine: half of its memory must stay free, and few cores take the coder.
fn recommended(models: &[ListedModel], memory: Option<u64>, cores: usize) -> Option<&ListedModel> {
    let fits = |model: &&ListedModel| memory.is_none_or(|memory| model.memory * 2 <= memory);
    let coder = models.iter().find(|model| model.id == CODER);
    match (memory, cores >= CORES_FOR_LARGE) {
        (Some(_), true) => models.iter().rfind(fits),
        (None, _) | (_, false) => coder.filter(fits).or_else(|| models.iter().rfind(fits)),
    }
}

/// The largest model that fits where this one does not.
pub(crate) fn smaller(environment: &Environment, model: &ListedModel) -> Option<String> {
    let models = model_list::all(environment).ok()?;
    let memory = space::total_memory()?;
    let fits = |other: &&ListedModel| other.memory < model.memory && other.memory <= memory;
    models.iter().rfind(fits).map(|model| model.id.clone())
}

/// Prints the list.
pub async fn print(environment: &Environment, output: Output) -> Result<(), Failure> {
    let models = model_list::all(environment)?;
    let (cores, memory) = (speed::cores(), space::total_memory());
    let advice = recommended(&models, memory, cores).map(|model| model.id.as_str());
    let rate = speed::measure().await;
    let mut text = String::from("Models that run inside Dragoman, without a server and without a key:\n");
    for model in &models {
        let is_too_large = memory.is_some_and(|memory| memory < model.memory);
        let mark = match advice == Some(model.id.as_str()) {
            _ if model_list::installed(environment, model).is_some() => "  (installed)",
            true => "  <- recommended for this machine",
            false if is_too_large => "  (this machine has too little memory)",
            false => "",
        };
        let (size, memory) = (model.gigabytes(), model.memory);
        let _ = writeln!(text, "\n  {:<20} {}{mark}", model.id, model.use_for);
        let speed =
            rate.as_ref().map(|rate| format!("; about {}", rate.of_file(model.bytes))).unwrap_or_default();
        let license = &model.license;
        let _ = writeln!(
            text,
            "  {:<20} {size:.1} GB to download, {memory} GB of memory, license {license}{speed}",
            ""
        );
    }
    let _ = writeln!(
        text,
        "\n  {:<20} 98 MB; for machines with less than 4 GB: too small for facts, arithmetic and tools",
        "smollm2"
    );
    text.push_str(&others(environment, &models));
    if rate.is_some() {
        let _ = writeln!(text, "\nThe speeds follow from a measurement of one second on {cores} cores.");
    }
    text.push_str(
        "`dragoman models pull NAME` fetches one, `dragoman models remove NAME` deletes it; `hf:OWNER/REPO/FILE.gguf` is any \
         other file of the hub.\n",
    );
    (output.print)(&text)
}

/// Installed models that the list does not name.
fn others(environment: &Environment, models: &[ListedModel]) -> String {
    let is_other = |id: &str| id != DEFAULT.id && models.iter().all(|model| model.id != id);
    let installed = Registry::new(environment.models_dir()).list();
    let mut text = String::new();
    for model in installed.iter().filter(|model| is_other(&model.id)) {
        let _ = writeln!(text, "\n  {:<20} {:.1} GB  (installed)", model.id, model.bytes as f64 / 1e9);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_fits_the_machine() {
        let models = model_list::all(&Environment::new("/nonexistent", [("A", "b")])).expect("a list");
        for (memory, cores, expected) in [
            (Some(1), 8, None),
            (Some(2), 8, Some("qwen2.5-coder-0.5b")),
            (Some(4), 8, Some("qwen2.5-coder-1.5b")),
            (Some(8), 8, Some("qwen2.5-coder-3b")),
            (Some(64), 8, Some("qwen2.5-coder-7b")),
            (Some(64), 2, Some("qwen2.5-coder-1.5b")),
            (None, 8, Some("qwen2.5-coder-1.5b")),
        ] {
            let model = recommended(&models, memory, cores).map(|model| model.id.as_str());
            assert_eq!(model, expected, "{memory:?} GB, {cores} cores");
        }
    }
}
