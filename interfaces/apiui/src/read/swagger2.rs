//! What Swagger 2.0 does in its own way: body and form parameters, collection formats, host and schemes.
//!
//! Everything it shares with OpenAPI 3 is in `operation` and `schema`.

use super::schema::Schemas;
use super::value::{flag, text, texts};
use crate::spec::{Body, Endpoint, Kind, Location, Model, Server};
use serde_json::Value;

/// Moves `body` and `formData` parameters out of the list and into the endpoint's bodies.
pub(super) fn bodies<'d>(
    schemas: &mut Schemas<'d>,
    root: &'d Value,
    operation: &'d Value,
    parameters: &mut Vec<&'d Value>,
    endpoint: &mut Endpoint,
) {
    let mut consumes = texts(operation, "consumes");
    if consumes.is_empty() {
        consumes = texts(root, "consumes");
    }
    let is_in = |value: &Value, place: &str| value.get("in").is_some_and(|given| given == place);
    if let Some(body) = parameters.iter().find(|value| is_in(value, "body")) {
        let schema = body.get("schema");
        let model =
            schema.map(|schema| schemas.within(["parameters", "body", "schema"], |s| s.schema(schema, 0)));
        let mut model = model.unwrap_or_default();
        if model.description.is_none() {
            model.description = text(body, "description");
        }
        endpoint.body_required = flag(body, "required");
        if consumes.is_empty() {
            consumes.push("application/json".to_owned());
        }
        endpoint.bodies = consumes
            .iter()
            .map(|kind| Body { content_type: kind.clone(), model: model.clone(), brackets: false })
            .collect();
    }
    let fields: Vec<&'d Value> =
        parameters.iter().filter(|value| is_in(value, "formData")).copied().collect();
    if !fields.is_empty() {
        let body = form(schemas, &fields, &consumes);
        endpoint.body_required = !body.model.required.is_empty();
        endpoint.bodies = vec![body];
    }
    parameters.retain(|value| !is_in(value, "body") && !is_in(value, "formData"));
}

/// A collection format as the style and explode of OpenAPI 3.
pub(super) fn style(value: &Value, location: Location) -> (Option<String>, Option<bool>) {
    if value.get("type").is_none_or(|kind| kind != "array") {
        return (None, None);
    }
    let (style, explode) = match text(value, "collectionFormat").as_deref() {
        Some("multi") => ("form", true),
        Some("ssv") => ("spaceDelimited", false),
        Some("pipes") => ("pipeDelimited", false),
        Some("tsv") => ("tabDelimited", false),
        _ if matches!(location, Location::Path | Location::Header) => ("simple", false),
        _ => ("form", false),
    };
    (Some(style.to_owned()), Some(explode))
}

/// One server per scheme, from `schemes`, `host` and `basePath`.
pub(super) fn servers(root: &Value) -> Vec<Server> {
    let path = text(root, "basePath").unwrap_or_default();
    let path = path.trim_end_matches('/');
    let Some(host) = text(root, "host") else {
        let url = if path.is_empty() { "/" } else { path };
        return vec![Server { url: url.to_owned(), ..Server::default() }];
    };
    let mut schemes = texts(root, "schemes");
    schemes.retain(|scheme| scheme == "https" || scheme == "http");
    schemes.sort_by_key(|scheme| scheme == "http");
    if schemes.is_empty() {
        schemes.push("https".to_owned());
    }
    schemes
        .iter()
        .map(|scheme| Server { url: format!("{scheme}://{host}{path}"), ..Server::default() })
        .collect()
}

fn form<'d>(schemas: &mut Schemas<'d>, fields: &[&'d Value], consumes: &[String]) -> Body {
    let mut model = Model::of(Kind::Object);
    for field in fields {
        let Some(name) = text(field, "name") else { continue };
        let property =
            schemas.within(["parameters".to_owned(), name.clone()], |schemas| schemas.schema(field, 0));
        if flag(field, "required") {
            model.required.push(name.clone());
        }
        model.properties.insert(name, property);
    }
    let has_file = model.properties.values().any(|property| property.kind == Kind::File);
    let multipart = has_file || consumes.iter().any(|kind| kind.starts_with("multipart/"));
    let content_type = if multipart { "multipart/form-data" } else { "application/x-www-form-urlencoded" };
    Body { content_type: content_type.to_owned(), model, brackets: false }
}
