//! What the user configured for the login of a server. Plain data.

use std::sync::Arc;

use domain::{BoxFuture, Failure};

/// Finds the OAuth settings of a server each time it is started: they may hold secrets from files or commands.
pub type OauthLookup = Arc<dyn Fn() -> BoxFuture<'static, Result<OauthSettings, Failure>> + Send + Sync>;

/// What the user configured for the login of one server. Everything is optional.
#[derive(Clone, Default)]
pub struct OauthSettings {
    /// A client that was registered by hand.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// The only authorization server that may be used.
    pub issuer: Option<String>,
    /// A PKCS #8 key (PEM, P-256) that proves the client instead of a secret.
    pub private_key: Option<String>,
    /// A token of another issuer that stands for this machine (`OauthGrant::JwtBearer`).
    pub assertion: Option<String>,
    /// Where such a token comes from, in place of `assertion`.
    pub identity: Option<Identity>,
    pub grant: OauthGrant,
    /// The port of the address that the browser comes back to; any free one by default.
    pub port: Option<u16>,
    /// The name under which a client is registered.
    pub client_name: Option<String>,
    /// The https address of a client metadata document that the user hosts.
    pub client_metadata_url: Option<String>,
}

/// The login of a company's identity provider: its token is exchanged there for an assertion that the issuer of a server takes
/// (enterprise-managed authorization).
#[derive(Clone)]
pub struct Identity {
    pub token: String,
    /// The token endpoint of the identity provider.
    pub endpoint: String,
    pub client_id: Option<String>,
}

/// How a token is obtained.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum OauthGrant {
    /// A person logs in with a browser.
    #[default]
    AuthorizationCode,
    /// The client itself is known to the authorization server.
    ClientCredentials,
    /// A token of another issuer is exchanged.
    JwtBearer,
}
