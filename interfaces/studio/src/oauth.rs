//! Signing in to an API by OAuth 2: the authorization code with PKCE (S256), `state`, and a way back to this machine.
//!
//! Invariants: a `state` works once and for ten minutes; the code goes only to the token address that was named with it;
//! plain HTTP only to this machine.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use web::ApiError;

use crate::base_url::{leads_inside, looks_private};
use crate::connections::{ConnectionState, Credential, Token};
use crate::console::{EntryKind, Level};
use crate::model::now;
use crate::sign_ins::{SignIn, SignInInput};
use crate::studio::Studio;

const LARGEST_TOKEN: usize = 256 * 1024;
const TOKEN_DEADLINE: Duration = Duration::from_secs(20);

impl Studio {
    /// The address to open in a window.
    pub(crate) async fn begin_sign_in(&self, tab: &str, input: SignInInput) -> Result<String, ApiError> {
        let (origin, may_be_private) = self.connection_origin(tab)?;
        let mut address = endpoint(&input.authorization_url)?;
        let token_url = endpoint(&input.token_url)?;
        // The specification may have named it.
        if !may_be_private && leads_inside(token_url.as_str()).await {
            return Err(ApiError::invalid("The token address is on this machine or in a private network."));
        }
        if input.client_id.trim().is_empty() {
            return Err(ApiError::invalid("A sign-in needs the client id that the API gave you."));
        }
        let random = || web::random_id().map_err(|error| ApiError::internal(error.to_string()));
        let (state, verifier) = (random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &input.client_id)
            .append_pair("redirect_uri", &self.redirect_uri())
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        if !input.scopes.is_empty() {
            address.query_pairs_mut().append_pair("scope", &input.scopes.join(" "));
        }
        self.model().connections.set_state(
            &origin,
            ConnectionState::Connecting,
            Some("Waiting for the sign-in.".to_owned()),
        );
        self.show_connections();
        let sign_in = SignIn { tab: tab.to_owned(), origin, verifier, input, since: Instant::now() };
        self.sign_ins.add(state, sign_in);
        Ok(address.into())
    }

    fn redirect_uri(&self) -> String {
        format!("{}/oauth/callback", self.origin)
    }

    /// The browser came back. Says what to show there.
    pub(crate) async fn end_sign_in(&self, query: &HashMap<String, String>) -> Result<(), String> {
        let given = |name: &str| query.get(name).map(String::as_str);
        let sign_in = given("state").and_then(|state| self.sign_ins.take(state));
        let sign_in = sign_in.ok_or("This sign-in was not begun here, or it is too old. Begin it again.")?;
        let outcome = match (given("code"), given("error")) {
            (Some(code), None) => self.exchange(&sign_in, code).await,
            (_, error) => {
                let reason = given("error_description").or(error).unwrap_or("no code was given");
                let reason: String = reason.chars().filter(|c| !c.is_control()).take(200).collect();
                Err(format!("The sign-in was refused: {reason}."))
            }
        };
        match outcome {
            Ok(token) => {
                let keep = sign_in.input.keep;
                let taken = self.take_credential(&sign_in.origin, Credential::Oauth2(token), keep);
                taken.map_err(|error| error.message)?;
                let studio = self.clone();
                tokio::spawn(async move {
                    let _ = studio.test_connection(&sign_in.tab, None).await;
                });
                Ok(())
            }
            Err(message) => {
                let state = ConnectionState::Disconnected;
                self.model().connections.set_state(&sign_in.origin, state, Some(message.clone()));
                self.show_connections();
                self.log(Some(&sign_in.tab), EntryKind::Studio, Level::Error, &message, None);
                Err(message)
            }
        }
    }

