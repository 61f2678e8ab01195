//! Groups of operations → resources with their list, keys and names.
//!
//! Owns identifiers, default page sizes and the list of assumptions.

use super::grouping::{Group, lower_first};
use super::lists::{self, Eager};
use super::models::{Models, success};
use super::words::{pascal, shorten_note};
use super::{Key, List, Operation, Resource, columns, graph, grouping, keys, operations, paging};
use crate::spec::Spec;
use std::collections::HashSet;

const DEFAULT_PAGE_SIZE: u32 = 20;

pub(super) fn resources<'s>(
    spec: &'s Spec,
    models: &Models<'s>,
    all: &mut [Operation],
    assumptions: &mut Vec<String>,
) -> Vec<Resource> {
    let mut groups = grouping::groups(spec, models);
    groups.extend(graph::groups(spec, models, spec.endpoints.len()));
    order_by_tags(&mut groups, &spec.tags);
    let sources = keys::Sources::new(spec);
    let mut ids = HashSet::new();
    let mut resources = Vec::with_capacity(groups.len());
    for (index, group) in groups.iter().enumerate() {
        resources.push(resource(
            spec,
            &sources,
            models,
            all,
            group,
            unique_id(&group.title, index, &mut ids),
        ));
    }
    for group in &groups {
        mark(group, all);
    }
    assume(&resources, all, assumptions);
    resources
}

/// Notes in the operations that edit and delete items what says which item they are about, and where its fields go.
fn mark(group: &Group, all: &mut [Operation]) {
    if let Some(edit) = group.edit.and_then(|index| all.get_mut(index)) {
        edit.record = group.record.clone();
        edit.selectors.extend(group.body_key.iter().map(|key| vec![key.clone()]));
    }
    let parts = [group.edit, group.delete];
    for (index, key) in group.proven.iter().filter(|(index, _)| parts.contains(&Some(*index))) {
        let Some(operation) = all.get_mut(*index) else { continue };
        if !operation.selectors.iter().any(|selector| key.path.starts_with(selector)) {
            operation.selectors.push(key.path.clone());
        }
    }
}

/// Names operations that the document does not name, by what they do with their resource.
pub(super) fn title_operations(resources: &[Resource], all: &mut [Operation]) {
    for resource in resources {
        let one = lower_first(&resource.singular);
        let list = resource.list.as_ref().map(|list| list.operation);
        for (index, title) in [
            (list, format!("List {}", lower_first(&resource.title))),
            (resource.detail, format!("Show {one}")),
            (resource.creates, format!("Create {one}")),
            (resource.edits, format!("Change {one}")),
            (resource.deletes, format!("Delete {one}")),
        ] {
            if let Some(operation) = index.and_then(|index| all.get_mut(index))
                && operation.title == operations::unnamed(&operation.method, &operation.path)
            {
                operation.title = title;
            }
        }
    }
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
    sources: &keys::Sources,
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
        let has_same_model = has_same_model(spec, models, &resource);
        let proven = &group.proven;
        let known = keys::Known { resource: &resource, all, item: model, has_same_model, proven };
        resource.keys = keys::keys(sources, &known);
    } else {
        resource.keys = whole_key(&resource, all).into_iter().collect();
    }
    resource
}

/// Items that are plain values are their own keys.
fn whole_key(resource: &Resource, all: &[Operation]) -> Option<Key> {
    let (list, detail) = (resource.list.as_ref()?, resource.detail?);
    let taken = |name: &str| all[list.operation].inputs.iter().any(|input| input.name == name);
    let input = all[detail].inputs.iter().find(|input| input.required && !taken(&input.name))?;
    Some(Key {
        parameter: input.name.clone(),
        field: columns::WHOLE.to_owned(),
        guessed: false,
        also: Vec::new(),
    })
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

/// Whether the detail answers with the very model that the list holds.
fn has_same_model(spec: &Spec, models: &Models, resource: &Resource) -> bool {
    let listed = resource.list.as_ref().and_then(|list| operations::answer(spec, list.operation));
    let item = listed.and_then(|answer| lists::find(models, answer, Eager::Yes)).map(|found| found.item);
    let detail = resource.detail.and_then(|index| operations::answer(spec, index));
    match (item.and_then(|item| models.name(item)), detail.and_then(|detail| models.name(detail))) {
        (Some(item), Some(detail)) => item == detail,
        _ => false,
    }
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
            "Subscriptions are read as server-sent events; an API that has them over WebSockets alone needs a host that supplies `request`."
                .to_owned(),
        );
    }
}
