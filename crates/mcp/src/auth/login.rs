//! The login of a person: an address for the browser, the answer that comes back, and the token for it.
//!
//! Invariants: PKCE always; the issuer of the answer is compared before the code is redeemed; the login ends by its answer, a
//! stop of the caller or its deadline.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::BoxFuture;
use reqwest::{StatusCode, Url};
use sha2::{Digest as _, Sha256};

use super::assertion;
use super::authorization::Authorization;
use super::challenge::Challenge;
use super::discovery::{AuthorizationServer, Discovered};
use super::grant::{self, AuthorizationCode, TokenError};
use super::logins::ClientIdentity;
use super::loopback::{Callback, Loopback, read_callback};
use super::settings::OauthGrant;
use crate::http::{challenge_of, client};
use crate::text::single_line;

/// How long a person may take in the browser.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);

const OFFLINE_SCOPE: &str = "offline_access";

/// The person who logs in.
pub trait LoginPrompt: Send + Sync {
    /// Shows the address, and opens it where the user wants that.
    fn show(&self, url: &str);
    /// Resolves with the address that the browser ended at, where the user can paste it; otherwise never.
    fn pasted(&self) -> BoxFuture<'_, String>;
}

/// A finished login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoginDone {
    pub issuer: String,
    pub scope: Option<String>,
}

/// One request for authorization.
struct LoginAttempt {
    found: Discovered,
    scope: Option<String>,
    client: ClientIdentity,
    loopback: Loopback,
    state: String,
    verifier: String,
}

pub(crate) async fn login(
    authorization: &Authorization,
    prompt: &dyn LoginPrompt,
) -> Result<LoginDone, String> {
    let challenge = current_challenge(authorization).await?;
    authorization.read().map_err(|failure| failure.to_string())?;
    let found = authorization.discover(&challenge).await?;
    authorization.accept_issuer(&found.server.issuer)?;
    if authorization.settings.grant != OauthGrant::AuthorizationCode {
        authorization.obtain(&found, &challenge).await?;
        return Ok(LoginDone { issuer: found.server.issuer, scope: challenge.scope });
    }
    let attempt = LoginAttempt::prepare(authorization, found, &challenge).await?;
    prompt.show(attempt.address()?.as_str());
    let answered = async {
        tokio::select! {
            callback = attempt.loopback.callback(&attempt.state) => Ok(callback),
            pasted = prompt.pasted() => attempt.read_pasted(&pasted),
        }
    };
    let callback = tokio::time::timeout(LOGIN_TIMEOUT, answered)
        .await
        .unwrap_or_else(|_| Err("no answer came from the browser within ten minutes.".to_owned()))?;
    attempt.finish(authorization, callback).await
}

/// What the server wants now. It is asked without a token; where it does not answer 401, what it wanted last counts.
async fn current_challenge(authorization: &Authorization) -> Result<Challenge, String> {
    let (status, fresh) =
        challenge_of(&client(authorization.url.as_str()).await?, &authorization.url).await?;
    let stored = authorization.read().ok().and_then(|logins| logins.challenge(authorization.key()));
    let fresh = if status == StatusCode::UNAUTHORIZED { fresh } else { Challenge::default() };
    let Some(stored) = stored else { return Ok(fresh) };
    Ok(Challenge {
        scope: union(fresh.scope, stored.scope),
        resource_metadata: fresh.resource_metadata.or(stored.resource_metadata),
        is_insufficient_scope: false,
    })
}

impl LoginAttempt {
    async fn prepare(
        authorization: &Authorization,
        found: Discovered,
        challenge: &Challenge,
    ) -> Result<Self, String> {
        let server = &found.server;
        if server.has_pkce == Some(false) {
            let issuer = single_line(&server.issuer, 200);
            return Err(format!("{issuer} does not support PKCE (S256), so a login there is not safe."));
        }
        let scope = wanted_scope(authorization, &found, challenge);
        let loopback = Loopback::open(&ports(authorization, server)).await?;
        let client = authorization.client_identity(server, &loopback.redirect_uri, scope.as_deref()).await?;
        let (state, verifier) = (assertion::random_text()?, assertion::random_text()?);
        Ok(Self { found, scope, client, loopback, state, verifier })
    }

