//! A search of the web by a service that the user configured: one request, and its results in a common shape.
//!
//! Knows no vendor's name. Invariants: the address is the user's, the model gives the words alone; no redirect carries a
//! key elsewhere; answers are bounded.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::{BoxFuture, Failure};
use reqwest::header::{ACCEPT, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

const TIMEOUT: Duration = Duration::from_secs(30);
const MOST_BYTES: usize = 1 << 20;
/// Where services have their results.
const LISTS: &[&str] =
    &["/web/results", "/results", "/organic", "/items", "/webPages/value", "/data", "/hits"];

/// Values of headers, looked up when a search needs them.
pub type HeaderLookup = dyn Fn() -> BoxFuture<'static, Result<Vec<(String, String)>, Failure>> + Send + Sync;

/// A service as the user configured it.
#[derive(Clone)]
pub struct SearchService {
    /// With `{query}`: a GET. Without: a POST of JSON with the words as `query` and `q`.
    pub url: String,
    pub headers: Arc<HeaderLookup>,
}

/// What is asked.
#[derive(Clone, Debug)]
pub enum SearchBackend {
    Service(SearchService),
    /// `provider/model`: its provider searches by a tool of its own.
    Model(String),
}

impl fmt::Debug for SearchService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SearchService(…)")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchResult {
    pub title: String,
    pub url: String,
    pub text: String,
}

pub(crate) enum Searcher {
    Service(ServiceSearcher),
    Model(String),
}

impl Searcher {
    pub(crate) fn new(backend: SearchBackend) -> Self {
        match backend {
            SearchBackend::Service(service) => {
                Self::Service(ServiceSearcher { service, client: OnceCell::new() })
            }
            SearchBackend::Model(model) => Self::Model(model),
        }
    }

    /// Where the words go, for people.
    pub(crate) fn origin(&self) -> Result<String, String> {
        match self {
            Self::Service(service) => service.origin(),
            Self::Model(model) => Ok(model.clone()),
        }
    }
}

pub(crate) struct ServiceSearcher {
    service: SearchService,
    client: OnceCell<Client>,
}

impl ServiceSearcher {
    /// Scheme, host and port of the service.
    fn origin(&self) -> Result<String, String> {
        let url = self.service.url.replace("{query}", "x");
        let url = Url::parse(&url).map_err(|_| "`webSearch.url` is not an address.".to_owned())?;
        Ok(url.origin().ascii_serialization())
    }

    pub(crate) async fn search(&self, words: &str, most: usize) -> Result<Vec<SearchResult>, String> {
        let answer = tokio::time::timeout(TIMEOUT, self.ask(words, most)).await;
        let answer =
            answer.map_err(|_| format!("The search took longer than {} seconds.", TIMEOUT.as_secs()))??;
        let results = results_of(&answer).ok_or("The search service answers in a form that is not known.")?;
        Ok(results.into_iter().take(most).collect())
    }

    async fn ask(&self, words: &str, most: usize) -> Result<Value, String> {
        let client = self.client.get_or_try_init(make_client).await?;
        let url = &self.service.url;
        domain::hosts::check_address(url).map_err(|failure| failure.to_string())?;
        let mut request = match url.contains("{query}") {
            true => client.get(url.replace("{query}", &encode(words))),
            false => {
                client.post(url).json(&json!({"query": words, "q": words, "max_results": most, "num": most}))
            }
        };
        for (name, value) in (self.service.headers)().await.map_err(|failure| failure.to_string())? {
            let bad = |_| format!("The header {name} of `webSearch` is not valid.");
            let mut value = HeaderValue::try_from(value).map_err(|_| bad(()))?;
            value.set_sensitive(true);
            request = request.header(HeaderName::try_from(name.as_str()).map_err(|_| bad(()))?, value);
        }
        // The text of such an error may hold the key in the address.
        let failed = |_| "The search service cannot be reached.".to_owned();
        let mut response = request.header(ACCEPT, "application/json").send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(format!("The search service answers {}.", response.status()));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MOST_BYTES {
                return Err("The answer of the search service is too long.".to_owned());
            }
        }
        serde_json::from_slice(&bytes).map_err(|_| "The answer of the search service is not JSON.".to_owned())
    }
}

/// Made at the first use: it reads the system's certificates.
async fn make_client() -> Result<Client, String> {
    let make = || {
        tls::install();
        let agent = concat!("dragoman/", env!("CARGO_PKG_VERSION"));
        Client::builder().redirect(redirect::Policy::none()).referer(false).user_agent(agent).build()
    };
    let made = tokio::task::spawn_blocking(make).await.map_err(|error| error.to_string())?;
    made.map_err(|_| "The HTTP client could not be made.".to_owned())
}

fn encode(words: &str) -> String {
    let mut out = String::new();
    for byte in words.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The first list whose entries have an address.
fn results_of(answer: &Value) -> Option<Vec<SearchResult>> {
    let lists = LISTS.iter().filter_map(|path| answer.pointer(path)?.as_array()).chain(answer.as_array());
    let mut known = None;
    for list in lists {
        let results: Vec<SearchResult> = list.iter().filter_map(result_of).collect();
        if !results.is_empty() {
            return Some(results);
        }
        known = Some(results);
    }
    known
}

fn result_of(entry: &Value) -> Option<SearchResult> {
    let text = |names: &[&str]| names.iter().find_map(|name| entry[*name].as_str()).map(str::to_owned);
    Some(SearchResult {
        url: text(&["url", "link", "href"])?,
        title: text(&["title", "name"]).unwrap_or_default(),
        text: text(&["description", "snippet", "content", "text", "body"]).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_known_shapes_are_found() {
        let entry = json!({"title": "T", "url": "https://a", "description": "D"});
        let expected = vec![SearchResult { title: "T".into(), url: "https://a".into(), text: "D".into() }];
        for answer in [
            json!({"web": {"results": [entry]}}),
            json!({"results": [{"title": "T", "url": "https://a", "content": "D"}]}),
            json!({"organic": [{"title": "T", "link": "https://a", "snippet": "D"}]}),
            json!({"webPages": {"value": [{"name": "T", "url": "https://a", "snippet": "D"}]}}),
            json!([{"title": "T", "href": "https://a", "body": "D"}]),
        ] {
            assert_eq!(results_of(&answer), Some(expected.clone()), "{answer}");
        }
        assert_eq!(results_of(&json!({"results": []})), Some(Vec::new()));
        assert_eq!(results_of(&json!({"error": "no"})), None);
        assert_eq!(encode("a b&ä"), "a%20b%26%C3%A4");
    }
}
