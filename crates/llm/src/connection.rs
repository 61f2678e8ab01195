//! A model at its provider: what a request to it looks like, url, headers and body.
//!
//! Knows the vendor's row and the configuration, and makes no call itself.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::middle::Middle;
use domain::model::{ModelInfo, Prompt, PromptEntry};
use domain::{Failure, FailureKind, Part};
use percent_encoding::percent_decode_str;
use reqwest::RequestBuilder;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::format::fill::Fill;
use crate::format::{Api, Decode, Dialect, Target, Thinking};
use crate::framing::Framing;
use crate::network::Network;
use crate::provider::{Credential, KeySource, RetryPolicy};
use crate::rate_limiter::RateLimiter;
use crate::sigv4::{Signer, encode_segment};
use crate::vendors::{Auth, Vendor};

/// A key may come from a command that asks a person.
const KEY_TIMEOUT: Duration = Duration::from_secs(60);
/// Shorter values of headers and queries say nothing secret, and masking them would garble messages.
pub(crate) const SHORTEST_SECRET: usize = 12;

/// A provider's address and key, shared by its models.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub name: String,
    pub vendor: Vendor,
    pub url: String,
    pub path: Option<String>,
    pub key: Option<KeySource>,
    pub headers: Vec<(String, KeySource)>,
    pub retry_policy: RetryPolicy,
    pub network: Arc<Network>,
    pub rate_limiter: Arc<RateLimiter>,
    /// Models, by their names on the wire, whose server turned out not to fill middles.
    pub without_fill: Mutex<HashSet<String>>,
}

impl Endpoint {
    /// The key, or a sentence that says which one to set.
    pub(crate) async fn credential(&self) -> Result<Option<Credential>, Failure> {
        let credential = match &self.key {
            Some(source) => tokio::time::timeout(KEY_TIMEOUT, source.get()).await.map_err(|_| {
                let message = format!("The key of {} was not there after a minute.", self.name);
                Failure::new(FailureKind::Auth, message).hint(self.key_hint())
            })??,
            None => None,
        };
        if credential.is_none() && self.needs_key() {
            return Err(self.missing_key());
        }
        Ok(credential)
    }

    /// Without asking for it.
    pub(crate) fn has_key(&self) -> bool {
        self.key.as_ref().is_some_and(KeySource::is_available)
    }

    /// A server that has no row may do without a key, if none was configured.
    pub(crate) fn needs_key(&self) -> bool {
        self.vendor.auth != Auth::Optional && (self.key.is_some() || !self.vendor.name.is_empty())
    }

    pub(crate) fn missing_key(&self) -> Failure {
        Failure::new(FailureKind::Auth, format!("There is no key for {}.", self.name)).hint(self.key_hint())
    }

    /// A sentence that says how to set the key.
    pub(crate) fn key_hint(&self) -> String {
        let (name, setting) = (&self.name, format!("`providers.{}.key` in the configuration", self.name));
        match self.vendor.keys.first() {
            Some(variable) => format!("Set {variable} or {setting}, or run `dragoman login {name}`."),
            None => format!("Set {setting}."),
        }
    }

    /// Configured headers with their values.
    pub(crate) async fn resolve_headers(
        &self,
        headers: &[(String, KeySource)],
    ) -> Result<Vec<(String, String)>, Failure> {
        let mut values = Vec::with_capacity(headers.len());
        for (name, source) in headers {
            let value = tokio::time::timeout(KEY_TIMEOUT, source.get()).await.map_err(|_| {
                Failure::config(format!("The header {name} of {} was not there after a minute.", self.name))
                    .hint("Check the provider's extraHeaders.")
            })??;
            if let Some(Credential::Key(value) | Credential::Bearer(value)) = value {
                values.push((name.clone(), value));
            }
        }
        Ok(values)
    }

    /// The url with a path after its base; the query of a configured url stays at the end.
    pub(crate) fn join_url(&self, path: impl FnOnce(&str) -> String) -> String {
        let (base, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let url = path(base.trim_end_matches('/'));
        match query {
            "" => url,
            query if url.contains('?') => format!("{url}&{query}"),
            query => format!("{url}?{query}"),
        }
    }

    pub(crate) fn url_secrets(&self) -> Vec<String> {
        secrets_in(&self.url)
    }
}

/// The parts of a url that may be keys: its password, or the user where there is no password, and its query, each as
/// it is written and decoded.
fn secrets_in(url: &str) -> Vec<String> {
    let Ok(url) = reqwest::Url::parse(url) else { return Vec::new() };
    let query = url.query().unwrap_or_default().split('&');
    // One without a value may be a key by itself, and base64 ends in `=`.
    let values = query.flat_map(|parameter| {
        let value = parameter.split_once('=').map(|(_, value)| value);
        [value, Some(parameter).filter(|it| !it.trim_end_matches('=').contains('='))]
    });
    let user = Some(url.username()).filter(|_| url.password().is_none());
    let long = values.flatten().chain(user).filter(|value| value.len() >= SHORTEST_SECRET);
    let mut secrets: Vec<String> = long.chain(url.password()).flat_map(secret_spellings).collect();
    // The longest first, so that a secret inside another leaves no rest behind.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    secrets
}

/// A part of a url as it is written, and decoded with and without `+` for a space.
fn secret_spellings(written: &str) -> Vec<String> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    vec![written.to_owned(), decoded(written), decoded(&written.replace('+', " "))]
}

