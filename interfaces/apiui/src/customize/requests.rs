//! Requests about rows and values: which rows are shown, how values are written and colored, tabs, buttons, own columns.
//!
//! Owns the sentences around conditions and formats. Tried before the general grammar; what is not understood as a whole
//! goes on to it.

use super::choosing::{Cut, Request, capitalized, is_question_of_person};
use super::edit::PlanEdit;
use super::fields;
use super::grammar::{Intent, intent};
use super::meaning::fields_somewhere;
use super::outcome::RefusalKind;
use super::phrases::{bare, given_name};
use super::understand::{Halt, Reader, refusal};
use super::views;
use crate::plan::{Condition, List, Test, Tint};
use regex::{Captures, Regex};
use serde_json::Value;
use std::sync::LazyLock;

type Make = fn(&Reader<'_>, &Captures) -> Request;

const PATTERNS: [(&str, Make); 17] = [
    (
        r"^(?:undo|revert|roll ?back|take back|reverse)(?: it| this| that| THElast (?:change|step|edit|one|thing)| my last change| what you (?:just )?did)?$|^(?:go|step) back(?: one step)?$|^never ?mind(?: that)?$",
        |_, _| Some(Ok(vec![PlanEdit::Undo])),
    ),
    (
        r"^(?:remove|delete|drop|hide|get rid of) THE(?P<n>.+?) (?P<k>button|tab|saved view|preset)(?P<v> .*)?$",
        |reader, c| reader.remove_named(&at(c, "n"), &at(c, "k"), &at(c, "v")),
    ),
    (
        r#"^(?:ADD) THE(?:new )?(?:button|action)(?: (?:called |named |labell?ed )?"?(?P<n>[^"]+?)"?)? (?:that|which|to|for|and) (?:sets?|changes?|setting|changing|turns?) THE(?P<f>.+?) (?:to|as|into) "?(?P<val>[^"]+?)"?(?P<v> (?:on|in|for|to|of) .+)?$"#,
        |reader, c| reader.set_button(&at(c, "n"), &at(c, "f"), &at(c, "val"), &at(c, "v")),
    ),
    (
        r#"^(?:ADD) THE(?:new )?(?:button|action) (?:to|for|that) (?:mark|marks|marking) (?P<v>.+?) as "?(?P<val>[^"]+?)"?$|^(?:let me|allow (?:me |people |users )?to) mark (?P<v2>.+?) as "?(?P<val2>[^"]+?)"?$"#,
        |reader, c| reader.mark_button(&either(c, "v", "v2"), &either(c, "val", "val2")),
    ),
    (
        r#"^(?:ADD) THE(?:new )?"?(?P<n>[^"]+?)"? (?:button|action)(?P<v> (?:on|in|for|to) .+)?$|^(?:ADD) THE(?:new )?(?:button|action)s? (?:called |named |to |for |that )?"?(?P<n2>[^"]+?)"?(?P<v2> (?:on|in|for|to) .+)?$"#,
        |reader, c| reader.operation_button(&either(c, "n", "n2"), &either(c, "v", "v2")),
    ),
    (
        r"^(?:ADD|make|give me|show) (?:one |a )?(?:tabs?|saved views?|presets?|quick filters?) (?:for|per|of) (?:each|every|all|the different) (?P<f>.+)$",
        |reader, c| reader.tabs_for_each(&at(c, "f")),
    ),
    (
        r#"^(?:ADD|make|save) THE(?:new )?(?:tab|saved view|preset|quick filter)(?: (?:called|named|with the name) "?(?P<n>[^"]+?)"?)? (?:for|with|showing|that shows|of|containing|where) (?:only |just )?(?P<w>.+)$"#,
        |reader, c| reader.tab(&at(c, "n"), &at(c, "w")),
    ),
    (
        r#"^(?:remove|clear|drop|delete|no|reset|turn off) (?:all )?(?:of )?THE(?:colou?rs?|colou?ring|highlight(?:s|ing)?|conditional formatting)(?P<v>.*)$"#,
        |reader, c| reader.clear_colors(&at(c, "v")),
    ),
    (
        r"^(?:colou?r|highlight|mark|paint|tint|show|make|display|turn|draw) (?:all )?(?:of )?THE(?P<w>.+?)(?: (?:in|as|with))?(?: an?)? (?P<c>COLOR)(?: colou?r| text| background)?(?P<v> (?:in|on|of) .+?)?(?: if (?P<i>.+)| when (?P<j>.+))?$",
        |reader, c| {
            reader.color(&format!("{}{}", at(c, "w"), spaced(&at(c, "v"))), &at(c, "c"), &either(c, "i", "j"))
        },
    ),
    (r"^(?:highlight|emphasi[sz]e|flag) (?:all )?(?:of )?THE(?P<w>.+)$", |reader, c| {
        reader.color(&at(c, "w"), "yellow", "")
    }),
    (
        r"^(?:remove|clear|reset|drop|delete|cancel|take off|lift) (?:all )?(?:of )?THE(?:fixed )?(?:filters?|restrictions?|limits?|conditions?)(?P<v>.*)$|^(?:show|display|list)(?: me)? (?:everything|all|every)\b(?P<v2>.*)$",
        |reader, c| reader.clear_filters(&either(c, "v", "v2")),
    ),
    (r"^(?:delete|erase|destroy|purge) (?:all )?(?:of )?THE(?P<w>.+)$", |reader, c| {
        reader.refuse_deletion(&at(c, "w"))
    }),
    (
        r"^(?:HIDE|ignore|skip|filter out|filter away) (?:all )?(?:of )?THE(?P<w>.+?)(?: from (?:the |this )?(?:list|table|view|page))?$",
        |reader, c| reader.only(&at(c, "w"), true),
    ),
    (
        r"^(?:(?:i |we )?(?:only|just) (?:want to |need to )?(?:show|see|display|list|keep|include|load)(?: me)?|(?:show|display|list|keep|include|load|see)(?: me)? (?:only|just)|only|limit (?:it |the list |the table |this )?to|restrict (?:it |the list |the table |this )?to|narrow (?:it |the list )?(?:down )?to|filter (?:it |the list |the table )?(?:down )?(?:to|for)|keep) (?:those |the ones )?THE(?P<w>.+)$",
        |reader, c| reader.only(&at(c, "w"), false),
    ),
    (
        r"^(?:filter|limit|restrict) THE(?P<v>.+?) (?:to|by|where|with|for|so that|on)(?: only| those)? (?P<w>.+)$|^(?:filter|where)(?: by| on| for| where)? (?P<w2>.+)$",
        |reader, c| reader.only(&format!("{} {}", at(c, "v"), either(c, "w", "w2")), false),
    ),
    (r"^(?:show|display|list|see|give)(?: me)?(?: all)? THE(?P<w>.+)$", |reader, c| {
        reader.only(&at(c, "w"), false)
    }),
    (
        r"^(?P<w>.+?) should(?: not|n't) (?:be shown|be visible|appear|be listed|show up)(?P<v>.*)$",
        |reader, c| reader.only(&format!("{}{}", at(c, "w"), at(c, "v")), true),
    ),
];

/// Abbreviations inside the patterns.
pub(super) fn expand(pattern: &str) -> String {
    pattern
        .replace("HIDE", r"(?:hide|remove|exclude|omit|leave out|drop|without|do(?:n'?t| not) (?:show|display|list|include|want to see)|get rid of|take out)")
        .replace("ADD", r"(?:add|create|put|insert|i (?:want|need)|we (?:want|need)|give me|there should be|include|make)")
        .replace("COLOR", r"(?:red|green|yellow|orange|amber|blue|gr[ae]y)")
        .replace("THE", r"(?:the |a |an |any |this |that )?")
}

fn at(captures: &Captures, name: &str) -> String {
    captures.name(name).map(|found| found.as_str().trim().to_owned()).unwrap_or_default()
}

fn spaced(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {text}") }
}

fn either(captures: &Captures, first: &str, second: &str) -> String {
    let text = at(captures, first);
    if text.is_empty() { at(captures, second) } else { text }
}

impl Reader<'_> {
    /// The edits of a request, if the clause is one.
    pub(super) fn request(&self) -> Request {
        static COMPILED: LazyLock<Vec<(Regex, Make)>> = LazyLock::new(|| {
            // The patterns are constants that a test compiles, so none is ever left out.
            let compiled = |(pattern, make): &(&str, Make)| {
                Some((Regex::new(&format!("(?i){}", expand(pattern))).ok()?, *make))
            };
            PATTERNS.iter().filter_map(compiled).collect()
        });
        let format = self.format_request();
        if format.is_some() {
            return format;
        }
        COMPILED.iter().find_map(|(pattern, make)| make(self, &pattern.captures(self.clause)?))
    }

    /// Rows that meet a condition, or those that do not.
    fn only(&self, phrase: &str, negated: bool) -> Request {
        let cut = self.cut_view(phrase);
        let means_columns = fields_somewhere(self.plan, phrase).is_some()
            || fields_somewhere(self.plan, &cut.phrase).is_some()
            || self.is_view(phrase);
        let lower = phrase.to_lowercase();
        let of_columns = ["column", "field", "except ", "everything", "apart from", "other than"];
        let says_column = of_columns.iter().any(|word| lower.contains(word))
            || lower.starts_with("only ")
            || lower.starts_with("just ");
        if (means_columns && !cut.says_rows) || says_column || is_question_of_person(&cut.phrase) {
            return self.refuse_person(&cut.phrase);
        }
        let verb = if negated { "hide these rows of" } else { "show only these rows of" };
        self.with_conditions(&cut, verb, |view, conditions| {
            conditions
                .into_iter()
                .map(|condition| PlanEdit::FixFilter {
                    view: view.clone(),
                    condition: if negated { opposite(condition) } else { condition },
                })
                .collect()
        })
        .or_else(|| self.unknown_rows(&cut))
    }

    /// Whether a phrase is the name of a view and nothing else.
    fn is_view(&self, phrase: &str) -> bool {
        let name = bare(super::meaning::strip_kind(phrase));
        views::find(self.plan, &name, false).is_some() || views::find(self.plan, &name, true).is_some()
    }

    /// "Show only my orders": who the reader is, no API says.
    fn refuse_person(&self, phrase: &str) -> Request {
        let message = "The interface does not know who is looking at it, so rows cannot be limited to “mine”. Name a field and a value, \
                       such as: show only rows where owner is Ann.";
        is_question_of_person(phrase)
            .then(|| Err(Halt::Refuse(refusal(RefusalKind::NotFound, message.to_owned(), Vec::new()))))
    }

    /// Rows of a view are meant, but no field has such a value: that is said, and nothing is guessed.
    fn unknown_rows(&self, cut: &Cut) -> Request {
        let [index] = cut.named.as_slice() else { return None };
        let words: Vec<String> = cut.phrase.split_whitespace().map(str::to_lowercase).collect();
        let is_elsewhere = |word: &String| ["from", "as", "by", "to", "at", "first"].contains(&word.as_str());
        let is_other = words.is_empty() || words.len() > 6 || words.iter().any(is_elsewhere);
        // "Show products as cards" is another wish; only what would hide rows or columns is refused here.
        let says_rows =
            words.first().is_some_and(|word| ["with", "where", "whose", "that"].contains(&word.as_str()));
        let means_rows = match intent(self.clause) {
            None | Some((Intent::ShowOnly(_) | Intent::Hide(_) | Intent::Filter(_), _)) => true,
            Some((Intent::Show(what), _)) => says_rows || what.to_lowercase().starts_with("tab"),
            _ => false,
        };
        if is_other || !means_rows || fields_somewhere(self.plan, &cut.phrase).is_some() {
            return None;
        }
        let list = self.plan.resources[*index].list.as_ref()?;
        let title = &self.plan.resources[*index].title;
        let values: Vec<String> =
            list.columns.iter().flat_map(|column| column.choices.iter().cloned()).take(12).collect();
        let message = format!(
            "No field of {title} is known to say “{}”. Name the field and the value, such as: show only {} where {}.",
            crate::problem::excerpt(&cut.phrase),
            title.to_lowercase(),
            example_of(list)
        );
        Some(Err(Halt::Refuse(refusal(RefusalKind::NotFound, message, values))))
    }

    fn refuse_deletion(&self, phrase: &str) -> Request {
        let cut = self.cut_view(phrase);
        let is_rows =
            cut.says_rows && !cut.phrase.is_empty() && fields_somewhere(self.plan, phrase).is_none();
        let message = "A change of the interface deletes no records. Select the rows in the list and press Delete, or say “hide …” to \
                       leave them out of the view.";
        (is_rows && !self.is_view(phrase))
            .then(|| Err(Halt::Refuse(refusal(RefusalKind::NotFound, message.to_owned(), Vec::new()))))
    }

    fn clear_filters(&self, rest: &str) -> Request {
        // "Show all columns" and "remove the filter for status" are other wishes.
        let cut = self.cut_view(rest);
        let is_filler = |word: &str| {
            ["again", "of", "them", "the", "in", "on", "from", "now"].contains(&word.to_lowercase().as_str())
        };
        if !cut.phrase.split_whitespace().all(is_filler) {
            return None;
        }
        let named = cut.named;
        let has = |index: &usize| self.list(*index).is_some_and(|list| !list.conditions.is_empty());
        let chosen: Vec<usize> = if named.is_empty() {
            (0..self.plan.resources.len()).filter(|index| has(index)).collect()
        } else {
            named.into_iter().filter(has).collect()
        };
        let edits = |index: usize| PlanEdit::ClearFilters { view: self.id(index), field: None };
        (!chosen.is_empty()).then(|| Ok(chosen.into_iter().map(edits).collect()))
    }

    fn color(&self, phrase: &str, color: &str, condition: &str) -> Request {
        let tint = match color.to_lowercase().as_str() {
            "red" => Tint::Red,
            "green" => Tint::Green,
            "yellow" | "orange" | "amber" => Tint::Yellow,
            "blue" => Tint::Blue,
            _ => Tint::Gray,
        };
        let lower = phrase.to_lowercase();
        let says_row = [" row", "rows", "whole", "entire", " line"].iter().any(|word| lower.contains(word))
            || lower.starts_with("row");
        let words = if condition.is_empty() {
            phrase.to_owned()
        } else {
            format!("{condition} {}", self.view_words(phrase))
        };
        let cut = self.cut_view(&words);
        let whole_row = says_row || cut.says_rows && !lower.contains(" cell");
        self.with_conditions(&cut, "color the rows of", |view, conditions| {
            let rule = |condition| PlanEdit::Color { view: view.clone(), condition, tint, whole_row };
            conditions.into_iter().take(1).map(rule).collect()
        })
    }

    fn clear_colors(&self, rest: &str) -> Request {
        let named = self.listed(rest);
        let has = |index: &usize| self.list(*index).is_some_and(|list| !list.colors.is_empty());
        let all = (0..self.plan.resources.len()).filter(has);
        let chosen: Vec<usize> = if named.is_empty() { all.collect() } else { named };
        let edit = |index: usize| PlanEdit::ClearColors { view: self.id(index) };
        (!chosen.is_empty()).then(|| Ok(chosen.into_iter().map(edit).collect()))
    }

    fn tab(&self, name: &str, phrase: &str) -> Request {
        let cut = self.cut_view(phrase);
        let name = if name.is_empty() { capitalized(&bare(phrase)) } else { given_name(name) };
        self.with_conditions(&cut, "add the tab to", |view, conditions| {
            vec![PlanEdit::SaveView { view: view.clone(), name: name.clone(), conditions }]
        })
        .or_else(|| self.unknown_rows(&cut))
    }

    /// A tab for each value of an enumeration.
    fn tabs_for_each(&self, phrase: &str) -> Request {
        let cut = self.cut_view(phrase);
        let field = bare(&cut.phrase);
        let find = |index: usize| {
            let list = self.list(index)?;
            let column = &list.columns[fields::find(list, &field)?];
            (!column.choices.is_empty()).then_some(column)
        };
        let candidates: Vec<usize> =
            self.candidates(&cut).into_iter().filter(|index| find(*index).is_some()).collect();
        let candidates = self.exactly(candidates, std::slice::from_ref(&field));
        let index = match self.one_of(&candidates, "add the tabs to")? {
            Ok(index) => index,
            Err(halt) => return Some(Err(halt)),
        };
        let column = find(index)?;
        let tab = |choice: &String| PlanEdit::SaveView {
            view: self.id(index),
            name: crate::plan::words::humanize(choice),
            conditions: vec![Condition {
                field: column.field.clone(),
                values: vec![Value::String(choice.clone())],
                ..Condition::default()
            }],
        };
        Some(Ok(column.choices.iter().map(tab).collect()))
    }

    fn remove_named(&self, name: &str, kind: &str, rest: &str) -> Request {
        let is_button = kind.eq_ignore_ascii_case("button");
        let wanted = views::plain(&given_name(name));
        let named = self.listed(rest);
        let has = |index: &usize| {
            self.list(*index).is_some_and(|list| {
                let mut tabs = list.saved.iter().map(|one| &one.title);
                let mut buttons = list.actions.iter().map(|one| &one.title);
                let is_it = |title: &String| views::plain(title) == wanted;
                if is_button { buttons.any(is_it) } else { tabs.any(is_it) }
            })
        };
        let all = if named.is_empty() { (0..self.plan.resources.len()).collect() } else { named };
        let index = all.into_iter().find(has)?;
        let (view, name) = (self.id(index), given_name(name));
        Some(Ok(vec![if is_button {
            PlanEdit::RemoveAction { view, label: name }
        } else {
            PlanEdit::RemoveSavedView { view, name }
        }]))
    }
}

/// A condition that the list knows.
fn example_of(list: &List) -> String {
    let by_choice = list.columns.iter().find_map(|column| Some((&column.label, column.choices.first()?)));
    match (by_choice, list.columns.first()) {
        (Some((label, choice)), _) => format!("{} is {choice}", label.to_lowercase()),
        (None, Some(first)) => format!("{} is …", first.label.to_lowercase()),
        (None, None) => "a field is a value".to_owned(),
    }
}

/// The condition that the other rows meet. A flag is set or not; the API may know that by a parameter.
fn opposite(mut condition: Condition) -> Condition {
    match condition.values.as_mut_slice() {
        [Value::Bool(is_set)] if condition.test == Test::Is && !condition.negated => *is_set = !*is_set,
        _ => condition.negated = !condition.negated,
    }
    condition
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
}
