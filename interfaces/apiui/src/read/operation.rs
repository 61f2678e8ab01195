//! One operation of OpenAPI 3 or Swagger 2.0: parameters, bodies, responses, callbacks.
//!
//! Owns what differs between the two only where it is small; Swagger's body and form parameters are in
//! `swagger2`. Knows nothing of how operations are grouped or shown.

use super::dialect::Dialect;
use super::schema::Schemas;
use super::value::{entries, flag, list, text, text_of};
use super::{security, swagger2};
use crate::spec::{Body, Endpoint, Kind, Location, Model, Parameter, Response, ResponseLink, Webhook};
use indexmap::IndexMap;
use serde_json::{Map, Value};

pub(super) const METHODS: [&str; 9] =
    ["get", "post", "put", "patch", "delete", "head", "options", "trace", "query"];

/// What an operation takes over from its surroundings.
pub(super) struct Context<'d> {
    pub dialect: Dialect,
    pub root: &'d Value,
    pub path: &'d str,
    pub shared_parameters: &'d [Value],
}

/// Reads one operation. The flag says that it rests on a reference that leads nowhere.
pub(super) fn read<'d>(
    schemas: &mut Schemas<'d>,
    context: &Context<'d>,
    method: &str,
    value: &'d Value,
) -> (Endpoint, bool) {
    let broken_before = schemas.broken;
    let mut endpoint = Endpoint {
        path: context.path.to_owned(),
        method: method.to_ascii_uppercase(),
        operation_id: text(value, "operationId"),
        summary: text(value, "summary"),
        description: text(value, "description"),
        tag: list(value, "tags").iter().find_map(text_of),
        deprecated: flag(value, "deprecated"),
        ..Endpoint::default()
    };
    let mut raw = raw_parameters(schemas, context.shared_parameters, value);
    if context.dialect == Dialect::Swagger2 {
        swagger2::bodies(schemas, context.root, value, &mut raw, &mut endpoint);
    } else {
        request_body(schemas, value, &mut endpoint);
    }
    endpoint.parameters =
        raw.into_iter().filter_map(|raw| parameter(schemas, raw, context.dialect)).collect();
    complete_path_parameters(&mut endpoint);
    let broken = schemas.broken > broken_before;
    endpoint.request_body = preferred(&endpoint.bodies).map(|body| body.model.clone());
    endpoint.responses = responses(schemas, context, value);
    let security = security::requirements(value).or_else(|| security::requirements(context.root));
    endpoint.security_requirements = security.as_deref().map(security::names).unwrap_or_default();
    endpoint.security = security;
    endpoint.callbacks = callbacks(schemas, value);
    endpoint.servers = super::dialect::servers(value);
    // A list makes room for four at first, and most have one: that is half of the memory of a large specification.
    endpoint.parameters.shrink_to_fit();
    endpoint.bodies.shrink_to_fit();
    endpoint.responses.shrink_to_fit();
    (endpoint, broken)
}

/// The body that a form is made for: JSON, then forms, then anything.
pub(super) fn preferred(bodies: &[Body]) -> Option<&Body> {
    bodies.iter().min_by_key(|body| rank(&body.content_type))
}

/// A webhook or callback: the requests under one path item.
pub(super) fn incoming<'d>(
    schemas: &mut Schemas<'d>,
    name: &str,
    address: Option<&str>,
    item: &'d Value,
) -> Vec<Webhook> {
    let item = match item.get("$ref").and_then(Value::as_str) {
        Some(reference) => schemas.follow(reference).map_or(item, |spot| spot.value),
        None => item,
    };
    let mut webhooks = Vec::new();
    for method in METHODS {
        let Some(operation) = item.get(method).filter(|value| value.is_object()) else { continue };
        let mut endpoint = Endpoint::default();
        schemas.within([method], |schemas| request_body(schemas, operation, &mut endpoint));
        webhooks.push(Webhook {
            name: name.to_owned(),
            method: method.to_ascii_uppercase(),
            address: address.map(str::to_owned),
            summary: text(operation, "summary"),
            description: text(operation, "description"),
            body: preferred(&endpoint.bodies).map(|body| body.model.clone()),
        });
    }
    webhooks
}

