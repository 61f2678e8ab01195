//! A tool call as rows: one line that says what it is and how it went, and what stands behind it when it is opened.

use domain::Part;
use domain::item::{PlanEntry, PlanStatus};
use domain::tool_call::{Details, RejectedBy, ToolCall, ToolState};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::diff;
use super::theme::Theme;
use super::wrap::{self, Indent};
use crate::text::{clean, clean_line, shorten, width};

/// Rows of input or output that are drawn; the rest is told as a number.
const MOST: usize = 400;
/// A call that took less is not timed on the screen.
const SLOW: u64 = 1000;

pub fn render(call: &ToolCall, open: bool, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut rows = vec![headline(call, open, columns, theme)];
    if open {
        body(call, columns, theme, &mut rows);
    }
    rows
}

/// What the call is, in one line of text.
pub fn title(call: &ToolCall) -> String {
    let summary = clean_line(&call.summary);
    if !summary.is_empty() {
        return summary;
    }
    let argument = call.input.as_ref().and_then(main_argument);
    match argument {
        Some(argument) => format!("{} {argument}", clean_line(&call.name)),
        None => clean_line(&call.name),
    }
}

fn main_argument(input: &Value) -> Option<String> {
    let known = ["command", "path", "query", "pattern", "url"];
    known.iter().find_map(|name| input.get(name)?.as_str()).map(clean_line)
}

fn headline(call: &ToolCall, open: bool, columns: usize, theme: &Theme) -> Line<'static> {
    let (sign, style, state) = sign(call, theme);
    let arrow = if open { "▾ " } else { "▸ " };
    let mut tail = String::new();
    if let Some(Details::FileChange(change)) = &call.details {
        tail = format!("  +{} −{}", change.lines_added, change.lines_removed);
    }
    if call.millis >= SLOW {
        tail.push_str(&format!("  {} s", call.millis / 1000));
    }
    if !state.is_empty() {
        tail.push_str("  ");
        tail.push_str(state);
    }
    let room = columns.saturating_sub(4);
    let tail = shorten(&tail, room / 2);
    let title = shorten(&title(call), room.saturating_sub(width(&tail)));
    Line::from(vec![
        Span::styled(arrow, theme.dim),
        Span::styled(format!("{sign} "), style),
        Span::styled(title, theme.text),
        Span::styled(tail, theme.dim),
    ])
}

fn sign(call: &ToolCall, theme: &Theme) -> (&'static str, Style, &'static str) {
    match &call.state {
        ToolState::Preparing => ("…", theme.dim, "preparing"),
        ToolState::Waiting { .. } => ("?", theme.warning, "waits for you"),
        ToolState::Running => ("●", theme.accent, "running"),
        ToolState::Done if call.error => ("✗", theme.bad, "failed"),
        ToolState::Done => ("✓", theme.good, ""),
        ToolState::Rejected { by: RejectedBy::User } => ("✗", theme.bad, "refused by you"),
        ToolState::Rejected { by: RejectedBy::Policy } => ("✗", theme.bad, "refused by a rule"),
        ToolState::Rejected { by: RejectedBy::Unasked } => ("✗", theme.bad, "refused: nobody to ask"),
        ToolState::Stopped { unknown: true } => ("■", theme.warning, "cut off, outcome unknown"),
        ToolState::Stopped { .. } => ("■", theme.warning, "stopped"),
    }
}

fn body(call: &ToolCall, columns: usize, theme: &Theme, rows: &mut Vec<Line<'static>>) {
    let indent = Indent::same(vec![Span::styled("  │ ", theme.dim)]);
    match &call.details {
        Some(Details::FileChange(change)) => {
            rows.extend(diff::render(&change.diff, columns, theme, &indent));
        }
        Some(Details::Tasks { entries }) => rows.extend(plan(entries, columns, theme)),
        _ => input(call, columns, theme, &indent, rows),
    }
    let result: Vec<&str> = call.result.iter().map(part_text).collect();
    let result = if call.state.is_over() { result.join("\n") } else { call.live_output.clone() };
    let is_change = matches!(call.details, Some(Details::FileChange(_)));
    if !result.trim().is_empty() && (call.error || !is_change) {
        let rule = Span::styled("  ├──", theme.dim);
        rows.push(Line::from(rule));
        let style = if call.error { theme.removed } else { theme.dim };
        block(&result, style, columns, &indent, rows);
    }
}

fn input(call: &ToolCall, columns: usize, theme: &Theme, indent: &Indent, rows: &mut Vec<Line<'static>>) {
    let text = match &call.input {
        Some(Value::Object(members)) if members.len() == 1 => {
            members.values().next().map(plain).unwrap_or_default()
        }
        Some(Value::Object(members)) => {
            let lines = members.iter().map(|(name, value)| format!("{name}: {}", plain(value)));
            lines.collect::<Vec<_>>().join("\n")
        }
        _ => call.input_text.clone(),
    };
    block(&text, theme.text, columns, indent, rows);
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn part_text(part: &Part) -> &str {
    match part {
        Part::Text { text } => text,
        Part::Image { .. } => "(an image)",
    }
}

/// The beginning and the end of a long text.
fn block(text: &str, style: Style, columns: usize, indent: &Indent, rows: &mut Vec<Line<'static>>) {
    let text = clean(text);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let left_out = lines.len().saturating_sub(MOST);
    let (head, tail) = if left_out > 0 { lines.split_at(MOST / 2) } else { (&lines[..], &lines[..0]) };
    let mut put = |line: &str| {
        // A line of a megabyte would be a thousand rows.
        let line = crate::text::take_columns(line, columns.max(1) * 40);
        rows.extend(wrap::hard(&[Span::styled(line.to_owned(), style)], columns, indent));
    };
    head.iter().for_each(|line| put(line));
    if left_out > 0 {
        put(&format!("… {left_out} lines left out …"));
        tail.iter().skip(left_out).for_each(|line| put(line));
    }
}

pub fn plan(entries: &[PlanEntry], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    for entry in entries {
        let (sign, style) = match entry.status {
            PlanStatus::Pending => ("○ ", theme.dim),
            PlanStatus::InProgress => ("● ", theme.accent),
            PlanStatus::Done => ("✓ ", theme.good),
        };
        let indent =
            Indent { first: vec![Span::styled(format!("  {sign}"), style)], other: vec![Span::raw("    ")] };
        let text = Span::styled(clean_line(&entry.text), theme.text);
        rows.extend(wrap::words(&[text], columns, &indent));
    }
    rows
}
