//! Draws the screen: the chat, the open ask, the input and the status line.
//!
//! Invariant: nothing is drawn outside the area, however small it is; only visible entries are laid out.

use std::ops::Range;

use domain::AskKind;
use domain::item::ItemKind;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::commands::{mcp_servers, server_line};
use super::completion::{CompletionKind, MAX_ROWS};
use super::form::{self, Form};
use super::input::Input;
use super::picker::Picker;
use super::screen::{Overlay, Screen};
use super::status;
use super::theme::Theme;
use super::tool;
use super::wrap::{self, Indent};
use crate::text::{clean, clean_line, shorten, width};

/// The mark before the input.
const PROMPT_MARK: &str = "> ";
pub(crate) const NO_MODEL_HINT: &str = "No model can be used yet. Start Ollama or LM Studio with a model, run `dragoman models pull` for one that \
    runs inside Dragoman, run `dragoman login anthropic`, or set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY. \
    /doctor shows more.";

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
    let status = cut_bottom(&mut rest, 1);
    put(buffer, status, 0, &status::line(screen, columns));
    let most = (area.height / 3).max(1);
    let typed_rows =
        u16::try_from(active_input(screen).rows(columns.saturating_sub(2)).len()).unwrap_or(u16::MAX);
    let typed = cut_bottom(&mut rest, typed_rows.min(most));
    let cursor = draw_input(screen, buffer, typed);
    if rest.height > 4 {
        let rule = cut_bottom(&mut rest, 1);
        put(buffer, rule, 0, &Line::from(Span::styled("─".repeat(columns), theme.dim)));
    }
    for block in [ask_rows(screen, columns), steering_rows(screen, columns), completion_rows(screen, columns)]
    {
        let height = u16::try_from(block.len()).unwrap_or(u16::MAX).min(rest.height.saturating_sub(1));
        let place = cut_bottom(&mut rest, height);
        for (at, row) in (0..height).zip(&block) {
            put(buffer, place, at, row);
        }
    }
    match &mut screen.overlay {
        None => {
            let used = draw_chat(screen, buffer, rest);
            Drawn { cursor, unused: used..rest.height }
        }
        Some(overlay) => {
            let rows = overlay_rows(overlay, columns, rest.height.into(), &theme);
            let used = put_all(buffer, rest, &rows);
            Drawn { cursor: None, unused: used..rest.height }
        }
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

/// The first screen: version, folder, model, instructions and servers.
pub(crate) fn welcome(screen: &Screen, columns: usize) -> Vec<Line<'static>> {
    let theme = &screen.theme;
    let mut rows = Vec::new();
    let mut push = |text: &str, style: Style| {
        for line in clean(text).trim().split('\n') {
            rows.extend(wrap::words(&[Span::styled(line.to_owned(), style)], columns, &Indent::default()));
        }
    };
    push(&screen.catalog.welcome, theme.heading);
    push("", theme.dim);
    for (name, value) in facts(screen) {
        push(&format!("{name}: {value}"), theme.text);
    }
    push("", theme.dim);
    push("Ask something. / shows commands, @ adds files, F1 shows the keys, F2 earlier chats.", theme.dim);
    if screen.model().is_none() {
        push("", theme.dim);
        push(NO_MODEL_HINT, theme.warning);
    }
    for notice in &screen.catalog.notices {
        push("", theme.dim);
        push(&notice.text, theme.warning);
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
        if !lines.is_empty() {
            facts.push((name, shortened(lines)));
        }
    }
    let servers: Vec<String> = mcp_servers(&screen.servers).map(server_line).collect();
    if !servers.is_empty() {
        facts.push(("MCP servers", servers.join(", ")));
    }
    facts
}

/// The first lines of a list that `/status` shows whole.
fn shortened(lines: &[String]) -> String {
    const SHOWN: usize = 3;
    let mut text = lines.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    if lines.len() > SHOWN {
        text.push_str(&format!("; {} more (/status)", lines.len() - SHOWN));
    }
    text
}

