//! Draws the chat at the end of the terminal's own text: finished entries are printed once and belong to the terminal, a
//! region below them is drawn anew. The terminal's scrollback and selection work as after any other program.
//!
//! Must not know how entries are laid out. Invariants: a printed row is never touched again; the region is moved to by steps
//! relative to the cursor, so the terminal is never asked where the cursor is.

use std::fmt::Write as _;
use std::io::{self, Write};

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier};
use ratatui::text::Line;

use super::draw::{self, Drawn};
use super::screen::Screen;
use crate::text::width;

/// The terminal shows everything between these at once, if it knows them.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?2026l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// The rows below the printed ones, as they are on the terminal.
#[derive(Default)]
pub(crate) struct InlineRegion {
    rows: Vec<PaintedRow>,
    cursor: Position,
    columns: u16,
    is_welcome_printed: bool,
}

#[derive(Clone, Default, PartialEq, Eq)]
struct PaintedRow {
    /// With its colors.
    text: String,
    columns: usize,
}

impl InlineRegion {
    /// Prints what has finished, if `prints`, and draws the rest below it.
    pub(crate) fn draw(
        &mut self,
        screen: &mut Screen,
        size: (u16, u16),
        prints: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (columns, rows) = (size.0.max(1), size.1.max(1));
        let printed = if prints { self.finished_rows(screen, columns) } else { Vec::new() };
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        let Drawn { cursor, unused } = draw::draw_parts(screen, &mut buffer);
        let cursor = cursor.map(|at| match at.y >= unused.end {
            true => Position { y: at.y - (unused.end - unused.start), ..at },
            false => at,
        });
        let visible = (0..unused.start).chain(unused.end..rows);
        let region: Vec<PaintedRow> = visible.map(|row| paint_row(&buffer, row)).collect();
        out.write_all(self.update((columns, rows), &printed, region, cursor).as_bytes())?;
        out.flush()
    }

    /// Removes the region; the printed rows stay.
    pub(crate) fn clear(&mut self, out: &mut impl Write) -> io::Result<()> {
        let erased = erase(self.height(self.columns));
        let text = format!("{}{erased}{SHOW_CURSOR}", self.to_first_row(self.columns));
        self.rows.clear();
        self.cursor = Position::default();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn finished_rows(&mut self, screen: &mut Screen, columns: u16) -> Vec<PaintedRow> {
        let mut lines: Vec<Line<'static>> = Vec::new();
        if !self.is_welcome_printed && !screen.transcript.is_empty() {
            self.is_welcome_printed = true;
            lines.extend(draw::welcome(screen, columns.into()));
            lines.push(Line::default());
        }
        let theme = screen.theme;
        lines.extend(screen.transcript.take_finished(columns, &theme));
        let paint = |line: &Line<'static>| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, columns, 1));
            buffer.set_line(0, 0, line, columns);
            paint_row(&buffer, 0)
        };
        lines.iter().map(paint).collect()
    }

    /// The bytes that turn the old region into the new one.
    fn update(
        &mut self,
        (columns, rows): (u16, u16),
        printed: &[PaintedRow],
        region: Vec<PaintedRow>,
        cursor: Option<Position>,
    ) -> String {
        let mut text = format!("{BEGIN}{}", self.to_first_row(columns));
        if !printed.is_empty() || columns != self.columns {
            text.push_str(&erase(self.height(columns).min(rows.into())));
            self.rows.clear();
            printed.iter().for_each(|row| text.push_str(&format!("{}\r\n", row.text)));
        }
        let known = self.rows.len();
        for (at, row) in region.iter().enumerate() {
            match at {
                0 => {}
                at if at < known => text.push_str("\x1b[1B\r"),
                // At the end of the screen this scrolls.
                _ => text.push_str("\r\n"),
            }
            if self.rows.get(at) != Some(row) {
                // The row is erased first: at the last column there is no place for the cursor behind the text.
                text.push_str(&format!("\x1b[2K{}", row.text));
            }
        }
        if known > region.len() {
            text.push_str(&format!("\x1b[1B\r{}\x1b[1A", erase(known - region.len())));
        }
        let last = u16::try_from(region.len().saturating_sub(1)).unwrap_or(u16::MAX);
        let place = cursor.unwrap_or(Position::new(0, last));
        text.push_str(&steps(last.saturating_sub(place.y), 'A'));
        text.push('\r');
        text.push_str(&steps(place.x, 'C'));
        if cursor.is_some() {
            text.push_str(SHOW_CURSOR);
        }
        (self.rows, self.cursor, self.columns) = (region, place, columns);
        text.push_str(END);
        text
    }