    /// The address for the browser.
    fn address(&self) -> Result<Url, String> {
        let server = &self.found.server;
        let issuer = single_line(&server.issuer, 200);
        let mut url = server
            .authorization_endpoint
            .clone()
            .ok_or_else(|| format!("{issuer} has no address for a login in the browser."))?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()));
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", &self.loopback.redirect_uri)
            .append_pair("state", &self.state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.found.resource);
        if let Some(scope) = &self.scope {
            query.append_pair("scope", scope);
            if scope.split(' ').any(|scope| scope == OFFLINE_SCOPE) {
                query.append_pair("prompt", "consent");
            }
        }
        drop(query);
        Ok(url)
    }

    fn read_pasted(&self, pasted: &str) -> Result<Callback, String> {
        Url::parse(pasted.trim())
            .ok()
            .and_then(|url| read_callback(&url, &self.state))
            .ok_or_else(|| "this is not the address that the login ended at.".to_owned())
    }

    async fn finish(&self, authorization: &Authorization, callback: Callback) -> Result<LoginDone, String> {
        check_issuer(&self.found.server, callback.issuer.as_deref())?;
        if let Some(error) = callback.error {
            return Err(format!("the login was refused: {}.", single_line(&error, 200)));
        }
        let code = callback.code.ok_or("the browser brought no code.")?;
        let code = AuthorizationCode {
            code: &code,
            redirect_uri: &self.loopback.redirect_uri,
            verifier: &self.verifier,
        };
        let Discovered { server, resource, .. } = &self.found;
        let key = authorization.settings.private_key.as_deref();
        let token =
            grant::redeem(server, resource, &self.client, code, key).await.map_err(TokenError::reason)?;
        authorization.keep(server, resource, self.scope.clone(), token)?;
        authorization
            .change(|logins| logins.put_login_client(authorization.key(), self.client.clone()))
            .map_err(|failure| failure.to_string())?;
        Ok(LoginDone { issuer: server.issuer.clone(), scope: self.scope.clone() })
    }
}

/// The answer must come from the server that was asked. Nothing is normalized: the bytes must be the same.
fn check_issuer(server: &AuthorizationServer, named: Option<&str>) -> Result<(), String> {
    match named {
        Some(named) if named == server.issuer => Ok(()),
        Some(named) => Err(format!(
            "the answer names {} as its issuer instead of {}, so it is not used.",
            single_line(named, 200),
            single_line(&server.issuer, 200)
        )),
        None if server.names_issuer => Err(format!(
            "the answer does not name its issuer although {} promises that, so it is not used.",
            single_line(&server.issuer, 200)
        )),
        None => Ok(()),
    }
}

/// The rights of the challenge, else all that the server names; with those of the last login at the same issuer, and with the
/// right to renew where the issuer has it.
fn wanted_scope(authorization: &Authorization, found: &Discovered, challenge: &Challenge) -> Option<String> {
    let logins = authorization.read().ok();
    let before = logins.as_ref().and_then(|logins| {
        let same = logins.issuer(authorization.key()) == Some(found.server.issuer.as_str());
        logins.requested_scope(authorization.key()).filter(|_| same).map(str::to_owned)
    });
    let wanted = challenge.scope.clone().or_else(|| found.resource_scope());
    let offline = found.server.scopes.iter().any(|scope| scope == OFFLINE_SCOPE);
    let scope = union(before, wanted);
    union(scope, offline.then(|| OFFLINE_SCOPE.to_owned()))
}

fn union(first: Option<String>, second: Option<String>) -> Option<String> {
    let mut scopes: Vec<&str> = Vec::new();
    for scope in first.iter().chain(&second).flat_map(|text| text.split(' ')) {
        if !scope.is_empty() && !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    (!scopes.is_empty()).then(|| scopes.join(" "))
}

/// The configured port alone; else the one of the registered client first, so that it can be used again.
fn ports(authorization: &Authorization, server: &AuthorizationServer) -> Vec<u16> {
    if let Some(port) = authorization.settings.port {
        return vec![port];
    }
    let known = authorization.read().ok().and_then(|logins| {
        let redirect = logins.client(&server.issuer)?.redirect_uri.clone()?;
        Url::parse(&redirect).ok()?.port()
    });
    known.into_iter().chain([0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_joined_once() {
        assert_eq!(union(Some("a b".into()), Some("b c".into())).as_deref(), Some("a b c"));
        assert_eq!(union(None, Some(String::new())), None);
    }
}
