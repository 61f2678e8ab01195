//! What each edit does to a plan. Every name in an edit is looked up, never trusted.

use super::buttons;
use super::cells;
use super::describing;
use super::fields;
use super::naming::{NotPossible, join, label};
use super::past;
pub use super::plan_edit::PlanEdit;
use super::rows;
use super::views;
use crate::plan::{Column, Layout, List, Plan, Sort, Theme};

const MAX_PAGE_SIZE: u32 = 1_000;

/// Makes one edit and says in a sentence what changed. On an error the plan is as it was.
pub fn apply(plan: &mut Plan, edit: &PlanEdit) -> Result<String, NotPossible> {
    match edit {
        PlanEdit::Theme { theme } => {
            plan.theme = *theme;
            Ok(format!("Switched to the {} theme.", theme_word(*theme)))
        }
        PlanEdit::Title { title } => {
            plan.title = label(title)?;
            Ok(format!("Changed the title to “{}”.", plan.title))
        }
        PlanEdit::ReadOnly { on } => {
            plan.view_only = *on;
            let what = if *on {
                "Made the interface read-only: operations that change something are hidden."
            } else {
                "Made the interface editable again."
            };
            Ok(what.to_owned())
        }
        PlanEdit::Pagination { on } => {
            plan.pagination = *on;
            Ok(if *on {
                "Turned paging on."
            } else {
                "Turned paging off: lists show every row that is loaded."
            }
            .to_owned())
        }
        PlanEdit::PageSize { view, size } => page_size(plan, view.as_deref(), *size),
        PlanEdit::Layout { view, layout } => set_layout(plan, view.as_deref(), *layout),
        PlanEdit::RenameView { view, title } => {
            let index = views::named(plan, view, false)?;
            let title = label(title)?;
            let before = std::mem::replace(&mut plan.resources[index].title, title);
            Ok(format!("Renamed {before} to “{}”.", plan.resources[index].title))
        }
        PlanEdit::GroupView { view, group } => describing::group(plan, view, group),
        PlanEdit::DescribeView { view, note } => describing::describe(plan, view, note),
        PlanEdit::Key { view, parameter, field } => describing::suggest_key(plan, view, parameter, field),
        PlanEdit::Slot { slot, code } => describing::fill_slot(plan, slot, code),
        PlanEdit::RemoveView { view } => remove_view(plan, view),
        PlanEdit::RestoreView { view } => {
            let index = views::named(plan, view, true)?;
            plan.resources[index].removed = false;
            Ok(format!("Restored {}.", plan.resources[index].title))
        }
        PlanEdit::Undo => past::undo(plan),
        _ => present(plan, edit),
    }
}

/// How the rows of a view are chosen and shown.
fn present(plan: &mut Plan, edit: &PlanEdit) -> Result<String, NotPossible> {
    match edit {
        PlanEdit::FixFilter { view, condition } => rows::fix_filter(plan, view, condition),
        PlanEdit::ClearFilters { view, field } => rows::clear_filters(plan, view, field.as_deref()),
        PlanEdit::SaveView { view, name, conditions } => rows::save_view(plan, view, name, conditions),
        PlanEdit::RemoveSavedView { view, name } => rows::remove_saved(plan, view, name),
        PlanEdit::Color { view, condition, tint, whole_row } => {
            rows::color(plan, view, condition, *tint, *whole_row)
        }
        PlanEdit::ClearColors { view } => rows::clear_colors(plan, view),
        PlanEdit::Format { view, field, format } => cells::format(plan, view, field, format.as_ref()),
        PlanEdit::ShowName { view, field, on } => cells::show_name(plan, view, field, *on),
        PlanEdit::ComputeColumn { view, label, how, fields, constant } => {
            cells::compute(plan, view, label, *how, fields, *constant)
        }
        PlanEdit::AddAction { view, label, operation, constants } => {
            buttons::add(plan, view, label, operation, constants)
        }
        PlanEdit::RemoveAction { view, label } => buttons::remove(plan, view, label),
        _ => in_list(plan, edit),
    }
}

