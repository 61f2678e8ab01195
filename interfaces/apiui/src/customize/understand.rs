//! From the words of a wish to edits: which view, which fields, or a question.
//!
//! Never guesses between two views: it asks, and the options are the real ones.

use super::edit::{PlanEdit, apply};
use super::grammar::{Intent, intent};
use super::meaning::{DESCENDING, DIRECTIONS, Wanted, by_number, fields_somewhere, is_all, is_view_phrase};
use super::naming::join;
use super::past::remember;
use super::phrases::{bare, clauses, given_name, has_open_quote, names};
use super::{EXAMPLES, Outcome, Refusal, RefusalKind, fields, views};
use crate::plan::{Condition, Layout, List, Plan, Theme};

const MAX_OPTIONS: usize = 8;
const PAGE_SIZES: [u32; 4] = [10, 25, 50, 100];

/// Why a clause did not become edits.
pub(super) enum Halt {
    Ask { question: String, options: Vec<String> },
    Refuse(Refusal),
}

pub(super) fn understand(plan: &Plan, prompt: &str, answer: Option<&str>) -> Outcome {
    let mut changed = plan.clone();
    let (mut edits, mut told, mut assumptions): (Vec<PlanEdit>, Vec<String>, Vec<String>) =
        (Vec::new(), Vec::new(), Vec::new());
    if has_open_quote(prompt) {
        let message = "A quotation mark is missing: it is not clear where the name ends. Write the name between two of them, \
                       as in: Rename the title to \"My shop\".";
        return Outcome::Refused(refusal(RefusalKind::NotFound, message.to_owned(), Vec::new()));
    }
    let clauses = clauses(prompt);
    for clause in &clauses {
        let reader = Reader { plan: &changed, answer, clause };
        let found = match reader.edits() {
            Ok(found) => found,
            Err(Halt::Ask { question, options }) => return Outcome::Clarify { question, options },
            Err(Halt::Refuse(refusal)) => return Outcome::Refused(refusal),
        };
        for edit in found {
            match apply(&mut changed, &edit) {
                Ok(sentence) => told.push(sentence),
                Err(problem) => {
                    let kind = RefusalKind::NotFound;
                    return Outcome::Refused(refusal(kind, problem.message, problem.alternatives));
                }
            }
            assume(&edit, &changed, &mut assumptions);
            edits.push(edit);
        }
    }
    if !edits.contains(&PlanEdit::Undo) {
        remember(plan, &mut changed, &told.join(" "));
    }
    let description = match (told.is_empty(), changed == *plan) {
        (true, _) => "It is so already.".to_owned(),
        (false, true) => format!("{} (It was so already.)", told.join(" ")),
        (false, false) => told.join(" "),
    };
    Outcome::Edited { plan: Box::new(changed), edits, description, assumptions }
}

fn assume(edit: &PlanEdit, changed: &Plan, assumptions: &mut Vec<String>) {
    let text = match edit {
        PlanEdit::AddSearch { .. } | PlanEdit::AddFilter { .. } => {
            "Filtering is client-side, on the rows that are loaded."
        }
        PlanEdit::FixFilter { .. } | PlanEdit::SaveView { .. } if !is_by_api(edit, changed) => {
            "Rows are chosen among those that are loaded: pages that were not opened are not searched."
        }
        PlanEdit::ComputeColumn { .. } => {
            "The column is computed in the page, from the rows that are loaded."
        }
        PlanEdit::Sort { .. } => "Sorting is client-side, on the rows that are loaded.",
        PlanEdit::GroupBy { field: Some(_), .. } => "Grouping is client-side, on the rows that are loaded.",
        PlanEdit::ReadOnly { on: true } => {
            "Operations that change data are hidden, not forbidden: the API still accepts them from elsewhere."
        }
        _ => return,
    };
    if !assumptions.iter().any(|known| known == text) {
        assumptions.push(text.to_owned());
    }
}

/// Whether the API itself chooses the rows of a filter or tab that was just made.
fn is_by_api(edit: &PlanEdit, changed: &Plan) -> bool {
    let (PlanEdit::FixFilter { view, .. } | PlanEdit::SaveView { view, .. }) = edit else { return false };
    let list = views::find(changed, view, false).and_then(|index| changed.resources[index].list.as_ref());
    let Some(list) = list else { return false };
    let is_api = |conditions: &[Condition]| conditions.iter().all(|one| !one.parameter.is_empty());
    match edit {
        PlanEdit::FixFilter { .. } => list.conditions.last().is_some_and(|one| !one.parameter.is_empty()),
        _ => list.saved.last().is_some_and(|saved| is_api(&saved.conditions)),
    }
}

