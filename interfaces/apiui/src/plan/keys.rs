//! Which field of an item fills which parameter of the operations on it.
//!
//! Owns the difference between a key that the specification names and a guess. Invariant: a key that is not marked as
//! guessed follows from a name, a link, a schema or an example of the specification, for each operation that it is used
//! for; writes use no other.

use super::paths::normalized;
use super::selecting::Selected;
use super::words::{is_key, split};
use super::{Input, InputPlace, Key, Operation, Resource};
use crate::spec::{Kind, Model, Parameter, ResponseLink, Spec};
use std::collections::HashMap;

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

/// What the planner knows about a resource before it looks for keys.
pub(super) struct Known<'a> {
    pub resource: &'a Resource,
    pub all: &'a [Operation],
    pub item: &'a Model,
    pub has_same_model: bool,
    /// Arguments of GraphQL operations that are keys, by operation.
    pub proven: &'a [(usize, Selected)],
}

/// For each parameter that is a key of the item: the field of the item that fills it, and the operations that it is proven
/// for. A parameter of an operation that is only near, such as the key of a part of the item, is left out.
pub(super) fn keys(sources: &Sources, known: &Known) -> Vec<Key> {
    let Known { resource, all, proven, .. } = known;
    let parts: Vec<usize> =
        [resource.detail, resource.edits, resource.deletes].into_iter().flatten().collect();
    let others = resource.operations.iter().copied().filter(|index| !parts.contains(index));
    let places = Places::of(resource, all);
    let mut found = Found { keys: Vec::new(), parts: parts.clone() };
    for index in parts.iter().copied().chain(others) {
        let mine = proven.iter().filter(|(operation, _)| *operation == index);
        let before = found.keys.len();
        for (_, key) in mine {
            found.add(index, key.path.join("."), key.field.clone(), false);
        }
        let is_found = found.keys.len() > before || proven.iter().any(|(operation, _)| *operation == index);
        for input in &all[index].inputs {
            let Some(whose) = whose(known, &places, sources, index, input) else { continue };
            if is_found && input.place == InputPlace::Variable {
                continue;
            }
            let search = Search { sources, index, input, singular: &resource.singular, item: known.item };
            let certain = match whose {
                Whose::Own => search.field(known.has_same_model),
                Whose::Parent => search.parent_field(),
                Whose::Other => search.named_field(),
            };
            if let Some((field, guessed)) = certain {
                found.add(index, input.name.clone(), field, guessed);
            }
        }
    }
    found.keys
}

struct Found {
    keys: Vec<Key>,
    parts: Vec<usize>,
}

impl Found {
    fn add(&mut self, index: usize, parameter: String, field: String, guessed: bool) {
        let also = if self.parts.contains(&index) { None } else { Some(index) };
        match self.keys.iter_mut().find(|key| key.parameter == parameter) {
            // The same name for another field is another key: it is not known from this one.
            Some(key) if key.field == field && key.guessed == guessed => key.also.extend(also),
            Some(_) => {}
            None => self.keys.push(Key { parameter, field, guessed, also: also.into_iter().collect() }),
        }
    }
}

/// The paths that tell whose key a parameter is.
struct Places {
    list: Option<Vec<String>>,
    /// The names of the list's own parameters.
    asked: Vec<String>,
    item: Option<Vec<String>>,
}

impl Places {
    fn of(resource: &Resource, all: &[Operation]) -> Self {
        let path = |index: usize| Some(normalized(&all[index].path)).filter(|path| !path.is_empty());
        let list = resource.list.as_ref().and_then(|list| path(list.operation));
        let parts = [resource.detail, resource.edits, resource.deletes].into_iter().flatten();
        let item =
            parts.filter(|index| all[*index].inputs.iter().any(|input| input.place == InputPlace::Path));
        let item = item.filter_map(path).next();
        let below = list.as_ref().map(|list| list.iter().cloned().chain(["{}".to_owned()]).collect());
        let asked = resource.list.iter().flat_map(|list| &all[list.operation].inputs);
        let asked = asked.map(|input| input.name.clone()).collect();
        Self { item: item.or(below), list, asked }
    }

