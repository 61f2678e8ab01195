//! Requests of the frame to the API of its tab: to the confirmed base URL and nowhere else.
//!
//! Invariants: the address that is connected to was checked, at each hop; a redirect leaves no base URL; headers by which the
//! frame could act for somebody are dropped; an answer has a limit of size and of time.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, Response, Url, redirect};
use tokio::sync::mpsc;
use tools::web::address::is_public;

use crate::base_url::{PublicOnly, base_address};
use crate::connections::Credential;
use crate::console::{CallEntry, MASK, masked, shown_body};
use crate::exchange::{NetworkAnswer, NetworkBody, NetworkFault, NetworkRequest, milliseconds};
use crate::parts::PartReader;

const TIMEOUT: Duration = Duration::from_secs(10);
const LARGEST_ANSWER: usize = 16 << 20;
/// A stream ends after this time, whatever it is about.
const LONGEST_STREAM: Duration = Duration::from_secs(600);
/// What the console keeps of a stream.
const KEPT_OF_STREAM: usize = 64 * 1024;
const MOST_REDIRECTS: usize = 5;
const LONGEST_PATH: usize = 64 * 1024;
/// A path that is escaped more often than this is meant to be misunderstood.
const MOST_ESCAPES: usize = 5;
/// A shorter secret is not looked for in answers: it would be found everywhere.
const SHORTEST_MASKED: usize = 8;

/// By these the frame could act for somebody, or change how the request is understood.
const DROPPED: [&str; 17] = [
    "authorization",
    "cookie",
    "host",
    "origin",
    "referer",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "accept-encoding",
    "forwarded",
    "via",
    "date",
    "expect",
];
const DROPPED_STARTS: [&str; 3] = ["proxy-", "sec-", "x-forwarded-"];

/// Where the parts of an answer go.
pub(crate) type PartSender = mpsc::Sender<String>;

/// A request as it is sent, with its credentials.
pub(crate) struct Prepared {
    method: Method,
    base: Url,
    url: Url,
    headers: HeaderMap,
    body: Vec<u8>,
    may_be_private: bool,
    /// Texts that must not be shown.
    secrets: Vec<String>,
}

impl Prepared {
    pub(crate) fn new(
        base: &str,
        may_be_private: bool,
        request: &NetworkRequest,
        credential: &Credential,
    ) -> Result<Self, NetworkFault> {
        let method = method_of(&request.method)?;
        let base = base_address(base).map_err(NetworkFault::refused)?;
        let mut url = address(&base, &request.path)?;
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers.iter().filter(|(name, _)| !is_dropped(name)) {
            let broken = |_| NetworkFault::refused(format!("The header {name} cannot be sent."));
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| NetworkFault::refused("A header has no proper name."))?;
            headers.append(name.clone(), HeaderValue::from_str(value).map_err(|_| broken(()))?);
        }
        let body = match &request.body {
            None => Vec::new(),
            Some(NetworkBody::Text(text)) => text.clone().into_bytes(),
            Some(NetworkBody::Base64(text)) => {
                STANDARD.decode(text).map_err(|_| NetworkFault::refused("The body is not base64."))?
            }
        };
        credential.apply(&mut url, &mut headers).map_err(NetworkFault::refused)?;
        Ok(Self { method, base, url, headers, body, may_be_private, secrets: credential.secrets() })
    }

    /// As the console shows it, with its answer.
    pub(crate) fn entry(&self, answer: &Result<NetworkAnswer, NetworkFault>) -> CallEntry {
        let headers = self.headers.iter().map(|(name, value)| {
            let value = value.to_str().unwrap_or("(not text)");
            (name.to_string(), self.hide(&masked(name.as_str(), value)))
        });
        let mut entry = CallEntry {
            method: self.method.to_string(),
            url: self.hide(self.url.as_str()),
            request_headers: headers.collect(),
            request_body: shown_body(&self.body).map(|text| self.hide(&text)),
            ..CallEntry::default()
        };
        if let Ok(answer) = answer {
            entry.status = Some(answer.status);
            let shown = |(name, value): &(String, String)| (name.clone(), masked(name, value));
            entry.response_headers = answer.headers.iter().map(shown).collect();
            entry.response_body = shown_body(&answer.body);
            entry.size = answer.body.len();
            entry.duration = milliseconds(answer.duration);
        }
        entry
    }

    fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            // In an address a secret may be escaped.
            let escaped =
                percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string();
            text = text.replace(secret.as_str(), MASK).replace(&escaped, MASK);
        }
        text
    }
}

