//! What single words of a wish mean for a plan: directions, positions, numbers, kinds of things.
//!
//! Owns the small vocabularies that `understand` puts together.

use super::phrases::{bare, names};
use super::{fields, views};
use crate::plan::words::singular;
use crate::plan::{Display, List, Plan};

/// The field that a wish for sorting means where it names none.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    Name,
    Price,
    Date,
}

impl Wanted {
    /// By the words of a wish, in lower case.
    pub(super) fn of(wish: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| wish.contains(word));
        if has(&["alphabet", "a to z", "a-z", "z to a", "z-a"]) {
            Wanted::Name
        } else if has(&["cheap", "expensive"]) {
            Wanted::Price
        } else {
            Wanted::Date
        }
    }

    /// What it is called where it is missing.
    pub(super) fn name(self) -> &'static str {
        match self {
            Wanted::Name => "name",
            Wanted::Price => "price",
            Wanted::Date => "date",
        }
    }

    pub(super) fn field(self, list: &List) -> Option<String> {
        let named = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| fields::find(list, name))
                .map(|index| list.columns[index].field.clone())
        };
        match self {
            Wanted::Name => named(&["name", "title", "label", "username"])
                .or_else(|| list.columns.first().map(|column| column.field.clone())),
            Wanted::Price => named(&["price", "amount", "cost", "total"]),
            Wanted::Date => named(&["createdAt", "created", "updatedAt", "date", "published", "timestamp"])
                .or_else(|| {
                    let is_date = |display: Display| matches!(display, Display::Date | Display::Datetime);
                    list.columns
                        .iter()
                        .find(|column| is_date(column.display))
                        .map(|column| column.field.clone())
                }),
        }
    }
}

pub(super) const DESCENDING: [&str; 15] = [
    "desc",
    "newest",
    "latest",
    "most recent",
    "reverse",
    "highest",
    "largest",
    "longest",
    "expensive",
    "z to a",
    "z-a",
    "backwards",
    "high to low",
    "big to small",
    "down",
];
pub(super) const DIRECTIONS: [&str; 42] = [
    "in descending order",
    "in ascending order",
    "descending order",
    "ascending order",
    "descending",
    "ascending",
    "desc",
    "asc",
    "newest first",
    "latest first",
    "oldest first",
    "most recent first",
    "earliest first",
    "in reverse order",
    "reverse order",
    "in reverse",
    "reversed",
    "reverse alphabetically",
    "reverse",
    "alphabetically",
    "alphabetical",
    "from high to low",
    "from low to high",
    "high to low",
    "low to high",
    "highest first",
    "lowest first",
    "z to a",
    "a to z",
    "z-a",
    "a-z",
    "newest",
    "latest",
    "oldest",
    "most recent",
    "earliest",
    "cheapest",
    "most expensive",
    "first",
    ",",
    "highest",
    "lowest",
];
pub(super) const VIEW_WORDS: [&str; 9] =
    ["view", "views", "page", "section", "screen", "tab", "table", "resource", "menu entry"];

pub(super) fn position(list: &List, to: &str, moved: &str) -> usize {
    let last = list.columns.iter().filter(|column| !column.hidden).count().saturating_sub(1);
    for (word, offset) in [
        ("in front of ", 0),
        ("to the left of ", 0),
        ("left of ", 0),
        ("before ", 0),
        ("to the right of ", 1),
        ("right of ", 1),
        ("behind ", 1),
        ("after ", 1),
        ("next to ", 1),
    ] {
        if let Some(name) = to.strip_prefix(word) {
            let from = list.columns.iter().position(|column| column.field == moved).unwrap_or(usize::MAX);
            return match fields::find(list, &bare(name)) {
                // Taking the column out first moves what is behind it.
                Some(index) => (index + offset).saturating_sub(usize::from(from < index)),
                None => last,
            };
        }
    }
    if let Some(number) =
        to.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse::<usize>().ok())
    {
        return number.saturating_sub(1);
    }
    match to {
        "second" => 1,
        "third" => 2,
        "fourth" => 3,
        "fifth" => 4,
        "last" | "end" | "right" | "rightmost" => last,
        _ => 0,
    }
}

/// Whether a phrase names fields of some table; `Some(true)` if the whole phrase is one field's name.
pub(super) fn fields_somewhere(plan: &Plan, phrase: &str) -> Option<bool> {
    let lists = || {
        plan.resources
            .iter()
            .filter(|resource| !resource.removed)
            .filter_map(|resource| resource.list.as_ref())
    };
    let whole = bare(phrase);
    let exact = |list: &List| {
        list.columns
            .iter()
            .any(|column| views::plain(&column.label) == views::plain(&whole) || column.field == whole)
    };
    if lists().any(exact) {
        return Some(true);
    }
    let names = names(phrase);
    let all = |list: &List| !names.is_empty() && names.iter().all(|name| fields::find(list, name).is_some());
    lists().any(all).then_some(false)
}

pub(super) fn is_all(text: &str) -> bool {
    let lower = format!(" {} ", text.to_lowercase());
    [" all ", " both ", " every ", " each ", " everywhere ", " everything "]
        .iter()
        .any(|word| lower.contains(word))
}

pub(super) fn is_view_phrase(text: &str) -> bool {
    let lower = text.trim().to_lowercase();
    VIEW_WORDS.iter().any(|word| lower.ends_with(&format!(" {word}")))
}

/// `Users view` → `Users`.
pub(super) fn strip_kind(text: &str) -> &str {
    let text = text.trim();
    let lower = text.to_lowercase();
    let word = VIEW_WORDS.iter().find(|word| lower.ends_with(&format!(" {word}")));
    word.and_then(|word| text.get(..text.len() - word.len() - 1)).unwrap_or(text).trim()
}

/// `the second one`, `2`.
pub(super) fn by_number<'l>(answer: &str, lists: &[(usize, &'l List)]) -> Option<(usize, &'l List)> {
    let lower = singular(&answer.to_lowercase());
    let ordinal = [("first", 0), ("second", 1), ("third", 2), ("fourth", 3)]
        .iter()
        .find(|(word, _)| lower.contains(word))
        .map(|(_, at)| *at);
    let number = lower
        .split(|c: char| !c.is_ascii_digit())
        .find_map(|digits| digits.parse::<usize>().ok())
        .and_then(|number| number.checked_sub(1));
    let last = lower.contains("last").then(|| lists.len() - 1);
    lists.get(ordinal.or(number).or(last)?).copied()
}
