//! Authorization of HTTP servers by OAuth 2.1: the token that a request carries, its renewal, and what a refusal means.
//!
//! Invariants: a token is sent only to the server it was granted for, a refresh token only to the issuer that gave it, and a
//! client identity only to the issuer it was registered with; neither reaches a log, a message or the model. A person is
//! involved in [`login`] alone: everything else works without one or says that a login is required.

mod assertion;
mod authorization;
mod challenge;
mod client_identity;
mod discovery;
mod endpoint;
mod grant;
mod issuer_pin;
mod login;
mod logins;
mod loopback;
mod sealed;
mod settings;

use std::sync::{Arc, PoisonError};

use domain::Failure;
use reqwest::Url;
use reqwest::header::HeaderValue;

pub(crate) use authorization::Authorization;
pub(crate) use challenge::Challenge;
use discovery::{AuthorizationServer, Discovered};
use grant::TokenError;
use issuer_pin::IssuerRefused;
pub(crate) use login::login;
pub use login::{LoginDone, LoginPrompt};
pub use logins::LoginStore;
use logins::StoredToken;
pub use sealed::{Keyring, SealedLogins};
pub use settings::{Identity, OauthGrant, OauthLookup, OauthSettings};

/// What follows from a refused request.
pub(crate) enum Renewal {
    /// There is another token; the request can be repeated.
    Renewed,
    /// Only a person can help; a sentence.
    LoginRequired(String),
    /// A login would not help; a sentence.
    Refused(String),
}

impl Authorization {
    /// Whether a token was found when the last request was made.
    pub(crate) fn has_token(&self) -> bool {
        self.token().is_some()
    }

