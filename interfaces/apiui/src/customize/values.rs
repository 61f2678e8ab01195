//! The values that fields have, by the words that people use for them: enumerations, flags, and a few words for dates and gaps.
//!
//! Owns the synonyms. Where a word fits values of more than one field, the reader is asked.

use super::fields;
use super::views::plain;
use crate::plan::words::split;
use crate::plan::{Column, Condition, Display, List, Test};
use serde_json::Value;

/// What came of reading a phrase.
#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    Conditions(Vec<Condition>),
    Ask {
        question: String,
        options: Vec<String>,
    },
    /// A field was named, but not with a value that it has.
    Unknown {
        message: String,
        alternatives: Vec<String>,
    },
    Nothing,
}

pub(super) enum Found {
    Value(Value),
    None,
}

/// Words that mean the same in a list of values. Only one of a row may be a value of the field.
const SYNONYMS: [&[&str]; 14] = [
    &["open", "opened"],
    &["closed", "close"],
    &["canceled", "cancelled"],
    &["done", "completed", "complete", "finished", "resolved", "solved"],
    &["in progress", "doing", "ongoing", "started", "underway"],
    &["active", "enabled"],
    &["inactive", "disabled", "deactivated"],
    &["pending", "waiting"],
    &["shipped", "sent", "dispatched"],
    &["draft", "drafts"],
    &["rejected", "declined", "denied"],
    &["approved", "accepted"],
    &["todo", "to do", "backlog"],
    &["archived", "archive"],
];

/// The value of a column that a word means.
pub(super) fn of(column: &Column, word: &str) -> Found {
    let word = word.trim().trim_matches(['"', '\'']);
    if !column.choices.is_empty() {
        return choice(column, word).map_or(Found::None, |value| Found::Value(Value::String(value)));
    }
    match column.display {
        Display::Boolean => match word.to_lowercase().as_str() {
            "yes" | "true" | "on" | "set" => Found::Value(Value::Bool(true)),
            "no" | "false" | "off" | "not set" => Found::Value(Value::Bool(false)),
            _ => Found::None,
        },
        Display::Number => {
            let number =
                word.parse::<i64>().map(Value::from).or_else(|_| word.parse::<f64>().map(Value::from));
            number.map_or(Found::None, Found::Value)
        }
        Display::Text | Display::Email | Display::Link => Found::Value(Value::String(word.to_owned())),
        _ => Found::None,
    }
}

/// One of the values of an enumeration: as it is written, or by the only synonym.
fn choice(column: &Column, word: &str) -> Option<String> {
    let wanted = plain(word);
    if wanted.is_empty() {
        return None;
    }
    let exact = column.choices.iter().find(|choice| plain(choice) == wanted);
    if let Some(exact) = exact {
        return Some(exact.clone());
    }
    let row = SYNONYMS.iter().find(|row| row.iter().any(|one| plain(one) == wanted))?;
    let mut same = column.choices.iter().filter(|choice| row.iter().any(|one| plain(one) == plain(choice)));
    let found = same.next()?;
    same.next().is_none().then(|| found.clone())
}

/// Conditions by a value alone: "open", "not archived", "overdue", "unassigned".
pub(super) fn named(list: &List, part: &str, answer: Option<&str>) -> Reading {
    let (word, negated) = without_negation(part);
    let word = without_noun(&word);
    let mut found = candidates(list, &word, negated);
    if found.len() > 1 {
        let answered =
            answer.and_then(|answer| fields::find(list, answer)).map(|at| list.columns[at].field.clone());
        match answered.and_then(|field| found.iter().position(|one| one.field == field)) {
            Some(at) => found = vec![found.swap_remove(at)],
            None => return which_field(list, &word, &found),
        }
    }
    match found.pop() {
        Some(condition) => Reading::Conditions(vec![condition]),
        None => almost(list, &word, answer),
    }
}

fn candidates(list: &List, word: &str, negated: bool) -> Vec<Condition> {
    let of = |column: &Column, test, values, negated| Condition {
        field: column.field.clone(),
        test,
        values,
        negated,
        parameter: String::new(),
    };
    let mut found: Vec<Condition> = Vec::new();
    for column in &list.columns {
        if let Some(value) = choice(column, word) {
            found.push(of(column, Test::Is, vec![Value::String(value)], negated));
        } else if let Some(is_set) = flag(column, word) {
            found.push(of(column, Test::Is, vec![Value::Bool(is_set != negated)], false));
        }
    }
    if found.is_empty()
        && let Some((column, test)) = word_of_time(list, word)
    {
        found.push(of(column, test, Vec::new(), negated));
    }
    found
}

