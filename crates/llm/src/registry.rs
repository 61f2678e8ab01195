//! All models of a configuration, behind the domain's `Models`.
//!
//! Invariant: making it and finding a model costs nothing: no key is read, nothing is connected.

use std::sync::{Arc, PoisonError, RwLock};

use domain::model::{Model, ModelInfo, Models, Price};
use domain::names::is_same_name;
use domain::{Failure, FailureKind};

use crate::call::ConnectedModel;
use crate::catalog::{self, KnownModel};
use crate::connection::{Connection, Endpoint};
use crate::discover;
use crate::format::fill::Fill;
use crate::format::{Api, Dialect, Thinking, deferred};
use crate::network::Network;
use crate::provider::{ModelConfig, ProviderConfig, RetryPolicy};
use crate::rate_limiter::RateLimiter;
use crate::vendors::{self, Auth, Vendor};

/// The providers in the order of the configuration.
#[derive(Debug, Default)]
pub struct Registry {
    providers: Vec<Arc<Provider>>,
    /// Configured providers that cannot be used, by name. Nothing takes their place.
    unusable: Vec<(String, Failure)>,
    /// The first discovery, which every caller that needs its result awaits.
    discovered: tokio::sync::OnceCell<bool>,
    /// Servers of this machine that the discovery found and the configuration does not name.
    local: RwLock<Vec<Arc<Provider>>>,
    retry_policy: RetryPolicy,
    network: Arc<Network>,
    rate_limiter: Arc<RateLimiter>,
    default_model: Option<String>,
    small_model: Option<String>,
}

#[derive(Debug)]
struct Provider {
    endpoint: Arc<Endpoint>,
    models: Vec<ModelConfig>,
    catalog: bool,
    /// The server is asked which models it has.
    asks_server: bool,
    /// Models that the server listed are offered, and not only used for the limits of configured ones.
    lists_found: bool,
    /// The models that the server listed.
    found: RwLock<Vec<KnownModel>>,
}

/// Everything a registry is made of.
#[derive(Debug, Default)]
pub struct RegistrySettings {
    pub providers: Vec<ProviderConfig>,
    /// Providers that are configured and cannot be used, with the sentence that a prompt to them gets.
    pub unusable: Vec<(String, Failure)>,
    pub default_model: Option<String>,
    /// For titles and the like.
    pub small_model: Option<String>,
    pub retry_policy: RetryPolicy,
    pub network: Arc<Network>,
    pub rate_limiter: Arc<RateLimiter>,
}

impl Registry {
    /// Fails only for a provider whose API format is unknown.
    pub fn new(settings: RegistrySettings) -> Result<Self, Failure> {
        let RegistrySettings {
            providers,
            unusable,
            default_model,
            small_model,
            retry_policy,
            network,
            rate_limiter,
        } = settings;
        let make =
            |config| Provider::new(config, retry_policy, network.clone(), rate_limiter.clone()).map(Arc::new);
        let providers = providers.into_iter().map(make).collect::<Result<_, _>>()?;
        let local = RwLock::default();
        Ok(Self {
            providers,
            unusable,
            discovered: tokio::sync::OnceCell::new(),
            local,
            retry_policy,
            network,
            rate_limiter,
            default_model,
            small_model,
        })
    }

    /// Waits for the first discovery, and starts it if nothing has. Every caller that lists models or looks for a
    /// default awaits it; all share one. A caller with a deadline may drop it: the next one starts again.
    /// Returns whether it changed the list.
    pub async fn wait_for_discovery(&self) -> bool {
        *self.discovered.get_or_init(|| self.discover()).await
    }

    /// Asks servers for their models: those of this machine by the urls of their vendors, and the configured ones.
    /// Takes seconds at most; meant to run beside everything else. `true` when the list has changed.
    pub async fn discover(&self) -> bool {
        let urls = discover::LOCAL_SERVERS
            .iter()
            .filter_map(|name| vendors::vendor(name))
            .map(|row| (row.name, row.url));
        self.discover_at(&urls.collect::<Vec<_>>()).await
    }

    /// The same for servers at other urls: `(vendor, url)`.
    pub async fn discover_at(&self, local: &[(&str, &str)]) -> bool {
        let configured = self.providers.iter().filter(|provider| provider.is_worth_asking());
        let asked = futures_util::future::join_all(configured.map(|provider| provider.refresh_models()));
        let unknown =
            local.iter().filter(|(name, _)| self.configured(name).is_none() && self.usable(name).is_ok());
        let looked = futures_util::future::join_all(unknown.map(|(name, url)| self.probe_local(name, url)));
        let (asked, looked) = futures_util::future::join(asked, looked).await;
        let found: Vec<_> = looked.into_iter().flatten().map(Arc::new).collect();
        let mut local = self.local.write().unwrap_or_else(PoisonError::into_inner);
        let changed = asked.contains(&true) || model_ids(&found) != model_ids(&local);
        *local = found;
        changed
    }

