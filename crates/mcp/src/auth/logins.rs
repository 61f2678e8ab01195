//! The logins that are kept: which issuer granted what to which server, and the clients registered with each issuer.
//!
//! One JSON document, kept by the store that `app` hands over. Invariant: tokens and clients stand under their issuer, so that
//! nothing of one issuer can be sent to another.

use std::any::Any;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain::Failure;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::challenge::Challenge;
use super::discovery::AuthorizationServer;

/// A token that ends so soon is renewed first.
const EXPIRY_MARGIN_SECONDS: i64 = 30;

/// Keeps one text that only its owner may read.
pub trait LoginStore: Send + Sync {
    /// `None`: nothing was kept yet.
    fn read(&self) -> Result<Option<String>, Failure>;
    /// Replaces the text as a whole; other processes wait.
    fn change(&self, change: &mut dyn FnMut(&str) -> Result<String, Failure>) -> Result<(), Failure>;
    /// The lock for renewing tokens, held until it is dropped; other processes of this machine wait. Blocks.
    fn lock_renewal(&self) -> Result<Box<dyn Any + Send>, Failure>;
    /// Changes when the text does.
    fn changed_at(&self) -> Option<SystemTime>;
}

/// The client that we are at an issuer.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientIdentity {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// How it proves itself at the token endpoint.
    pub auth_method: String,
    /// The address that was registered for the browser's return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Logins {
    #[serde(default)]
    issuers: BTreeMap<String, IssuerLogins>,
    #[serde(default)]
    servers: BTreeMap<String, ServerLogin>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct IssuerLogins {
    /// The client that was registered with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<ClientIdentity>,
    /// By the address of the server.
    #[serde(default)]
    tokens: BTreeMap<String, StoredToken>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerLogin {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_endpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requested_scope: Option<String>,
    /// What the server wanted when it last refused a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wanted_scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource_metadata: Option<String>,
    /// Another issuer that the server named, which the person was told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offered_issuer: Option<String>,
    /// The client that the token was granted to, where it was not registered by us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<ClientIdentity>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredToken {
    pub access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// Seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
}

impl StoredToken {
    pub(super) fn has_expired(&self) -> bool {
        self.expires_at.is_some_and(|end| end - EXPIRY_MARGIN_SECONDS <= seconds_now())
    }
}

impl Logins {
    pub(super) fn issuer(&self, server: &str) -> Option<&str> {
        self.servers.get(server)?.issuer.as_deref()
    }

    pub(super) fn token(&self, server: &str) -> Option<&StoredToken> {
        self.issuers.get(self.issuer(server)?)?.tokens.get(server)
    }

    pub(super) fn requested_scope(&self, server: &str) -> Option<&str> {
        self.servers.get(server)?.requested_scope.as_deref()
    }

    /// What the server wanted when it last refused.
    pub(super) fn challenge(&self, server: &str) -> Option<Challenge> {
        let login = self.servers.get(server)?;
        let (scope, resource_metadata) = (login.wanted_scope.clone(), login.resource_metadata.clone());
        (scope.is_some() || resource_metadata.is_some()).then_some(Challenge {
            scope,
            resource_metadata,
            is_insufficient_scope: false,
        })
    }

    pub(super) fn record_challenge(&mut self, server: &str, challenge: &Challenge) {
        let login = self.servers.entry(server.to_owned()).or_default();
        login.wanted_scope = challenge.scope.clone();
        login.resource_metadata = challenge.resource_metadata.clone();
    }

    pub(super) fn offered_issuer(&self, server: &str) -> Option<&str> {
        self.servers.get(server)?.offered_issuer.as_deref()
    }

    pub(super) fn record_offered_issuer(&mut self, server: &str, issuer: &str) {
        self.servers.entry(server.to_owned()).or_default().offered_issuer = Some(issuer.to_owned());
    }

    /// The client registered with an issuer.
    pub(super) fn client(&self, issuer: &str) -> Option<&ClientIdentity> {
        self.issuers.get(issuer)?.client.as_ref()
    }

    pub(super) fn put_client(&mut self, issuer: &str, client: ClientIdentity) {
        self.issuers.entry(issuer.to_owned()).or_default().client = Some(client);
    }

    /// The client that a login was granted to.
    pub(super) fn put_login_client(&mut self, server: &str, client: ClientIdentity) {
        self.servers.entry(server.to_owned()).or_default().client = Some(client);
    }

    pub(super) fn put_token(
        &mut self,
        server: &str,
        issuer: &AuthorizationServer,
        resource: &str,
        scope: Option<String>,
        token: StoredToken,
    ) {
        self.remove_token(server);
        let login = self.servers.entry(server.to_owned()).or_default();
        login.issuer = Some(issuer.issuer.clone());
        login.offered_issuer = None;
        login.resource = Some(resource.to_owned());
        login.token_endpoint = Some(issuer.token_endpoint.to_string());
        login.requested_scope = scope;
        self.issuers.entry(issuer.issuer.clone()).or_default().tokens.insert(server.to_owned(), token);
    }

    pub(super) fn remove_token(&mut self, server: &str) {
        for issuer in self.issuers.values_mut() {
            issuer.tokens.remove(server);
        }
    }

    pub(super) fn remove_server(&mut self, server: &str) {
        self.remove_token(server);
        self.servers.remove(server);
    }

    /// Where and as which client a login is refreshed.
    pub(super) fn refresh_target(
        &self,
        server: &str,
    ) -> Option<(AuthorizationServer, String, ClientIdentity)> {
        let login = self.servers.get(server)?;
        let issuer = login.issuer.clone()?;
        let target = AuthorizationServer {
            token_endpoint: Url::parse(login.token_endpoint.as_deref()?).ok()?,
            issuer,
            authorization_endpoint: None,
            registration_endpoint: None,
            scopes: Vec::new(),
            auth_methods: Vec::new(),
            takes_metadata_documents: false,
            names_issuer: false,
            has_pkce: None,
        };
        Some((target, login.resource.clone()?, login.client.clone()?))
    }
}

pub(super) fn read(store: &dyn LoginStore) -> Result<Logins, Failure> {
    let Some(text) = store.read()? else { return Ok(Logins::default()) };
    parse(&text)
}

pub(super) fn change(store: &dyn LoginStore, change: impl Fn(&mut Logins)) -> Result<(), Failure> {
    store.change(&mut |text| {
        let mut logins = if text.is_empty() { Logins::default() } else { parse(text)? };
        change(&mut logins);
        serde_json::to_string_pretty(&logins)
            .map_err(|error| Failure::internal(format!("The logins cannot be written: {error}.")))
    })
}

fn parse(text: &str) -> Result<Logins, Failure> {
    // An error of serde may quote what it met, which may be a token.
    serde_json::from_str(text).map_err(|error| {
        Failure::config(format!(
            "The logins of MCP servers cannot be read: line {} is not as expected.",
            error.line()
        ))
        .hint("Delete the file mcp-logins.json in the data folder, then log in again.")
    })
}

pub(super) fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
