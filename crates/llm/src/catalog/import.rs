//! Turns the public model data (the JSON of models.dev) into the facts we keep and into the rows of our list.
//!
//! Used by the chore that makes `data/catalog.txt` from `data/models.json` (`cargo run -p dragoman-xtask -- catalog`) and by
//! a refresh at run time. Pure: text in, text out.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// The providers we list, by their names there and here.
const PROVIDERS: [(&str, &str); 14] = [
    ("openai", "openai"),
    ("anthropic", "anthropic"),
    ("google", "google"),
    ("github-copilot", "github-copilot"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("groq", "groq"),
    ("xai", "xai"),
    ("moonshotai", "moonshot"),
    ("zai", "z-ai"),
    ("alibaba", "qwen"),
    ("azure", "azure"),
    ("amazon-bedrock", "bedrock"),
    ("openrouter", "openrouter"),
];

/// The list leaves out older models. A user can still name one.
const SINCE: &str = "2025-04";

#[derive(Deserialize)]
struct Provider {
    models: BTreeMap<String, Model>,
}

#[derive(Deserialize, Serialize)]
struct Model {
    #[serde(default)]
    release_date: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(default)]
    reasoning: bool,
    #[serde(default)]
    tool_call: bool,
    #[serde(default)]
    temperature: bool,
    #[serde(default)]
    limit: Limit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
    #[serde(default)]
    modalities: Modalities,
}

#[derive(Deserialize, Serialize, Default)]
struct Limit {
    #[serde(default)]
    context: u64,
    #[serde(default)]
    output: u64,
}

#[derive(Deserialize, Serialize)]
struct Cost {
    input: Option<f64>,
    output: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write: Option<f64>,
}

#[derive(Deserialize, Serialize, Default)]
struct Modalities {
    #[serde(default)]
    input: Vec<String>,
    #[serde(default)]
    output: Vec<String>,
}

/// The facts of the public data that the list is made from, one model a line: what `data/models.json` holds.
pub fn facts(json: &str) -> Result<String, serde_json::Error> {
    let providers: BTreeMap<String, Provider> = serde_json::from_str(json)?;
    let mut blocks = Vec::new();
    for (there, here) in PROVIDERS {
        let Some(provider) = providers.get(there) else { continue };
        let mut lines = Vec::new();
        for (name, model) in provider.models.iter().filter(|(name, model)| useful(here, name, model)) {
            lines.push(format!("{}: {}", serde_json::to_string(name)?, serde_json::to_string(model)?));
        }
        blocks.push(format!("\"{there}\": {{\"models\": {{\n{}\n}}}}", lines.join(",\n")));
    }
    Ok(format!("{{\n{}\n}}\n", blocks.join(",\n")))
}

/// The list as text, newest models first within a provider.
pub fn import(json: &str) -> Result<String, serde_json::Error> {
    let providers: BTreeMap<String, Provider> = serde_json::from_str(json)?;
    let mut text = String::from(HEAD);
    for (there, here) in PROVIDERS {
        let Some(provider) = providers.get(there) else { continue };
        let mut models: Vec<_> =
            provider.models.iter().filter(|(name, model)| useful(here, name, model)).collect();
        models.sort_by(|(name, model), (other_name, other)| {
            other.release_date.cmp(&model.release_date).then_with(|| name.cmp(other_name))
        });
        if models.is_empty() {
            continue;
        }
        let _ = write!(text, "\n[{here}]\n");
        for (name, model) in models {
            let _ = writeln!(text, "{}", row(here, name, model));
        }
    }
    Ok(text)
}

const HEAD: &str = "\
# Models that Dragoman knows, newest first: limits in tokens, prices in US dollars per million tokens.
# name context output input-price output-price cache-read cache-write abilities variants
";

fn useful(provider: &str, name: &str, model: &Model) -> bool {
    let vendor = name.split('/').next().unwrap_or_default();
    let listed = provider != "openrouter"
        || [
            "anthropic",
            "openai",
            "google",
            "deepseek",
            "mistralai",
            "x-ai",
            "moonshotai",
            "z-ai",
            "qwen",
            "minimax",
        ]
        .contains(&vendor);
    listed
        && model.tool_call
        && model.status.as_deref() != Some("deprecated")
        && model.release_date.as_str() >= SINCE
        && model.limit.context > 0
        && model.modalities.output == ["text"]
        && !["-chat-latest", "deep-research", "realtime", "omni", "safeguard", ":free"]
            .iter()
            .any(|part| name.contains(part))
        && !is_dated(name)
        && !name.contains(char::is_whitespace)
}

/// A name that only adds a date to another.
fn is_dated(name: &str) -> bool {
    name.rsplit('-')
        .next()
        .is_some_and(|last| last.len() == 8 && last.bytes().all(|byte| byte.is_ascii_digit()))
}

