//! The settings of goose: extensions and hints.

use std::path::Path;

use serde_json::{Value, json};

use super::place::{MAX_BYTES, Place};
use super::plan::{Plan, Program, Scope, Source};
use super::yaml;

pub(super) fn read(plan: &mut Plan<'_>) {
    let config = plan.environment.config_dir().parent().map(Path::to_owned).unwrap_or_default();
    let hints = config.join("goose/.goosehints");
    Place(Source { program: Program::Goose, scope: Scope::User, path: hints }).hints(plan);
    Place::project(plan, Program::Goose, ".goosehints").hints(plan);
    let path = config.join("goose/config.yaml");
    let place = Place(Source { program: Program::Goose, scope: Scope::User, path });
    let Some(text) = place.text(plan, MAX_BYTES) else { return };
    let values = match yaml::parse(&text) {
        Ok(values) => values,
        Err(why) => return plan.leave_out(&place.0, "the file", why),
    };
    for (name, entry) in values["extensions"].as_object().into_iter().flatten() {
        // An older form has the entry one level deeper.
        let entry = entry.get("config").filter(|inner| inner.is_object()).unwrap_or(entry);
        goose_extension(plan, &place, name, entry);
    }
    let keys = [
        ("GOOSE_MODEL", "set `defaultModel` to a model of yours: `dragoman models` lists them"),
        ("GOOSE_PROVIDER", "set `providers`, or log in: `dragoman login`"),
        ("GOOSE_MODE", "`--approve` and `chat.defaultTrust` decide this here"),
    ];
    place.leave_out_keys(plan, &values, &keys, &["extensions"]);
}

fn goose_extension(plan: &mut Plan<'_>, place: &Place, name: &str, entry: &Value) {
    if entry["available_tools"].as_array().is_some_and(|tools| !tools.is_empty()) {
        let why = "only some of its tools are allowed there, which Dragoman's settings cannot express";
        plan.leave_out(&place.0, format!("extension {name}"), why);
        return;
    }
    match entry["type"].as_str() {
        Some("builtin" | "platform") => {}
        Some("stdio") => {
            let mut ours = json!({"command": entry["cmd"]});
            for (theirs, name) in [("args", "args"), ("envs", "env")] {
                if !entry[theirs].is_null() {
                    ours[name] = entry[theirs].clone();
                }
            }
            plan.server(&place.0, name, Ok(ours));
        }
        Some("streamable_http" | "sse") => plan.server(&place.0, name, Ok(json!({"url": entry["uri"]}))),
        _ => plan.leave_out(&place.0, format!("extension {name}"), "its kind is not known here"),
    }
    for variable in entry["env_keys"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let why =
            format!("{variable} is in goose's keyring; set it in the environment and in `env` of the server");
        plan.leave_out(&place.0, format!("extension {name}"), why);
    }
}
