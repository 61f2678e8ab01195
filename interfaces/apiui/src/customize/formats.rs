//! Requests about how values are shown: formats, the names of referenced records, computed columns.
//!
//! Owns the words for formats. A format that can mean two things (a currency without its name, a percentage) is asked about.

use super::choosing::{Request, capitalized};
use super::edit::PlanEdit;
use super::fields;
use super::phrases::{bare, given_name, names};
use super::requests::expand;
use super::understand::{Halt, Reader};
use super::views;
use crate::plan::words::split;
use crate::plan::{Calculation, Display, FormatKind, ValueFormat};
use regex::{Captures, Regex};
use std::sync::LazyLock;

type Make = fn(&Reader<'_>, &Captures) -> Request;

const PATTERNS: [(&str, Make); 15] = [
    (
        r"^(?:show|display|use|put|see) THE(?P<f>.+?)(?:'s)? names? (?:instead of|in place of|rather than|not) (?:the |its |their )?(?:[\w ]+? )?(?:ids?|keys?|numbers?|references?)(?P<v> (?:in|on|of|for) .+)?$",
        |reader, c| reader.show_names(&at(c, "f"), &at(c, "v")),
    ),
    (
        r"^(?:replace|resolve|turn|change) THE(?P<f>.+?)[ _]?(?:ids?|keys?|references?)(?: (?:with|by|into|to|as) (?:the |its |their )?(?:[\w' ]+? )?names?)?(?P<v> (?:in|on|of|for) .+)?$",
        |reader, c| reader.show_names(&at(c, "f"), &at(c, "v")),
    ),
    (
        r"^(?:show|display|use) (?:the )?names? (?:instead of|in place of|rather than) (?:the )?(?:ids?|keys?)(?P<v>.*)$",
        |reader, c| reader.show_names("", &at(c, "v")),
    ),
    (r"^(?:ADD) THE(?:new )?column (?:with|for|showing|that shows|for the) (?P<e>.+)$", |reader, c| {
        reader.compute("", &at(c, "e"))
    }),
    (
        r#"^(?:ADD|calculate|compute|show) THE(?:new |computed |calculated )?(?:columns?|fields?) (?:called |named )?"?(?P<n>[^"=:]+?)"? ?[=:] ?(?P<e>.+)$"#,
        |reader, c| reader.compute(&at(c, "n"), &at(c, "e")),
    ),
    (
        r#"^(?:ADD|calculate|compute|show) THE(?:new |computed |calculated )?(?:columns?|fields?) (?:called |named )?"?(?P<n>[^"=:]+?)"? ?(?:=|:| as| computed as| calculated as| that is| from| with| which is| showing) ?(?P<e>.+)$"#,
        |reader, c| reader.compute(&at(c, "n"), &at(c, "e")),
    ),
    (
        r#"^(?:calculate|compute) THE(?P<n>.+?) (?:as|=|from|by) (?P<e>.+)$|^(?:ADD) THE"?(?P<n2>[^"]+?)"? column (?:=|:|as|from|with|computed as|calculated as|that is|combining|multiplying|adding) ?(?P<e2>.+)$"#,
        |reader, c| reader.compute(&either(c, "n", "n2"), &either(c, "e", "e2")),
    ),
    (
        r#"^(?:combine|merge|join|concatenate) THE(?P<e>.+ and .+?) (?:in(?:to)?|as|to) (?:one |a |a single )?(?:column )?(?:called |named )?"?(?P<n>[^"]+?)"?$"#,
        |reader, c| reader.compute(&at(c, "n"), &at(c, "e")),
    ),
    (
        r#"^(?:ADD|show) (?:a column (?:with|for|showing) )?(?:the |a )?(?:number of )?(?P<e>days (?:until|left until|to|before|since|after) .+?)(?: as a column)?$"#,
        |reader, c| reader.compute("", &at(c, "e")),
    ),
    (
        r"^(?:format|show|display|write|make|print|render|present|treat) THE(?P<f>.+?)(?: (?:column|field|values?))?(?: formatted| shown| displayed)? (?:as|in|into|like|to) (?P<k>.+?)(?P<v> (?:in|on|of|for) THE[\w ]+?)?$",
        |reader, c| reader.format(&at(c, "f"), &at(c, "k"), &at(c, "v")),
    ),
    (
        r"^(?:format|show|display|write|round|print|limit) THE(?P<f>.+?) (?P<k>(?:with(?:out)?|to) (?:the )?(?:\w+ )?(?:times?|decimals?(?: places?)?|digits|cents|thousands? separators?|commas|whole numbers?|currency).*?)$",
        |reader, c| reader.format(&at(c, "f"), &at(c, "k"), ""),
    ),
    (
        r"^THE(?P<f>.+?) (?:should|must|has to|needs to) be (?:shown |displayed |formatted |written )?(?:as |in |like )?(?P<k>.+)$|^THE(?P<f2>.+?) (?:is|are) (?:stored |given |sent )?in (?P<k2>cents)$",
        |reader, c| reader.format(&either(c, "f", "f2"), &either(c, "k", "k2"), ""),
    ),
    (r"^use (?P<k>.+?) for THE(?P<f>.+)$", |reader, c| reader.format(&at(c, "f"), &at(c, "k"), "")),
    (
        r"^(?:add|put|show) THE(?P<k>euro|dollar|pound|percent|currency) (?:sign|symbol)s? (?:to|on|in|for|before|after) THE(?P<f>.+)$",
        |reader, c| reader.format(&at(c, "f"), &at(c, "k"), ""),
    ),
    (
        r"^(?:remove|clear|undo|drop|reset) THEformat(?:ting)? (?:of|from|for|on) THE(?P<f>.+)$",
        |reader, c| reader.format(&at(c, "f"), "plain", ""),
    ),
];

fn at(captures: &Captures, name: &str) -> String {
    captures.name(name).map(|found| found.as_str().trim().to_owned()).unwrap_or_default()
}

fn either(captures: &Captures, first: &str, second: &str) -> String {
    let text = at(captures, first);
    if text.is_empty() { at(captures, second) } else { text }
}

/// What a word for a format means.
enum Wording {
    Format(ValueFormat),
    Plain,
    /// Money, but of which country?
    SomeCurrency {
        cents: bool,
    },
    /// 0.12 or 12?
    SomePercent,
}

impl Reader<'_> {
    /// The edits of a request about how values are shown, if the clause is one.
    pub(super) fn format_request(&self) -> Request {
        static COMPILED: LazyLock<Vec<(Regex, Make)>> = LazyLock::new(|| {
            // The patterns are constants that a test compiles, so none is ever left out.
            let compiled = |(pattern, make): &(&str, Make)| {
                Some((Regex::new(&format!("(?i){}", expand(pattern))).ok()?, *make))
            };
            PATTERNS.iter().filter_map(compiled).collect()
        });
        COMPILED.iter().find_map(|(pattern, make)| make(self, &pattern.captures(self.clause)?))
    }

    fn format(&self, field: &str, kind: &str, rest: &str) -> Request {
        let format = match wording(kind)? {
            Wording::Format(format) => Some(format),
            Wording::Plain => None,
            Wording::SomeCurrency { cents } => match self.answer.and_then(currency) {
                Some(currency) => Some(money(currency, cents)),
                None => return Some(Err(which_currency(field))),
            },
            Wording::SomePercent => match self.answer.map(is_fraction) {
                Some(true) => Some(of(FormatKind::Fraction)),
                Some(false) => Some(of(FormatKind::Percent)),
                None => return Some(Err(which_percent(field))),
            },
        };
        Some(self.with_fields(field, rest, "change the column of", |view, found| {
            let edit = |field| PlanEdit::Format { view: view.clone(), field, format: format.clone() };
            found.into_iter().map(edit).collect()
        }))
    }

    /// The fields of a view that lead to other records, and whose names are asked for.
    fn show_names(&self, what: &str, rest: &str) -> Request {
        let wanted = views::plain(&bare(what));
        let cut = self.cut_view(rest);
        let found = |index: usize| -> Vec<String> {
            let resource = &self.plan.resources[index];
            let leads = |relation: &&crate::plan::Relation| {
                let target = &self.plan.resources[relation.resource];
                let field = views::plain(&relation.field);
                let is_column = resource
                    .list
                    .as_ref()
                    .is_some_and(|list| list.columns.iter().any(|column| column.field == relation.field));
                !relation.field.is_empty()
                    && is_column
                    && (wanted.is_empty()
                        || views::plain(&target.singular) == wanted
                        || field.starts_with(&wanted))
            };
            resource.relations.iter().filter(leads).map(|relation| relation.field.clone()).collect()
        };
        let candidates: Vec<usize> =
            self.candidates(&cut).into_iter().filter(|index| !found(*index).is_empty()).collect();
        let edit = |index: usize, field: String| PlanEdit::ShowName { view: self.id(index), field, on: true };
        if wanted.is_empty() && cut.named.is_empty() {
            let all = candidates
                .iter()
                .flat_map(|index| found(*index).into_iter().map(|field| edit(*index, field)));
            return (!candidates.is_empty()).then(|| Ok(all.collect()));
        }
        Some(
            self.one_of(&candidates, "show the names in")?
                .map(|index| found(index).into_iter().map(|field| edit(index, field)).collect()),
        )
    }

    /// A column from an expression of two operands, from some texts, or from a date.
    fn compute(&self, name: &str, expression: &str) -> Request {
        let (expression, called) = named_after(expression);
        let (expression, place) = self.split_view(&expression);
        let (how, operands) = calculation(&expression)?;
        let constant = operands.last().and_then(|last| last.parse::<f64>().ok());
        let wanted: Vec<String> =
            operands.iter().filter(|operand| operand.parse::<f64>().is_err()).cloned().collect();
        let has = |index: &usize| {
            self.list(*index)
                .is_some_and(|list| wanted.iter().all(|field| fields::find(list, field).is_some()))
        };
        let cut = self.cut_view(&place);
        let candidates: Vec<usize> = self.candidates(&cut).into_iter().filter(has).collect();
        let candidates = self.exactly(candidates, &wanted);
        let index = match self.one_of(&candidates, "add the column to")? {
            Ok(index) => index,
            Err(halt) => return Some(Err(halt)),
        };
        let is_text = |field: &String| {
            let list = self.list(index);
            let at = list.and_then(|list| fields::find(list, field).map(|at| list.columns[at].display));
            at == Some(Display::Text)
        };
        // The sum of texts is one text.
        let is_joined = how == Calculation::Add && constant.is_none() && wanted.iter().all(is_text);
        let how = if is_joined { Calculation::Join } else { how };
        let label = [name, called.as_str()].into_iter().map(given_name).find(|one| !one.is_empty());
        let label = label.unwrap_or_else(|| expression.clone());
        Some(Ok(vec![PlanEdit::ComputeColumn {
            view: self.id(index),
            label: capitalized(label.trim_start_matches("the ").trim_start_matches("a ")),
            how,
            fields: wanted,
            constant,
        }]))
    }
}

