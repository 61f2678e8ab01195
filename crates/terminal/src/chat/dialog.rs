//! Draws the open question: a frame with what would happen, why it is asked, and the list of answers.
//!
//! Must not change anything. Invariants: the answers are always visible, however small the place is; a command that does
//! not fit is shown whole in the chat above, and the frame says so.

use domain::AskKind;
use domain::tool_call::{Details, Origin, ToolCall};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::approval_keys::command_of;
use super::asks::{AmendmentKind, ApprovalOption};
use super::form::{self, Form};
use super::screen::Screen;
use super::theme::Theme;
use super::tool;
use super::wrap::{self, Indent};
use crate::text::{clean, clean_line, shorten, width};

/// Narrower screens have no frame.
const MIN_FRAME_COLUMNS: usize = 30;
/// The rows of a command inside the frame.
const MAX_SUBJECT_ROWS: usize = 8;

/// The rows of the first question, at most `height` of them.
pub(super) fn rows(screen: &Screen, columns: usize, height: usize) -> Vec<Line<'static>> {
    let Some(ask) = screen.asks.first() else { return Vec::new() };
    let theme = &screen.theme;
    let mut rows = Vec::new();
    let mut push = |text: &str, style: Style| {
        for line in clean(text).trim().split('\n') {
            rows.extend(wrap::words(&[Span::styled(line.to_owned(), style)], columns, &Indent::default()));
        }
    };
    match &ask.kind {
        AskKind::Approval { reason, keys } => return approval_rows(screen, reason, keys, columns, height),
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

fn approval_rows(
    screen: &Screen,
    reason: &str,
    keys: &[String],
    columns: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let theme = &screen.theme;
    let is_framed = columns >= MIN_FRAME_COLUMNS && !screen.look.is_linear;
    let room = if is_framed { columns - 4 } else { columns };
    let call = screen.asked_call();
    let answers = match &screen.asks.amendment {
        Some(amendment) => said(amendment_hint(amendment.kind), theme.accent, room),
        None => option_rows(screen, keys, room),
    };
    let mut reasons = said(reason, theme.dim, room);
    let mut subject = subject_rows(call, room, theme);
    // The frame takes two rows; what the answers leave is for the subject, then for the reason.
    let left = height.saturating_sub(answers.len() + 2);
    reasons.truncate(left.saturating_sub(1));
    let limit = left.saturating_sub(reasons.len()).min(MAX_SUBJECT_ROWS);
    if subject.len() > limit {
        let more = subject.len() - limit.saturating_sub(1);
        subject.truncate(limit.saturating_sub(1));
        if limit > 0 {
            let text = format!("… {more} more rows, whole in the chat above (PgUp)");
            subject.push(Line::from(Span::styled(shorten(&text, room), theme.warning)));
        }
    }
    let spare = left > subject.len() + reasons.len() + 1;
    let gap = spare.then(Line::default);
    let body: Vec<Line<'static>> = subject.into_iter().chain(reasons).chain(gap).chain(answers).collect();
    let count = match screen.asks.count() {
        1 => String::new(),
        count => format!("1 of {count}"),
    };
    let head = question(call);
    let foot = foot(screen, room);
    if is_framed {
        frame(&head, &count, body, &foot, columns, theme)
    } else {
        let line = |text: String, style| Line::from(Span::styled(shorten(&text, columns), style));
        let head = line(format!("{head} {count}"), theme.warning);
        std::iter::once(head).chain(body).chain([line(foot, theme.accent)]).collect()
    }
}

/// What is asked, by the kind of the call.
fn question(call: Option<&ToolCall>) -> String {
    let Some(call) = call else { return "Allow this?".to_owned() };
    match &call.details {
        _ if command_of(call).is_some() => "Run this command?".to_owned(),
        Some(Details::FileChange(change)) => {
            let name = change.path.file_name().map_or_else(
                || change.path.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            );
            format!("Change {}?  +{} −{}", clean_line(&name), change.lines_added, change.lines_removed)
        }
        _ if call.name == "fetch_url" && call.server == "eca" => "Fetch this page?".to_owned(),
        _ if call.origin == Origin::Mcp => {
            format!("Let the MCP server {} do this?", clean_line(&call.server))
        }
        _ => "Allow this?".to_owned(),
    }
}

/// The command in full; a change is the diff above.
fn subject_rows(call: Option<&ToolCall>, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(call) = call else { return said("a tool call", theme.text, columns) };
    let text = match (command_of(call), &call.details) {
        (Some(command), _) => domain::visible_source(command).into_owned(),
        (None, Some(Details::FileChange(_))) => tool::title(call),
        (None, _) if call.origin == Origin::Mcp => {
            format!("{}\n{}", tool::title(call), tool::input_text(call))
        }
        (None, _) => tool::title(call),
    };
    let mut rows = Vec::new();
    for line in clean(&text).trim_end().split('\n') {
        let span = Span::styled(line.to_owned(), theme.heading);
        rows.extend(wrap::soft(&[span], columns, &Indent::default()));
    }
    rows
}

fn option_rows(screen: &Screen, keys: &[String], columns: usize) -> Vec<Line<'static>> {
    let theme = &screen.theme;
    let mut rows = Vec::new();
    for (at, option) in screen.approval_options().into_iter().enumerate() {
        let is_marked = at == screen.asks.option && screen.asks.focused;
        let mark = if is_marked { "▌" } else { " " };
        let style = if is_marked { theme.chosen } else { theme.text };
        let indent = Indent {
            first: vec![Span::styled(format!("{mark}{} ", at + 1), theme.accent)],
            other: vec![Span::raw("   ")],
        };
        let label = Span::styled(option_text(option, keys, screen.asks.approvals().count()), style);
        let mut lines = wrap::words(&[label], columns.saturating_sub(3), &indent);
        if let Some(first) = lines.first_mut() {
            let used: usize = first.spans.iter().map(|span| width(&span.content)).sum();
            let space = " ".repeat(columns.saturating_sub(used + 1));
            first.push_span(Span::styled(space, if is_marked { theme.chosen } else { theme.text }));
            first.push_span(Span::styled(option.letter().to_string(), theme.accent));
        }
        rows.extend(lines);
    }
    rows
}

