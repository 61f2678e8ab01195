//! GraphQL SDL → `GraphSchema`, over apollo-parser's syntax tree.
//!
//! Owns SDL syntax and the line and column of its errors. The meaning of types is in `graphtypes`.

use super::graphtypes::{GraphField, GraphKind, GraphSchema};
use super::{Reading, Unusable};
use crate::problem::{Problem, ProblemKind, ProblemLocation};
use apollo_parser::SyntaxNode;
use apollo_parser::cst::{self, CstNode, Definition};
use serde_json::Value;

const RECURSION_LIMIT: usize = 200;
const TOKEN_LIMIT: usize = 30_000_000;

pub(super) fn read(text: &str) -> Result<Reading, Unusable> {
    let tree =
        apollo_parser::Parser::new(text).recursion_limit(RECURSION_LIMIT).token_limit(TOKEN_LIMIT).parse();
    let lines = Lines::of(text);
    let problems: Vec<Problem> = tree.errors().take(20).map(|error| syntax(error, &lines)).collect();
    if !problems.is_empty() {
        return Err(Unusable { problems });
    }
    let mut schema = GraphSchema::default();
    let mut executable = false;
    for definition in tree.document().definitions() {
        executable |= definition.is_executable_definition();
        absorb(&mut schema, &definition, &lines);
    }
    if executable && schema.types.is_empty() {
        return Err(Problem::error(
            ProblemKind::UnsupportedFormat,
            ProblemLocation::Document,
            "This is a GraphQL query, not a GraphQL schema.",
            "Send the schema (SDL or introspection JSON) that the query is written against.",
        )
        .into());
    }
    list_implementers(&mut schema, &tree.document());
    schema.into_reading()
}

/// Where each line begins, to turn an offset into a line and column.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    fn place(&self, offset: usize) -> ProblemLocation {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts[line - 1];
        let before = self.text.get(start..offset.min(self.text.len()));
        ProblemLocation::Position { line, column: before.map_or(0, |before| before.chars().count()) + 1 }
    }
}

fn syntax(error: &apollo_parser::Error, lines: &Lines) -> Problem {
    let place = lines.place(error.index());
    if error.is_limit() {
        return Problem::error(
            ProblemKind::Expansion,
            place,
            "The schema is nested deeper or longer than any real one.",
            "Send a schema of an ordinary size.",
        );
    }
    let advice = if error.is_eof() {
        "The schema ends too early: send all of it."
    } else {
        "Correct the GraphQL at that place and try again."
    };
    Problem::error(
        ProblemKind::Syntax,
        place,
        format!("This is not well-formed GraphQL: {}.", error.message()),
        advice,
    )
}

fn absorb(schema: &mut GraphSchema, definition: &Definition, lines: &Lines) {
    let kind = match definition {
        Definition::ObjectTypeDefinition(_) | Definition::ObjectTypeExtension(_) => GraphKind::Object,
        Definition::InterfaceTypeDefinition(_) | Definition::InterfaceTypeExtension(_) => {
            GraphKind::Interface
        }
        Definition::UnionTypeDefinition(_) | Definition::UnionTypeExtension(_) => GraphKind::Union,
        Definition::EnumTypeDefinition(_) | Definition::EnumTypeExtension(_) => GraphKind::Enum,
        Definition::InputObjectTypeDefinition(_) | Definition::InputObjectTypeExtension(_) => {
            GraphKind::Input
        }
        Definition::ScalarTypeDefinition(_) | Definition::ScalarTypeExtension(_) => GraphKind::Scalar,
        Definition::SchemaDefinition(_) | Definition::SchemaExtension(_) => {
            return roots(schema, definition.syntax());
        }
        _ => return,
    };
    let node = definition.syntax();
    let Some(name) = definition.name() else { return };
    let found = schema.entry(name.text().to_string(), kind);
    found.description = description(node).or(found.description.take());
    found.one_of |= has_directive(node, "oneOf");
    for fields in node.children().filter_map(cst::FieldsDefinition::cast) {
        found.fields.extend(fields.field_definitions().filter_map(|field| field_of(field.syntax(), lines)));
    }
    for fields in node.children().filter_map(cst::InputFieldsDefinition::cast) {
        found
            .fields
            .extend(fields.input_value_definitions().filter_map(|field| field_of(field.syntax(), lines)));
    }
    for members in node.children().filter_map(cst::UnionMemberTypes::cast) {
        found.members.extend(members.named_types().filter_map(|name| Some(name.name()?.text().to_string())));
    }
    for values in node.children().filter_map(cst::EnumValuesDefinition::cast) {
        let value = |value: cst::EnumValueDefinition| Some(value.enum_value()?.name()?.text().to_string());
        found.values.extend(values.enum_value_definitions().filter_map(value));
    }
}

