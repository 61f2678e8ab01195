//! What a phrase says about the rows of one list: "open", "with a price over 100", "created in the last 7 days".
//!
//! Owns the reading of conditions; knows no sentence around them. Invariant: a phrase of which a part is not understood is
//! not understood at all.

use super::fields;
use super::meaning::Wanted;
use super::phrases::bare;
use super::values::{self, Found, Reading};
use crate::plan::words::split;
use crate::plan::{Column, Condition, Display, List, Test};
use regex::{Captures, Regex};
use serde_json::Value;
use std::sync::LazyLock;

/// Reads a phrase against a list. `answer` is the answer to an earlier question.
pub(super) fn read(list: &List, phrase: &str, answer: Option<&str>) -> Reading {
    let mut all: Vec<Condition> = Vec::new();
    let phrase = phrase.trim();
    if phrase.is_empty() {
        return Reading::Nothing;
    }
    for part in parts(list, phrase) {
        match one(list, &part, answer) {
            Reading::Conditions(found) => found.into_iter().for_each(|one| merge(&mut all, one)),
            other => return other,
        }
    }
    if all.is_empty() { Reading::Nothing } else { Reading::Conditions(all) }
}

/// Values of one field are alternatives; conditions of different fields hold together.
fn merge(all: &mut Vec<Condition>, new: Condition) {
    let same = all.iter_mut().find(|one| {
        one.field == new.field && one.test == Test::Is && new.test == Test::Is && one.negated == new.negated
    });
    match same {
        Some(known) => known.values.extend(new.values),
        None => all.push(new),
    }
}

/// The parts between "and", "or" and commas; a part that only goes on with a value repeats the field before it.
fn parts(list: &List, phrase: &str) -> Vec<String> {
    static JOINTS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?i)\s*,\s*(?:and |or )?| and (?:also )?| or | but | & ").ok());
    static THOUSANDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(\d),(\d{3})\b").ok());
    let Some(joints) = JOINTS.as_ref() else { return vec![phrase.to_owned()] };
    let phrase = &THOUSANDS
        .as_ref()
        .map_or_else(|| phrase.to_owned(), |thousands| thousands.replace_all(phrase, "$1$2").into_owned());
    // "Between 10 and 20" is one part, and so is a text in quotes.
    if phrase.contains('"') || phrase.to_lowercase().contains("between ") {
        return vec![phrase.to_owned()];
    }
    let mut parts: Vec<String> = Vec::new();
    let mut negation = "";
    for part in joints.split(phrase).map(str::trim).filter(|part| !part.is_empty()) {
        let lower = part.to_lowercase();
        let is_bare = matches!(one(list, part, None), Reading::Nothing);
        match parts.last().and_then(|last| field_of(list, last)).filter(|_| is_bare) {
            Some(field) => parts.push(format!("{field} is {negation}{part}")),
            None => {
                // "Not closed or canceled" means neither.
                let is_negated = lower.starts_with("not ") || lower.contains(" not ");
                negation = if is_negated { "not " } else { negation };
                let carries_on = !is_negated && !negation.is_empty() && !part.contains(' ');
                parts.push(if carries_on { format!("{negation}{part}") } else { part.to_owned() });
            }
        }
    }
    parts
}

/// The field that the condition of a part is about.
fn field_of(list: &List, part: &str) -> Option<String> {
    match one(list, part, None) {
        Reading::Conditions(found) => found.last().map(|condition| condition.field.clone()),
        _ => None,
    }
}

type Read = fn(&List, &Captures) -> Reading;

const NUMBER: &str = r"(?:[$€£] ?)?(?P<n>-?\d[\d.,]*)(?: ?(?:%|€|\$|£|euros?|dollars?|usd|eur|gbp|pounds?|percent|items?|pieces?))?";
const MORE: &str =
    r"over|above|more than|greater than|higher than|bigger than|larger than|exceeding|exceeds|>";
const LESS: &str = r"under|below|less than|fewer than|lower than|smaller than|cheaper than|<";
const LEAST: &str = r"at least|>=|≥|from|minimum|min";
const MOST: &str = r"at most|up to|<=|≤|maximum|max|no more than";

