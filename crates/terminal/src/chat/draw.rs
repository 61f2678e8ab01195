//! Draws the screen: the chat, the open ask, the input and the status line.
//!
//! Invariant: nothing is drawn outside the area, however small it is; only visible entries are laid out.

use std::ops::Range;

use domain::tool::ServerStatus;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::commands::{mcp_servers, server_line};
use super::completion::{CompletionKind, MAX_ROWS};
use super::dialog;
use super::form::Form;
use super::input::Input;
use super::picker::{NO_MODEL_HINT, Picker};
use super::screen::{Overlay, Screen};
use super::status;
use super::theme::Theme;
use super::wrap::{self, Indent};
use crate::text::{clean, clean_line, shorten, width};

const HINT: &str = "Ask something. / shows commands, @ adds files, F1 shows the keys, F2 earlier chats.";
/// The mark before the input.
const PROMPT_MARK: &str = "> ";
/// Smaller screens have no header.
const MIN_HEADER_ROWS: u16 = 12;
/// The first screen is not longer.
const MAX_WELCOME_ROWS: usize = 12;

/// What was drawn where.
pub(crate) struct Drawn {
    pub cursor: Option<Position>,
    /// The rows of the chat with nothing on them.
    pub unused: Range<u16>,
}

/// Draws everything; returns the position of the cursor.
pub fn draw(screen: &mut Screen, buffer: &mut Buffer) -> Option<Position> {
    draw_parts(screen, buffer).cursor
}

pub(crate) fn draw_parts(screen: &mut Screen, buffer: &mut Buffer) -> Drawn {
    let area = buffer.area;
    if area.width == 0 || area.height == 0 {
        return Drawn { cursor: None, unused: 0..0 };
    }
    let theme = screen.theme;
    let columns = usize::from(area.width);
    let mut rest = area;
    let has_header = draw_header(screen, buffer, &mut rest);
    let status = cut_bottom(&mut rest, 1);
    put(buffer, status, 0, &status::line(screen, has_header, columns));
    let most = (area.height / 3).max(1);
    let typed_rows =
        u16::try_from(active_input(screen).rows(columns.saturating_sub(2)).len()).unwrap_or(u16::MAX);
    let typed = cut_bottom(&mut rest, typed_rows.min(most));
    let cursor = draw_input(screen, buffer, typed);
    if rest.height > 4 && !screen.look.is_linear {
        let rule = cut_bottom(&mut rest, 1);
        put(buffer, rule, 0, &Line::from(Span::styled("─".repeat(columns), theme.dim)));
    }
    // At least one row of the chat stays visible.
    let room = usize::from(rest.height.saturating_sub(1));
    for block in [
        dialog::rows(screen, columns, room),
        steering_rows(screen, columns),
        completion_rows(screen, columns),
    ] {
        let height = u16::try_from(block.len()).unwrap_or(u16::MAX).min(rest.height.saturating_sub(1));
        let place = cut_bottom(&mut rest, height);
        for (at, row) in (0..height).zip(&block) {
            put(buffer, place, at, row);
        }
    }
    let drawn = match &mut screen.overlay {
        None => {
            let used = draw_chat(screen, buffer, rest);
            Drawn { cursor, unused: used..rest.height }
        }
        Some(overlay) => {
            let rows = overlay_rows(overlay, columns, rest.height.into(), &theme);
            let used = put_all(buffer, rest, &rows);
            Drawn { cursor: None, unused: used..rest.height }
        }
    };
    mark_selection(screen, buffer);
    drawn
}

/// The first row, where there is room for it.
fn draw_header(screen: &Screen, buffer: &mut Buffer, rest: &mut Rect) -> bool {
    let has_room = rest.height >= MIN_HEADER_ROWS && !screen.transcript.is_empty();
    if !screen.look.has_header || !has_room {
        return false;
    }
    put(buffer, *rest, 0, &status::header(screen, rest.width.into()));
    *rest = Rect { y: rest.y + 1, height: rest.height - 1, ..*rest };
    true
}

/// Shows what the mouse marks, and keeps the frame for the clipboard.
fn mark_selection(screen: &mut Screen, buffer: &mut Buffer) {
    let Some(selection) = &mut screen.selection else { return };
    let area = buffer.area;
    let row = |y: u16| (0..area.width).map(move |x| (x, y));
    let symbols = |y: u16| row(y).filter_map(|at| Some(buffer.cell(at)?.symbol().to_owned())).collect();
    selection.keep_frame((0..area.height).map(symbols).collect());
    for y in 0..area.height {
        let Some((from, to)) = selection.columns(y) else { continue };
        let width = to.min(area.width.saturating_sub(1)).saturating_add(1).saturating_sub(from);
        buffer.set_style(Rect { x: from, y, width, height: 1 }, screen.theme.chosen);
    }
}

