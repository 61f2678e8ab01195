//! The status line: activity, model, usage. A narrow line drops the pieces with the smallest weight.

use domain::event::SessionUsage;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::{Map, Value};

use super::figures::{money, short};
use super::screen::{Effect, Screen};
use super::status_line::StatusLine;
use crate::text::{clean_line, shorten, width};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

struct Piece {
    /// The piece with the smallest weight is dropped first.
    weight: u8,
    text: String,
    style: Style,
}

/// `has_header`: the model and the behavior are in the first line.
pub(crate) fn line(screen: &Screen, has_header: bool, columns: usize) -> Line<'static> {
    if let Some(text) = screen.flash_text() {
        return Line::from(Span::styled(shorten(&clean_line(text), columns), screen.theme.warning));
    }
    let mut pieces = match &screen.look.status_line {
        Some(own) => own_pieces(screen, own),
        None => pieces(screen, has_header),
    };
    let total_width = |pieces: &[Piece]| {
        pieces.iter().map(|piece| width(&piece.text)).sum::<usize>() + 3 * pieces.len().saturating_sub(1)
    };
    while pieces.len() > 1 && total_width(&pieces) > columns {
        let lightest = pieces.iter().map(|piece| piece.weight).min();
        pieces.retain(|piece| Some(piece.weight) != lightest);
    }
    let mut spans = Vec::new();
    for piece in pieces {
        if !spans.is_empty() {
            spans.push(Span::styled(" · ", screen.theme.dim));
        }
        spans.push(Span::styled(shorten(&piece.text, columns), piece.style));
    }
    Line::from(spans)
}

impl Screen {
    /// Lets the user's own command make the last line anew.
    pub(super) fn request_status(&mut self) {
        let Some(StatusLine::Command(command)) = &self.look.status_line else { return };
        let values: Map<String, Value> =
            values(self).into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let effect = Effect::Status { command: command.clone(), values: Value::Object(values) };
        self.push_newest(effect);
    }
}

/// The values that the user's own status line can show, by name.
pub(super) fn values(screen: &Screen) -> [(&'static str, String); 12] {
    let text = |text: Option<&str>| text.map(clean_line).unwrap_or_default();
    [
        ("model", text(screen.model())),
        ("behavior", clean_line(screen.behavior())),
        ("effort", text(screen.settings.variant.as_deref())),
        ("context", context(&screen.usage)),
        ("tokens", tokens(&screen.usage)),
        ("cost", screen.usage.session_cost.map(money).unwrap_or_default()),
        ("folder", text(screen.intro.folders.first().map(String::as_str))),
        ("branch", text(screen.intro.branch.as_deref())),
        ("jobs", jobs(screen.jobs)),
        ("taint", if screen.taint.is_tainted() { "tainted".to_owned() } else { String::new() }),
        ("title", text(screen.settings.title.as_deref())),
        ("version", screen.intro.version.clone()),
    ]
}

/// The template with its values. A part between two ` · ` whose values are all empty is left out.
fn fill_template(template: &str, values: &[(&'static str, String)]) -> String {
    let fill = |part: &str| {
        let named = values.iter().filter(|(name, _)| part.contains(&format!("{{{name}}}")));
        if named.clone().next().is_some() && named.clone().all(|(_, value)| value.is_empty()) {
            return None;
        }
        Some(named.fold(part.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value)))
    };
    template.split(" · ").filter_map(fill).collect::<Vec<_>>().join(" · ")
}

fn own_pieces(screen: &Screen, own: &StatusLine) -> Vec<Piece> {
    let theme = &screen.theme;
    let text = match own {
        StatusLine::Template(template) => fill_template(template, &values(screen)),
        StatusLine::Command(_) => screen.look.status_output.clone(),
    };
    let mut pieces = Vec::new();
    if let Some(since) = screen.busy {
        pieces.push(Piece { weight: 9, text: activity(screen, since), style: theme.accent });
    }
    if screen.vi.is_normal {
        pieces.push(Piece { weight: 9, text: "NORMAL".to_owned(), style: theme.accent });
    }
    let text = clean_line(&text);
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(Piece { weight: 5, text, style: theme.dim });
    }
    pieces
}

fn pieces(screen: &Screen, has_header: bool) -> Vec<Piece> {
    let theme = &screen.theme;
    let mut pieces = Vec::new();
    let mut push = |weight, text: String, style| {
        if !text.is_empty() {
            pieces.push(Piece { weight, text, style });
        }
    };
    if let Some(since) = screen.busy {
        push(9, activity(screen, since), theme.accent);
    } else if !screen.transcript.follows() {
        push(9, "Ctrl-End: to the end".to_owned(), theme.accent);
    }
    if !has_header {
        push(6, model(screen), theme.text);
        push(5, clean_line(screen.behavior()), theme.dim);
    }
    push(7, if screen.taint.is_tainted() { "tainted".to_owned() } else { String::new() }, theme.dim);
    push(7, jobs(screen.jobs), theme.accent);
    push(7, context(&screen.usage), theme.dim);
    push(4, tokens(&screen.usage), theme.dim);
    push(9, if screen.vi.is_normal { "NORMAL".to_owned() } else { String::new() }, theme.accent);
    push(8, screen.usage.session_cost.map(money).unwrap_or_default(), theme.dim);
    push(2, screen.settings.title.as_deref().map(clean_line).unwrap_or_default(), theme.dim);
    if screen.busy.is_none() && screen.usage.last.all() == 0 {
        push(1, "F1: keys".to_owned(), theme.dim);
    }
    pieces
}

/// The first line: model, folder, branch and behavior.
pub(super) fn header(screen: &Screen, columns: usize) -> Line<'static> {
    let theme = &screen.theme;
    let folder = screen.intro.folders.first().map(|folder| clean_line(folder)).unwrap_or_default();
    let branch = screen.intro.branch.as_ref().map(|it| format!(" ({})", clean_line(it))).unwrap_or_default();
    let behavior = clean_line(screen.behavior());
    let right = shorten(&format!("{} · {behavior}", model(screen)), columns);
    let room = columns.saturating_sub(width(&right) + 2);
    let left = shorten(&format!("{folder}{branch}"), room);
    let space = " ".repeat(columns.saturating_sub(width(&left) + width(&right)));
    Line::from(vec![Span::styled(left, theme.dim), Span::raw(space), Span::styled(right, theme.accent)])
}

