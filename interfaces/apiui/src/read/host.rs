//! The NormalizedSpec that hosts send → `Spec`, leniently, and our own JSON form back.
//!
//! Owns every tolerance: lists or maps of properties, models as names, raw `$ref` objects left in, recursion
//! cut off. What the form has lost (content types, AND and OR of security) is assumed, and said.

use super::facets::kind_named;
use super::reading::no_operations;
use super::refs::last_segment;
use super::value::{entries, flag, list, size, text, text_of, texts};
use super::{Reading, Unusable, operation, security};
use crate::problem::{Problem, ProblemKind, ProblemLocation};
use crate::spec::*;
use indexmap::IndexMap;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::HashSet;

const MAX_DEPTH: usize = 48;

pub(super) fn read(value: &Value) -> Result<Reading, Unusable> {
    Ok(Reading { spec: spec(value)?, warnings: Vec::new() })
}

impl<'de> Deserialize<'de> for Spec {
    /// Reads our own form and any host's: leniently, field by field.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        spec(&value).map_err(serde::de::Error::custom)
    }
}

/// The specification as sent by a host, or as serialized by us.
pub fn spec(value: &Value) -> Result<Spec, Problem> {
    if !value.is_object() {
        return Err(Problem::error(
            ProblemKind::Structure,
            ProblemLocation::pointer(""),
            "The specification is not an object.",
            "Send the NormalizedSpec object, or the text of the API's own specification.",
        ));
    }
    let names: HashSet<String> =
        list(value, "models").iter().filter_map(|model| text(model, "name")).collect();
    let host = Host { names };
    let mut spec = Spec {
        format: format(value),
        metadata: metadata(value.get("metadata").or_else(|| value.get("info")).unwrap_or(&Value::Null)),
        endpoints: list(value, "endpoints").iter().filter_map(|endpoint| host.endpoint(endpoint)).collect(),
        queries: host.operations(value, "queries", "query"),
        mutations: host.operations(value, "mutations", "mutation"),
        subscriptions: host.operations(value, "subscriptions", "subscription"),
        models: list(value, "models").iter().map(|model| host.model(model, 0)).collect(),
        security_schemes: list(value, "securitySchemes").iter().filter_map(scheme).collect(),
        tags: security::tags(value),
        servers: servers(value),
        webhooks: list(value, "webhooks").iter().map(|webhook| host.webhook(webhook)).collect(),
        assumptions: texts(value, "assumptions"),
    };
    if spec.operation_count() == 0 && spec.webhooks.is_empty() {
        return Err(no_operations(
            ProblemLocation::pointer("/endpoints"),
            "The specification describes no operation.",
        ));
    }
    complete(&mut spec);
    Ok(spec)
}

struct Host {
    names: HashSet<String>,
}

impl Host {
    fn endpoint(&self, value: &Value) -> Option<Endpoint> {
        let path = text(value, "path")?;
        let method = text(value, "method").unwrap_or_else(|| "GET".to_owned()).to_ascii_uppercase();
        let mut endpoint = Endpoint {
            path: if path.starts_with('/') { path } else { format!("/{path}") },
            method: method.chars().filter(char::is_ascii_alphabetic).take(20).collect(),
            operation_id: text(value, "operationId"),
            summary: text(value, "summary"),
            description: text(value, "description"),
            tag: text(value, "tag").or_else(|| list(value, "tags").iter().find_map(text_of)),
            parameters: self.parameters(value, "parameters"),
            request_body: value
                .get("requestBody")
                .filter(|body| !body.is_null())
                .map(|body| self.model(body, 0)),
            bodies: list(value, "bodies").iter().filter_map(|body| self.body(body)).collect(),
            body_required: flag(value, "bodyRequired"),
            responses: self.responses(value),
            security_requirements: requirement_names(value),
            security: requirements(value),
            deprecated: flag(value, "deprecated"),
            callbacks: list(value, "callbacks").iter().map(|callback| self.webhook(callback)).collect(),
            servers: servers(value),
        };
        if endpoint.method.is_empty() {
            endpoint.method = "GET".to_owned();
        }
        let named: Vec<String> = operation::path_parameters(&endpoint.path).map(str::to_owned).collect();
        for name in named {
            let known =
                |parameter: &Parameter| parameter.location == Location::Path && parameter.name == name;
            if !endpoint.parameters.iter().any(known) {
                let kind = "string".to_owned();
                endpoint.parameters.push(Parameter {
                    name,
                    location: Location::Path,
                    kind,
                    required: true,
                    ..Parameter::default()
                });
            }
        }
        Some(endpoint)
    }

