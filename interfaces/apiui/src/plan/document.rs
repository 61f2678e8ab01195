//! The GraphQL document of an operation: its variables, and a selection that fits a screen.
//!
//! Owns which fields are asked for. Invariants: at most `MAX_FIELDS` fields, never a field that needs
//! arguments, and no two fields of one name with different types, so the document is valid for its schema.

use super::connection::connection;
use super::models::Models;
use crate::read::host::is_graphql_name;
use crate::spec::{GraphOperation, Kind, Model, Parameter};
use std::collections::HashMap;

const MAX_FIELDS: usize = 120;
const MAX_DEPTH: usize = 3;
/// Fields that people know a thing by, and its key.
const LABELS: [&str; 12] = [
    "id",
    "name",
    "title",
    "displayName",
    "label",
    "login",
    "username",
    "identifier",
    "key",
    "email",
    "number",
    "code",
];

pub(super) fn document(operation: &GraphOperation, models: &Models) -> String {
    let args: Vec<&Parameter> = operation.args.iter().filter(|arg| is_graphql_name(&arg.name)).collect();
    let join =
        |parts: Vec<String>| if parts.is_empty() { String::new() } else { format!("({})", parts.join(", ")) };
    let variables = join(args.iter().map(|arg| format!("${}: {}", arg.name, type_text(arg))).collect());
    let arguments = join(args.iter().map(|arg| format!("{0}: ${0}", arg.name)).collect());
    let mut writer = Writer { models, left: MAX_FIELDS };
    let selection = writer.selection(&operation.return_type, 0);
    format!("{} {}{variables} {{ {}{arguments}{selection} }}", operation.kind, operation.name, operation.name)
}

struct Writer<'m, 's> {
    models: &'m Models<'s>,
    left: usize,
}

impl<'s> Writer<'_, 's> {
    /// ` { … }` for a composite type, nothing for a leaf.
    fn selection(&mut self, model: &'s Model, depth: usize) -> String {
        let model = self.inner(model);
        let fields = match model.kind {
            Kind::Object => self.object(model, depth),
            Kind::Union => self.union(model, depth),
            _ => return String::new(),
        };
        if fields.is_empty() { " { __typename }".to_owned() } else { format!(" {{ {} }}", fields.join(" ")) }
    }

    fn inner(&self, model: &'s Model) -> &'s Model {
        let mut model = self.models.resolve(model);
        for _ in 0..4 {
            match self.models.item(model) {
                Some(item) => model = self.models.resolve(item),
                None => break,
            }
        }
        model
    }

    fn object(&mut self, model: &'s Model, depth: usize) -> Vec<String> {
        if let Some(found) = connection(self.models, model) {
            let page = "pageInfo { hasNextPage endCursor }".to_owned();
            let total = found.has_total.then(|| "totalCount".to_owned());
            if depth > 0 {
                return total.into_iter().collect();
            }
            let node = self.selection(found.node, depth);
            let items = if found.items.len() == 1 {
                format!("nodes{node}")
            } else {
                format!("edges {{ node{node} }}")
            };
            return total.into_iter().chain([page, items]).collect();
        }
        let mut fields: Vec<String> = Vec::new();
        if !model.union_of.is_empty() {
            fields.push("__typename".to_owned());
        }
        let (mut leaves, mut composites) = (Vec::new(), Vec::new());
        for (name, property) in &model.properties {
            if !self.is_selectable(name, property) {
                continue;
            }
            let is_composite = matches!(self.inner(property).kind, Kind::Object | Kind::Union);
            if is_composite { composites.push((name, property)) } else { leaves.push(name) }
        }
        // All plain values first, so that nothing nested crowds them out.
        let count = leaves.len().min(self.left);
        self.left -= count;
        fields.extend(leaves.into_iter().take(count).cloned());
        // An envelope, such as the payload of a mutation, shows its contents in full.
        let is_envelope = depth == 0 && count <= 3 && composites.len() <= 4;
        for (name, property) in composites {
            if self.left == 0 || depth + 1 >= MAX_DEPTH {
                break;
            }
            fields.extend(self.nested(name, property, depth, is_envelope));
        }
        fields
    }

    /// A reference to another thing: what it is called, so that it can be shown and followed.
    fn nested(&mut self, name: &str, property: &'s Model, depth: usize, is_whole: bool) -> Option<String> {
        let inner = self.inner(property);
        if connection(self.models, inner).is_some() {
            let has_total = inner.properties.contains_key("totalCount");
            self.left -= usize::from(has_total);
            return has_total.then(|| format!("{name} {{ totalCount }}"));
        }
        let is_list = self.models.item(property).is_some();
        // Lists inside lists are left to their own operation.
        if is_list && depth > 0 {
            return None;
        }
        let selection = if is_whole { self.selection(property, depth + 1) } else { self.labels(inner) };
        (!selection.is_empty() && selection != " { __typename }").then(|| format!("{name}{selection}"))
    }

    /// The key of a thing and the fields that people know it by.
    fn labels(&mut self, model: &'s Model) -> String {
        if model.kind == Kind::Union {
            let fields = self.union(model, MAX_DEPTH - 1);
            return format!(" {{ {} }}", fields.join(" "));
        }
        let is_leaf = |property: &'s Model| !matches!(self.inner(property).kind, Kind::Object | Kind::Union);
        let leaves: Vec<&String> = model
            .properties
            .iter()
            .filter(|(name, property)| self.is_selectable(name, property) && is_leaf(property))
            .map(|(name, _)| name)
            .collect();
        let mut chosen: Vec<&str> =
            LABELS.iter().copied().filter(|label| leaves.iter().any(|name| name == label)).take(4).collect();
        if chosen.len() < 2 {
            let more = leaves.iter().map(|name| name.as_str()).filter(|name| !LABELS.contains(name));
            chosen.extend(more.take(3));
        }
        chosen.truncate(self.left);
        self.left -= chosen.len();
        if chosen.is_empty() { String::new() } else { format!(" {{ {} }}", chosen.join(" ")) }
    }

    fn union(&mut self, model: &'s Model, depth: usize) -> Vec<String> {
        let mut fields = vec!["__typename".to_owned()];
        let mut types: HashMap<&str, &str> = HashMap::new();
        for member in model.union_of.iter().take(8) {
            let Some(name) = self.models.name(member).filter(|name| is_graphql_name(name)) else { continue };
            let object = self.models.resolve(member);
            let mut chosen = Vec::new();
            for (field, property) in &object.properties {
                let leaf = !matches!(self.inner(property).kind, Kind::Object | Kind::Union);
                if self.left == 0 || !leaf || !self.is_selectable(field, property) || chosen.len() >= 12 {
                    continue;
                }
                let written = property.graphql_type.as_deref().unwrap_or_default();
                if types.entry(field).or_insert(written) != &written || depth >= MAX_DEPTH {
                    continue;
                }
                self.left -= 1;
                chosen.push(field.as_str());
            }
            if !chosen.is_empty() {
                fields.push(format!("... on {name} {{ {} }}", chosen.join(" ")));
            }
        }
        fields
    }

    fn is_selectable(&self, name: &str, property: &Model) -> bool {
        is_graphql_name(name)
            && !name.starts_with("__")
            && !property.deprecated
            && !property.args.iter().any(|arg| arg.required)
    }
}