    async fn exchange(&self, sign_in: &SignIn, code: &str) -> Result<Token, String> {
        let SignInInput { token_url, client_id, client_secret, .. } = &sign_in.input;
        let redirect_uri = self.redirect_uri();
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &redirect_uri),
            ("client_id", client_id),
            ("code_verifier", &sign_in.verifier),
        ];
        fields.extend(client_secret.as_deref().map(|secret| ("client_secret", secret)));
        let answer = self.ask_for_token(token_url, &fields).await?;
        token_of(&answer, token_url, client_id, client_secret.clone(), None)
    }

    /// Renews a token; `None` where there is nothing to renew it with.
    pub(crate) async fn renewed_token(&self, token: &Token) -> Option<Result<Token, String>> {
        let refresh = token.refresh.as_deref()?;
        let mut fields = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh),
            ("client_id", token.client_id.as_str()),
        ];
        fields.extend(token.client_secret.as_deref().map(|secret| ("client_secret", secret)));
        let answer = match self.ask_for_token(&token.token_url, &fields).await {
            Ok(answer) => answer,
            Err(message) => return Some(Err(message)),
        };
        let secret = token.client_secret.clone();
        Some(token_of(&answer, &token.token_url, &token.client_id, secret, token.refresh.clone()))
    }

    async fn ask_for_token(&self, token_url: &str, fields: &[(&str, &str)]) -> Result<Value, String> {
        let url = endpoint(token_url).map_err(|error| error.message)?;
        let client = self.network.client(looks_private(token_url)).map_err(|fault| fault.message)?;
        let mut form = url.clone();
        form.set_query(None);
        form.query_pairs_mut().extend_pairs(fields);
        let form = form.query().unwrap_or_default().to_owned();
        let request = client
            .post(url)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("Accept", "application/json")
            .body(form);
        let ask = async {
            // Errors of the client may hold the address only, which is no secret here.
            let mut response = request
                .send()
                .await
                .map_err(|error| format!("The token server cannot be reached: {error}."))?;
            let status = response.status();
            let mut body = Vec::new();
            while let Some(piece) =
                response.chunk().await.map_err(|error| format!("The token server broke off: {error}."))?
            {
                body.extend_from_slice(&piece);
                if body.len() > LARGEST_TOKEN {
                    return Err("The answer of the token server is too large.".to_owned());
                }
            }
            Ok((status, serde_json::from_slice::<Value>(&body).unwrap_or_default()))
        };
        let (status, answer) = match tokio::time::timeout(TOKEN_DEADLINE, ask).await {
            Ok(outcome) => outcome?,
            Err(_) => return Err("The token server did not answer in time.".to_owned()),
        };
        if status.is_success() {
            return Ok(answer);
        }
        let reason = answer["error_description"].as_str().or(answer["error"].as_str()).unwrap_or_default();
        let reason: String = reason.chars().filter(|c| !c.is_control()).take(200).collect();
        Err(format!("The token server answered {}. {reason}", status.as_u16()))
    }
}

fn token_of(
    answer: &Value,
    token_url: &str,
    client_id: &str,
    client_secret: Option<String>,
    refresh_before: Option<String>,
) -> Result<Token, String> {
    let text = |name: &str| answer[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let access = text("access_token").ok_or("The token server gave no token.")?;
    let seconds = answer["expires_in"].as_u64().or_else(|| answer["expires_in"].as_str()?.parse().ok());
    Ok(Token {
        access,
        refresh: text("refresh_token").or(refresh_before),
        expires_at: seconds.map(|seconds| now().saturating_add(seconds.saturating_mul(1000))),
        token_url: token_url.to_owned(),
        client_id: client_id.to_owned(),
        client_secret,
    })
}

/// An address of a sign-in: HTTPS, or HTTP on this machine.
fn endpoint(text: &str) -> Result<Url, ApiError> {
    let refused = || ApiError::invalid("A sign-in needs an https address.");
    let url = Url::parse(text.trim()).map_err(|_| refused())?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_local =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    let is_safe = url.scheme() == "https" || url.scheme() == "http" && is_local;
    if !is_safe || !url.username().is_empty() || url.fragment().is_some() {
        return Err(refused());
    }
    Ok(url)
}

/// What the window shows that came back.
pub(crate) fn closing_page(outcome: &Result<(), String>) -> String {
    let (title, text) = match outcome {
        Ok(()) => ("Signed in", "You are signed in. Close this window and go back to Studio.".to_owned()),
        Err(message) => ("Not signed in", format!("{message} Close this window and go back to Studio.")),
    };
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
         <body><h1>{title}</h1><p>{escaped}</p></body></html>\n"
    )
}

/// As the route answers.
pub(crate) fn begun(address: &str) -> Value {
    json!({"authorizationUrl": address})
}
