//! Links between resources: children by path, and fields that name another resource.
//!
//! Owns their detection; the lists and details that show them are in the printed module.

use super::lists::{self, Eager};
use super::models::Models;
use super::words::{humanize, singular, split};
use super::{InputPlace, Operation, Relation, Resource, operations};
use crate::spec::Spec;
use std::collections::HashMap;

const MAX_RELATIONS: usize = 30;

pub(super) fn relate(resources: &mut [Resource], all: &[Operation], spec: &Spec, models: &Models) {
    let children = children(resources, all);
    let references = references(resources, all, spec, models);
    for (from, relation) in children.into_iter().chain(references) {
        if let Some(resource) =
            resources.get_mut(from).filter(|resource| resource.relations.len() < MAX_RELATIONS)
        {
            resource.relations.push(relation);
        }
    }
}

/// `/users/{userId}/orders` is a list that belongs to an item of `/users`.
fn children(resources: &[Resource], all: &[Operation]) -> Vec<(usize, Relation)> {
    let mut by_item: HashMap<&str, usize> = HashMap::new();
    for (index, resource) in resources.iter().enumerate() {
        for operation in [resource.detail, resource.edits, resource.deletes].into_iter().flatten() {
            by_item.entry(all[operation].path.as_str()).or_insert(index);
        }
    }
    let mut found = Vec::new();
    for (index, resource) in resources.iter().enumerate() {
        let Some(list) = &resource.list else { continue };
        let Some((parent, _)) = all[list.operation].path.rsplit_once('/') else { continue };
        let Some(from) = by_item.get(parent).copied().filter(|from| *from != index) else { continue };
        let parameter = all[list.operation].inputs.iter().rfind(|input| input.place == InputPlace::Path);
        if let Some(parameter) = parameter {
            let relation = Relation {
                resource: index,
                label: resource.title.clone(),
                field: String::new(),
                parameter: parameter.name.clone(),
            };
            found.push((from, relation));
        }
    }
    found
}

/// A field `ownerId` or `owner` leads to the resource whose items it names.
fn references(
    resources: &[Resource],
    all: &[Operation],
    spec: &Spec,
    models: &Models,
) -> Vec<(usize, Relation)> {
    let plain = |name: &str| split(name).concat().to_lowercase();
    let mut by_name: HashMap<String, usize> = HashMap::new();
    for (index, resource) in resources.iter().enumerate() {
        let opens = resource.detail.is_some_and(|detail| required_keys(&all[detail]) == 1);
        if opens && resource.detail_key(all).is_some() {
            by_name.entry(plain(&resource.singular)).or_insert(index);
            by_name.entry(plain(&singular(&resource.title))).or_insert(index);
        }
    }
    let mut found = Vec::new();
    for (index, resource) in resources.iter().enumerate() {
        let Some(answer) = resource.list.as_ref().and_then(|list| operations::answer(spec, list.operation))
        else {
            continue;
        };
        let Some(item) = lists::find(models, answer, Eager::Yes).and_then(|found| models.object(found.item))
        else {
            continue;
        };
        for (name, property) in &item.properties {
            let words = plain(name);
            let stem = words.strip_suffix("id").filter(|stem| !stem.is_empty());
            let target = stem.and_then(|stem| by_name.get(stem));
            let by_type = || {
                let name = models.name(property)?;
                by_name.get(&plain(name))
            };
            let Some(to) = target.or_else(by_type).copied().filter(|to| *to != index) else { continue };
            let Some(key) = resources[to].detail_key(all) else { continue };
            let is_object = models.object(property).is_some();
            let field = if is_object { format!("{name}.{}", key.field) } else { name.clone() };
            let label = humanize(
                stem.filter(|_| !is_object)
                    .map_or(name.as_str(), |_| name.trim_end_matches("Id").trim_end_matches("_id")),
            );
            found.push((index, Relation { resource: to, label, field, parameter: key.parameter.clone() }));
        }
    }
    found
}

fn required_keys(operation: &Operation) -> usize {
    operation.inputs.iter().filter(|input| input.required).count()
}