/// Returns the number of rows that were drawn.
fn put_all(buffer: &mut Buffer, area: Rect, rows: &[Line<'_>]) -> u16 {
    (0..area.height).zip(rows).map(|(at, row)| put(buffer, area, at, row)).count().try_into().unwrap_or(0)
}

fn cut_bottom(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    rest.height -= height;
    Rect { x: rest.x, y: rest.y + rest.height, width: rest.width, height }
}

fn put(buffer: &mut Buffer, area: Rect, row: u16, line: &Line<'_>) {
    if row < area.height {
        buffer.set_line(area.x, area.y + row, line, area.width);
    }
}

/// Returns the number of rows that were drawn.
fn draw_chat(screen: &mut Screen, buffer: &mut Buffer, area: Rect) -> u16 {
    let theme = screen.theme;
    if screen.transcript.is_empty() {
        return put_all(buffer, area, &welcome(screen, area.width.into()));
    }
    let mut used = 0;
    screen.transcript.place_at(area.y);
    for (at, visible) in (0..area.height).zip(screen.transcript.view(area.width, area.height, &theme)) {
        put(buffer, area, at, visible.line);
        if visible.selected && !visible.line.spans.is_empty() {
            let row = Rect { y: area.y + at, height: 1, ..area };
            buffer.set_style(row, theme.chosen);
        }
        used = at + 1;
    }
    used
}

/// The first screen: what will answer, what was found, one hint.
pub(crate) fn welcome(screen: &Screen, columns: usize) -> Vec<Line<'static>> {
    let theme = &screen.theme;
    let mut rows: Vec<Line<'static>> = Vec::new();
    let line = |text: &str, style: Style| Line::from(Span::styled(shorten(text, columns), style));
    let wrapped = |text: &str, style: Style| {
        wrap::words(&[Span::styled(clean_line(text), style)], columns, &Indent::default())
    };
    let greeting = clean(&screen.catalog.welcome);
    let greeting = greeting.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("Type '/'"));
    rows.extend(greeting.take(2).map(|text| line(text, theme.heading)));
    rows.extend(facts(screen).iter().map(|(name, value)| line(&format!("{name}: {value}"), theme.text)));
    rows.extend(wrapped(HINT, theme.dim));
    if screen.model().is_none() {
        rows.extend(wrapped(NO_MODEL_HINT, theme.warning));
    }
    let notices = &screen.catalog.notices;
    let mut told = 0;
    for notice in notices {
        let more = wrapped(&notice.text, theme.warning);
        if rows.len() + more.len() >= MAX_WELCOME_ROWS && told > 0 {
            break;
        }
        rows.extend(more);
        told += 1;
    }
    if told < notices.len() {
        rows.push(line(&format!("{} more notices: /status", notices.len() - told), theme.warning));
    }
    rows
}

fn facts(screen: &Screen) -> Vec<(&'static str, String)> {
    let intro = &screen.intro;
    let mut facts = Vec::new();
    if !intro.version.is_empty() {
        facts.push(("Dragoman", intro.version.clone()));
    }
    if !intro.folders.is_empty() {
        let branch = intro.branch.as_ref().map(|branch| format!(" (branch {branch})")).unwrap_or_default();
        facts.push(("Folder", format!("{}{branch}", intro.folders.join(", "))));
    }
    facts.extend(screen.model().map(|model| ("Model", model.to_owned())));
    if !intro.instructions.is_empty() {
        facts.push(("Instructions", intro.instructions.join(", ")));
    }
    for (name, lines) in [("Also used", &intro.places), ("Not used", &intro.left_out)] {
        match lines.as_slice() {
            [] => {}
            [only] => facts.push((name, only.clone())),
            [first, rest @ ..] => facts.push((name, format!("{first}; {} more (/status)", rest.len()))),
        }
    }
    let (off, on): (Vec<_>, Vec<_>) =
        mcp_servers(&screen.servers).partition(|server| server.status == ServerStatus::Disabled);
    let mut servers: Vec<String> = on.into_iter().map(server_line).collect();
    if !off.is_empty() {
        servers.push(format!("{} disabled", off.len()));
    }
    if !servers.is_empty() {
        facts.push(("MCP servers", servers.join(", ")));
    }
    facts
}

/// The input that receives keys: the prompt, the reason for a refusal, or a field of a form.
fn active_input(screen: &mut Screen) -> &mut Input {
    let Screen { asks, input, .. } = screen;
    let focused = asks.focused;
    let field = asks.form.as_mut().filter(|_| focused).and_then(Form::input);
    asks.amendment.as_mut().map(|amendment| &mut amendment.input).or(field).unwrap_or(input)
}

