//! Draws a unified diff in colors, with line numbers.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::wrap::{self, Indent};
use crate::text::clean;

/// The rows of a diff that are drawn unless it waits for an answer; the rest is shown as a number.
pub(crate) const MAX_ROWS: usize = 2000;

pub(crate) fn render(
    diff: &str,
    most: usize,
    columns: usize,
    theme: &Theme,
    indent: &Indent,
) -> Vec<Line<'static>> {
    let diff = clean(diff);
    let all: Vec<&str> =
        diff.lines().filter(|line| !line.starts_with("--- ") && !line.starts_with("+++ ")).collect();
    let mut rows = Vec::new();
    let mut numbers = LineNumbers::default();
    for line in all.iter().take(most) {
        let number = Span::styled(numbers.next(line), theme.dim);
        let text = Span::styled((*line).to_owned(), line_style(line, theme));
        rows.extend(wrap::hard(&[number, text], columns, indent));
    }
    if let Some(more) = all.len().checked_sub(most).filter(|more| *more > 0) {
        rows.extend(wrap::words(&[Span::styled(format!("… {more} more lines"), theme.dim)], columns, indent));
    }
    rows
}

pub(crate) fn line_style(line: &str, theme: &Theme) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => theme.added,
        Some(b'-') => theme.removed,
        Some(b'@') => theme.hunk,
        _ => theme.dim,
    }
}

/// The next line numbers of the old and of the new file, once a hunk has begun.
#[derive(Default)]
struct LineNumbers {
    next: Option<(u64, u64)>,
}

impl LineNumbers {
    /// The column before a line: the old number of a removed line, else the new one.
    fn next(&mut self, line: &str) -> String {
        if let Some(hunk) = line.strip_prefix("@@ ") {
            self.next = hunk_start(hunk);
            return String::new();
        }
        let Some((old, new)) = &mut self.next else { return String::new() };
        let number = match line.as_bytes().first() {
            Some(b'-') => {
                *old += 1;
                *old - 1
            }
            Some(b'+') => {
                *new += 1;
                *new - 1
            }
            Some(b'\\') => return String::new(),
            _ => {
                *old += 1;
                *new += 1;
                *new - 1
            }
        };
        format!("{number:>4} ")
    }
}

/// The starts of `-1,7 +1,8 @@`.
fn hunk_start(hunk: &str) -> Option<(u64, u64)> {
    let mut parts = hunk.split_whitespace();
    let mut start =
        |sign: char| -> Option<u64> { parts.next()?.strip_prefix(sign)?.split(',').next()?.parse().ok() };
    Some((start('-')?, start('+')?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::theme::Palette;

    #[test]
    fn lines_have_the_numbers_of_their_file() {
        let diff = "--- a\n+++ b\n@@ -7,3 +7,4 @@\n same\n-old\n+new\n+more\n same\n";
        let rows = render(diff, MAX_ROWS, 40, &Theme::new(Palette::Plain), &Indent::default());
        let shown: Vec<String> =
            rows.iter().map(|row| row.spans.iter().map(|span| span.content.as_ref()).collect()).collect();
        assert_eq!(
            shown,
            ["@@ -7,3 +7,4 @@", "   7  same", "   8 -old", "   8 +new", "   9 +more", "  10  same"]
        );
        assert_eq!(
            render("no hunk\n", MAX_ROWS, 40, &Theme::new(Palette::Plain), &Indent::default()).len(),
            1
        );
    }
}
