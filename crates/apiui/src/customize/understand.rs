//! From the words of a wish to edits: which view, which fields, or a question.
//!
//! Owns the conversation: an answer to a question completes the wish that raised it. Never guesses between two views:
//! it asks, and the options are the real ones.

use super::edit::{PlanEdit, apply, join};
use super::grammar::{Intent, intent};
use super::phrases::{bare, clauses, given_name, names, tidy};
use super::{EXAMPLES, Outcome, Refusal, RefusalKind, Turn, fields, views};
use crate::plan::words::singular;
use crate::plan::{Display, Layout, List, Plan, Theme};

const MAX_OPTIONS: usize = 8;

/// Why a clause did not become edits.
enum Halt {
    Ask { question: String, options: Vec<String> },
    Refuse(Refusal),
}

pub(super) fn wish(plan: &Plan, prompt: &str, history: &[Turn]) -> Outcome {
    let history = without_echo(history, prompt);
    let prompt = tidy(prompt);
    if prompt.is_empty() {
        return Outcome::Refused(beyond("Say what should change."));
    }
    // An answer to our question: the wish that raised it, with the answer as its target.
    if let Some((wish, None)) = pending(history)
        && (intent(&prompt).is_none() || is_target(plan, &prompt))
    {
        return understand(plan, &wish, Some(&prompt));
    }
    // The wish sent again, with the answer at the end of the history.
    let answer = match pending(history) {
        Some((wish, Some(answer))) if tidy(&wish).eq_ignore_ascii_case(&prompt) => Some(answer),
        _ => None,
    };
    understand(plan, &prompt, answer.as_deref())
}

/// Some hosts append the prompt to the history before they send it.
fn without_echo<'h>(history: &'h [Turn], prompt: &str) -> &'h [Turn] {
    match history {
        [before @ .., last] if last.role == "user" && last.content.trim() == prompt.trim() && before.last().is_none_or(|turn| turn.role != "user") => before,
        all => all,
    }
}

/// The wish before the last question, and the answer if it is there already.
fn pending(history: &[Turn]) -> Option<(String, Option<String>)> {
    let (history, answer) = match history {
        [before @ .., last] if last.role == "user" => (before, Some(last.content.clone())),
        all => (all, None),
    };
    let (question, before) = history.split_last()?;
    if question.role == "user" || !question.content.contains('?') {
        return None;
    }
    let wish = before.iter().rev().find(|turn| turn.role == "user")?;
    Some((wish.content.clone(), answer.map(|answer| tidy(&answer))))
}

/// Whether a text only names views: `Users table`, `both`, `the first one`.
fn is_target(plan: &Plan, text: &str) -> bool {
    let mut words = text.to_lowercase();
    for index in views::mentioned(plan, text, false).into_iter().chain(views::mentioned(plan, text, true)) {
        for name in [&plan.resources[index].title, &plan.resources[index].singular] {
            words = words.replace(&name.to_lowercase(), " ");
        }
    }
    let filler = ["the", "table", "tables", "view", "list", "page", "both", "all", "every", "of", "them", "one", "ones", "in", "for", "to", "on", "and", "column", "first", "second", "third", "last", "only", "s", "just"];
    words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).all(|word| filler.contains(&word) || word.parse::<usize>().is_ok())
}

fn understand(plan: &Plan, prompt: &str, answer: Option<&str>) -> Outcome {
    let mut changed = plan.clone();
    let (mut edits, mut told, mut assumptions): (Vec<PlanEdit>, Vec<String>, Vec<String>) = (Vec::new(), Vec::new(), Vec::new());
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
            assume(&edit, &mut assumptions);
            edits.push(edit);
        }
    }
    let description = if changed == *plan { format!("{} (It was so already.)", told.join(" ")) } else { told.join(" ") };
    Outcome::Edited { plan: Box::new(changed), edits, description, assumptions }
}

