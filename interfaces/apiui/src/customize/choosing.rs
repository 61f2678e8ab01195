//! Which list a request is about, and which of its rows.
//!
//! Never guesses between two lists: it asks, and the options are the real ones.

use super::conditions;
use super::edit::PlanEdit;
use super::fields;
use super::meaning::{by_number, is_all};
use super::outcome::RefusalKind;
use super::phrases::bare;
use super::understand::{Halt, Reader, refusal};
use super::values::Reading;
use super::views;
use crate::plan::words::{singular, split};
use crate::plan::{Condition, List};

/// `None`: the sentence is not one of these.
pub(super) type Request = Option<Result<Vec<PlanEdit>, Halt>>;

/// A phrase without the name of a view and words for rows.
pub(super) struct Cut {
    pub phrase: String,
    /// Views with a list that the phrase named.
    pub named: Vec<usize>,
    /// It said "orders" or "rows", so rows are meant and not columns.
    pub says_rows: bool,
}

/// Words for rows of any kind.
const ROWS: [&str; 9] =
    ["rows", "row", "items", "entries", "records", "ones", "results", "lines", "elements"];
/// Words that stand around the name of a view.
const AROUND: [&str; 14] =
    ["in", "of", "from", "on", "for", "the", "to", "table", "list", "page", "view", "all", "within", "those"];