/// A model that can be called.
#[derive(Debug)]
pub(crate) struct Connection {
    pub endpoint: Arc<Endpoint>,
    /// The API format of this model; nearly always its provider's.
    pub api: Api,
    /// `provider/name`.
    pub id: String,
    pub wire_name: String,
    pub info: ModelInfo,
    pub thinking: Thinking,
    pub temperature: bool,
    pub dialect: Dialect,
    pub body: Map<String, Value>,
    pub headers: Vec<(String, KeySource)>,
    pub variants: Vec<(String, Map<String, Value>)>,
    /// How it fills the middle of a text, if it does.
    pub fill: Option<Fill>,
}

impl Connection {
    fn target(&self) -> Target<'_> {
        Target {
            id: &self.id,
            model: &self.wire_name,
            info: &self.info,
            thinking: self.thinking,
            temperature: self.temperature,
            dialect: self.dialect,
        }
    }

    /// The body, with the members that configuration adds.
    pub(crate) fn encode(&self, prompt: &Prompt) -> Value {
        let own =
            prompt.variant.as_deref().and_then(|name| self.variants.iter().find(|(known, _)| known == name));
        let mut body = match own {
            // A variant of configuration says itself what it changes.
            Some(_) => self.api.encode(&Prompt { variant: None, ..prompt.clone() }, &self.target()),
            None => self.api.encode(prompt, &self.target()),
        };
        for extra in [Some(&self.body), own.map(|(_, extra)| extra)].into_iter().flatten() {
            merge(&mut body, extra);
        }
        body
    }

    /// How the prompt is sent as a middle to fill, with that middle, if it is one.
    fn fill_of<'a>(&self, prompt: &'a Prompt) -> Option<(Fill, &'a Middle)> {
        Some((self.fill?, prompt.middle.as_ref()?))
    }

    /// What is known of the model now.
    pub(crate) fn current_info(&self) -> ModelInfo {
        ModelInfo { fills_middle: self.fill.is_some() && self.may_fill(), ..self.info.clone() }
    }

    fn may_fill(&self) -> bool {
        let without = self.endpoint.without_fill.lock().unwrap_or_else(PoisonError::into_inner);
        !without.contains(&self.wire_name)
    }

    /// Whether the server knows no requests to fill a middle, or not for this model. It is remembered.
    pub(crate) fn cannot_fill(&self, prompt: &Prompt, fault: &Fault) -> bool {
        let cannot =
            self.fill_of(prompt).is_some() && matches!(fault.status, Some(400 | 404 | 405 | 422 | 501));
        if cannot {
            tracing::info!(model = self.id, "the server does not fill middles of texts");
            let mut without = self.endpoint.without_fill.lock().unwrap_or_else(PoisonError::into_inner);
            without.insert(self.wire_name.clone());
        }
        cannot
    }

    /// The same as bytes, see [`Api::encode_bytes`].
    pub(crate) fn encode_bytes(&self, prompt: &Prompt) -> Vec<u8> {
        if let Some((fill, middle)) = self.fill_of(prompt) {
            return fill.body(&self.wire_name, middle, prompt.max_output).to_string().into_bytes();
        }
        let member = self.api.history_member();
        let extras = self.variants.iter().map(|(_, extra)| extra).chain([&self.body]);
        if extras.into_iter().any(|extra| extra.get(member).is_some()) {
            return self.encode(prompt).to_string().into_bytes();
        }
        let extra = format!("{:?} {:?}", self.body, self.variants);
        self.api.encode_bytes(prompt, &self.target(), &extra, |prompt| self.encode(prompt))
    }

    pub(crate) fn framing(&self) -> Framing {
        self.api.framing()
    }

    pub(crate) fn decoder(&self, prompt: &Prompt) -> Box<dyn Decode> {
        if let Some(decoder) = self.fill_of(prompt).and_then(|(fill, _)| fill.decoder()) {
            return decoder;
        }
        self.api.decoder(prompt, &self.target())
    }

    pub(crate) async fn request(
        &self,
        prompt: &Prompt,
        body: Vec<u8>,
        credential: Option<&Credential>,
        configured: &[(String, String)],
    ) -> Result<RequestBuilder, Failure> {
        let url = self.url(prompt);
        let client = self.endpoint.network.client(&url).await?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(self.api.accept()));
        if self.api == Api::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        for (name, value) in self.api.headers(prompt, &self.target()) {
            insert_header(&mut headers, name, &value)?;
        }
        for (name, value) in self.endpoint.vendor.headers {
            insert_header(&mut headers, name, value)?;
        }
        if self.endpoint.vendor.name == "github-copilot" {
            for (name, value) in copilot_headers(prompt) {
                insert_header(&mut headers, name, value)?;
            }
        }
        if let Some(credential) = credential {
            self.authorize(credential, &url, &body, &mut headers)?;
        }
        for (name, value) in configured {
            insert_header(&mut headers, name, value)?;
        }
        Ok(client.post(url).headers(headers).body(body))
    }

    fn authorize(
        &self,
        credential: &Credential,
        url: &str,
        body: &[u8],
        headers: &mut HeaderMap,
    ) -> Result<(), Failure> {
        let (name, value) = match (credential, self.endpoint.vendor.auth) {
            (Credential::Key(key), Auth::Header(name)) => (HeaderName::from_static(name), key.clone()),
            (Credential::Key(key) | Credential::Bearer(key), _) => (AUTHORIZATION, format!("Bearer {key}")),
            (Credential::Aws { access_key, secret_key, session_token }, _) => {
                let (host, path) = host_and_path(url);
                let signer = Signer {
                    access_key,
                    secret_key,
                    session_token: session_token.as_deref(),
                    region: region(host),
                    service: "bedrock",
                };
                for (name, value) in signer.headers(host, path, body, jiff::Timestamp::now()) {
                    insert_header(headers, name, &value)?;
                }
                return Ok(());
            }
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            let message = format!("The key of {} holds a character that no key has.", self.endpoint.name);
            Failure::new(FailureKind::Auth, message).hint(self.endpoint.key_hint())
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(())
    }

    pub(crate) fn url(&self, prompt: &Prompt) -> String {
        match self.fill_of(prompt) {
            Some((fill, _)) => self.endpoint.join_url(|base| fill.url(base)),
            None => self.endpoint.join_url(|base| self.request_path(base)),
        }
    }

    /// What may help where a configured server has nothing at the path of this API.
    pub(crate) fn other_api_hint(&self, fault: &Fault) -> Option<String> {
        let endpoint = &self.endpoint;
        let is_own_url = endpoint.url == endpoint.vendor.url || endpoint.url.is_empty();
        if self.api == Api::OpenAiChat || is_own_url || !matches!(fault.status, Some(404 | 405)) {
            return None;
        }
        let (name, api) = (&endpoint.name, self.api.name());
        Some(format!(
            "Check the provider's url and the model's name. Dragoman used the API `{api}`; if the server speaks OpenAI's \
             Chat Completions, set `api: \"openai-chat\"` in `providers.{name}`."
        ))
    }

    /// The configured headers, the model's after the provider's.
    pub(crate) async fn configured_headers(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut headers = self.endpoint.resolve_headers(&self.endpoint.headers).await?;
        headers.extend(self.endpoint.resolve_headers(&self.headers).await?);
        Ok(headers)
    }

    fn request_path(&self, base: &str) -> String {
        let model = encode_segment(&self.wire_name);
        if let Some(path) = &self.endpoint.path {
            return format!("{base}/{}", path.trim_start_matches('/').replace("{model}", &model));
        }
        let azure = self.endpoint.vendor.name == "azure" && !base.contains("/openai");
        let base = if azure { format!("{base}/openai/v1") } else { base.to_owned() };
        match self.api {
            Api::OpenAiResponses if self.endpoint.vendor.name == "github-copilot" => {
                format!("{base}/responses")
            }
            Api::OpenAiResponses => versioned(&base, "responses"),
            Api::Anthropic => versioned(&base, "messages"),
            Api::OpenAiChat => format!("{base}/chat/completions"),
            // A model of Google is named `models/…` or by itself, its tuned ones `tunedModels/…`.
            Api::Gemini if self.wire_name.contains('/') => {
                format!("{base}/{}:streamGenerateContent?alt=sse", self.wire_name)
            }
            Api::Gemini => format!("{base}/models/{model}:streamGenerateContent?alt=sse"),
            Api::Ollama => format!("{base}/api/chat"),
            Api::Bedrock => format!("{base}/model/{model}/converse-stream"),
        }
    }
}