/// The parameters of the path item and of the operation, references followed, the latter overriding.
fn raw_parameters<'d>(
    schemas: &mut Schemas<'d>,
    shared: &'d [Value],
    operation: &'d Value,
) -> Vec<&'d Value> {
    let mut found: IndexMap<(String, String), &'d Value> = IndexMap::new();
    let own = list(operation, "parameters");
    for (index, value) in shared.iter().enumerate().chain(own.iter().enumerate()) {
        let value = match value.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                let segments = ["parameters".to_owned(), index.to_string()];
                match schemas.within(segments, |schemas| schemas.follow(reference)) {
                    Some(spot) => spot.value,
                    None => continue,
                }
            }
            None => value,
        };
        let Some(name) = text(value, "name") else { continue };
        found.insert((name, text(value, "in").unwrap_or_default()), value);
    }
    found.into_values().collect()
}

fn parameter<'d>(schemas: &mut Schemas<'d>, value: &'d Value, dialect: Dialect) -> Option<Parameter> {
    let name = text(value, "name")?;
    let location = security::location(&text(value, "in").unwrap_or_default());
    let content = entries(value, "content").and_then(|content| content.iter().next());
    let schema = match (dialect, content) {
        (Dialect::Swagger2, _) => Some(value),
        (_, Some((_, media))) => media.get("schema"),
        (_, None) => value.get("schema"),
    };
    let place = name.clone();
    let mut model = schema
        .map(|schema| schemas.within(["parameters".to_owned(), place], |schemas| schemas.schema(schema, 0)));
    if let Some(model) = &mut model {
        model.description = None;
        model.example = value.get("example").cloned().or(model.example.take());
    }
    let (style, explode) = match dialect {
        Dialect::Swagger2 => swagger2::style(value, location),
        Dialect::Openapi3 => (text(value, "style"), value.get("explode").and_then(Value::as_bool)),
    };
    Some(Parameter {
        name,
        location,
        kind: model.as_ref().map_or("string", kind_word).to_owned(),
        required: flag(value, "required") || location == Location::Path,
        description: text(value, "description"),
        schema: model,
        style,
        explode,
        content_type: content.map(|(media, _)| media.clone()),
        graphql_type: None,
        deprecated: flag(value, "deprecated"),
    })
}

/// Parameters that the path names and the document forgot.
fn complete_path_parameters(endpoint: &mut Endpoint) {
    for name in path_parameters(&endpoint.path) {
        let known = |parameter: &Parameter| parameter.location == Location::Path && parameter.name == name;
        if !endpoint.parameters.iter().any(known) {
            endpoint.parameters.push(Parameter {
                name: name.to_owned(),
                location: Location::Path,
                kind: "string".to_owned(),
                required: true,
                ..Parameter::default()
            });
        }
    }
}

/// The names between braces.
pub(crate) fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
        .filter(|name| !name.is_empty())
}

fn request_body<'d>(schemas: &mut Schemas<'d>, operation: &'d Value, endpoint: &mut Endpoint) {
    let Some(mut body) = operation.get("requestBody") else { return };
    if let Some(reference) = body.get("$ref").and_then(Value::as_str) {
        match schemas.within(["requestBody"], |schemas| schemas.follow(reference)) {
            Some(spot) => body = spot.value,
            None => return,
        }
    }
    endpoint.body_required = flag(body, "required");
    for (content_type, media) in entries(body, "content").into_iter().flatten() {
        let segments = ["requestBody", "content", content_type.as_str(), "schema"];
        let model =
            media.get("schema").map(|schema| schemas.within(segments, |schemas| schemas.schema(schema, 0)));
        let mut model = model.unwrap_or_else(|| unspoken(content_type));
        if model.example.is_none() {
            model.example = media.get("example").filter(|value| super::value::size(value) <= 2_000).cloned();
        }
        let mut encodings = entries(media, "encoding").into_iter().flatten();
        let brackets =
            encodings.any(|(_, encoding)| encoding.get("style").is_some_and(|style| style == "deepObject"));
        endpoint.bodies.push(Body { content_type: content_type.clone(), model, brackets });
    }
}

