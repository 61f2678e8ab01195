//! The files of other programs: where they are, and what of them has a place here.
//!
//! Invariants: nothing here writes; a file of a project is read without following links out of it; allow rules come only
//! from the user's own files.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::markdown::Folder;
use super::permissions::{self, Context};
use super::plan::{Plan, Program, RuleList, Scope, Source};
use super::yaml;
use crate::mcp_entries;

/// Settings with the history of a program can be large.
const MAX_BYTES: u64 = 32 << 20;
const MAX_TEXT_BYTES: u64 = 256 << 10;
const COPY_INSTRUCTIONS: &str = "it is not read here; copy what still holds into AGENTS.md";
const NO_EQUIVALENT: &str = "it has no equivalent here";

pub(super) fn read(plan: &mut Plan<'_>, program: Program) {
    match program {
        Program::Claude => claude(plan),
        Program::Codex => codex(plan),
        Program::Opencode => opencode(plan),
        Program::Gemini => gemini(plan),
        Program::Goose => goose(plan),
        Program::Cursor => cursor(plan),
        Program::Eca => eca(plan),
    }
}

/// A file that may be there.
struct Place(Source);

impl Place {
    fn user(plan: &Plan<'_>, program: Program, path: &str) -> Self {
        Self(Source { program, scope: Scope::User, path: plan.environment.home().join(path) })
    }

    fn project(plan: &Plan<'_>, program: Program, path: &str) -> Self {
        Self(Source { program, scope: Scope::Project, path: plan.folder.join(path) })
    }

    /// The text, `None` where there is no such file.
    fn text(&self, plan: &mut Plan<'_>, limit: u64) -> Option<String> {
        let read = match self.0.scope {
            Scope::User => project_files::read_named(&self.0.path, limit),
            Scope::Project => {
                let inner = self.0.path.strip_prefix(plan.folder).unwrap_or(&self.0.path).to_owned();
                project_files::read_beneath(plan.folder, &inner, limit)
            }
        };
        let text = match read {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| "it is no text".to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return None,
            Err(error) => Err(format!("it cannot be read ({error})")),
        };
        plan.found.push(self.0.clone());
        text.map_err(|why| plan.leave_out(&self.0, "the file", why)).ok()
    }

    fn json(&self, plan: &mut Plan<'_>) -> Option<Value> {
        let text = self.text(plan, MAX_BYTES)?;
        let parsed = serde_json::from_str(&text)
            .or_else(|_| config::parse_json_with_comments(&text))
            .map_err(|reason| plan.leave_out(&self.0, "the file", reason));
        parsed.ok()
    }

    fn servers(&self, plan: &mut Plan<'_>, servers: &Value) {
        if !servers.is_object() && !servers.is_null() {
            return plan.leave_out(&self.0, "MCP servers", "they are no object");
        }
        self.servers_of(plan, &json!({"mcpServers": servers}).to_string(), false);
    }

    /// The servers of a file, and their members that have no place here.
    fn servers_of(&self, plan: &mut Plan<'_>, text: &str, is_toml: bool) {
        let found = match mcp_entries::from_other_program(text, is_toml) {
            Ok(found) => found,
            Err(failure) => return plan.leave_out(&self.0, "MCP servers", failure.message),
        };
        for (name, entry) in found {
            plan.server(&self.0, &name, entry);
        }
        for (name, members) in mcp_entries::unused_members(text, is_toml) {
            let what = format!("MCP server {name}, {}", domain::visible_text(&members.join(", ")));
            plan.leave_out(&self.0, what, NO_EQUIVALENT);
        }
    }

