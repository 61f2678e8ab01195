//! Operations, servers, security schemes and webhooks of the plan.
//!
//! Owns how one operation is called and named. How operations belong together is in `resources`.

use super::inputs::Inputs;
use super::models::Models;
use super::words::{humanize, line, markdown, shorten_note};
use super::{
    BodyForm, BodyKind, Flow, Incoming, Input, InputKind, InputPlace, Operation, Scheme, SchemeKind,
    document, servers::Servers,
};
use crate::spec::{Body, Endpoint, GraphOperation, Location, Model, SecurityScheme, Spec, Webhook};
use serde_json::Value;
use std::collections::HashMap;

/// Every operation of the specification, in its order: endpoints, queries, mutations, subscriptions.
pub(super) fn operations<'s>(
    spec: &'s Spec,
    models: &'s Models<'s>,
    inputs: &mut Inputs<'s>,
    servers: &mut Servers,
) -> Vec<Operation> {
    let schemes: HashMap<&str, usize> = spec
        .security_schemes
        .iter()
        .enumerate()
        .map(|(index, scheme)| (scheme.name.as_str(), index))
        .collect();
    let mut operations: Vec<Operation> =
        spec.endpoints.iter().map(|endpoint| rest(endpoint, &schemes, models, inputs, servers)).collect();
    for operation in spec.queries.iter().chain(&spec.mutations).chain(&spec.subscriptions) {
        operations.push(graph(operation, models, inputs));
    }
    operations
}

pub(super) fn schemes(spec: &Spec) -> Vec<Scheme> {
    spec.security_schemes.iter().map(scheme).collect()
}

pub(super) fn incoming(webhooks: &[Webhook], models: &Models) -> Vec<Incoming> {
    let one = |webhook: &Webhook| {
        let body = webhook.body.as_ref().and_then(|body| models.object(body));
        let fields = body.into_iter().flat_map(|body| body.properties.keys()).take(30);
        Incoming {
            name: line(&webhook.name, 120),
            method: webhook.method.clone(),
            address: line(webhook.address.as_deref().unwrap_or_default(), 300),
            note: shorten_note(webhook.summary.as_deref().or(webhook.description.as_deref()), 240),
            fields: fields.map(|name| line(name, 80)).collect(),
        }
    };
    webhooks.iter().take(2_000).map(one).collect()
}