    fn body(&self, value: &Value) -> Option<Body> {
        Some(Body {
            content_type: text(value, "contentType")?,
            model: self.model(value.get("model")?, 0),
            brackets: flag(value, "brackets"),
        })
    }

    fn parameters(&self, value: &Value, key: &str) -> Vec<Parameter> {
        let one = |value: &Value| -> Option<Parameter> {
            let location = security::location(&text(value, "in").unwrap_or_default());
            let schema =
                value.get("schema").filter(|schema| schema.is_object()).map(|schema| self.model(schema, 0));
            Some(Parameter {
                name: text(value, "name")?,
                location,
                kind: text(value, "type").unwrap_or_else(|| "string".to_owned()),
                required: flag(value, "required") || location == Location::Path,
                description: text(value, "description"),
                schema: schema.or_else(|| self.typed(&text(value, "type")?)),
                style: text(value, "style"),
                explode: value.get("explode").and_then(Value::as_bool),
                content_type: text(value, "contentType"),
                graphql_type: text(value, "graphqlType"),
                deprecated: flag(value, "deprecated"),
            })
        };
        list(value, key).iter().filter_map(one).collect()
    }

    fn responses(&self, value: &Value) -> IndexMap<String, Response> {
        let one = |status: String, value: &Value| Response {
            status_code: text(value, "statusCode").unwrap_or_else(|| status.clone()),
            description: text(value, "description").unwrap_or_default(),
            schema: value
                .get("schema")
                .filter(|schema| !schema.is_null())
                .map(|schema| self.model(schema, 0)),
            content_type: text(value, "contentType"),
            headers: texts(value, "headers"),
            links: list(value, "links").iter().filter_map(response_link).collect(),
        };
        if let Some(map) = entries(value, "responses") {
            return map.iter().map(|(status, value)| (status.clone(), one(status.clone(), value))).collect();
        }
        let status = |value: &Value| text(value, "statusCode").unwrap_or_else(|| "default".to_owned());
        list(value, "responses").iter().map(|value| (status(value), one(status(value), value))).collect()
    }

    fn operations(&self, value: &Value, key: &str, kind: &str) -> Vec<GraphOperation> {
        let one = |value: &Value| -> Option<GraphOperation> {
            Some(GraphOperation {
                name: text(value, "name").filter(|name| is_graphql_name(name))?,
                kind: kind.to_owned(),
                description: text(value, "description"),
                args: self.parameters(value, "args"),
                return_type: value.get("returnType").map(|model| self.model(model, 0)).unwrap_or_default(),
                deprecated: flag(value, "deprecated"),
            })
        };
        list(value, key).iter().filter_map(one).collect()
    }

    fn webhook(&self, value: &Value) -> Webhook {
        Webhook {
            name: text(value, "name").unwrap_or_else(|| "webhook".to_owned()),
            method: text(value, "method").unwrap_or_else(|| "POST".to_owned()),
            address: text(value, "address"),
            summary: text(value, "summary"),
            description: text(value, "description"),
            body: value.get("body").map(|body| self.model(body, 0)),
        }
    }

    /// A type given by its name alone.
    fn typed(&self, name: &str) -> Option<Model> {
        if self.names.contains(name) {
            return Some(Model::reference_to(name));
        }
        kind_named(&name.to_ascii_lowercase()).map(Model::of)
    }

