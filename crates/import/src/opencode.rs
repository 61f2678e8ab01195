//! The settings of opencode: servers, commands, agents, providers, and what all agents may not do.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::permissions;
use super::place::{Place, folder, restrict};
use super::plan::{Plan, Program, RuleList, Scope, Source};
use super::providers;

/// Agents that opencode has without any settings.
const OPENCODE_AGENTS: [&str; 7] = ["build", "plan", "general", "explore", "compaction", "title", "summary"];

pub(super) fn read(plan: &mut Plan<'_>) {
    let config =
        plan.environment.config_dir().parent().map(Path::to_owned).unwrap_or_default().join("opencode");
    let own = |path: &str| {
        Place(Source { program: Program::Opencode, scope: Scope::User, path: config.join(path) })
    };
    let mut places: Vec<Place> = ["opencode.json", "opencode.jsonc"].map(own).into();
    places.extend(
        ["opencode.json", "opencode.jsonc"].map(|path| Place::project(plan, Program::Opencode, path)),
    );
    for place in places {
        if let Some(values) = place.json(plan) {
            opencode_settings(plan, &place, &values);
        }
    }
    for (place, names) in [
        (own(""), ["command", "commands", "agent", "agents"]),
        (Place::project(plan, Program::Opencode, ".opencode"), ["command", "commands", "agent", "agents"]),
    ] {
        for name in names {
            let folder = folder(&place, place.0.path.join(name));
            if name.starts_with("command") { folder.commands(plan) } else { folder.agents(plan) }
        }
    }
    own("AGENTS.md").instructions(plan);
    Place::project(plan, Program::Opencode, "AGENTS.md").use_in_place(plan);
}

fn opencode_settings(plan: &mut Plan<'_>, place: &Place, values: &Value) {
    for (name, entry) in values["mcp"].as_object().into_iter().flatten() {
        plan.server(&place.0, name, opencode_server(entry));
    }
    for (name, command) in values["command"].as_object().into_iter().flatten() {
        if let Some(limit) = ["agent", "subtask"].iter().find(|limit| !command[**limit].is_null()) {
            let why = "it is not imported: it belongs to an agent, whose limits it would lose";
            plan.leave_out(&place.0, format!("command {name}, {limit}"), why);
        } else if let Some(template) = command["template"].as_str() {
            let description = command["description"].as_str().and_then(|text| text.lines().next());
            let content = super::markdown::command_text(description, template);
            plan.file(&place.0, &format!("commands/{name}.md"), &content);
        }
    }
    opencode_restrictions(plan, place, values);
    providers::opencode(plan, &place.0, &values["provider"]);
    for (name, entry) in values["agent"].as_object().into_iter().flatten() {
        opencode_agent(plan, place, name, entry);
    }
    let keys = [
        ("model", "set `defaultModel` to a model of yours: `dragoman models` lists them"),
        ("instructions", "name the files in `rules`"),
        ("plugin", "plugins of opencode cannot run here"),
        ("theme", "set `chat.theme`"),
        ("formatter", "write a hook instead"),
    ];
    place.leave_out_keys(
        plan,
        values,
        &keys,
        &["mcp", "command", "permission", "tools", "provider", "agent"],
    );
}

/// `{env:NAME}` is `${env:NAME}` here.
fn opencode_server(entry: &Value) -> Result<Value, String> {
    let references = |value: &Value| -> Value {
        let text = value.to_string().replace("{env:", "${env:");
        serde_json::from_str(&text).unwrap_or_default()
    };
    let mut ours = match (entry["command"].as_array(), entry["url"].as_str()) {
        (Some(words), _) if !words.is_empty() => {
            json!({"command": references(&words[0]), "args": references(&json!(words[1..]))})
        }
        (_, Some(url)) => json!({"url": references(&json!(url))}),
        (None, None) | (Some(_), None) => return Err("it has neither a command nor a url".to_owned()),
    };
    for (theirs, name) in [("environment", "env"), ("headers", "headers")] {
        if entry[theirs].is_object() {
            ours[name] = references(&entry[theirs]);
        }
    }
    Ok(ours)
}

/// `tools` and `permission` of all agents. Allowances count only in the user's own file.
fn opencode_restrictions(plan: &mut Plan<'_>, place: &Place, values: &Value) {
    for key in ["tools", "permission"] {
        let settings: Map<String, Value> =
            values.get(key).map(|value| (key.to_owned(), value.clone())).into_iter().collect();
        restrict(plan, place, key, &settings);
    }
    for (pattern, decision) in values["permission"]["bash"].as_object().into_iter().flatten() {
        if decision != "allow" {
            continue;
        }
        let shown = format!("permission bash {pattern}: allow");
        match place.0.scope {
            Scope::User if pattern != "*" => {
                let rule = permissions::of_opencode_command(pattern, RuleList::Allow);
                plan.rule(&place.0, RuleList::Allow, &shown, &rule);
            }
            Scope::User => {
                plan.leave_out(&place.0, shown, "`--approve` and `chat.defaultTrust` decide this here")
            }
            Scope::Project => {
                plan.leave_out(&place.0, shown, "a repository's file allows nothing; your own settings do");
            }
        }
    }
}

fn opencode_agent(plan: &mut Plan<'_>, place: &Place, name: &str, entry: &Value) {
    let settings = entry.as_object().cloned().unwrap_or_default();
    let prompt = entry["prompt"].as_str().unwrap_or_default();
    if prompt.contains("{file:") {
        let why = "it is not imported: its prompt is in another file";
        return plan.leave_out(&place.0, format!("agent {name}"), why);
    }
    if prompt.is_empty() && OPENCODE_AGENTS.contains(&name) {
        let why = "it is not imported: it changes an agent that is built in there";
        return plan.leave_out(&place.0, format!("agent {name}"), why);
    }
    super::markdown::agent(plan, &place.0, name, &settings, prompt);
}