/// A body without a schema: 3.1 describes plain files so.
fn unspoken(content_type: &str) -> Model {
    let words =
        content_type.contains("json") || content_type.contains("form") || content_type.starts_with("text/");
    Model::of(if words { Kind::Any } else { Kind::File })
}

fn responses<'d>(
    schemas: &mut Schemas<'d>,
    context: &Context<'d>,
    operation: &'d Value,
) -> IndexMap<String, Response> {
    let mut responses = IndexMap::new();
    for (status, value) in entries(operation, "responses").into_iter().flatten() {
        if status.starts_with("x-") {
            continue;
        }
        let value = match value.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                let found =
                    schemas.within(["responses", status.as_str()], |schemas| schemas.follow(reference));
                match found {
                    Some(spot) => spot.value,
                    None => continue,
                }
            }
            None => value,
        };
        responses.insert(status.clone(), response(schemas, context.dialect, status, value));
    }
    responses
}

fn response<'d>(schemas: &mut Schemas<'d>, dialect: Dialect, status: &'d str, value: &'d Value) -> Response {
    let media = entries(value, "content").and_then(preferred_media);
    let (content_type, schema) = match (dialect, media) {
        (Dialect::Swagger2, _) => (None, value.get("schema")),
        (_, Some((content_type, media))) => (Some(content_type), media.get("schema")),
        (_, None) => (None, None),
    };
    Response {
        status_code: status.to_owned(),
        description: text(value, "description").unwrap_or_default(),
        schema: schema.map(|schema| {
            let segments = ["responses", status, "schema"];
            schemas.within(segments, |schemas| schemas.schema(schema, 0))
        }),
        content_type: content_type.cloned(),
        headers: entries(value, "headers").into_iter().flatten().map(|(name, _)| name.clone()).collect(),
        links: links(value),
    }
}

/// The links of a response whose parameters come from its body.
fn links(response: &Value) -> Vec<ResponseLink> {
    let mut found = Vec::new();
    for (_, link) in entries(response, "links").into_iter().flatten().take(50) {
        let Some(operation_id) = text(link, "operationId") else { continue };
        for (name, value) in entries(link, "parameters").into_iter().flatten() {
            let pointer = value.as_str().and_then(|value| value.strip_prefix("$response.body#"));
            let parameter = name.strip_prefix("path.").unwrap_or(name);
            if let Some(pointer) = pointer {
                found.push(ResponseLink {
                    operation_id: operation_id.clone(),
                    parameter: parameter.to_owned(),
                    pointer: pointer.to_owned(),
                });
            }
        }
    }
    found
}

fn preferred_media(content: &Map<String, Value>) -> Option<(&String, &Value)> {
    content.iter().min_by_key(|(content_type, _)| rank(content_type))
}

fn rank(content_type: &str) -> u8 {
    let name = content_type.split(';').next().unwrap_or_default().trim();
    match name {
        "application/json" => 0,
        name if name.ends_with("+json") => 1,
        "multipart/form-data" => 2,
        "application/x-www-form-urlencoded" => 3,
        "*/*" | "application/*" => 4,
        name if name.starts_with("multipart/") => 5,
        name if name.starts_with("text/") => 6,
        _ => 7,
    }
}

fn callbacks<'d>(schemas: &mut Schemas<'d>, operation: &'d Value) -> Vec<Webhook> {
    let mut found = Vec::new();
    for (name, callback) in entries(operation, "callbacks").into_iter().flatten() {
        let callback = match callback.get("$ref").and_then(Value::as_str) {
            Some(reference) => match schemas.follow(reference) {
                Some(spot) => spot.value,
                None => continue,
            },
            None => callback,
        };
        for (address, item) in callback.as_object().into_iter().flatten() {
            let segments = ["callbacks", name.as_str(), address.as_str()];
            found.extend(schemas.within(segments, |schemas| incoming(schemas, name, Some(address), item)));
        }
    }
    found
}

/// The word a host uses for the type of a parameter.
fn kind_word(model: &Model) -> &'static str {
    match model.kind {
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::Number => "number",
        Kind::Integer => "integer",
        Kind::Boolean => "boolean",
        _ => "string",
    }
}
