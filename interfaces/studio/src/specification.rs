//! Taking a specification: by file, by address or as text; reading it, and naming what it refers to and could not be had.
//!
//! Invariants: a tab has either the old specification or the whole new one; a reference reaches the network only where the
//! user asked for it or it is on the server that the specification came from, and never a private address besides.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apiui::problem::{Problem, Severity};
use apiui::read::{LIMIT_BYTES, Reading, Unusable, read_bytes};
use apiui::spec::{SecurityScheme, Spec};
use axum::http::StatusCode;
use domain::CancellationToken;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tools::web::fetch::Fetcher;
use web::ApiError;

use crate::base_url::looks_private;
use crate::model::{
    BaseUrl, BaseUrlSource, Given, Missing, Scheme, Scope, ServerEntry, Source, Specification,
    SpecificationProblem,
};
use crate::studio::{Studio, not_kept};

/// How long a fetch may take.
const FETCH: Duration = Duration::from_secs(30);
const MOST_WARNINGS: usize = 100;
const LONGEST_WISH: usize = 10_000;

/// What the page sends.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpecificationInput {
    source: InputSource,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    documents: BTreeMap<String, String>,
    #[serde(default)]
    fetch_references: bool,
    /// What the interface should be like.
    #[serde(default)]
    wish: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum InputSource {
    File,
    Url,
    Text,
    /// The one that the tab has, with further documents.
    Again,
}

impl SpecificationInput {
    pub(crate) fn of_text(text: String) -> Self {
        let is_url = is_address(text.trim());
        Self {
            source: if is_url { InputSource::Url } else { InputSource::Text },
            name: None,
            url: is_url.then(|| text.trim().to_owned()),
            text: (!is_url).then_some(text),
            documents: BTreeMap::new(),
            fetch_references: false,
            wish: None,
        }
    }
}

/// A specification of the command line.
pub enum GivenSpecification {
    File {
        name: String,
        text: String,
        /// Files beside it, by the location that refers to them.
        documents: BTreeMap<String, String>,
    },
    Address(String),
}

struct Read {
    reading: Result<Reading, Unusable>,
    missing: Vec<Missing>,
}

impl Studio {
    /// Opens a specification in a new tab; what is wrong with it is told there.
    pub async fn open_specification(&self, given: GivenSpecification) {
        let Ok(tab) = self.add_tab(None).await else { return };
        let input = match given {
            GivenSpecification::Address(url) => SpecificationInput::of_text(url),
            GivenSpecification::File { name, text, documents } => SpecificationInput {
                source: InputSource::File,
                name: Some(name),
                url: None,
                text: Some(text),
                documents,
                fetch_references: false,
                wish: None,
            },
        };
        if let Err(error) = self.set_specification(&tab, input).await {
            let shown = self.change_tab(&tab, |tab| {
                tab.problem = Some(crate::studio::problem_of(&error));
                Ok(())
            });
            let _ = shown.await;
        }
    }

    /// Reads a specification, makes it the one of the tab, and begins to generate.
    pub(crate) async fn set_specification(
        &self,
        tab: &str,
        input: SpecificationInput,
    ) -> Result<(), ApiError> {
        self.model().tab(tab).ok_or_else(crate::studio::no_tab)?;
        self.publish("progress", &json!({"tab": tab, "phase": "reading", "chunk": null, "received": 0}));
        let is_again = input.source == InputSource::Again;
        let wish = input.wish.clone().map(|wish| wish.trim().to_owned()).filter(|wish| !wish.is_empty());
        if wish.as_ref().is_some_and(|wish| wish.len() > LONGEST_WISH) {
            return Err(ApiError::invalid(format!("A change is at most {LONGEST_WISH} bytes long.")));
        }
        let given = Arc::new(self.given(tab, input).await?);
        let read = read(given.clone()).await?;
        let reading = match read.reading {
            Ok(reading) => reading,
            Err(unusable) => return Err(refused(&unusable, &read.missing)),
        };
        let normalized = serde_json::to_value(&reading.spec)
            .map_err(|error| ApiError::internal(format!("The specification cannot be kept: {error}.")))?;
        self.archive.save_specification(tab, &given).await.map_err(|failure| not_kept(&failure))?;
        self.model().specifications.insert(tab.to_owned(), Arc::new(normalized));
        let specification = describe(&given, &reading, read.missing);
        let base_url = first_server(&specification);
        self.change_tab(tab, |tab| {
            if !is_again {
                tab.wish = wish;
            }
            if !tab.is_named {
                tab.title = specification.title.chars().take(100).collect();
            }
            // A server that the user confirmed stays.
            if tab.base_url.as_ref().is_none_or(|base| !base.is_confirmed) {
                tab.base_url = base_url;
            }
            tab.specification = Some(specification);
            tab.problem = None;
            Ok(())
        })
        .await?;
        self.begin_generating(tab)
    }