/// `price times quantity called Total` → the expression and the name.
fn named_after(expression: &str) -> (String, String) {
    let lower = expression.to_lowercase();
    for word in [" called ", " named ", " and call it ", " as a column called "] {
        if let Some(at) = lower.find(word).filter(|at| expression.is_char_boundary(*at)) {
            return (expression[..at].to_owned(), expression[at + word.len()..].to_owned());
        }
    }
    (expression.to_owned(), String::new())
}

fn calculation(expression: &str) -> Option<(Calculation, Vec<String>)> {
    const OPERATORS: [(&str, Calculation); 15] = [
        (" multiplied by ", Calculation::Multiply),
        (" divided by ", Calculation::Divide),
        (" times ", Calculation::Multiply),
        (" * ", Calculation::Multiply),
        (" x ", Calculation::Multiply),
        (" × ", Calculation::Multiply),
        ("*", Calculation::Multiply),
        (" plus ", Calculation::Add),
        (" + ", Calculation::Add),
        ("+", Calculation::Add),
        (" minus ", Calculation::Subtract),
        (" - ", Calculation::Subtract),
        (" / ", Calculation::Divide),
        (" ÷ ", Calculation::Divide),
        ("/", Calculation::Divide),
    ];
    let text = expression.trim();
    let lower = text.to_lowercase();
    let after = |words: &[&str]| {
        words.iter().find_map(|word| lower.find(word).and_then(|at| text.get(at + word.len()..))).map(bare)
    };
    if let Some(field) = after(&["days until ", "days left until ", "days to ", "days before "]) {
        return Some((Calculation::DaysUntil, vec![field]));
    }
    if let Some(field) = after(&["days since ", "days after "]) {
        return Some((Calculation::DaysSince, vec![field]));
    }
    for (operator, how) in OPERATORS {
        let operands: Vec<String> = lower.split(operator).map(bare).filter(|one| !one.is_empty()).collect();
        let is_sum = matches!(how, Calculation::Add | Calculation::Multiply);
        if operands.len() == 2 || operands.len() > 2 && is_sum {
            return Some((how, operands));
        }
    }
    let joined = ["the combination of ", "combining ", "joining ", "combined "];
    let rest = joined.iter().find_map(|start| lower.strip_prefix(start)).unwrap_or(&lower);
    let parts = names(rest);
    (parts.len() >= 2 && parts.iter().all(|part| split(part).len() <= 3))
        .then_some((Calculation::Join, parts))
}