    fn model(&self, value: &Value, depth: usize) -> Model {
        if depth > MAX_DEPTH {
            return Model::default();
        }
        if let Value::String(name) = value {
            return self.typed(name).unwrap_or_default();
        }
        let reference = text(value, "$ref")
            .map(|reference| last_segment(&reference))
            .or_else(|| text(value, "reference"));
        if let Some(name) = reference {
            let known = self.names.contains(&name);
            let mut model = if known { Model::reference_to(name) } else { Model::default() };
            self.flags(&mut model, value);
            return model;
        }
        let mut model =
            Model { name: text(value, "name").unwrap_or_default(), ..Model::of(self.kind(value)) };
        for (name, property) in self.properties(value) {
            model.properties.insert(name, self.model(property, depth + 1));
        }
        let inner = |key: &str| value.get(key).filter(|inner| inner.is_object() || inner.is_string());
        model.items = inner("items").map(|items| Box::new(self.model(items, depth + 1)));
        model.values = inner("values")
            .or_else(|| inner("additionalProperties"))
            .map(|values| Box::new(self.model(values, depth + 1)));
        model.required = texts(value, "required");
        model.enum_values = enum_values(value);
        model.enum_labels = texts(value, "enumLabels");
        model.union_of = union_members(value).iter().map(|member| self.model(member, depth + 1)).collect();
        model.format = text(value, "format");
        model.args = self.parameters(value, "args");
        model.discriminator = discriminator(value);
        model.limits = limits(value);
        self.flags(&mut model, value);
        model
    }

    fn flags(&self, model: &mut Model, value: &Value) {
        model.description = text(value, "description");
        let small = |value: &&Value| size(value) <= 2_000;
        model.default = value.get("default").filter(small).cloned();
        model.example = value.get("example").filter(small).cloned();
        model.nullable = flag(value, "nullable");
        model.read_only = flag(value, "readOnly");
        model.write_only = flag(value, "writeOnly");
        model.deprecated = flag(value, "deprecated");
        model.graphql_type = text(value, "graphqlType");
    }

    fn kind(&self, value: &Value) -> Kind {
        let given = match value.get("type") {
            Some(Value::Array(kinds)) => {
                kinds.iter().find_map(|kind| kind.as_str().filter(|kind| *kind != "null")).map(str::to_owned)
            }
            _ => text(value, "type"),
        };
        match given.as_deref() {
            Some("enum") => Kind::Enum,
            Some("union") => Kind::Union,
            Some("string") if text(value, "format").is_some_and(|format| format == "binary") => Kind::File,
            Some(name) => kind_named(name).unwrap_or_default(),
            None if value.get("properties").is_some() => Kind::Object,
            None if value.get("items").is_some() => Kind::Array,
            None if !union_members(value).is_empty() => Kind::Union,
            None => Kind::Any,
        }
    }

