//! Inputs that hold the key of another resource's item: the page lets people choose the item by its name.
//!
//! Owns their detection by name (`authorId`, `tag_ids`, or the key of the operation's own resource). A wrong guess does no
//! harm: any value can still be typed. Only resources whose key the specification names can be chosen from.

use super::words::{singular, split};
use super::{Input, InputKind, InputPlace, Operation, Plan, Resource};
use std::collections::HashMap;

/// Words at the end of a name that say that it holds a key.
const KEY_WORDS: [&str; 9] = ["id", "ids", "uuid", "uuids", "guid", "guids", "sid", "ref", "reference"];

pub(super) fn mark(plan: &mut Plan) {
    let mut named: HashMap<String, usize> = HashMap::new();
    for (index, resource) in plan.resources.iter().enumerate() {
        if can_be_chosen_from(resource, &plan.operations) {
            named.entry(plain(&split(&resource.singular))).or_insert(index);
            named.entry(plain(&split(&singular(&resource.title)))).or_insert(index);
        }
    }
    if named.is_empty() {
        return;
    }
    for shape in &mut plan.shapes {
        shape.fields.iter_mut().for_each(|field| mark_input(field, None, &named));
    }
    for operation in &mut plan.operations {
        operation.inputs.iter_mut().for_each(|input| mark_input(input, None, &named));
        if let Some(body) = &mut operation.body {
            mark_input(&mut body.input, None, &named);
        }
    }
    mark_own_keys(plan);
}

/// `/books/{id}`: the parameter is the key of the operation's own resource.
fn mark_own_keys(plan: &mut Plan) {
    for (index, resource) in plan.resources.iter().enumerate() {
        let Some(key) = certain_key(resource).filter(|_| can_be_chosen_from(resource, &plan.operations))
        else {
            continue;
        };
        for operation in &resource.operations {
            let Some(operation) = plan.operations.get_mut(*operation) else { continue };
            let is_key = |input: &&mut Input| input.place == InputPlace::Path && input.name == key;
            for input in operation.inputs.iter_mut().filter(is_key).filter(|input| is_plain(input)) {
                input.reference = Some(index);
            }
        }
    }
}

fn can_be_chosen_from(resource: &Resource, operations: &[Operation]) -> bool {
    let Some(list) = &resource.list else { return false };
    let Some(operation) = operations.get(list.operation) else { return false };
    let paging = list.paging.as_ref();
    let is_paging = |input: &Input| {
        paging.is_some_and(|paging| [&paging.parameter, &paging.size_parameter].contains(&&input.name))
    };
    let is_given = |input: &Input| {
        !input.required || !input.initial.is_empty() || input.place == InputPlace::Path || is_paging(input)
    };
    certain_key(resource).is_some() && operation.inputs.iter().all(is_given)
}

/// The parameter of the one key that the specification names.
fn certain_key(resource: &Resource) -> Option<&str> {
    let first = resource.keys.first()?;
    let is_alone = resource.keys.iter().all(|key| key.field == first.field && !key.guessed);
    is_alone.then_some(first.parameter.as_str())
}

/// `name` is that of the list around the input, where there is one.
fn mark_input(input: &mut Input, name: Option<&str>, named: &HashMap<String, usize>) {
    if is_plain(input) {
        input.reference = resource_of(name.unwrap_or(&input.name), named);
    }
    input.fields.iter_mut().for_each(|field| mark_input(field, None, named));
    input.alternatives.iter_mut().for_each(|one| mark_input(&mut one.input, None, named));
    if let Some(item) = &mut input.item {
        let around = (input.kind == InputKind::List).then_some(name.unwrap_or(&input.name));
        mark_input(item, around, named);
    }
}

fn is_plain(input: &Input) -> bool {
    matches!(input.kind, InputKind::Text | InputKind::Integer) && input.choices.is_empty()
}

/// The resource that a name ends with: `primaryAuthorId` → authors.
fn resource_of(name: &str, named: &HashMap<String, usize>) -> Option<usize> {
    // Most names are no keys: that is seen without taking them apart.
    let ends_with = |word: &str| {
        let start = name.len().checked_sub(word.len());
        start.and_then(|start| name.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    if !KEY_WORDS.iter().any(|word| ends_with(word)) {
        return None;
    }
    let mut words = split(name);
    let last = words.pop()?.to_lowercase();
    if !KEY_WORDS.contains(&last.as_str()) {
        return None;
    }
    (0..words.len()).find_map(|from| named.get(&plain(&words[from..])).copied())
}

fn plain<T: AsRef<str>>(words: &[T]) -> String {
    words.iter().map(|word| word.as_ref().to_lowercase()).collect()
}
