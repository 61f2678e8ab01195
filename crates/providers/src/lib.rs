//! Turns settings into the model registry: one configuration per provider, with the source of its key.
//!
//! Owns the keys of AWS and the sign-in at GitHub. Must not know sessions, front-ends or the terminal.

mod aws;
mod aws_profile;
pub mod github;
pub mod network;

use std::sync::{Arc, Mutex, PoisonError};

use config::{
    AccessToken, CredentialFile, Credentials, Environment, ManagedRules, ModelSettings, ProviderSettings,
    Redactor, Resolved, SecretSource, StoredCredential,
};
use domain::Failure;
use domain::model::{ModelInfo, Price};
use llm::vendors::{Auth, VENDORS, Vendor};
use llm::{
    Api, Credential, KeySource, ModelConfig, Network, ProviderConfig, RateLimiter, Registry, RetryPolicy,
};

/// What all providers of a process share.
pub struct ProviderDeps {
    pub credentials: Arc<dyn Credentials>,
    pub rate_limiter: Arc<RateLimiter>,
    /// How often a call is tried.
    pub attempts: u32,
}

impl ProviderDeps {
    /// For a command that is alone, and wants to know at once what does not work.
    pub fn new(environment: &Environment) -> Self {
        Self {
            credentials: Arc::new(CredentialFile::new(environment)),
            rate_limiter: Arc::default(),
            attempts: 1,
        }
    }
}

/// The models that configuration names.
pub struct Configured {
    pub registry: Registry,
    /// Providers that cannot be used, each with the reason.
    pub problems: Vec<Failure>,
    /// What the machine's administrator takes away.
    pub managed: ManagedRules,
    /// The names of these providers.
    pub unusable: Vec<(String, Failure)>,
}

/// All models of a configuration. Unusable providers become problems.
pub fn configured(resolved: &Resolved, deps: &ProviderDeps) -> Configured {
    let settings = &resolved.settings;
    let concurrency = usize::try_from(settings.concurrency).unwrap_or(1).max(1);
    let (silence, attempts) = (settings.stream_silence, deps.attempts);
    let retry_policy = RetryPolicy { silence, attempts, concurrency, ..RetryPolicy::default() };
    let mut problems = Vec::new();
    let network = network::of(resolved).unwrap_or_else(|failure| {
        problems.push(failure);
        Network::default()
    });
    let context = ProviderContext { resolved, credentials: &deps.credentials, network: Arc::new(network) };
    let (mut providers, mut unusable) = (Vec::new(), Vec::new());
    for (name, provider) in &settings.providers {
        match provider_config(name, provider, &context) {
            Ok(config) => providers.push(config),
            Err(failure) => unusable.push((name.clone(), failure)),
        }
    }
    // Vendors without a key are known too, so that a prompt says which key to set.
    for vendor in unnamed_vendors(settings) {
        let nothing = ProviderSettings::default();
        providers.extend(provider_config(vendor.name, &nothing, &context));
    }
    let make = |providers: Vec<ProviderConfig>, unusable| {
        Registry::new(llm::RegistrySettings {
            providers,
            unusable,
            default_model: settings.default_model.clone(),
            small_model: settings.chat.title_model.clone(),
            retry_policy,
            network: context.network.clone(),
            rate_limiter: deps.rate_limiter.clone(),
        })
    };
    // One provider that nobody can speak to must not take the others with it.
    let mut usable = Vec::new();
    for provider in providers {
        match make(vec![provider.clone()], Vec::new()) {
            Ok(_) => usable.push(provider),
            Err(failure) => unusable.push((provider.name, failure)),
        }
    }
    problems.extend(unusable.iter().map(|(_, failure)| failure.clone()));
    let registry = make(usable, unusable.clone()).unwrap_or_else(|failure| {
        problems.push(failure);
        Registry::default()
    });
    Configured { registry, problems, unusable, managed: settings.managed.clone() }
}

/// Vendors with a key of the user's own, which the settings do not name.
fn unnamed_vendors(settings: &config::Settings) -> impl Iterator<Item = &'static Vendor> {
    VENDORS
        .iter()
        .filter(|vendor| !settings.providers.contains_key(vendor.name))
        .filter(|vendor| settings.managed.permits_provider(vendor.name))
        .filter(|vendor| vendor.auth != Auth::Optional && !vendor.url.is_empty())
}

/// What a provider is made from, beside its own settings.
struct ProviderContext<'a> {
    resolved: &'a Resolved,
    credentials: &'a Arc<dyn Credentials>,
    network: Arc<Network>,
}