/// The input that receives keys: the prompt, the reason for a refusal, or a field of a form.
fn active_input(screen: &mut Screen) -> &mut Input {
    let Screen { asks, input, .. } = screen;
    let focused = asks.focused;
    let field = asks.form.as_mut().filter(|_| focused).and_then(Form::input);
    asks.reason.as_mut().or(field).unwrap_or(input)
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

fn ask_rows(screen: &Screen, columns: usize) -> Vec<Line<'static>> {
    let Some(ask) = screen.asks.first() else { return Vec::new() };
    let theme = &screen.theme;
    let mut rows = Vec::new();
    let mut push = |text: &str, style: Style| {
        for line in clean(text).trim().split('\n') {
            rows.extend(wrap::words(&[Span::styled(line.to_owned(), style)], columns, &Indent::default()));
        }
    };
    match &ask.kind {
        AskKind::Approval { reason, keys } => {
            let call = screen.asks.item().and_then(|item| screen.transcript.item(item));
            let title = match call.map(|item| &item.kind) {
                Some(ItemKind::ToolCall(call)) => tool::title(call),
                _ => "a tool call".to_owned(),
            };
            let more = match screen.asks.count() {
                1 => String::new(),
                count => format!(" (1 of {count})"),
            };
            push(
                &format!("Allow this?{more}  {}", shorten(&title, columns.saturating_mul(3))),
                theme.warning,
            );
            push(reason, theme.dim);
            push(&approval_keys(screen, keys), theme.accent);
        }
        AskKind::Question { text, options, freeform, .. } => {
            push(text, theme.warning);
            for (at, option) in options.iter().enumerate() {
                let detail = option.description.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
                let chosen = if at == screen.asks.option { "→" } else { " " };
                push_option(&mut push, &format!("{chosen} {} {}{detail}", at + 1, option.label), theme);
            }
            let typed = if *freeform { ", or type an answer" } else { "" };
            let pick = if options.is_empty() { "Type an answer" } else { "A number or Enter" };
            push(&format!("{pick}{}", if options.is_empty() { "" } else { typed }), theme.accent);
        }
        AskKind::Form { text, .. } => {
            push(text, theme.warning);
            match &screen.asks.form {
                Some(form) => form_rows(screen, form, &mut push),
                None => push("This form cannot be shown in a terminal.", theme.dim),
            }
        }
    }
    rows
}

fn form_rows(screen: &Screen, form: &Form, push: &mut impl FnMut(&str, Style)) {
    let theme = &screen.theme;
    for (at, field) in form.fields.iter().enumerate() {
        let mark = if at == form.at { "→" } else { " " };
        let optional = if field.required { "" } else { " (optional)" };
        let value = match &field.kind {
            form::FieldKind::Choice { options, chosen } => {
                let option = |(at, (_, name)): (usize, &(_, String))| match Some(at) == *chosen {
                    true => format!("[{name}]"),
                    false => name.clone(),
                };
                options.iter().enumerate().map(option).collect::<Vec<_>>().join(" · ")
            }
            form::FieldKind::Text | form::FieldKind::Number => field.input.text().to_owned(),
        };
        push_option(push, &format!("{mark} {}{optional}: {value}", field.title), theme);
        if let Some(description) = field.description.as_ref().filter(|_| at == form.at) {
            push(&format!("\u{a0}\u{a0}{description}"), theme.dim);
        }
    }
    if let Some(problem) = &form.problem {
        push(problem, theme.bad);
    }
    push(&form_keys(screen, form), theme.accent);
}

fn form_keys(screen: &Screen, form: &Form) -> String {
    if !screen.asks.focused {
        return "Tab: answer (what you typed stays)".to_owned();
    }
    if !screen.asks.is_armed(screen.now) {
        return "…".to_owned();
    }
    let chooses =
        matches!(form.fields.get(form.at).map(|field| &field.kind), Some(form::FieldKind::Choice { .. }));
    let choose = if chooses { "← → choose · " } else { "" };
    let enter = if form.is_at_end() { "Enter sends" } else { "Enter: next" };
    let others = if form.fields.len() > 1 { " · ↑ ↓ another field" } else { "" };
    format!("{choose}{enter}{others} · Esc declines")
}

/// Keeps the leading space of options that are not selected.
fn push_option(push: &mut impl FnMut(&str, Style), text: &str, theme: &Theme) {
    push(&text.replacen("  ", "\u{a0} ", 1), theme.text);
}

fn approval_keys(screen: &Screen, keys: &[String]) -> String {
    if screen.asks.reason.is_some() {
        return "Why not? Enter refuses and tells the model, Esc goes back.".to_owned();
    }
    if !screen.asks.focused {
        return "Tab: answer (what you typed stays)".to_owned();
    }
    if !screen.asks.is_armed(screen.now) {
        return "…".to_owned();
    }
    let session = match keys {
        // It would be asked again.
        [] => String::new(),
        keys => format!("a this session ({}) · ", clean_line(&keys.join(", "))),
    };
    let project = if screen.project_rule().is_none() { "" } else { "p always in this project · " };
    format!("y once · {session}{project}n no · r no, and say why")
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
        Overlay::Page(page) | Overlay::Rule { page, .. } => page.rows(columns, height, theme),
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
