//! `dragoman mcp-server --spec`: the operations of an API as two tools, one that finds them and one that calls them.
//!
//! Owns the arguments and results of both tools and the requests that leave. Asking a person is the program's part. Invariants: a
//! call that changes data is never sent without `Consent`; credentials are in requests alone, never in a text for a model;
//! requests go to one server, without redirects, and into a private network only where the user named the server.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use apiui::plan::{Options, PagingStyle, Plan, plan};
use apiui::tool::{self, Credential, Request};
use domain::Failure;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Method, Url, redirect};
use serde_json::{Value, json};
use tools::web::address::is_public;

use crate::spec;

const TIMEOUT: Duration = Duration::from_secs(60);
const LARGEST_ANSWER: usize = 4 << 20;
/// What a model gets of an answer.
const LONGEST_TEXT: usize = 20_000;
const MOST_FOUND: u64 = 20;
const MASK: &str = "•••";
/// A shorter secret is not looked for in answers: it would be found everywhere.
const SHORTEST_MASKED: usize = 6;

/// Which API, where it is, and the secrets for it.
pub struct ApiToolsOptions {
    pub spec: String,
    pub server: Option<String>,
    /// By the names of the specification's security schemes; an empty name means the only one.
    pub credentials: Vec<(String, String)>,
    pub fetch_refs: bool,
}

/// The operations of one API.
pub struct ApiTools {
    plan: Plan,
    server: String,
    /// The user named the server, so it may be in a private network.
    is_named: bool,
    credentials: Vec<Credential>,
}

/// A person has agreed to this call, or the call changes nothing.
pub struct Consent(());

impl Consent {
    /// After a person has said yes to the request as it is shown.
    pub fn given_by_a_person() -> Self {
        Self(())
    }
}

/// A call that is ready to be sent.
pub struct PreparedCall {
    operation: usize,
    arguments: Value,
    request: Request,
    is_dry: bool,
    writes: bool,
}

impl PreparedCall {
    /// The exact request, without secrets.
    pub fn shown(&self) -> &str {
        &self.request.shown
    }

    /// The consent of a call that needs none: it changes nothing.
    pub fn needs_no_person(&self) -> Option<Consent> {
        (!self.writes).then_some(Consent(()))
    }

    /// Nothing is sent: the request is only shown.
    pub fn is_dry(&self) -> bool {
        self.is_dry
    }
}

impl ApiTools {
    pub fn open(options: &ApiToolsOptions) -> Result<Self, Failure> {
        let bytes = spec::bytes_of(&options.spec)?;
        let reading = spec::read(&bytes, &options.spec, options.fetch_refs).map_err(|unusable| {
            let lines = unusable.problems.iter().take(5).map(|problem| spec::line(&options.spec, problem));
            Failure::user(lines.collect::<Vec<_>>().join("\n"))
        })?;
        let plan = plan(&reading.spec, &Options { server: options.server.clone(), ..Options::default() });
        let server = options.server.clone().or_else(|| plan.servers.first().map(|one| one.url.clone()));
        let server = server.filter(|server| spec::is_address(server)).ok_or_else(|| {
            Failure::user("The specification does not say where its API is.")
                .hint("Name it: --server https://api.example.com")
        })?;
        let credentials = credentials(&plan, &options.credentials)?;
        Ok(Self { plan, server, is_named: options.server.is_some(), credentials })
    }

