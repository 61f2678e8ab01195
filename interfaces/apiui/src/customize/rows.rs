//! Edits of which rows are shown: fixed filters, saved views, colors.
//!
//! Owns the choice between a parameter of the API and the rows that are loaded. A parameter is used only where it means the
//! same as the condition: it has the name of the field, and the value is one that it takes.

use super::fields;
use super::naming::{NotPossible, join, label};
use super::views;
use crate::plan::words::{singular, squeezed};
use crate::plan::{
    ColorRule, Column, Condition, Display, Input, InputKind, InputPlace, List, Operation, Plan, SavedView,
    Test, Tint,
};
use serde_json::Value;

const MOST_CONDITIONS: usize = 20;
const MOST_SAVED: usize = 20;
const MOST_VALUES: usize = 50;

pub(super) fn fix_filter(plan: &mut Plan, view: &str, wanted: &Condition) -> Result<String, NotPossible> {
    let mut condition = resolved(plan, view, wanted)?;
    let (title, list) = views::list_mut(plan, view)?;
    if list.conditions.len() >= MOST_CONDITIONS {
        return Err(refused(format!("A list can have {MOST_CONDITIONS} fixed filters.")));
    }
    if condition.negated && condition.test == Test::Is {
        // "Hide closed ones" and then "hide canceled ones" hides both.
        let is_same = |one: &Condition| one.field == condition.field && one.negated && one.test == Test::Is;
        let before: Vec<Value> =
            list.conditions.iter().filter(|one| is_same(one)).flat_map(|one| one.values.clone()).collect();
        let new: Vec<Value> =
            condition.values.iter().filter(|value| !before.contains(value)).cloned().collect();
        condition.values = before.into_iter().chain(new).collect();
    }
    list.conditions.retain(|one| one.field != condition.field || family(one.test) != family(condition.test));
    let told = format!("{title} shows only rows {}; {}.", in_words(list, &condition), chooser(&condition));
    list.conditions.push(condition);
    Ok(told)
}

pub(super) fn clear_filters(plan: &mut Plan, view: &str, field: Option<&str>) -> Result<String, NotPossible> {
    let (title, list) = views::list_mut(plan, view)?;
    let Some(field) = field else {
        list.conditions.clear();
        return Ok(format!("{title} shows all rows."));
    };
    let index = fields::index(list, &title, field)?;
    let column = list.columns[index].clone();
    list.conditions.retain(|one| one.field != column.field);
    Ok(format!("{title} is no longer limited by {}.", column.label))
}

pub(super) fn save_view(
    plan: &mut Plan,
    view: &str,
    name: &str,
    wanted: &[Condition],
) -> Result<String, NotPossible> {
    let name = label(name)?;
    let conditions: Vec<Condition> =
        wanted.iter().map(|one| resolved(plan, view, one)).collect::<Result<_, _>>()?;
    let (title, list) = views::list_mut(plan, view)?;
    if conditions.is_empty() || conditions.len() > MOST_CONDITIONS {
        return Err(refused("A saved view needs a condition that chooses its rows.".to_owned()));
    }
    list.saved.retain(|one| !one.title.eq_ignore_ascii_case(&name));
    if list.saved.len() >= MOST_SAVED {
        return Err(refused(format!("A list can have {MOST_SAVED} saved views.")));
    }
    let words: Vec<String> = conditions.iter().map(|one| in_words(list, one)).collect();
    let told =
        format!("Added the tab “{name}” to {title}: rows {}; {}.", join(&words), choosers(&conditions));
    list.saved.push(SavedView { title: name, conditions, order: None });
    Ok(told)
}

pub(super) fn remove_saved(plan: &mut Plan, view: &str, name: &str) -> Result<String, NotPossible> {
    let (title, list) = views::list_mut(plan, view)?;
    let wanted = views::plain(name);
    let Some(index) = list.saved.iter().position(|one| views::plain(&one.title) == wanted) else {
        let message = format!("{title} has no tab “{}”.", crate::problem::excerpt(name));
        return Err(NotPossible {
            message,
            alternatives: list.saved.iter().map(|one| one.title.clone()).collect(),
        });
    };
    let removed = list.saved.remove(index);
    Ok(format!("Removed the tab “{}” of {title}.", removed.title))
}

