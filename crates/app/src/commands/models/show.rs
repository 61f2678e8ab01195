//! `dragoman models show`: the family of a model, what follows from it, and where each part comes from.

use config::{Environment, Inputs};
use domain::Failure;
use domain::model::Models;
use engine::families::{self, Part, Profile};
use providers::ProviderDeps;
use serde_json::{Value, json};

use crate::models::{self, AllModels};
use crate::output::print;

pub(super) fn run(environment: &Environment, model: Option<&str>, json: bool) -> Result<(), Failure> {
    let inputs = Inputs { workspace_roots: crate::working_folder::current_folder(), ..Inputs::default() };
    let resolved = config::resolve(environment, &inputs);
    let id = match model {
        Some(model) => model.to_owned(),
        None => {
            models::use_cached_list(environment);
            let configured = providers::configured(&resolved, &ProviderDeps::new(environment));
            let default = AllModels::new(configured, environment).default_model();
            default.ok_or_else(|| Failure::user("There is no default model. Name one: PROVIDER/MODEL."))?
        }
    };
    let rules = &resolved.settings.model_families;
    for name in rules.iter().filter_map(|rule| rule.family.as_deref()) {
        if !families::names().contains(&name) {
            let known = families::names().join(", ");
            return Err(Failure::user(format!("modelFamilies names the family {name}. There are: {known}.")));
        }
    }
    let rows = rows(&families::profile(&id, rules));
    if json {
        let parts = rows
            .iter()
            .map(|(name, value, _, origin)| ((*name).to_owned(), json!({"value": value, "origin": origin})));
        let parts: serde_json::Map<String, Value> = parts.collect();
        return print(format!("{:#}\n", json!({"model": id, "parts": parts})));
    }
    let mut text = format!("{id}\n\n");
    for (name, _, shown, origin) in &rows {
        text.push_str(&format!("{name:<15} {shown}\n{:<15} from {origin}\n", ""));
    }
    print(text)
}

/// Name, value, the value for people, origin. The names are a promise to scripts.
fn rows(profile: &Profile) -> Vec<(&'static str, Value, String, String)> {
    fn row<T>(
        name: &'static str,
        part: &Part<T>,
        value: Value,
        shown: String,
    ) -> (&'static str, Value, String, String) {
        let shown = if shown.is_empty() { "(none)".to_owned() } else { shown };
        (name, value, shown, part.origin.clone())
    }
    let yes = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
    let names: Vec<String> = profile
        .arguments
        .value
        .iter()
        .map(|(tool, own, shown)| format!("{tool}: {own} is {shown}"))
        .collect();
    let hidden: Vec<String> =
        profile.hidden.value.iter().map(|(tool, name)| format!("{tool}: {name}")).collect();
    let effort = profile.effort.value.clone();
    vec![
        row("family", &profile.family, profile.family.value.into(), profile.family.value.to_owned()),
        row("prompt", &profile.prompt, profile.prompt.value.clone().into(), profile.prompt.value.clone()),
        row(
            "editFormat",
            &profile.edits,
            profile.edits.value.name().into(),
            profile.edits.value.name().to_owned(),
        ),
        row("onlyTools", &profile.only, json!(profile.only.value), profile.only.value.join(", ")),
        row("withoutTools", &profile.without, json!(profile.without.value), profile.without.value.join(", ")),
        row("argumentNames", &profile.arguments, json!(names), names.join(", ")),
        row("hiddenArguments", &profile.hidden, json!(hidden), hidden.join(", ")),
        row("parallelCalls", &profile.parallel, profile.parallel.value.into(), yes(profile.parallel.value)),
        row("effort", &profile.effort, json!(effort), effort.unwrap_or_default()),
        row("taskList", &profile.tasks, profile.tasks.value.into(), yes(profile.tasks.value)),
    ]
}
