//! Settings from environment variables, such as API keys. They fill settings that no layer has; a value in a file
//! goes before them.

use serde_json::json;

use crate::environment::Environment;
use crate::layer::{Layer, Object};
use crate::origin::Origin;
use crate::sandbox::is_the_users;
use crate::secret::Redactor;
use crate::store;
use crate::telemetry;
use crate::tree::Node;

/// The variables in which people keep the key of a provider, in order of preference.
const PROVIDER_KEYS: &[(&str, &[&str])] = &[
    ("anthropic", &["ANTHROPIC_API_KEY"]),
    ("azure", &["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"]),
    ("bedrock", &["AWS_BEARER_TOKEN_BEDROCK"]),
    ("cerebras", &["CEREBRAS_API_KEY"]),
    ("cohere", &["COHERE_API_KEY"]),
    ("deepinfra", &["DEEPINFRA_API_KEY"]),
    ("deepseek", &["DEEPSEEK_API_KEY"]),
    ("fireworks", &["FIREWORKS_API_KEY"]),
    ("github-copilot", &["COPILOT_GITHUB_TOKEN"]),
    ("google", &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"]),
    ("groq", &["GROQ_API_KEY"]),
    ("huggingface", &["HF_TOKEN"]),
    ("litellm", &["LITELLM_API_KEY"]),
    ("lmstudio", &["LMSTUDIO_API_KEY"]),
    ("minimax", &["MINIMAX_API_KEY"]),
    ("mistral", &["MISTRAL_API_KEY"]),
    ("moonshot", &["MOONSHOT_API_KEY", "KIMI_API_KEY"]),
    ("nvidia", &["NVIDIA_API_KEY"]),
    ("ollama", &["OLLAMA_API_KEY"]),
    ("openai", &["OPENAI_API_KEY"]),
    ("openrouter", &["OPENROUTER_API_KEY"]),
    ("perplexity", &["PERPLEXITY_API_KEY"]),
    ("qwen", &["DASHSCOPE_API_KEY", "QWEN_API_KEY"]),
    ("together", &["TOGETHER_API_KEY"]),
    ("xai", &["XAI_API_KEY"]),
    ("z-ai", &["ZAI_API_KEY", "Z_AI_API_KEY", "ZHIPU_API_KEY"]),
];

/// Other settings with variables of their own.
const OTHER_VARIABLES: &[(&[&str], &[&str])] = &[
    (&["store"], &[store::VARIABLE]),
    (&["network", "caCertFile"], &["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"]),
    (&["network", "clientCert"], &["DRAGOMAN_CLIENT_CERT", "ECA_CLIENT_CERT"]),
    (&["network", "clientKey"], &["DRAGOMAN_CLIENT_KEY", "ECA_CLIENT_KEY"]),
    (&["network", "clientKeyPassphrase"], &["DRAGOMAN_CLIENT_KEY_PASSPHRASE", "ECA_CLIENT_KEY_PASSPHRASE"]),
    (&["otlp", telemetry::ENDPOINT], &["OTEL_EXPORTER_OTLP_ENDPOINT"]),
    (&["otlp", telemetry::TRACES_ENDPOINT], &["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]),
    (&["otlp", telemetry::METRICS_ENDPOINT], &["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"]),
    (&["otlp", telemetry::HEADERS], &["OTEL_EXPORTER_OTLP_HEADERS"]),
    (&["otlp", telemetry::TRACES_HEADERS], &["OTEL_EXPORTER_OTLP_TRACES_HEADERS"]),
    (&["otlp", telemetry::METRICS_HEADERS], &["OTEL_EXPORTER_OTLP_METRICS_HEADERS"]),
    (&["otlp", telemetry::PROTOCOL], &["OTEL_EXPORTER_OTLP_PROTOCOL"]),
    (&["otlp", telemetry::TRACES_PROTOCOL], &["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"]),
    (&["otlp", telemetry::METRICS_PROTOCOL], &["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"]),
    (&["otlp", telemetry::TIMEOUT], &["OTEL_EXPORTER_OTLP_TIMEOUT"]),
    (&["otlp", telemetry::TRACES_EXPORTER], &["OTEL_TRACES_EXPORTER"]),
    (&["otlp", telemetry::METRICS_EXPORTER], &["OTEL_METRICS_EXPORTER"]),
    (&["otlp", telemetry::SERVICE_NAME], &["OTEL_SERVICE_NAME"]),
    (&["otlp", telemetry::RESOURCE], &["OTEL_RESOURCE_ATTRIBUTES"]),
    (&["otlp", telemetry::DISABLED], &["OTEL_SDK_DISABLED"]),
];

/// Headers of telemetry are keys.
const TELEMETRY_HEADERS: [&str; 3] =
    ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"];

/// Adds the settings that only variables have, each as a layer of its own.
pub(crate) fn fill_from_environment(environment: &Environment, tree: &mut Node, layers: &mut Vec<Layer>) {
    let mut fills: Vec<(Vec<String>, String)> = Vec::new();
    let mut find = |tree: &Node, path: &[&str], names: &[&str]| {
        let there = path.iter().try_fold(tree, |node, key| node.get(key));
        if there.is_none()
            && let Some((name, _)) = environment.first(names)
        {
            fills.push((path.iter().map(|key| (*key).to_owned()).collect(), name.to_owned()));
        }
    };
    for (provider, names) in PROVIDER_KEYS {
        find(tree, &["providers", provider, "key"], names);
    }
    let configured =
        tree.get("providers").and_then(Node::entries).into_iter().flat_map(|entries| entries.keys());
    let known = PROVIDER_KEYS.iter().map(|(provider, _)| *provider);
    for provider in configured.map(String::as_str).chain(known) {
        find(tree, &["providers", provider, "key"], &[&variable(provider, "API_KEY")]);
        find(tree, &["providers", provider, "url"], &[&variable(provider, "API_URL")]);
    }
    for (path, names) in OTHER_VARIABLES {
        find(tree, path, names);
    }
    for (path, name) in fills {
        // By reference, so that the value of a variable is never read as a reference.
        let value =
            path.iter().rev().fold(json!(format!("${{env:{name}}}")), |value, key| json!({key: value}));
        let values = value.as_object().cloned().unwrap_or_default();
        add(tree, layers, Layer::new(Origin::Variable(name), values, environment.home().to_owned()));
    }
}

/// The variables that are set and hold secrets. Programs that a model starts do not get them.
pub(crate) fn secret_names(environment: &Environment, tree: &Node) -> Vec<String> {
    let mut names: Vec<String> =
        PROVIDER_KEYS.iter().flat_map(|(_, names)| *names).map(|name| (*name).to_owned()).collect();
    let configured =
        tree.get("providers").and_then(Node::entries).into_iter().flat_map(|entries| entries.keys());
    names.extend(configured.map(|provider| variable(provider, "API_KEY")));
    names.extend(["ECA_CONFIG", "DRAGOMAN_CONFIG", "DRAGOMAN_TOKEN", store::VARIABLE].map(str::to_owned));
    names.extend(TELEMETRY_HEADERS.map(str::to_owned));
    names.retain(|name| environment.var(name).is_some());
    names.sort();
    names.dedup();
    names
}

/// The variables in which keys and addresses of providers may be, whether they are set or not.
pub(crate) fn provider_names(tree: &Node) -> Vec<String> {
    let known = PROVIDER_KEYS.iter().map(|(provider, _)| *provider);
    let configured =
        tree.get("providers").and_then(Node::entries).into_iter().flat_map(|entries| entries.keys());
    let own = configured
        .map(String::as_str)
        .chain(known)
        .flat_map(|provider| [variable(provider, "API_KEY"), variable(provider, "API_URL")]);
    let kept = PROVIDER_KEYS.iter().flat_map(|(_, names)| *names).map(|name| (*name).to_owned());
    own.chain(kept).collect()
}

/// `shell.passEnvironment`: variables that programs get although they hold keys. A project cannot name any.
pub(crate) fn passed_names(layers: &[Layer]) -> Vec<String> {
    let own = layers.iter().rev().filter(|layer| is_the_users(layer));
    let named = own.filter_map(|layer| layer.at(&["shell", "passEnvironment"])?.as_array()).next();
    named.into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect()
}

/// Registers the values of variables that hold secrets.
pub(crate) fn register_secrets(environment: &Environment, names: &[String], redactor: &Redactor) {
    let headers = TELEMETRY_HEADERS.iter().filter_map(|name| environment.var(name));
    for (_, value) in headers.flat_map(telemetry::pairs) {
        redactor.add_secret(&value);
    }
    let keys = names.iter().filter(|name| !name.ends_with("_CONFIG"));
    keys.filter_map(|name| environment.var(name)).for_each(|secret| redactor.add_secret(secret));
}

/// Merges a layer below the others.
fn add(tree: &mut Node, layers: &mut Vec<Layer>, layer: Layer) {
    let mut filled = Node::from_map(&layer.values as &Object, layers.len());
    filled.overlay(tree);
    *tree = filled;
    layers.push(layer);
}

/// `my-company` → `MY_COMPANY_API_KEY`.
fn variable(provider: &str, suffix: &str) -> String {
    let name: String = provider
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("{name}_{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_documented() {
        let page = include_str!("../../../docs/files.md");
        let all = PROVIDER_KEYS
            .iter()
            .map(|(_, names)| names)
            .chain(OTHER_VARIABLES.iter().map(|(_, names)| names));
        let switches = [
            "DRAGOMAN_CONFIG",
            "ECA_CONFIG",
            "DRAGOMAN_PURE",
            "DRAGOMAN_TRUST",
            "DRAGOMAN_DATA",
            "DRAGOMAN_MODELS",
        ];
        for name in all.flat_map(|names| names.iter()).chain(&switches) {
            assert!(page.contains(&format!("`{name}")), "{name} is not in docs/files.md");
        }
        for (provider, _) in PROVIDER_KEYS {
            assert!(page.contains(&format!("| {provider} |")), "{provider} is not in docs/files.md");
        }
    }
}
