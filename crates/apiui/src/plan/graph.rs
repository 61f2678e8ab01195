//! GraphQL operations → groups around one type each.
//!
//! Owns the reading of names and result types. Invariant: every operation is in exactly one group.

use super::connection::connection;
use super::grouping::Group;
use super::models::Models;
use super::roles::{Verb, verb};
use super::words::{humanize, plural, singular};
use crate::spec::{GraphOperation, Kind, Model, Spec};
use indexmap::IndexMap;

/// Groups of the GraphQL operations; their indexes begin at `offset`.
pub(super) fn groups<'s>(spec: &'s Spec, models: &Models<'s>, offset: usize) -> Vec<Group<'s>> {
    let all: Vec<&'s GraphOperation> =
        spec.queries.iter().chain(&spec.mutations).chain(&spec.subscriptions).collect();
    let mut groups: IndexMap<String, Group<'s>> = IndexMap::new();
    for (index, operation) in all.iter().enumerate().filter(|(_, operation)| operation.kind == "query") {
        let result = result(models, operation);
        let Some(entity) = result.entity else { continue };
        let group = groups.entry(entity.to_lowercase()).or_insert_with(|| named(entity));
        group.members.push(offset + index);
        let is_better = |current: Option<usize>| {
            current.is_none_or(|current| rank(operation, entity) < rank(all[current - offset], entity))
        };
        if result.is_list {
            if is_better(group.list) {
                group.list = Some(offset + index);
            }
        } else if operation.args.iter().any(|arg| is_key(&arg.name)) && is_better(group.detail) {
            group.detail = Some(offset + index);
            group.item = Some(&operation.return_type);
        }
    }
    for (index, operation) in all.iter().enumerate().filter(|(_, operation)| operation.kind != "query") {
        assign(&mut groups, models, operation, offset + index);
    }
    // What is left and answers with a thing of its own founds a group for it.
    let placed: std::collections::HashSet<usize> =
        groups.values().flat_map(|group| group.members.iter().copied()).collect();
    for (index, operation) in all.iter().enumerate().filter(|(index, _)| !placed.contains(&(offset + index)))
    {
        let entity = result(models, operation).entity.filter(|name| !is_envelope(name));
        if let Some(entity) = entity {
            groups.entry(entity.to_lowercase()).or_insert_with(|| named(entity)).members.push(offset + index);
        }
    }
    leftovers(&mut groups, &all, offset);
    // What there is only one of is not called by the plural.
    let tidy = |mut group: Group<'s>| {
        let is_many = group.list.is_some() || group.create.is_some() || group.delete.is_some();
        if !is_many {
            group.title = group.singular.clone();
        }
        group
    };
    groups.into_values().map(tidy).collect()
}

/// How well a query stands for its type: never a deprecated one where there is another, then the one that needs the
/// fewest arguments, then the one that is called like the type and pages as a connection.
fn rank(operation: &GraphOperation, entity: &str) -> (bool, usize, u8, bool) {
    let required = operation.args.iter().filter(|arg| arg.required).count();
    let (name, entity) = (operation.name.to_lowercase(), entity.to_lowercase());
    let by_name = if name == entity || name == plural(&entity) || name == format!("all{}", plural(&entity)) {
        0
    } else if ["search", "filter", "recent", "by", "suggest"].iter().any(|word| name.contains(word)) {
        2
    } else {
        1
    };
    let is_paged = operation.args.iter().any(|arg| matches!(arg.name.as_str(), "first" | "after"));
    (operation.deprecated, required, by_name, !is_paged)
}

struct Outcome<'s> {
    entity: Option<&'s str>,
    is_list: bool,
}

/// The type a result is about, unwrapped from lists and connections.
fn result<'s>(models: &Models<'s>, operation: &'s GraphOperation) -> Outcome<'s> {
    let mut model = &operation.return_type;
    let mut is_list = false;
    if let Some(found) = connection(models, model) {
        model = found.node;
        is_list = true;
    }
    while let Some(item) = models.item(model) {
        model = item;
        is_list = true;
    }
    let target = models.resolve(model);
    let is_composite = matches!(target.kind, Kind::Object | Kind::Union);
    let entity = models.name(model).or(Some(model.name.as_str()).filter(|name| !name.is_empty()));
    Outcome { entity: entity.filter(|_| is_composite), is_list }
}

fn named<'s>(entity: &str) -> Group<'s> {
    let one = humanize(entity);
    Group { title: plural(&one), singular: one, ..Group::default() }
}

/// A mutation or subscription goes to the type in its name, or else to the type in its answer.
fn assign<'s>(
    groups: &mut IndexMap<String, Group<'s>>,
    models: &Models<'s>,
    operation: &'s GraphOperation,
    index: usize,
) {
    let (verb, rest) = match verb(&operation.name) {
        Some((verb, rest)) => (Some(verb), rest),
        None => (None, operation.name.to_lowercase()),
    };
    let by_name = [rest.clone(), singular(&rest)].into_iter().find(|name| groups.contains_key(name));
    let by_result = || {
        let entity = result(models, operation).entity?.to_lowercase();
        groups
            .contains_key(&entity)
            .then_some(entity)
            .or_else(|| payload(groups, models, &operation.return_type))
    };
    let exact = by_name.is_some();
    let Some(key) = by_name.or_else(by_result) else { return };
    let Some(group) = groups.get_mut(&key) else { return };
    group.members.push(index);
    let slot = match verb.filter(|_| exact && operation.kind == "mutation") {
        Some(Verb::Create) => &mut group.create,
        Some(Verb::Edit) => &mut group.edit,
        Some(Verb::Delete) => &mut group.delete,
        None => return,
    };
    if slot.is_none() && !operation.deprecated {
        *slot = Some(index);
    }
}

/// The first field of a payload that is about a known type.
fn payload<'s>(
    groups: &IndexMap<String, Group<'s>>,
    models: &Models<'s>,
    model: &'s Model,
) -> Option<String> {
    let object = models.object(model)?;
    object.properties.values().find_map(|property| {
        let item = models.item(property).unwrap_or(property);
        let name = models.name(item)?.to_lowercase();
        groups.contains_key(&name).then_some(name)
    })
}

fn leftovers<'s>(groups: &mut IndexMap<String, Group<'s>>, all: &[&'s GraphOperation], offset: usize) {
    let mut is_placed = vec![false; all.len()];
    for member in groups.values().flat_map(|group| &group.members) {
        is_placed[*member - offset] = true;
    }
    for (index, operation) in all.iter().enumerate().filter(|(index, _)| !is_placed[*index]) {
        let title = match operation.kind.as_str() {
            "query" => "Other queries",
            "mutation" => "Other mutations",
            _ => "Subscriptions",
        };
        // A key with a blank cannot be the name of a type.
        let group = groups.entry(format!(" {title}")).or_insert_with(|| Group {
            title: title.to_owned(),
            singular: title.to_owned(),
            ..Group::default()
        });
        group.members.push(offset + index);
    }
}

/// A type that only carries an answer.
fn is_envelope(name: &str) -> bool {
    ["Payload", "Result", "Response", "Output", "Error", "Connection"].iter().any(|end| name.ends_with(end))
}

pub(super) fn is_key(name: &str) -> bool {
    let lower = name.to_lowercase();
    matches!(
        lower.as_str(),
        "id" | "uuid" | "slug" | "key" | "name" | "login" | "username" | "code" | "number"
    ) || lower.ends_with("id")
}
