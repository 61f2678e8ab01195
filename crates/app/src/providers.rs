//! From settings to the model registry: each provider as llm wants it.

use std::sync::Arc;

use config::{ModelSettings, ProviderSettings, Resolved, SecretSource};
use domain::Failure;
use domain::model::{ModelInfo, Models, Price};
use llm::{Api, Credential, KeySource, ModelConfig, Patience, ProviderConfig, Registry};

/// The models that configuration names.
pub struct Configured {
    pub registry: Registry,
    /// Providers that cannot be used, each with the reason.
    pub problems: Vec<Failure>,
}

/// All models of a configuration. A provider that cannot be used is left out and said.
pub fn configured(resolved: &Resolved) -> Configured {
    let settings = &resolved.settings;
    let patience = Patience { silence: settings.stream_silence, ..Patience::default() };
    let mut problems = Vec::new();
    let mut providers = Vec::new();
    for (name, provider) in &settings.providers {
        match provider_config(name, provider) {
            Ok(config) => providers.push(config),
            Err(failure) => problems.push(failure),
        }
    }
    // Vendors without a key are known too, so that a prompt says which key to set.
    for vendor in llm::vendors::VENDORS {
        let named = settings.providers.contains_key(vendor.name);
        if !named && vendor.auth != llm::vendors::Auth::Optional && !vendor.url.is_empty() {
            providers.push(ProviderConfig {
                name: vendor.name.into(),
                catalogue: true,
                ..ProviderConfig::default()
            });
        }
    }
    let make = |providers: Vec<ProviderConfig>| {
        Registry::new(llm::Settings {
            providers,
            default_model: settings.default_model.clone(),
            small_model: settings.chat.title_model.clone(),
            patience,
            network: Arc::default(),
        })
    };
    // One provider that nobody can speak to must not take the others with it.
    let mut usable = Vec::new();
    for provider in providers {
        match make(vec![provider.clone()]) {
            Ok(_) => usable.push(provider),
            Err(failure) => problems.push(failure),
        }
    }
    let registry = make(usable).unwrap_or_else(|failure| {
        problems.push(failure);
        Registry::default()
    });
    Configured { registry, problems }
}

fn provider_config(name: &str, provider: &ProviderSettings) -> Result<ProviderConfig, Failure> {
    let api = match &provider.api {
        Some(api) => Some(Api::parse(api).ok_or_else(|| {
            Failure::config(format!("`providers.{name}.api` is {api}, which Dragoman does not speak."))
                .hint("Use openai-responses, openai-chat or anthropic.")
        })?),
        None => None,
    };
    let headers =
        provider.extra_headers.iter().filter_map(|(name, value)| Some((name.clone(), plain(value)?)));
    let models = provider.models.iter().map(|(name, model)| model_config(name, model, provider)).collect();
    Ok(ProviderConfig {
        name: name.to_owned(),
        api,
        url: provider
            .url
            .as_ref()
            .and_then(|url| url.known())
            .map(|url| url.trim_end_matches('/').to_owned()),
        path: provider.completion_path.clone(),
        key: provider.key.clone().map(key_source),
        models,
        headers: headers.collect(),
        silence: None,
        catalogue: provider.fetch_models != Some(false),
    })
}

/// Headers are needed when the request is made; one that must be looked up first is asked for then.
fn plain(value: &SecretSource) -> Option<String> {
    value.known().map(|secret| secret.expose().to_owned())
}

fn key_source(source: SecretSource) -> KeySource {
    KeySource::new(move || {
        let source = source.clone();
        Box::pin(async move {
            let secret = source.get().await?;
            Ok(Some(secret.expose()).filter(|key| !key.is_empty()).map(|key| Credential::Key(key.to_owned())))
        })
    })
}

fn model_config(name: &str, model: &ModelSettings, provider: &ProviderSettings) -> ModelConfig {
    let mut body = provider.extra_payload.clone();
    body.extend(model.extra_payload.clone());
    let headers = model.extra_headers.iter().filter_map(|(name, value)| Some((name.clone(), plain(value)?)));
    let priced = model.input_cost.zip(model.output_cost);
    let info = (model.context_limit.is_some() || priced.is_some()).then(|| ModelInfo {
        context_limit: model.context_limit,
        output_limit: model.output_limit,
        price: priced.map(|(input, output)| Price {
            input,
            output,
            cache_read: model.cache_read_cost,
            cache_write: model.cache_write_cost,
        }),
        tools: true,
        images: true,
        ..ModelInfo::default()
    });
    ModelConfig {
        name: name.to_owned(),
        wire_name: model.model_name.clone(),
        info,
        body,
        headers: headers.collect(),
        variants: model.variants.iter().map(|(name, body)| (name.clone(), body.clone())).collect(),
    }
}

/// What is configured, as text for the chat.
pub fn report(resolved: &Resolved, models: &dyn Models) -> String {
    let problems = configured(resolved).problems;
    let mut lines = vec![format!("Dragoman {}", env!("CARGO_PKG_VERSION"))];
    lines.push(match models.default_model() {
        Some(model) => format!("Default model: {model}"),
        None => "Default model: none. Set a key, for instance ANTHROPIC_API_KEY or OPENAI_API_KEY.".into(),
    });
    for (name, provider) in &resolved.settings.providers {
        let key = if provider.key.is_some() { "a key is set" } else { "no key" };
        lines.push(format!("- {name}: {key}"));
    }
    lines.extend(problems.iter().map(|problem| format!("- {problem}")));
    lines.extend(resolved.notices.iter().map(|notice| format!("- {}", notice.text)));
    lines.push("There is no operating-system sandbox yet: approved commands run with your rights.".into());
    lines.join("\n")
}
