//! The columns of a list, from the model of its items.
//!
//! Owns their order and which are in view at first. All are in the plan, so that any can be shown later.

use super::models::Models;
use super::words::{humanise, line};
use super::{Column, Display};
use crate::spec::{Kind, Model};

const IN_VIEW: usize = 7;
const MAX_COLUMNS: usize = 80;
/// Objects whose fields are the thing's own.
const FOLDED: [&str; 6] = ["attributes", "metadata", "properties", "fields", "spec", "status"];

/// The field of an item that is no object.
pub const WHOLE: &str = "";

pub(super) fn columns<'s>(models: &Models<'s>, item: &'s Model) -> Vec<Column> {
    let Some(object) = models.object(item) else {
        let display = display(models, WHOLE, item);
        return vec![Column { field: WHOLE.to_owned(), label: "Value".to_owned(), display, hidden: false }];
    };
    let mut columns: Vec<(u8, Column)> = Vec::new();
    for (name, property) in &object.properties {
        if property.write_only || columns.len() >= MAX_COLUMNS || is_never_asked_for(property) {
            continue;
        }
        let display = display(models, name, property);
        let hidden = property.deprecated;
        columns
            .push((rank(name, display), Column { hidden, ..column(name.clone(), humanise(name), display) }));
        let folded = FOLDED.contains(&name.as_str()).then(|| models.object(property)).flatten();
        for (inner, property) in folded.into_iter().flat_map(|inner| &inner.properties).take(20) {
            let display = self::display(models, inner, property);
            if is_simple(display) {
                columns.push((
                    rank(inner, display) + 1,
                    column(format!("{name}.{inner}"), humanise(inner), display),
                ));
            }
        }
    }
    // A stable sort keeps the order of the document within a rank.
    columns.sort_by_key(|(rank, _)| *rank);
    let mut shown = 0;
    let simple = columns.iter().filter(|(_, column)| is_simple(column.display)).count();
    for (_, column) in &mut columns {
        let fits = is_simple(column.display) || simple < 3;
        column.hidden |= !fits || shown >= IN_VIEW;
        shown += usize::from(!column.hidden);
    }
    columns.into_iter().map(|(_, column)| column).collect()
}

/// Fields that a GraphQL document of ours leaves out.
fn is_never_asked_for(property: &Model) -> bool {
    property.graphql_type.is_some() && (property.deprecated || property.args.iter().any(|arg| arg.required))
}

fn column(field: String, label: String, display: Display) -> Column {
    Column { field: line(&field, 200), label, display, hidden: false }
}

fn is_simple(display: Display) -> bool {
    !matches!(display, Display::Object | Display::List)
}

/// Who it is, then what state it is in, then the rest, dates and structures last.
fn rank(name: &str, display: Display) -> u8 {
    let lower = name.to_lowercase();
    match lower.as_str() {
        "id" | "key" | "number" => 0,
        "name" | "title" | "label" | "login" | "username" | "displayname" | "display_name" | "full_name"
        | "fullname" => 1,
        "status" | "state" | "type" | "kind" => 2,
        "email" | "price" | "amount" | "quantity" | "total" => 3,
        "description" | "summary" => 5,
        _ => match display {
            Display::Object | Display::List => 9,
            Display::Link => 7,
            Display::Date | Display::Datetime => 6,
            _ if lower.ends_with("_url") || lower.ends_with("url") => 7,
            _ => 4,
        },
    }
}

fn display<'s>(models: &Models<'s>, name: &str, model: &'s Model) -> Display {
    let target = models.resolve(model);
    let lower = name.to_lowercase();
    match target.kind {
        Kind::Number | Kind::Integer => Display::Number,
        Kind::Boolean => Display::Boolean,
        Kind::Enum => Display::Choice,
        Kind::Array => Display::List,
        Kind::Object => Display::Object,
        Kind::Union => {
            let first = target
                .union_of
                .iter()
                .map(|variant| models.resolve(variant).kind)
                .find(|kind| *kind != Kind::Null);
            match first {
                Some(Kind::Object | Kind::Union) => Display::Object,
                Some(Kind::Array) => Display::List,
                Some(Kind::Number | Kind::Integer) => Display::Number,
                _ => Display::Text,
            }
        }
        Kind::String => match target.format.as_deref() {
            Some("date") => Display::Date,
            Some("date-time") => Display::Datetime,
            Some("email") => Display::Email,
            Some("uri" | "url") => Display::Link,
            _ if lower == "email" => Display::Email,
            _ if lower.ends_with("_at") || lower.ends_with("At") => Display::Datetime,
            _ => Display::Text,
        },
        _ => Display::Text,
    }
}