    async fn given(&self, tab: &str, input: SpecificationInput) -> Result<Given, ApiError> {
        let missing = |what: &str| ApiError::invalid(format!("The request has no `{what}`."));
        let (name, source, location, text) = match input.source {
            InputSource::File => {
                let name = file_name(&input.name.ok_or_else(|| missing("name"))?);
                (name.clone(), Source::File, Some(name), input.text.ok_or_else(|| missing("text"))?)
            }
            InputSource::Text => {
                ("Pasted text".to_owned(), Source::Text, None, input.text.ok_or_else(|| missing("text"))?)
            }
            InputSource::Url => {
                let url = input.url.ok_or_else(|| missing("url"))?;
                let text = fetched(&url).await?;
                (url.clone(), Source::Url, Some(url), text)
            }
            InputSource::Again => {
                return self.given_again(tab, input.documents, input.fetch_references).await;
            }
        };
        let fetch_references = input.fetch_references;
        Ok(Given { name, source, location, text, documents: input.documents, fetch_references })
    }

    async fn given_again(
        &self,
        tab: &str,
        documents: BTreeMap<String, String>,
        fetch_references: bool,
    ) -> Result<Given, ApiError> {
        let kept = self.archive.specification(tab).await.map_err(|failure| not_kept(&failure))?;
        let mut given = kept.ok_or_else(|| ApiError::conflict("This tab has no specification yet."))?;
        given.documents.extend(documents);
        given.fetch_references |= fetch_references;
        Ok(given)
    }

    /// The normalized specification of a tab; read again after a restart.
    pub(crate) async fn normalized(&self, tab: &str) -> Result<Arc<Value>, ApiError> {
        if let Some(known) = self.model().specifications.get(tab).cloned() {
            return Ok(known);
        }
        let kept = self.archive.specification(tab).await.map_err(|failure| not_kept(&failure))?;
        let given = kept.ok_or_else(|| ApiError::conflict("This tab has no specification yet."))?;
        let read = read(Arc::new(given)).await?;
        let reading = read.reading.map_err(|unusable| refused(&unusable, &read.missing))?;
        let normalized = serde_json::to_value(&reading.spec).map(Arc::new);
        let normalized = normalized.map_err(|error| ApiError::internal(error.to_string()))?;
        self.model().specifications.insert(tab.to_owned(), normalized.clone());
        Ok(normalized)
    }

    pub(crate) async fn spec(&self, tab: &str) -> Result<Spec, ApiError> {
        let normalized = self.normalized(tab).await?;
        serde_json::from_value((*normalized).clone()).map_err(|error| ApiError::internal(error.to_string()))
    }
}

/// Whether a message of the chat is a specification.
pub(crate) fn looks_like_specification(text: &str) -> bool {
    let text = text.trim();
    let is_one_word = !text.contains(char::is_whitespace);
    if is_address(text) {
        return is_one_word;
    }
    let marks = [
        "openapi:",
        "\"openapi\"",
        "swagger:",
        "\"swagger\"",
        "type Query",
        "schema {",
        "\"__schema\"",
        "#%RAML",
        "<definitions",
        "<wsdl:",
    ];
    text.len() > 40 && marks.iter().any(|mark| text.contains(mark))
}

pub(crate) fn is_address(text: &str) -> bool {
    let start = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    start.starts_with("http://") || start.starts_with("https://")
}

