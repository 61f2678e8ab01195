//! The settings of Gemini CLI: servers, commands, and the tools that it must not use.

use serde_json::{Map, Value, json};

use super::permissions;
use super::place::{NO_EQUIVALENT, Place, folder, restrict};
use super::plan::{Plan, Program, RuleList};

pub(super) fn read(plan: &mut Plan<'_>) {
    for place in [
        Place::user(plan, Program::Gemini, ".gemini/settings.json"),
        Place::project(plan, Program::Gemini, ".gemini/settings.json"),
    ] {
        let Some(values) = place.json(plan) else { continue };
        place.servers(plan, &values["mcpServers"]);
        gemini_restrictions(plan, &place, &values);
        let keys = [
            ("model", "set `defaultModel` to a model of yours: `dragoman models` lists them"),
            (
                "hooks",
                "hooks get other input here and stay off; `dragoman docs hooks` shows how to write one",
            ),
            ("context", "AGENTS.md, CLAUDE.md and GEMINI.md are read"),
        ];
        place.leave_out_keys(plan, &values, &keys, &["mcpServers", "excludeTools", "coreTools", "tools"]);
    }
    for commands in [
        Place::user(plan, Program::Gemini, ".gemini/commands"),
        Place::project(plan, Program::Gemini, ".gemini/commands"),
    ] {
        folder(&commands, commands.0.path.clone()).gemini_commands(plan);
    }
    Place::user(plan, Program::Gemini, ".gemini/GEMINI.md").instructions(plan);
    let own = Place::project(plan, Program::Gemini, "GEMINI.md");
    if own.0.path.exists() && plan.counts_in_place(&own.0) {
        plan.found.push(own.0);
    } else {
        own.second_instructions(plan, &["AGENTS.md", "CLAUDE.md"]);
    }
}

/// Tools that Gemini must not use, and the only ones that it may use: `ShellTool(rm -rf)` is about some commands.
fn gemini_restrictions(plan: &mut Plan<'_>, place: &Place, values: &Value) {
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|it| Some(it.as_str()?.to_owned())).collect()
    };
    for name in [list(&values["excludeTools"]), list(&values["tools"]["exclude"])].concat() {
        let theirs = format!("excludeTools: {name}");
        match name.split_once('(') {
            Some((tool, command))
                if super::tool_names::ours(tool).is_some_and(|it| it.contains(&"shell_command")) =>
            {
                let command = format!("{}*", command.trim_end_matches(')'));
                let rule = permissions::of_opencode_command(&command, RuleList::Deny);
                plan.rule(&place.0, RuleList::Deny, &theirs, &rule);
            }
            Some(_) => {
                plan.leave_out(&place.0, theirs, "write the rule yourself (`dragoman docs approvals`)")
            }
            None => match super::tool_names::ours(&name) {
                Some(tools) => tools.iter().for_each(|tool| plan.disable(&place.0, tool, &theirs)),
                None => plan.leave_out(&place.0, theirs, "there is no such tool here"),
            },
        }
    }
    let only = [list(&values["coreTools"]), list(&values["tools"]["core"])].concat();
    if !only.is_empty() {
        // A tool that is allowed in part is switched off: more cannot be said here.
        let whole: Vec<&String> = only.iter().filter(|name| !name.contains('(')).collect();
        for name in only.iter().filter(|name| name.contains('(')) {
            plan.leave_out(
                &place.0,
                format!("coreTools: {name}"),
                "a tool is on or off here, and this one is off",
            );
        }
        let settings = Map::from_iter([("tools".to_owned(), json!(whole))]);
        restrict(plan, place, "coreTools", &settings);
    }
    let rest = values["tools"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !["exclude", "core"].contains(&key.as_str()));
    for (key, _) in rest {
        plan.leave_out(&place.0, format!("tools.{key}"), NO_EQUIVALENT);
    }
}