    /// Steps from the cursor to the first row of the region. A terminal that became narrower has broken the rows anew.
    fn to_first_row(&self, columns: u16) -> String {
        let above = self.rows.iter().take(self.cursor.y.into());
        let rows = broken_rows(above, columns) + usize::from(self.cursor.x / columns.max(1));
        format!("{}\r", steps(u16::try_from(rows).unwrap_or(u16::MAX), 'A'))
    }

    /// The rows that the region takes at this width.
    fn height(&self, columns: u16) -> usize {
        broken_rows(self.rows.iter(), columns)
    }
}

fn broken_rows<'a>(rows: impl Iterator<Item = &'a PaintedRow>, columns: u16) -> usize {
    rows.map(|row| row.columns.div_ceil(columns.max(1).into()).max(1)).sum()
}

/// Erases so many rows from the one of the cursor on, one by one: a terminal that is told to erase the whole screen may put
/// it into its scrollback first.
fn erase(rows: usize) -> String {
    let erased = vec!["\x1b[2K"; rows].join("\x1b[1B");
    format!("{erased}{}", steps(u16::try_from(rows.saturating_sub(1)).unwrap_or(u16::MAX), 'A'))
}

/// So many steps of the cursor; a terminal takes 0 for 1.
fn steps(count: u16, direction: char) -> String {
    if count == 0 { String::new() } else { format!("\x1b[{count}{direction}") }
}

/// A row of cells as text with colors, without the empty cells at its end.
fn paint_row(buffer: &Buffer, row: u16) -> PaintedRow {
    let cells: Vec<&Cell> = (0..buffer.area.width).filter_map(|column| buffer.cell((column, row))).collect();
    let is_empty = |cell: &&Cell| cell.symbol() == " " && style_codes(cell).is_empty();
    let length = cells.iter().rposition(|cell| !is_empty(cell)).map_or(0, |last| last + 1);
    let (mut text, mut codes, mut column) = (String::new(), String::new(), 0);
    while column < length {
        let cell = cells[column];
        let next = style_codes(cell);
        if next != codes {
            let _ = write!(text, "\x1b[0{next}m");
            codes = next;
        }
        text.push_str(cell.symbol());
        // A wide letter covers the cell behind it.
        column += width(cell.symbol()).max(1);
    }
    if !codes.is_empty() {
        text.push_str("\x1b[0m");
    }
    PaintedRow { text, columns: column }
}

fn style_codes(cell: &Cell) -> String {
    let modifiers = [
        (Modifier::BOLD, ";1"),
        (Modifier::DIM, ";2"),
        (Modifier::ITALIC, ";3"),
        (Modifier::UNDERLINED, ";4"),
        (Modifier::REVERSED, ";7"),
        (Modifier::CROSSED_OUT, ";9"),
    ];
    let set = modifiers.iter().filter(|(modifier, _)| cell.modifier.contains(*modifier));
    let mut codes: String = set.map(|(_, code)| *code).collect();
    codes.push_str(&color_code(38, cell.fg));
    codes.push_str(&color_code(48, cell.bg));
    codes
}

fn color_code(layer: u8, color: Color) -> String {
    let index = match color {
        Color::Reset => return String::new(),
        Color::Rgb(red, green, blue) => return format!(";{layer};2;{red};{green};{blue}"),
        Color::Indexed(index) => index,
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
    };
    format!(";{layer};5;{index}")
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn a_row_keeps_its_colors_and_wide_letters() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
        buffer.set_string(0, 0, "a", Style::new());
        buffer.set_string(1, 0, "漢b", Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
        let row = paint_row(&buffer, 0);
        assert_eq!((row.text.as_str(), row.columns), ("a\x1b[0;1;38;5;1m漢b\x1b[0m", 4));
    }

    #[test]
    fn only_changed_rows_are_written() {
        let row = |text: &str| PaintedRow { text: text.to_owned(), columns: text.len() };
        let mut region = InlineRegion::default();
        let first = region.update((10, 24), &[], vec![row("same"), row("old")], Some(Position::new(1, 1)));
        assert!(first.contains("same") && first.contains("old"), "{first:?}");
        let second = region.update((10, 24), &[], vec![row("same"), row("new")], Some(Position::new(1, 1)));
        assert!(!second.contains("same") && second.contains("new"), "{second:?}");
        let printed = region.update((10, 24), &[row("done")], vec![row("same")], None);
        assert!(printed.contains("\x1b[1A\r\x1b[2K\x1b[1B\x1b[2K\x1b[1Adone\r\n\x1b[2Ksame"), "{printed:?}");
        // Narrower: the rows above the cursor were broken into more.
        region.update((10, 24), &[], vec![row("0123456789"), row("x")], Some(Position::new(0, 1)));
        assert_eq!(region.to_first_row(4), "\x1b[3A\r");
    }
}
