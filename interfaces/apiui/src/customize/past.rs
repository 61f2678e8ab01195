//! Changes that can be undone: what each replaced is kept in the plan, bounded.
//!
//! Owns what is kept. Invariant: the plan after an undo is as valid as it was before the change.

use super::naming::NotPossible;
use crate::plan::{Layout, PastChange, PastPart, Plan, Resource, SlotCode, Theme};
use serde::{Deserialize, Serialize};

const MOST_CHANGES: usize = 20;
/// A change that replaced more is not kept.
const LARGEST_CHANGE: usize = 64 * 1024;
const LARGEST_PAST: usize = 128 * 1024;

/// What belongs to the interface and to no view.
#[derive(PartialEq, Serialize, Deserialize)]
struct Frame {
    title: String,
    theme: Theme,
    layout: Layout,
    view_only: bool,
    pagination: bool,
    slots: Vec<SlotCode>,
}

/// Keeps what a change replaced. Nothing is kept where nothing changed.
pub fn remember(before: &Plan, after: &mut Plan, told: &str) {
    let mut parts = Vec::new();
    if frame(before) != frame(after) {
        parts.push(PastPart { resource: None, before: json(&frame(before)) });
    }
    for (index, (old, new)) in before.resources.iter().zip(&after.resources).enumerate() {
        if old != new {
            parts.push(PastPart { resource: Some(index), before: json(old) });
        }
    }
    let size = |parts: &[PastPart]| parts.iter().map(|part| part.before.len()).sum::<usize>();
    if parts.is_empty() {
        return;
    }
    if size(&parts) > LARGEST_CHANGE {
        // Undoing what came before would bring back more than was asked for.
        after.past.clear();
        return;
    }
    after.past.push(PastChange { told: crate::plan::words::line(told, 200), parts });
    let total = |past: &[PastChange]| past.iter().map(|change| size(&change.parts)).sum::<usize>();
    while after.past.len() > MOST_CHANGES || total(&after.past) > LARGEST_PAST {
        after.past.remove(0);
    }
}

/// Brings back what the last change replaced.
pub(super) fn undo(plan: &mut Plan) -> Result<String, NotPossible> {
    let nothing = |message: &str| NotPossible { message: message.to_owned(), alternatives: Vec::new() };
    let mut restored = plan.clone();
    let change = restored.past.pop().ok_or_else(|| nothing("There is no change to undo."))?;
    for part in &change.parts {
        let is_known = restore(&mut restored, part);
        is_known.ok_or_else(|| nothing("The last change cannot be undone: what it replaced is damaged."))?;
    }
    restored.validate().map_err(|invalid| nothing(&invalid.to_string()))?;
    *plan = restored;
    Ok(format!("Undone: {}", change.told))
}

fn restore(plan: &mut Plan, part: &PastPart) -> Option<()> {
    match part.resource {
        Some(index) => {
            let resource: Resource = serde_json::from_str(&part.before).ok()?;
            let now = plan.resources.get_mut(index).filter(|now| now.id == resource.id)?;
            *now = resource;
        }
        None => {
            let frame: Frame = serde_json::from_str(&part.before).ok()?;
            plan.title = frame.title;
            plan.theme = frame.theme;
            plan.layout = frame.layout;
            plan.view_only = frame.view_only;
            plan.pagination = frame.pagination;
            plan.slots = frame.slots;
        }
    }
    Some(())
}

fn frame(plan: &Plan) -> Frame {
    Frame {
        title: plan.title.clone(),
        theme: plan.theme,
        layout: plan.layout,
        view_only: plan.view_only,
        pagination: plan.pagination,
        slots: plan.slots.clone(),
    }
}

fn json<T: Serialize>(value: &T) -> String {
    // Plans have text keys and finite numbers, so this cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}