fn model(screen: &Screen) -> String {
    let name = screen.model().map_or_else(|| "no model".to_owned(), clean_line);
    match screen.settings.variant.as_deref().filter(|effort| !effort.is_empty()) {
        Some(effort) => format!("{name} ({})", clean_line(effort)),
        None => name,
    }
}

/// Commands that run in the background; `/jobs` lists them.
fn jobs(running: usize) -> String {
    match running {
        0 => String::new(),
        1 => "1 job".to_owned(),
        more => format!("{more} jobs"),
    }
}

fn activity(screen: &Screen, since: std::time::Instant) -> String {
    let passed = screen.now.duration_since(since);
    let frame = usize::try_from(passed.as_millis() / 120).unwrap_or(0) % SPINNER.len();
    let spinner = if screen.look.is_calm { "●" } else { SPINNER[frame] };
    let activity = match (screen.stopping, screen.asks.count()) {
        (true, _) => "Stopping".to_owned(),
        (false, 0) if screen.progress.is_empty() => "Working".to_owned(),
        (false, 0) => {
            let waited = screen.now.saturating_duration_since(screen.progress_since).as_secs();
            count_down(&clean_line(&screen.progress), waited)
        }
        (false, _) => "Waits for you".to_owned(),
    };
    if screen.look.is_calm {
        return format!("{spinner} {activity}, Esc stops");
    }
    format!("{spinner} {activity} {} s, Esc stops", passed.as_secs())
}

/// `in 12 s` becomes smaller as the seconds pass.
fn count_down(text: &str, waited: u64) -> String {
    let Some((before, rest)) = text.split_once(" in ") else { return text.to_owned() };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    match rest[..digits].parse::<u64>() {
        Ok(seconds) if rest[digits..].starts_with(" s") => {
            format!("{before} in {}{}", seconds.saturating_sub(waited), &rest[digits..])
        }
        Ok(_) | Err(_) => text.to_owned(),
    }
}

fn context(usage: &SessionUsage) -> String {
    let used = usage.last.all();
    match usage.context_limit.filter(|limit| *limit > 0) {
        Some(limit) if used * 100 < limit && used > 0 => format!("<1 % of {}", short(limit)),
        Some(limit) if used > 0 => format!("{} % of {}", used * 100 / limit, short(limit)),
        _ => String::new(),
    }
}

fn tokens(usage: &SessionUsage) -> String {
    match usage.total.all() {
        0 => String::new(),
        all => format!("{} tokens", short(all)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_leaves_out_what_is_empty() {
        let values = [("model", "m1".to_owned()), ("cost", String::new()), ("branch", "main".to_owned())];
        let filled = |template| fill_template(template, &values);
        assert_eq!(filled("{model} · cost {cost} · on {branch}"), "m1 · on main");
        assert_eq!(filled("{model} {cost} · fixed · {unknown}"), "m1  · fixed · {unknown}");
    }

    #[test]
    fn seconds_are_counted_down() {
        let text = "The server is busy. Trying again in 12 s, at 10:00:00 UTC (attempt 2 of 8).";
        assert!(count_down(text, 5).contains("again in 7 s, at"), "{}", count_down(text, 5));
        assert!(count_down(text, 99).contains("in 0 s"));
        assert_eq!(count_down("Working in the dark", 3), "Working in the dark");
    }
}