fn in_list(plan: &mut Plan, edit: &PlanEdit) -> Result<String, NotPossible> {
    let (PlanEdit::AddSearch { view, .. }
    | PlanEdit::RemoveSearch { view }
    | PlanEdit::AddFilter { view, .. }
    | PlanEdit::RemoveFilter { view, .. }
    | PlanEdit::Sort { view, .. }
    | PlanEdit::ClearSort { view }
    | PlanEdit::ShowColumn { view, .. }
    | PlanEdit::HideColumn { view, .. }
    | PlanEdit::RenameColumn { view, .. }
    | PlanEdit::MoveColumn { view, .. }
    | PlanEdit::GroupBy { view, .. }) = edit
    else {
        return Err(NotPossible { message: "There is no such edit.".to_owned(), alternatives: Vec::new() });
    };
    let index = views::named(plan, view, false)?;
    let resource = &mut plan.resources[index];
    let title = resource.title.clone();
    let Some(list) = &mut resource.list else {
        let alternatives = plan
            .resources
            .iter()
            .filter(|other| other.list.is_some() && !other.removed)
            .map(|other| other.title.clone())
            .take(10)
            .collect();
        return Err(NotPossible { message: format!("{title} has no table."), alternatives });
    };
    match edit {
        PlanEdit::ShowColumn { .. }
        | PlanEdit::HideColumn { .. }
        | PlanEdit::RenameColumn { .. }
        | PlanEdit::MoveColumn { .. } => column(list, &title, edit),
        _ => browsing(list, &title, edit),
    }
}

/// How the rows of a list are searched, filtered, sorted and grouped.
fn browsing(list: &mut List, title: &str, edit: &PlanEdit) -> Result<String, NotPossible> {
    match edit {
        PlanEdit::AddSearch { fields, .. } => add_search(list, title, fields),
        PlanEdit::RemoveSearch { .. } => {
            list.search.clear();
            Ok(format!("Removed the search bar of {title}."))
        }
        PlanEdit::AddFilter { field, .. } => {
            let (field, label) = found(list, title, field)?;
            if !list.filters.contains(&field) {
                list.filters.push(field);
            }
            Ok(format!("Added a filter by {label} to {title}."))
        }
        PlanEdit::RemoveFilter { field, .. } => {
            let (field, label) = found(list, title, field)?;
            list.filters.retain(|filter| *filter != field);
            Ok(format!("Removed the filter by {label} from {title}."))
        }
        PlanEdit::Sort { field, descending, .. } => {
            let (field, label) = found(list, title, field)?;
            list.sort = Some(Sort { field, descending: *descending });
            Ok(format!("Sorted {title} by {label}{}.", if *descending { ", descending" } else { "" }))
        }
        PlanEdit::ClearSort { .. } => {
            list.sort = None;
            Ok(format!("{title} is in the order of the API again."))
        }
        PlanEdit::GroupBy { field: Some(field), .. } => {
            let (field, label) = found(list, title, field)?;
            list.grouping = field;
            Ok(format!("Grouped {title} by {label}."))
        }
        _ => {
            list.grouping = String::new();
            Ok(format!("{title} is no longer grouped."))
        }
    }
}

fn add_search(list: &mut List, title: &str, names: &[String]) -> Result<String, NotPossible> {
    let mut fields = Vec::new();
    let mut labels = Vec::new();
    for name in names {
        let (field, label) = found(list, title, name)?;
        fields.push(field);
        labels.push(label);
    }
    if fields.is_empty() {
        fields =
            list.columns.iter().filter(|column| !column.hidden).map(|column| column.field.clone()).collect();
    }
    list.search = fields;
    let by = if labels.is_empty() { "every column in view".to_owned() } else { join(&labels) };
    Ok(format!("Added a search bar to {title} that filters by {by}."))
}

