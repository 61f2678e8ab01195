//! From arguments to the exact request of a call.

use super::arguments::check_all;
use super::encode::{brackets, encoded, joined, path_text, query_pairs, text};
use super::{BODY, argument_name};
use crate::plan::{BodyForm, BodyKind, InputPlace, Operation, Plan, SchemeKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// The secret for a security scheme, by the index of the scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    pub scheme: usize,
    pub secret: String,
}

/// A request as it is sent. Secrets are in `headers` and `url` alone; `shown` has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    /// The request for people and models, without secrets.
    pub shown: String,
    /// The secrets in every form in which they are sent, to mask them in answers that repeat them.
    pub secrets: Vec<String>,
}

const MASK: &str = "•••";
const MOST_SHOWN: usize = 4_000;

/// The request of an operation with these arguments; or which argument does not fit.
pub fn request(
    plan: &Plan,
    index: usize,
    server: &str,
    arguments: &Value,
    credentials: &[Credential],
) -> Result<Request, String> {
    let operation = plan.operations.get(index).ok_or("There is no such operation.")?;
    let empty = Map::new();
    let given = match arguments {
        Value::Object(members) => members,
        Value::Null => &empty,
        _ => return Err("The arguments must be an object.".to_owned()),
    };
    check_all(plan, operation, given)?;
    let mut parts = Parts { path: operation.path.clone(), ..Parts::default() };
    for header in &plan.headers {
        parts.headers.push((header.name.clone(), header.text.clone()));
    }
    let mut variables = Map::new();
    for input in &operation.inputs {
        let Some(value) = given.get(&argument_name(operation, input)) else { continue };
        match input.place {
            InputPlace::Path => parts.fill(&input.name, &path_text(input, value))?,
            InputPlace::Query => parts.query.extend(query_pairs(input, value)),
            InputPlace::Header => parts.headers.push((input.name.clone(), header_text(&text(value))?)),
            InputPlace::Cookie => {
                parts.cookies.push(format!("{}={}", encoded(&input.name), encoded(&text(value))))
            }
            InputPlace::Variable => {
                variables.insert(input.name.clone(), value.clone());
            }
        }
    }
    refuse_empty_choice(operation, &variables, given.get(BODY))?;
    let body = if operation.query_text.is_empty() {
        operation.body.as_ref().zip(given.get(BODY)).map(|(form, value)| body(form, value)).transpose()?
    } else {
        let query = json!({"query": operation.query_text, "variables": variables});
        Some(("application/json".to_owned(), query.to_string()))
    };
    if let Some((kind, _)) = &body {
        parts.headers.push(("Content-Type".to_owned(), kind.clone()));
    }
    parts.finish(plan, operation, server, body.map(|(_, text)| text), credentials)
}

#[derive(Default)]
struct Parts {
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    cookies: Vec<String>,
}

impl Parts {
    fn fill(&mut self, name: &str, text: &str) -> Result<(), String> {
        // A part that is empty or leads elsewhere would be another address.
        if text.is_empty() || matches!(text, "." | "..") {
            return Err(format!("“{name}” is a part of the address and must not be empty."));
        }
        self.path = self.path.replace(&format!("{{{name}}}"), text);
        Ok(())
    }

    fn finish(
        mut self,
        plan: &Plan,
        operation: &Operation,
        server: &str,
        body: Option<String>,
        credentials: &[Credential],
    ) -> Result<Request, String> {
        if self.path.contains(['{', '}']) {
            return Err("A part of the address is missing.".to_owned());
        }
        let (mut hidden_headers, mut hidden_query) = (Vec::new(), Vec::new());
        for credential in needed(operation, credentials) {
            secret_parts(plan, credential, &mut hidden_headers, &mut hidden_query, &mut self.cookies);
        }
        let address = |pairs: &[(String, String)]| {
            let query = joined(pairs);
            let mark = if self.path.contains('?') { "&" } else { "?" };
            let query = if query.is_empty() { query } else { format!("{mark}{query}") };
            format!("{}{}{query}", server.trim_end_matches('/'), self.path)
        };
        let masked: Vec<(String, String)> =
            hidden_query.iter().map(|(name, _): &(String, String)| (name.clone(), MASK.to_owned())).collect();
        let all: Vec<(String, String)> = self.query.iter().cloned().chain(hidden_query).collect();
        let shown: Vec<(String, String)> = self.query.iter().cloned().chain(masked).collect();
        let shown_url = address(&shown).replace(&encoded(MASK), MASK);
        let url = address(&all);
        let method =
            if operation.query_text.is_empty() { operation.method.clone() } else { "POST".to_owned() };
        if !self.cookies.is_empty() {
            hidden_headers.push(("Cookie".to_owned(), self.cookies.join("; ")));
        }
        let shown =
            shown_text(&format!("{method} {shown_url}"), &self.headers, &hidden_headers, body.as_deref());
        let words =
            hidden_headers.iter().filter_map(|(_, value)| value.split(' ').next_back().map(str::to_owned));
        let used = needed(operation, credentials).into_iter().map(|one| one.secret.clone());
        let secrets: Vec<String> = used.flat_map(|secret| [encoded(&secret), secret]).chain(words).collect();
        let headers = self.headers.into_iter().chain(hidden_headers).collect();
        Ok(Request { method, url, headers, body, shown, secrets })
    }
}

