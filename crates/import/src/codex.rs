//! The settings of codex: servers, providers, prompts, instructions.

use serde_json::{Map, Value, json};

use super::place::{MAX_BYTES, NO_EQUIVALENT, Place, folder};
use super::plan::{Plan, Program};
use super::providers;

pub(super) fn read(plan: &mut Plan<'_>) {
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
    Place::project(plan, Program::Codex, "AGENTS.md").use_in_place(plan);
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