fn column(list: &mut List, title: &str, edit: &PlanEdit) -> Result<String, NotPossible> {
    match edit {
        PlanEdit::ShowColumn { field, .. } => {
            let column = found_mut(list, title, field)?;
            column.hidden = false;
            Ok(format!("Showed the column {} of {title}.", column.label))
        }
        PlanEdit::HideColumn { field, .. } => {
            let shown = list.columns.iter().filter(|column| !column.hidden).count();
            let column = found_mut(list, title, field)?;
            if shown <= 1 && !column.hidden {
                let message =
                    format!("{} is the only column of {title} in view; a table needs one.", column.label);
                let alternatives = vec![format!("Remove the {title} view")];
                return Err(NotPossible { message, alternatives });
            }
            column.hidden = true;
            Ok(format!("Hid the column {} of {title}.", column.label))
        }
        PlanEdit::RenameColumn { field, label: wanted, .. } => {
            let wanted = label(wanted)?;
            let column = found_mut(list, title, field)?;
            let before = std::mem::replace(&mut column.label, wanted.clone());
            Ok(format!("Renamed the column {before} of {title} to “{wanted}”."))
        }
        PlanEdit::MoveColumn { field, position, .. } => {
            let index = fields::index(list, title, field)?;
            let mut column = list.columns.remove(index);
            column.hidden = false;
            let label = column.label.clone();
            list.columns.insert((*position).min(list.columns.len()), column);
            Ok(format!("Moved the column {label} of {title} to place {}.", position + 1))
        }
        _ => Ok(String::new()),
    }
}

fn page_size(plan: &mut Plan, view: Option<&str>, size: u32) -> Result<String, NotPossible> {
    if size == 0 || size > MAX_PAGE_SIZE {
        let message = format!("A page can have 1 to {MAX_PAGE_SIZE} rows.");
        return Err(NotPossible { message, alternatives: vec!["Show 50 rows per page".to_owned()] });
    }
    let only = view.map(|view| views::named(plan, view, false)).transpose()?;
    let mut changed = 0;
    let (mut longest, mut limited) = (0, Vec::new());
    for (index, resource) in plan.resources.iter_mut().enumerate() {
        if let Some(list) = resource.list.as_mut().filter(|_| only.is_none_or(|only| only == index)) {
            list.page_size = list.largest_page(&plan.operations).map_or(size, |most| most.min(size));
            changed += 1;
            longest = longest.max(list.page_size);
            if list.page_size < size {
                limited.push(format!(
                    " {} has {}, the most that its API sends.",
                    resource.title, list.page_size
                ));
            }
        }
    }
    plan.pagination = true;
    let place = match only {
        Some(index) => plan.resources[index].title.clone(),
        None if changed == 1 => "the list".to_owned(),
        None => format!("{changed} lists"),
    };
    Ok(format!("Set {place} to {longest} rows per page.{}", limited.concat()))
}

fn set_layout(plan: &mut Plan, view: Option<&str>, layout: Layout) -> Result<String, NotPossible> {
    let word = match layout {
        Layout::Default => "a table",
        Layout::Cards => "cards",
        Layout::Compact => "a compact table",
    };
    let Some(view) = view else {
        plan.layout = layout;
        for list in plan.resources.iter_mut().filter_map(|resource| resource.list.as_mut()) {
            list.layout = None;
        }
        return Ok(format!("Every list is now shown as {word}."));
    };
    let index = views::named(plan, view, false)?;
    let title = plan.resources[index].title.clone();
    match &mut plan.resources[index].list {
        Some(list) => {
            list.layout = Some(layout);
            Ok(format!("{title} is now shown as {word}."))
        }
        None => {
            Err(NotPossible { message: format!("{title} has no list."), alternatives: views::lists(plan) })
        }
    }
}

fn remove_view(plan: &mut Plan, view: &str) -> Result<String, NotPossible> {
    let index = views::named(plan, view, false)?;
    if plan.resources.iter().filter(|resource| !resource.removed).count() <= 1 {
        let message = format!("{} is the only view that is left.", plan.resources[index].title);
        return Err(NotPossible { message, alternatives: Vec::new() });
    }
    plan.resources[index].removed = true;
    Ok(format!(
        "Removed {}; “restore {}” brings it back.",
        plan.resources[index].title, plan.resources[index].title
    ))
}

fn found(list: &List, title: &str, name: &str) -> Result<(String, String), NotPossible> {
    let column = &list.columns[fields::index(list, title, name)?];
    Ok((column.field.clone(), column.label.clone()))
}

fn found_mut<'l>(list: &'l mut List, title: &str, name: &str) -> Result<&'l mut Column, NotPossible> {
    let index = fields::index(list, title, name)?;
    Ok(&mut list.columns[index])
}

fn theme_word(theme: Theme) -> &'static str {
    match theme {
        Theme::Light => "light",
        Theme::Dark => "dark",
        Theme::Auto => "system’s",
    }
}
