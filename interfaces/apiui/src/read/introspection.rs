//! The JSON answer to a GraphQL introspection query → `GraphSchema`.
//!
//! Owns that JSON form. Lenient: a type that makes no sense is left out.

use super::graphtypes::{GraphField, GraphKind, GraphSchema};
use super::value::{flag, list, text};
use super::{Reading, Unusable};
use crate::problem::{Problem, ProblemKind, ProblemLocation};
use serde_json::Value;

const MAX_TYPE_DEPTH: usize = 12;

pub(super) fn read(value: &Value) -> Result<Reading, Unusable> {
    let (prefix, root) = match value.get("data") {
        Some(data) => ("/data", data),
        None => ("", value),
    };
    let given = root.get("__schema").unwrap_or(&Value::Null);
    if given.get("types").and_then(Value::as_array).is_none() {
        return Err(Problem::error(
            ProblemKind::Structure,
            ProblemLocation::pointer(format!("{prefix}/__schema/types")),
            "This introspection result has no list of types.",
            "Run the full introspection query and send its whole answer.",
        )
        .into());
    }
    let mut schema = GraphSchema { description: text(given, "description"), ..GraphSchema::default() };
    for (kind, key) in
        [("query", "queryType"), ("mutation", "mutationType"), ("subscription", "subscriptionType")]
    {
        if let Some(name) = given.get(key).and_then(|root| text(root, "name")) {
            schema.roots.insert(kind, name);
        }
    }
    for (index, graph_type) in list(given, "types").iter().enumerate() {
        absorb(&mut schema, graph_type, &format!("{prefix}/__schema/types/{index}"));
    }
    schema.into_reading()
}

fn absorb(schema: &mut GraphSchema, value: &Value, pointer: &str) {
    let kind = match text(value, "kind").unwrap_or_default().as_str() {
        "SCALAR" => GraphKind::Scalar,
        "OBJECT" => GraphKind::Object,
        "INTERFACE" => GraphKind::Interface,
        "UNION" => GraphKind::Union,
        "ENUM" => GraphKind::Enum,
        "INPUT_OBJECT" => GraphKind::Input,
        _ => return,
    };
    let Some(name) = text(value, "name") else { return };
    let found = schema.entry(name, kind);
    found.description = text(value, "description");
    found.one_of = flag(value, "isOneOf");
    for key in ["fields", "inputFields"] {
        let fields = list(value, key).iter().enumerate();
        let field = |(index, value): (usize, &Value)| field_of(value, &format!("{pointer}/{key}/{index}"));
        found.fields.extend(fields.filter_map(field));
    }
    found.members = list(value, "possibleTypes").iter().filter_map(|member| text(member, "name")).collect();
    found.values = list(value, "enumValues").iter().filter_map(|value| text(value, "name")).collect();
}

fn field_of(value: &Value, pointer: &str) -> Option<GraphField> {
    let args = list(value, "args").iter().enumerate();
    let default = text(value, "defaultValue");
    Some(GraphField {
        name: text(value, "name")?,
        description: text(value, "description"),
        type_text: type_text(value.get("type")?, 0)?,
        args: args.filter_map(|(index, arg)| field_of(arg, &format!("{pointer}/args/{index}"))).collect(),
        default: default.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text))),
        deprecated: flag(value, "isDeprecated"),
        place: Some(ProblemLocation::pointer(pointer)),
    })
}

/// `{kind: NON_NULL, ofType: …}` as GraphQL writes it.
fn type_text(value: &Value, depth: usize) -> Option<String> {
    if depth > MAX_TYPE_DEPTH {
        return None;
    }
    let inner = || type_text(value.get("ofType")?, depth + 1);
    match text(value, "kind")?.as_str() {
        "NON_NULL" => inner().map(|inner| format!("{inner}!")),
        "LIST" => inner().map(|inner| format!("[{inner}]")),
        _ => text(value, "name"),
    }
}