/// The first pattern that fits and yields something decides.
fn patterns() -> impl Iterator<Item = (String, Read)> {
    amounts_and_times().into_iter().chain(texts_and_values())
}

fn amounts_and_times() -> [(String, Read); 9] {
    [
        (
            format!(r"^(?:(?P<f>.+?) )?(?:is |are |was )?between {NUMBER} and (?:[$€£] ?)?(?P<m>-?\d[\d.,]*)\S*$"),
            between,
        ),
        (format!(r"^(?:(?P<f>.+?) )?(?:is |are |was |costs? |of )?(?P<op>{LEAST}|{MOST}|{MORE}|{LESS}) {NUMBER}$"), compare),
        (r"^(?P<f>.+?) (?P<op>>=|<=|≥|≤|>|<) ?(?P<n>-?\d[\d.,]*)$".to_owned(), compare),
        (format!(r"^(?:with )?(?P<op>{LEAST}|{MOST}|{MORE}|{LESS}) (?P<n>\d[\d.,]*) (?P<f>[a-z].*)$"), compare),
        (r"^(?P<op>negative|positive) (?P<f>.+)$|^(?P<g>.+) (?:is |are )?(?P<o>negative|positive)$".to_owned(), sign),
        (
            r"^(?:(?P<f>.+?) )?(?:is |are |was |were |from |of |in |for |on )*(?P<w>today|this week|this month|this year)$"
                .to_owned(),
            calendar,
        ),
        (
            r"^(?:(?P<f>.+?) )?(?:is |are |was |were )?(?:from |of |in |within |during |for )*(?:the )?(?P<d>last|past|next|coming) (?P<n>\d+ )?(?P<u>day|week|month|year|hour)s?$"
                .to_owned(),
            span,
        ),
        (
            r"^(?:(?P<f>.+?) )?(?:is |are |was |were )?(?:older than|more than|before|over) (?P<n>\d+) (?P<u>day|week|month|year)s?(?: ago| old)?$"
                .to_owned(),
            older,
        ),
        (
            r"^(?:(?P<f>.+?) )?(?:is |are )?newer than (?P<n>\d+) (?P<u>day|week|month|year)s?$".to_owned(),
            newer,
        ),
    ]
}

fn texts_and_values() -> [(String, Read); 7] {
    [
        (r"^(?P<f>.+?) (?:is |are |was |lies )?(?:in the )(?P<w>past|future)$".to_owned(), side),
        (
            r"^(?:without|with no|with empty|with an empty|with missing|missing|lacking|that have no|have no|has no|no) (?:an? |the |any )?(?P<f>.+)$"
                .to_owned(),
            empty,
        ),
        (r"^(?P<f>.+?) (?:is |are )?(?P<not>not )?(?:empty|missing|set|filled in|blank|unset)$".to_owned(), state),
        (r"^(?:with|having|that have|have|has) (?:an? |the |any |some )(?P<f>.+)$".to_owned(), filled),
        (
            r#"^(?P<f>.+?) (?P<not>does not |doesn't |do not |don't |not )?(?P<op>contains?|containing|includes?|including|starts? with|starting with|begins? with|beginning with) (?:the (?:text|word) )?"?(?P<v>[^"]+?)"?$"#
                .to_owned(),
            text,
        ),
        (
            r#"^(?P<f>.+?) (?P<not>isn't|aren't|is not|are not|!=|≠|other than|not equal to)(?: equal to)? "?(?P<v>[^"]+?)"?$"#
                .to_owned(),
            differs,
        ),
        (
            r#"^(?P<f>.+?)(?: (?:is|are|was|equals|equal to|being|set to|of|as)(?P<not> not)?| ?[:=]=?) "?(?P<v>[^"]+?)"?$"#
                .to_owned(),
            equals,
        ),
    ]
}

