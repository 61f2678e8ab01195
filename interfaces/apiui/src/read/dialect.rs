//! Which of the two kinds of OpenAPI documents is read, and the servers that both may name.

use super::value::{entries, list, text, text_of, texts};
use crate::spec::{Server, ServerVariable};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Openapi3,
    Swagger2,
}

/// The servers of a document, path item or operation.
pub(super) fn servers(object: &Value) -> Vec<Server> {
    let one = |value: &Value| -> Option<Server> {
        let variable = |(name, value): (&String, &Value)| ServerVariable {
            name: name.clone(),
            default: value.get("default").and_then(text_of).unwrap_or_default(),
            choices: texts(value, "enum"),
            description: text(value, "description"),
        };
        Some(Server {
            url: text(value, "url")?,
            description: text(value, "description"),
            variables: entries(value, "variables").into_iter().flatten().map(variable).collect(),
        })
    };
    list(object, "servers").iter().filter_map(one).collect()
}