fn roots(schema: &mut GraphSchema, node: &SyntaxNode) {
    schema.description = description(node).or(schema.description.take());
    for root in node.children().filter_map(cst::RootOperationTypeDefinition::cast) {
        let kind = match root.operation_type() {
            Some(kind) if kind.query_token().is_some() => "query",
            Some(kind) if kind.mutation_token().is_some() => "mutation",
            Some(_) => "subscription",
            None => continue,
        };
        if let Some(name) = root.named_type().and_then(|named| named.name()) {
            schema.roots.insert(kind, name.text().to_string());
        }
    }
}

/// A field or an input value: both are a name, a type and perhaps more.
fn field_of(node: &SyntaxNode, lines: &Lines) -> Option<GraphField> {
    let type_node = child::<cst::Type>(node)?;
    let arguments = child::<cst::ArgumentsDefinition>(node);
    let args = arguments.into_iter().flat_map(|all| all.input_value_definitions());
    Some(GraphField {
        name: child::<cst::Name>(node)?.text().to_string(),
        description: description(node),
        type_text: type_node.source_string().chars().filter(|c| !c.is_whitespace() && *c != ',').collect(),
        args: args.filter_map(|arg| field_of(arg.syntax(), lines)).collect(),
        default: child::<cst::DefaultValue>(node)
            .and_then(|default| default.value())
            .map(|value| constant(&value)),
        deprecated: has_directive(node, "deprecated"),
        place: Some(lines.place(usize::from(type_node.syntax().text_range().start()))),
    })
}

fn constant(value: &cst::Value) -> Value {
    let source = value.source_string();
    let source = source.trim();
    match value {
        cst::Value::StringValue(text) => Value::String(String::from(text)),
        cst::Value::EnumValue(_) => Value::String(source.to_owned()),
        cst::Value::ListValue(list) => Value::Array(list.values().map(|item| constant(&item)).collect()),
        cst::Value::ObjectValue(object) => {
            let pair =
                |field: cst::ObjectField| Some((field.name()?.text().to_string(), constant(&field.value()?)));
            Value::Object(object.object_fields().filter_map(pair).collect())
        }
        // Numbers, booleans and null are written as in JSON.
        _ => serde_json::from_str(source).unwrap_or_else(|_| Value::String(source.to_owned())),
    }
}

fn list_implementers(schema: &mut GraphSchema, document: &cst::Document) {
    for definition in document.definitions() {
        let Definition::ObjectTypeDefinition(object) = &definition else { continue };
        let Some(name) = object.name().map(|name| name.text().to_string()) else { continue };
        for named in object.implements_interfaces().into_iter().flat_map(|all| all.named_types()) {
            let interface = named.name().map(|name| name.text().to_string());
            if let Some(found) = interface.and_then(|interface| schema.types.get_mut(&interface)) {
                found.members.push(name.clone());
            }
        }
    }
}

fn description(node: &SyntaxNode) -> Option<String> {
    let text = child::<cst::Description>(node)?.string_value()?;
    Some(String::from(text)).filter(|text| !text.trim().is_empty())
}

fn has_directive(node: &SyntaxNode, name: &str) -> bool {
    let directives = child::<cst::Directives>(node);
    let mut all = directives.into_iter().flat_map(|directives| directives.directives());
    all.any(|directive| directive.name().is_some_and(|found| found.text() == name))
}

fn child<N: CstNode>(node: &SyntaxNode) -> Option<N> {
    node.children().find_map(N::cast)
}
