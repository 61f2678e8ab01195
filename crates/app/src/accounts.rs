//! The user's accounts with providers for clients that show them: which have a key and from where, logging in and out.
//!
//! Invariants: no key leaves this file but into the credentials; a key of the settings or the environment is the user's
//! to remove there, never by a logout.

use std::sync::Arc;

use config::{Credentials, Origin, Resolved, StoredCredential};
use domain::event::CatalogKind;
use domain::model::Models;
use domain::provider::{AccountState, KeySource, LoginField, LoginMethod, LoginStep, ProviderStatus};
use domain::{BoxFuture, Failure};
use engine::ProviderAccounts;
use llm::vendors::{Auth, VENDORS, vendor};
use providers::github::{self, SignInServer};
use providers::network;

/// A longer key is a mistake.
const MAX_KEY_BYTES: usize = 16 << 10;
const KEY_FIELD: &str = "api-key";
/// Variables that hold whole settings, not one key.
const SETTINGS_VARIABLES: [&str; 2] = ["ECA_CONFIG", "DRAGOMAN_CONFIG"];

const BY_KEY: LoginMethod = LoginMethod { key: "api-key", label: "Type a key" };
const BY_DEVICE: LoginMethod = LoginMethod { key: "device", label: "Sign in at GitHub" };

pub(crate) struct WorkspaceAccounts {
    pub resolved: Arc<Resolved>,
    pub models: Arc<dyn Models>,
    pub credentials: Arc<dyn Credentials>,
    pub changes: engine::CatalogChanges,
}

impl WorkspaceAccounts {
    fn methods(provider: &str) -> Vec<LoginMethod> {
        match vendor(provider) {
            _ if provider == github::PROVIDER => vec![BY_DEVICE],
            Some(known) if known.auth == Auth::Optional => Vec::new(),
            _ => vec![BY_KEY],
        }
    }

    fn check(&self, provider: &str) -> Result<(), Failure> {
        if vendor(provider).is_some() || self.resolved.settings.providers.contains_key(provider) {
            return Ok(());
        }
        Err(Failure::user(format!("{provider} is not a provider."))
            .hint("Providers are those of the list and those of your settings."))
    }

    /// Where the key comes from that is used now.
    fn source(&self, provider: &str, stored: &[String]) -> Option<KeySource> {
        let of_settings = self.resolved.settings.providers.get(provider).and_then(|known| known.key.as_ref());
        if of_settings.is_some() {
            return Some(match self.resolved.origin(&format!("providers.{provider}.key")) {
                Some(Origin::Variable(name)) if !SETTINGS_VARIABLES.contains(&name.as_str()) => {
                    KeySource::Environment(name.clone())
                }
                _ => KeySource::Settings,
            });
        }
        stored.iter().any(|known| known == provider).then_some(KeySource::Login)
    }

    async fn begin_device_login(&self) -> Result<LoginStep, Failure> {
        let settings = self.resolved.settings.providers.get(github::PROVIDER);
        let server = SignInServer::new(settings, Arc::new(network::of(&self.resolved)?));
        let device = server.begin().await?;
        let step =
            LoginStep::DeviceCode { url: device.verification_uri.clone(), code: device.user_code.clone() };
        let changes = self.changes.clone();
        let publish = move || changes.publish(CatalogKind::Models);
        server.finish_in_background(device, self.credentials.clone(), publish);
        Ok(step)
    }
}

impl ProviderAccounts for WorkspaceAccounts {
    fn providers(&self) -> Vec<ProviderStatus> {
        let configured = &self.resolved.settings.providers;
        let (stored, models) = (self.credentials.providers(), self.models.list());
        let own = configured.keys().filter(|name| vendor(name).is_none()).map(String::as_str);
        let names = VENDORS.iter().map(|vendor| vendor.name).chain(own);
        let status = |name: &str| {
            let source = self.source(name, &stored);
            let needs_key = vendor(name).is_some_and(|vendor| vendor.auth != Auth::Optional);
            let state = match &source {
                Some(_) => AccountState::LoggedIn,
                None if needs_key => AccountState::LoggedOut,
                None => AccountState::Local,
            };
            let prefix = format!("{name}/");
            ProviderStatus {
                id: name.to_owned(),
                is_configured: configured.contains_key(name),
                state,
                source,
                methods: Self::methods(name),
                models: models.iter().filter(|model| model.id.starts_with(&prefix)).cloned().collect(),
            }
        };
        names.map(status).collect()
    }

    fn login<'a>(
        &'a self,
        provider: &'a str,
        method: Option<&'a str>,
    ) -> BoxFuture<'a, Result<LoginStep, Failure>> {
        Box::pin(async move {
            self.check(provider)?;
            let methods = Self::methods(provider);
            let chosen = match method {
                Some(method) => methods.iter().find(|known| known.key == method),
                None if methods.len() == 1 => methods.first(),
                None => return Ok(LoginStep::Choose { methods }),
            };
            match chosen {
                Some(chosen) if *chosen == BY_DEVICE => self.begin_device_login().await,
                Some(_) => {
                    let label = format!("The key of {provider}");
                    Ok(LoginStep::Fields(vec![LoginField { key: KEY_FIELD, label, is_secret: true }]))
                }
                None => Err(Failure::user(format!("There is no such way to log in to {provider}."))),
            }
        })
    }

    fn finish_login(&self, provider: &str, fields: &[(String, String)]) -> Result<(), Failure> {
        self.check(provider)?;
        let key = fields.iter().find(|(name, _)| name == KEY_FIELD || name == "apiKey");
        let key = key.map(|(_, key)| key.trim()).filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| Failure::user("The key is missing; nothing is stored."))?;
        if key.len() > MAX_KEY_BYTES || key.chars().any(char::is_control) {
            return Err(Failure::user("This is not a key; nothing is stored."));
        }
        self.resolved.redactor.add_secret(key);
        self.credentials.put(provider, StoredCredential::Key { key: key.to_owned() })?;
        self.changes.publish(CatalogKind::Models);
        Ok(())
    }

    fn logout(&self, provider: &str) -> Result<(), Failure> {
        self.check(provider)?;
        let removed = self.credentials.remove(provider)?;
        self.changes.publish(CatalogKind::Models);
        match self.source(provider, &[]) {
            Some(KeySource::Environment(name)) => {
                Err(Failure::user(format!("The key of {provider} is in the variable {name}."))
                    .hint("Unset it where you set it, and start the editor again."))
            }
            Some(_) => {
                Err(Failure::user(format!("The key of {provider} is in your settings."))
                    .hint("Remove it there."))
            }
            None if removed => Ok(()),
            None => Err(Failure::user(format!("No key of {provider} is stored."))),
        }
    }
}
