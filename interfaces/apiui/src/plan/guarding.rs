//! Which operations may edit or delete one item: those that name it.
//!
//! Owns the last look before anything is printed, for plans of any origin. Invariant: no printed view edits or deletes an item
//! by an operation whose key or filter would be empty.

use super::paths::normalized;
use super::{Input, InputKind, InputPlace, Operation, Plan, Resource, Shape};

impl Plan {
    /// The resource without the parts that would change rows without naming one.
    pub(crate) fn guarded(&self, resource: &Resource) -> Option<Resource> {
        let is_unkeyed = |index: Option<usize>| index.is_some_and(|index| !self.is_keyed(resource, index));
        let (edits, deletes) = (is_unkeyed(resource.edits), is_unkeyed(resource.deletes));
        (edits || deletes).then(|| Resource {
            edits: resource.edits.filter(|_| !edits),
            deletes: resource.deletes.filter(|_| !deletes),
            ..resource.clone()
        })
    }

    /// Takes such parts away.
    pub(crate) fn guard(&mut self) {
        for at in 0..self.resources.len() {
            if let Some(resource) = self.guarded(&self.resources[at]) {
                self.resources[at] = resource;
            }
        }
    }

    /// Whether an operation that edits or deletes an item of the resource names the item.
    pub(crate) fn is_keyed(&self, resource: &Resource, index: usize) -> bool {
        let Some(operation) = self.operations.get(index) else { return false };
        if operation.query_text.is_empty() {
            return !operation.selectors.is_empty() || self.names_item(resource, operation);
        }
        let keys: Vec<Vec<&str>> = resource
            .keys
            .iter()
            .map(|key| key.parameter.split('.').collect::<Vec<_>>())
            .filter(|path| reaches(&self.shapes, &operation.inputs, path))
            .collect();
        // A filter that no key fills would be empty, which means every row.
        let is_filled = |selector: &Vec<String>| keys.iter().any(|key| covers(key, selector));
        !keys.is_empty() && operation.selectors.iter().all(is_filled)
    }

    /// Whether the path has a part that the path of the list has not.
    fn names_item(&self, resource: &Resource, operation: &Operation) -> bool {
        let has_parameter = operation.inputs.iter().any(|input| input.place == InputPlace::Path);
        let list = resource.list.as_ref().and_then(|list| self.operations.get(list.operation));
        let is_of_list =
            list.is_some_and(|list| normalized(&list.path).starts_with(&normalized(&operation.path)));
        let has_key = operation.inputs.iter().any(|input| {
            input.place == InputPlace::Query && resource.keys.iter().any(|key| key.parameter == input.name)
        });
        has_parameter && !is_of_list || has_key
    }
}

/// Whether a path leads to a plain variable, or to a plain field of one.
fn reaches(shapes: &[Shape], inputs: &[Input], path: &[&str]) -> bool {
    let Some((name, rest)) = path.split_first() else { return false };
    let Some(input) = inputs.iter().find(|input| input.name == *name) else { return false };
    let is_group = matches!(
        input.kind,
        InputKind::Object | InputKind::List | InputKind::Map | InputKind::Variant | InputKind::File
    );
    match (rest.is_empty(), input.kind) {
        (true, _) => !is_group,
        (false, InputKind::Object) => {
            let fields =
                input.shape.and_then(|shape| shapes.get(shape)).map_or(&input.fields, |shape| &shape.fields);
            reaches(shapes, fields, rest)
        }
        (false, _) => false,
    }
}

/// Whether a key fills a selector: it is in it, or the selector is the key.
fn covers(key: &[&str], selector: &[String]) -> bool {
    key.iter().zip(selector).all(|(one, other)| *one == other.as_str()) && key.len() >= selector.len()
}
