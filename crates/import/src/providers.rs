//! Providers of other programs as providers here: codex `model_providers`, opencode `provider`.
//!
//! Invariants: no key is copied, only where it is looked for; a provider that would be called differently here is left out
//! with the reason; one that is there already stays as it is.

use serde_json::{Map, Value, json};

use super::plan::{Plan, Source};
use super::secrets;

/// The providers of codex's settings.
pub(super) fn codex(plan: &mut Plan<'_>, source: &Source, values: &Map<String, Value>) {
    let text = |key: &str| values.get(key).and_then(Value::as_str);
    for (name, entry) in values.get("model_providers").and_then(Value::as_object).into_iter().flatten() {
        let model = text("model").filter(|_| text("model_provider") == Some(name.as_str()));
        match codex_provider(entry, model) {
            Ok((ours, notes)) => plan_provider(plan, source, name, ours, notes),
            Err(why) => plan.leave_out(source, format!("model_providers.{name}"), why),
        }
    }
}

/// A provider here, and what of it has no place.
type Converted = Result<(Value, Vec<String>), String>;

fn codex_provider(entry: &Value, model: Option<&str>) -> Converted {
    let mut notes = Vec::new();
    let url = entry["base_url"].as_str().ok_or("it has no address")?;
    let mut ours = json!({"url": url});
    for (member, value) in entry.as_object().into_iter().flatten() {
        match (member.as_str(), value) {
            ("base_url" | "name", _) => {}
            ("wire_api", Value::String(api)) if api == "responses" => ours["api"] = json!("openai-responses"),
            ("wire_api", Value::String(api)) if api == "chat" => ours["api"] = json!("openai-chat"),
            ("env_key", Value::String(name)) => ours["key"] = json!(format!("${{env:{name}}}")),
            ("http_headers", Value::Object(headers)) => add_headers(&mut ours, headers, &mut notes),
            ("env_http_headers", Value::Object(headers)) => {
                for (header, variable) in headers {
                    let variable = variable.as_str().unwrap_or_default();
                    ours["extraHeaders"][header] = json!(format!("${{env:{variable}}}"));
                }
            }
            ("query_params", Value::Object(params)) if !params.is_empty() => {
                return Err("its query parameters cannot be sent here".to_owned());
            }
            (member, _) => notes.push(format!("{member} has no equivalent here")),
        }
    }
    if ours.get("api").is_none() {
        ours["api"] = json!("openai-chat");
    }
    if let Some(model) = model {
        ours["models"] = json!({model: {}});
    }
    Ok((ours, notes))
}

/// The providers of opencode's settings.
pub(super) fn opencode(plan: &mut Plan<'_>, source: &Source, providers: &Value) {
    for (name, entry) in providers.as_object().into_iter().flatten() {
        match opencode_provider(name, entry) {
            Ok((ours, notes)) => plan_provider(plan, source, name, ours, notes),
            Err(why) => plan.leave_out(source, format!("provider {name}"), why),
        }
    }
}

fn opencode_provider(name: &str, entry: &Value) -> Converted {
    let mut notes = Vec::new();
    let mut ours = json!({});
    let options = &entry["options"];
    let is_known = llm::vendors::vendor(name).is_some();
    match entry["npm"].as_str().map(api_of_package) {
        Some(Some(api)) => ours["api"] = json!(api),
        Some(None) => return Err(format!("its package {} is not known here", entry["npm"])),
        None if is_known => {}
        None => ours["api"] = json!("openai-chat"),
    }
    match options["baseURL"].as_str() {
        Some(url) => ours["url"] = json!(references(url)),
        None if is_known => {}
        None => return Err("it has no address".to_owned()),
    }
    match options["apiKey"].as_str() {
        Some(key) if key.starts_with("{env:") || key.starts_with("{file:") => {
            ours["key"] = json!(references(key))
        }
        Some(_) => notes.push(format!("its key is not copied: `dragoman login {name}` stores it")),
        None => {}
    }
    if let Some(headers) = options["headers"].as_object() {
        let headers: Map<String, Value> = headers
            .iter()
            .map(|(name, value)| (name.clone(), json!(references(value.as_str().unwrap_or_default()))))
            .collect();
        add_headers(&mut ours, &headers, &mut notes);
    }
    for (id, model) in entry["models"].as_object().into_iter().flatten() {
        let mut mine = json!({});
        for limit in ["context", "output"] {
            if let Some(tokens) = model["limit"][limit].as_u64().filter(|tokens| *tokens > 0) {
                mine["limit"][limit] = json!(tokens);
            }
        }
        if let Some(real) = model["id"].as_str().filter(|real| real != id) {
            mine["modelName"] = json!(real);
        }
        ours["models"][id] = mine;
    }
    let known = ["baseURL", "apiKey", "headers"];
    let more = options.as_object().into_iter().flatten().map(|(option, _)| option.as_str());
    notes.extend(
        more.filter(|option| !known.contains(option)).map(|it| format!("{it} has no equivalent here")),
    );
    Ok((ours, notes))
}