pub(super) fn color(
    plan: &mut Plan,
    view: &str,
    wanted: &Condition,
    tint: Tint,
    whole_row: bool,
) -> Result<String, NotPossible> {
    let condition = Condition { parameter: String::new(), ..resolved(plan, view, wanted)? };
    let (title, list) = views::list_mut(plan, view)?;
    if list.colors.len() >= MOST_CONDITIONS {
        return Err(refused(format!("A list can have {MOST_CONDITIONS} rules for colors.")));
    }
    let what = if whole_row { "rows" } else { "cells" };
    let told =
        format!("Colored {what} of {title} {}: those {}.", color_word(tint), in_words(list, &condition));
    list.colors.retain(|rule| rule.condition != condition);
    list.colors.push(ColorRule { condition, tint, whole_row });
    Ok(told)
}

pub(super) fn clear_colors(plan: &mut Plan, view: &str) -> Result<String, NotPossible> {
    let (title, list) = views::list_mut(plan, view)?;
    list.colors.clear();
    Ok(format!("Removed the colors of {title}."))
}

/// The condition with the field's own name and the parameter that does it.
fn resolved(plan: &mut Plan, view: &str, wanted: &Condition) -> Result<Condition, NotPossible> {
    let (title, list) = views::list_mut(plan, view)?;
    let index = fields::index(list, &title, &wanted.field)?;
    let column = list.columns[index].clone();
    let mut condition = Condition { field: column.field.clone(), parameter: String::new(), ..wanted.clone() };
    condition.values.truncate(MOST_VALUES);
    check_values(&column, &mut condition)?;
    let list = list.clone();
    let operation = plan.operations.get(list.operation);
    condition.parameter =
        operation.and_then(|one| parameter(one, &list, &column, &condition)).unwrap_or_default();
    Ok(condition)
}

/// Values are those that the field can have.
fn check_values(column: &Column, condition: &mut Condition) -> Result<(), NotPossible> {
    let is_scalar = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    let needs = match condition.test {
        Test::Is | Test::Contains | Test::StartsWith => condition.values.iter().all(is_scalar),
        Test::Above | Test::AtLeast | Test::Below | Test::AtMost => {
            condition.values.iter().all(Value::is_number)
        }
        Test::LastDays | Test::NextDays | Test::OlderDays => {
            condition.values.iter().all(|value| value.as_u64().is_some_and(|days| days <= 36_500))
        }
        _ => {
            condition.values.clear();
            return Ok(());
        }
    };
    if !needs || condition.values.is_empty() {
        return Err(refused(format!("The condition for {} has no value that fits.", column.label)));
    }
    if condition.test != Test::Is || column.choices.is_empty() {
        return Ok(());
    }
    for value in &mut condition.values {
        let text = value.as_str().map(views::plain).unwrap_or_default();
        let Some(choice) = column.choices.iter().find(|choice| views::plain(choice) == text) else {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            return Err(NotPossible {
                message: format!(
                    "{} is never “{}”. It is {}.",
                    column.label,
                    crate::problem::excerpt(&shown),
                    join(&column.choices).replace(" and ", " or ")
                ),
                alternatives: column.choices.clone(),
            });
        };
        *value = Value::String(choice.clone());
    }
    Ok(())
}

/// The parameter of the list by which the API chooses the rows that the condition means.
fn parameter(operation: &Operation, list: &List, column: &Column, condition: &Condition) -> Option<String> {
    if condition.test != Test::Is || condition.negated {
        return None;
    }
    let wanted = squeezed(&column.field);
    let paging = list.paging.as_ref();
    let is_paging =
        |name: &str| paging.is_some_and(|paging| paging.parameter == name || paging.size_parameter == name);
    let fits = |input: &&Input| {
        let name = squeezed(&input.name);
        let is_many = input.kind == InputKind::List;
        let is_named = name == wanted || is_many && singular(&name) == wanted;
        matches!(input.place, InputPlace::Query | InputPlace::Variable)
            && is_named
            && !is_paging(&input.name)
            && takes(input, column, &condition.values)
    };
    operation.inputs.iter().find(fits).map(|input| input.name.clone())
}

