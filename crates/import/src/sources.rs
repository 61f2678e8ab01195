//! The files of other programs: where they are, and what of them has a place here.
//!
//! Invariants: nothing here writes; a file of a project is read without following links out of it; allow rules come only
//! from the user's own files.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::permissions::{self, Context};
use super::place::{MAX_BYTES, NO_EQUIVALENT, Place, folder};
use super::plan::{Plan, Program, RuleList, Scope, Source};
use super::{gemini, opencode, providers, yaml};

pub(super) fn read(plan: &mut Plan<'_>, program: Program) {
    match program {
        Program::Claude => claude(plan),
        Program::Codex => codex(plan),
        Program::Opencode => opencode::read(plan),
        Program::Gemini => gemini::read(plan),
        Program::Goose => goose(plan),
        Program::Cursor => cursor(plan),
        Program::Eca => eca(plan),
    }
}

fn claude(plan: &mut Plan<'_>) {
    let own = Place::user(plan, Program::Claude, ".claude.json");
    if let Some(values) = own.json(plan) {
        own.servers(plan, &values["mcpServers"]);
        // The servers of one project stay of that project.
        let here = plan.folder.display().to_string();
        let of_project = Place(Source { scope: Scope::Project, ..own.0.clone() });
        of_project.servers(plan, &values["projects"][&here]["mcpServers"]);
    }
    let shared = Place::project(plan, Program::Claude, ".mcp.json");
    if let Some(values) = shared.json(plan) {
        shared.servers(plan, &values["mcpServers"]);
    }
    for place in [
        Place::user(plan, Program::Claude, ".claude/settings.json"),
        Place::project(plan, Program::Claude, ".claude/settings.json"),
        Place::project(plan, Program::Claude, ".claude/settings.local.json"),
    ] {
        if let Some(values) = place.json(plan) {
            claude_settings(plan, &place, &values);
        }
    }
    for place in
        [Place::user(plan, Program::Claude, ".claude"), Place::project(plan, Program::Claude, ".claude")]
    {
        let folder = |name: &str| folder(&place, place.0.path.join(name));
        folder("commands").commands(plan);
        folder("skills").skills(plan);
        folder("agents").agents(plan);
    }
    Place::user(plan, Program::Claude, ".claude/CLAUDE.md").instructions(plan);
    for name in ["CLAUDE.md", "CLAUDE.local.md"] {
        Place::project(plan, Program::Claude, name).use_in_place(plan);
    }
}

/// Settings that Dragoman never takes from a repository.
const NEVER_USED: [(&str, &str); 5] = [
    ("env", NEVER),
    ("apiKeyHelper", NEVER),
    ("statusLine", NEVER),
    ("enableAllProjectMcpServers", NEVER),
    ("permissions.defaultMode", NEVER),
];
const NEVER: &str = "a repository never decides it here";

fn claude_settings(plan: &mut Plan<'_>, place: &Place, values: &Value) {
    if plan.is_used_in_place(&place.0) {
        return place.leave_out_keys(plan, values, &NEVER_USED, &["permissions", "hooks"]);
    }
    for list in [RuleList::Allow, RuleList::Ask, RuleList::Deny] {
        for rule in
            values["permissions"][list.key()].as_array().into_iter().flatten().filter_map(Value::as_str)
        {
            let shown = format!("permission {}: {rule}", list.key());
            if list == RuleList::Allow && place.0.scope == Scope::Project {
                plan.leave_out(&place.0, shown, "a repository's file allows nothing; your own settings do");
                continue;
            }
            let home = plan.environment.home().to_owned();
            let servers = plan.servers.clone();
            match permissions::of_claude(rule, list, &Context { home: &home, servers: &servers }) {
                Ok(rules) => rules.iter().for_each(|ours| plan.rule(&place.0, list, rule, ours)),
                Err(why) => plan.leave_out(&place.0, shown, why),
            }
        }
    }
    for (event, groups) in values["hooks"].as_object().into_iter().flatten() {
        let hooks = groups.as_array().into_iter().flatten().flat_map(|group| group["hooks"].as_array());
        for command in hooks.flatten().filter_map(|hook| hook["command"].as_str()) {
            let why = "hooks get other input here and stay off; `dragoman docs hooks` shows how to write one";
            plan.leave_out(&place.0, format!("hook {event}: {command}"), why);
        }
    }
    for name in values["env"].as_object().into_iter().flatten().map(|(name, _)| name) {
        plan.leave_out(&place.0, format!("env {name}"), "set it in your shell");
    }
    let keys = [
        ("model", "set `defaultModel` to a model of yours: `dragoman models` lists them"),
        ("permissions.defaultMode", "`--approve` and `chat.defaultTrust` decide this here"),
        ("permissions.additionalDirectories", "use `--add-dir`"),
        ("apiKeyHelper", "use `\"key\": \"${cmd:…}\"` of a provider"),
        ("statusLine", "the status line is fixed here"),
        ("outputStyle", "write rules instead"),
        ("enabledPlugins", "plugins of Claude Code cannot run here"),
    ];
    place.leave_out_keys(plan, values, &keys, &["permissions", "hooks", "env"]);
}