impl Reader<'_> {
    pub(super) fn id(&self, index: usize) -> String {
        self.plan.resources[index].id.clone()
    }

    /// The list of a view that is shown.
    pub(super) fn list(&self, index: usize) -> Option<&List> {
        self.plan.resources.get(index).filter(|resource| !resource.removed)?.list.as_ref()
    }

    /// The views with a list that a text names.
    pub(super) fn listed(&self, text: &str) -> Vec<usize> {
        let named = views::mentioned(self.plan, text, false);
        named.into_iter().filter(|index| self.list(*index).is_some()).collect()
    }

    /// The words of a phrase that name a view.
    pub(super) fn view_words(&self, phrase: &str) -> String {
        let titles = self.listed(phrase).into_iter().map(|index| self.plan.resources[index].title.clone());
        titles.collect::<Vec<_>>().join(" ")
    }

    /// Takes the name of a view out of a phrase.
    pub(super) fn cut_view(&self, phrase: &str) -> Cut {
        let mut words: Vec<String> = phrase.split_whitespace().map(str::to_owned).collect();
        let named: Vec<usize> = self.listed(phrase).into_iter().take(1).collect();
        let mut says_rows = false;
        if let Some(index) = named.first() {
            let title = split(&self.plan.resources[*index].title);
            let title: Vec<String> = title.iter().map(|word| singular(&word.to_lowercase())).collect();
            let plain = |word: &String| {
                let word = word.trim_matches(|c: char| !c.is_alphanumeric()).trim_end_matches("'s");
                singular(&word.to_lowercase())
            };
            let is_here = |words: &[String], at: usize| {
                words
                    .get(at..at + title.len())
                    .is_some_and(|some| some.iter().map(plain).eq(title.iter().cloned()))
            };
            while let Some(at) = (0..words.len()).find(|at| is_here(&words, *at)) {
                words.drain(at..at + title.len());
                // "Open orders" are rows; "title in books" is a column of books.
                says_rows |= !trim_around(&mut words, at);
            }
        }
        let is_row = |word: &String| ROWS.contains(&word.to_lowercase().as_str());
        if let Some(at) = words.iter().position(is_row) {
            words.remove(at);
            says_rows = true;
        }
        let is_around =
            |word: Option<&String>| word.is_some_and(|word| AROUND.contains(&word.to_lowercase().as_str()));
        while is_around(words.last()) {
            words.pop();
        }
        Cut { phrase: words.join(" "), named, says_rows }
    }

    /// The lists that a request may be about.
    pub(super) fn candidates(&self, cut: &Cut) -> Vec<usize> {
        let answered = self.answer.map(|answer| self.listed(answer)).unwrap_or_default();
        if !cut.named.is_empty() {
            return cut.named.clone();
        }
        if !answered.is_empty() {
            return answered;
        }
        (0..self.plan.resources.len()).filter(|index| self.list(*index).is_some()).collect()
    }

    /// The only one of some lists, or a question.
    pub(super) fn one_of(&self, candidates: &[usize], verb: &str) -> Option<Result<usize, Halt>> {
        let lists: Vec<(usize, &List)> =
            candidates.iter().filter_map(|index| Some((*index, self.list(*index)?))).collect();
        match lists.as_slice() {
            [] => None,
            [(index, _)] => Some(Ok(*index)),
            many => match self.answer.and_then(|answer| by_number(answer, many)) {
                Some((index, _)) => Some(Ok(index)),
                None => Some(Err(self.ask(verb, many))),
            },
        }
    }

    /// The lists that a text names, or those that have a field.
    pub(super) fn with_field(&self, text: &str, field: &str) -> Vec<usize> {
        let cut = self.cut_view(text);
        let has =
            |index: &usize| self.list(*index).is_some_and(|list| fields::find(list, &bare(field)).is_some());
        let all = self.candidates(&cut);
        if cut.named.is_empty() {
            self.exactly(all.into_iter().filter(has).collect(), &[bare(field)])
        } else {
            all
        }
    }

    /// Those of some lists that have fields of exactly these names; all, where none has.
    pub(super) fn exactly(&self, candidates: Vec<usize>, wanted: &[String]) -> Vec<usize> {
        let is_exact = |index: &usize| {
            self.list(*index).is_some_and(|list| wanted.iter().all(|name| fields::is_exact(list, name)))
        };
        if candidates.iter().any(is_exact) {
            candidates.into_iter().filter(is_exact).collect()
        } else {
            candidates
        }
    }

    /// Edits for the rows that a phrase means, in the list that it names or the only one that has such rows.
    pub(super) fn with_conditions(
        &self,
        cut: &Cut,
        verb: &str,
        make: impl Fn(String, Vec<Condition>) -> Vec<PlanEdit>,
    ) -> Request {
        let mut fitting: Vec<(usize, Vec<Condition>)> = Vec::new();
        let mut halts: Vec<Halt> = Vec::new();
        for index in self.candidates(cut) {
            let Some(list) = self.list(index) else { continue };
            match conditions::read(list, &cut.phrase, self.answer) {
                Reading::Conditions(found) => fitting.push((index, found)),
                Reading::Ask { question, options } => halts.push(Halt::Ask { question, options }),
                Reading::Unknown { message, alternatives } => {
                    halts.push(Halt::Refuse(refusal(RefusalKind::NotFound, message, alternatives)));
                }
                Reading::Nothing => {}
            }
        }
        let all = |fitting: Vec<(usize, Vec<Condition>)>| {
            fitting.into_iter().flat_map(|(index, found)| make(self.id(index), found)).collect()
        };
        if fitting.len() > 1 && !is_all(&format!("{} {}", self.clause, self.answer.unwrap_or_default())) {
            let indexes: Vec<usize> = fitting.iter().map(|(index, _)| *index).collect();
            return match self.one_of(&indexes, verb)? {
                Ok(chosen) => {
                    Some(Ok(all(fitting.into_iter().filter(|(index, _)| *index == chosen).collect())))
                }
                Err(halt) => Some(Err(halt)),
            };
        }
        if fitting.is_empty() {
            return halts.into_iter().next().map(Err);
        }
        Some(Ok(all(fitting)))
    }
}

/// Takes "in the … table" away around a name that was cut out; true where it named a place.
fn trim_around(words: &mut Vec<String>, at: usize) -> bool {
    let is = |words: &[String], at: usize, some: &[&str]| {
        words.get(at).is_some_and(|word| some.contains(&word.to_lowercase().as_str()))
    };
    while is(words, at, &["table", "list", "page", "view", "tab"]) {
        words.remove(at);
    }
    let mut before = at;
    while before > 0 && is(words, before - 1, &["the", "all", "every", "any"]) {
        before -= 1;
        words.remove(before);
    }
    let names_place = before > 0 && is(words, before - 1, &["in", "on", "of", "within", "for", "from"]);
    if names_place && before >= words.len() {
        words.remove(before - 1);
    }
    names_place
}

/// "My", "assigned to me": what depends on who is looking.
pub(super) fn is_question_of_person(phrase: &str) -> bool {
    let lower = format!(" {} ", phrase.to_lowercase());
    [" my ", " mine ", " to me ", " by me ", " i own ", " our own ", " of me "]
        .iter()
        .any(|word| lower.contains(word))
}

pub(super) fn capitalized(text: &str) -> String {
    let mut characters = text.trim().chars();
    characters.next().into_iter().flat_map(char::to_uppercase).chain(characters).collect()
}