/// The name alone: a browser may send more.
fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let shown: String = last.chars().filter(|c| !c.is_control()).take(200).collect();
    if shown.is_empty() { "specification".to_owned() } else { shown }
}

/// The user named the address, so it may be in a private network; where it redirects to may not.
async fn fetched(url: &str) -> Result<String, ApiError> {
    let refused = |message: String| {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "specification", message)
            .hint("Check the address, or drop the file here.")
    };
    if !is_address(url) {
        return Err(refused("The address must begin with http:// or https://.".to_owned()));
    }
    let fetcher = Fetcher::at(url, LIMIT_BYTES + 1, FETCH);
    let page = fetcher.fetch(url, &CancellationToken::new()).await.map_err(refused)?;
    String::from_utf8(page.bytes).map_err(|_| refused(format!("{url} is not UTF-8 text.")))
}

async fn read(given: Arc<Given>) -> Result<Read, ApiError> {
    let runtime = Handle::current();
    let read = tokio::task::spawn_blocking(move || {
        let mut missing = Vec::new();
        let mut load = |location: &str| {
            let loaded = load(&given, location, &runtime);
            if let Err(reason) = &loaded {
                missing.push(Missing { location: location.to_owned(), reason: reason.clone() });
            }
            loaded
        };
        let reading = read_bytes(given.text.as_bytes(), given.location.as_deref(), Some(&mut load));
        Read { reading, missing }
    });
    read.await.map_err(|_| ApiError::internal("Reading the specification broke off."))
}

/// A document that the user supplied, or one from the server of the specification.
fn load(given: &Given, location: &str, runtime: &Handle) -> Result<Vec<u8>, String> {
    if let Some(text) = given.documents.get(location) {
        return Ok(text.clone().into_bytes());
    }
    if !is_address(location) {
        return Err(format!("{location} is a file beside the specification. Supply its text."));
    }
    let host = same_server(given, location);
    if host.is_none() && !given.fetch_references {
        return Err(format!("{location} is on another server. Supply its text, or allow fetching it."));
    }
    let fetcher = Fetcher::new(host.into_iter().collect(), LIMIT_BYTES + 1, FETCH);
    runtime.block_on(fetcher.fetch(location, &CancellationToken::new())).map(|page| page.bytes)
}

fn same_server(given: &Given, location: &str) -> Option<String> {
    let own = Url::parse(given.location.as_deref()?).ok()?;
    let other = Url::parse(location).ok()?;
    (given.source == Source::Url && own.origin() == other.origin())
        .then(|| own.host_str().map(str::to_owned))?
}

fn refused(unusable: &Unusable, missing: &[Missing]) -> ApiError {
    let first = unusable.first();
    let message = first.map_or("The specification cannot be used.", |problem| problem.message.as_str());
    let hint = first.map_or("Check the document.", |problem| problem.advice.as_str());
    let problems: Vec<_> = unusable.problems.iter().take(MOST_WARNINGS).map(shown_problem).collect();
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "specification", message)
        .hint(hint)
        .data(json!({"problems": problems, "missing": missing}))
}