fn draw_input(screen: &mut Screen, buffer: &mut Buffer, area: Rect) -> Option<Position> {
    let theme = screen.theme;
    let room = usize::from(area.width).saturating_sub(width(PROMPT_MARK));
    let input = active_input(screen);
    let (row, column) = input.place(room);
    let rows: Vec<(usize, usize)> = input.rows(room).to_vec();
    // The row of the cursor is always visible.
    let first = (row + 1).saturating_sub(area.height.into());
    let text = input.text().to_owned();
    for (at, (start, end)) in (0..area.height).zip(rows.iter().skip(first)) {
        let mark = if first == 0 && at == 0 { PROMPT_MARK } else { "  " };
        let typed = text.get(*start..*end).unwrap_or_default().to_owned();
        let line = Line::from(vec![Span::styled(mark, theme.accent), Span::styled(typed, theme.text)]);
        put(buffer, area, at, &line);
    }
    let x = u16::try_from(width(PROMPT_MARK) + column).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
    let y = u16::try_from(row.saturating_sub(first)).unwrap_or(0);
    (area.height > 0).then(|| Position::new(area.x + x, area.y + y.min(area.height - 1)))
}

fn steering_rows(screen: &Screen, columns: usize) -> Vec<Line<'static>> {
    let Some(text) = &screen.steering else { return Vec::new() };
    let when = if screen.is_steering_late { "sent after this turn" } else { "sent at the next step" };
    let text = format!("» {} ({when})", clean_line(text));
    vec![Line::from(Span::styled(shorten(&text, columns), screen.theme.dim))]
}

fn completion_rows(screen: &Screen, columns: usize) -> Vec<Line<'static>> {
    let Some(completion) = &screen.completion else { return Vec::new() };
    let theme = &screen.theme;
    let first = (completion.chosen + 1).saturating_sub(MAX_ROWS);
    let suggestions = completion.suggestions.iter().enumerate().skip(first).take(MAX_ROWS);
    let wide = suggestions
        .clone()
        .map(|(_, suggestion)| width(&suggestion.text))
        .max()
        .unwrap_or(0)
        .min(columns / 2);
    let row = |(at, suggestion): (usize, &super::completion::Suggestion)| {
        // The end of a path is its most useful part.
        let text = match completion.word.kind {
            CompletionKind::File => keep_end(&suggestion.text, columns.saturating_sub(2)),
            CompletionKind::Command | CompletionKind::Argument => {
                shorten(&suggestion.text, columns.saturating_sub(2))
            }
        };
        let space = " ".repeat(wide.saturating_sub(width(&text)) + 2);
        let room = columns.saturating_sub(width(&text) + space.len() + 2);
        let style = if at == completion.chosen { theme.chosen } else { theme.accent };
        let detail = format!("{space}{}", shorten(&suggestion.detail, room));
        Line::from(vec![Span::raw("  "), Span::styled(text, style), Span::styled(detail, theme.dim)])
    };
    let mut rows: Vec<Line<'static>> = suggestions.map(row).collect();
    rows.extend(more_row(completion.suggestions.len().saturating_sub(first + MAX_ROWS), theme));
    rows
}

fn keep_end(text: &str, columns: usize) -> String {
    let wide = width(text);
    if wide <= columns {
        return text.to_owned();
    }
    let mut end: String = text.chars().rev().take(columns.saturating_sub(1)).collect();
    end = end.chars().rev().collect();
    format!("…{end}")
}

fn overlay_rows(overlay: &mut Overlay, columns: usize, height: usize, theme: &Theme) -> Vec<Line<'static>> {
    match overlay {
        Overlay::Page(page) | Overlay::Rule { page, .. } | Overlay::AllowAll { page, .. } => {
            page.rows(columns, height, theme)
        }
        Overlay::Picker(picker) => picker_rows(picker, columns, height, theme),
        Overlay::Login(entry) => entry.rows(columns, theme),
    }
}

fn picker_rows(picker: &Picker, columns: usize, height: usize, theme: &Theme) -> Vec<Line<'static>> {
    let shown = picker.shown();
    let mut head = vec![Span::styled(picker.title, theme.heading)];
    let hint =
        if picker.filter.is_empty() { "type to narrow, Enter takes, Esc closes" } else { &picker.filter };
    head.push(Span::styled(format!("  {hint}"), theme.dim));
    let mut rows = vec![Line::from(head)];
    if shown.is_empty() {
        let hint = if picker.is_empty() { picker.empty_hint } else { "Nothing matches." };
        rows.extend(wrap::words(&[Span::styled(hint, theme.warning)], columns, &Indent::default()));
    }
    // The last row tells how many entries follow.
    let room = height.saturating_sub(2).max(1);
    let first = (picker.chosen + 1).saturating_sub(room);
    for (at, row) in shown.iter().enumerate().skip(first).take(room) {
        let detail = if row.detail.is_empty() { String::new() } else { format!("  {}", row.detail) };
        let text = shorten(&row.text, columns.saturating_sub(2 + width(&detail)).max(columns / 2));
        let style = if at == picker.chosen { theme.chosen } else { theme.text };
        rows.push(Line::from(vec![
            Span::raw("  "),
            Span::styled(text, style),
            Span::styled(detail, theme.dim),
        ]));
    }
    rows.extend(more_row(shown.len().saturating_sub(first + room), theme));
    rows
}

/// Tells how many entries follow the visible ones.
fn more_row(more: usize, theme: &Theme) -> Option<Line<'static>> {
    (more > 0).then(|| Line::from(Span::styled(format!("  … {more} more"), theme.dim)))
}
