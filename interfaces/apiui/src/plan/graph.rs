//! GraphQL operations → groups around one type each.
//!
//! Owns the reading of names and result types. Invariant: every operation is in exactly one group.

use super::connection::connection;
use super::grouping::Group;
use super::models::Models;
use super::roles::{self, Verb};
use super::selecting::{self, Item, Trust};
use super::words::{humanize, is_key, plural, singular, split, squeezed};
use crate::spec::{GraphOperation, Kind, Model, Spec};
use indexmap::IndexMap;
use std::collections::HashMap;

/// Groups of the GraphQL operations; their indexes begin at `offset`.
pub(super) fn groups<'s>(spec: &'s Spec, models: &Models<'s>, offset: usize) -> Vec<Group<'s>> {
    let all: Vec<&'s GraphOperation> =
        spec.queries.iter().chain(&spec.mutations).chain(&spec.subscriptions).collect();
    let mut groups = around_queries(models, &all, offset);
    let mut parts = Parts::default();
    for (index, operation) in all.iter().enumerate().filter(|(_, operation)| operation.kind != "query") {
        parts.assign(&mut groups, models, operation, offset + index);
    }
    // What is left and answers with a thing of its own founds a group for it.
    let placed: std::collections::HashSet<usize> =
        groups.values().flat_map(|group| group.members.iter().copied()).collect();
    for (index, operation) in all.iter().enumerate().filter(|(index, _)| !placed.contains(&(offset + index)))
    {
        let entity = result(models, operation).entity.filter(|name| !is_envelope(name));
        if let Some(entity) = entity {
            groups.entry(squeezed(entity)).or_insert_with(|| named(entity)).members.push(offset + index);
        }
    }
    leftovers(&mut groups, &all, offset);
    for group in groups.values_mut() {
        prove(models, &all, offset, group);
    }
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

/// The types that queries answer with, with their lists and details.
fn around_queries<'s>(
    models: &Models<'s>,
    all: &[&'s GraphOperation],
    offset: usize,
) -> IndexMap<String, Group<'s>> {
    let mut groups: IndexMap<String, Group<'s>> = IndexMap::new();
    for (index, operation) in all.iter().enumerate().filter(|(_, operation)| operation.kind == "query") {
        let result = result(models, operation);
        let Some(entity) = result.entity else { continue };
        let group = groups.entry(squeezed(entity)).or_insert_with(|| named(entity));
        group.members.push(offset + index);
        let is_better = |current: Option<usize>| {
            current.is_none_or(|current| rank(operation, entity) < rank(all[current - offset], entity))
        };
        if result.is_list {
            if is_better(group.list) {
                group.list = Some(offset + index);
            }
        } else if asks_for_one(models, operation, &result) && is_better(group.detail) {
            group.detail = Some(offset + index);
            group.item = Some(result.item);
        }
    }
    groups
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
    item: &'s Model,
    is_list: bool,
}

/// The type a result is about, unwrapped from lists, connections and envelopes.
fn result<'s>(models: &Models<'s>, operation: &'s GraphOperation) -> Outcome<'s> {
    let mut model = &operation.return_type;
    let mut is_list = false;
    if let Some(inner) = enveloped(models, model) {
        model = inner;
    }
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
    Outcome { entity: entity.filter(|_| is_composite), item: model, is_list }
}

/// `PostEntityResponse { data }`: what such a type holds.
fn enveloped<'s>(models: &Models<'s>, model: &'s Model) -> Option<&'s Model> {
    let name = models.name(model)?;
    let is_known = ["EntityResponse", "EntityResponseCollection"].iter().any(|end| name.ends_with(end));
    models.resolve(model).properties.get("data").filter(|_| is_known)
}

fn named<'s>(entity: &'s str) -> Group<'s> {
    let one = humanize(plain_name(entity));
    Group { title: plural(&one), singular: one, entity: Some(entity), ..Group::default() }
}

/// `PostEntity` holds a `Post`.
fn plain_name(entity: &str) -> &str {
    entity.strip_suffix("Entity").filter(|name| !name.is_empty()).unwrap_or(entity)
}

/// Whether a query asks for one item by a key.
fn asks_for_one<'s>(models: &Models<'s>, operation: &'s GraphOperation, result: &Outcome<'s>) -> bool {
    let item = result.entity.and_then(|entity| item_of(models, entity));
    operation.args.iter().any(|arg| is_key(&arg.name))
        || item.is_some_and(|item| !selecting::keys(models, operation, &item, Trust::Exact, false).is_empty())
}

fn item_of<'s>(models: &Models<'s>, entity: &str) -> Option<Item<'s>> {
    let model = models.named(entity)?;
    let attributes = model.properties.get("attributes").filter(|_| entity != plain_name(entity));
    let record = attributes.map_or(model, |attributes| models.resolve(attributes));
    Some(Item { own: squeezed(plain_name(entity)), model, record })
}