    /// Whose key a parameter of a path is; `None` for what comes with the list.
    fn whose(&self, path: &str, name: &str) -> Option<Whose> {
        let braces = format!("{{{name}}}");
        let parts: Vec<&str> = super::paths::segments(path);
        let at = parts.iter().position(|part| part.contains(&braces))?;
        let prefix = normalized(&format!("/{}", parts[..=at].join("/")));
        if self.list.as_ref().is_some_and(|list| list.starts_with(&prefix)) {
            // Under another name than in the path of the list it is not known from there.
            return if self.asked.iter().any(|asked| asked == name) { None } else { Some(Whose::Parent) };
        }
        let Some(item) = self.item.as_ref().filter(|item| item.starts_with(&prefix)) else {
            return Some(Whose::Other);
        };
        let is_last = item[prefix.len()..].iter().all(|part| part.contains('{'));
        Some(if is_last { Whose::Own } else { Whose::Parent })
    }
}

/// Whose key a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// That of the item, by its place.
    Own,
    /// That of what the item belongs to: only a field of the same name holds it.
    Parent,
    /// Of something else, unless its name says that it is the item's.
    Other,
}

/// Whose key an input can be.
fn whose(known: &Known, places: &Places, sources: &Sources, index: usize, input: &Input) -> Option<Whose> {
    let Known { resource, all, item, .. } = known;
    let is_detail = Some(index) == resource.detail;
    match input.place {
        InputPlace::Path => places.whose(&all[index].path, &input.name),
        // `users.info?user=7`: a call by name has its key in the query.
        InputPlace::Query if is_detail => {
            // The one thing that a call needs to be told.
            let is_alone = all[index].inputs.iter().filter(|input| input.required).count() == 1;
            (input.required && is_alone).then_some(Whose::Own)
        }
        InputPlace::Query => {
            let asked = resource.detail.is_some_and(|detail| {
                all[detail]
                    .inputs
                    .iter()
                    .any(|one| one.place == InputPlace::Query && one.required && one.name == input.name)
            });
            (asked && sources.spec.endpoints.get(index).is_some()).then_some(Whose::Other)
        }
        InputPlace::Variable if is_detail && input.required => is_key(&input.name).then_some(Whose::Own),
        // An optional variable is a key only under the very name of the field.
        InputPlace::Variable if is_detail => {
            (is_key(&input.name) && item.properties.contains_key(&input.name)).then_some(Whose::Own)
        }
        _ => None,
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
    /// The field that holds the key of what the item belongs to.
    fn parent_field(&self) -> Option<(String, bool)> {
        let wanted = plain(&self.input.name);
        let is_bare = KEY_NAMES.contains(&wanted.as_str());
        self.linked().or_else(|| self.same(&wanted).filter(|_| !is_bare)).map(|field| (field, false))
    }

    /// The field of a parameter whose place does not say that it is a key: a link or its own name must.
    fn named_field(&self) -> Option<(String, bool)> {
        let wanted = plain(&self.input.name);
        let own = plain(self.singular);
        let by_name = || {
            let rest = wanted.strip_prefix(own.as_str()).filter(|_| own.len() > 2)?;
            match rest {
                "" => self.same("id").or_else(|| self.same("uuid")),
                // The `name` of a user is what people call them, not the user name.
                rest if ["name", "code", "key"].contains(&rest) => self.same(&wanted),
                rest if KEY_NAMES.contains(&rest) => self.same(&wanted).or_else(|| self.same(rest)),
                _ => None,
            }
        };
        self.linked().or_else(by_name).map(|field| (field, false))
    }

    /// The field, and whether it is a guess.
    fn field(&self, has_same_model: bool) -> Option<(String, bool)> {
        let wanted = plain(&self.input.name);
        let own = plain(self.singular);
        let rest = wanted.strip_prefix(own.as_str()).filter(|rest| KEY_NAMES.contains(rest));
        let prefixed = KEY_NAMES.contains(&wanted.as_str()).then(|| format!("{own}{wanted}"));
        let certain = self
            .linked()
            .or_else(|| self.same(&wanted))
            .or_else(|| self.same(rest.filter(|rest| !self.is_display(&wanted, rest))?))
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
            let is_display = self.is_display(&wanted, &plain(&field));
            return Some((field, !has_same_model || is_display));
        }
        // What people call an item by is often accepted in place of an id, but nothing says so.
        let names = ["name", "slug", "key", "code", "username", "login"];
        names.iter().find_map(|name| self.same(name)).map(|field| (field, true))
    }

    /// Whether a field may be what people call an item, and the parameter what the API calls it: a user with a `login` is not
    /// known by their `name`.
    fn is_display(&self, wanted: &str, field: &str) -> bool {
        let others = ["login", "username", "handle", "slug"];
        field == "name" && (wanted == "username" || others.iter().any(|other| self.same(other).is_some()))
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
