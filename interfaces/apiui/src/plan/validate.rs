//! Whether a plan that came from outside may be printed.
//!
//! Owns the bounds: indexes in range, sizes sane. Types are already right, since serde read it.

use super::{Action, Condition, Input, List, Operation, Plan, Resource, SlotCode, VERSION, slots};
use std::fmt;

const MAX_RESOURCES: usize = 20_000;
const MAX_OPERATIONS: usize = 50_000;
const MAX_DEPTH: usize = 24;
const MAX_VALUES: usize = 100;

/// Why a plan is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(pub String);

impl fmt::Display for Invalid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "The plan is not valid: {}.", self.0)
    }
}

impl std::error::Error for Invalid {}

impl Plan {
    /// Proves the invariants that printing relies on.
    pub fn validate(&self) -> Result<(), Invalid> {
        let fail = |reason: String| Err(Invalid(reason));
        if self.version != VERSION {
            return fail(format!("its version is {} and this program writes {VERSION}", self.version));
        }
        if self.resources.len() > MAX_RESOURCES || self.operations.len() > MAX_OPERATIONS {
            return fail("it is larger than any real one".to_owned());
        }
        for operation in &self.operations {
            self.operation(operation)?;
        }
        for shape in &self.shapes {
            self.inputs(&shape.fields, 0)?;
        }
        let mut filled = std::collections::HashSet::new();
        for SlotCode { slot, code } in &self.slots {
            if let Some(problem) = slots::problem(slot, code) {
                return fail(problem.trim_end_matches('.').to_owned());
            }
            if !filled.insert(slot) {
                return fail(format!("the slot {slot} is filled twice"));
            }
        }
        let mut ids = std::collections::HashSet::new();
        for resource in &self.resources {
            self.resource(resource)?;
            if !ids.insert(resource.id.to_lowercase()) {
                return fail(format!("two views are called {}", resource.id));
            }
        }
        Ok(())
    }

    fn operation(&self, operation: &Operation) -> Result<(), Invalid> {
        if operation.security.iter().flatten().any(|index| *index >= self.schemes.len()) {
            return Err(Invalid("an operation names a security scheme that is not there".to_owned()));
        }
        self.inputs(&operation.inputs, 0)?;
        operation.body.as_ref().map_or(Ok(()), |body| self.input(&body.input, 0))
    }

    fn inputs(&self, inputs: &[Input], depth: usize) -> Result<(), Invalid> {
        inputs.iter().try_for_each(|input| self.input(input, depth))
    }

    fn input(&self, input: &Input, depth: usize) -> Result<(), Invalid> {
        if depth > MAX_DEPTH {
            return Err(Invalid("a form is nested too deeply".to_owned()));
        }
        if input.shape.is_some_and(|shape| shape >= self.shapes.len()) {
            return Err(Invalid("a form names a shape that is not there".to_owned()));
        }
        if input.reference.is_some_and(|resource| resource >= self.resources.len()) {
            return Err(Invalid("a form refers to a view that is not there".to_owned()));
        }
        let is_scalar =
            |value: &serde_json::Value| value.is_string() || value.is_number() || value.is_boolean();
        if !input.choices.iter().all(is_scalar) {
            return Err(Invalid("a choice is not a plain value".to_owned()));
        }
        self.inputs(&input.fields, depth + 1)?;
        input.alternatives.iter().try_for_each(|variant| self.input(&variant.input, depth + 1))?;
        input.item.as_ref().map_or(Ok(()), |item| self.input(item, depth + 1))
    }

    /// Conditions hold plain values; buttons call operations that name the item.
    fn presented(&self, resource: &Resource, list: &List) -> Result<(), Invalid> {
        let is_plain = |condition: &Condition| {
            let is_scalar =
                |value: &serde_json::Value| value.is_string() || value.is_number() || value.is_boolean();
            condition.values.len() <= MAX_VALUES && condition.values.iter().all(is_scalar)
        };
        let saved = list.saved.iter().flat_map(|saved| &saved.conditions);
        let colors = list.colors.iter().map(|rule| &rule.condition);
        if !list.conditions.iter().chain(saved).chain(colors).all(is_plain) {
            return Err(Invalid("a condition holds more than plain values".to_owned()));
        }
        let is_safe = |action: &Action| {
            self.operations.get(action.operation).is_some_and(|operation| operation.writes)
                && resource.operations.contains(&action.operation)
                && self.is_keyed(resource, action.operation)
        };
        if !list.actions.iter().all(is_safe) {
            return Err(Invalid("a button would change rows without saying which".to_owned()));
        }
        Ok(())
    }

    fn resource(&self, resource: &Resource) -> Result<(), Invalid> {
        let roles = [resource.detail, resource.creates, resource.edits, resource.deletes];
        let list = resource.list.as_ref().map(|list| list.operation);
        let mut named = roles.into_iter().flatten().chain(list).chain(resource.operations.iter().copied());
        if named.any(|index| index >= self.operations.len()) {
            return Err(Invalid("a view names an operation that is not there".to_owned()));
        }
        if resource.relations.iter().any(|relation| relation.resource >= self.resources.len()) {
            return Err(Invalid("a view leads to one that is not there".to_owned()));
        }
        if let Some(list) = &resource.list {
            self.presented(resource, list)?;
        }
        if self.guarded(resource).is_some() {
            let title = &resource.title;
            return Err(Invalid(format!("{title} would be edited or deleted without saying which one")));
        }
        let id = &resource.id;
        let is_name = id.starts_with(|c: char| c.is_ascii_uppercase())
            && id.chars().all(|c| c.is_ascii_alphanumeric())
            && id.len() <= 80;
        if !is_name {
            return Err(Invalid("the name of a view is not a plain word".to_owned()));
        }
        Ok(())
    }
}
