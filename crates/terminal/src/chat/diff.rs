//! Draws a unified diff in colors.

use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::wrap::{self, Indent};
use crate::text::clean;

/// The rows of a diff that are drawn; the rest is shown as a number.
const MAX_ROWS: usize = 2000;

pub(crate) fn render(diff: &str, columns: usize, theme: &Theme, indent: &Indent) -> Vec<Line<'static>> {
    let diff = clean(diff);
    let all: Vec<&str> =
        diff.lines().filter(|line| !line.starts_with("--- ") && !line.starts_with("+++ ")).collect();
    let mut rows = Vec::new();
    for line in all.iter().take(MAX_ROWS) {
        let style = match line.as_bytes().first() {
            Some(b'+') => theme.added,
            Some(b'-') => theme.removed,
            Some(b'@') => theme.hunk,
            _ => theme.dim,
        };
        rows.extend(wrap::hard(&[Span::styled((*line).to_owned(), style)], columns, indent));
    }
    if let Some(more) = all.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        rows.extend(wrap::words(&[Span::styled(format!("… {more} more lines"), theme.dim)], columns, indent));
    }
    rows
}