/// The operations that play a part in a group, with how well they do.
#[derive(Default)]
struct Parts {
    ranks: HashMap<(String, Verb), (usize, usize)>,
}

impl Parts {
    /// A mutation or subscription goes to the type in its name, or else to the type in its answer.
    fn assign<'s>(
        &mut self,
        groups: &mut IndexMap<String, Group<'s>>,
        models: &Models<'s>,
        operation: &'s GraphOperation,
        index: usize,
    ) {
        let name = roles::name(&operation.name);
        let by_name = [name.noun.clone(), singular(&name.noun), format!("{}entity", name.noun)]
            .into_iter()
            .chain(name.noun.strip_suffix("item").map(str::to_owned))
            .find(|name| groups.contains_key(name));
        let by_result = || {
            let entity = squeezed(result(models, operation).entity?);
            groups
                .contains_key(&entity)
                .then_some(entity)
                .or_else(|| payload(groups, models, &operation.return_type))
        };
        let Some(key) = by_name.or_else(by_result) else { return };
        let Some(group) = groups.get_mut(&key) else { return };
        group.members.push(index);
        let Some(verb) = name.verb.filter(|_| operation.kind == "mutation" && !operation.deprecated) else {
            return;
        };
        let Some(rank) = part(models, operation, group, &name) else { return };
        let slot = match verb {
            Verb::Create => &mut group.create,
            Verb::Edit => &mut group.edit,
            Verb::Delete => &mut group.delete,
        };
        let best = self.ranks.entry((key, verb)).or_insert((usize::MAX, usize::MAX));
        if rank < *best {
            *best = rank;
            *slot = Some(index);
        }
    }
}

/// How well a mutation plays the part of its verb; `None` where it is not certain that it does.
fn part<'s>(
    models: &Models<'s>,
    operation: &'s GraphOperation,
    group: &Group<'s>,
    name: &roles::Name,
) -> Option<(usize, usize)> {
    let item = item_of(models, group.entity?)?;
    let rank = name.rank?;
    if name.is_many || !name.is_about(&item.own) {
        return None;
    }
    let required = operation.args.iter().filter(|arg| arg.required).count();
    let trust = if name.verb == Some(Verb::Delete) { Trust::Deletion } else { Trust::Exact };
    let keys = selecting::keys(models, operation, &item, trust, name.goes_by);
    let is_part = match name.verb? {
        // A list of objects makes many; what asks for the key of an item does something with one that is there.
        Verb::Create => !makes_many(models, operation) && (rank < 6 || keys.is_empty()),
        Verb::Edit => {
            !keys.is_empty() && (operation.args.len() > 1 || keys.iter().all(|key| key.path.len() > 1))
        }
        Verb::Delete => !keys.is_empty(),
    };
    is_part.then_some((rank, required))
}

fn makes_many<'s>(models: &Models<'s>, operation: &'s GraphOperation) -> bool {
    operation.args.iter().filter(|arg| arg.required).any(|arg| {
        let item = arg.schema.as_ref().and_then(|schema| models.item(schema));
        item.is_some_and(|item| !models.resolve(item).properties.is_empty())
    })
}

/// Notes for each operation of a group which of its arguments are keys of the group's items.
fn prove<'s>(models: &Models<'s>, all: &[&'s GraphOperation], offset: usize, group: &mut Group<'s>) {
    let Some(item) = group.entity.and_then(|entity| item_of(models, entity)) else { return };
    for index in &group.members {
        let Some(operation) = all.get(*index - offset) else { continue };
        let name = roles::name(&operation.name);
        let is_part = [group.detail, group.edit, group.delete].contains(&Some(*index));
        let trust = match name.verb {
            _ if !is_part && !is_exact(&operation.name, &name, &item.own) => Trust::Named,
            Some(Verb::Delete) => Trust::Deletion,
            _ => Trust::Exact,
        };
        // What makes an item is not about one that is there.
        let is_creation = name.verb == Some(Verb::Create) && trust != Trust::Named;
        if Some(*index) == group.list || is_creation || name.is_many {
            continue;
        }
        let keys = selecting::keys(models, operation, &item, trust, name.goes_by);
        group.proven.extend(keys.into_iter().map(|key| (*index, key)));
        if Some(*index) == group.edit {
            group.record = Some(selecting::record(models, operation, &item));
        }
    }
}

/// Whether a name is about this very thing: `updatePost`, `orderCancel`, `publishPost`; not `orderLineDelete`.
fn is_exact(written: &str, name: &roles::Name, own: &str) -> bool {
    if name.verb.is_some() {
        return name.is_about(own);
    }
    let words: Vec<String> = split(written).iter().map(|word| word.to_lowercase()).collect();
    let Some((first, last)) = words.first().zip(words.last()) else { return false };
    let is_action = |word: &String| super::rpc::action(word).is_some();
    words.concat() == own
        || is_action(first) && words[1..].concat() == own
        || is_action(last) && words[..words.len() - 1].concat() == own
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
        let name = squeezed(models.name(item)?);
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