fn option_text(option: ApprovalOption, keys: &[String], count: usize) -> String {
    match option {
        ApprovalOption::Once => "Yes, once".to_owned(),
        ApprovalOption::Session => {
            format!("Yes, for the rest of this chat: {}", clean_line(&keys.join(", ")))
        }
        ApprovalOption::Project => "Yes, always in this project (shows the rule first)".to_owned(),
        ApprovalOption::All => format!("Yes, all {count} of these (shows them first)"),
        ApprovalOption::No => "No".to_owned(),
        ApprovalOption::NoWithReason => "No, and say what to do instead".to_owned(),
    }
}

fn amendment_hint(kind: AmendmentKind) -> &'static str {
    match kind {
        AmendmentKind::Refusal => "Why not? Enter refuses and tells the model, Esc goes back.",
        AmendmentKind::Addition => {
            "Yes, and tell the model something. Enter allows the call and says it, Esc goes back."
        }
        AmendmentKind::Command => {
            "Change the command. Enter makes the model run this one and allows it once, Esc goes back."
        }
    }
}

/// The keys, once they answer.
fn foot(screen: &Screen, columns: usize) -> String {
    if screen.asks.amendment.is_some() {
        return "Enter sends, Esc goes back".to_owned();
    }
    if !screen.asks.focused {
        return "Tab: answer (what you typed stays)".to_owned();
    }
    if !screen.asks.is_armed(screen.now) {
        return "…".to_owned();
    }
    let changes = if columns < 36 { "Tab" } else { "Tab changes it" };
    format!("Enter · {changes} · ? explains")
}

fn frame(
    head: &str,
    right: &str,
    body: Vec<Line<'static>>,
    foot: &str,
    columns: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let edge = |text: &str| Span::styled(text.to_owned(), theme.warning);
    let rule = |count: usize| Span::styled("─".repeat(count), theme.warning);
    let right = if right.is_empty() { String::new() } else { format!(" {right} ") };
    let head = format!(" {} ", shorten(head, columns.saturating_sub(6 + width(&right))));
    let top = Line::from(vec![
        edge("╭─"),
        Span::styled(head.clone(), theme.warning),
        rule(columns.saturating_sub(4 + width(&head) + width(&right))),
        Span::styled(right, theme.dim),
        edge("─╮"),
    ]);
    let foot = format!(" {} ", shorten(foot, columns.saturating_sub(4)));
    let bottom = Line::from(vec![
        edge("╰"),
        Span::styled(foot.clone(), theme.accent),
        rule(columns.saturating_sub(2 + width(&foot))),
        edge("╯"),
    ]);
    let inner = body.into_iter().map(|line| {
        let used: usize = line.spans.iter().map(|span| width(&span.content)).sum();
        let mut spans = vec![edge("│ ")];
        spans.extend(line.spans);
        spans.push(Span::raw(" ".repeat(columns.saturating_sub(used + 4))));
        spans.push(edge(" │"));
        Line::from(spans)
    });
    std::iter::once(top).chain(inner).chain([bottom]).collect()
}

fn said(text: &str, style: Style, columns: usize) -> Vec<Line<'static>> {
    let text = clean(text);
    let lines = text.trim().split('\n');
    let wrapped = lines
        .flat_map(|line| wrap::words(&[Span::styled(line.to_owned(), style)], columns, &Indent::default()));
    wrapped.collect()
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