/// The type of a variable: as the schema writes it, or rebuilt from a host's words.
fn type_text(parameter: &Parameter) -> String {
    if let Some(text) = parameter.graphql_type.as_deref().filter(|text| is_type_text(text)) {
        return text.to_owned();
    }
    let base = match &parameter.schema {
        Some(schema) => rebuilt(schema),
        None => word(&parameter.kind),
    };
    if parameter.required { format!("{base}!") } else { base }
}

fn rebuilt(model: &Model) -> String {
    if let Some(text) = model.graphql_type.as_deref().filter(|text| is_type_text(text)) {
        return text.trim_end_matches('!').to_owned();
    }
    let named = model.reference.as_deref().or(Some(model.name.as_str())).filter(|name| is_graphql_name(name));
    match model.kind {
        Kind::Array => format!("[{}]", model.items.as_deref().map_or_else(|| "String".to_owned(), rebuilt)),
        Kind::Integer => "Int".to_owned(),
        Kind::Number => "Float".to_owned(),
        Kind::Boolean => "Boolean".to_owned(),
        Kind::String if model.format.as_deref().is_some_and(|format| format.eq_ignore_ascii_case("id")) => {
            "ID".to_owned()
        }
        Kind::String => "String".to_owned(),
        _ => named.unwrap_or("String").to_owned(),
    }
}

fn word(kind: &str) -> String {
    match kind {
        "integer" => "Int".to_owned(),
        "number" => "Float".to_owned(),
        "boolean" => "Boolean".to_owned(),
        "string" => "String".to_owned(),
        other if is_graphql_name(other) => other.to_owned(),
        _ => "String".to_owned(),
    }
}

fn is_type_text(text: &str) -> bool {
    let name = text.trim_matches(|c| matches!(c, '[' | ']' | '!'));
    is_graphql_name(name) && text.len() < 300
}
