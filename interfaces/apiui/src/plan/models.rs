//! Looking things up in the models of a specification.
//!
//! Owns resolution of references and the question "what does this answer hold?". Changes nothing.

use crate::spec::{Endpoint, Kind, Model, Response, Spec};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

pub(super) struct Models<'s> {
    by_name: HashMap<&'s str, &'s Model>,
    /// All names in lower case and in one word; made when they are asked for.
    plain_names: OnceCell<HashSet<String>>,
}

impl<'s> Models<'s> {
    pub(super) fn of(spec: &'s Spec) -> Self {
        let mut by_name = HashMap::with_capacity(spec.models.len());
        for model in &spec.models {
            by_name.entry(model.name.as_str()).or_insert(model);
        }
        Self { by_name, plain_names: OnceCell::new() }
    }

    /// Whether there is a model of this name, in lower case and in one word.
    pub(super) fn is_type(&self, name: &str) -> bool {
        let names = || self.by_name.keys().map(|name| super::words::squeezed(name)).collect();
        self.plain_names.get_or_init(names).contains(name)
    }

    pub(super) fn named(&self, name: &str) -> Option<&'s Model> {
        self.by_name.get(name).copied()
    }

    /// Follows references; a few are enough, since readers have removed chains of aliases.
    pub(super) fn resolve(&self, model: &'s Model) -> &'s Model {
        let mut current = model;
        for _ in 0..8 {
            match current.reference.as_deref().and_then(|name| self.named(name)) {
                Some(next) => current = next,
                None => break,
            }
        }
        current
    }

    /// The name under which a model is known: of its reference, or its own.
    pub(super) fn name(&self, model: &'s Model) -> Option<&'s str> {
        let name = model.reference.as_deref().unwrap_or(&model.name);
        (!name.is_empty() && self.by_name.contains_key(name)).then_some(name)
    }

    /// The fields of an object, or those of the first object among the variants of a union.
    pub(super) fn object(&self, model: &'s Model) -> Option<&'s Model> {
        let model = self.resolve(model);
        if !model.properties.is_empty() {
            return Some(model);
        }
        let variant =
            |variant: &'s Model| Some(self.resolve(variant)).filter(|found| !found.properties.is_empty());
        model.union_of.iter().find_map(variant)
    }

    /// The item model when a value is a list.
    pub(super) fn item(&self, model: &'s Model) -> Option<&'s Model> {
        let model = self.resolve(model);
        match model.kind {
            Kind::Array => model.items.as_deref(),
            // A union of "a list" and "something else" is used as the list.
            Kind::Union => model.union_of.iter().find_map(|variant| {
                let variant = self.resolve(variant);
                (variant.kind == Kind::Array).then_some(variant.items.as_deref()).flatten()
            }),
            _ => None,
        }
    }
}

/// The answer that means success: the first 2xx, or the default.
pub(super) fn success(endpoint: &Endpoint) -> Option<&Response> {
    let is_success = |response: &&Response| response.status_code.starts_with('2');
    let with_schema =
        endpoint.responses.values().filter(is_success).find(|response| response.schema.is_some());
    with_schema
        .or_else(|| endpoint.responses.values().find(is_success))
        .or_else(|| endpoint.responses.get("default").filter(|_| endpoint.responses.len() == 1))
}