#[derive(Default)]
pub(crate) struct Network {
    public: OnceLock<Client>,
    any: OnceLock<Client>,
}

impl Network {
    /// Sends a request. A stream goes to `parts` while it comes, if there are any; the answer then holds its beginning.
    pub(crate) async fn send(
        &self,
        prepared: &Prepared,
        parts: Option<&PartSender>,
    ) -> Result<NetworkAnswer, NetworkFault> {
        let started = Instant::now();
        let end = tokio::time::Instant::now() + TIMEOUT;
        let late = |_| {
            let seconds = TIMEOUT.as_secs();
            NetworkFault::new("timeout", format!("The API did not answer within {seconds} s."))
        };
        let response = tokio::time::timeout_at(end, self.follow(prepared)).await.map_err(late)??;
        match parts.filter(|_| is_stream(&response)) {
            Some(parts) => {
                let reading = read_parts(response, prepared, started, parts);
                tokio::time::timeout(LONGEST_STREAM, reading).await.map_err(late)?
            }
            None => {
                let reading = read_answer(response, prepared, started);
                tokio::time::timeout_at(end, reading).await.map_err(late)?
            }
        }
    }

    /// The answer behind the redirects.
    async fn follow(&self, prepared: &Prepared) -> Result<Response, NetworkFault> {
        let client = self.client(prepared.may_be_private)?;
        let (mut method, mut url, mut body) =
            (prepared.method.clone(), prepared.url.clone(), prepared.body.clone());
        for _ in 0..=MOST_REDIRECTS {
            check_host(&url, prepared.may_be_private)?;
            let request = client.request(method.clone(), url.clone()).headers(prepared.headers.clone());
            let request = if body.is_empty() { request } else { request.body(body.clone()) };
            let response = request.send().await.map_err(|error| unreachable_fault(&url, &error))?;
            let status = response.status().as_u16();
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let Some(location) = location.filter(|_| matches!(status, 301..=303 | 307 | 308)) else {
                return Ok(response);
            };
            let next = url.join(location).map_err(|_| {
                NetworkFault::new("redirect", "The API redirects to something that is no address.")
            })?;
            if next.origin() != url.origin() {
                let origin = next.origin().ascii_serialization();
                let message =
                    format!("The API redirects to {origin}, which is another origin. It was not followed.");
                return Err(NetworkFault::new("redirect", message));
            }
            if !is_below(&prepared.base, &next) {
                let message = format!(
                    "The API redirects to {}, which is outside of the base URL of this tab. It was not followed.",
                    next.path()
                );
                return Err(NetworkFault::new("redirect", message));
            }
            if status == 303 || matches!(status, 301 | 302) && method == Method::POST {
                method = Method::GET;
                body.clear();
            }
            url = next;
        }
        Err(NetworkFault::new("redirect", "The API redirects too often."))
    }

    /// Made at the first use: it reads the system's certificates.
    pub(crate) fn client(&self, may_be_private: bool) -> Result<&Client, NetworkFault> {
        let cell = if may_be_private { &self.any } else { &self.public };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        tls::install();
        let builder = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(TIMEOUT)
            .user_agent(concat!("dragoman-studio/", env!("CARGO_PKG_VERSION")));
        let builder = if may_be_private { builder } else { builder.dns_resolver(Arc::new(PublicOnly)) };
        let client = builder
            .build()
            .map_err(|error| NetworkFault::new("unreachable", format!("No request can be sent: {error}.")))?;
        Ok(cell.get_or_init(|| client))
    }
}

fn check_host(url: &Url, may_be_private: bool) -> Result<(), NetworkFault> {
    domain::hosts::check_address(url.as_str())
        .map_err(|failure| NetworkFault::refused(failure.to_string()))?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(address) if !may_be_private && !is_public(address) => {
            Err(NetworkFault::refused(format!("{host} is in a private network that was not confirmed.")))
        }
        _ => Ok(()),
    }
}

fn method_of(name: &str) -> Result<Method, NetworkFault> {
    let method = Method::from_bytes(name.to_ascii_uppercase().as_bytes());
    let allowed = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    method
        .ok()
        .filter(|method| allowed.contains(method))
        .ok_or_else(|| NetworkFault::refused("This method cannot be used."))
}

