//! Requests to the token endpoint: a code, a refresh token, the client itself or an assertion becomes an access token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde_json::Value;

use super::assertion;
use super::discovery::{AuthorizationServer, Discovered};
use super::endpoint::{allowed, encode_form, post_form};
use super::logins::{ClientIdentity, StoredToken, seconds_now};
use super::settings::{Identity, OauthGrant, OauthSettings};
use crate::text::single_line;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:token-type:id-jag";
const IDENTITY_TYPE: &str = "urn:ietf:params:oauth:token-type:id_token";
const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Why there is no token.
pub(super) enum TokenError {
    /// The issuer said no.
    Refused(String),
    Unreachable(String),
}

impl TokenError {
    pub(super) fn reason(self) -> String {
        match self {
            Self::Refused(reason) | Self::Unreachable(reason) => reason,
        }
    }
}

/// What a browser brought back.
pub(super) struct AuthorizationCode<'a> {
    pub code: &'a str,
    pub redirect_uri: &'a str,
    pub verifier: &'a str,
}

pub(super) async fn redeem(
    server: &AuthorizationServer,
    resource: &str,
    client: &ClientIdentity,
    code: AuthorizationCode<'_>,
    private_key: Option<&str>,
) -> Result<StoredToken, TokenError> {
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code.code),
        ("redirect_uri", code.redirect_uri),
        ("code_verifier", code.verifier),
        ("resource", resource),
    ];
    request(server, client, &form, private_key).await
}

pub(super) async fn refresh(
    server: &AuthorizationServer,
    resource: &str,
    client: &ClientIdentity,
    refresh_token: &str,
) -> Result<StoredToken, TokenError> {
    let form = [("grant_type", "refresh_token"), ("refresh_token", refresh_token), ("resource", resource)];
    request(server, client, &form, None).await
}

/// A token for a machine: for the client itself, or for an assertion of another issuer.
pub(super) async fn without_person(
    settings: &OauthSettings,
    url: &Url,
    found: &Discovered,
    scope: Option<&str>,
) -> Result<StoredToken, String> {
    let (server, resource) = (&found.server, found.resource.as_str());
    let client = ClientIdentity::configured(settings, server)
        .ok_or("grantType needs a clientId in the server's entry.")?;
    let mut form = vec![("resource", resource)];
    form.extend(scope.map(|scope| ("scope", scope)));
    let exchanged = match (settings.grant, &settings.identity) {
        (OauthGrant::JwtBearer, Some(identity)) => Some(exchange(identity, url, found, scope).await?),
        _ => None,
    };
    match (settings.grant, exchanged.as_ref().or(settings.assertion.as_ref())) {
        (OauthGrant::JwtBearer, None) => {
            return Err("The grant type jwt_bearer needs an assertion in the server's entry.".to_owned());
        }
        (OauthGrant::JwtBearer, Some(assertion)) => {
            form.extend([("grant_type", JWT_BEARER), ("assertion", assertion.as_str())]);
        }
        (OauthGrant::ClientCredentials | OauthGrant::AuthorizationCode, _) => {
            form.push(("grant_type", "client_credentials"));
        }
    }
    request(server, &client, &form, settings.private_key.as_deref()).await.map_err(TokenError::reason)
}

/// The identity provider gives an assertion for this issuer and this server. It gets nothing but its own token.
async fn exchange(
    identity: &Identity,
    url: &Url,
    found: &Discovered,
    scope: Option<&str>,
) -> Result<String, String> {
    let endpoint = allowed(url, &identity.endpoint)?;
    let mut form = vec![
        ("grant_type", TOKEN_EXCHANGE),
        ("requested_token_type", ASSERTION_TYPE),
        ("subject_token", identity.token.as_str()),
        ("subject_token_type", IDENTITY_TYPE),
        ("audience", found.server.issuer.as_str()),
        ("resource", found.resource.as_str()),
    ];
    form.extend(identity.client_id.as_deref().map(|id| ("client_id", id)));
    form.extend(scope.map(|scope| ("scope", scope)));
    let (status, answer) = post_form(&endpoint, &form, None).await?;
    let assertion = answer["access_token"].as_str().filter(|token| status.is_success() && !token.is_empty());
    let is_right = answer["issued_token_type"].as_str() == Some(ASSERTION_TYPE);
    match assertion.filter(|_| is_right) {
        Some(assertion) => Ok(assertion.to_owned()),
        None => {
            let reason =
                answer["error_description"].as_str().or(answer["error"].as_str()).unwrap_or_default();
            Err(format!(
                "The identity provider gives no assertion (HTTP {status}). {}",
                single_line(reason, 300)
            ))
        }
    }
}

async fn request(
    server: &AuthorizationServer,
    client: &ClientIdentity,
    form: &[(&str, &str)],
    private_key: Option<&str>,
) -> Result<StoredToken, TokenError> {
    let mut form = form.to_vec();
    let secret = client.secret.as_deref().unwrap_or_default();
    let mut authorization = None;
    let signed;
    match client.auth_method.as_str() {
        "client_secret_basic" => authorization = Some(basic(&client.id, secret)),
        "client_secret_post" => form.extend([("client_id", client.id.as_str()), ("client_secret", secret)]),
        "private_key_jwt" => {
            signed = assertion::sign(&client.id, &server.issuer, private_key.unwrap_or_default())
                .map_err(TokenError::Refused)?;
            let assertion = signed.as_str();
            form.extend([
                ("client_id", client.id.as_str()),
                ("client_assertion_type", CLIENT_ASSERTION),
                ("client_assertion", assertion),
            ]);
        }
        _ => form.push(("client_id", &client.id)),
    }
    let (status, answer) =
        post_form(&server.token_endpoint, &form, authorization).await.map_err(TokenError::Unreachable)?;
    if !status.is_success() {
        let reason = answer["error_description"].as_str().or(answer["error"].as_str()).unwrap_or_default();
        let issuer = single_line(&server.issuer, 200);
        let text = format!("{issuer} gives no token (HTTP {status}). {}", single_line(reason, 300));
        return Err(if status.is_client_error() {
            TokenError::Refused(text)
        } else {
            TokenError::Unreachable(text)
        });
    }
    read_token(&server.issuer, &answer).map_err(TokenError::Refused)
}

fn read_token(issuer: &str, answer: &Value) -> Result<StoredToken, String> {
    let issuer = single_line(issuer, 200);
    let kind = answer["token_type"].as_str().unwrap_or_default();
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(format!("{issuer} gives a token of an unknown kind."));
    }
    let access_token = answer["access_token"].as_str().filter(|token| !token.is_empty());
    Ok(StoredToken {
        access_token: access_token.ok_or_else(|| format!("{issuer} gives no token."))?.to_owned(),
        refresh_token: answer["refresh_token"].as_str().map(str::to_owned),
        expires_at: answer["expires_in"].as_i64().map(|seconds| seconds_now().saturating_add(seconds)),
    })
}

fn basic(id: &str, secret: &str) -> HeaderValue {
    let encoded = |text: &str| encode_form(&[("x", text)]).split_off(2);
    let text = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
    // Base64 is always a valid header value.
    let mut value = HeaderValue::try_from(format!("Basic {text}")).unwrap_or(HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}