fn row(provider: &str, name: &str, model: &Model) -> String {
    let (style, variants) = if model.reasoning { variants(provider, name) } else { ("", "") };
    let mut abilities = vec!["tools"];
    if model.modalities.input.iter().any(|kind| kind == "image") {
        abilities.push("images");
    }
    if model.reasoning {
        abilities.push("reasoning");
    }
    if model.temperature {
        abilities.push("temperature");
    }
    if !style.is_empty() {
        abilities.push(style);
    }
    let cost = model.cost.as_ref();
    let amount = |value: Option<f64>| value.map_or("-".to_owned(), |value| value.to_string());
    let limit = |value: u64| if value == 0 { "-".to_owned() } else { value.to_string() };
    [
        name,
        &limit(model.limit.context),
        &limit(model.limit.output),
        &amount(cost.and_then(|cost| cost.input)),
        &amount(cost.and_then(|cost| cost.output)),
        &amount(cost.and_then(|cost| cost.cache_read)),
        &amount(cost.and_then(|cost| cost.cache_write)),
        &abilities.join(","),
        if variants.is_empty() { "-" } else { variants },
    ]
    .join(" ")
}

/// The setting that controls how much a reasoning model thinks, and the names of its steps, weakest first.
fn variants(provider: &str, name: &str) -> (&'static str, &'static str) {
    let bare = name.rsplit('/').next().unwrap_or(name);
    let bare = bare.rsplit_once("anthropic.").map_or(bare, |(_, rest)| rest);
    if let Some(claude) = bare.strip_prefix("claude-") {
        return claude_variants(provider, &claude.replace('.', "-"));
    }
    if bare.starts_with("gpt-")
        || bare.starts_with("o3")
        || bare.starts_with("o4")
        || bare.starts_with("codex")
    {
        return ("effort", gpt_variants(bare));
    }
    match provider {
        "google" if bare.starts_with("gemini-2") => ("budget", "none,low,medium,high"),
        "google" if bare.starts_with("gemini") => ("effort", "low,medium,high"),
        "deepseek" => ("effort", "none,high,max"),
        "xai" | "groq" | "openrouter" | "mistral" => ("effort", "low,medium,high"),
        "z-ai" | "moonshot" | "qwen" => ("effort", "none,high"),
        _ => ("", ""),
    }
}

fn claude_variants(provider: &str, name: &str) -> (&'static str, &'static str) {
    let old = ["opus-4-0", "opus-4-1", "opus-4-5", "sonnet-4-0", "sonnet-4-5", "haiku-4-5", "3-7"];
    let budget = name == "sonnet-4" || name == "opus-4" || old.iter().any(|old| name.starts_with(old));
    if matches!(provider, "github-copilot" | "openrouter") {
        return ("effort", "low,medium,high");
    }
    if budget {
        ("budget", "low,medium,high,max")
    } else if name.starts_with("sonnet-4-6") {
        ("adaptive", "low,medium,high")
    } else if name.starts_with("opus-4-6") {
        ("adaptive", "low,medium,high,max")
    } else {
        ("adaptive", "low,medium,high,xhigh,max")
    }
}

fn gpt_variants(name: &str) -> &'static str {
    if name.ends_with("-pro") {
        return if name.starts_with("gpt-5-") { "high" } else { "medium,high,xhigh" };
    }
    let version =
        name.strip_prefix("gpt-5.").and_then(|rest| rest.chars().next()).and_then(|c| c.to_digit(10));
    match version {
        Some(1) if name.contains("codex-max") => "low,medium,high,xhigh",
        Some(1) if name.contains("codex") => "low,medium,high",
        Some(1) => "none,low,medium,high",
        Some(_) if name.contains("codex") => "low,medium,high,xhigh",
        Some(_) => "none,low,medium,high,xhigh",
        None if name.starts_with("gpt-5") && !name.contains("codex") => "minimal,low,medium,high",
        None => "low,medium,high",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn rows_made_from_the_public_data_are_read_again() {
        let json = r#"{"anthropic":{"models":{
            "claude-sonnet-4-5":{"release_date":"2025-09-29","reasoning":true,"tool_call":true,"temperature":true,
              "limit":{"context":200000,"output":64000},"cost":{"input":3.0,"output":15.0,"cache_read":0.3},
              "modalities":{"input":["text","image"],"output":["text"]}},
            "claude-old":{"release_date":"2023-01-01","tool_call":true,"limit":{"context":1,"output":1},
              "modalities":{"output":["text"]}},
            "claude-gone":{"status":"deprecated","release_date":"2026-01-01","tool_call":true,
              "limit":{"context":1,"output":1},"modalities":{"output":["text"]}}}}}"#;
        let text = import(json).unwrap();
        let (catalog, bad) = Catalog::parse(&text);
        assert_eq!(bad, Vec::<String>::new());
        let models = catalog.models("anthropic");
        assert_eq!(models.len(), 1);
        assert_eq!(models[0].info.variants, ["low", "medium", "high", "max"]);
        assert!(models[0].info.images && models[0].temperature);
    }

    #[test]
    fn the_built_in_list_is_made_from_our_facts() {
        let (facts_file, list) =
            (include_str!("../../data/models.json"), include_str!("../../data/catalog.txt"));
        assert!(import(facts_file).unwrap() == list, "run `cargo run -p dragoman-xtask -- catalog`");
        assert!(facts(facts_file).unwrap() == facts_file, "run `cargo run -p dragoman-xtask -- catalog`");
    }
}