/// The API that a package of opencode speaks.
fn api_of_package(package: &str) -> Option<&'static str> {
    Some(match package {
        "@ai-sdk/openai-compatible" | "@openrouter/ai-sdk-provider" => "openai-chat",
        "@ai-sdk/openai" => "openai-responses",
        "@ai-sdk/anthropic" => "anthropic",
        "@ai-sdk/google" => "gemini",
        "@ai-sdk/amazon-bedrock" => "bedrock",
        _ => return None,
    })
}

/// `{env:NAME}` is `${env:NAME}` here.
fn references(text: &str) -> String {
    text.replace("{env:", "${env:").replace("{file:", "${file:")
}

fn add_headers(ours: &mut Value, headers: &Map<String, Value>, notes: &mut Vec<String>) {
    for (name, value) in headers {
        let text = value.as_str().unwrap_or_default();
        if secrets::holds_secret(name, text) {
            notes.push(format!("the header {name} seems to hold a key, which is not copied"));
        } else {
            ours["extraHeaders"][name] = json!(text);
        }
    }
}

fn plan_provider(plan: &mut Plan<'_>, source: &Source, name: &str, ours: Value, notes: Vec<String>) {
    let what = format!("provider {name}");
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(is_plain) {
        return plan.leave_out(source, what, "its name cannot be used here");
    }
    if ours["url"].as_str().is_some_and(secrets::is_secret) {
        return plan.leave_out(source, what, "its address seems to hold a key, which is not copied");
    }
    notes.into_iter().for_each(|note| plan.leave_out(source, what.clone(), note));
    if plan.has(source.scope, &["providers", name]) {
        return;
    }
    let place = ours["url"].as_str().map_or_else(String::new, |url| format!(": {url}"));
    plan.set(source, vec!["providers".to_owned(), name.to_owned()], ours, format!("{what}{place}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_keep_their_address_and_where_their_key_is() {
        let entry = json!({"name": "Corp", "base_url": "https://llm.corp/v1", "env_key": "CORP_KEY", "wire_api": "responses",
            "http_headers": {"X-Team": "a", "Authorization": "Bearer hunter2"}, "env_http_headers": {"X-Org": "ORG"}});
        let (ours, notes) = codex_provider(&entry, Some("m1")).unwrap();
        assert_eq!(
            ours,
            json!({"url": "https://llm.corp/v1", "api": "openai-responses", "key": "${env:CORP_KEY}",
                "extraHeaders": {"X-Team": "a", "X-Org": "${env:ORG}"}, "models": {"m1": {}}})
        );
        assert!(notes.len() == 1 && notes[0].contains("Authorization"), "{notes:?}");
        for wrong in [json!({}), json!({"base_url": "https://a", "query_params": {"api-version": "1"}})] {
            assert!(codex_provider(&wrong, None).is_err(), "{wrong}");
        }
        let entry = json!({"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "http://127.0.0.1:8000/v1",
            "apiKey": "{env:K}"}, "models": {"qwen": {"limit": {"context": 32768, "output": 4096}}}});
        let (ours, _) = opencode_provider("lab", &entry).unwrap();
        assert_eq!(
            ours,
            json!({"api": "openai-chat", "url": "http://127.0.0.1:8000/v1", "key": "${env:K}",
                "models": {"qwen": {"limit": {"context": 32768, "output": 4096}}}})
        );
        let (ours, notes) =
            opencode_provider("anthropic", &json!({"options": {"apiKey": "sk-ant-0123456789abcdef"}}))
                .unwrap();
        assert_eq!((ours, notes.len()), (json!({}), 1));
        assert!(opencode_provider("x", &json!({"npm": "@x/y", "options": {"baseURL": "http://a"}})).is_err());
    }
}