    /// Names settings that have no place here: those of `keys` with a reason, and all others that were not `read`.
    fn leave_out_keys(&self, plan: &mut Plan<'_>, values: &Value, keys: &[(&str, &str)], read: &[&str]) {
        for (key, why) in keys {
            let found = key.split('.').try_fold(values, |value, part| value.get(part));
            if let Some(value) = found.filter(|value| !value.is_null()) {
                let shown = match value.as_str().filter(|text| !super::secrets::is_secret(text)) {
                    Some(text) => format!("{key}: {text}"),
                    None => (*key).to_owned(),
                };
                plan.leave_out(&self.0, shown, *why);
            }
        }
        let is_known = |key: &str| {
            let named = keys.iter().any(|(named, _)| named.split('.').next() == Some(key));
            named || read.contains(&key) || key == "$schema"
        };
        for key in values.as_object().into_iter().flatten().map(|(key, _)| key).filter(|key| !is_known(key)) {
            plan.leave_out(&self.0, domain::visible_text(key), NO_EQUIVALENT);
        }
    }

    /// A file or folder that is not read, with the reason.
    fn only_name(&self, plan: &mut Plan<'_>, why: &str) {
        if self.0.path.exists() {
            plan.found.push(self.0.clone());
            plan.leave_out(&self.0, "its text", why);
        }
    }

    /// The user's own instructions become AGENTS.md, where there is none.
    fn instructions(&self, plan: &mut Plan<'_>) {
        if let Some(text) = self.text(plan, MAX_TEXT_BYTES) {
            plan.file(&self.0, "AGENTS.md", &text);
        }
    }
}

fn folder(place: &Place, path: PathBuf) -> Folder<'_> {
    Folder { source: &place.0, folder: path }
}

fn claude(plan: &mut Plan<'_>) {
    let own = Place::user(plan, Program::Claude, ".claude.json");
    if let Some(values) = own.json(plan) {
        own.servers(plan, &values["mcpServers"]);
        let here = plan.folder.display().to_string();
        own.servers(plan, &values["projects"][&here]["mcpServers"]);
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
    Place::project(plan, Program::Claude, "CLAUDE.local.md").only_name(plan, COPY_INSTRUCTIONS);
}

fn claude_settings(plan: &mut Plan<'_>, place: &Place, values: &Value) {
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
        let top = text.lines().take_while(|line| !line.trim_start().starts_with('['));
        let values: Map<String, Value> = top
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.trim().to_owned(), json!(value.trim().trim_matches('"'))))
            .collect();
        let keys = [
            ("model", "set `defaultModel` to a model of yours: `dragoman models` lists them"),
            ("model_provider", "set `providers`"),
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
            "mcp_servers" => continue,
            "model_providers" => "set `providers` (`dragoman docs providers`); keys stay where they are",
            "projects" => "trust a folder with `dragoman trust`",
            _ => NO_EQUIVALENT,
        };
        plan.leave_out(&place.0, domain::visible_text(table), why);
    }
}

fn opencode(plan: &mut Plan<'_>) {
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
}