fn wording(kind: &str) -> Option<Wording> {
    let lower = kind.trim().to_lowercase();
    let cents = lower.contains("from cents") || lower == "cents";
    let text = lower.replace("from cents", "").trim().to_owned();
    let text =
        ["a ", "an ", "the ", "to "].iter().find_map(|start| text.strip_prefix(start)).unwrap_or(&text);
    if let Some(currency) = currency(text) {
        return Some(Wording::Format(money(currency, cents)));
    }
    let format = |kind| Some(Wording::Format(of(kind)));
    match text {
        "currency" | "money" | "price" | "amount" | "amount of money" | "cents" | "currencies" => {
            Some(Wording::SomeCurrency { cents })
        }
        "percent" | "percentage" | "percentages" | "%" | "per cent" => Some(Wording::SomePercent),
        "date" | "dates" | "date only" | "short date" | "day" | "without time" | "without the time"
        | "plain date" | "calendar date" => format(FormatKind::Date),
        "date and time" | "datetime" | "with time" | "with the time" | "timestamp" | "full date" => {
            format(FormatKind::Datetime)
        }
        "relative" | "relative time" | "relative date" | "relative dates" | "relative times" | "time ago"
        | "how long ago" | "days ago" | "age" | "\"3 days ago\"" | "3 days ago" | "time since" => {
            format(FormatKind::Relative)
        }
        "bytes" | "file size" | "file sizes" | "megabytes" | "mb" | "kb" | "human readable size" | "size" => {
            format(FormatKind::Bytes)
        }
        "plain" | "plain text" | "raw value" | "raw" | "it is sent" | "plain value" | "plain number" => {
            Some(Wording::Plain)
        }
        "number"
        | "numbers"
        | "with thousands separators"
        | "with thousand separators"
        | "with commas"
        | "number with thousands separators" => format(FormatKind::Number),
        other => digits(other)
            .map(|digits| Wording::Format(ValueFormat { digits: Some(digits), ..ValueFormat::default() })),
    }
}