/// Copilot counts what the user asked and not what follows from it, such as a title, and wants to know of images.
fn copilot_headers(prompt: &Prompt) -> impl Iterator<Item = (&'static str, &'static str)> {
    let follows =
        prompt.session.is_none() || matches!(prompt.entries.last(), Some(PromptEntry::Result { .. }));
    let image = |part: &Part| matches!(part, Part::Image { .. });
    let images = prompt.entries.iter().any(|entry| match entry {
        PromptEntry::User { parts } | PromptEntry::Result { parts, .. } => parts.iter().any(image),
        PromptEntry::Reasoning { .. } | PromptEntry::Agent { .. } | PromptEntry::Call { .. } => false,
    });
    let initiator = ("x-initiator", if follows { "agent" } else { "user" });
    std::iter::once(initiator).chain(images.then_some(("copilot-vision-request", "true")))
}

/// `https://host:port/path?query` without the scheme and the query.
fn host_and_path(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('?').next().unwrap_or(rest);
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}

/// The region in `bedrock-runtime.eu-west-1.amazonaws.com`.
fn region(host: &str) -> &str {
    host.split('.').nth(1).filter(|part| part.contains('-')).unwrap_or("us-east-1")
}

/// `{base}/v1/{name}`, also where the base has its version already.
pub(crate) fn versioned(base: &str, name: &str) -> String {
    let last = base.rsplit('/').next().unwrap_or_default();
    let has_version =
        last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if has_version { format!("{base}/{name}") } else { format!("{base}/v1/{name}") }
}

