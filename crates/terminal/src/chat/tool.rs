//! Draws a tool call: a line with its title and state, and its input and output if it is open.

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

/// The rows of input or output that are drawn; the rest is shown as a number.
const MAX_ROWS: usize = 400;
/// The rows of a folded call: of its diff, and of its output.
const PREVIEW_DIFF_ROWS: usize = 12;
const PREVIEW_ROWS: usize = 3;
/// The screen shows the duration of calls that took at least this long.
const SLOW_CALL_MILLIS: u64 = 1000;

pub(crate) fn render(call: &ToolCall, open: bool, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut rows = vec![headline(call, open, columns, theme)];
    if open {
        body(call, columns, theme, &mut rows);
    } else if call.state.is_over() {
        preview(call, columns, theme, &mut rows);
    }
    rows
}

/// The rows of a shell command's output.
pub(crate) fn output_rows(title: &str, text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let indent = Indent::same(vec![Span::styled("  │ ", theme.dim)]);
    let mut rows = wrap::hard(&[Span::styled(clean_line(title), theme.accent)], columns, &Indent::default());
    block(text, theme.text, columns, &indent, &mut rows);
    rows
}

/// The first lines of a finished call, which stay visible while it is folded.
fn preview(call: &ToolCall, columns: usize, theme: &Theme, rows: &mut Vec<Line<'static>>) {
    let indent = Indent::same(vec![Span::styled("  │ ", theme.dim)]);
    let (mut all, limit) = match &call.details {
        Some(Details::FileChange(change)) if !call.error => (
            diff::render(
                &change.diff,
                &change.path.to_string_lossy(),
                diff::MAX_ROWS,
                columns,
                theme,
                &indent,
            ),
            PREVIEW_DIFF_ROWS,
        ),
        Some(Details::Tasks { entries }) if !call.error => (plan(entries, columns, theme), MAX_ROWS),
        _ if call.error || shows_output(call) => {
            let texts: Vec<&str> = call.result.iter().map(part_text).collect();
            let style = if call.error { theme.removed } else { theme.dim };
            let text = texts.join("\n");
            let first: Vec<&str> = text.trim_end().lines().take(PREVIEW_ROWS + 1).collect();
            let mut all = Vec::new();
            block(&first.join("\n"), style, columns, &indent, &mut all);
            let more = text.trim_end().lines().count().saturating_sub(first.len());
            all.extend(std::iter::repeat_n(Line::default(), more));
            (all, PREVIEW_ROWS)
        }
        _ => return,
    };
    let more = all.len().saturating_sub(limit);
    all.truncate(limit);
    rows.extend(all);
    if more > 0 {
        let text = format!("  │ … {more} more (Ctrl-O opens)");
        rows.push(Line::from(Span::styled(shorten(&text, columns), theme.dim)));
    }
}

/// Output of commands is worth a preview; the content of a file that was read is not.
fn shows_output(call: &ToolCall) -> bool {
    let is_shell = matches!(call.details, Some(Details::Shell { .. })) || call.name == "shell_command";
    let is_empty = call.result.iter().all(|part| matches!(part_text(part).trim(), "" | "(no output)"));
    is_shell && !is_empty
}

/// The title of the call, in one line.
pub(crate) fn title(call: &ToolCall) -> String {
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
    if call.millis >= SLOW_CALL_MILLIS {
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
        ToolState::Rejected { by: RejectedBy::Hook } => ("✗", theme.bad, "refused by a hook"),
        ToolState::Rejected { by: RejectedBy::Unasked } => ("✗", theme.bad, "refused: nobody to ask"),
        ToolState::Stopped { unknown: true } => ("■", theme.warning, "cut off, outcome unknown"),
        ToolState::Stopped { .. } => ("■", theme.warning, "stopped"),
    }
}