/// `with two decimals` → 2.
fn digits(text: &str) -> Option<u8> {
    let text = text.strip_prefix("number ").or_else(|| text.strip_prefix("numbers ")).unwrap_or(text);
    if [
        "without decimals",
        "with no decimals",
        "whole number",
        "whole numbers",
        "without cents",
        "no decimals",
    ]
    .contains(&text)
        || text == "without decimal places"
    {
        return Some(0);
    }
    let rest = text.strip_prefix("with ").unwrap_or(text);
    let (count, noun) = rest.split_once(' ')?;
    let is_noun =
        ["decimals", "decimal", "decimal places", "decimal place", "digits", "digits after the point"];
    if !is_noun.contains(&noun) {
        return None;
    }
    match count {
        "no" | "zero" => Some(0),
        "one" => Some(1),
        "two" => Some(2),
        "three" => Some(3),
        other => other.parse().ok().filter(|digits| *digits <= 10),
    }
}

/// The code of a currency by its name.
fn currency(text: &str) -> Option<&'static str> {
    let lower = text.trim().to_lowercase();
    let lower = lower.trim_end_matches(" currency").trim_end_matches(" amounts").trim_end_matches(" amount");
    Some(match lower {
        "euro" | "euros" | "eur" | "€" => "EUR",
        "dollar" | "dollars" | "usd" | "$" | "us dollar" | "us dollars" | "american dollars"
        | "us-dollar" => "USD",
        "pound" | "pounds" | "gbp" | "£" | "british pounds" | "pound sterling" => "GBP",
        "franc" | "francs" | "chf" | "swiss francs" | "swiss franc" => "CHF",
        "yen" | "jpy" | "¥" | "japanese yen" => "JPY",
        "cad" | "canadian dollars" => "CAD",
        "aud" | "australian dollars" => "AUD",
        "sek" | "swedish kronor" => "SEK",
        "inr" | "rupees" | "indian rupees" => "INR",
        "cny" | "yuan" => "CNY",
        _ => return None,
    })
}

fn of(kind: FormatKind) -> ValueFormat {
    ValueFormat { kind, ..ValueFormat::default() }
}

fn money(currency: &str, cents: bool) -> ValueFormat {
    ValueFormat { kind: FormatKind::Currency, currency: currency.to_owned(), cents, digits: None }
}

fn is_fraction(answer: &str) -> bool {
    answer.contains("0.")
        || answer.to_lowercase().contains("fraction")
        || answer.to_lowercase().contains("first")
}

fn which_currency(field: &str) -> Halt {
    Halt::Ask {
        question: format!("Which currency is {}?", bare(field)),
        options: ["Euro", "US dollar", "Pound", "Swiss franc"].map(str::to_owned).to_vec(),
    }
}

fn which_percent(field: &str) -> Halt {
    Halt::Ask {
        question: format!("How does the API send {}: is 12 % the number 0.12 or 12?", bare(field)),
        options: vec!["0.12 is 12 %".to_owned(), "12 is 12 %".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for (pattern, _) in PATTERNS {
            assert!(Regex::new(&format!("(?i){}", expand(pattern))).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn words_for_digits() {
        for (text, expected) in [
            ("with two decimals", Some(2)),
            ("without decimals", Some(0)),
            ("2 decimals", Some(2)),
            ("with cards", None),
        ] {
            assert_eq!(digits(text), expected, "{text}");
        }
    }
}
