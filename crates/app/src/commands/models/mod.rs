//! `dragoman models`: the list, and fetching embedded models.

use std::process::ExitCode;

use config::{Environment, Inputs, Resolved};
use domain::Failure;
use domain::model::{ModelInfo, Models};
use providers::ProviderDeps;
use serde_json::{Value, json};

use super::finish;
use crate::agents;
use crate::cli::ModelsTask;
use crate::lifetime;
use crate::models::{self, AllModels};
use crate::output::print;

pub(crate) fn run(task: Option<ModelsTask>, json: bool, refresh: bool) -> ExitCode {
    let environment = Environment::from_process();
    match task {
        None => lifetime::run(list(&environment, json, refresh)),
        Some(ModelsTask::List { json: as_json }) => {
            lifetime::run(list(&environment, json || as_json, refresh))
        }
        Some(ModelsTask::Pull { name, model_source }) => {
            embedded::pull(&environment, name.as_deref(), model_source)
        }
        Some(ModelsTask::Remove { name }) => embedded::remove(&environment, &name),
        Some(ModelsTask::Add { file }) => embedded::add(&environment, &file),
        Some(ModelsTask::Show { model, json: as_json }) => {
            finish(show::run(&environment, model.as_deref(), json || as_json))
        }
    }
}

async fn list(environment: &Environment, json: bool, refresh: bool) -> Result<(), Failure> {
    let inputs = Inputs { workspace_roots: crate::working_folder::current_folder(), ..Inputs::default() };
    let resolved = config::resolve(environment, &inputs);
    if refresh {
        fetch_list(environment, &resolved).await?;
    }
    models::use_cached_list(environment);
    let configured = providers::configured(&resolved, &ProviderDeps::new(environment));
    let agents = agents::to_list(environment, &resolved);
    let models = AllModels::new(configured, environment).with_agents(agents);
    models.look_for_agents();
    models.discover_servers().await;
    let (list, default) = (models.list(), models.default_model());
    if json {
        let shown: Vec<Value> = list.iter().map(model_json).collect();
        return print(format!("{:#}\n", json!({"default": default, "models": shown})));
    }
    if list.is_empty() {
        return print(format!("No model can be used yet.\n{}\n", models::NO_MODEL_HINT));
    }
    let mut lines =
        vec![format!("{:<48} {:>10} {:>9}  $ in / out per million", "model", "context", "output")];
    lines.extend(list.iter().map(|model| line(model, default.as_deref() == Some(model.id.as_str()))));
    print(format!("{}\n", lines.join("\n")))
}

/// The members here are a promise to scripts.
fn model_json(model: &ModelInfo) -> Value {
    json!({
        "id": model.id,
        "contextLimit": model.context_limit,
        "outputLimit": model.output_limit,
        "price": model.price.map(|price| json!({
            "input": price.input,
            "output": price.output,
            "cacheRead": price.cache_read,
            "cacheWrite": price.cache_write,
        })),
        "tools": model.tools,
        "images": model.images,
        "reasoning": model.reasoning,
        "variants": model.variants,
    })
}

/// Fetches the newest public list into the cache.
async fn fetch_list(environment: &Environment, resolved: &Resolved) -> Result<(), Failure> {
    let network = providers::network::of(resolved)?;
    let url = environment.var("DRAGOMAN_CATALOG").unwrap_or(llm::catalog::SOURCE);
    let text = llm::catalog::fetch(&network, url).await?;
    let path = models::cached_list(environment);
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| {
        let fresh = path.with_extension("new");
        std::fs::write(&fresh, text)?;
        std::fs::rename(fresh, &path)
    });
    written.map_err(|error| Failure::user(format!("{} cannot be written: {error}.", path.display())))
}

fn line(model: &ModelInfo, default: bool) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let price = model.price.map_or_else(|| "?".to_owned(), |it| format!("{} / {}", it.input, it.output));
    let mark = if default { " (default)" } else { "" };
    let (context, output) = (number(model.context_limit), number(model.output_limit));
    format!("{:<48} {context:>10} {output:>9}  {price}{mark}", model.id)
}

mod show;

#[cfg(feature = "local")]
mod embedded;
#[cfg(feature = "local")]
mod offer;
#[cfg(feature = "local")]
pub(crate) use offer::offer;

/// Built without the embedded model: there is nothing to offer.
#[cfg(not(feature = "local"))]
pub(crate) async fn offer(_: &Environment, _: &crate::workspaces::EngineOptions) {}

#[cfg(not(feature = "local"))]
mod embedded {
    //! Built without the embedded model.

    use std::path::Path;
    use std::process::ExitCode;

    use config::Environment;
    use domain::Failure;

    use crate::arguments::ModelSourceName;
    use crate::commands::failed;

    pub fn pull(_: &Environment, _: Option<&str>, _: Option<ModelSourceName>) -> ExitCode {
        failed(&Failure::user("This Dragoman was built without embedded models."))
    }

    pub fn remove(_: &Environment, _: &str) -> ExitCode {
        failed(&Failure::user("This Dragoman was built without embedded models."))
    }

    pub fn add(_: &Environment, _: &Path) -> ExitCode {
        failed(&Failure::user("This Dragoman was built without embedded models."))
    }
}
