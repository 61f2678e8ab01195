//! A page of text over the chat, with scrolling: the help, the status, servers, usage, a diff.

use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::wrap::{self, Indent};
use crate::text::{clean, width};

#[derive(Debug)]
pub struct Page {
    title: String,
    lines: Vec<PageLine>,
    /// The first visible row.
    top: usize,
    /// The height of the last frame, and the number of all rows.
    size: (usize, usize),
}

#[derive(Debug)]
pub(crate) enum PageLine {
    Heading(String),
    Text(String),
    /// A name and its meaning, in two columns where they fit.
    Pair(String, String),
    /// A line of a diff.
    Diff(String),
    /// A line that keeps its spaces.
    Code(String),
}

impl Page {
    pub(crate) fn new(title: impl Into<String>, lines: Vec<PageLine>) -> Self {
        Self { title: title.into(), lines, top: 0, size: (0, 0) }
    }

    /// Down if `rows` is positive.
    pub(crate) fn scroll(&mut self, rows: isize) {
        let last = self.size.1.saturating_sub(self.size.0);
        self.top = self.top.saturating_add_signed(rows).min(last);
    }

    pub(crate) fn page_rows(&self) -> isize {
        isize::try_from(self.size.0.saturating_sub(2).max(1)).unwrap_or(1)
    }

    pub(crate) fn rows(&mut self, columns: usize, height: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        let is_pair = |line: &PageLine| match line {
            PageLine::Pair(name, _) => width(name),
            PageLine::Heading(_) | PageLine::Text(_) | PageLine::Diff(_) | PageLine::Code(_) => 0,
        };
        let widest = self.lines.iter().map(is_pair).max().unwrap_or(0) + 2;
        for line in &self.lines {
            rows.extend(line_rows(line, widest, columns, theme));
        }
        let room = height.saturating_sub(1);
        self.size = (room, rows.len());
        self.scroll(0);
        let below = rows.len().saturating_sub(self.top + room);
        let hint = match below {
            0 => "Esc closes".to_owned(),
            below => format!("{below} more rows below (↓, PgDn) · Esc closes"),
        };
        let head = Line::from(vec![
            Span::styled(self.title.clone(), theme.heading),
            Span::styled(format!("  {hint}"), theme.dim),
        ]);
        std::iter::once(head).chain(rows.into_iter().skip(self.top).take(room)).collect()
    }
}

/// The changes of the working tree.
pub(super) fn diff_page(diff: &str, new_files: &str) -> Page {
    let mut lines: Vec<PageLine> = match (diff.trim(), new_files.trim()) {
        ("", "") => vec![PageLine::Text("The working tree has no changes.".to_owned())],
        (diff, _) => diff.lines().map(|line| PageLine::Diff(line.to_owned())).collect(),
    };
    if !new_files.trim().is_empty() {
        lines.push(PageLine::Heading("New files, which git does not know yet".to_owned()));
        lines.extend(new_files.lines().map(|line| PageLine::Text(line.to_owned())));
    }
    Page::new("Changes", lines)
}

fn line_rows(line: &PageLine, widest: usize, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    match line {
        PageLine::Heading(text) => {
            vec![Line::default(), Line::from(Span::styled(clean(text).into_owned(), theme.heading))]
        }
        PageLine::Text(text) => {
            let spans = [Span::styled(clean(text).into_owned(), theme.text)];
            wrap::words(&spans, columns, &Indent::default())
        }
        PageLine::Pair(name, meaning) => {
            let name = clean(name).into_owned();
            let meaning = clean(meaning).into_owned();
            let space = |columns: usize| Span::raw(" ".repeat(columns));
            if columns < widest + 30 {
                let spans = [Span::styled(name + ": ", theme.accent), Span::styled(meaning, theme.text)];
                return wrap::words(&spans, columns, &Indent::default());
            }
            let gap = widest.saturating_sub(width(&name));
            let first = vec![Span::styled(name, theme.accent), space(gap)];
            let indent = Indent { first, other: vec![space(widest)] };
            // Bars and figures have spaces of their own.
            if width(&meaning) + widest <= columns {
                return wrap::hard(&[Span::styled(meaning, theme.text)], columns, &indent);
            }
            wrap::words(&[Span::styled(meaning, theme.text)], columns, &indent)
        }
        PageLine::Code(text) => {
            wrap::soft(&[Span::styled(clean(text).into_owned(), theme.text)], columns, &Indent::default())
        }
        PageLine::Diff(text) => {
            let style = super::diff::line_style(text, theme);
            wrap::hard(&[Span::styled(clean(text).into_owned(), style)], columns, &Indent::default())
        }
    }
}