fn body(call: &ToolCall, columns: usize, theme: &Theme, rows: &mut Vec<Line<'static>>) {
    let indent = Indent::same(vec![Span::styled("  │ ", theme.dim)]);
    match &call.details {
        Some(Details::FileChange(change)) => {
            let most =
                if matches!(call.state, ToolState::Waiting { .. }) { usize::MAX } else { diff::MAX_ROWS };
            rows.extend(diff::render(
                &change.diff,
                &change.path.to_string_lossy(),
                most,
                columns,
                theme,
                &indent,
            ));
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

/// The input as text, with every character visible.
pub(super) fn input_text(call: &ToolCall) -> String {
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
    domain::visible_source(&text).into_owned()
}

fn input(call: &ToolCall, columns: usize, theme: &Theme, indent: &Indent, rows: &mut Vec<Line<'static>>) {
    let text = input_text(call);
    // What waits for an answer is shown whole.
    if matches!(call.state, ToolState::Waiting { .. }) {
        for line in clean(&text).trim_end().lines() {
            rows.extend(wrap::soft(&[Span::styled(line.to_owned(), theme.text)], columns, indent));
        }
        return;
    }
    block(&text, theme.text, columns, indent, rows);
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn part_text(part: &Part) -> &str {
    match part {
        Part::Text { text } => text,
        Part::Image { .. } => "(an image)",
    }
}

/// Draws the start and the end of a long text.
fn block(text: &str, style: Style, columns: usize, indent: &Indent, rows: &mut Vec<Line<'static>>) {
    let text = clean(text);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let omitted = lines.len().saturating_sub(MAX_ROWS);
    let (head, tail) = if omitted > 0 { lines.split_at(MAX_ROWS / 2) } else { (&lines[..], &lines[..0]) };
    let mut push = |line: &str| {
        // Cut very long lines: a line of a megabyte would take a thousand rows.
        let line = crate::text::take_columns(line, columns.max(1) * 40);
        rows.extend(wrap::soft(&[Span::styled(line.to_owned(), style)], columns, indent));
    };
    head.iter().for_each(|line| push(line));
    if omitted > 0 {
        push(&format!("… {omitted} lines omitted …"));
        tail.iter().skip(omitted).for_each(|line| push(line));
    }
}

pub(crate) fn plan(entries: &[PlanEntry], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
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

#[cfg(test)]
mod tests {
    use domain::AskId;
    use domain::tool_call::{FileChange, Origin};
    use serde_json::json;

    use super::*;
    use crate::chat::theme::Palette;

    fn waiting(input: Value, details: Option<Details>) -> ToolCall {
        ToolCall {
            call_id: String::new(),
            name: "shell_command".to_owned(),
            server: "eca".to_owned(),
            origin: Origin::Native,
            input_text: String::new(),
            input: Some(input),
            state: ToolState::Waiting { ask: AskId(1) },
            summary: String::new(),
            details,
            manual_approval: true,
            live_output: String::new(),
            result: Vec::new(),
            error: false,
            millis: 0,
            locations: Vec::new(),
            provider: None,
        }
    }

    fn shown(call: &ToolCall) -> String {
        let rows = render(call, true, 60, &Theme::new(Palette::Plain));
        let text = |row: &Line<'_>| row.spans.iter().map(|span| span.content.clone()).collect::<String>();
        rows.iter().skip(1).map(|row| text(row).replace("  │ ", "")).collect()
    }

    #[test]
    fn what_waits_for_an_answer_is_shown_whole() {
        let hidden =
            format!("echo safe {}; rm -rf ~\recho fine\u{202e}\u{200b}\u{1b}[2K", "x".repeat(60 * 50));
        let text = shown(&waiting(json!({"command": hidden}), None));
        assert!(text.contains("; rm -rf ~\\recho fine\\u{202e}\\u{200b}\\u{1b}[2K"), "{text}");
        let lines: Vec<String> = (0..3000).map(|number| format!("echo {number}")).collect();
        let text = shown(&waiting(json!({"command": lines.join("\n")}), None));
        assert!(lines.iter().all(|line| text.contains(line.as_str())));
        let diff: String = (0..3000).map(|number| format!("+line {number}\n")).collect();
        let change = FileChange {
            path: "a".into(),
            diff,
            lines_added: 3000,
            lines_removed: 0,
            old_text: None,
            new_text: None,
        };
        let text = shown(&waiting(json!({}), Some(Details::FileChange(change))));
        assert!(text.contains("+line 2999"));
    }
}