    /// The header value of the stored token, renewed first where it has expired.
    pub(crate) async fn bearer(&self) -> Option<HeaderValue> {
        if self.token().is_none() {
            let stored = self.read().ok()?.token(self.key()).cloned();
            *self.token() = stored;
        }
        let token = self.token().clone()?;
        let token = if token.has_expired() && self.refresh(&token).await.is_ok() {
            self.token().clone()?
        } else {
            token
        };
        self.last_sent.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&token.access_token);
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.access_token)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Tries to get another token after a request with `sent` was refused.
    pub(crate) async fn renew(&self, challenge: &Challenge, sent: Option<&HeaderValue>) -> Renewal {
        let _renewal = self.renewal.lock().await;
        // Another request or another process may have renewed it already.
        match self.read() {
            Ok(logins) => {
                if let Some(stored) = logins.token(self.key()) {
                    *self.token() = Some(stored.clone());
                }
            }
            Err(failure) => {
                let hint = failure.hint.map(|hint| format!(" {hint}")).unwrap_or_default();
                return Renewal::Refused(format!("{}{hint}", failure.message));
            }
        }
        let now = self.bearer().await;
        if now.as_ref() != sent && now.is_some() {
            return Renewal::Renewed;
        }
        if challenge.is_insufficient_scope && self.was_requested(challenge) {
            return Renewal::Refused(
                "It refuses the call although the login has the rights that it names. Ask the owner of the server for them."
                    .to_owned(),
            );
        }
        if self.settings.grant != OauthGrant::AuthorizationCode {
            return match self.obtain_without_person(challenge).await {
                Ok(()) => Renewal::Renewed,
                Err(IssuerRefused::Unaccepted(reason)) => Renewal::LoginRequired(reason),
                Err(IssuerRefused::Final(reason)) => Renewal::Refused(reason),
            };
        }
        if let Err(failure) = self.change(|logins| logins.record_challenge(self.key(), challenge)) {
            tracing::warn!(%failure, "the challenge of a server could not be stored");
        }
        if challenge.is_insufficient_scope {
            let scope = challenge.scope.as_deref().unwrap_or("more rights");
            return Renewal::LoginRequired(format!("It requires a login with more rights ({scope})."));
        }
        match self.refresh_after(challenge).await {
            Ok(true) => Renewal::Renewed,
            Ok(false) => Renewal::LoginRequired("It requires a login.".to_owned()),
            Err(reason) => Renewal::LoginRequired(format!("It requires a login: {reason}")),
        }
    }

    /// Replaces the token of this login in a text by stars.
    pub(crate) fn mask(&self, text: &str) -> String {
        let sent = self.last_sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.is_empty() { text.to_owned() } else { text.replace(sent.as_str(), "***") }
    }

    /// Whether the last login asked for everything that the challenge names.
    fn was_requested(&self, challenge: &Challenge) -> bool {
        let Ok(logins) = self.read() else { return false };
        let requested = logins.requested_scope(self.key()).unwrap_or_default();
        let wanted = challenge.scope.as_deref().unwrap_or_default();
        self.token().is_some()
            && !wanted.is_empty()
            && wanted.split(' ').all(|scope| requested.split(' ').any(|known| known == scope))
    }

    /// Only at an authorization server that the settings or an earlier login named.
    async fn obtain_without_person(&self, challenge: &Challenge) -> Result<(), IssuerRefused> {
        let found = self.discover(challenge).await.map_err(IssuerRefused::Final)?;
        if let Err(refused) = self.check_issuer(&found.server.issuer) {
            self.offer_first_issuer(&found.server.issuer);
            return Err(refused);
        }
        self.obtain(&found, challenge).await.map_err(IssuerRefused::Final)
    }

    async fn obtain(&self, found: &Discovered, challenge: &Challenge) -> Result<(), String> {
        let scope = challenge.scope.clone().or_else(|| found.resource_scope());
        let token = grant::without_person(&self.settings, &self.url, found, scope.as_deref()).await?;
        self.keep(&found.server, &found.resource, scope, token)
    }

    /// What the server wants. The authorization server of the settings or of the last login is preferred where it names several.
    async fn discover(&self, challenge: &Challenge) -> Result<Discovered, String> {
        discovery::discover(&self.url, challenge, self.pinned_issuer().as_deref()).await
    }

    /// Refreshes after a refusal: only where the server still names the issuer that granted the login.
    async fn refresh_after(&self, challenge: &Challenge) -> Result<bool, String> {
        let Some(token) = self.token().clone() else { return Ok(false) };
        let issuer = self.read().ok().and_then(|logins| logins.issuer(self.key()).map(str::to_owned));
        let found = self.discover(challenge).await?;
        if token.refresh_token.is_none() || issuer.as_deref() != Some(found.server.issuer.as_str()) {
            *self.token() = None;
            let _ = self.change(|logins| logins.remove_token(self.key()));
            return Ok(false);
        }
        Ok(self.refresh(&token).await.is_ok())
    }

    /// Exchanges a refresh token. Other processes of this machine wait, and then use what this one got.
    async fn refresh(&self, old: &StoredToken) -> Result<(), ()> {
        let store = self.logins.clone();
        let _lock = tokio::task::spawn_blocking(move || store.lock_renewal()).await.map_err(drop)?;
        let logins = self.read().map_err(drop)?;
        if let Some(newer) = logins.token(self.key()).filter(|token| token.access_token != old.access_token) {
            *self.token() = Some(newer.clone());
            return Ok(());
        }
        let Some((server, resource, identity)) = logins.refresh_target(self.key()) else { return Err(()) };
        let Some(refresh_token) = &old.refresh_token else { return Err(()) };
        match grant::refresh(&server, &resource, &identity, refresh_token).await {
            Ok(mut token) => {
                token.refresh_token = token.refresh_token.or_else(|| old.refresh_token.clone());
                let scope = logins.requested_scope(self.key()).map(str::to_owned);
                self.keep(&server, &resource, scope, token).map_err(drop)
            }
            Err(TokenError::Refused(reason)) => {
                tracing::info!(reason, "a login has ended");
                *self.token() = None;
                let _ = self.change(|logins| logins.remove_token(self.key()));
                Err(())
            }
            Err(TokenError::Unreachable(reason)) => {
                tracing::info!(reason, "a login could not be renewed");
                Err(())
            }
        }
    }

    fn keep(
        &self,
        server: &AuthorizationServer,
        resource: &str,
        scope: Option<String>,
        token: StoredToken,
    ) -> Result<(), String> {
        *self.token() = Some(token.clone());
        self.change(|logins| logins.put_token(self.key(), server, resource, scope.clone(), token.clone()))
            .map_err(|failure| failure.to_string())
    }
}

/// The document to host at the address of `client_metadata_url`. Without a port the browser may come back at any.
pub fn client_metadata(address: &str, name: Option<&str>, port: Option<u16>) -> serde_json::Value {
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let mut document =
        client_identity::description(name, &[format!("http://127.0.0.1{port}/callback")], "none");
    document["client_id"] = address.into();
    document
}

/// The token that is stored for a server now.
pub(crate) fn stored_token(url: &str, logins: &dyn LoginStore) -> Option<String> {
    let mut url = Url::parse(url).ok()?;
    url.set_fragment(None);
    logins::read(logins).ok()?.token(url.as_str()).map(|token| token.access_token.clone())
}

/// Forgets the login of a server; whether there was one.
pub(crate) fn logout(url: &Url, logins: &Arc<dyn LoginStore>) -> Result<bool, Failure> {
    let authorization = Authorization::new(url, OauthSettings::default(), logins.clone());
    let had = authorization.read()?.token(authorization.key()).is_some();
    authorization.change(|logins| logins.remove_server(authorization.key()))?;
    Ok(had)
}
