//! The normalized specification: one model for OpenAPI, Swagger and GraphQL.
//!
//! A superset of the NormalizedSpec that hosts send: every field of theirs has the same name and meaning
//! here, ours are extra and optional. Owns the types and their JSON form; reading foreign forms is `read`.
//! Invariant: recursion is by reference (`Model::reference` names an entry of `Spec::models`), so the value
//! is always a finite tree.

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    Openapi3,
    Swagger2,
    Graphql,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    pub format: Format,
    pub metadata: Metadata,
    pub endpoints: Vec<Endpoint>,
    pub queries: Vec<GraphOperation>,
    pub mutations: Vec<GraphOperation>,
    pub subscriptions: Vec<GraphOperation>,
    pub models: Vec<Model>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub security_schemes: Vec<SecurityScheme>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<Server>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<Webhook>,
    /// What reading had to assume, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub title: String,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<ServerVariable>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerVariable {
    pub name: String,
    pub default: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    pub path: String,
    /// In upper case.
    pub method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    pub parameters: Vec<Parameter>,
    /// The body in its preferred content type; all of them are in `bodies`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_body: Option<Model>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<Body>,
    #[serde(skip_serializing_if = "is_false")]
    pub body_required: bool,
    pub responses: IndexMap<String, Response>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub security_requirements: Vec<String>,
    /// Alternatives (OR) of schemes that are needed together (AND). `None` where the source lost it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Vec<Vec<Requirement>>>,
    #[serde(skip_serializing_if = "is_false")]
    pub deprecated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub callbacks: Vec<Webhook>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<Server>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    pub scheme: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// A request that the API sends: a webhook, or a callback of one operation.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub name: String,
    pub method: String,
    /// For a callback: the expression that gives its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Model>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Body {
    pub content_type: String,
    pub model: Model,
    /// Nested values of a form are named with brackets, `a[b][0]`.
    #[serde(skip_serializing_if = "is_false")]
    pub brackets: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    pub status_code: String,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Model>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Names of the declared response headers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<ResponseLink>,
}

/// A value of an answer that fills a parameter of another operation.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseLink {
    pub operation_id: String,
    pub parameter: String,
    /// The path into the body, as a JSON pointer.
    pub pointer: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Location {
    Path,
    #[default]
    Query,
    Header,
    Cookie,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parameter {
    pub name: String,
    #[serde(rename = "in")]
    pub location: Location,
    #[serde(rename = "type")]
    pub kind: String,
    pub required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Model>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explode: Option<bool>,
    /// Set when the value is sent as a document of this type (JSON in a query parameter, say).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The type as GraphQL writes it, `[ID!]!` say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graphql_type: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub deprecated: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphOperation {
    pub name: String,
    /// `query`, `mutation` or `subscription`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub args: Vec<Parameter>,
    pub return_type: Model,
    #[serde(skip_serializing_if = "is_false")]
    pub deprecated: bool,
}

/// The shape of a value. `Reference` and `Any` and `File` are ours, the others are the host's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Object,
    Array,
    String,
    Number,
    Integer,
    Boolean,
    Null,
    Enum,
    Union,
    Reference,
    File,
    #[default]
    Any,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub properties: IndexMap<String, Model>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<Model>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enum_values: Vec<Value>,
    /// What people read for each of the values, where the source says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enum_labels: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub union_of: Vec<Model>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,

    /// The name of the model this stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The values of an object used as a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Box<Model>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<Box<Discriminator>>,
    #[serde(skip_serializing_if = "is_false")]
    pub nullable: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub read_only: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub write_only: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub deprecated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Box<Limits>>,
    /// Arguments of a GraphQL field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Parameter>,
    /// The type as GraphQL writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graphql_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Discriminator {
    pub property: String,
    /// Value of the property → name of the model.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub mapping: IndexMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_minimum: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_maximum: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiple_of: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    pub unique_items: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityScheme {
    pub name: String,
    /// `apiKey`, `http`, `oauth2`; ours also `openIdConnect` and `mutualTLS`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The header, query parameter or cookie that carries an API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_id_connect_url: Option<String>,
}

impl Spec {
    /// How many operations the specification describes.
    pub fn operation_count(&self) -> usize {
        self.endpoints.len() + self.queries.len() + self.mutations.len() + self.subscriptions.len()
    }
}

impl Model {
    pub fn of(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }

    pub fn reference_to(name: impl Into<String>) -> Self {
        Self { kind: Kind::Reference, reference: Some(name.into()), ..Self::default() }
    }
}

fn is_false(value: &bool) -> bool {
    !value
}
