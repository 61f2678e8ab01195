//! The settings of Claude Code: servers, permissions, commands, skills, agents, instructions.

use serde_json::Value;

use super::permissions::{self, Context};
use super::place::{Place, folder};
use super::plan::{Plan, Program, RuleList, Scope, Source};

pub(super) fn read(plan: &mut Plan<'_>) {
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
