//! Edits that describe an interface: headings, notes, probable keys, and the code of slots.

use super::naming::{NotPossible, label};
use super::views;
use crate::plan::words::line;
use crate::plan::{Key, Plan, SlotCode, slots};

const MAX_NOTE: usize = 400;

pub(super) fn group(plan: &mut Plan, view: &str, group: &str) -> Result<String, NotPossible> {
    let index = views::named(plan, view, false)?;
    let group = if group.trim().is_empty() { String::new() } else { label(group)? };
    let title = plan.resources[index].title.clone();
    let told = if group.is_empty() {
        format!("Put {title} under no heading.")
    } else {
        format!("Put {title} under “{group}”.")
    };
    plan.resources[index].group = group;
    Ok(told)
}

pub(super) fn describe(plan: &mut Plan, view: &str, note: &str) -> Result<String, NotPossible> {
    let index = views::named(plan, view, false)?;
    plan.resources[index].note = line(note, MAX_NOTE);
    Ok(format!("Described {}.", plan.resources[index].title))
}

/// A key that the specification names stays as it is: only what is not certain can be suggested.
pub(super) fn suggest_key(
    plan: &mut Plan,
    view: &str,
    parameter: &str,
    field: &str,
) -> Result<String, NotPossible> {
    let index = views::named(plan, view, false)?;
    let resource = &mut plan.resources[index];
    let columns: Vec<String> =
        resource.list.iter().flat_map(|list| &list.columns).map(|column| column.field.clone()).collect();
    if !columns.iter().any(|column| column == field) {
        let message = format!("The rows of {} have no field “{}”.", resource.title, line(field, 80));
        return Err(NotPossible { message, alternatives: columns.into_iter().take(20).collect() });
    }
    let is_parameter = |index: &usize| {
        plan.operations.get(*index).is_some_and(|one| one.inputs.iter().any(|input| input.name == parameter))
    };
    if !resource.operations.iter().any(is_parameter) {
        let message = format!("No operation of {} takes “{}”.", resource.title, line(parameter, 80));
        return Err(NotPossible { message, alternatives: Vec::new() });
    }
    match resource.keys.iter_mut().find(|key| key.parameter == parameter) {
        Some(key) if !key.guessed => {
            return Ok(format!("The key of {} is certain already.", resource.title));
        }
        Some(key) => key.field = field.to_owned(),
        None => resource.keys.push(Key {
            parameter: parameter.to_owned(),
            field: field.to_owned(),
            guessed: true,
            also: Vec::new(),
        }),
    }
    Ok(format!("Suggested {field} as the key of {}; the page asks before it uses it.", resource.title))
}

pub(super) fn fill_slot(plan: &mut Plan, slot: &str, code: &str) -> Result<String, NotPossible> {
    if let Some(message) = slots::problem(slot, code).filter(|_| !code.trim().is_empty()) {
        return Err(NotPossible { message, alternatives: Vec::new() });
    }
    plan.slots.retain(|one| one.slot != slot);
    if code.trim().is_empty() {
        return Ok(format!("Cleared the slot {slot}."));
    }
    plan.slots.push(SlotCode { slot: slot.to_owned(), code: code.to_owned() });
    Ok(format!("Changed the slot {slot}."))
}
