//! Edits of how values are shown: formats, names in place of keys, computed columns.

use super::fields;
use super::naming::{NotPossible, join, label};
use super::views;
use crate::plan::{Calculation, Column, Computed, Display, FormatKind, List, Plan, ValueFormat};

const MOST_COMPUTED: usize = 20;

pub(super) fn format(
    plan: &mut Plan,
    view: &str,
    field: &str,
    format: Option<&ValueFormat>,
) -> Result<String, NotPossible> {
    let (title, list) = views::list_mut(plan, view)?;
    let index = fields::index(list, &title, field)?;
    let column = &mut list.columns[index];
    let Some(format) = format else {
        column.format = None;
        return Ok(format!("{} of {title} is shown as the API sends it.", column.label));
    };
    if let Some(message) = misfit(column, format) {
        return Err(NotPossible { message, alternatives: Vec::new() });
    }
    column.format = Some(format.clone());
    Ok(format!("Showed {} of {title} as {}.", column.label, in_words(format)))
}

/// Why a column cannot have a format.
fn misfit(column: &Column, format: &ValueFormat) -> Option<String> {
    let label = &column.label;
    let is_time = matches!(column.display, Display::Date | Display::Datetime);
    let wants_time = matches!(format.kind, FormatKind::Date | FormatKind::Datetime | FormatKind::Relative);
    let is_code = format.currency.len() == 3 && format.currency.chars().all(|c| c.is_ascii_uppercase());
    match (wants_time, column.display) {
        (true, Display::Text | Display::Number) => None,
        (true, _) if !is_time => Some(format!("{label} holds no dates.")),
        (false, Display::Number | Display::Text) => {
            let is_wrong = format.kind == FormatKind::Currency && !is_code;
            is_wrong.then(|| "A currency is written with three letters, such as EUR or USD.".to_owned())
        }
        (false, _) => Some(format!("{label} holds no numbers.")),
        (true, _) => None,
    }
}

fn in_words(format: &ValueFormat) -> String {
    let digits = format.digits.map_or_else(String::new, |digits| format!(" with {digits} decimals"));
    let cents = if format.cents { ", from cents" } else { "" };
    match format.kind {
        FormatKind::Number => format!("a number{digits}"),
        FormatKind::Currency => format!("an amount in {}{digits}{cents}", format.currency),
        FormatKind::Percent => format!("a percentage (12 is 12 %){digits}"),
        FormatKind::Fraction => format!("a percentage (0.12 is 12 %){digits}"),
        FormatKind::Date => "a date without the time".to_owned(),
        FormatKind::Datetime => "a date with the time".to_owned(),
        FormatKind::Relative => "the time since or until then".to_owned(),
        FormatKind::Bytes => format!("a size in bytes{digits}"),
    }
}

/// Only a field of which it is known where it leads has a name to show.
pub(super) fn show_name(plan: &mut Plan, view: &str, field: &str, on: bool) -> Result<String, NotPossible> {
    let index = views::named(plan, view, false)?;
    let relations = plan.resources[index].relations.clone();
    let names: Vec<(usize, String)> =
        plan.resources.iter().map(|one| one.singular.clone()).enumerate().collect();
    let (title, list) = views::list_mut(plan, view)?;
    let column = fields::index(list, &title, field)?;
    let column = &mut list.columns[column];
    let Some(relation) = relations.iter().find(|relation| relation.field == column.field) else {
        let known: Vec<String> = relations.iter().map(|relation| relation.field.clone()).collect();
        let alternatives: Vec<String> = known.into_iter().filter(|field| !field.is_empty()).collect();
        let message = format!("The specification does not say which record {} leads to.", column.label);
        return Err(NotPossible { message, alternatives });
    };
    column.named = on;
    let target = names.get(relation.resource).map_or("record", |(_, singular)| singular.as_str());
    Ok(if on {
        format!("Showed the name of the {} in place of {} in {title}.", target.to_lowercase(), column.label)
    } else {
        format!("Showed {} of {title} itself again.", column.label)
    })
}

pub(super) fn compute(
    plan: &mut Plan,
    view: &str,
    name: &str,
    how: Calculation,
    wanted: &[String],
    constant: Option<f64>,
) -> Result<String, NotPossible> {
    let (title, list) = views::list_mut(plan, view)?;
    let name = label(name)?;
    let refused = |message: String| Err(NotPossible { message, alternatives: Vec::new() });
    let mut used: Vec<Column> = Vec::new();
    for field in wanted {
        used.push(list.columns[fields::index(list, &title, field)?].clone());
    }
    if let Some(wrong) = used.iter().find(|column| !takes(how, column)) {
        let kind = if days(how) { "dates" } else { "numbers" };
        return refused(format!("{} holds no {kind}.", wrong.label));
    }
    let operands = used.len() + usize::from(constant.is_some());
    let is_enough = if days(how) { used.len() == 1 } else { !used.is_empty() && operands >= 2 };
    if !is_enough || constant.is_some_and(|number| !number.is_finite()) {
        return refused("A computed column needs the fields that it is computed from.".to_owned());
    }
    if list.columns.iter().filter(|column| column.computed.is_some()).count() >= MOST_COMPUTED {
        return refused(format!("A list can have {MOST_COMPUTED} computed columns."));
    }
    let field = free_name(list, &name);
    let fields: Vec<String> = used.iter().map(|column| column.field.clone()).collect();
    let display = if how == Calculation::Join { Display::Text } else { Display::Number };
    let labels: Vec<String> = used.iter().map(|column| column.label.clone()).collect();
    // An amount that is computed from amounts is one, too.
    let format = used.iter().find_map(|column| column.format.clone()).filter(|_| !days(how));
    let computed = Some(Computed { how, fields, constant });
    list.columns.retain(|column| column.label != name || column.computed.is_none());
    let place = list.columns.iter().rposition(|column| !column.hidden).map_or(0, |at| at + 1);
    let column = Column { field, label: name.clone(), display, computed, format, ..Column::default() };
    list.columns.insert(place, column);
    let number = constant.map_or_else(String::new, |number| format!(" and {number}"));
    Ok(format!("Added the column {name} to {title}: {} {}{number}.", verb(how), join(&labels)))
}

/// A name that no field of the API has.
fn free_name(list: &List, label: &str) -> String {
    let base = format!("computed {}", label.to_lowercase());
    let is_taken =
        |name: &str| list.columns.iter().any(|column| column.field == name && column.computed.is_none());
    let numbered = (2..).map(|number| format!("{base} {number}"));
    std::iter::once(base.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(base)
}

fn takes(how: Calculation, column: &Column) -> bool {
    match how {
        Calculation::Join => !matches!(column.display, Display::Object | Display::List),
        _ if days(how) => matches!(column.display, Display::Date | Display::Datetime),
        _ => column.display == Display::Number,
    }
}

fn days(how: Calculation) -> bool {
    matches!(how, Calculation::DaysUntil | Calculation::DaysSince)
}

fn verb(how: Calculation) -> &'static str {
    match how {
        Calculation::Join => "joins",
        Calculation::Add => "the sum of",
        Calculation::Subtract => "the difference of",
        Calculation::Multiply => "the product of",
        Calculation::Divide => "the quotient of",
        Calculation::DaysUntil => "the days until",
        Calculation::DaysSince => "the days since",
    }
}