fn opencode_settings(plan: &mut Plan<'_>, place: &Place, values: &Value) {
    for (name, entry) in values["mcp"].as_object().into_iter().flatten() {
        plan.server(&place.0, name, opencode_server(entry));
    }
    for (name, command) in values["command"].as_object().into_iter().flatten() {
        if let Some(template) = command["template"].as_str() {
            let description = command["description"].as_str().and_then(|text| text.lines().next());
            let content = super::markdown::command_text(description, template);
            plan.file(&place.0, &format!("commands/{name}.md"), &content);
        }
    }
    for (tool, decision) in values["permission"].as_object().into_iter().flatten() {
        opencode_permission(plan, place, tool, decision);
    }
    let keys = [
        ("model", "set `defaultModel` to a model of yours: `dragoman models` lists them"),
        ("provider", "set `providers`; keys stay where they are"),
        ("agent", "write `agent.NAME` (`dragoman docs agents`)"),
        ("instructions", "name the files in `rules`"),
        ("plugin", "plugins of opencode cannot run here"),
        ("theme", "set `chat.theme`"),
        ("formatter", "write a hook instead"),
    ];
    place.leave_out_keys(plan, values, &keys, &["mcp", "command", "permission"]);
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

fn opencode_permission(plan: &mut Plan<'_>, place: &Place, tool: &str, decision: &Value) {
    let list = |decision: &Value| match decision.as_str() {
        Some("allow") => Some(RuleList::Allow),
        Some("ask") => Some(RuleList::Ask),
        Some("deny") => Some(RuleList::Deny),
        _ => None,
    };
    let rules: Vec<(String, Value)> = match decision.as_object() {
        Some(patterns) => patterns.clone().into_iter().collect(),
        None => vec![("*".to_owned(), decision.clone())],
    };
    for (pattern, decision) in rules {
        let shown = format!("permission {tool} {pattern}: {}", decision.as_str().unwrap_or("?"));
        let Some(list) = list(&decision) else { continue };
        match (tool, list) {
            (_, RuleList::Allow) if place.0.scope == Scope::Project => {
                plan.leave_out(&place.0, shown, "a repository's file allows nothing; your own settings do");
            }
            // Everything is asked by default that could do harm.
            (_, RuleList::Ask) if pattern == "*" => {}
            ("bash", _) => {
                let rule = permissions::of_opencode_command(&pattern, list);
                plan.rule(&place.0, list, &shown, &rule);
            }
            _ => plan.leave_out(&place.0, shown, "write the rule yourself (`dragoman docs approvals`)"),
        }
    }
}

fn gemini(plan: &mut Plan<'_>) {
    for place in [
        Place::user(plan, Program::Gemini, ".gemini/settings.json"),
        Place::project(plan, Program::Gemini, ".gemini/settings.json"),
    ] {
        let Some(values) = place.json(plan) else { continue };
        place.servers(plan, &values["mcpServers"]);
        let keys = [
            ("model", "set `defaultModel` to a model of yours: `dragoman models` lists them"),
            ("tools", "write rules yourself (`dragoman docs approvals`)"),
            (
                "hooks",
                "hooks get other input here and stay off; `dragoman docs hooks` shows how to write one",
            ),
            ("context", "AGENTS.md, CLAUDE.md and GEMINI.md are read"),
        ];
        place.leave_out_keys(plan, &values, &keys, &["mcpServers"]);
    }
    for commands in [
        Place::user(plan, Program::Gemini, ".gemini/commands"),
        Place::project(plan, Program::Gemini, ".gemini/commands"),
    ] {
        commands.only_name(
            plan,
            "write the prompts of these commands as Markdown files (`dragoman docs instructions`)",
        );
    }
    Place::user(plan, Program::Gemini, ".gemini/GEMINI.md").instructions(plan);
}

fn goose(plan: &mut Plan<'_>) {
    let config = plan.environment.config_dir().parent().map(Path::to_owned).unwrap_or_default();
    let hints = config.join("goose/.goosehints");
    Place(Source { program: Program::Goose, scope: Scope::User, path: hints })
        .only_name(plan, COPY_INSTRUCTIONS);
    Place::project(plan, Program::Goose, ".goosehints").only_name(plan, COPY_INSTRUCTIONS);
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
            _ => plan.leave_out(
                &place.0,
                format!("extension {name}"),
                "it is of a kind that is not known here",
            ),
        }
        for variable in entry["env_keys"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let why = format!(
                "{variable} is in goose's keyring; set it in the environment and in `env` of the server"
            );
            plan.leave_out(&place.0, format!("extension {name}"), why);
        }
    }
    let keys = [
        ("GOOSE_MODEL", "set `defaultModel` to a model of yours: `dragoman models` lists them"),
        ("GOOSE_PROVIDER", "set `providers`, or log in: `dragoman login`"),
        ("GOOSE_MODE", "`--approve` and `chat.defaultTrust` decide this here"),
    ];
    place.leave_out_keys(plan, &values, &keys, &["extensions"]);
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
    Place::project(plan, Program::Cursor, ".cursorrules").only_name(plan, COPY_INSTRUCTIONS);
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