/// A later header replaces an earlier one, but `anthropic-beta` is a list.
fn insert_header(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), Failure> {
    let bad = || {
        Failure::config(format!("The header {name} is not a valid HTTP header."))
            .hint("Check the provider's extraHeaders.")
    };
    let name = HeaderName::try_from(name).map_err(|_| bad())?;
    let value =
        match headers.get(&name).filter(|_| name == "anthropic-beta").and_then(|known| known.to_str().ok()) {
            Some(known) => HeaderValue::try_from(format!("{known},{value}")),
            None => HeaderValue::try_from(value),
        };
    headers.insert(name, value.map_err(|_| bad())?);
    Ok(())
}

/// Adds members; objects are merged, `null` takes a member out.
fn merge(body: &mut Value, extra: &Map<String, Value>) {
    let Value::Object(body) = body else { return };
    for (key, value) in extra {
        match (body.get_mut(key), value) {
            (_, Value::Null) => {
                body.shift_remove(key);
            }
            (Some(known @ Value::Object(_)), Value::Object(more)) => merge(known, more),
            _ => {
                body.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_base_url_may_or_may_not_hold_the_version() {
        for (base, expected) in [
            ("https://api.openai.com", "https://api.openai.com/v1/responses"),
            ("https://api.openai.com/v1", "https://api.openai.com/v1/responses"),
            ("https://x/api/v4", "https://x/api/v4/responses"),
            ("https://x/vision", "https://x/vision/v1/responses"),
        ] {
            assert_eq!(versioned(base, "responses"), expected);
        }
    }

    #[test]
    fn what_may_be_a_key_in_a_url_is_known_as_written_and_as_meant() {
        for (url, known) in [
            ("http://bob:p%40ss@h/v1", &["p%40ss", "p@ss"][..]),
            ("http://h/v1?key=secret%2Btoken+123", &["secret%2Btoken+123", "secret+token 123"]),
            ("http://h/v1?sk-live-0123456789&flag&a=short", &["sk-live-0123456789"]),
            ("http://h/v1?c2VjcmV0LXRva2Vu==", &["c2VjcmV0LXRva2Vu=="]),
            ("https://TOKEN%2F0123456@gw/v1", &["TOKEN%2F0123456", "TOKEN/0123456"]),
            ("https://TOKEN-0123456:@gw/v1", &["TOKEN-0123456"]),
            ("https://somebody-long:pw%21@gw/v1", &["pw%21", "pw!"]),
            ("https://bob@gw:8443/v1", &[]),
        ] {
            let secrets = secrets_in(url);
            assert!(known.iter().all(|secret| secrets.iter().any(|it| it == secret)), "{url}: {secrets:?}");
            assert_eq!(secrets.is_empty(), known.is_empty(), "{url}: {secrets:?}");
            assert!(!secrets.iter().any(|it| it.contains("somebody") || it == "short"), "{url}: {secrets:?}");
        }
    }

    #[test]
    fn configured_members_are_merged() {
        let mut body = json!({"a": {"b": 1}, "c": 2, "d": 3});
        let extra = json!({"a": {"e": 4}, "c": null, "d": {"f": 5}});
        merge(&mut body, extra.as_object().unwrap());
        assert_eq!(body, json!({"a": {"b": 1, "e": 4}, "d": {"f": 5}}));
    }
}
