//! The columns of a list, from the model of its items.
//!
//! Owns their order and which are in view at first. All are in the plan, so that any can be shown later. The first
//! column leads to its item, so it says which one that is.

use super::models::Models;
use super::words::{humanize, line, split};
use super::{Column, Display};
use crate::spec::{Kind, Model};

const IN_VIEW: usize = 7;
const MAX_COLUMNS: usize = 80;
/// Longer enumerations (countries, currencies) are not copied into columns.
const MAX_CHOICES: usize = 24;
const MAX_CHOICE: usize = 60;
/// Objects whose fields are the thing's own.
const FOLDED: [&str; 6] = ["attributes", "metadata", "properties", "fields", "spec", "status"];

/// The field of an item that is no object.
pub const WHOLE: &str = "";

pub(super) fn columns<'s>(models: &Models<'s>, item: &'s Model) -> Vec<Column> {
    let Some(object) = models.object(item) else {
        let display = display(models, WHOLE, item);
        let choices = listed_values(models, item);
        let label = "Value".to_owned();
        return vec![Column { field: WHOLE.to_owned(), label, display, choices, ..Column::default() }];
    };
    let mut columns: Vec<(u8, Column)> = Vec::new();
    for (name, property) in &object.properties {
        if property.write_only || columns.len() >= MAX_COLUMNS || is_never_asked_for(property) {
            continue;
        }
        let display = display(models, name, property);
        let hidden = property.deprecated;
        let (field, display) =
            match named_field(models, name, property).filter(|_| display == Display::Object) {
                Some(inner) => (format!("{name}.{inner}"), Display::Text),
                None => (name.clone(), display),
            };
        let choices = if display == Display::Choice { listed_values(models, property) } else { Vec::new() };
        let column = Column { hidden, choices, ..column(field, humanize(name), display) };
        columns.push((rank(name, display), column));
        let folded = FOLDED.contains(&name.as_str()).then(|| models.object(property)).flatten();
        for (inner, property) in folded.into_iter().flat_map(|inner| &inner.properties).take(20) {
            let display = self::display(models, inner, property);
            if is_simple(display) {
                let choices =
                    if display == Display::Choice { listed_values(models, property) } else { Vec::new() };
                let column =
                    Column { choices, ..self::column(format!("{name}.{inner}"), humanize(inner), display) };
                columns.push((rank(inner, display) + 1, column));
            }
        }
    }
    if let Some(index) = leader(&columns) {
        columns[index].0 = 0;
    }
    name_before_uuid(object, &mut columns);
    if object.properties.values().any(|property| property.graphql_type.is_some()) {
        by_importance(&mut columns);
    }
    distinct_labels(&mut columns);
    // A stable sort keeps the order of the document within a rank.
    columns.sort_by_key(|(rank, _)| *rank);
    let mut columns: Vec<Column> = columns.into_iter().map(|(_, column)| column).collect();
    hide_the_rest(&mut columns);
    columns
}

/// The first columns that are simple stay in view.
fn hide_the_rest(columns: &mut [Column]) {
    let mut shown = 0;
    let simple = columns.iter().filter(|column| is_simple(column.display)).count();
    for column in columns {
        let fits = is_simple(column.display) || simple < 3;
        column.hidden |= !fits || shown >= IN_VIEW;
        shown += usize::from(!column.hidden);
    }
}

/// What another thing is called, where an item refers to it as a whole: its name stands for it.
fn named_field<'s>(models: &Models<'s>, name: &str, property: &'s Model) -> Option<&'static str> {
    let object = models.object(property).filter(|_| !FOLDED.contains(&name))?;
    ["name", "title", "label", "displayName", "display_name", "login", "username"].into_iter().find(
        |wanted| {
            let inner = object.properties.get(*wanted);
            inner
                .is_some_and(|inner| models.resolve(inner).kind == Kind::String && !is_never_asked_for(inner))
        },
    )
}

/// A name tells more than a random id does.
fn name_before_uuid(object: &Model, columns: &mut [(u8, Column)]) {
    let is_uuid = |column: &Column| {
        let format = object.properties.get(&column.field).and_then(|property| property.format.as_deref());
        matches!(column.field.to_lowercase().as_str(), "id" | "uuid") && format == Some("uuid")
    };
    if columns.iter().any(|(rank, column)| *rank == NAME && !column.hidden) {
        for (rank, _) in columns.iter_mut().filter(|(_, column)| is_uuid(column)) {
            *rank = NAME + 1;
        }
    }
}

/// Fields of a GraphQL type often stand in the order of the alphabet, so their order says nothing: name, status, people, dates
/// and money come first, and an opaque id after them where there is a name.
fn by_importance(columns: &mut [(u8, Column)]) {
    let has_name = columns.iter().any(|(rank, column)| *rank == NAME && !column.hidden);
    for (rank, column) in columns.iter_mut().filter(|(rank, _)| *rank != NAME) {
        let name = column.field.split('.').next().unwrap_or_default();
        let words: Vec<String> = split(name).iter().map(|word| word.to_lowercase()).collect();
        let has = |some: &[&str]| words.iter().any(|word| some.contains(&word.as_str()));
        let is_time = matches!(column.display, Display::Date | Display::Datetime);
        *rank = match name.to_lowercase().as_str() {
            "id" | "uuid" if has_name => LINK,
            "id" | "uuid" => 0,
            _ if !is_simple(column.display) => 9,
            "identifier" | "number" | "key" | "code" => STATE,
            _ if has(&["status", "state", "priority", "type", "kind", "stage"]) => STATE,
            _ if has(&[
                "assignee", "owner", "author", "creator", "customer", "user", "reporter", "manager",
            ]) =>
            {
                3
            }
            _ if has(&["due", "deadline"]) || is_time && has(&["start", "end"]) => 3,
            _ if has(&["amount", "total", "price", "cost", "balance", "budget", "estimate"]) => 3,
            _ if is_time && has(&["created", "updated", "date", "published"]) => 4,
            _ if column.display == Display::Email => 4,
            _ if has(&["url", "link", "uri", "avatar", "image", "icon", "color"]) => LINK,
            _ if column.display == Display::Boolean => 6,
            _ => (*rank).clamp(5, 9),
        };
    }
}