/// Whether an input takes exactly these values.
fn takes(input: &Input, column: &Column, values: &[Value]) -> bool {
    let is_one = values.len() == 1;
    match input.kind {
        InputKind::Choice => is_one && input.choices.contains(&values[0]),
        InputKind::Boolean => is_one && values[0].is_boolean() && column.display == Display::Boolean,
        InputKind::Integer => is_one && values[0].is_i64() && column.display == Display::Number,
        // A text that is searched for may be found inside of others; a value of an enumeration is meant as a whole.
        InputKind::Text => is_one && !column.choices.is_empty(),
        InputKind::List => input.item.as_ref().is_some_and(|item| {
            !item.choices.is_empty() && values.iter().all(|value| item.choices.contains(value))
        }),
        _ => false,
    }
}

/// Conditions of one family replace each other.
fn family(test: Test) -> u8 {
    match test {
        Test::Is => 0,
        Test::Above | Test::AtLeast => 1,
        Test::Below | Test::AtMost => 2,
        Test::Contains | Test::StartsWith => 3,
        Test::Empty | Test::Filled => 4,
        _ => 5,
    }
}

fn chooser(condition: &Condition) -> String {
    if condition.parameter.is_empty() {
        "the page chooses among the rows that are loaded".to_owned()
    } else {
        format!("the API chooses them, by {}", condition.parameter)
    }
}

fn choosers(conditions: &[Condition]) -> String {
    let first = conditions.first().map(chooser).unwrap_or_default();
    let is_same = conditions.iter().all(|one| chooser(one) == first);
    if is_same {
        first
    } else {
        "the API chooses in part, and the page among the rows that are loaded".to_owned()
    }
}

/// `whose Status is open`.
pub(super) fn in_words(list: &List, condition: &Condition) -> String {
    let label = list
        .columns
        .iter()
        .find(|column| column.field == condition.field)
        .map_or(condition.field.as_str(), |column| column.label.as_str());
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    };
    let values: Vec<String> = condition.values.iter().map(shown).collect();
    let any = join(&values).replace(" and ", " or ");
    let first = values.first().cloned().unwrap_or_default();
    let test = match condition.test {
        Test::Is => any,
        Test::Above => format!("above {first}"),
        Test::AtLeast => format!("at least {first}"),
        Test::Below => format!("below {first}"),
        Test::AtMost => format!("at most {first}"),
        Test::Contains => format!("a text with “{any}”"),
        Test::StartsWith => format!("a text that begins with “{any}”"),
        Test::Empty => "empty".to_owned(),
        Test::Filled => "filled in".to_owned(),
        Test::Past => "in the past".to_owned(),
        Test::Future => "in the future".to_owned(),
        Test::Today => "today".to_owned(),
        Test::ThisWeek => "in this week".to_owned(),
        Test::ThisMonth => "in this month".to_owned(),
        Test::ThisYear => "in this year".to_owned(),
        Test::LastDays => format!("in the last {first} days"),
        Test::NextDays => format!("in the next {first} days"),
        Test::OlderDays => format!("more than {first} days ago"),
    };
    format!("whose {label} is {}{test}", if condition.negated { "not " } else { "" })
}

pub(super) fn color_word(tint: Tint) -> &'static str {
    match tint {
        Tint::Red => "red",
        Tint::Green => "green",
        Tint::Yellow => "yellow",
        Tint::Blue => "blue",
        Tint::Gray => "gray",
    }
}

fn refused(message: String) -> NotPossible {
    NotPossible { message, alternatives: Vec::new() }
}
