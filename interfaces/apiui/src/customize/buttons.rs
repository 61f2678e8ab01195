//! Edits of buttons: an operation on one item or on the selected rows, with constants.
//!
//! Owns which operations may become a button: those that change something and name the item, and that need nothing besides
//! the item's keys and the constants. A record is never replaced as a whole.

use super::naming::{NotPossible, join, label};
use super::views;
use crate::plan::{Action, Constant, Input, InputKind, Operation, Plan, Resource};
use serde_json::Value;

const MOST_ACTIONS: usize = 12;

pub(super) fn add(
    plan: &mut Plan,
    view: &str,
    name: &str,
    operation: &str,
    constants: &[Constant],
) -> Result<String, NotPossible> {
    let title = label(name)?;
    let index = views::named(plan, view, false)?;
    let resource = &plan.resources[index];
    let chosen = find(plan, resource, operation).ok_or_else(|| unknown(plan, resource, operation))?;
    let constants = checked(plan, resource, chosen, constants)?;
    let signature = plan.operations[chosen].signature.clone();
    let (view_title, list) = views::list_mut(plan, view)?;
    list.actions.retain(|action| !action.title.eq_ignore_ascii_case(&title));
    if list.actions.len() >= MOST_ACTIONS {
        return Err(refused(format!("A list can have {MOST_ACTIONS} buttons.")));
    }
    let sent: Vec<String> =
        constants.iter().map(|one| format!("{} = {}", one.field, shown(&one.value))).collect();
    let with = if sent.is_empty() { String::new() } else { format!(" with {}", join(&sent)) };
    list.actions.push(Action { title: title.clone(), operation: chosen, constants });
    Ok(format!(
        "Added the button “{title}” to {view_title}: it calls {signature}{with} for the selected rows or the open item, after a question."
    ))
}

pub(super) fn remove(plan: &mut Plan, view: &str, name: &str) -> Result<String, NotPossible> {
    let (title, list) = views::list_mut(plan, view)?;
    let wanted = views::plain(name);
    let Some(index) = list.actions.iter().position(|one| views::plain(&one.title) == wanted) else {
        let message = format!("{title} has no button “{}”.", crate::problem::excerpt(name));
        let alternatives = list.actions.iter().map(|one| one.title.clone()).collect();
        return Err(NotPossible { message, alternatives });
    };
    let removed = list.actions.remove(index);
    Ok(format!("Removed the button “{}” of {title}.", removed.title))
}

/// The operation of a view by its signature, or else by its title.
pub(super) fn find(plan: &Plan, resource: &Resource, name: &str) -> Option<usize> {
    let mut all = resource.operations.iter().copied().filter(|index| *index < plan.operations.len());
    let wanted = views::plain(name);
    let by_signature = all.clone().find(|index| plan.operations[*index].signature == name);
    by_signature.or_else(|| all.find(|index| views::plain(&plan.operations[*index].title) == wanted))
}

/// Whether an operation changes one item of the view, named by its keys.
pub(super) fn is_possible(plan: &Plan, resource: &Resource, index: usize) -> bool {
    plan.operations.get(index).is_some_and(|operation| operation.writes)
        && Some(index) != resource.creates
        && plan.is_keyed(resource, index)
}

pub(super) fn unknown(plan: &Plan, resource: &Resource, name: &str) -> NotPossible {
    let possible = resource.operations.iter().filter(|index| is_possible(plan, resource, **index));
    NotPossible {
        message: format!(
            "{} has no operation “{}” that a button could call.",
            resource.title,
            crate::problem::excerpt(name)
        ),
        alternatives: possible.map(|index| plan.operations[*index].title.clone()).take(12).collect(),
    }
}

/// The constants as the operation takes them.
fn checked(
    plan: &Plan,
    resource: &Resource,
    index: usize,
    constants: &[Constant],
) -> Result<Vec<Constant>, NotPossible> {
    let operation = &plan.operations[index];
    if !is_possible(plan, resource, index) {
        return Err(refused(format!("{} does not change one item of {}.", operation.title, resource.title)));
    }
    if operation.method == "PUT" && operation.body.is_some() {
        return Err(refused(format!(
            "{} replaces the whole record, so a button cannot send a single value. Use the form to edit it.",
            operation.title
        )));
    }
    let fields = fields(plan, operation);
    let mut found = Vec::new();
    for constant in constants {
        let wanted = views::plain(&constant.field);
        let field =
            fields.iter().find(|field| views::plain(&field.name) == wanted).ok_or_else(|| NotPossible {
                message: format!("{} does not take “{}”.", operation.title, constant.field),
                alternatives: fields.iter().map(|field| field.name.clone()).take(12).collect(),
            })?;
        found.push(Constant { field: field.name.clone(), value: fitting(field, &constant.value)? });
    }
    let is_given = |field: &&Input| found.iter().any(|one| one.field == field.name);
    let is_whole = operation.query_text.is_empty() && operation.method != "PATCH";
    let missing: Vec<String> = fields
        .iter()
        .filter(|field| is_whole && field.required && !is_given(field))
        .map(|field| field.name.clone())
        .collect();
    if !missing.is_empty() {
        return Err(refused(format!("{} also needs {}.", operation.title, join(&missing))));
    }
    if operation.method == "PATCH" && found.is_empty() {
        return Err(refused("Say what the button sets, as in: sets status to paid.".to_owned()));
    }
    Ok(found)
}

/// The inputs that constants fill: of the body, or of the record among the variables.
pub(super) fn fields<'p>(plan: &'p Plan, operation: &'p Operation) -> &'p [Input] {
    if let Some(body) = &operation.body {
        return inner(plan, &body.input);
    }
    let mut inputs: &[Input] = if operation.query_text.is_empty() { &[] } else { &operation.inputs };
    for name in operation.record.iter().flatten() {
        let Some(input) = inputs.iter().find(|input| input.name == *name) else { return &[] };
        inputs = inner(plan, input);
    }
    inputs
}

fn inner<'p>(plan: &'p Plan, input: &'p Input) -> &'p [Input] {
    match input.shape.and_then(|shape| plan.shapes.get(shape)) {
        Some(shape) => &shape.fields,
        None => &input.fields,
    }
}

/// A value as an input takes it.
fn fitting(field: &Input, value: &Value) -> Result<Value, NotPossible> {
    let text = shown(value);
    let wrong = |what: &str| {
        refused(format!("{} takes {what}, not “{}”.", field.name, crate::problem::excerpt(&text)))
    };
    if !field.choices.is_empty() {
        let wanted = views::plain(&text);
        let choice = field.choices.iter().find(|choice| views::plain(&shown(choice)) == wanted);
        let all: Vec<String> = field.choices.iter().map(shown).take(12).collect();
        return choice
            .cloned()
            .ok_or_else(|| NotPossible { alternatives: all.clone(), ..wrong(&join(&all)) });
    }
    match field.kind {
        InputKind::Boolean => match text.to_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(Value::Bool(true)),
            "false" | "no" | "off" => Ok(Value::Bool(false)),
            _ => Err(wrong("yes or no")),
        },
        InputKind::Integer => text.parse::<i64>().map(Value::from).map_err(|_| wrong("a whole number")),
        InputKind::Number => text.parse::<f64>().map(Value::from).map_err(|_| wrong("a number")),
        InputKind::Text | InputKind::Multiline => Ok(Value::String(text)),
        _ => Err(wrong("a value that a button cannot hold")),
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn refused(message: String) -> NotPossible {
    NotPossible { message, alternatives: Vec::new() }
}