fn one(list: &List, part: &str, answer: Option<&str>) -> Reading {
    static PATTERNS: LazyLock<Vec<(Regex, Read)>> = LazyLock::new(|| {
        // The patterns are constants that a test compiles, so none is ever left out.
        let compiled =
            |(pattern, read): (String, Read)| Some((Regex::new(&format!("(?i){pattern}")).ok()?, read));
        patterns().filter_map(compiled).collect()
    });
    let part = stripped(part, &LEADING);
    // "With a due date" says that there is one; "with status open" says what it is.
    for text in [part.clone(), stripped(&part, &WITH)] {
        for (pattern, read) in PATTERNS.iter() {
            let reading = pattern.captures(&text).map_or(Reading::Nothing, |captures| read(list, &captures));
            if reading != Reading::Nothing {
                return reading;
            }
        }
        let reading = field_and_value(list, &text);
        if reading != Reading::Nothing {
            return reading;
        }
    }
    match values::named(list, &part, answer) {
        Reading::Nothing => values::named(list, &stripped(&part, &WITH), answer),
        found => found,
    }
}

const LEADING: [&str; 21] = [
    "that are ",
    "which are ",
    "who are ",
    "that is ",
    "which is ",
    "that were ",
    "which were ",
    "where the ",
    "where ",
    "whose ",
    "only ",
    "just ",
    "all ",
    "the ",
    "those ",
    "are ",
    "is ",
    "were ",
    "by ",
    "if ",
    "when ",
];
const WITH: [&str; 7] = ["with the ", "with a ", "with an ", "with ", "in the ", "in ", "of "];

/// Without the words that lead to a condition.
fn stripped(part: &str, leading: &[&str]) -> String {
    let mut text = part.trim();
    let begins = |text: &str, start: &str| {
        text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
    };
    while let Some(start) = leading.iter().find(|start| begins(text, start)) {
        text = text[start.len()..].trim_start();
    }
    text.to_owned()
}

/// The column of a name; only of a whole name, so that a value is never taken for one.
fn column<'l>(list: &'l List, name: &str) -> Option<&'l Column> {
    let mut name = bare(name);
    for word in ["that ", "which ", "whose ", "where ", "with ", "the ", "a ", "an ", "of "] {
        if name.to_lowercase().starts_with(word) {
            name = name[word.len()..].trim_start().to_owned();
        }
    }
    for word in [" is", " are", " was", " has", " have", " that", " which", " in", " costs", " cost"] {
        if name.to_lowercase().ends_with(word) {
            name.truncate(name.len() - word.len());
        }
    }
    fields::find(list, &name).map(|index| &list.columns[index])
}

fn text_at(captures: &Captures, name: &str) -> String {
    captures.name(name).map(|found| found.as_str().trim().to_owned()).unwrap_or_default()
}

fn number_at(captures: &Captures, name: &str) -> Option<Value> {
    let digits = text_at(captures, name);
    let digits = digits.trim_end_matches(['.', ',']);
    // "1,000" is a thousand; "1,5" is one and a half.
    let is_thousands = digits.split(',').skip(1).all(|group| group.len() == 3);
    let plain = if is_thousands { digits.replace(',', "") } else { digits.replace(',', ".") };
    let whole = plain.parse::<i64>().ok().map(Value::from);
    whole.or_else(|| plain.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from))
}

fn condition(column: &Column, test: Test, values: Vec<Value>, negated: bool) -> Reading {
    let field = column.field.clone();
    Reading::Conditions(vec![Condition { field, test, values, negated, parameter: String::new() }])
}

/// The column with numbers that is meant; without a name, the one that holds money.
fn number_column<'l>(list: &'l List, name: &str) -> Option<&'l Column> {
    let is_number = |column: &&Column| column.display == Display::Number;
    if name.is_empty() {
        let money = Wanted::Price.field(list)?;
        return list.columns.iter().find(|column| column.field == money).filter(is_number);
    }
    column(list, name).filter(is_number)
}

fn compare(list: &List, captures: &Captures) -> Reading {
    let Some(column) = number_column(list, &text_at(captures, "f")) else { return Reading::Nothing };
    let Some(number) = number_at(captures, "n") else { return Reading::Nothing };
    let word = text_at(captures, "op").to_lowercase();
    let among = |words: &str| words.split('|').any(|one| one == word);
    let test = if among(LEAST) {
        Test::AtLeast
    } else if among(MOST) {
        Test::AtMost
    } else if among(MORE) {
        Test::Above
    } else {
        Test::Below
    };
    condition(column, test, vec![number], false)
}

