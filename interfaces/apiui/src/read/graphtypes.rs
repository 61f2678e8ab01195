//! A GraphQL schema as both SDL and introspection give it, and its conversion to `Spec`.
//!
//! Owns the meaning of GraphQL types. Type references are kept as GraphQL writes them (`[ID!]!`), which is
//! short, exact and what a query has to repeat.

use super::reading::no_operations;
use super::{Reading, Unusable};
use crate::problem::{Problem, ProblemKind, ProblemLocation, excerpt};
use crate::spec::{Format, GraphOperation, Kind, Metadata, Model, Parameter, Spec};
use indexmap::IndexMap;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GraphKind {
    Scalar,
    Object,
    Interface,
    Union,
    Enum,
    Input,
}

#[derive(Debug, Clone)]
pub(super) struct GraphType {
    pub kind: GraphKind,
    pub description: Option<String>,
    pub fields: Vec<GraphField>,
    /// Members of a union, or the types that implement an interface.
    pub members: Vec<String>,
    pub values: Vec<String>,
    /// An input of which exactly one field is given.
    pub one_of: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct GraphField {
    pub name: String,
    pub description: Option<String>,
    pub type_text: String,
    pub args: Vec<GraphField>,
    pub default: Option<Value>,
    pub deprecated: bool,
    pub place: Option<ProblemLocation>,
}

#[derive(Debug, Default)]
pub(super) struct GraphSchema {
    pub description: Option<String>,
    pub roots: IndexMap<&'static str, String>,
    pub types: IndexMap<String, GraphType>,
}

impl GraphSchema {
    pub(super) fn entry(&mut self, name: String, kind: GraphKind) -> &mut GraphType {
        self.types.entry(name).or_insert_with(|| GraphType {
            kind,
            description: None,
            fields: Vec::new(),
            members: Vec::new(),
            values: Vec::new(),
            one_of: false,
        })
    }

    pub(super) fn into_reading(self) -> Result<Reading, Unusable> {
        let mut warnings = Vec::new();
        let mut spec = Spec {
            format: Format::Graphql,
            metadata: Metadata {
                title: "GraphQL API".to_owned(),
                description: self.description.clone(),
                ..Metadata::default()
            },
            ..Spec::default()
        };
        spec.queries = self.operations("query", "Query", &mut warnings);
        spec.mutations = self.operations("mutation", "Mutation", &mut warnings);
        spec.subscriptions = self.operations("subscription", "Subscription", &mut warnings);
        if spec.operation_count() == 0 {
            let message = "The schema has no root type (`Query`, `Mutation` or `Subscription`) with fields.";
            return Err(no_operations(ProblemLocation::Document, message).into());
        }
        let roots: Vec<&str> =
            ["query", "mutation", "subscription"].into_iter().map(|root| self.root(root)).collect();
        for (name, graph_type) in &self.types {
            if !roots.contains(&name.as_str()) && !name.starts_with("__") {
                spec.models.push(self.model(name, graph_type, &mut warnings));
            }
        }
        spec.assumptions.push(
            "A GraphQL schema does not say where the API is; requests go to /graphql, or wherever the host's `request` sends them."
                .to_owned(),
        );
        spec.metadata.base_url = Some("/graphql".to_owned());
        Ok(Reading { spec, warnings })
    }

    fn root(&self, operation: &str) -> &str {
        let default = match operation {
            "query" => "Query",
            "mutation" => "Mutation",
            _ => "Subscription",
        };
        self.roots.get(operation).map_or(default, String::as_str)
    }

    fn operations(
        &self,
        kind: &'static str,
        default: &str,
        warnings: &mut Vec<Problem>,
    ) -> Vec<GraphOperation> {
        // A schema that names its roots has no others.
        let name = match (self.roots.get(kind), self.roots.is_empty()) {
            (Some(name), _) => name.as_str(),
            (None, true) => default,
            (None, false) => return Vec::new(),
        };
        let Some(root) = self.types.get(name) else { return Vec::new() };
        let operation = |field: &GraphField| GraphOperation {
            name: field.name.clone(),
            kind: kind.to_owned(),
            description: field.description.clone(),
            args: self.parameters(&field.args, warnings),
            return_type: self.typed(&field.type_text, field, warnings),
            deprecated: field.deprecated,
        };
        root.fields.iter().filter(|field| !field.name.starts_with("__")).map(operation).collect()
    }

    fn parameters(&self, args: &[GraphField], warnings: &mut Vec<Problem>) -> Vec<Parameter> {
        let one = |arg: &GraphField| {
            let mut schema = self.typed(&arg.type_text, arg, warnings);
            schema.default = arg.default.clone();
            Parameter {
                name: arg.name.clone(),
                kind: named(&arg.type_text).to_owned(),
                required: is_required(&arg.type_text) && arg.default.is_none(),
                description: arg.description.clone(),
                schema: Some(schema),
                graphql_type: Some(arg.type_text.clone()),
                deprecated: arg.deprecated,
                ..Parameter::default()
            }
        };
        args.iter().map(one).collect()
    }

