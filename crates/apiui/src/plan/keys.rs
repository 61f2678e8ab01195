//! Which field of an item fills which parameter of the operations on it.
//!
//! Owns the difference between a key that the specification names and a guess. Invariant: a key that is not marked as
//! guessed follows from a name, a link, a schema or an example of the specification; writes use no other.

use super::words::split;
use super::{Input, InputPlace, Key, Operation, Resource, graph};
use crate::spec::{Kind, Model, Parameter, ResponseLink, Spec};
use std::collections::{HashMap, HashSet};

/// Fields that identify an item under such a name.
const KEY_NAMES: [&str; 9] = ["id", "uuid", "sid", "key", "slug", "code", "name", "number", "login"];

/// What the specification says about keys, ready to be looked up: it is asked once for each key.
pub(super) struct Sources<'s> {
    spec: &'s Spec,
    /// By the operation that a link leads to, in the order of the document.
    links: HashMap<&'s str, Vec<&'s ResponseLink>>,
}

impl<'s> Sources<'s> {
    pub(super) fn new(spec: &'s Spec) -> Self {
        let mut links: HashMap<&str, Vec<&ResponseLink>> = HashMap::new();
        let responses = spec.endpoints.iter().flat_map(|endpoint| endpoint.responses.values());
        for link in responses.flat_map(|response| &response.links) {
            links.entry(&link.operation_id).or_default().push(link);
        }
        Self { spec, links }
    }
}

/// For each parameter of an operation on one item: the field of the item that fills it.
pub(super) fn keys(
    sources: &Sources,
    resource: &Resource,
    all: &[Operation],
    item: &Model,
    has_same_model: bool,
) -> Vec<Key> {
    let handed_down: HashSet<&str> = resource
        .list
        .iter()
        .flat_map(|list| &all[list.operation].inputs)
        .filter(|input| input.place == InputPlace::Path)
        .map(|input| input.name.as_str())
        .collect();
    let mut keys: Vec<Key> = Vec::new();
    for index in &resource.operations {
        let is_list = resource.list.as_ref().is_some_and(|list| list.operation == *index);
        // The one thing that a call needs to be told.
        let is_alone = all[*index].inputs.iter().filter(|input| input.required).count() == 1;
        for input in &all[*index].inputs {
            let known = keys.iter().any(|key| key.parameter == input.name);
            let is_of_list = is_list && input.place == InputPlace::Variable;
            if known
                || is_of_list
                || handed_down.contains(input.name.as_str())
                || !is_key(resource, *index, input, item, is_alone)
            {
                continue;
            }
            let search = Search { sources, index: *index, input, singular: &resource.singular, item };
            if let Some((field, guessed)) = search.field(has_same_model) {
                keys.push(Key { parameter: input.name.clone(), field, guessed });
            }
        }
    }
    keys
}

fn is_key(resource: &Resource, index: usize, input: &Input, item: &Model, is_alone: bool) -> bool {
    match input.place {
        InputPlace::Path => true,
        // `users.info?user=7`: a call by name has its key in the query.
        InputPlace::Query => Some(index) == resource.detail && input.required && is_alone,
        InputPlace::Variable if input.required => graph::is_key(&input.name),
        // An optional variable is a key only under the very name of the field.
        InputPlace::Variable => {
            Some(index) == resource.detail
                && graph::is_key(&input.name)
                && item.properties.contains_key(&input.name)
        }
        _ => false,
    }
}

struct Search<'a> {
    sources: &'a Sources<'a>,
    index: usize,
    input: &'a Input,
    singular: &'a str,
    item: &'a Model,
}

impl Search<'_> {
    /// The field, and whether it is a guess.
    fn field(&self, has_same_model: bool) -> Option<(String, bool)> {
        let wanted = plain(&self.input.name);
        let own = plain(self.singular);
        let rest = wanted.strip_prefix(own.as_str()).filter(|rest| KEY_NAMES.contains(rest));
        let prefixed = KEY_NAMES.contains(&wanted.as_str()).then(|| format!("{own}{wanted}"));
        let certain = self
            .linked()
            .or_else(|| self.same(&wanted))
            .or_else(|| self.same(rest?))
            .or_else(|| self.same(&prefixed?))
            .or_else(|| self.same_schema());
        if let Some(field) = certain {
            return Some((field, false));
        }
        let ends_like_id = wanted.ends_with("id") || wanted == own;
        let id = ends_like_id.then(|| self.same("id").or_else(|| self.same("uuid"))).flatten();
        if let Some(field) = id {
            let names_item = wanted == own || has_same_model || is_short_for(&wanted, &own);
            return Some((field, !names_item));
        }
        let metadata = self.item.properties.get("metadata");
        if wanted == "name" && metadata.is_some_and(|metadata| metadata.reference.is_some()) {
            return Some(("metadata.name".to_owned(), false));
        }
        let ending =
            KEY_NAMES.iter().filter(|name| wanted.ends_with(**name)).find_map(|name| self.same(name));
        if let Some(field) = ending {
            return Some((field, !has_same_model));
        }
        // What people call an item by is often accepted in place of an id, but nothing says so.
        let names = ["name", "slug", "key", "code", "username", "login"];
        names.iter().find_map(|name| self.same(name)).map(|field| (field, true))
    }

    /// A scalar field of this plain name.
    fn same(&self, wanted: &str) -> Option<String> {
        let found = self.item.properties.iter().find(|(name, _)| plain(name) == wanted);
        found.filter(|(_, property)| is_scalar(property)).map(|(name, _)| name.clone())
    }

    fn parameter(&self) -> Option<&Parameter> {
        let endpoint = self.sources.spec.endpoints.get(self.index)?;
        endpoint.parameters.iter().find(|parameter| parameter.name == self.input.name)
    }

    /// The one field that has the parameter's own named schema, or its example.
    fn same_schema(&self) -> Option<String> {
        let parameter = self.parameter()?.schema.as_ref()?;
        let has_name =
            |property: &Model| parameter.reference.is_some() && parameter.reference == property.reference;
        let has_example = |property: &Model| match (&parameter.example, &property.example) {
            (Some(one), Some(other)) => one == other && one.to_string().len() > 5,
            _ => false,
        };
        let mut found =
            self.item.properties.iter().filter(|(_, property)| has_name(property) || has_example(property));
        match (found.next(), found.next()) {
            (Some((name, _)), None) => Some(name.clone()),
            _ => None,
        }
    }

    /// A field that a link of the specification leads from.
    fn linked(&self) -> Option<String> {
        let id = self.sources.spec.endpoints.get(self.index)?.operation_id.as_ref()?;
        let links = self.sources.links.get(id.as_str())?;
        let link = links.iter().find(|link| link.parameter == self.input.name)?;
        let field = link.pointer.strip_prefix('/')?;
        self.item.properties.contains_key(field).then(|| field.to_owned())
    }
}

/// `accountId` for an item called "Bank account".
fn is_short_for(wanted: &str, own: &str) -> bool {
    let stem = wanted.strip_suffix("uuid").or_else(|| wanted.strip_suffix("id")).unwrap_or(wanted);
    stem.len() > 2 && own.ends_with(stem)
}

fn is_scalar(model: &Model) -> bool {
    !matches!(model.kind, Kind::Array | Kind::Boolean) && model.properties.is_empty()
}

fn plain(name: &str) -> String {
    split(name).concat().to_lowercase()
}