fn shown_problem(problem: &Problem) -> SpecificationProblem {
    let kind = serde_json::to_value(problem.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
    let severity = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    SpecificationProblem {
        severity: severity.to_owned(),
        kind: kind.unwrap_or_default(),
        place: problem.place.to_string(),
        message: problem.message.clone(),
        advice: problem.advice.clone(),
    }
}

fn describe(given: &Given, reading: &Reading, missing: Vec<Missing>) -> Specification {
    let spec = &reading.spec;
    let format = serde_json::to_value(spec.format).ok().and_then(|format| format.as_str().map(str::to_owned));
    let title = spec.metadata.title.trim();
    Specification {
        name: given.name.clone(),
        source: given.source,
        format: format.unwrap_or_default(),
        title: if title.is_empty() { "API".to_owned() } else { title.to_owned() },
        version: spec.metadata.version.clone(),
        operations: spec.operation_count(),
        size: given.text.len(),
        warnings: reading.warnings.iter().take(MOST_WARNINGS).map(shown_problem).collect(),
        missing,
        servers: servers(given, spec),
        schemes: spec.security_schemes.iter().map(scheme).collect(),
    }
}

/// Addresses that can be called: variables filled in, relative ones against where the specification came from.
fn servers(given: &Given, spec: &Spec) -> Vec<ServerEntry> {
    let base = given.location.as_deref().filter(|_| given.source == Source::Url);
    let base = base.and_then(|location| Url::parse(location).ok());
    let mut found: Vec<ServerEntry> = Vec::new();
    let from_base_url = spec.metadata.base_url.iter().map(|url| (url.clone(), None));
    let from_servers = spec.servers.iter().map(|server| {
        let fill = |url: String, variable: &apiui::spec::ServerVariable| {
            url.replace(&format!("{{{}}}", variable.name), &variable.default)
        };
        (server.variables.iter().fold(server.url.clone(), fill), server.description.clone())
    });
    for (url, description) in from_servers.chain(from_base_url) {
        let absolute = match (Url::parse(&url), &base) {
            (Ok(absolute), _) => Some(absolute),
            (Err(_), Some(base)) => base.join(&url).ok(),
            (Err(_), None) => None,
        };
        let Some(absolute) = absolute.filter(|url| matches!(url.scheme(), "http" | "https")) else {
            continue;
        };
        let url = absolute.as_str().trim_end_matches('/').to_owned();
        if !url.contains(['{', '}']) && found.iter().all(|known| known.url != url) {
            found.push(ServerEntry { url, description });
        }
    }
    found.truncate(20);
    found
}

fn first_server(specification: &Specification) -> Option<BaseUrl> {
    let first = specification.servers.first()?;
    Some(BaseUrl {
        url: first.url.clone(),
        is_confirmed: false,
        from: BaseUrlSource::Specification,
        is_private: looks_private(&first.url),
    })
}

fn scheme(scheme: &SecurityScheme) -> Scheme {
    let flow = scheme.flows.as_ref().and_then(|flows| flows.get("authorizationCode"));
    let address = |name: &str| flow.and_then(|flow| flow[name].as_str()).map(str::to_owned);
    let scopes = flow.and_then(|flow| flow["scopes"].as_object()).into_iter().flatten();
    let kind = match (scheme.kind.as_str(), scheme.scheme.as_deref()) {
        ("apiKey", _) => "apiKey",
        ("http", Some("bearer")) => "bearer",
        ("http", Some("basic")) => "basic",
        ("oauth2", _) if flow.is_some() => "oauth2",
        // A token that was made elsewhere is a bearer token too.
        ("oauth2" | "openIdConnect", _) => "bearer",
        _ => "unsupported",
    };
    let place = scheme.location.as_ref().and_then(|place| serde_json::to_value(place).ok());
    Scheme {
        name: scheme.name.clone(),
        kind: kind.to_owned(),
        description: scheme.description.clone(),
        place: place.and_then(|place| place.as_str().map(str::to_owned)),
        parameter: scheme.parameter_name.clone(),
        authorization_url: address("authorizationUrl"),
        token_url: address("tokenUrl"),
        scopes: scopes
            .map(|(name, text)| Scope {
                name: name.clone(),
                description: text.as_str().unwrap_or_default().to_owned(),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_name_and_no_path() {
        for (given, expected) in [
            ("api.yaml", "api.yaml"),
            ("/home/ada/api.yaml", "api.yaml"),
            ("C:\\fakepath\\api.yaml", "api.yaml"),
            ("../", "specification"),
            ("a\u{1}b.json", "ab.json"),
        ] {
            assert_eq!(file_name(given), expected);
        }
    }

    #[test]
    fn messages_that_are_specifications() {
        assert!(looks_like_specification("https://api.test/openapi.json"));
        assert!(looks_like_specification("openapi: 3.0.0\ninfo:\n  title: x\n  version: '1'\npaths: {}"));
        assert!(looks_like_specification("type Query { books: [Book] } type Book { id: ID }"));
        for text in ["what is openapi: tell me", "see https://x.test please", "add a column", ""] {
            assert!(!looks_like_specification(text), "{text}");
        }
    }
}
