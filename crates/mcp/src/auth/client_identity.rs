//! The client that we are at an issuer: configured by the user, described by a document at an https address, or registered by
//! ourselves, in this order.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::authorization::Authorization;
use super::discovery::AuthorizationServer;
use super::endpoint::post_json;
use super::logins::ClientIdentity;
use super::settings::OauthSettings;
use crate::text::single_line;

impl ClientIdentity {
    /// The client of the user's configuration, or the one of its metadata document.
    pub(super) fn configured(settings: &OauthSettings, server: &AuthorizationServer) -> Option<Self> {
        if let Some(id) = &settings.client_id {
            let auth_method = match (&settings.private_key, &settings.client_secret) {
                (Some(_), _) => "private_key_jwt".to_owned(),
                (None, secret) => auth_method(server, secret.is_some()),
            };
            let secret = settings.client_secret.clone();
            return Some(Self { id: id.clone(), secret, auth_method, redirect_uri: None });
        }
        let address = settings.client_metadata_url.as_ref().filter(|_| server.takes_metadata_documents)?;
        let auth_method = "none".to_owned();
        Some(Self { id: address.clone(), secret: None, auth_method, redirect_uri: None })
    }
}

/// How a client with or without a secret proves itself, as the server supports it.
fn auth_method(server: &AuthorizationServer, has_secret: bool) -> String {
    let supports = |method: &str| server.auth_methods.iter().any(|known| known == method);
    let method = match has_secret {
        false => "none",
        true if server.auth_methods.is_empty() || supports("client_secret_basic") => "client_secret_basic",
        true if supports("client_secret_post") => "client_secret_post",
        true if supports("none") => "none",
        true => "client_secret_basic",
    };
    method.to_owned()
}

impl Authorization {
    /// The client for a login. A registered one is used again while the browser can come back to the same address.
    pub(super) async fn client_identity(
        &self,
        server: &AuthorizationServer,
        redirect_uri: &str,
        scope: Option<&str>,
    ) -> Result<ClientIdentity, String> {
        if let Some(configured) = ClientIdentity::configured(&self.settings, server) {
            return Ok(configured);
        }
        let known = self.read().ok().and_then(|logins| logins.client(&server.issuer).cloned());
        if let Some(known) = known.filter(|known| known.redirect_uri.as_deref() == Some(redirect_uri)) {
            return Ok(known);
        }
        let registered = register(&self.settings, server, redirect_uri, scope).await?;
        self.change(|logins| logins.put_client(&server.issuer, registered.clone()))
            .map_err(|failure| failure.to_string())?;
        Ok(registered)
    }
}

/// The description of this program as a client, for registration and for a metadata document.
pub(crate) fn description(name: Option<&str>, redirect_uris: &[String], auth_method: &str) -> Value {
    json!({
        "client_name": name.unwrap_or("Dragoman"),
        "application_type": "native",
        "redirect_uris": redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth_method,
    })
}

async fn register(
    settings: &OauthSettings,
    server: &AuthorizationServer,
    redirect_uri: &str,
    scope: Option<&str>,
) -> Result<ClientIdentity, String> {
    let issuer = single_line(&server.issuer, 200);
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(format!(
            "{issuer} does not register clients by itself. Register one there with the redirect address {redirect_uri}, and set \
             its clientId (and clientSecret, oauthPort) in the server's entry."
        ));
    };
    let supports = |method: &str| server.auth_methods.iter().any(|known| known == method);
    let wanted = if server.auth_methods.is_empty() || supports("none") {
        "none".to_owned()
    } else {
        auth_method(server, true)
    };
    let mut body = description(settings.client_name.as_deref(), &[redirect_uri.to_owned()], &wanted);
    if let Some(scope) = scope {
        body["scope"] = scope.into();
    }
    let (status, answer) = post_json(endpoint, &body).await?;
    let id = answer["client_id"].as_str().filter(|_| status.is_success());
    let Some(id) = id else { return Err(refusal(&issuer, status, &answer)) };
    let secret = answer["client_secret"].as_str().map(str::to_owned);
    let auth_method = match answer["token_endpoint_auth_method"].as_str() {
        Some(method) => method.to_owned(),
        None => auth_method(server, secret.is_some()),
    };
    Ok(ClientIdentity { id: id.to_owned(), secret, auth_method, redirect_uri: Some(redirect_uri.to_owned()) })
}

fn refusal(issuer: &str, status: StatusCode, answer: &Value) -> String {
    let reason = answer["error_description"].as_str().or(answer["error"].as_str()).unwrap_or_default();
    format!("{issuer} does not register this client (HTTP {status}). {}", single_line(reason, 300))
}