/// Whether a word says that a flag is set (`active`) or not (`inactive`, `unverified`).
fn flag(column: &Column, word: &str) -> Option<bool> {
    if column.display != Display::Boolean {
        return None;
    }
    let mut name = split(&column.field);
    if name.len() > 1 && ["is", "has", "was", "can"].contains(&name[0].to_lowercase().as_str()) {
        name.remove(0);
    }
    let name = name.concat().to_lowercase();
    let word = split(word).concat().to_lowercase();
    if word == name {
        return Some(true);
    }
    let negative =
        ["in", "un", "non", "not", "outof"].iter().any(|start| word.strip_prefix(start) == Some(&name));
    let stock = name == "instock" && ["outofstock", "soldout"].contains(&word.as_str());
    (negative || stock).then_some(false)
}

/// "Overdue", "expired", "upcoming", "unassigned": words for what a date or a gap says.
fn word_of_time<'l>(list: &'l List, word: &str) -> Option<(&'l Column, Test)> {
    let is_time = |column: &Column| matches!(column.display, Display::Date | Display::Datetime);
    let with = |names: &[&str], is_right: &dyn Fn(&Column) -> bool| {
        let mut all = list.columns.iter().filter(|column| {
            let words = split(&column.field);
            is_right(column) && words.iter().any(|word| names.contains(&word.to_lowercase().as_str()))
        });
        let first = all.next()?;
        // Two deadlines are no deadline.
        all.next().is_none().then_some(first)
    };
    let any = |_: &Column| true;
    match word.to_lowercase().as_str() {
        "overdue" | "late" | "past due" => Some((with(&["due", "deadline"], &is_time)?, Test::Past)),
        "expired" => Some((with(&["expires", "expiry", "expiration", "expire"], &is_time)?, Test::Past)),
        "upcoming" => {
            Some((with(&["start", "starts", "due", "begins", "scheduled"], &is_time)?, Test::Future))
        }
        "unassigned" => Some((with(&["assignee", "assigned"], &any)?, Test::Empty)),
        "assigned" => Some((with(&["assignee", "assigned"], &any)?, Test::Filled)),
        _ => None,
    }
}

fn without_negation(part: &str) -> (String, bool) {
    let lower = part.to_lowercase();
    for start in ["not ", "non-", "non ", "aren't ", "isn't ", "never ", "no longer "] {
        if lower.starts_with(start) {
            return (part[start.len()..].trim().to_owned(), true);
        }
    }
    (part.trim().to_owned(), false)
}

/// "Open ones" are open.
fn without_noun(word: &str) -> String {
    let lower = word.to_lowercase();
    for end in [" ones", " one", " rows", " items", " entries", " records", " things", " state", " status"] {
        if lower.ends_with(end) {
            return word[..word.len() - end.len()].trim().to_owned();
        }
    }
    word.to_owned()
}

fn which_field(list: &List, word: &str, found: &[Condition]) -> Reading {
    let label = |condition: &Condition| {
        let column = list.columns.iter().find(|column| column.field == condition.field);
        column.map_or_else(String::new, |column| column.label.clone())
    };
    let options: Vec<String> = found.iter().map(label).collect();
    let question = format!(
        "“{}” is a value of {}. Which one is meant?",
        crate::problem::excerpt(word),
        super::naming::join(&options)
    );
    Reading::Ask { question, options }
}

/// "Unpaid" where the values are placed, paid and sent: what is meant is asked.
fn almost(list: &List, word: &str, answer: Option<&str>) -> Reading {
    let lower = plain(word);
    let stem = ["un", "in", "non"].iter().find_map(|start| lower.strip_prefix(start)).unwrap_or_default();
    let column = list
        .columns
        .iter()
        .find(|column| stem.len() > 3 && column.choices.iter().any(|choice| plain(choice) == stem));
    let answered = column.and_then(|column| choice(column, answer?).map(|value| (column, value)));
    if let Some((column, value)) = answered {
        let values = vec![Value::String(value)];
        return Reading::Conditions(vec![Condition {
            field: column.field.clone(),
            values,
            ..Condition::default()
        }]);
    }
    match column {
        Some(column) => Reading::Ask {
            question: format!(
                "“{}” is no value of {}. Which of its values should be shown?",
                crate::problem::excerpt(word),
                column.label
            ),
            options: column.choices.clone(),
        },
        None => Reading::Nothing,
    }
}