    /// Properties come as a map, or as a list of models with names.
    fn properties<'v>(&self, value: &'v Value) -> Vec<(String, &'v Value)> {
        match value.get("properties") {
            Some(Value::Object(map)) => map.iter().map(|(name, property)| (name.clone(), property)).collect(),
            Some(Value::Array(all)) => {
                all.iter().filter_map(|property| Some((text(property, "name")?, property))).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// GraphQL names are written into queries, so only real ones pass.
pub(crate) fn is_graphql_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= 200
}

fn format(value: &Value) -> Format {
    match text(value, "format").as_deref() {
        Some("swagger2") => Format::Swagger2,
        Some("graphql") => Format::Graphql,
        Some(_) => Format::Openapi3,
        None if list(value, "endpoints").is_empty() => Format::Graphql,
        None => Format::Openapi3,
    }
}

fn metadata(value: &Value) -> Metadata {
    Metadata {
        title: text(value, "title").unwrap_or_else(|| "Untitled API".to_owned()),
        version: text(value, "version").unwrap_or_default(),
        description: text(value, "description"),
        base_url: text(value, "baseUrl"),
    }
}

/// Fills in what follows from the rest, and says what had to be assumed.
fn complete(spec: &mut Spec) {
    if spec.servers.is_empty()
        && let Some(url) = &spec.metadata.base_url
    {
        spec.servers.push(Server { url: url.clone(), ..Server::default() });
    }
    let mut lost_content_type = false;
    for endpoint in &mut spec.endpoints {
        if let (Some(model), true) = (&endpoint.request_body, endpoint.bodies.is_empty()) {
            let has_file = model.properties.values().any(|property| property.kind == Kind::File);
            let content_type = if has_file { "multipart/form-data" } else { "application/json" };
            endpoint.bodies.push(Body {
                content_type: content_type.to_owned(),
                model: model.clone(),
                brackets: false,
            });
            lost_content_type = true;
        }
    }
    let lost_security = spec
        .endpoints
        .iter()
        .any(|endpoint| endpoint.security.is_none() && endpoint.security_requirements.len() > 1);
    let notes = [
        (
            lost_content_type,
            "The specification came without content types: bodies are sent as JSON, or as a multipart form where there is a file.",
        ),
        (
            lost_security,
            "The specification came without AND and OR between security schemes: any one of those named is taken to be enough.",
        ),
    ];
    for (is_so, note) in notes {
        if is_so && !spec.assumptions.iter().any(|known| known == note) {
            spec.assumptions.push(note.to_owned());
        }
    }
}

/// Servers in our own form, where variables are a list, or in OpenAPI's, where they are a map.
fn servers(value: &Value) -> Vec<Server> {
    let mut servers = super::dialect::servers(value);
    let given = list(value, "servers").iter().filter(|server| text(server, "url").is_some());
    for (server, given) in servers.iter_mut().zip(given) {
        let variable = |value: &Value| {
            let default = text(value, "default").unwrap_or_default();
            Some(ServerVariable {
                name: text(value, "name")?,
                default,
                choices: texts(value, "choices"),
                description: text(value, "description"),
            })
        };
        server.variables.extend(list(given, "variables").iter().filter_map(variable));
    }
    servers
}

fn requirement_names(value: &Value) -> Vec<String> {
    let one =
        |value: &Value| text_of(value).or_else(|| text(value, "scheme")).or_else(|| text(value, "name"));
    list(value, "securityRequirements").iter().filter_map(one).collect()
}

fn requirements(value: &Value) -> Option<Vec<Vec<Requirement>>> {
    let one =
        |value: &Value| Some(Requirement { scheme: text(value, "scheme")?, scopes: texts(value, "scopes") });
    let alternatives = value.get("security")?.as_array()?;
    Some(
        alternatives
            .iter()
            .map(|all| all.as_array().into_iter().flatten().filter_map(one).collect())
            .collect(),
    )
}

fn scheme(value: &Value) -> Option<SecurityScheme> {
    Some(SecurityScheme {
        name: text(value, "name")?,
        kind: text(value, "type").unwrap_or_else(|| "apiKey".to_owned()),
        location: text(value, "in").map(|name| security::location(&name)),
        scheme: text(value, "scheme").map(|scheme| scheme.to_ascii_lowercase()),
        flows: value.get("flows").filter(|flows| flows.is_object()).cloned(),
        description: text(value, "description"),
        parameter_name: text(value, "parameterName").or_else(|| text(value, "paramName")),
        open_id_connect_url: text(value, "openIdConnectUrl"),
    })
}

fn union_members(value: &Value) -> &[Value] {
    ["unionOf", "oneOf", "anyOf"]
        .iter()
        .map(|key| list(value, key))
        .find(|all| !all.is_empty())
        .unwrap_or_default()
}

fn enum_values(value: &Value) -> Vec<Value> {
    let key = if value.get("enumValues").is_some() { "enumValues" } else { "enum" };
    let scalar = |value: &&Value| value.is_string() || value.is_number() || value.is_boolean();
    list(value, key).iter().filter(scalar).take(2_000).cloned().collect()
}

fn discriminator(value: &Value) -> Option<Box<Discriminator>> {
    let given = value.get("discriminator")?;
    let property = text(given, "property").or_else(|| text(given, "propertyName"))?;
    let mapping = entries(given, "mapping").into_iter().flatten();
    let mapping =
        mapping.filter_map(|(label, name)| Some((label.clone(), last_segment(name.as_str()?)))).collect();
    Some(Box::new(Discriminator { property, mapping }))
}

fn limits(value: &Value) -> Option<Box<Limits>> {
    let from = value.get("limits").unwrap_or(value);
    let number = |key: &str| from.get(key).and_then(Value::as_f64);
    let count = |key: &str| from.get(key).and_then(Value::as_u64);
    let limits = Limits {
        minimum: number("minimum"),
        maximum: number("maximum"),
        exclusive_minimum: flag(from, "exclusiveMinimum"),
        exclusive_maximum: flag(from, "exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: text(from, "pattern"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: flag(from, "uniqueItems"),
    };
    (limits != Limits::default()).then(|| Box::new(limits))
}

fn response_link(value: &Value) -> Option<ResponseLink> {
    Some(ResponseLink {
        operation_id: text(value, "operationId")?,
        parameter: text(value, "parameter")?,
        pointer: text(value, "pointer")?,
    })
}
