//! Groups of operations → resources with their list, keys and names.
//!
//! Owns identifiers, default page sizes and the list of assumptions.

use super::grouping::Group;
use super::lists::{self, Eager};
use super::models::{Models, success};
use super::words::{pascal, shorten_note, split};
use super::{InputPlace, Key, List, Operation, Resource, columns, graph, grouping, operations, paging};
use crate::spec::{Model, Spec};
use std::collections::HashSet;

const DEFAULT_PAGE_SIZE: u32 = 20;

pub(super) fn resources<'s>(
    spec: &'s Spec,
    models: &Models<'s>,
    all: &[Operation],
    assumptions: &mut Vec<String>,
) -> Vec<Resource> {
    let mut groups = grouping::groups(spec, models);
    groups.extend(graph::groups(spec, models, spec.endpoints.len()));
    order_by_tags(&mut groups, &spec.tags);
    let mut ids = HashSet::new();
    let mut resources = Vec::with_capacity(groups.len());
    for (index, group) in groups.iter().enumerate() {
        resources.push(resource(spec, models, all, group, unique_id(&group.title, index, &mut ids)));
    }
    assume(&resources, all, assumptions);
    resources
}

/// Resources in the order of the document's tags, those without one last.
fn order_by_tags(groups: &mut [Group], tags: &[String]) {
    let place = |group: &Group| tags.iter().position(|tag| *tag == group.tag).unwrap_or(tags.len());
    groups.sort_by_key(place);
}

fn unique_id(title: &str, index: usize, ids: &mut HashSet<String>) -> String {
    let base = pascal(title);
    let base = if base.is_empty() { format!("Resource{}", index + 1) } else { base };
    let mut id = base.clone();
    let mut number = 2;
    // Compared without case, so that no two differ by it alone.
    while !ids.insert(id.to_lowercase()) {
        id = format!("{base}{number}");
        number += 1;
    }
    id
}

fn resource<'s>(
    spec: &'s Spec,
    models: &Models<'s>,
    all: &[Operation],
    group: &Group<'s>,
    id: String,
) -> Resource {
    let mut resource = Resource {
        id,
        title: group.title.clone(),
        singular: group.singular.clone(),
        group: group.tag.clone(),
        detail: group.detail,
        creates: group.create,
        edits: group.edit,
        deletes: group.delete,
        operations: group.members.clone(),
        ..Resource::default()
    };
    let mut item = group.item;
    if let Some(index) = group.list
        && let Some(answer) = operations::answer(spec, index)
        && let Some(found) = lists::find(models, answer, Eager::Yes)
    {
        resource.list = Some(list(spec, models, all, index, &found));
        item = Some(found.item);
    }
    if let Some(model) = item.and_then(|item| models.object(item)) {
        resource.note = shorten_note(model.description.as_deref(), 240);
        resource.keys = keys(&resource, all, model);
    } else if let (Some(list), Some(detail)) = (&resource.list, resource.detail) {
        // Items that are plain values are their own keys.
        let taken = |name: &str| all[list.operation].inputs.iter().any(|input| input.name == name);
        let input = all[detail].inputs.iter().find(|input| input.required && !taken(&input.name));
        resource.keys = input
            .map(|input| Key { parameter: input.name.clone(), field: columns::WHOLE.to_owned() })
            .into_iter()
            .collect();
    }
    resource
}

fn list<'s>(
    spec: &'s Spec,
    models: &Models<'s>,
    all: &[Operation],
    index: usize,
    found: &lists::Found<'s>,
) -> List {
    let response = spec.endpoints.get(index).and_then(success);
    let (paging, total) = paging::detect(models, &all[index], found, response);
    let mut list = List {
        operation: index,
        items: found.items.clone(),
        total,
        columns: columns::columns(models, found.item),
        page_size: DEFAULT_PAGE_SIZE,
        paging,
        ..List::default()
    };
    list.page_size = list.largest_page(all).map_or(DEFAULT_PAGE_SIZE, |most| most.min(DEFAULT_PAGE_SIZE));
    list
}

/// For each parameter of an operation on one item: the field of the item that fills it.
fn keys(resource: &Resource, all: &[Operation], item: &Model) -> Vec<Key> {
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
        for input in &all[*index].inputs {
            let is_key = match input.place {
                InputPlace::Path => true,
                InputPlace::Variable if input.required => !is_list && graph::is_key(&input.name),
                // An optional variable is a key only under the very name of the field.
                InputPlace::Variable => {
                    Some(*index) == resource.detail
                        && graph::is_key(&input.name)
                        && item.properties.contains_key(&input.name)
                }
                _ => false,
            };
            let known = keys.iter().any(|key| key.parameter == input.name);
            if !is_key || known || handed_down.contains(input.name.as_str()) {
                continue;
            }
            if let Some(field) = key_field(&input.name, &resource.singular, item) {
                keys.push(Key { parameter: input.name.clone(), field });
            }
        }
    }
    keys
}

fn key_field(parameter: &str, singular: &str, item: &Model) -> Option<String> {
    let plain = |name: &str| split(name).concat().to_lowercase();
    let wanted = plain(parameter);
    let same = |wanted: &str| item.properties.keys().find(|name| plain(name) == wanted).cloned();
    let own = plain(singular);
    let without_prefix = wanted.strip_prefix(own.as_str()).filter(|rest| !rest.is_empty());
    let ends_like_id = wanted.ends_with("id") || wanted == own || wanted.ends_with("uuid");
    same(&wanted)
        .or_else(|| without_prefix.and_then(same))
        .or_else(|| ends_like_id.then(|| same("id").or_else(|| same("uuid"))).flatten())
        .or_else(|| {
            let names = ["name", "key", "slug", "code", "id", "uuid", "number"];
            let names = names.iter().filter(|name| wanted.ends_with(**name) || wanted == own);
            names.into_iter().find_map(|name| same(name))
        })
        .or_else(|| {
            let metadata = item.properties.get("metadata")?;
            (wanted == "name" && metadata.reference.is_some()).then(|| "metadata.name".to_owned())
        })
        .or_else(|| {
            // Without an id, what people call it by is often accepted in its place.
            let names = ["name", "slug", "key", "code", "username", "login"];
            names.iter().filter(|_| ends_like_id && same("id").is_none()).find_map(|name| same(name))
        })
}

fn assume(resources: &[Resource], all: &[Operation], assumptions: &mut Vec<String>) {
    let lists: Vec<&Resource> = resources.iter().filter(|resource| resource.list.is_some()).collect();
    let paged = lists
        .iter()
        .filter(|resource| resource.list.as_ref().is_some_and(|list| list.paging.is_some()))
        .count();
    if paged < lists.len() {
        let whole = lists.len() - paged;
        let (noun, verb) = if whole == 1 { ("list has", "it is") } else { ("lists have", "they are") };
        assumptions.push(format!(
            "{whole} {noun} no paging parameters: {verb} loaded whole and paged in the browser."
        ));
    }
    if !lists.is_empty() {
        assumptions.push("Sorting and filtering work on the rows that are loaded.".to_owned());
    }
    if all.iter().any(|operation| operation.signature.starts_with("subscription ")) {
        assumptions.push(
            "Subscriptions are sent as one request; a stream needs a host that supplies `request`."
                .to_owned(),
        );
    }
}
