//! Draws a Markdown table: in columns if they fit, else as one `header: value` per row.

use ratatui::style::Modifier;
use ratatui::text::Span;

use super::theme::Theme;
use crate::text::width;

/// The space between two columns.
const GAP: usize = 2;

type Cell = Vec<Span<'static>>;

pub(crate) struct Table {
    /// Which columns are aligned to the right.
    right: Vec<bool>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(right: Vec<bool>) -> Self {
        Self { right, rows: Vec::new() }
    }

    pub(crate) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(crate) fn cell(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// The first row is the header.
    pub(crate) fn rows(mut self, columns: usize, theme: &Theme) -> Vec<Cell> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        for span in self.rows[0].iter_mut().flatten() {
            span.style = span.style.add_modifier(Modifier::BOLD);
        }
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest =
            |at: usize| self.rows.iter().filter_map(|row| row.get(at)).map(cell_width).max().unwrap_or(0);
        let widths: Vec<usize> = (0..count).map(widest).collect();
        if widths.iter().sum::<usize>() + GAP * count.saturating_sub(1) <= columns {
            self.render_aligned(&widths, theme)
        } else {
            self.render_as_list(theme)
        }
    }

    fn render_aligned(&self, widths: &[usize], theme: &Theme) -> Vec<Cell> {
        let mut out: Vec<Cell> = self.rows.iter().map(|row| self.render_aligned_row(row, widths)).collect();
        let rules: Vec<String> = widths.iter().map(|wide| "─".repeat(*wide)).collect();
        out.insert(1, vec![Span::styled(rules.join(&" ".repeat(GAP)), theme.dim)]);
        out
    }

    fn render_aligned_row(&self, row: &[Cell], widths: &[usize]) -> Cell {
        let mut spans = Vec::new();
        for (at, cell) in row.iter().enumerate() {
            let room = widths.get(at).map_or(0, |column| column.saturating_sub(cell_width(cell)));
            let right = self.right.get(at).copied().unwrap_or(false);
            let before = if right { room } else { 0 } + if at > 0 { GAP } else { 0 };
            spans.push(Span::raw(" ".repeat(before)));
            spans.extend(cell.iter().cloned());
            if !right && at + 1 < row.len() {
                spans.push(Span::raw(" ".repeat(room)));
            }
        }
        spans
    }

    fn render_as_list(&self, theme: &Theme) -> Vec<Cell> {
        let (header, rows) = (&self.rows[0], &self.rows[1..]);
        if rows.is_empty() {
            return header.clone();
        }
        let mut out = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                out.push(Vec::new());
            }
            for (at, cell) in row.iter().enumerate() {
                let mut spans = header.get(at).cloned().unwrap_or_default();
                spans.push(Span::styled(": ", theme.dim));
                spans.extend(cell.iter().cloned());
                out.push(spans);
            }
        }
        out
    }
}

fn cell_width(cell: &Cell) -> usize {
    cell.iter().map(|span| width(&span.content)).sum()
}