fn between(list: &List, captures: &Captures) -> Reading {
    let Some(column) = number_column(list, &text_at(captures, "f")) else { return Reading::Nothing };
    let (Some(low), Some(high)) = (number_at(captures, "n"), number_at(captures, "m")) else {
        return Reading::Nothing;
    };
    let of = |test, value| Condition {
        field: column.field.clone(),
        test,
        values: vec![value],
        ..Condition::default()
    };
    Reading::Conditions(vec![of(Test::AtLeast, low), of(Test::AtMost, high)])
}

fn sign(list: &List, captures: &Captures) -> Reading {
    let name = format!("{}{}", text_at(captures, "f"), text_at(captures, "g"));
    let word = format!("{}{}", text_at(captures, "op"), text_at(captures, "o")).to_lowercase();
    let Some(column) = number_column(list, &name) else { return Reading::Nothing };
    let test = if word == "negative" { Test::Below } else { Test::Above };
    condition(column, test, vec![Value::from(0)], false)
}

/// The column with times that is meant; without a name, the one that says when a row was made.
fn time_column<'l>(list: &'l List, name: &str) -> Option<&'l Column> {
    let is_time = |column: &&Column| matches!(column.display, Display::Date | Display::Datetime);
    let times = || list.columns.iter().filter(is_time);
    const JOINING: [&str; 12] =
        ["from", "of", "made", "those", "new", "newly", "in", "the", "within", "during", "for", "on"];
    let is_joining = |word: &str| JOINING.contains(&word.to_lowercase().as_str());
    if name.split_whitespace().all(is_joining) {
        let made = Wanted::Date.field(list)?;
        let is_made = |column: &&Column| column.field == made;
        return times().find(is_made).filter(|column| times().count() == 1 || is_creation(&column.field));
    }
    let wanted = split(name).last().map(|word| word.to_lowercase())?;
    // "Due" and "due date", "created" and "created at" are the same.
    let by_word = || times().find(|one| split(&one.field).iter().any(|word| word.to_lowercase() == wanted));
    column(list, name).filter(is_time).or_else(by_word)
}

fn is_creation(field: &str) -> bool {
    let lower = field.to_lowercase();
    ["creat", "made", "placed", "ordered", "date", "opened"].iter().any(|word| lower.contains(word))
}

fn calendar(list: &List, captures: &Captures) -> Reading {
    let Some(column) = time_column(list, &text_at(captures, "f")) else { return Reading::Nothing };
    let test = match text_at(captures, "w").to_lowercase().as_str() {
        "today" => Test::Today,
        "this week" => Test::ThisWeek,
        "this month" => Test::ThisMonth,
        _ => Test::ThisYear,
    };
    condition(column, test, Vec::new(), false)
}

fn days(captures: &Captures) -> Option<u64> {
    let digits = text_at(captures, "n");
    let count: u64 = if digits.is_empty() { 1 } else { digits.parse().ok()? };
    let days = match text_at(captures, "u").to_lowercase().as_str() {
        "day" => 1,
        "week" => 7,
        "month" => 30,
        "year" => 365,
        // Hours are not told apart.
        _ => return count.is_multiple_of(24).then_some(count / 24),
    };
    Some(count.saturating_mul(days))
}

fn in_days(list: &List, captures: &Captures, test: Test) -> Reading {
    match (time_column(list, &text_at(captures, "f")), days(captures)) {
        (Some(column), Some(days)) => condition(column, test, vec![Value::from(days)], false),
        _ => Reading::Nothing,
    }
}

fn span(list: &List, captures: &Captures) -> Reading {
    let is_next = matches!(text_at(captures, "d").to_lowercase().as_str(), "next" | "coming");
    // "Last month" is the month before this one; "the last month" are thirty days.
    let whole = captures.get(0).map_or("", |whole| whole.as_str()).to_lowercase();
    if text_at(captures, "n").is_empty() && !whole.contains("the ") {
        return Reading::Nothing;
    }
    in_days(list, captures, if is_next { Test::NextDays } else { Test::LastDays })
}