    /// A server of this machine, if it is there.
    async fn probe_local(&self, vendor: &str, url: &str) -> Option<Provider> {
        // Most machines have none of them, and need no HTTP client to find that out.
        if !discover::listens(url).await {
            return None;
        }
        let provider = self.unconfigured(vendor, url)?;
        provider.refresh_models().await.then_some(provider)
    }

    fn unconfigured(&self, vendor: &str, url: &str) -> Option<Provider> {
        let config = ProviderConfig {
            name: vendor.to_owned(),
            url: Some(url.to_owned()),
            fetch_models: Some(true),
            ..Default::default()
        };
        Provider::new(config, self.retry_policy, self.network.clone(), self.rate_limiter.clone()).ok()
    }

    fn configured(&self, name: &str) -> Option<&Arc<Provider>> {
        self.providers.iter().find(|provider| provider.endpoint.name == name)
    }

    fn usable(&self, name: &str) -> Result<(), Failure> {
        let why = self.unusable.iter().find(|(known, _)| is_same_name(known, name));
        why.map_or(Ok(()), |(_, failure)| Err(failure.clone()))
    }

    fn local(&self) -> Vec<Arc<Provider>> {
        self.local.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A configured provider, one that was found, or one that may be found yet.
    fn provider(&self, name: &str) -> Option<Arc<Provider>> {
        self.usable(name).ok()?;
        // The name as it is written goes before its other spelling.
        let is_it = |known: &str| is_same_name(known, name);
        let other = || self.providers.iter().find(|provider| is_it(&provider.endpoint.name)).cloned();
        let found = || self.local().into_iter().find(|provider| is_it(&provider.endpoint.name));
        let possible = || {
            let row = vendors::vendor(name).filter(|row| row.auth == Auth::Optional)?;
            self.unconfigured(row.name, row.url).map(Arc::new)
        };
        self.configured(name).cloned().or_else(other).or_else(found).or_else(possible)
    }
}

/// The ids of all models, to see whether the list changed.
fn model_ids(providers: &[Arc<Provider>]) -> Vec<String> {
    providers.iter().flat_map(|provider| provider.list()).map(|info| info.id).collect()
}

impl Provider {
    fn new(
        config: ProviderConfig,
        retry_policy: RetryPolicy,
        network: Arc<Network>,
        rate_limiter: Arc<RateLimiter>,
    ) -> Result<Self, Failure> {
        let vendor = vendor_row(&config)?;
        let url = config.url.clone().unwrap_or_else(|| vendor.url.to_owned());
        check_url(&config.name, &url)?;
        let retry_policy = RetryPolicy {
            silence: config.silence.unwrap_or(retry_policy.silence),
            concurrency: config.concurrency.unwrap_or(retry_policy.concurrency),
            ..retry_policy
        };
        let endpoint = Endpoint {
            name: config.name,
            vendor,
            url,
            path: config.path,
            key: config.key,
            headers: config.headers,
            retry_policy,
            network,
            rate_limiter,
            without_fill: Default::default(),
        };
        let (models, catalog) = (config.models, config.catalog);
        let lists_found = config.fetch_models.unwrap_or(catalog && models.is_empty());
        let lacks_limits =
            models.iter().any(|model| model.info.as_ref().is_none_or(|info| info.context_limit.is_none()));
        let asks_server = lists_found || (config.fetch_models.is_none() && lacks_limits);
        Ok(Self {
            endpoint: Arc::new(endpoint),
            models,
            catalog,
            asks_server,
            lists_found,
            found: RwLock::default(),
        })
    }

    /// Asks the server for its models; `true` when the answer is new.
    async fn refresh_models(&self) -> bool {
        let Some(models) = discover::models(&self.endpoint).await else { return false };
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *found != models;
        *found = models;
        changed
    }