    /// The two tools, as MCP has them. However large the API is, there are no more.
    pub fn definitions(&self) -> Vec<Value> {
        let title = &self.plan.title;
        let search = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the operation does, in a few words. Empty: the first ones."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND},
            },
        });
        let call = json!({
            "type": "object",
            "properties": {
                "operation": {"type": "string", "description": "As search_operations names it, for example `GET /orders`."},
                "arguments": {"type": "object", "description": "As search_operations describes them."},
                "dry_run": {"type": "boolean", "description": "Show the exact request and send nothing."},
            },
            "required": ["operation"],
        });
        vec![
            json!({"name": "search_operations",
                "description": format!("Finds operations of the API “{title}” ({} in all) with the arguments that they take.",
                    self.plan.operations.len()),
                "inputSchema": search, "annotations": {"readOnlyHint": true, "openWorldHint": false}}),
            json!({"name": "call_operation",
                "description": format!("Calls an operation of the API “{title}”. One that changes data is sent only after a person \
                    has seen the exact request and agreed."),
                "inputSchema": call, "annotations": {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true}}),
        ]
    }

    pub fn search(&self, arguments: &Value) -> Value {
        let query = arguments["query"].as_str().unwrap_or_default();
        let limit = arguments["limit"].as_u64().unwrap_or(8).clamp(1, MOST_FOUND) as usize;
        let found = tool::search(&self.plan, query, limit);
        let operations: Vec<Value> =
            found.into_iter().map(|index| tool::describe(&self.plan, index)).collect();
        json!({"operations": operations, "of": self.plan.operations.len()})
    }

    /// The request that the arguments mean; or why there is none.
    pub fn prepare(&self, arguments: &Value) -> Result<PreparedCall, Failure> {
        let name = arguments["operation"].as_str().unwrap_or_default();
        let index = tool::find(&self.plan, name).ok_or_else(|| {
            let near: Vec<String> = tool::search(&self.plan, name, 5)
                .into_iter()
                .map(|index| self.plan.operations[index].signature.clone())
                .collect();
            let failure = Failure::user(format!("The API has no operation “{name}”."));
            if near.is_empty() { failure } else { failure.hint(format!("There are: {}.", near.join(", "))) }
        })?;
        let given = arguments.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let request =
            tool::request(&self.plan, index, &self.server, &given, &self.credentials).map_err(|problem| {
                Failure::user(problem).hint("search_operations says which arguments it takes.")
            })?;
        let is_dry = arguments["dry_run"].as_bool().unwrap_or(false);
        let writes = self.plan.operations[index].writes;
        Ok(PreparedCall { operation: index, arguments: given, request, is_dry, writes })
    }

    /// Sends a call and tells its answer. The second value says whether the API reported an error.
    pub async fn send(&self, call: &PreparedCall, _consent: Consent) -> Result<(Value, bool), Failure> {
        let sent = tokio::time::timeout(TIMEOUT, self.exchange(&call.request)).await;
        let (status, kind, bytes, is_cut) = sent.map_err(|_| {
            Failure::provider(format!("The API gave no answer within {} s.", TIMEOUT.as_secs()))
        })??;
        let text = masked(&String::from_utf8_lossy(&bytes), &call.request.secrets);
        let body: Option<Value> = if is_cut { None } else { serde_json::from_str(&text).ok() };
        let mut told = json!({"status": status, "contentType": kind});
        if let Some(next) = body.as_ref().and_then(|body| self.next_page(call, body)) {
            told["nextPage"] = next;
        }
        let end = text.floor_char_boundary(LONGEST_TEXT);
        if end < text.len() || is_cut {
            told["cutAfterCharacters"] = json!(end);
            told["body"] = json!(text[..end]);
        } else {
            told["body"] = body.unwrap_or_else(|| json!(text));
        }
        Ok((told, status >= 400))
    }

    async fn exchange(&self, request: &Request) -> Result<(u16, String, Vec<u8>, bool), Failure> {
        let url = Url::parse(&request.url)
            .map_err(|error| Failure::user(format!("The address is wrong: {error}.")))?;
        self.check_host(&url)?;
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| Failure::user(format!("“{}” is no method.", request.method)))?;
        let mut builder = self.client()?.request(method, url);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        let unreachable = |error: reqwest::Error| {
            // The address may hold a secret.
            Failure::provider(masked(
                &format!("The API cannot be reached: {}.", error.without_url()),
                &request.secrets,
            ))
        };
        let mut response = builder.send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        let kind =
            response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.to_owned();
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&part);
            if bytes.len() > LARGEST_ANSWER {
                bytes.truncate(LARGEST_ANSWER);
                return Ok((status, kind, bytes, true));
            }
        }
        Ok((status, kind, bytes, false))
    }

    fn client(&self) -> Result<Client, Failure> {
        tls::install();
        let builder = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(Duration::from_secs(10))
            .user_agent(concat!("dragoman/", env!("CARGO_PKG_VERSION")));
        let builder = if self.is_named { builder } else { builder.dns_resolver(Arc::new(PublicOnly)) };
        builder.build().map_err(|error| Failure::internal(format!("No request can be sent: {error}.")))
    }

    /// An address in figures is not resolved, so it is looked at here.
    fn check_host(&self, url: &Url) -> Result<(), Failure> {
        domain::hosts::check_address(url.as_str())?;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_inside = host.parse::<IpAddr>().is_ok_and(|address| !is_public(address));
        if is_inside && !self.is_named {
            return Err(Failure::user(format!(
                "The specification names {host}, which is in a private network."
            ))
            .hint("Name the server yourself if you know it: --server"));
        }
        Ok(())
    }

    /// The arguments of the same call for the next page, where the list is known to have one.
    fn next_page(&self, call: &PreparedCall, body: &Value) -> Option<Value> {
        let mut lists = self.plan.resources.iter().filter_map(|resource| resource.list.as_ref());
        let list = lists.find(|list| list.operation == call.operation)?;
        let paging = list.paging.as_ref().filter(|paging| !paging.parameter.is_empty())?;
        let mut result = self.plan.operations.get(call.operation)?.result.iter();
        let root = result.try_fold(body, |value, name| value.get(name))?;
        let items = list.items.iter().try_fold(root, |value, name| value.get(name))?.as_array()?;
        if items.is_empty() {
            return None;
        }
        let given = |name: &str| call.arguments.get(name).and_then(Value::as_u64);
        let next = match paging.style {
            PagingStyle::Page => json!(given(&paging.parameter).unwrap_or(paging.first.into()) + 1),
            PagingStyle::Offset => json!(given(&paging.parameter).unwrap_or(0) + items.len() as u64),
            PagingStyle::Cursor | PagingStyle::Connection => {
                let more = paging.more.iter().try_fold(root, |value, name| value.get(name));
                if !paging.more.is_empty() && more == Some(&Value::Bool(false)) {
                    return None;
                }
                let cursor = paging.next.iter().try_fold(root, |value, name| value.get(name));
                let sent = cursor.filter(|_| !paging.next.is_empty());
                let last = items.last().and_then(|item| item.get(&paging.from_last));
                sent.or(last).filter(|value| value.is_string() || value.is_number())?.clone()
            }
            PagingStyle::Link => return None,
        };
        let mut arguments = call.arguments.as_object().cloned().unwrap_or_default();
        arguments.insert(paging.parameter.clone(), next);
        Some(Value::Object(arguments))
    }
}

