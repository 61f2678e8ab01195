//! Requests for buttons: setting a field of an item, or calling an operation of a name.

use super::buttons;
use super::choosing::{Request, capitalized};
use super::conditions;
use super::edit::PlanEdit;
use super::fields;
use super::outcome::RefusalKind;
use super::phrases::{bare, given_name};
use super::understand::{Halt, Reader, refusal};
use super::values::Reading;
use super::views;
use crate::plan::Constant;
use crate::plan::words::split;
use serde_json::Value;

impl Reader<'_> {
    /// "Add a button Ship that sets status to shipped".
    pub(super) fn set_button(&self, name: &str, field: &str, value: &str, rest: &str) -> Request {
        let candidates = self.with_field(&format!("{name} {rest}"), field);
        let index = match self.one_of(&candidates, "add the button to")? {
            Ok(index) => index,
            Err(halt) => return Some(Err(halt)),
        };
        let label =
            if name.is_empty() { format!("Set {} to {value}", bare(field)) } else { capitalized(name) };
        self.button(index, &label, field, value)
    }

    /// "Add a button to mark orders as shipped": the field is the one that has the value.
    pub(super) fn mark_button(&self, phrase: &str, value: &str) -> Request {
        let cut = self.cut_view(phrase);
        let holder = |index: usize| {
            let list = self.list(index)?;
            match conditions::read(list, value, self.answer) {
                Reading::Conditions(found) => found.into_iter().next().filter(|one| !one.values.is_empty()),
                _ => None,
            }
        };
        let candidates: Vec<usize> =
            self.candidates(&cut).into_iter().filter(|index| holder(*index).is_some()).collect();
        let index = match self.one_of(&candidates, "add the button to")? {
            Ok(index) => index,
            Err(halt) => return Some(Err(halt)),
        };
        let condition = holder(index)?;
        let given = match &condition.values[0] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.button(index, &format!("Mark as {value}"), &condition.field, &given)
    }

    /// The button that sets one field of an item by the operation that edits it.
    fn button(&self, index: usize, label: &str, field: &str, value: &str) -> Request {
        let resource = &self.plan.resources[index];
        let list = resource.list.as_ref()?;
        let named = fields::find(list, field).map(|at| list.columns[at].field.clone());
        let field = named.unwrap_or_else(|| bare(field));
        let takes = |index: &usize| {
            let operation = &self.plan.operations[*index];
            let has = |name: &str| {
                buttons::fields(self.plan, operation)
                    .iter()
                    .any(|input| views::plain(&input.name) == views::plain(name))
            };
            buttons::is_possible(self.plan, resource, *index) && has(&field) && operation.method != "PUT"
        };
        let edits = resource.edits.filter(|index| takes(index));
        let Some(operation) = edits.or_else(|| resource.operations.iter().copied().find(takes)) else {
            let message = format!(
                "The API has no operation that changes {field} of one of the {} alone, so there is nothing that a button could call.",
                resource.title.to_lowercase()
            );
            return Some(Err(Halt::Refuse(refusal(RefusalKind::NotFound, message, Vec::new()))));
        };
        Some(Ok(vec![PlanEdit::AddAction {
            view: resource.id.clone(),
            label: label.to_owned(),
            operation: self.plan.operations[operation].signature.clone(),
            constants: vec![Constant { field, value: Value::String(value.to_owned()) }],
        }]))
    }

    /// "Add a cancel button": an operation of that name that needs nothing but the item.
    pub(super) fn operation_button(&self, name: &str, rest: &str) -> Request {
        let cut = self.cut_view(&format!("{name} {rest}"));
        let wanted = views::plain(&bare(&given_name(&cut.phrase)));
        let find = |index: usize| {
            let resource = &self.plan.resources[index];
            let mut all = resource.operations.iter().copied().filter(|one| {
                let operation = &self.plan.operations[*one];
                let title = views::plain(&operation.title);
                let last = operation.path.rsplit('/').next().map(views::plain).unwrap_or_default();
                let words =
                    split(&operation.title).first().map(|word| views::plain(word)).unwrap_or_default();
                buttons::is_possible(self.plan, resource, *one) && [title, last, words].contains(&wanted)
            });
            let first = all.next()?;
            all.next().is_none().then_some(first)
        };
        let candidates: Vec<usize> =
            self.candidates(&cut).into_iter().filter(|index| find(*index).is_some()).collect();
        if let ([index], true) = (cut.named.as_slice(), candidates.is_empty()) {
            let problem = buttons::unknown(self.plan, &self.plan.resources[*index], &cut.phrase);
            let refused = refusal(RefusalKind::NotFound, problem.message, problem.alternatives);
            return Some(Err(Halt::Refuse(refused)));
        }
        let index = match self.one_of(&candidates, "add the button to")? {
            Ok(index) => index,
            Err(halt) => return Some(Err(halt)),
        };
        let operation = &self.plan.operations[find(index)?];
        Some(Ok(vec![PlanEdit::AddAction {
            view: self.id(index),
            label: capitalized(&bare(&given_name(&cut.phrase))),
            operation: operation.signature.clone(),
            constants: Vec::new(),
        }]))
    }
}
