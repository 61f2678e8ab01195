//! Finds the field that a wish names.
//!
//! Owns the comparison of names of fields: exact, then by label, then by last word, then as a slip of the pen.

use super::naming::{NotPossible, join};
use super::views::plain;
use crate::plan::List;
use crate::read::nearest;

/// The index of the column for a field.
pub(super) fn index(list: &List, title: &str, name: &str) -> Result<usize, NotPossible> {
    find(list, name).ok_or_else(|| {
        let labels: Vec<String> = list.columns.iter().map(|column| column.label.clone()).collect();
        let slip = nearest(name, labels.iter().map(String::as_str));
        let alternatives = match slip {
            Some(slip) => vec![slip.to_owned()],
            None => labels.iter().filter(|label| !label.is_empty()).take(12).cloned().collect(),
        };
        let advice = match slip {
            Some(slip) => format!("Did you mean “{slip}”?"),
            None => format!("It has {}.", join(&alternatives)),
        };
        NotPossible {
            message: format!("{title} has no field “{}”. {advice}", crate::problem::excerpt(name)),
            alternatives,
        }
    })
}

pub(super) fn find(list: &List, name: &str) -> Option<usize> {
    let columns = &list.columns;
    if let Some(index) = columns.iter().position(|column| column.field == name) {
        return Some(index);
    }
    let wanted = plain(name);
    if wanted.is_empty() {
        return None;
    }
    let by = |accept: &dyn Fn(&str, &str) -> bool| {
        let matches = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| accept(&plain(&column.field), &plain(&column.label)));
        // Among equals, what is in view is what people talk about.
        matches.min_by_key(|(index, column)| (column.hidden, *index)).map(|(index, _)| index)
    };
    by(&|field, label| field == wanted || label == wanted)
        .or_else(|| by(&|field, _| field.ends_with(&wanted) && wanted.len() > 2))
        .or_else(|| by(&|field, _| field.starts_with(&wanted) && wanted.len() > 3))
        .or_else(|| {
            let labels: Vec<String> = columns.iter().map(|column| plain(&column.label)).collect();
            let slip = nearest(
                &wanted,
                labels.iter().map(String::as_str).filter(|label| label.len() > 4 && wanted.len() > 4),
            );
            slip.and_then(|slip| labels.iter().position(|label| label == slip))
        })
}

/// Whether a list has a field of exactly this name or label.
pub(super) fn is_exact(list: &List, name: &str) -> bool {
    let wanted = plain(name);
    list.columns.iter().any(|column| plain(&column.field) == wanted || plain(&column.label) == wanted)
}