/// The text without the secrets that were sent.
fn masked(text: &str, secrets: &[String]) -> String {
    let long = secrets.iter().filter(|secret| secret.len() >= SHORTEST_MASKED);
    long.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK))
}

/// Resolves names to addresses of the public internet alone.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let addresses: Vec<_> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            // One that leads inside is enough to distrust the name.
            if addresses.iter().any(|address| !is_public(address.ip())) {
                let told = format!("{host} is in a private network; name the server with --server");
                return Err(std::io::Error::other(told).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// The secrets by the indexes of the plan's schemes.
fn credentials(plan: &Plan, given: &[(String, String)]) -> Result<Vec<Credential>, Failure> {
    let names: Vec<&str> = plan.schemes.iter().map(|scheme| scheme.name.as_str()).collect();
    let find = |name: &str| match plan.schemes.as_slice() {
        [_] if name.is_empty() => Some(0),
        all => all.iter().position(|scheme| scheme.name == name),
    };
    let credential = |(name, secret): &(String, String)| {
        let scheme = find(name).ok_or_else(|| {
            Failure::user(format!("The specification has no security scheme “{name}”.")).hint(format!(
                "It has: {}.",
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            ))
        })?;
        Ok(Credential { scheme, secret: secret.clone() })
    };
    given.iter().map(credential).collect()
}