    fn model(&self, name: &str, graph_type: &GraphType, warnings: &mut Vec<Problem>) -> Model {
        let mut model =
            Model { name: name.to_owned(), description: graph_type.description.clone(), ..Model::default() };
        match graph_type.kind {
            GraphKind::Scalar => {
                model = Model { name: model.name, description: model.description, ..scalar(name) }
            }
            GraphKind::Enum => {
                model.kind = Kind::Enum;
                model.enum_values = graph_type.values.iter().cloned().map(Value::String).collect();
            }
            GraphKind::Union => {
                model.kind = Kind::Union;
                model.union_of = graph_type.members.iter().map(Model::reference_to).collect();
            }
            GraphKind::Object | GraphKind::Interface | GraphKind::Input => {
                model.kind = Kind::Object;
                for field in &graph_type.fields {
                    let mut property = self.typed(&field.type_text, field, warnings);
                    property.description = field.description.clone();
                    property.deprecated = field.deprecated;
                    property.default = field.default.clone();
                    property.args = self.parameters(&field.args, warnings);
                    if is_required(&field.type_text) && field.default.is_none() {
                        model.required.push(field.name.clone());
                    }
                    model.properties.insert(field.name.clone(), property);
                }
                if graph_type.kind == GraphKind::Interface {
                    model.union_of = graph_type.members.iter().map(Model::reference_to).collect();
                }
                if graph_type.one_of {
                    model.format = Some("oneOf".to_owned());
                }
            }
        }
        model
    }

    /// The model of a type reference, with lists unfolded.
    fn typed(&self, type_text: &str, field: &GraphField, warnings: &mut Vec<Problem>) -> Model {
        let inner = type_text.strip_suffix('!').unwrap_or(type_text);
        let nullable = inner.len() == type_text.len();
        let mut model = match inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
            Some(item) => {
                let mut list = Model::of(Kind::Array);
                list.items = Some(Box::new(self.typed(item, field, warnings)));
                list
            }
            None => self.named_model(inner, field, warnings),
        };
        model.nullable = nullable;
        model.graphql_type = Some(type_text.to_owned());
        model
    }

    fn named_model(&self, name: &str, field: &GraphField, warnings: &mut Vec<Problem>) -> Model {
        match self.types.get(name) {
            Some(found) if found.kind == GraphKind::Scalar => scalar(name),
            Some(_) => Model::reference_to(name),
            None if is_builtin(name) => scalar(name),
            None => {
                warnings.push(Problem::warning(
                    ProblemKind::DanglingReference,
                    field.place.clone().unwrap_or(ProblemLocation::Document),
                    format!("The type `{}` of `{}` is not defined.", excerpt(name), excerpt(&field.name)),
                    "Define the type, or correct its name; until then its values are taken as text.",
                ));
                Model { format: Some(name.to_owned()), ..Model::of(Kind::String) }
            }
        }
    }
}

/// The name inside lists and non-null marks.
pub(crate) fn named(type_text: &str) -> &str {
    type_text.trim_matches(|c| matches!(c, '[' | ']' | '!' | ' '))
}

pub(super) fn is_required(type_text: &str) -> bool {
    type_text.ends_with('!')
}

fn is_builtin(name: &str) -> bool {
    matches!(name, "Int" | "Float" | "String" | "Boolean" | "ID")
}

/// What is known of scalars by their name.
fn scalar(name: &str) -> Model {
    let with = |kind: Kind, format: &str| {
        let format = Some(format.to_owned()).filter(|format| !format.is_empty());
        Model { format, ..Model::of(kind) }
    };
    match name {
        "Int" | "Long" | "BigInt" | "Short" | "Byte" => with(Kind::Integer, ""),
        "Float" | "Double" | "Decimal" | "BigDecimal" => with(Kind::Number, ""),
        "Boolean" => with(Kind::Boolean, ""),
        "String" => with(Kind::String, ""),
        "ID" => with(Kind::String, "id"),
        "Date" | "LocalDate" => with(Kind::String, "date"),
        "DateTime" | "Timestamp" | "ISO8601DateTime" | "OffsetDateTime" | "Instant" => {
            with(Kind::String, "date-time")
        }
        "URI" | "URL" | "Url" => with(Kind::String, "uri"),
        "Email" | "EmailAddress" => with(Kind::String, "email"),
        "Upload" | "File" => Model::of(Kind::File),
        "JSON" | "JSONObject" | "Json" | "Any" | "_Any" | "Map" | "Object" => Model::of(Kind::Any),
        other => with(Kind::String, other),
    }
}