/// A request as people read it, without the values of secret headers.
fn shown_text(
    first: &str,
    headers: &[(String, String)],
    hidden: &[(String, String)],
    body: Option<&str>,
) -> String {
    let mut lines = vec![first.to_owned()];
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    lines.extend(hidden.iter().map(|(name, _)| format!("{name}: {MASK}")));
    if let Some(body) = body {
        lines.extend([String::new(), body.to_owned()]);
    }
    let mut text = lines.join("\n");
    if text.len() > MOST_SHOWN {
        text.truncate(text.floor_char_boundary(MOST_SHOWN));
        text.push('…');
    }
    text
}

/// The credentials of the first alternative that is there as a whole.
fn needed<'c>(operation: &Operation, given: &'c [Credential]) -> Vec<&'c Credential> {
    let find = |scheme: &usize| given.iter().find(|one| one.scheme == *scheme);
    let whole = |schemes: &Vec<usize>| schemes.iter().map(find).collect::<Option<Vec<_>>>();
    operation.security.iter().find_map(whole).unwrap_or_default()
}

fn secret_parts(
    plan: &Plan,
    credential: &Credential,
    headers: &mut Vec<(String, String)>,
    query: &mut Vec<(String, String)>,
    cookies: &mut Vec<String>,
) {
    let Some(scheme) = plan.schemes.get(credential.scheme) else { return };
    let secret = credential.secret.clone();
    let mut authorization = |text: String| headers.push(("Authorization".to_owned(), text));
    match (scheme.kind, scheme.place) {
        (SchemeKind::ApiKey, Some(InputPlace::Query)) => query.push((scheme.parameter.clone(), secret)),
        (SchemeKind::ApiKey, Some(InputPlace::Cookie)) => {
            cookies.push(format!("{}={}", scheme.parameter, encoded(&secret)));
        }
        (SchemeKind::ApiKey, _) => headers.push((scheme.parameter.clone(), secret)),
        // `user:password`, or the header as it is.
        (SchemeKind::Basic, _) if secret.contains(':') => {
            authorization(format!("Basic {}", STANDARD.encode(secret)));
        }
        (SchemeKind::Basic, _) => authorization(format!("Basic {secret}")),
        (SchemeKind::Http, _) => authorization(secret),
        _ => authorization(format!("Bearer {secret}")),
    }
}

/// What says which rows a write is about must not be empty.
fn refuse_empty_choice(
    operation: &Operation,
    variables: &Map<String, Value>,
    body: Option<&Value>,
) -> Result<(), String> {
    let is_graph = !operation.query_text.is_empty();
    for selector in operation.selectors.iter().filter(|_| operation.writes) {
        let mut value = if is_graph { selector.first().and_then(|name| variables.get(name)) } else { body };
        for name in selector.iter().skip(usize::from(is_graph)) {
            value = value.and_then(|value| value.get(name));
        }
        if value.is_none_or(is_empty) {
            let name = selector.join(".");
            return Err(format!(
                "“{name}” says which records are changed, and it is empty: that may mean all of them."
            ));
        }
    }
    Ok(())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(all) => all.is_empty() || all.iter().any(is_empty),
        Value::Object(members) => members.is_empty() || members.values().any(is_empty),
        _ => false,
    }
}

fn header_text(text: &str) -> Result<String, String> {
    if text.contains(|c: char| c.is_control()) {
        return Err("A header cannot hold control characters.".to_owned());
    }
    Ok(text.to_owned())
}

fn body(form: &BodyForm, value: &Value) -> Result<(String, String), String> {
    let text = match form.kind {
        BodyKind::Json => value.to_string(),
        BodyKind::Form => {
            let pairs = value.as_object().into_iter().flatten().flat_map(|(name, one)| match form.brackets {
                true => brackets(name, one, false),
                false => match one {
                    Value::Array(all) => all.iter().map(|one| (name.clone(), text(one))).collect(),
                    one => vec![(name.clone(), text(one))],
                },
            });
            joined(&pairs.collect::<Vec<_>>())
        }
        BodyKind::Text => text(value),
        BodyKind::Multipart | BodyKind::File => {
            return Err(
                "This operation takes files or a multipart form, which cannot be sent here.".to_owned()
            );
        }
    };
    Ok((form.content_type.clone(), text))
}