fn rest<'s>(
    endpoint: &'s Endpoint,
    schemes: &HashMap<&str, usize>,
    models: &'s Models<'s>,
    inputs: &mut Inputs<'s>,
    servers: &mut Servers,
) -> Operation {
    let mut operation = Operation {
        signature: format!("{} {}", endpoint.method, endpoint.path),
        title: title(endpoint),
        method: endpoint.method.clone(),
        path: endpoint.path.clone(),
        note: markdown(endpoint.description.as_deref(), 600),
        deprecated: endpoint.deprecated,
        writes: !matches!(endpoint.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE" | "QUERY")
            || super::rpc::writes(&endpoint.path)
            || super::agreeing::destroys(endpoint),
        destroys: super::agreeing::destroys(endpoint),
        server: endpoint.servers.first().and_then(|server| servers.index(server)),
        incoming: incoming(&endpoint.callbacks, models),
        in_parts: in_parts(endpoint),
        answers: super::answers::answers(endpoint, models),
        ..Operation::default()
    };
    if operation.note == operation.title {
        operation.note = String::new();
    }
    operation.inputs =
        endpoint.parameters.iter().map(|parameter| inputs.parameter(parameter, false)).collect();
    operation.inputs.retain(|input| !is_forbidden_header(input));
    operation.body = body(endpoint, inputs);
    operation.security = match &endpoint.security {
        Some(alternatives) => {
            let known = |name: &str| schemes.get(name).copied();
            let one =
                |all: &Vec<crate::spec::Requirement>| all.iter().filter_map(|r| known(&r.scheme)).collect();
            alternatives.iter().map(one).collect()
        }
        None => {
            let names = endpoint.security_requirements.iter();
            names.filter_map(|name| schemes.get(name.as_str()).map(|index| vec![*index])).collect()
        }
    };
    operation
}

/// Whether the answer comes in parts that are shown as they come.
fn in_parts(endpoint: &Endpoint) -> bool {
    let media = super::models::success(endpoint).and_then(|response| response.content_type.as_deref());
    media.is_some_and(|media| {
        let media = media.to_ascii_lowercase();
        ["text/event-stream", "application/x-ndjson", "application/jsonl", "application/json-seq"]
            .iter()
            .any(|one| media.starts_with(one))
    })
}

fn graph<'s>(operation: &'s GraphOperation, models: &'s Models<'s>, inputs: &mut Inputs<'s>) -> Operation {
    let args = || operation.args.iter().filter(|arg| crate::read::host::is_graphql_name(&arg.name));
    Operation {
        signature: format!("{} {}", operation.kind, operation.name),
        title: humanize(&operation.name),
        method: "POST".to_owned(),
        note: markdown(operation.description.as_deref(), 600),
        deprecated: operation.deprecated,
        writes: operation.kind == "mutation",
        destroys: operation.kind == "mutation"
            && (super::roles::is_removal(&operation.name) || super::selecting::is_bulk(models, operation)),
        inputs: args().map(|arg| inputs.parameter(arg, true)).collect(),
        selectors: if operation.kind == "mutation" {
            super::selecting::guarded(models, operation)
        } else {
            Vec::new()
        },
        in_parts: operation.kind == "subscription",
        query_text: document::document(operation, models),
        result: vec!["data".to_owned(), operation.name.clone()],
        ..Operation::default()
    }
}

fn title(endpoint: &Endpoint) -> String {
    if let Some(summary) = &endpoint.summary {
        let summary = shorten_note(Some(summary), 100);
        let summary = summary.trim_end_matches('.');
        if !summary.is_empty() {
            return summary.to_owned();
        }
    }
    match &endpoint.operation_id {
        Some(id) => humanize(id),
        None => unnamed(&endpoint.method, &endpoint.path),
    }
}

/// The title of an operation that has no name.
pub(super) fn unnamed(method: &str, path: &str) -> String {
    line(&format!("{method} {path}"), 100)
}

/// Browsers and hosts set these themselves; credentials have their own panel.
fn is_forbidden_header(input: &Input) -> bool {
    let name = input.name.to_ascii_lowercase();
    input.place == InputPlace::Header
        && matches!(
            name.as_str(),
            "accept" | "content-type" | "authorization" | "content-length" | "host" | "user-agent"
        )
}

fn body<'s>(endpoint: &'s Endpoint, inputs: &mut Inputs<'s>) -> Option<BodyForm> {
    let chosen = endpoint.bodies.iter().min_by_key(|body| body_rank(body))?;
    let kind = body_kind(chosen);
    let mut input = inputs.input("", &chosen.model, 0);
    inputs.add_examples(&mut input, chosen.model.example.as_ref());
    match kind {
        BodyKind::File => {
            input = Input { kind: InputKind::File, note: input.note, ..Input::default() };
        }
        BodyKind::Text => {
            input = Input {
                kind: InputKind::Multiline,
                note: input.note,
                example: input.example,
                ..Input::default()
            };
        }
        _ => {}
    }
    input.required = endpoint.body_required;
    Some(BodyForm {
        kind,
        brackets: chosen.brackets,
        content_type: line(&chosen.content_type, 120),
        required: endpoint.body_required,
        input: Box::new(input),
        server_set: Vec::new(),
    })
}

