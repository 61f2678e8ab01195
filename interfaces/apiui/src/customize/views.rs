//! Finds the view that a wish names.
//!
//! Owns the comparison of names of views, as edits write them and as people do.

use super::naming::NotPossible;
use crate::plan::words::{singular, split};
use crate::plan::{List, Plan, Resource};
use crate::read::nearest;

/// The index of a view by its title, singular or id. `removed` says which of the two kinds is meant.
pub(super) fn named(plan: &Plan, name: &str, removed: bool) -> Result<usize, NotPossible> {
    if let Some(index) = find(plan, name, removed) {
        return Ok(index);
    }
    if removed && let Some(index) = find(plan, name, false) {
        let message = format!("{} is already there.", plan.resources[index].title);
        return Err(NotPossible { message, alternatives: titles(plan, removed) });
    }
    let titles = titles(plan, removed);
    let message = match (removed, titles.is_empty()) {
        (true, true) => "No view was removed.".to_owned(),
        (true, false) => format!("No removed view is called “{}”.", crate::problem::excerpt(name)),
        (false, _) => format!("There is no view called “{}”.", crate::problem::excerpt(name)),
    };
    let slip = nearest(name, titles.iter().map(String::as_str)).map(str::to_owned);
    let alternatives = slip.map_or_else(|| titles.iter().take(10).cloned().collect(), |slip| vec![slip]);
    Err(NotPossible { message, alternatives })
}

pub(super) fn find(plan: &Plan, name: &str, removed: bool) -> Option<usize> {
    let wanted = plain(name);
    if wanted.is_empty() {
        return None;
    }
    let mut all = plan.resources.iter().enumerate().filter(|(_, resource)| resource.removed == removed);
    let exact = |resource: &Resource| resource.id == name || resource.title == name;
    all.clone()
        .find(|(_, resource)| exact(resource))
        .or_else(|| {
            all.find(|(_, resource)| {
                plain(&resource.title) == wanted
                    || plain(&resource.singular) == wanted
                    || plain(&resource.id) == wanted
            })
        })
        .map(|(index, _)| index)
}

/// Every view that a text mentions by name, the longest names first and none inside another.
pub(super) fn mentioned(plan: &Plan, text: &str, removed: bool) -> Vec<usize> {
    let words: Vec<String> = split(text).iter().map(|word| singular(&word.to_lowercase())).collect();
    let mut taken = vec![false; words.len()];
    let mut named: Vec<(usize, Vec<String>)> = plan
        .resources
        .iter()
        .enumerate()
        .filter(|(_, resource)| resource.removed == removed)
        .map(|(index, resource)| {
            (index, split(&resource.title).iter().map(|word| singular(&word.to_lowercase())).collect())
        })
        .collect();
    named.sort_by_key(|(_, title): &(usize, Vec<String>)| std::cmp::Reverse(title.len()));
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (index, title) in named.iter().filter(|(_, title)| !title.is_empty()) {
        for at in 0..words.len().saturating_sub(title.len() - 1) {
            let is_here =
                words[at..at + title.len()] == title[..] && !taken[at..at + title.len()].contains(&true);
            if is_here && !found.iter().any(|(_, known)| known == index) {
                taken[at..at + title.len()].fill(true);
                found.push((at, *index));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, index)| index).collect()
}

pub(super) fn lists(plan: &Plan) -> Vec<String> {
    plan.resources
        .iter()
        .filter(|resource| resource.list.is_some() && !resource.removed)
        .map(|resource| resource.title.clone())
        .take(20)
        .collect()
}

fn titles(plan: &Plan, removed: bool) -> Vec<String> {
    plan.resources
        .iter()
        .filter(|resource| resource.removed == removed)
        .map(|resource| resource.title.clone())
        .collect()
}

/// A name for comparison: its words in the singular, without case or separators.
pub(super) fn plain(name: &str) -> String {
    split(name).iter().map(|word| singular(&word.to_lowercase())).collect()
}

/// The list of a view that is shown, with the view's title.
pub(super) fn list_mut<'p>(plan: &'p mut Plan, view: &str) -> Result<(String, &'p mut List), NotPossible> {
    let index = named(plan, view, false)?;
    let alternatives = if plan.resources[index].list.is_some() { Vec::new() } else { lists(plan) };
    let resource = &mut plan.resources[index];
    let title = resource.title.clone();
    match &mut resource.list {
        Some(list) => Ok((title, list)),
        None => Err(NotPossible { message: format!("{title} has no table."), alternatives }),
    }
}