/// The base URL with a path below it.
fn address(base: &Url, path: &str) -> Result<Url, NetworkFault> {
    let outside =
        || NetworkFault::refused("The request leaves the base URL of this tab, so it was not sent.");
    let is_plain = !path.contains('\\') && !path.contains(char::is_control) && !path.contains('#');
    if !path.is_empty() && !path.starts_with('/') || path.len() > LONGEST_PATH || !is_plain {
        return Err(outside());
    }
    let url = Url::parse(&format!("{}{path}", base.as_str().trim_end_matches('/'))).map_err(|_| outside())?;
    if url.origin() != base.origin() || !is_below(base, &url) || !url.username().is_empty() {
        return Err(outside());
    }
    Ok(url)
}

/// Whether a path is below the base URL, however the server reads it. Parsing has removed dot segments; what is escaped,
/// even twice, may become one at the server.
fn is_below(base: &Url, url: &Url) -> bool {
    let folder = base.path().trim_end_matches('/');
    let below = url.path().strip_prefix(folder).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let Some(rest) = below else { return false };
    let mut text = rest.to_owned();
    for _ in 0..MOST_ESCAPES {
        // A parameter of a segment, as in `..;a=b`, is cut off by some servers.
        let is_dots = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
        if text.split(['/', '\\']).any(is_dots) {
            return false;
        }
        // What is not UTF-8 may be an overlong form of `../`, which old servers read.
        let Ok(decoded) = percent_encoding::percent_decode_str(&text).decode_utf8() else { return false };
        if decoded == text {
            return true;
        }
        text = decoded.into_owned();
    }
    false
}

fn is_dropped(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    DROPPED.contains(&name.as_str()) || DROPPED_STARTS.iter().any(|start| name.starts_with(start))
}

fn too_large() -> NetworkFault {
    NetworkFault::new("tooLarge", format!("The answer is larger than {} MiB.", LARGEST_ANSWER >> 20))
}

/// Server-sent events and lines of JSON.
fn is_stream(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let kinds = ["text/event-stream", "application/x-ndjson", "application/jsonl", "application/json-seq"];
    response.status().is_success() && kinds.iter().any(|one| kind.eq_ignore_ascii_case(one))
}

fn headers_of(response: &Response) -> Vec<(String, String)> {
    let is_handed_on = |name: &HeaderName| !matches!(name.as_str(), "set-cookie" | "set-cookie2");
    let handed = response.headers().iter().filter(|(name, _)| is_handed_on(name));
    handed.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned()))).collect()
}

/// Hands a stream on until it ends or nobody reads it any more.
async fn read_parts(
    mut response: Response,
    prepared: &Prepared,
    started: Instant,
    parts: &PartSender,
) -> Result<NetworkAnswer, NetworkFault> {
    let (status, headers) = (response.status().as_u16(), headers_of(&response));
    let mut reader = PartReader::new(masked_secrets(&prepared.secrets).cloned().collect());
    let (mut body, mut length) = (Vec::new(), 0);
    loop {
        let piece = tokio::select! {
            piece = response.chunk() => piece.map_err(|error| unreachable_fault(&prepared.url, &error))?,
            () = parts.closed() => break,
        };
        let Some(piece) = piece else { break };
        length += piece.len();
        if length > LARGEST_ANSWER {
            return Err(too_large());
        }
        let text = reader.push(&piece);
        if body.len() < KEPT_OF_STREAM {
            body.extend_from_slice(text.as_bytes());
        }
        if !text.is_empty() && parts.send(text).await.is_err() {
            break;
        }
    }
    let text = reader.finish();
    if !text.is_empty() {
        let _ = parts.send(text).await;
    }
    let mut answer = NetworkAnswer { status, headers, body, was_streamed: true, duration: started.elapsed() };
    hide_secrets(&mut answer, &prepared.secrets);
    Ok(answer)
}

async fn read_answer(
    mut response: Response,
    prepared: &Prepared,
    started: Instant,
) -> Result<NetworkAnswer, NetworkFault> {
    let (status, headers) = (response.status().as_u16(), headers_of(&response));
    let mut body = Vec::new();
    while let Some(piece) =
        response.chunk().await.map_err(|error| unreachable_fault(&prepared.url, &error))?
    {
        if body.len() + piece.len() > LARGEST_ANSWER {
            return Err(too_large());
        }
        body.extend_from_slice(&piece);
    }
    let mut answer =
        NetworkAnswer { status, headers, body, was_streamed: false, duration: started.elapsed() };
    hide_secrets(&mut answer, &prepared.secrets);
    Ok(answer)
}