fn media(body: &Body) -> String {
    body.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// JSON first: it says everything. A form that can carry a file comes before one that cannot.
fn body_rank(body: &Body) -> u8 {
    let has_file = body.model.properties.values().any(|property| property.kind == crate::spec::Kind::File);
    match body_kind(body) {
        BodyKind::Multipart if has_file => 0,
        // Merging is what a form of changes means; a list of patch operations is written by hand only.
        BodyKind::Json if media(body) == "application/json-patch+json" => 4,
        BodyKind::Json if media(body) == "application/merge-patch+json" => 0,
        BodyKind::Json => 1,
        BodyKind::Multipart => 2,
        BodyKind::Form => 3,
        BodyKind::Text => 4,
        BodyKind::File => 5,
    }
}

fn body_kind(body: &Body) -> BodyKind {
    let media = media(body);
    if media.contains("json") || media == "*/*" || media == "application/*" || media.is_empty() {
        BodyKind::Json
    } else if media.starts_with("multipart/") {
        BodyKind::Multipart
    } else if media == "application/x-www-form-urlencoded" {
        BodyKind::Form
    } else if media.starts_with("text/")
        || media.contains("xml")
        || media.contains("yaml")
        || media.contains("graphql")
    {
        BodyKind::Text
    } else {
        BodyKind::File
    }
}

fn scheme(scheme: &SecurityScheme) -> Scheme {
    let http = scheme.scheme.as_deref().unwrap_or_default();
    let kind = match (scheme.kind.as_str(), http) {
        ("http", "basic") => SchemeKind::Basic,
        ("http", "bearer") => SchemeKind::Bearer,
        ("http", "") => SchemeKind::Bearer,
        ("http", _) => SchemeKind::Http,
        ("oauth2", _) => SchemeKind::Oauth2,
        ("openIdConnect", _) => SchemeKind::OpenIdConnect,
        ("mutualTLS", _) => SchemeKind::MutualTls,
        _ => SchemeKind::ApiKey,
    };
    let place = match scheme.location {
        Some(Location::Query) => InputPlace::Query,
        Some(Location::Cookie) => InputPlace::Cookie,
        _ => InputPlace::Header,
    };
    let parameter = match kind {
        SchemeKind::ApiKey => scheme.parameter_name.clone().unwrap_or_else(|| assumed_key_name(&scheme.name)),
        SchemeKind::Http => http.to_owned(),
        _ => String::new(),
    };
    Scheme {
        name: line(&scheme.name, 120),
        kind,
        place: (kind == SchemeKind::ApiKey).then_some(place),
        parameter: line(&parameter, 120),
        note: shorten_note(scheme.description.as_deref(), 240),
        flows: flows(scheme.flows.as_ref()),
    }
}

/// A host's form has no name for the header; a scheme called like a header is one.
fn assumed_key_name(name: &str) -> String {
    if name.contains('-') && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        name.to_owned()
    } else {
        "X-API-Key".to_owned()
    }
}

fn flows(flows: Option<&Value>) -> Vec<Flow> {
    let text = |flow: &Value, key: &str| {
        flow.get(key).and_then(Value::as_str).map(|text| line(text, 300)).unwrap_or_default()
    };
    let one = |(kind, flow): (&String, &Value)| Flow {
        kind: line(kind, 40),
        authorization_url: text(flow, "authorizationUrl"),
        token_url: text(flow, "tokenUrl"),
        scopes: flow
            .get("scopes")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .take(200)
            .map(|(scope, _)| line(scope, 120))
            .collect(),
    };
    flows
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, flow)| flow.is_object())
        .take(10)
        .map(one)
        .collect()
}

/// For the planners of lists: the answer of an operation.
pub(super) fn answer(spec: &Spec, index: usize) -> Option<&Model> {
    match spec.endpoints.get(index) {
        Some(endpoint) => super::models::success(endpoint)?.schema.as_ref(),
        None => {
            let mut index = index.checked_sub(spec.endpoints.len())?;
            for part in [&spec.queries, &spec.mutations, &spec.subscriptions] {
                match part.get(index) {
                    Some(operation) => return Some(&operation.return_type),
                    None => index -= part.len(),
                }
            }
            None
        }
    }
}