fn assume(edit: &PlanEdit, assumptions: &mut Vec<String>) {
    let text = match edit {
        PlanEdit::AddSearch { .. } | PlanEdit::AddFilter { .. } => "Filtering is client-side, on the rows that are loaded.",
        PlanEdit::Sort { .. } => "Sorting is client-side, on the rows that are loaded.",
        PlanEdit::GroupBy { field: Some(_), .. } => "Grouping is client-side, on the rows that are loaded.",
        PlanEdit::ReadOnly { on: true } => "Operations that change data are hidden, not forbidden: the API still accepts them from elsewhere.",
        _ => return,
    };
    if !assumptions.iter().any(|known| known == text) {
        assumptions.push(text.to_owned());
    }
}

struct Reader<'p> {
    plan: &'p Plan,
    answer: Option<&'p str>,
    clause: &'p str,
}

impl Reader<'_> {
    fn edits(&self) -> Result<Vec<PlanEdit>, Halt> {
        let Some((intent, rest)) = intent(self.clause) else {
            return Err(Halt::Refuse(beyond("This goes beyond what is understood without a language model.")));
        };
        let theme = |theme| Ok(vec![PlanEdit::Theme { theme }]);
        match intent {
            Intent::Dark => theme(Theme::Dark),
            Intent::Light => theme(Theme::Light),
            Intent::SystemTheme => theme(Theme::Auto),
            Intent::ReadOnly(on) => Ok(vec![PlanEdit::ReadOnly { on }]),
            Intent::Paging(on) => Ok(vec![PlanEdit::Pagination { on }]),
            Intent::Title(title) => Ok(vec![PlanEdit::Title { title: given_name(&title) }]),
            Intent::Cards => self.layout(Layout::Cards, &rest),
            Intent::Table => self.layout(Layout::Default, &rest),
            Intent::Compact => self.layout(Layout::Compact, &rest),
            Intent::PageSize(size) => self.page_size(size, &rest),
            Intent::Rename { what, name } => self.rename(&what, &given_name(&name), &rest),
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
                self.in_views(rest, &[], "remove the search bar from", &has, |view, _| vec![PlanEdit::RemoveSearch { view }])
            }
            Intent::Filter(phrase) => self.with_fields(&phrase, rest, "add the filter to", |view, fields| each(fields, |field| PlanEdit::AddFilter { view: view.clone(), field })),
            Intent::RemoveFilter(phrase) => self.remove_filter(&phrase, rest),
            Intent::Sort(phrase) => self.sort(&phrase, rest),
            Intent::ClearSort => self.in_views(rest, &[], "stop sorting", &|list| list.sort.is_some(), |view, _| vec![PlanEdit::ClearSort { view }]),
            Intent::Group(phrase) => self.with_fields(&phrase, rest, "group", |view, fields| {
                fields.into_iter().take(1).map(|field| PlanEdit::GroupBy { view: view.clone(), field: Some(field) }).collect()
            }),
            Intent::Ungroup => self.in_views(rest, &[], "stop grouping", &|list| !list.grouping.is_empty(), |view, _| vec![PlanEdit::GroupBy { view, field: None }]),
            Intent::MoveColumn { field, to } => self.move_column(&field, &to, rest),
            Intent::OrderColumns(phrase) => self.with_fields(&phrase, rest, "order the columns of", |view, fields| {
                fields.into_iter().enumerate().map(|(position, field)| PlanEdit::MoveColumn { view: view.clone(), field, position }).collect()
            }),
            Intent::ShowOnly(phrase) => self.show_only(&phrase, rest),
            _ => self.in_views(rest, &[], "show all columns of", &any_list, |view, list| {
                let hidden = list.columns.iter().filter(|column| column.hidden);
                hidden.map(|column| PlanEdit::ShowColumn { view: view.clone(), field: column.field.clone() }).collect()
            }),
        }
    }

    fn search(&self, phrase: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let (phrase, named) = self.split_view(phrase);
        // "search users" names a view, "search bar by name" a field.
        let target = format!("{rest} {named}");
        if phrase.is_empty() || (fields_somewhere(self.plan, &phrase).is_none() && !views::mentioned(self.plan, &phrase, false).is_empty()) {
            let target = format!("{target} {phrase}");
            return self.in_views(&target, &[], "add the search bar to", &any_list, |view, _| vec![PlanEdit::AddSearch { view, fields: Vec::new() }]);
        }
        self.with_fields(&phrase, &target, "add the search bar to", |view, fields| vec![PlanEdit::AddSearch { view: view.clone(), fields }])
    }

    fn remove_filter(&self, phrase: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        if bare(phrase).is_empty() || ["all", "every"].contains(&bare(phrase).to_lowercase().as_str()) {
            return self.in_views(rest, &[], "remove the filters from", &|list| !list.filters.is_empty(), |view, list| {
                list.filters.iter().map(|field| PlanEdit::RemoveFilter { view: view.clone(), field: field.clone() }).collect()
            });
        }
        self.with_fields(phrase, rest, "remove the filter from", |view, fields| each(fields, |field| PlanEdit::RemoveFilter { view: view.clone(), field }))
    }

    fn sort(&self, phrase: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let (phrase, named) = self.split_view(phrase);
        let lower = phrase.to_lowercase();
        let target = format!("{rest} {named}");
        let descending = DESCENDING.iter().any(|word| lower.contains(word)) || DESCENDING.iter().any(|word| target.to_lowercase().contains(word));
        let mut field = lower.clone();
        for word in DIRECTIONS {
            field = field.replace(word, " ");
        }
        let field = bare(&field.split_whitespace().collect::<Vec<_>>().join(" "));
        if field.is_empty() {
            let wanted = if lower.contains("alphabet") || lower.contains("a to z") || lower.contains("a-z") || lower.contains("z to a") {
                Wanted::Name
            } else if lower.contains("cheap") || lower.contains("expensive") {
                Wanted::Price
            } else {
                Wanted::Date
            };
            return self.in_views(&target, &[], "sort", &any_list, |view, list| {
                let field = wanted.field(list);
                field.map(|field| PlanEdit::Sort { view, field, descending }).into_iter().collect()
            });
        }
        self.with_fields(&field, &target, "sort", |view, fields| {
            fields.into_iter().take(1).map(|field| PlanEdit::Sort { view: view.clone(), field, descending }).collect()
        })
    }

    fn move_column(&self, field: &str, to: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let (to, named) = self.split_view(to);
        let target = format!("{rest} {named}");
        let lower = to.to_lowercase();
        self.with_fields(field, &target, "move the column in", |view, moved| {
            let Some(list) = self.plan.resources.iter().find(|resource| resource.id == *view).and_then(|resource| resource.list.as_ref()) else {
                return Vec::new();
            };
            let position = position(list, &lower, moved.first().map_or("", String::as_str));
            let shift = |(offset, field): (usize, String)| PlanEdit::MoveColumn { view: view.clone(), field, position: position + offset };
            moved.into_iter().enumerate().map(shift).collect()
        })
    }

    fn show_only(&self, phrase: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        self.with_fields(phrase, rest, "show only these columns of", |view, kept| {
            let Some(list) = self.plan.resources.iter().find(|resource| resource.id == *view).and_then(|resource| resource.list.as_ref()) else {
                return Vec::new();
            };
            let shown = kept.iter().map(|field| PlanEdit::ShowColumn { view: view.clone(), field: field.clone() });
            let others = list.columns.iter().filter(|column| !column.hidden && !kept.contains(&column.field));
            let hidden = others.map(|column| PlanEdit::HideColumn { view: view.clone(), field: column.field.clone() });
            shown.chain(hidden).collect()
        })
    }

    fn layout(&self, layout: Layout, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let target = format!("{rest} {}", self.answer.unwrap_or_default());
        let named: Vec<usize> = views::mentioned(self.plan, &target, false).into_iter().filter(|index| self.plan.resources[*index].list.is_some()).collect();
        if named.is_empty() || is_all(&target) {
            return Ok(vec![PlanEdit::Layout { view: None, layout }]);
        }
        Ok(named.into_iter().map(|index| PlanEdit::Layout { view: Some(self.plan.resources[index].id.clone()), layout }).collect())
    }

    fn page_size(&self, size: u32, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let named = views::mentioned(self.plan, rest, false);
        if named.is_empty() || is_all(rest) {
            return Ok(vec![PlanEdit::PageSize { view: None, size }]);
        }
        Ok(named.into_iter().map(|index| PlanEdit::PageSize { view: Some(self.plan.resources[index].id.clone()), size }).collect())
    }

    fn rename(&self, what: &str, name: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let (phrase, named) = self.split_view(what);
        let lower = phrase.to_lowercase();
        let view = views::find(self.plan, strip_kind(&phrase), false);
        let is_view = VIEW_WORDS.iter().any(|word| lower.ends_with(word));
        let says_column = lower.ends_with("column") || lower.ends_with("field") || lower.ends_with("header");
        let is_field = fields_somewhere(self.plan, &phrase) == Some(true);
        match view {
            Some(index) if !says_column && (is_view || !is_field) => {
                let view = self.plan.resources[index].id.clone();
                Ok(vec![PlanEdit::RenameView { view, title: name.to_owned() }])
            }
            _ => self.with_fields(&phrase, &format!("{rest} {named}"), "rename the column in", |view, fields| {
                fields.into_iter().take(1).map(|field| PlanEdit::RenameColumn { view: view.clone(), field, label: name.to_owned() }).collect()
            }),
        }
    }

    fn restore(&self, what: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let removed = views::mentioned(self.plan, what, true);
        if is_all(what) && !what.to_lowercase().contains("column") {
            let all = self.plan.resources.iter().filter(|resource| resource.removed);
            return Ok(all.map(|resource| PlanEdit::RestoreView { view: resource.id.clone() }).collect());
        }
        if !removed.is_empty() && !what.to_lowercase().contains("column") {
            return Ok(removed.into_iter().map(|index| PlanEdit::RestoreView { view: self.plan.resources[index].id.clone() }).collect());
        }
        let name = strip_kind(what);
        if views::find(self.plan, name, false).is_some() || (fields_somewhere(self.plan, what).is_none() && is_view_phrase(what)) {
            return Ok(vec![PlanEdit::RestoreView { view: name.to_owned() }]);
        }
        self.show(what, rest)
    }

    fn hide(&self, what: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let (phrase, named) = self.split_view(what);
        let answer = self.answer.unwrap_or_default().to_lowercase();
        let says_column = phrase.to_lowercase().contains("column") || phrase.to_lowercase().contains("field") || answer.contains("column");
        let says_view = (is_view_phrase(&phrase) && !says_column) || answer.ends_with("view");
        let as_views: Vec<usize> = names(strip_kind(&phrase)).iter().filter_map(|name| views::find(self.plan, strip_kind(name), false)).collect();
        let is_view = !as_views.is_empty() && as_views.len() == names(strip_kind(&phrase)).len();
        let is_field = fields_somewhere(self.plan, &phrase) == Some(true);
        if is_view && !says_column && (says_view || !is_field) {
            return Ok(as_views.into_iter().map(|index| PlanEdit::RemoveView { view: self.plan.resources[index].id.clone() }).collect());
        }
        if says_view && !is_view {
            return Ok(vec![PlanEdit::RemoveView { view: strip_kind(&phrase).to_owned() }]);
        }
        if is_view && is_field && !says_column && named.is_empty() {
            let name = bare(strip_kind(&phrase));
            let question = format!("“{name}” is a view and also a column. Which one should be hidden?");
            return Err(Halt::Ask { question, options: vec![format!("{name} view"), format!("{name} column")] });
        }
        self.with_fields(&phrase, &format!("{rest} {named}"), "hide the column of", |view, fields| each(fields, |field| PlanEdit::HideColumn { view: view.clone(), field }))
    }

    fn show(&self, what: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let (phrase, named) = self.split_view(what);
        let removed = views::mentioned(self.plan, &phrase, true);
        if !removed.is_empty() && !phrase.to_lowercase().contains("column") {
            return Ok(removed.into_iter().map(|index| PlanEdit::RestoreView { view: self.plan.resources[index].id.clone() }).collect());
        }
        if fields_somewhere(self.plan, &phrase).is_none() && !phrase.to_lowercase().contains("column") && !phrase.to_lowercase().contains("field") {
            // "Add a chart": no column by that name, so it is no wish for a column.
            return Err(Halt::Refuse(beyond(&format!("There is no column called “{}”, and more than columns, filters and views cannot be added without a language model.", crate::problem::excerpt(&bare(&phrase))))));
        }
        self.with_fields(&phrase, &format!("{rest} {named}"), "show the column in", |view, fields| each(fields, |field| PlanEdit::ShowColumn { view: view.clone(), field }))
    }

    /// Cuts "… in the users table" off the end of a phrase, if it names a view.
    fn split_view(&self, phrase: &str) -> (String, String) {
        let lower = phrase.to_lowercase();
        for preposition in [" in ", " on ", " of ", " from ", " for ", " to ", " within ", " at "] {
            let Some(at) = lower.rfind(preposition).filter(|at| phrase.is_char_boundary(*at)) else { continue };
            let (before, after) = phrase.split_at(at);
            let is_view = !views::mentioned(self.plan, after, false).is_empty() || is_all(after) || is_view_phrase(after);
            // "date of birth" is one name.
            if is_view && fields_somewhere(self.plan, phrase).is_none_or(|exact| !exact) {
                return (before.trim().to_owned(), after.to_owned());
            }
        }
        (phrase.to_owned(), String::new())
    }

    /// Edits that need fields: in the views that are named, or in the only view that has them.
    fn with_fields(&self, phrase: &str, rest: &str, verb: &str, make: impl Fn(&String, Vec<String>) -> Vec<PlanEdit>) -> Result<Vec<PlanEdit>, Halt> {
        let (phrase, named) = self.split_view(phrase);
        let wanted: Vec<String> = match names(&phrase) {
            // A field may be called "terms and conditions".
            many if many.len() > 1 && fields_somewhere(self.plan, &phrase) == Some(true) => vec![bare(&phrase)],
            many => many,
        };
        if wanted.is_empty() {
            return Err(Halt::Refuse(beyond("Say which field is meant.")));
        }
        let rest = format!("{rest} {named}");
        self.in_views(&rest, &wanted, verb, &any_list, |view, list| {
            let found: Option<Vec<String>> = wanted.iter().map(|name| fields::find(list, name).map(|index| list.columns[index].field.clone())).collect();
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
        let text = match self.answer {
            Some(answer) => format!("{text} {answer}"),
            None => text.to_owned(),
        };
        let has_all = |list: &List| wanted.iter().all(|name| fields::find(list, name).is_some());
        let lists: Vec<(usize, &List)> = self.plan.resources.iter().enumerate().filter(|(_, resource)| !resource.removed).filter_map(|(index, resource)| Some((index, resource.list.as_ref()?))).collect();
        if lists.is_empty() {
            return Err(Halt::Refuse(refusal(RefusalKind::NotFound, "This interface has no table.".to_owned(), Vec::new())));
        }
        let fitting: Vec<(usize, &List)> = lists.iter().copied().filter(|(_, list)| fits(list) && has_all(list)).collect();
        let mentioned = views::mentioned(self.plan, &text, false);
        let named: Vec<(usize, &List)> = lists.iter().copied().filter(|(index, _)| mentioned.contains(index)).collect();
        let chosen = if !named.is_empty() {
            named
        } else if let Some(unlisted) = mentioned.first() {
            let message = format!("{} has no table.", self.plan.resources[*unlisted].title);
            return Err(Halt::Refuse(refusal(RefusalKind::NotFound, message, views::lists(self.plan))));
        } else if is_all(&text) {
            if fitting.is_empty() { lists } else { fitting }
        } else if let Some(choice) = self.answer.and_then(|answer| by_number(answer, if fitting.is_empty() { &lists } else { &fitting })) {
            vec![choice]
        } else if fitting.len() == 1 || lists.len() == 1 {
            if fitting.len() == 1 { fitting } else { lists }
        } else if fitting.is_empty() {
            return Err(self.nowhere(wanted, &lists));
        } else {
            return Err(self.ask(verb, &fitting));
        };
        Ok(chosen.into_iter().flat_map(|(index, list)| make(self.plan.resources[index].id.clone(), list)).collect())
    }

    fn ask(&self, verb: &str, fitting: &[(usize, &List)]) -> Halt {
        let titles: Vec<String> = fitting.iter().map(|(index, _)| format!("{} table", self.plan.resources[*index].title)).collect();
        let mut options: Vec<String> = titles.iter().take(MAX_OPTIONS).cloned().collect();
        options.push(if titles.len() == 2 { "Both tables".to_owned() } else { "All tables".to_owned() });
        let count = match titles.len() {
            2 => "two".to_owned(),
            3 => "three".to_owned(),
            many => many.to_string(),
        };
        let listed: Vec<String> = options.iter().take(options.len() - 1).map(|option| format!("the “{}”", option.trim_end_matches(" table"))).collect();
        let question = format!("I found {count} tables in the interface. Which one should I {verb}: {} table?", join(&listed).replace(" and ", " or "));
        Halt::Ask { question, options }
    }

    fn nowhere(&self, wanted: &[String], lists: &[(usize, &List)]) -> Halt {
        if wanted.is_empty() {
            return Halt::Refuse(refusal(RefusalKind::NotFound, "There is nothing to take away: no table has it.".to_owned(), Vec::new()));
        }
        let quoted: Vec<String> = wanted.iter().map(|name| format!("“{}”", crate::problem::excerpt(name))).collect();
        let mut alternatives: Vec<String> = Vec::new();
        for (_, list) in lists {
            for column in list.columns.iter().filter(|column| !column.hidden) {
                if alternatives.len() < 12 && !alternatives.contains(&column.label) {
                    alternatives.push(column.label.clone());
                }
            }
        }
        let message = format!("No table has {}. There are: {}.", join(&quoted), join(&alternatives));
        Halt::Refuse(refusal(RefusalKind::NotFound, message, alternatives))
    }
}

/// What is meant when somebody sorts without naming a field.
#[derive(Clone, Copy)]
enum Wanted {
    Name,
    Price,
    Date,
}

impl Wanted {
    fn field(self, list: &List) -> Option<String> {
        let named = |names: &[&str]| names.iter().find_map(|name| fields::find(list, name)).map(|index| list.columns[index].field.clone());
        match self {
            Wanted::Name => named(&["name", "title", "label", "username"]).or_else(|| list.columns.first().map(|column| column.field.clone())),
            Wanted::Price => named(&["price", "amount", "cost", "total"]),
            Wanted::Date => named(&["createdAt", "created", "updatedAt", "date", "published", "timestamp"]).or_else(|| {
                let is_date = |display: Display| matches!(display, Display::Date | Display::Datetime);
                list.columns.iter().find(|column| is_date(column.display)).map(|column| column.field.clone())
            }),
        }
    }
}

const DESCENDING: [&str; 15] = [
    "desc", "newest", "latest", "most recent", "reverse", "highest", "largest", "longest", "expensive", "z to a", "z-a", "backwards",
    "high to low", "big to small", "down",
];
const DIRECTIONS: [&str; 40] = [
    "in descending order", "in ascending order", "descending order", "ascending order", "descending", "ascending", "desc", "asc", "newest first",
    "latest first", "oldest first", "most recent first", "earliest first", "in reverse order", "reverse order", "in reverse", "reversed", "reverse alphabetically",
    "reverse", "alphabetically", "alphabetical", "from high to low", "from low to high", "high to low", "low to high", "highest first", "lowest first",
    "z to a", "a to z", "z-a", "a-z", "newest", "latest", "oldest", "most recent", "earliest", "cheapest", "most expensive", "first", ",",
];
const VIEW_WORDS: [&str; 9] = ["view", "views", "page", "section", "screen", "tab", "table", "resource", "menu entry"];

fn position(list: &List, to: &str, moved: &str) -> usize {
    let last = list.columns.iter().filter(|column| !column.hidden).count().saturating_sub(1);
    for (word, offset) in [("in front of ", 0), ("to the left of ", 0), ("left of ", 0), ("before ", 0), ("to the right of ", 1), ("right of ", 1), ("behind ", 1), ("after ", 1), ("next to ", 1)] {
        if let Some(name) = to.strip_prefix(word) {
            let from = list.columns.iter().position(|column| column.field == moved).unwrap_or(usize::MAX);
            return match fields::find(list, &bare(name)) {
                // Taking the column out first moves what is behind it.
                Some(index) => (index + offset).saturating_sub(usize::from(from < index)),
                None => last,
            };
        }
    }
    if let Some(number) = to.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse::<usize>().ok()) {
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
fn fields_somewhere(plan: &Plan, phrase: &str) -> Option<bool> {
    let lists = || plan.resources.iter().filter(|resource| !resource.removed).filter_map(|resource| resource.list.as_ref());
    let whole = bare(phrase);
    let exact = |list: &List| list.columns.iter().any(|column| views::plain(&column.label) == views::plain(&whole) || column.field == whole);
    if lists().any(exact) {
        return Some(true);
    }
    let names = names(phrase);
    let all = |list: &List| !names.is_empty() && names.iter().all(|name| fields::find(list, name).is_some());
    lists().any(all).then_some(false)
}

fn is_all(text: &str) -> bool {
    let lower = format!(" {} ", text.to_lowercase());
    [" all ", " both ", " every ", " each ", " everywhere ", " everything "].iter().any(|word| lower.contains(word))
}

fn is_view_phrase(text: &str) -> bool {
    let lower = text.trim().to_lowercase();
    VIEW_WORDS.iter().any(|word| lower.ends_with(&format!(" {word}")))
}

/// `Users view` → `Users`.
fn strip_kind(text: &str) -> &str {
    let text = text.trim();
    let lower = text.to_lowercase();
    let word = VIEW_WORDS.iter().find(|word| lower.ends_with(&format!(" {word}")));
    word.and_then(|word| text.get(..text.len() - word.len() - 1)).unwrap_or(text).trim()
}

/// `the second one`, `2`.
fn by_number<'l>(answer: &str, lists: &[(usize, &'l List)]) -> Option<(usize, &'l List)> {
    let lower = singular(&answer.to_lowercase());
    let ordinal = [("first", 0), ("second", 1), ("third", 2), ("fourth", 3)].iter().find(|(word, _)| lower.contains(word)).map(|(_, at)| *at);
    let number = lower.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse::<usize>().ok()).and_then(|number| number.checked_sub(1));
    let last = lower.contains("last").then(|| lists.len() - 1);
    lists.get(ordinal.or(number).or(last)?).copied()
}

fn any_list(_: &List) -> bool {
    true
}

fn each(fields: Vec<String>, make: impl Fn(String) -> PlanEdit) -> Vec<PlanEdit> {
    fields.into_iter().map(make).collect()
}

fn refusal(kind: RefusalKind, message: String, alternatives: Vec<String>) -> Refusal {
    Refusal { kind, message, alternatives }
}

fn beyond(start: &str) -> Refusal {
    let message = format!(
        "{start} Without one, these can be wished for: search bars and filters, sorting, rows per page, showing, hiding, renaming and moving columns, cards or tables, dark or light, the title, removing and restoring views, read-only, grouping. With a model, free changes to the code are possible too: charts, new screens, other wording and layout."
    );
    refusal(RefusalKind::Beyond, message, EXAMPLES.iter().map(|example| (*example).to_owned()).collect())
}