/// One clause of a wish, read against a plan.
pub(super) struct Reader<'p> {
    pub plan: &'p Plan,
    pub answer: Option<&'p str>,
    pub clause: &'p str,
}

impl Reader<'_> {
    fn edits(&self) -> Result<Vec<PlanEdit>, Halt> {
        if let Some(edits) = self.request() {
            return edits;
        }
        let Some((intent, rest)) = intent(self.clause) else {
            return Err(Halt::Refuse(beyond(
                "This goes beyond what is understood without a language model.",
            )));
        };
        let theme = |theme| Ok(vec![PlanEdit::Theme { theme }]);
        match intent {
            Intent::Dark => theme(Theme::Dark),
            Intent::Light => theme(Theme::Light),
            Intent::SystemTheme => theme(Theme::Auto),
            Intent::ReadOnly(on) => Ok(vec![PlanEdit::ReadOnly { on }]),
            Intent::Buttons => Err(Halt::Refuse(beyond(
                "Single buttons cannot be taken away without a language model; “Make it read-only” hides everything that changes something.",
            ))),
            Intent::SomePageSize => self.some_page_size(&rest),
            Intent::Paging(on) => Ok(vec![PlanEdit::Pagination { on }]),
            Intent::Title(title) => Ok(vec![PlanEdit::Title { title: given_name(&title) }]),
            Intent::Cards => self.layout(Layout::Cards, &rest),
            Intent::Table => self.layout(Layout::Default, &rest),
            Intent::Compact => self.layout(Layout::Compact, &rest),
            Intent::PageSize(size) => self.page_size(size, &rest),
            Intent::Rename { what, name } => {
                let (name, named) = self.split_view_of_name(&name);
                self.rename(&what, &given_name(&name), &format!("{rest} {named}"))
            }
            Intent::Restore(what) => self.restore(&what, &rest),
            Intent::Hide(what) => self.hide(&what, &rest),
            Intent::Show(what) => self.show(&what, &rest),
            other => self.list_intent(other, &rest),
        }
    }

    fn list_intent(&self, intent: Intent, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        match intent {
            Intent::Search(phrase) => self.search(&phrase, rest),
            Intent::RemoveSearch => {
                let has = |list: &List| !list.search.is_empty();
                self.in_views(rest, &[], "remove the search bar from", &has, |view, _| {
                    vec![PlanEdit::RemoveSearch { view }]
                })
            }
            Intent::Filter(phrase) => self.with_fields(&phrase, rest, "add the filter to", |view, fields| {
                each(fields, |field| PlanEdit::AddFilter { view: view.clone(), field })
            }),
            Intent::RemoveFilter(phrase) => self.remove_filter(&phrase, rest),
            Intent::Sort(phrase) => self.sort(&phrase, rest),
            Intent::ClearSort => {
                self.in_views(rest, &[], "stop sorting", &|list| list.sort.is_some(), |view, _| {
                    vec![PlanEdit::ClearSort { view }]
                })
            }
            Intent::Group(phrase) => self.with_fields(&phrase, rest, "group", |view, fields| {
                fields
                    .into_iter()
                    .take(1)
                    .map(|field| PlanEdit::GroupBy { view: view.clone(), field: Some(field) })
                    .collect()
            }),
            Intent::Ungroup => {
                self.in_views(rest, &[], "stop grouping", &|list| !list.grouping.is_empty(), |view, _| {
                    vec![PlanEdit::GroupBy { view, field: None }]
                })
            }
            Intent::MoveColumn { field, to } => self.move_column(&field, &to, rest),
            Intent::SwapColumns(phrase) => self.swap_columns(&phrase, rest),
            Intent::OrderColumns(phrase) => self.order_columns(&phrase, rest),
            Intent::ShowOnly(phrase) => self.show_only(&phrase, rest),
            _ => self.in_views(rest, &[], "show all columns of", &any_list, |view, list| {
                let hidden = list.columns.iter().filter(|column| column.hidden);
                hidden
                    .map(|column| PlanEdit::ShowColumn { view: view.clone(), field: column.field.clone() })
                    .collect()
            }),
        }
    }

    fn search(&self, phrase: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let (phrase, named) = self.split_view(phrase);
        // "search users" names a view, "search bar by name" a field.
        let target = format!("{rest} {named}");
        if phrase.is_empty()
            || (fields_somewhere(self.plan, &phrase).is_none()
                && !views::mentioned(self.plan, &phrase, false).is_empty())
        {
            let target = format!("{target} {phrase}");
            return self.in_views(&target, &[], "add the search bar to", &any_list, |view, _| {
                vec![PlanEdit::AddSearch { view, fields: Vec::new() }]
            });
        }
        self.with_fields(&phrase, &target, "add the search bar to", |view, fields| {
            vec![PlanEdit::AddSearch { view: view.clone(), fields }]
        })
    }

    fn remove_filter(&self, phrase: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        if bare(phrase).is_empty() || ["all", "every"].contains(&bare(phrase).to_lowercase().as_str()) {
            return self.in_views(
                rest,
                &[],
                "remove the filters from",
                &|list| !list.filters.is_empty(),
                |view, list| {
                    list.filters
                        .iter()
                        .map(|field| PlanEdit::RemoveFilter { view: view.clone(), field: field.clone() })
                        .collect()
                },
            );
        }
        self.with_fields(phrase, rest, "remove the filter from", |view, fields| {
            each(fields, |field| PlanEdit::RemoveFilter { view: view.clone(), field })
        })
    }

    fn sort(&self, phrase: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let (phrase, named) = self.split_view(phrase);
        let lower = phrase.to_lowercase();
        let target = format!("{rest} {named}");
        let descending = DESCENDING.iter().any(|word| lower.contains(word))
            || DESCENDING.iter().any(|word| target.to_lowercase().contains(word));
        let mut field = lower.clone();
        for word in DIRECTIONS {
            field = field.replace(word, " ");
        }
        let mut field = bare(&field.split_whitespace().collect::<Vec<_>>().join(" "));
        if field == "date" && fields_somewhere(self.plan, "date") != Some(true) {
            field.clear();
        }
        if field.is_empty() {
            let wanted = Wanted::of(&lower);
            let has = |list: &List| wanted.field(list).is_some();
            let shown = self.plan.resources.iter().filter(|resource| !resource.removed);
            if shown.filter_map(|resource| resource.list.as_ref()).any(has) {
                return self.in_views(&target, &[], "sort", &has, |view, list| {
                    // A view without such a field has the wish's word for it, so that the edit says so.
                    let field = wanted.field(list).unwrap_or_else(|| wanted.name().to_owned());
                    vec![PlanEdit::Sort { view, field, descending }]
                });
            }
            field = wanted.name().to_owned();
        }
        self.with_fields(&field, &target, "sort", |view, fields| {
            fields
                .into_iter()
                .take(1)
                .map(|field| PlanEdit::Sort { view: view.clone(), field, descending })
                .collect()
        })
    }

    fn layout(&self, layout: Layout, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let target = format!("{rest} {}", self.answer.unwrap_or_default());
        let named: Vec<usize> = views::mentioned(self.plan, &target, false)
            .into_iter()
            .filter(|index| self.plan.resources[*index].list.is_some())
            .collect();
        if named.is_empty() || is_all(&target) {
            return Ok(vec![PlanEdit::Layout { view: None, layout }]);
        }
        Ok(named
            .into_iter()
            .map(|index| PlanEdit::Layout { view: Some(self.plan.resources[index].id.clone()), layout })
            .collect())
    }

    fn page_size(&self, size: u32, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let named = views::mentioned(self.plan, rest, false);
        if named.is_empty() || is_all(rest) {
            return Ok(vec![PlanEdit::PageSize { view: None, size }]);
        }
        Ok(named
            .into_iter()
            .map(|index| PlanEdit::PageSize { view: Some(self.plan.resources[index].id.clone()), size })
            .collect())
    }

    /// Another page size, without its number: that is the answer, or asked for.
    fn some_page_size(&self, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let digits = self.answer.unwrap_or_default().split(|c: char| !c.is_ascii_digit());
        if let Some(size) = digits.filter_map(|digits| digits.parse().ok()).next() {
            return self.page_size(size, rest);
        }
        let question = "How many rows should a page have?".to_owned();
        let options = PAGE_SIZES.iter().map(|size| format!("{size} rows per page")).collect();
        Err(Halt::Ask { question, options })
    }

    /// Cuts "… in the users table" off the end of a phrase, if it names a view.
    pub(super) fn split_view(&self, phrase: &str) -> (String, String) {
        let lower = phrase.to_lowercase();
        for preposition in [" in ", " on ", " of ", " from ", " for ", " to ", " within ", " at "] {
            let Some(at) = lower.rfind(preposition).filter(|at| phrase.is_char_boundary(*at)) else {
                continue;
            };
            let (before, after) = phrase.split_at(at);
            let is_view = !views::mentioned(self.plan, after, false).is_empty()
                || is_all(after)
                || is_view_phrase(after);
            // "date of birth" is one name.
            if is_view && fields_somewhere(self.plan, phrase).is_none_or(|exact| !exact) {
                return (before.trim().to_owned(), after.to_owned());
            }
        }
        (phrase.to_owned(), String::new())
    }

    /// The same for a new name, which may hold such words itself.
    fn split_view_of_name(&self, name: &str) -> (String, String) {
        let at = [" in ", " on "].iter().filter_map(|word| name.rfind(word)).max();
        match at.map(|at| name.split_at(at)) {
            Some((before, after)) if !name.contains('"') => {
                let (_, named) = self.split_view(after);
                if named.is_empty() { (name.to_owned(), named) } else { (before.to_owned(), named) }
            }
            _ => (name.to_owned(), String::new()),
        }
    }

    /// Edits that need fields: in the views that are named, or in the only view that has them.
    pub(super) fn with_fields(
        &self,
        phrase: &str,
        rest: &str,
        verb: &str,
        make: impl Fn(&String, Vec<String>) -> Vec<PlanEdit>,
    ) -> Result<Vec<PlanEdit>, Halt> {
        let (phrase, named) = self.split_view(phrase);
        let wanted: Vec<String> = match names(&phrase) {
            // A field may be called "terms and conditions".
            many if many.len() > 1 && fields_somewhere(self.plan, &phrase) == Some(true) => {
                vec![bare(&phrase)]
            }
            many => many,
        };
        if wanted.is_empty() {
            return Err(Halt::Refuse(beyond("Say which field is meant.")));
        }
        let rest = format!("{rest} {named}");
        self.in_views(&rest, &wanted, verb, &any_list, |view, list| {
            let found: Option<Vec<String>> = wanted
                .iter()
                .map(|name| fields::find(list, name).map(|index| list.columns[index].field.clone()))
                .collect();
            // A field that is missing is named as it was, so that the edit says so.
            make(&view, found.unwrap_or_else(|| wanted.clone()))
        })
    }

    /// The views that a wish is for: those it names, those of the answer, or the only one that fits.
    fn in_views(
        &self,
        text: &str,
        wanted: &[String],
        verb: &str,
        fits: &dyn Fn(&List) -> bool,
        make: impl Fn(String, &List) -> Vec<PlanEdit>,
    ) -> Result<Vec<PlanEdit>, Halt> {
        let shown = self.plan.resources.iter().enumerate().filter(|(_, resource)| !resource.removed);
        let lists: Vec<(usize, &List)> =
            shown.filter_map(|(index, one)| Some((index, one.list.as_ref()?))).collect();
        if lists.is_empty() {
            let message = "This interface has no table.".to_owned();
            return Err(Halt::Refuse(refusal(RefusalKind::NotFound, message, Vec::new())));
        }
        let has_all = |list: &List| wanted.iter().all(|name| fields::find(list, name).is_some());
        let fitting: Vec<(usize, &List)> =
            lists.iter().copied().filter(|(_, list)| fits(list) && has_all(list)).collect();
        // A list that has the very name is meant, and not one with a similar name.
        let is_exact = |list: &List| wanted.iter().all(|name| fields::is_exact(list, name));
        let has_exact = !wanted.is_empty() && fitting.iter().any(|(_, list)| is_exact(list));
        let fitting: Vec<(usize, &List)> =
            fitting.into_iter().filter(|(_, list)| !has_exact || is_exact(list)).collect();
        let text = format!("{text} {}", self.answer.unwrap_or_default());
        let chosen = match self.named_lists(&text, &lists, &fitting)? {
            Some(chosen) => chosen,
            None if fitting.len() == 1 => fitting,
            None if lists.len() == 1 => lists,
            None if fitting.is_empty() => return Err(nowhere(wanted, &lists)),
            None => return Err(self.ask(verb, &fitting)),
        };
        let edits =
            chosen.into_iter().flat_map(|(index, list)| make(self.plan.resources[index].id.clone(), list));
        Ok(edits.collect())
    }

    /// The lists that the words name: by title, as all of them, or by number.
    fn named_lists<'l>(
        &self,
        text: &str,
        lists: &[(usize, &'l List)],
        fitting: &[(usize, &'l List)],
    ) -> Result<Option<Vec<(usize, &'l List)>>, Halt> {
        let mentioned = views::mentioned(self.plan, text, false);
        let named: Vec<(usize, &List)> =
            lists.iter().copied().filter(|(index, _)| mentioned.contains(index)).collect();
        if !named.is_empty() {
            return Ok(Some(named));
        }
        if let Some(unlisted) = mentioned.first() {
            let message = format!("{} has no table.", self.plan.resources[*unlisted].title);
            return Err(Halt::Refuse(refusal(RefusalKind::NotFound, message, views::lists(self.plan))));
        }
        let candidates = if fitting.is_empty() { lists } else { fitting };
        if is_all(text) {
            return Ok(Some(candidates.to_vec()));
        }
        Ok(self.answer.and_then(|answer| by_number(answer, candidates)).map(|choice| vec![choice]))
    }

    pub(super) fn ask(&self, verb: &str, fitting: &[(usize, &List)]) -> Halt {
        let titles: Vec<String> =
            fitting.iter().map(|(index, _)| format!("{} table", self.plan.resources[*index].title)).collect();
        let mut options: Vec<String> = titles.iter().take(MAX_OPTIONS).cloned().collect();
        options.push(if titles.len() == 2 { "Both tables".to_owned() } else { "All tables".to_owned() });
        let count = match titles.len() {
            2 => "two".to_owned(),
            3 => "three".to_owned(),
            many => many.to_string(),
        };
        let listed: Vec<String> = options
            .iter()
            .take(options.len() - 1)
            .map(|option| format!("the “{}”", option.trim_end_matches(" table")))
            .collect();
        let question = format!(
            "I found {count} tables in the interface. Which one should I {verb}: {} table?",
            join(&listed).replace(" and ", " or ")
        );
        Halt::Ask { question, options }
    }
}

fn nowhere(wanted: &[String], lists: &[(usize, &List)]) -> Halt {
    if wanted.is_empty() {
        return Halt::Refuse(refusal(
            RefusalKind::NotFound,
            "There is nothing to take away: no table has it.".to_owned(),
            Vec::new(),
        ));
    }
    let quoted: Vec<String> =
        wanted.iter().map(|name| format!("“{}”", crate::problem::excerpt(name))).collect();
    let mut alternatives: Vec<String> = Vec::new();
    for (_, list) in lists {
        for column in list.columns.iter().filter(|column| !column.hidden) {
            let is_new = !column.label.is_empty() && !alternatives.contains(&column.label);
            if alternatives.len() < 12 && is_new {
                alternatives.push(column.label.clone());
            }
        }
    }
    let message = format!("No table has {}. There are: {}.", join(&quoted), join(&alternatives));
    Halt::Refuse(refusal(RefusalKind::NotFound, message, alternatives))
}

fn any_list(_: &List) -> bool {
    true
}

pub(super) fn each(fields: Vec<String>, make: impl Fn(String) -> PlanEdit) -> Vec<PlanEdit> {
    fields.into_iter().map(make).collect()
}

pub(super) fn refusal(kind: RefusalKind, message: String, alternatives: Vec<String>) -> Refusal {
    Refusal { kind, message, alternatives }
}

pub(super) fn beyond(start: &str) -> Refusal {
    let message = format!(
        "{start} Without one, you can ask for: search bars and filters, sorting, rows per page, showing, hiding, renaming and moving columns, cards or tables, dark or light, the title, removing and restoring views, read-only, grouping. With a model, free changes to the code are possible too: charts, new screens, other wording and layout."
    );
    refusal(RefusalKind::Beyond, message, EXAMPLES.iter().map(|example| (*example).to_owned()).collect())
}