fn codex(plan: &mut Plan<'_>) {
    let place = Place::user(plan, Program::Codex, ".codex/config.toml");
    if let Some(text) = place.text(plan, MAX_BYTES) {
        place.servers_of(plan, &text, true);
        if let Ok(values) = crate::toml::read(&text) {
            providers::codex(plan, &place.0, &values);
        }
        let top = text.lines().take_while(|line| !line.trim_start().starts_with('['));
        let values: Map<String, Value> = top
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.trim().to_owned(), json!(value.trim().trim_matches('"'))))
            .collect();
        let keys = [
            ("model", "set `defaultModel` to a model of yours: `dragoman models` lists them"),
            ("model_provider", "it belongs to the model: set `defaultModel`"),
            ("approval_policy", "`--approve` and `toolCall.approval` decide this here"),
            ("sandbox_mode", "`sandbox` decides this here"),
            ("notify", "write a hook instead"),
        ];
        place.leave_out_keys(plan, &values.into(), &keys, &[]);
        codex_tables(plan, &place, &text);
    }
    let prompts = Place::user(plan, Program::Codex, ".codex/prompts");
    folder(&prompts, prompts.0.path.clone()).commands(plan);
    Place::user(plan, Program::Codex, ".codex/AGENTS.md").instructions(plan);
}

/// The tables of codex's settings, each once.
fn codex_tables(plan: &mut Plan<'_>, place: &Place, text: &str) {
    let heads = text.lines().filter_map(|line| line.trim().strip_prefix('[')?.split(']').next());
    let heads = heads.map(|head| head.trim_matches(['[', ' '])).filter(|name| !name.is_empty());
    // One table for each project.
    let names: std::collections::BTreeSet<&str> =
        heads.map(|name| if name.starts_with("projects.") { "projects" } else { name }).collect();
    for table in names {
        let why = match table.split('.').next().unwrap_or(table) {
            "mcp_servers" | "model_providers" => continue,
            "projects" => "trust a folder with `dragoman trust`",
            _ => NO_EQUIVALENT,
        };
        plan.leave_out(&place.0, domain::visible_text(table), why);
    }
}

fn goose(plan: &mut Plan<'_>) {
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

fn cursor(plan: &mut Plan<'_>) {
    for place in [
        Place::user(plan, Program::Cursor, ".cursor/mcp.json"),
        Place::project(plan, Program::Cursor, ".cursor/mcp.json"),
    ] {
        if let Some(values) = place.json(plan) {
            place.servers(plan, &values["mcpServers"]);
        }
    }
    for place in [
        Place::user(plan, Program::Cursor, ".cursor/commands"),
        Place::project(plan, Program::Cursor, ".cursor/commands"),
    ] {
        folder(&place, place.0.path.clone()).commands(plan);
    }
    let rules = Place::project(plan, Program::Cursor, ".cursor/rules");
    folder(&rules, rules.0.path.clone()).cursor_rules(plan);
    Place::project(plan, Program::Cursor, ".cursorrules").hints(plan);
}

/// ECA's settings are read as they are.
fn eca(plan: &mut Plan<'_>) {
    let own = plan.environment.eca_config_dir().join("config.json");
    for path in [own, plan.folder.join(".eca/config.json")] {
        if path.is_file() {
            let source = Source { program: Program::Eca, scope: Scope::User, path };
            plan.found.push(source.clone());
            plan.leave_out(&source, "everything", "this file is used as it is; there is nothing to do");
        }
    }
}