fn provider_config(
    name: &str,
    provider: &ProviderSettings,
    context: &ProviderContext<'_>,
) -> Result<ProviderConfig, Failure> {
    if let Some(problem) = &provider.url_problem {
        return Err(problem.clone());
    }
    let api = match &provider.api {
        Some(api) => Some(Api::parse(api).ok_or_else(|| {
            Failure::config(format!("`providers.{name}.api` is {api}, which Dragoman does not speak."))
                .hint(format!("Use one of {}.", Api::ALL.map(Api::name).join(", ")))
        })?),
        None => None,
    };
    let headers = provider.extra_headers.iter().map(header);
    let managed = &context.resolved.settings.managed;
    let is_permitted = |(own, model): &(&String, &ModelSettings)| {
        let sent = model.model_name.as_ref().unwrap_or(own);
        !managed.restricts_models() || managed.permits_model(&format!("{name}/{sent}"))
    };
    let models = provider.models.iter().filter(is_permitted);
    let models =
        models.map(|(own, model)| obedient(name, model_config(own, model, provider), managed)).collect();
    let url = provider.url.as_ref().and_then(|url| url.known());
    check_address(name, url, managed)?;
    Ok(ProviderConfig {
        name: name.to_owned(),
        api,
        url: url.map(|url| url.trim_end_matches('/').to_owned()).or_else(|| regional(name, context)),
        path: provider.completion_path.clone(),
        key: key(name, provider, context),
        models,
        headers: headers.collect(),
        silence: None,
        catalog: provider.fetch_models != Some(false),
        fetch_models: provider.fetch_models,
        concurrency: provider.concurrency.and_then(|most| usize::try_from(most).ok()),
    })
}

/// The name of a provider identifies its host only if its address is the vendor's own.
fn check_address(name: &str, url: Option<&str>, managed: &ManagedRules) -> Result<(), Failure> {
    let is_vendors = |url: &str| {
        llm::vendors::vendor(name)
            .is_some_and(|vendor| !vendor.url.is_empty() && origin(url) == origin(vendor.url))
    };
    match url {
        Some(url) if !is_vendors(url) && !managed.permits_address_of_provider(url) => {
            Err(ManagedRules::refusal(&format!("The address of the provider {name}"))
                .hint("Where managed settings list providers, `allowedHosts` must name every address that is not the provider's own."))
        }
        Some(_) | None => Ok(()),
    }
}

/// The scheme and the host.
fn origin(url: &str) -> String {
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/").to_ascii_lowercase()
}

/// The name of a model was checked, so a body has no other one; a budget of the administrator counts by the list's prices.
fn obedient(provider: &str, mut model: ModelConfig, managed: &ManagedRules) -> ModelConfig {
    if let Some(info) = model.info.as_mut().filter(|_| managed.has_budgets()) {
        let sent = model.wire_name.as_deref().unwrap_or(&model.name);
        let listed = llm::catalog::current().find(provider, sent).and_then(|known| known.info.price);
        info.price = listed.or_else(|| info.price.take());
    }
    if managed.restricts_models() {
        model.body.remove("model");
        model.variants.iter_mut().for_each(|(_, body)| drop(body.remove("model")));
    }
    model
}

/// Bedrock is in the user's region.
fn regional(name: &str, context: &ProviderContext<'_>) -> Option<String> {
    let region = if name == BEDROCK && uses_aws(context) {
        aws::region(&context.resolved.settings.aws)?
    } else {
        return None;
    };
    let plain = region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain.then(|| format!("https://bedrock-runtime.{region}.amazonaws.com"))
}

const BEDROCK: &str = "bedrock";

/// The environment names credentials of AWS, or the settings have the provider and no key for it.
fn uses_aws(context: &ProviderContext<'_>) -> bool {
    let settings = &context.resolved.settings;
    aws::are_expected(&settings.aws) || settings.providers.contains_key(BEDROCK)
}

/// From the settings first, then from where `dragoman login` keeps it.
fn key(name: &str, provider: &ProviderSettings, context: &ProviderContext<'_>) -> Option<KeySource> {
    let server = || github::SignInServer::new(Some(provider), context.network.clone());
    if let (None, Some(host)) = (&provider.key, &provider.withheld_from) {
        return withheld_key(name, host);
    }
    match provider.key.clone() {
        Some(source) if name == github::PROVIDER => return Some(exchanged_key(source, server())),
        Some(source) => return Some(key_source(source)),
        None => {}
    }
    let is_kept = || context.credentials.get(name).is_ok_and(|stored| stored.is_some());
    if name == BEDROCK && uses_aws(context) && !is_kept() {
        let (aws, redactor) = (&context.resolved.settings.aws, context.resolved.redactor.clone());
        return Some(aws::key_source(aws, context.network.clone(), redactor));
    }
    let vendor = llm::vendors::vendor(name);
    let may_come = vendor.is_some_and(|vendor| vendor.auth != Auth::Optional);
    if !may_come && !context.credentials.get(name).is_ok_and(|stored| stored.is_some()) {
        return None;
    }
    let source = match name {
        github::PROVIDER => signed_in_key(context.credentials.clone(), server()),
        _ => stored_key(context.credentials.clone(), name, context.resolved.redactor.clone()),
    };
    let (credentials, name) = (context.credentials.clone(), name.to_owned());
    Some(source.available_while(move || credentials.get(&name).is_ok_and(|stored| stored.is_some())))
}