/// Columns that would have the same label are called by their whole path.
fn distinct_labels(columns: &mut [(u8, Column)]) {
    let mut counts: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    for (_, column) in columns.iter() {
        *counts.entry(column.label.clone()).or_default() += 1;
    }
    for (_, column) in columns.iter_mut() {
        if counts.get(&column.label).is_some_and(|count| *count > 1) && column.field.contains('.') {
            column.label = humanize(&column.field.replace('.', " "));
        }
    }
    // Names that differ in nothing but their writing (`URL`, `url`) are shown as they are written.
    let mut labels: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    for (_, column) in columns.iter() {
        *labels.entry(column.label.clone()).or_default() += 1;
    }
    for (_, column) in columns.iter_mut() {
        if labels.get(&column.label).is_some_and(|count| *count > 1) {
            column.label = line(&column.field, 60);
        }
    }
}

/// The column that stands in for an id or a name where no field is called so: one that a folded object has, or else
/// the first of the document that may tell rows apart (a state or a flag is the same in many).
fn leader(columns: &[(u8, Column)]) -> Option<usize> {
    let shown = || columns.iter().enumerate().filter(|(_, (_, column))| !column.hidden);
    if shown().any(|(_, (rank, _))| *rank <= NAME) {
        return None;
    }
    let is_folded = |field: &str| field.split_once('.').is_some_and(|(object, _)| FOLDED.contains(&object));
    let is_inner_name = |(rank, column): &(u8, Column)| *rank == NAME + 1 && is_folded(&column.field);
    let tells = |(rank, column): &(u8, Column)| {
        use Display::*;
        matches!(column.display, Text | Number | Email | Date | Datetime) && *rank != STATE && *rank < LINK
    };
    let first = |fits: &dyn Fn(&(u8, Column)) -> bool| {
        shown().find(|(_, column)| fits(column)).map(|(index, _)| index)
    };
    first(&is_inner_name).or_else(|| first(&tells))
}

/// Fields that our GraphQL documents leave out.
fn is_never_asked_for(property: &Model) -> bool {
    property.graphql_type.is_some() && (property.deprecated || property.args.iter().any(|arg| arg.required))
}

fn column(field: String, label: String, display: Display) -> Column {
    Column { field: line(&field, 200), label, display, ..Column::default() }
}

/// The values of an enumeration, where they are few and short enough to be named in a request.
fn listed_values<'s>(models: &Models<'s>, model: &'s Model) -> Vec<String> {
    let values = &models.resolve(model).enum_values;
    let texts = values.iter().filter_map(|value| value.as_str().filter(|text| text.len() <= MAX_CHOICE));
    let texts: Vec<String> = texts.map(str::to_owned).collect();
    if values.len() <= MAX_CHOICES { texts } else { Vec::new() }
}

fn is_simple(display: Display) -> bool {
    !matches!(display, Display::Object | Display::List)
}

const NAME: u8 = 1;
const STATE: u8 = 2;
const LINK: u8 = 7;

/// Names first, then states, then the rest; dates and structures last.
fn rank(name: &str, display: Display) -> u8 {
    let lower = name.to_lowercase();
    match lower.as_str() {
        "id" | "key" | "number" => 0,
        "name" | "title" | "label" | "login" | "username" | "displayname" | "display_name" | "full_name"
        | "fullname" => NAME,
        "status" | "state" | "type" | "kind" => STATE,
        "email" | "price" | "amount" | "quantity" | "total" => 3,
        "description" | "summary" => 5,
        _ => match display {
            Display::Object | Display::List => 9,
            Display::Link => LINK,
            Display::Date | Display::Datetime => 6,
            _ if lower.ends_with("_url") || lower.ends_with("url") => LINK,
            _ => 4,
        },
    }
}

fn display<'s>(models: &Models<'s>, name: &str, model: &'s Model) -> Display {
    let target = models.resolve(model);
    let lower = name.to_lowercase();
    match target.kind {
        Kind::Number | Kind::Integer if is_moment(name, &lower, target) => Display::Datetime,
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
            _ if lower.ends_with("_at") || name.ends_with("At") => Display::Datetime,
            _ => Display::Text,
        },
        _ => Display::Text,
    }
}

/// Whether a number counts seconds since 1970.
fn is_moment(name: &str, lower: &str, model: &Model) -> bool {
    let is_unix = matches!(model.format.as_deref(), Some("unix-time" | "unixtime" | "timestamp"));
    let note = model.description.as_deref().unwrap_or_default().to_lowercase();
    let is_told =
        ["unix time", "unix epoch", "since epoch", "since the epoch", "epoch seconds", "epoch time"]
            .iter()
            .any(|words| note.contains(words));
    // The page shows a number that is no moment of these decades as a number.
    let is_named = ["_at", "_ts", "_time", "_date", "timestamp"].iter().any(|end| lower.ends_with(end))
        || ["At", "Time", "Date"].iter().any(|end| name.ends_with(end))
        || matches!(lower, "created" | "updated" | "modified" | "expires" | "last_seen" | "lastseen" | "ts");
    is_unix || is_told || is_named && model.kind == Kind::Integer
}
