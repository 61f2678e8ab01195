//! What an edit must not send back: the fields that only the server sets.
//!
//! Owns the paths of read-only fields, from the schema of the request and from that of the detail's answer.

use super::models::Models;
use super::{BodyForm, Operation, Resource, operations};
use crate::spec::{Model, Spec};

const MAX_DEPTH: usize = 5;
const MAX_PATHS: usize = 300;
/// Fields that are looked at for one resource: schemas can refer to each other without end.
const MAX_FIELDS: usize = 3_000;

/// Marks the bodies of the operations that edit items.
pub(super) fn mark_read_only(spec: &Spec, models: &Models, resources: &[Resource], all: &mut [Operation]) {
    for resource in resources {
        let Some(edits) = resource.edits else { continue };
        let Some(body) = all.get_mut(edits).and_then(|operation| operation.body.as_mut()) else { continue };
        let mut search = Search { models, path: Vec::new(), paths: Vec::new(), left: MAX_FIELDS };
        for sent in spec.endpoints.get(edits).into_iter().flat_map(|endpoint| &endpoint.bodies) {
            search.collect(&sent.model);
        }
        if let Some(answer) = resource.detail.and_then(|detail| operations::answer(spec, detail)) {
            search.left = MAX_FIELDS;
            search.collect(answer);
        }
        set(body, search.paths);
    }
}

fn set(body: &mut BodyForm, mut paths: Vec<Vec<String>>) {
    paths.sort();
    paths.dedup();
    paths.truncate(MAX_PATHS);
    body.server_set = paths;
}

struct Search<'m, 's> {
    models: &'m Models<'s>,
    path: Vec<String>,
    paths: Vec<Vec<String>>,
    left: usize,
}

impl<'s> Search<'_, 's> {
    fn collect(&mut self, model: &'s Model) {
        if self.path.len() >= MAX_DEPTH || self.left == 0 {
            return;
        }
        if let Some(item) = self.models.item(model) {
            self.path.push("*".to_owned());
            self.collect(item);
            self.path.pop();
            return;
        }
        let Some(object) = self.models.object(model) else { return };
        for (name, property) in &object.properties {
            self.left = self.left.saturating_sub(1);
            self.path.push(name.clone());
            if property.read_only || self.models.resolve(property).read_only {
                self.paths.push(self.path.clone());
            } else {
                self.collect(property);
            }
            self.path.pop();
        }
    }
}
