//! Where this machine has no model: one question in the terminal, whether to fetch the embedded coder.
//!
//! Invariants: keys, model servers and agents that are there come first; nothing is fetched without a yes; a no is not asked
//! again; without a terminal there is no question.

use std::io::{BufRead, IsTerminal};
use std::sync::PoisonError;
use std::time::Duration;

use config::Environment;
use domain::Failure;
use domain::model::Models;
use model_hub::model_list::{self, CODER, ListedModel};
use model_hub::space;
use providers::ProviderDeps;

use super::embedded;
use crate::agents;
use crate::models::{AllModels, SMALL_MODEL};
use crate::output::{self, note, note_part};
use crate::workspaces::EngineOptions;

/// Gigabytes of memory below which the small model is the better one.
const LEAST_MEMORY: u64 = 4;
/// A question that nobody answers means no.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// Kept beside the models: the user said no.
const DECLINED: &str = ".coder-declined";
const SMALL_QUESTION: &str = "No key, no model server and no other agent was found on this machine.\n\n  \
    The small model SmolLM2 (98 MB, license Apache-2.0) can answer inside Dragoman. It only talks.\n  \
    Or: `dragoman login anthropic`, a key such as OPENAI_API_KEY, or a model server on another machine.\n";

/// Asks where there is a reason to, and fetches what the user chooses. A failure is told, and the chat goes on without.
/// `options`: those of the engine, with the settings that were read.
pub(crate) async fn offer(environment: &Environment, options: &EngineOptions) {
    let Some(offered) = offered(environment, options) else { return };
    let choice = match &offered {
        Offered::Coder(model) => {
            ask(&question(model), "Fetch it? [Y]es, [s]mall model instead, [n]o: ").await
        }
        Offered::Small => match ask(SMALL_QUESTION, "Fetch it? [Y]es, [n]o: ").await {
            Choice::Yes | Choice::Small => Choice::Small,
            Choice::Nothing => Choice::Nothing,
        },
    };
    let fetched = match (choice, &offered) {
        (Choice::Yes, Offered::Coder(model)) => embedded::pull_listed(environment, model).await,
        (Choice::Yes | Choice::Small, _) => embedded::pull_default(environment).await,
        (Choice::Nothing, _) => remember_no(environment),
    };
    if let Err(failure) = fetched {
        note(&format!("dragoman: {failure}"));
    }
}

enum Offered {
    Coder(Box<ListedModel>),
    /// For machines with little memory.
    Small,
}

/// What to offer, where nothing else is there, a person can answer, and has not said no before.
fn offered(environment: &Environment, options: &EngineOptions) -> Option<Offered> {
    let is_terminal =
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && output::is_terminal();
    if !is_terminal || environment.models_dir().join(DECLINED).exists() {
        return None;
    }
    let known = options.resolved.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, resolved) = known.as_ref().filter(|(_, resolved)| resolved.settings.providers.is_empty())?;
    let configured = providers::configured(resolved, &ProviderDeps::new(environment));
    let models = AllModels::new(configured, environment);
    let has_agents = || agents::to_list(environment, resolved).installed().next().is_some();
    let default = models.default_model();
    if default.as_ref().is_some_and(|model| model != SMALL_MODEL) || has_agents() {
        return None;
    }
    let model = model_list::find(environment, CODER).ok()??;
    if is_large_enough(space::total_memory()) && models.permits(&format!("local/{}", model.id)) {
        return Some(Offered::Coder(Box::new(model)));
    }
    (default.is_none() && models.permits(SMALL_MODEL)).then_some(Offered::Small)
}

fn is_large_enough(memory: Option<u64>) -> bool {
    memory.is_none_or(|memory| memory >= LEAST_MEMORY)
}

#[derive(Debug, PartialEq)]
enum Choice {
    Yes,
    Small,
    Nothing,
}

async fn ask(question: &str, choices: &str) -> Choice {
    note(question);
    loop {
        note_part(choices);
        let reading = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line).ok().filter(|count| *count > 0).map(|_| line)
        });
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, reading).await;
        let Ok(Ok(Some(line))) = answer else { return Choice::Nothing };
        if let Some(choice) = chosen(&line) {
            return choice;
        }
    }
}

fn chosen(line: &str) -> Option<Choice> {
    match line.trim().to_lowercase().as_str() {
        "" | "y" | "yes" => Some(Choice::Yes),
        "s" | "small" => Some(Choice::Small),
        "n" | "no" => Some(Choice::Nothing),
        _ => None,
    }
}

fn question(model: &ListedModel) -> String {
    let ListedModel { title, license, memory, .. } = model;
    let (size, minutes) = (model.gigabytes(), minutes(model.bytes));
    format!(
        "No key, no model server and no other agent was found on this machine.\n\n  \
         {title} can answer inside Dragoman, also offline. It reads and edits files and runs commands; it is\n  \
         far weaker than the models of providers.\n  \
         Download: {size:.1} GB once, {minutes}. Memory: {memory} GB. License: {license}.\n\n  \
         Or: the small model SmolLM2 (98 MB), which only talks.\n  \
         Or: `dragoman login anthropic`, a key such as OPENAI_API_KEY, Ollama, LM Studio or a llama.cpp server.\n"
    )
}

/// The time of the download at two usual rates.
fn minutes(bytes: u64) -> String {
    let at = |megabytes: u64| (bytes / (megabytes * 1_000_000)).div_ceil(60).max(1);
    format!("about {} min at 50 Mbit/s, {} min at 200 Mbit/s", at(6), at(25))
}

fn remember_no(environment: &Environment) -> Result<(), Failure> {
    let folder = environment.models_dir();
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join(DECLINED), ""));
    note(&format!("`dragoman models pull {CODER}` fetches it later.\n"));
    written.map_err(|error| Failure::user(format!("{} cannot be written: {error}.", folder.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood() {
        for (line, expected) in [
            ("\n", Some(Choice::Yes)),
            ("Y\n", Some(Choice::Yes)),
            (" s \n", Some(Choice::Small)),
            ("NO\r\n", Some(Choice::Nothing)),
            ("what?\n", None),
        ] {
            assert_eq!(chosen(line), expected, "{line:?}");
        }
        assert!(is_large_enough(None) && is_large_enough(Some(4)) && !is_large_enough(Some(3)));
        assert_eq!(minutes(1_117_320_768), "about 4 min at 50 Mbit/s, 1 min at 200 Mbit/s");
    }
}
