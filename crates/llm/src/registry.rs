//! All models of a configuration, behind the domain's `Models`.
//!
//! Invariant: making it and finding a model costs nothing: no key is read, nothing is connected.

use std::sync::Arc;

use domain::model::{Model, ModelInfo, Models};
use domain::{Failure, FailureKind};

use crate::catalogue::{self, Known};
use crate::connection::{Connection, Endpoint, Handle};
use crate::format::{Api, Dialect, Thinking};
use crate::network::Network;
use crate::provider::{ModelConfig, Patience, ProviderConfig};
use crate::vendors::{self, Auth, Vendor};

/// The providers in the order of the configuration.
#[derive(Debug, Default)]
pub struct Registry {
    providers: Vec<Provider>,
    default_model: Option<String>,
    small_model: Option<String>,
}

#[derive(Debug)]
struct Provider {
    endpoint: Arc<Endpoint>,
    models: Vec<ModelConfig>,
    catalogue: bool,
}

/// Everything a registry is made of.
#[derive(Debug, Default)]
pub struct Settings {
    pub providers: Vec<ProviderConfig>,
    pub default_model: Option<String>,
    /// For titles and the like.
    pub small_model: Option<String>,
    pub patience: Patience,
    pub network: Arc<Network>,
}

impl Registry {
    /// Fails only for a provider that nobody knows how to speak to.
    pub fn new(settings: Settings) -> Result<Self, Failure> {
        let Settings { providers, default_model, small_model, patience, network } = settings;
        let providers = providers
            .into_iter()
            .map(|config| Provider::new(config, patience, network.clone()))
            .collect::<Result<_, _>>()?;
        Ok(Self { providers, default_model, small_model })
    }

    fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.endpoint.name == name)
    }
}

impl Provider {
    fn new(config: ProviderConfig, patience: Patience, network: Arc<Network>) -> Result<Self, Failure> {
        let vendor = row(&config)?;
        let url = config.url.clone().unwrap_or_else(|| vendor.url.to_owned());
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err(Failure::config(format!(
                "The provider {} has no url that begins with https://.",
                config.name
            ))
            .hint(format!("Set `providers.{}.url`.", config.name)));
        }
        let patience = Patience { silence: config.silence.unwrap_or(patience.silence), ..patience };
        let endpoint = Endpoint {
            name: config.name,
            vendor,
            url,
            path: config.path,
            key: config.key,
            headers: config.headers,
            patience,
            network,
        };
        Ok(Self { endpoint: Arc::new(endpoint), models: config.models, catalogue: config.catalogue })
    }

    /// A key is there, or none is needed.
    fn is_ready(&self) -> bool {
        self.endpoint.key.is_some() || self.endpoint.vendor.auth == Auth::Optional
    }

    fn connection(&self, name: &str) -> Connection {
        let config = self.models.iter().find(|model| model.name == name).cloned().unwrap_or_default();
        let wire_name = config.wire_name.clone().unwrap_or_else(|| name.to_owned());
        let id = format!("{}/{name}", self.endpoint.name);
        let known = self.known(name, &wire_name);
        let mut info =
            config.info.or_else(|| known.as_ref().map(|known| known.info.clone())).unwrap_or_else(unlisted);
        info.id = id.clone();
        if !config.variants.is_empty() {
            info.variants = config.variants.iter().map(|(name, _)| name.clone()).collect();
        }
        let dialect = Dialect {
            cache_marks: self.endpoint.vendor.name == "openrouter" && wire_name.starts_with("anthropic/"),
            ..self.endpoint.vendor.dialect
        };
        Connection {
            endpoint: self.endpoint.clone(),
            id,
            wire_name,
            info,
            thinking: known.as_ref().map_or(Thinking::Effort, |known| known.thinking),
            temperature: known.is_none_or(|known| known.temperature),
            dialect,
            body: config.body,
            headers: config.headers,
            variants: config.variants,
        }
    }

    /// The catalogue's row; behind a gateway a model has the abilities it has at home, but not the price.
    fn known(&self, name: &str, wire_name: &str) -> Option<Known> {
        let catalogue = catalogue::current();
        let provider = &self.endpoint.name;
        let own = catalogue.find(provider, wire_name).or_else(|| catalogue.find(provider, name));
        let own = own.or_else(|| catalogue.find(self.endpoint.vendor.name, wire_name));
        own.cloned().or_else(|| {
            let mut known = catalogue.find_anywhere(wire_name)?.clone();
            known.info.price = None;
            Some(known)
        })
    }

    fn list(&self) -> Vec<ModelInfo> {
        let mut list: Vec<ModelInfo> =
            self.models.iter().map(|model| self.connection(&model.name).info).collect();
        if self.catalogue {
            let catalogue = catalogue::current();
            let rows = catalogue.models(&self.endpoint.name).iter().map(|known| known.info.clone());
            list.extend(rows.filter(|row| {
                self.models.iter().all(|model| !row.id.ends_with(&format!("/{}", model.name)))
            }));
        }
        list
    }
}

/// The vendor's row with what configuration changes of it.
fn row(config: &ProviderConfig) -> Result<Vendor, Failure> {
    let known = vendors::vendor(&config.name).copied();
    let chat = |url: &String| url.trim_end_matches('/').ends_with("/openai");
    // Google's own url has a part that speaks chat completions, which older configurations name.
    if known.is_some_and(|vendor| vendor.api == Api::Gemini)
        && config.api.is_none()
        && config.url.as_ref().is_some_and(chat)
    {
        return row(&ProviderConfig { api: Some(Api::OpenAiChat), ..config.clone() });
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
            .hint(format!("Set `providers.{}.api` to one of {}.", config.name, apis())));
        }
    };
    Ok(row)
}

fn apis() -> String {
    Api::ALL.map(Api::name).join(", ")
}

/// What is assumed of a model that nobody listed: that it can do everything, until its server says otherwise.
fn unlisted() -> ModelInfo {
    ModelInfo { tools: true, images: true, ..ModelInfo::default() }
}

impl Models for Registry {
    fn find(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        let known = || {
            let names: Vec<_> =
                self.providers.iter().map(|provider| provider.endpoint.name.as_str()).collect();
            names.join(", ")
        };
        let Some((provider, model)) = name.split_once('/').filter(|(_, model)| !model.is_empty()) else {
            return Err(Failure::new(FailureKind::User, format!("{name} is not the name of a model."))
                .hint("Name it as provider/model, e.g. anthropic/claude-sonnet-4-5."));
        };
        let Some(provider) = self.provider(provider) else {
            return Err(Failure::new(FailureKind::User, format!("There is no provider called {provider}."))
                .hint(format!("Configured are: {}.", known())));
        };
        let endpoint = &provider.endpoint;
        if endpoint.key.is_none() && endpoint.needs_key() {
            return Err(endpoint.missing_key());
        }
        Ok(Arc::new(Handle(Arc::new(provider.connection(model)))))
    }

    fn list(&self) -> Vec<ModelInfo> {
        self.providers.iter().filter(|provider| provider.is_ready()).flat_map(Provider::list).collect()
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
