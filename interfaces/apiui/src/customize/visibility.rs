//! Wishes about what there is: renaming, hiding, showing, removing and restoring columns and views.
//!
//! Owns the question whether a name means a view or a column.

use super::edit::PlanEdit;
use super::meaning::{VIEW_WORDS, fields_somewhere, is_all, is_view_phrase, strip_kind};
use super::phrases::{bare, names};
use super::understand::{Halt, Reader, beyond, each};
use super::views;

impl Reader<'_> {
    pub(super) fn rename(&self, what: &str, name: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
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
            _ => self.with_fields(
                &phrase,
                &format!("{rest} {named}"),
                "rename the column in",
                |view, fields| {
                    fields
                        .into_iter()
                        .take(1)
                        .map(|field| PlanEdit::RenameColumn {
                            view: view.clone(),
                            field,
                            label: name.to_owned(),
                        })
                        .collect()
                },
            ),
        }
    }

    pub(super) fn restore(&self, what: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let removed = views::mentioned(self.plan, what, true);
        if is_all(what) && !what.to_lowercase().contains("column") {
            let all = self.plan.resources.iter().filter(|resource| resource.removed);
            return Ok(all.map(|resource| PlanEdit::RestoreView { view: resource.id.clone() }).collect());
        }
        if !removed.is_empty() && !what.to_lowercase().contains("column") {
            return Ok(removed
                .into_iter()
                .map(|index| PlanEdit::RestoreView { view: self.plan.resources[index].id.clone() })
                .collect());
        }
        let name = strip_kind(what);
        if views::find(self.plan, name, false).is_some()
            || (fields_somewhere(self.plan, what).is_none() && is_view_phrase(what))
        {
            return Ok(vec![PlanEdit::RestoreView { view: name.to_owned() }]);
        }
        self.show(what, rest)
    }

    pub(super) fn hide(&self, what: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let (phrase, named) = self.split_view(what);
        let answer = self.answer.unwrap_or_default().to_lowercase();
        let says_column = phrase.to_lowercase().contains("column")
            || phrase.to_lowercase().contains("field")
            || answer.contains("column");
        let says_view = (is_view_phrase(&phrase) && !says_column) || answer.ends_with("view");
        let as_views: Vec<usize> = names(strip_kind(&phrase))
            .iter()
            .filter_map(|name| views::find(self.plan, strip_kind(name), false))
            .collect();
        let is_view = !as_views.is_empty() && as_views.len() == names(strip_kind(&phrase)).len();
        let is_field = fields_somewhere(self.plan, &phrase) == Some(true);
        if is_view && !says_column && (says_view || !is_field) {
            return Ok(as_views
                .into_iter()
                .map(|index| PlanEdit::RemoveView { view: self.plan.resources[index].id.clone() })
                .collect());
        }
        if says_view && !is_view {
            return Ok(vec![PlanEdit::RemoveView { view: strip_kind(&phrase).to_owned() }]);
        }
        if is_view && is_field && !says_column && named.is_empty() {
            let name = bare(strip_kind(&phrase));
            let question = format!("“{name}” is a view and also a column. Which one should be hidden?");
            return Err(Halt::Ask {
                question,
                options: vec![format!("{name} view"), format!("{name} column")],
            });
        }
        self.with_fields(&phrase, &format!("{rest} {named}"), "hide the column of", |view, fields| {
            each(fields, |field| PlanEdit::HideColumn { view: view.clone(), field })
        })
    }

    pub(super) fn show(&self, what: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let (phrase, named) = self.split_view(what);
        let removed = views::mentioned(self.plan, &phrase, true);
        if !removed.is_empty() && !phrase.to_lowercase().contains("column") {
            return Ok(removed
                .into_iter()
                .map(|index| PlanEdit::RestoreView { view: self.plan.resources[index].id.clone() })
                .collect());
        }
        if fields_somewhere(self.plan, &phrase).is_none()
            && !phrase.to_lowercase().contains("column")
            && !phrase.to_lowercase().contains("field")
        {
            // "Add a chart": no column by that name, so it is no wish for a column.
            return Err(Halt::Refuse(beyond(&format!(
                "There is no column called “{}”, and more than columns, filters and views cannot be added without a language model.",
                crate::problem::excerpt(&bare(&phrase))
            ))));
        }
        self.with_fields(&phrase, &format!("{rest} {named}"), "show the column in", |view, fields| {
            each(fields, |field| PlanEdit::ShowColumn { view: view.clone(), field })
        })
    }
}