    fn found(&self) -> Vec<KnownModel> {
        self.found.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Vendors with rows in the catalog list embeddings, voices and pictures among their models.
    fn is_worth_asking(&self) -> bool {
        let vendor = &self.endpoint.vendor;
        let may_tell = vendor.name.is_empty() || vendor.auth == Auth::Optional;
        self.asks_server && self.is_ready() && may_tell
    }

    /// A key is there, or none is needed.
    fn is_ready(&self) -> bool {
        self.endpoint.has_key() || self.endpoint.vendor.auth == Auth::Optional
    }

    fn connection(&self, name: &str) -> Connection {
        let config = self.models.iter().find(|model| model.name == name).cloned().unwrap_or_default();
        let wire_name = config.wire_name.clone().unwrap_or_else(|| name.to_owned());
        let id = format!("{}/{name}", self.endpoint.name);
        let known = self.known(name, &wire_name);
        let mut info =
            config.info.or_else(|| known.as_ref().map(|known| known.info.clone())).unwrap_or_else(unlisted);
        info.id = id.clone();
        info.context_limit = info.context_limit.or_else(|| known.as_ref()?.info.context_limit);
        info.price = info.price.or_else(|| self.free(&info.id));
        if !config.variants.is_empty() {
            info.variants = config.variants.iter().map(|(name, _)| name.clone()).collect();
        }
        let dialect = Dialect {
            cache_marks: self.endpoint.vendor.name == "openrouter" && wire_name.starts_with("anthropic/"),
            ..self.endpoint.vendor.dialect
        };
        let api = api_of(&self.endpoint.vendor, &wire_name);
        // A path of its own says where chats go, and not where anything else goes.
        let fill = match self.endpoint.path {
            None => Fill::of(self.endpoint.vendor.name, api, &wire_name),
            Some(_) => None,
        };
        info.single_slot = self.has_single_slot(api);
        info.loads_tools = dialect.loads_tools && deferred::is_known_model(&wire_name);
        let thinking = match &known {
            Some(known) => known.thinking,
            None => guessed_thinking(api, &wire_name),
        };
        Connection {
            endpoint: self.endpoint.clone(),
            api,
            id,
            wire_name,
            info,
            thinking,
            temperature: known.is_none_or(|known| known.temperature),
            dialect,
            body: config.body,
            headers: config.headers,
            variants: config.variants,
            fill,
        }
    }

    /// A server of this machine keeps one prompt; a gateway of this machine passes prompts on.
    fn has_single_slot(&self, api: Api) -> bool {
        let is_known = discover::LOCAL_SERVERS.contains(&self.endpoint.vendor.name);
        discover::is_loopback(&self.endpoint.url) && (is_known || api == Api::Ollama)
    }

    /// A model that runs on this machine costs nothing. A gateway on this machine, or a cloud model behind it, may cost.
    fn free(&self, id: &str) -> Option<Price> {
        let endpoint = &self.endpoint;
        let here =
            discover::is_loopback(&endpoint.url) && discover::LOCAL_SERVERS.contains(&endpoint.vendor.name);
        (here && !id.ends_with("cloud")).then(Price::default)
    }

    /// The catalog's row; behind a gateway a model has the abilities it has at home, but not the price.
    fn known(&self, name: &str, wire_name: &str) -> Option<KnownModel> {
        let catalog = catalog::current();
        let provider = &self.endpoint.name;
        let own = catalog.find(provider, wire_name).or_else(|| catalog.find(provider, name));
        let own = own.or_else(|| catalog.find(self.endpoint.vendor.name, wire_name));
        let found =
            || self.found().into_iter().find(|known| known.info.id[provider.len() + 1..] == *wire_name);
        own.cloned().or_else(found).or_else(|| {
            let mut known = catalog.find_anywhere(wire_name)?.clone();
            known.info.price = None;
            Some(known)
        })
    }

    fn list(&self) -> Vec<ModelInfo> {
        let mut list: Vec<ModelInfo> =
            self.models.iter().map(|model| self.connection(&model.name).info).collect();
        let listed =
            if self.catalog { catalog::current().models(&self.endpoint.name).to_vec() } else { Vec::new() };
        let found = if self.lists_found { self.found() } else { Vec::new() };
        for KnownModel { mut info, .. } in listed.into_iter().chain(found) {
            if list.iter().all(|listed| listed.id != info.id) {
                info.price = info.price.or_else(|| self.free(&info.id));
                list.push(info);
            }
        }
        list
    }
}

fn check_url(name: &str, url: &str) -> Result<(), Failure> {
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(Failure::config(format!("The provider {name} has no url that begins with https://."))
            .hint(format!("Set `providers.{name}.url`.")));
    }
    // The url is not shown: it may hold a password.
    reqwest::Url::parse(url).map(drop).map_err(|error| {
        Failure::config(format!("The url of the provider {name} cannot be read: {error}."))
            .hint(format!("Correct `providers.{name}.url`."))
    })
}

/// The vendor's row with what configuration changes of it.
fn vendor_row(config: &ProviderConfig) -> Result<Vendor, Failure> {
    let known = vendors::vendor(&config.name).copied();
    let chat = |url: &String| url.trim_end_matches('/').ends_with("/openai");
    // Google's own url has a part that speaks chat completions, which older configurations name.
    if known.is_some_and(|vendor| vendor.api == Api::Gemini)
        && config.api.is_none()
        && config.url.as_ref().is_some_and(chat)
    {
        return vendor_row(&ProviderConfig { api: Some(Api::OpenAiChat), ..config.clone() });
    }
    let row = match (known, config.api) {
        (Some(vendor), None) => vendor,
        (Some(vendor), Some(api)) if api == vendor.api => vendor,
        (Some(vendor), Some(api)) => {
            let auth = match (vendor.auth, api) {
                (Auth::Optional, _) => Auth::Optional,
                (Auth::Header("api-key"), _) => vendor.auth,
                (_, Api::Anthropic) => Auth::Header("x-api-key"),
                (_, Api::Gemini) => Auth::Header("x-goog-api-key"),
                _ => Auth::Bearer,
            };
            Vendor { api, auth, ..vendor }
        }
        (None, Some(api)) => vendors::unknown(api),
        (None, None) => {
            return Err(Failure::config(format!(
                "The provider {} does not say which API it speaks.",
                config.name
            ))
            .hint(format!("Set `providers.{}.api` to one of {}.", config.name, api_names())));
        }
    };
    Ok(row)
}

fn api_names() -> String {
    Api::ALL.map(Api::name).join(", ")
}

/// Copilot serves the newer models of OpenAI only through Responses.
fn api_of(vendor: &Vendor, model: &str) -> Api {
    let newer =
        model.contains("codex") || ["gpt-5.4", "gpt-5.5", "gpt-6"].iter().any(|name| model.starts_with(name));
    if vendor.name == "github-copilot" && vendor.api == Api::OpenAiChat && newer {
        return Api::OpenAiResponses;
    }
    vendor.api
}

/// The thinking setting that is assumed for a model without a catalog row.
fn guessed_thinking(api: Api, model: &str) -> Thinking {
    let bare = model.rsplit('/').next().unwrap_or(model);
    let numbered = bare.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let reasons =
        numbered || ["gpt-5", "gpt-6", "gpt-oss", "codex"].iter().any(|name| bare.starts_with(name));
    match api {
        Api::Anthropic if model.contains("claude") => Thinking::Adaptive,
        Api::Bedrock if model.contains("claude") => Thinking::Adaptive,
        Api::OpenAiResponses if !reasons => Thinking::None,
        Api::OpenAiResponses
        | Api::OpenAiChat
        | Api::Anthropic
        | Api::Gemini
        | Api::Ollama
        | Api::Bedrock => Thinking::Effort,
    }
}

/// The abilities that are assumed for a model without a catalog row: all, until its server refuses one.
fn unlisted() -> ModelInfo {
    ModelInfo { tools: true, images: true, ..ModelInfo::default() }
}

impl Models for Registry {
    fn find(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        let known = || {
            let ready = self.providers.iter().filter(|provider| provider.is_ready());
            let local = self.local();
            let names: Vec<_> = ready.chain(&local).map(|provider| provider.endpoint.name.as_str()).collect();
            match names.is_empty() {
                true => "No provider is configured yet: set a key or start a local server.".to_owned(),
                false => format!("Configured are: {}.", names.join(", ")),
            }
        };
        let Some((provider, model)) = name.split_once('/').filter(|(_, model)| !model.is_empty()) else {
            return Err(Failure::new(FailureKind::User, format!("{name} is not the name of a model."))
                .hint("Name it as provider/model, e.g. anthropic/claude-sonnet-4-5."));
        };
        self.usable(provider)?;
        let Some(provider) = self.provider(provider) else {
            return Err(Failure::new(FailureKind::User, format!("There is no provider called {provider}."))
                .hint(known()));
        };
        let endpoint = &provider.endpoint;
        if !endpoint.has_key() && endpoint.needs_key() {
            return Err(endpoint.missing_key());
        }
        Ok(Arc::new(ConnectedModel(Arc::new(provider.connection(model)))))
    }

    fn list(&self) -> Vec<ModelInfo> {
        let ready = self.providers.iter().filter(|provider| provider.is_ready());
        ready
            .flat_map(|provider| provider.list())
            .chain(self.local().iter().flat_map(|local| local.list()))
            .collect()
    }

    fn default_model(&self) -> Option<String> {
        self.default_model.clone().or_else(|| self.list().into_iter().next().map(|info| info.id))
    }

    fn small_model(&self, main: &str) -> Option<String> {
        if let Some(small) = &self.small_model {
            return Some(small.clone());
        }
        let provider = self.provider(main.split_once('/')?.0)?;
        let vendor = &provider.endpoint.vendor;
        // A gateway under the vendor's name need not have the vendor's models.
        let at_home = provider.endpoint.url == vendor.url;
        vendor.small.filter(|_| at_home).map(|small| format!("{}/{small}", provider.endpoint.name))
    }
}
