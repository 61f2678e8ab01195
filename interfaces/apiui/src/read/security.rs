//! Security schemes and requirements of OpenAPI 3 and Swagger 2.0.
//!
//! Owns the mapping of every scheme type. Holds no credential, ever.

use super::value::{entries, list, text, texts};
use crate::spec::{Location, Requirement, SecurityScheme};
use serde_json::{Map, Value, json};

pub(super) fn schemes(map: Option<&Map<String, Value>>, root: &Value) -> Vec<SecurityScheme> {
    map.into_iter().flatten().filter_map(|(name, value)| scheme(name, resolve(value, root))).collect()
}

/// The requirements of an operation, or of the whole API: alternatives of schemes needed together.
pub(super) fn requirements(object: &Value) -> Option<Vec<Vec<Requirement>>> {
    let given = object.get("security")?.as_array()?;
    Some(given.iter().filter_map(Value::as_object).map(requirement).collect())
}

/// Every scheme that a list of alternatives names, once.
pub(super) fn names(alternatives: &[Vec<Requirement>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for requirement in alternatives.iter().flatten() {
        if !names.contains(&requirement.scheme) {
            names.push(requirement.scheme.clone());
        }
    }
    names
}

pub(super) fn location(name: &str) -> Location {
    match name {
        "path" => Location::Path,
        "header" => Location::Header,
        "cookie" => Location::Cookie,
        _ => Location::Query,
    }
}

fn requirement(alternative: &Map<String, Value>) -> Vec<Requirement> {
    let one = |(scheme, scopes): (&String, &Value)| Requirement {
        scheme: scheme.clone(),
        scopes: scopes
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
    };
    alternative.iter().map(one).collect()
}

fn resolve<'v>(value: &'v Value, root: &'v Value) -> &'v Value {
    let pointer = value.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(value)
}

fn scheme(name: &str, value: &Value) -> Option<SecurityScheme> {
    let given = text(value, "type")?;
    let mut scheme = SecurityScheme {
        name: name.to_owned(),
        description: text(value, "description"),
        location: text(value, "in").map(|name| location(&name)),
        ..SecurityScheme::default()
    };
    match given.as_str() {
        "apiKey" => scheme.parameter_name = text(value, "name"),
        "basic" => scheme.scheme = Some("basic".to_owned()),
        "http" => scheme.scheme = text(value, "scheme").map(|scheme| scheme.to_ascii_lowercase()),
        "oauth2" => scheme.flows = Some(flows(value)),
        "openIdConnect" => scheme.open_id_connect_url = text(value, "openIdConnectUrl"),
        _ => {}
    }
    scheme.kind = if given == "basic" { "http".to_owned() } else { given };
    Some(scheme)
}

/// OAuth flows in the form of OpenAPI 3, from either version.
fn flows(value: &Value) -> Value {
    if let Some(flows) = entries(value, "flows") {
        return Value::Object(flows.clone());
    }
    let name = match text(value, "flow").unwrap_or_default().as_str() {
        "application" => "clientCredentials",
        "accessCode" => "authorizationCode",
        "password" => "password",
        _ => "implicit",
    };
    let mut flow = Map::new();
    for key in ["authorizationUrl", "tokenUrl"] {
        if let Some(address) = text(value, key) {
            flow.insert(key.to_owned(), Value::String(address));
        }
    }
    flow.insert("scopes".to_owned(), value.get("scopes").cloned().unwrap_or_else(|| json!({})));
    let mut flows = Map::new();
    flows.insert(name.to_owned(), Value::Object(flow));
    Value::Object(flows)
}

/// Names of the tags of a document, as strings or as objects with a name.
pub(super) fn tags(root: &Value) -> Vec<String> {
    let named: Vec<String> = list(root, "tags").iter().filter_map(|tag| text(tag, "name")).collect();
    if named.is_empty() { texts(root, "tags") } else { named }
}