/// In place of a key that was not stored for the host. A provider that needs none is asked without one.
fn withheld_key(name: &str, host: &str) -> Option<KeySource> {
    let needs_key = llm::vendors::vendor(name).is_some_and(|vendor| vendor.auth != Auth::Optional);
    let message = format!("A project sets the address of {name} to {host}. Your key was not stored for it.");
    let hint = format!(
        "Add `\"keyHosts\": [\"{host}\"]` to `providers.{name}` in your own settings to send it there, or take the \
         address out of the project's settings."
    );
    let failure = Failure::auth(message).hint(hint);
    needs_key.then(|| {
        KeySource::new(move || {
            let failure = failure.clone();
            Box::pin(async move { Err(failure) })
        })
    })
}

fn stored_key(credentials: Arc<dyn Credentials>, name: &str, redactor: Redactor) -> KeySource {
    let name = name.to_owned();
    KeySource::new(move || {
        let found = credentials.get(&name);
        let redactor = redactor.clone();
        Box::pin(async move {
            Ok(match found? {
                Some(StoredCredential::Key { key }) => {
                    redactor.add_secret(&key);
                    Some(Credential::Key(key))
                }
                _ => None,
            })
        })
    })
}

fn signed_in_key(credentials: Arc<dyn Credentials>, server: github::SignInServer) -> KeySource {
    KeySource::new(move || {
        let (credentials, server) = (credentials.clone(), server.clone());
        Box::pin(async move { server.valid_token(&credentials).await })
    })
}

/// A token of GitHub from the settings is exchanged, and the exchange is remembered while it is fresh.
fn exchanged_key(source: SecretSource, server: github::SignInServer) -> KeySource {
    let known: Arc<Mutex<Option<AccessToken>>> = Arc::default();
    KeySource::new(move || {
        let (source, server, known) = (source.clone(), server.clone(), known.clone());
        Box::pin(async move {
            let secret = source.get().await?;
            let token = secret.expose();
            if !token.starts_with("gh") {
                return Ok(Some(Credential::Bearer(token.to_owned())).filter(|_| !token.is_empty()));
            }
            let held = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let access = match held.filter(github::is_fresh) {
                Some(access) => access,
                None => server.exchange(token).await?,
            };
            *known.lock().unwrap_or_else(PoisonError::into_inner) = Some(access.clone());
            Ok(Some(Credential::Bearer(access.token)))
        })
    })
}

/// Where the key of each provider comes from, for people.
pub fn keys(resolved: &Resolved, kept: &[String]) -> Vec<(String, &'static str)> {
    let configured = &resolved.settings.providers;
    let vendors = VENDORS.iter().map(|vendor: &Vendor| vendor.name.to_owned());
    let own = configured.keys().filter(|name| llm::vendors::vendor(name).is_none()).cloned();
    let state = |name: &String| {
        if configured.get(name).is_some_and(|provider| provider.key.is_some()) {
            "in the environment or the configuration"
        } else if kept.contains(name) {
            "kept by `dragoman login`"
        } else if llm::vendors::vendor(name).is_none_or(|vendor| vendor.auth == Auth::Optional) {
            "none needed"
        } else {
            "missing"
        }
    };
    vendors.chain(own).map(|name| (name.clone(), state(&name))).collect()
}

/// A value that must be looked up first is asked for when a request is made.
fn header((name, value): &(String, SecretSource)) -> (String, KeySource) {
    (name.clone(), key_source(value.clone()))
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
    let headers = model.extra_headers.iter().map(header);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_go_to_the_host_of_its_vendor() {
        for vendor in VENDORS.iter().filter(|vendor| vendor.url.starts_with("https://")) {
            let host = vendor.url.trim_start_matches("https://").split('/').next();
            let known = config::VENDOR_HOSTS.iter().find(|(name, _)| *name == vendor.name);
            assert_eq!(known.map(|(_, host)| *host), host, "{}", vendor.name);
        }
    }
}
