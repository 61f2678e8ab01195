//! Wishes about which columns stand where: moving, swapping, and showing only some.
//!
//! Owns the positions; which view and which fields are meant is found by `understand`.

use super::edit::PlanEdit;
use super::meaning::position;
use super::understand::{Halt, Reader};
use crate::plan::List;

impl Reader<'_> {
    pub(super) fn move_column(&self, field: &str, to: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let (to, named) = self.split_view(to);
        let target = format!("{rest} {named}");
        let lower = to.to_lowercase();
        self.with_fields(field, &target, "move the column in", |view, moved| {
            let Some(list) = self.list_of(view) else { return Vec::new() };
            let position = position(list, &lower, moved.first().map_or("", String::as_str));
            let shift = |(offset, field): (usize, String)| PlanEdit::MoveColumn {
                view: view.clone(),
                field,
                position: position + offset,
            };
            moved.into_iter().enumerate().map(shift).collect()
        })
    }

    pub(super) fn show_only(&self, phrase: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        self.with_fields(phrase, rest, "show only these columns of", |view, kept| {
            let Some(list) = self.list_of(view) else { return Vec::new() };
            let shown =
                kept.iter().map(|field| PlanEdit::ShowColumn { view: view.clone(), field: field.clone() });
            let others = list.columns.iter().filter(|column| !column.hidden && !kept.contains(&column.field));
            let hidden =
                others.map(|column| PlanEdit::HideColumn { view: view.clone(), field: column.field.clone() });
            shown.chain(hidden).collect()
        })
    }

    pub(super) fn order_columns(&self, phrase: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        self.with_fields(phrase, rest, "order the columns of", |view, fields| {
            let place = |(position, field)| PlanEdit::MoveColumn { view: view.clone(), field, position };
            fields.into_iter().enumerate().map(place).collect()
        })
    }

    pub(super) fn swap_columns(&self, phrase: &str, rest: &str) -> Result<Vec<PlanEdit>, Halt> {
        let phrase = phrase.replace(" with ", " and ").replace(" for ", " and ");
        self.with_fields(&phrase, rest, "swap the columns of", |view, fields| {
            let place = |field: &String| {
                let columns = self.list_of(view).map(|list| list.columns.as_slice()).unwrap_or_default();
                columns.iter().position(|column| column.field == *field).unwrap_or_default()
            };
            let [one, other] = fields.as_slice() else { return Vec::new() };
            let (left, right) = if place(one) < place(other) { (one, other) } else { (other, one) };
            // The right one goes first: the left one has then moved by one.
            [(right, place(left)), (left, place(right))]
                .map(|(field, position)| PlanEdit::MoveColumn {
                    view: view.clone(),
                    field: field.clone(),
                    position,
                })
                .into()
        })
    }

    fn list_of(&self, view: &str) -> Option<&List> {
        self.plan.resources.iter().find(|resource| resource.id == view)?.list.as_ref()
    }
}