fn masked_secrets(secrets: &[String]) -> impl Iterator<Item = &String> {
    secrets.iter().filter(|secret| secret.len() >= SHORTEST_MASKED)
}

/// An API that repeats what it was sent must not hand a credential to the page.
fn hide_secrets(answer: &mut NetworkAnswer, secrets: &[String]) {
    for secret in masked_secrets(secrets) {
        for (_, value) in &mut answer.headers {
            *value = value.replace(secret.as_str(), MASK);
        }
        if let Ok(text) = std::str::from_utf8(&answer.body)
            && text.contains(secret.as_str())
        {
            answer.body = text.replace(secret.as_str(), MASK).into_bytes();
        }
    }
}

/// The innermost cause says what a person can use; the address may hold a credential, so only its origin is named.
fn unreachable_fault(url: &Url, error: &reqwest::Error) -> NetworkFault {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let origin = url.origin().ascii_serialization();
    NetworkFault::new("unreachable", format!("{origin} cannot be reached: {cause}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_base_url() {
        let good = [
            ("https://api.test/v1", "/books", "https://api.test/v1/books"),
            ("https://api.test/v1/", "/books/7", "https://api.test/v1/books/7"),
            ("https://api.test", "", "https://api.test/"),
            ("https://api.test/v1", "", "https://api.test/v1"),
            ("https://api.test/v1", "/a/../b", "https://api.test/v1/b"),
            ("https://api.test/v1", "//evil.test/x", "https://api.test/v1//evil.test/x"),
            ("https://api.test/v1", "/projects/group%2Fname", "https://api.test/v1/projects/group%2Fname"),
            ("https://api.test/v1", "/files/a..b", "https://api.test/v1/files/a..b"),
            ("https://api.test/v1", "/100%25", "https://api.test/v1/100%25"),
            ("https://api.test/v1", "/caf%C3%A9", "https://api.test/v1/caf%C3%A9"),
        ];
        for (base, path, expected) in good {
            assert_eq!(address(&base_address(base).unwrap(), path).unwrap().as_str(), expected);
        }
        let bad = [
            ("https://api.test/v1", "/../admin"),
            ("https://api.test/v1", "/%2e%2e/admin"),
            ("https://api.test/v1", "/..%2fadmin"),
            ("https://api.test/v1", "/x/..%2f..%2fadmin"),
            ("https://api.test/v1", "/..%5cadmin"),
            ("https://api.test/v1", "/%2e%2e%2fadmin"),
            ("https://api.test/v1", "/%252e%252e%252fadmin"),
            ("https://api.test/v1", "/..;/admin"),
            ("https://api.test/v1", "/%c0%ae%c0%ae%c0%afadmin"),
            ("https://api.test/v1", "/%25c0%25ae%25c0%25ae/admin"),
            ("https://api.test/v1", "/%e0%80%ae%e0%80%ae/admin"),
            ("https://api.test/v1", "/%25252525252e%25252525252e"),
            ("https://api.test/v1", "x"),
            ("https://api.test", "@evil.test/"),
            ("https://api.test", ".evil.test/"),
            ("https://api.test", ":81/"),
            ("https://api.test", "/\\evil.test"),
            ("https://api.test", "/a\nb"),
            ("https://api.test", "/a#b"),
            ("https://u:p@api.test", "/a"),
            ("file:///etc", "/passwd"),
        ];
        for (base, path) in bad {
            let is_sent = base_address(base).is_ok_and(|base| address(&base, path).is_ok());
            assert!(!is_sent, "{base} {path}");
        }
    }

    #[test]
    fn methods_and_headers_of_a_frame() {
        assert!(method_of("get").is_ok() && method_of("DELETE").is_ok());
        for name in ["CONNECT", "TRACE", "GET /", "", "B\u{e4}"] {
            assert!(method_of(name).is_err(), "{name}");
        }
        for name in [
            "Authorization",
            "COOKIE",
            "host",
            "Origin",
            "Sec-Fetch-Site",
            "Proxy-Authorization",
            "X-Forwarded-For",
        ] {
            assert!(is_dropped(name), "{name}");
        }
        assert!(!is_dropped("X-Tenant") && !is_dropped("Content-Type") && !is_dropped("If-Match"));
    }
}