fn older(list: &List, captures: &Captures) -> Reading {
    in_days(list, captures, Test::OlderDays)
}

fn newer(list: &List, captures: &Captures) -> Reading {
    in_days(list, captures, Test::LastDays)
}

fn side(list: &List, captures: &Captures) -> Reading {
    let Some(column) = time_column(list, &text_at(captures, "f")) else { return Reading::Nothing };
    let is_past = text_at(captures, "w").eq_ignore_ascii_case("past");
    condition(column, if is_past { Test::Past } else { Test::Future }, Vec::new(), false)
}

fn empty(list: &List, captures: &Captures) -> Reading {
    presence(list, &text_at(captures, "f"), false)
}

fn filled(list: &List, captures: &Captures) -> Reading {
    presence(list, &text_at(captures, "f"), true)
}

/// Whether a row has something: a number that is zero is nothing.
fn presence(list: &List, name: &str, is_there: bool) -> Reading {
    match column(list, name) {
        Some(column) if column.display == Display::Number => {
            condition(column, Test::Above, vec![Value::from(0)], !is_there)
        }
        Some(column) if is_there => condition(column, Test::Filled, Vec::new(), false),
        Some(column) => condition(column, Test::Empty, Vec::new(), false),
        None => Reading::Nothing,
    }
}

fn state(list: &List, captures: &Captures) -> Reading {
    let Some(column) = column(list, &text_at(captures, "f")) else { return Reading::Nothing };
    let whole = captures.get(0).map_or("", |whole| whole.as_str()).to_lowercase();
    let says_filled = whole.ends_with(" set") || whole.ends_with("filled in");
    let is_filled = says_filled != captures.name("not").is_some();
    condition(column, if is_filled { Test::Filled } else { Test::Empty }, Vec::new(), false)
}

fn text(list: &List, captures: &Captures) -> Reading {
    let Some(column) = column(list, &text_at(captures, "f")) else { return Reading::Nothing };
    let word = text_at(captures, "op").to_lowercase();
    let test = if word.starts_with("contain") || word.starts_with("includ") {
        Test::Contains
    } else {
        Test::StartsWith
    };
    let value = Value::String(text_at(captures, "v"));
    condition(column, test, vec![value], captures.name("not").is_some())
}

fn differs(list: &List, captures: &Captures) -> Reading {
    value_of(list, &text_at(captures, "f"), &text_at(captures, "v"), true)
}

fn equals(list: &List, captures: &Captures) -> Reading {
    value_of(list, &text_at(captures, "f"), &text_at(captures, "v"), captures.name("not").is_some())
}

fn value_of(list: &List, name: &str, value: &str, negated: bool) -> Reading {
    let Some(column) = column(list, name) else { return Reading::Nothing };
    match values::of(column, value) {
        Found::Value(value) => condition(column, Test::Is, vec![value], negated),
        Found::None if column.choices.is_empty() => Reading::Nothing,
        Found::None => Reading::Unknown {
            message: format!("{} is never “{}”.", column.label, crate::problem::excerpt(value)),
            alternatives: column.choices.clone(),
        },
    }
}

/// "Status open" and "open status", "priority high": a field and one of its values.
fn field_and_value(list: &List, part: &str) -> Reading {
    let words: Vec<&str> = part.split_whitespace().collect();
    for at in 1..words.len() {
        let (left, right) = (words[..at].join(" "), words[at..].join(" "));
        for (name, value) in [(&left, &right), (&right, &left)] {
            let exact = list.columns.iter().find(|column| {
                super::views::plain(&column.label) == super::views::plain(name)
                    || super::views::plain(&column.field) == super::views::plain(name)
            });
            if let Some(column) = exact.filter(|column| !column.choices.is_empty())
                && let Found::Value(value) = values::of(column, value)
            {
                return condition(column, Test::Is, vec![value], false);
            }
        }
    }
    Reading::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for (pattern, _) in patterns() {
            assert!(Regex::new(&format!("(?i){pattern}")).is_ok(), "{pattern}");
        }
    }
}
