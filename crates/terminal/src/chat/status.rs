//! The status line: activity, model, usage. A narrow line drops the pieces with the smallest weight.

use domain::Outcome;
use domain::event::{Level, SessionUsage};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::screen::Screen;
use crate::text::{clean_line, shorten, width};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

struct Piece {
    /// The piece with the smallest weight is dropped first.
    weight: u8,
    text: String,
    style: Style,
}

pub(crate) fn line(screen: &Screen, columns: usize) -> Line<'static> {
    if let Some(text) = screen.flash_text() {
        return Line::from(Span::styled(shorten(&clean_line(text), columns), screen.theme.warning));
    }
    let mut pieces = pieces(screen);
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

fn pieces(screen: &Screen) -> Vec<Piece> {
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
    let model = screen.model().map_or_else(|| "no model".to_owned(), clean_line);
    push(6, model, theme.text);
    push(5, clean_line(screen.behavior()), theme.dim);
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
    let activity = match (screen.stopping, screen.asks.count()) {
        (true, _) => "Stopping".to_owned(),
        (false, 0) if screen.progress.is_empty() => "Working".to_owned(),
        (false, 0) => {
            let waited = screen.now.saturating_duration_since(screen.progress_since).as_secs();
            count_down(&clean_line(&screen.progress), waited)
        }
        (false, _) => "Waits for you".to_owned(),
    };
    format!("{} {activity} {} s, Esc stops", SPINNER[frame], passed.as_secs())
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

pub(crate) fn money(dollars: f64) -> String {
    match dollars {
        0.0 => "$0.00".to_owned(),
        _ if dollars >= 0.1 => format!("${dollars:.2}"),
        // Never a nothing that is something.
        _ if dollars < 0.0001 => "<$0.0001".to_owned(),
        _ => format!("${dollars:.4}"),
    }
}

/// `950`, `12.3k`, `200k`, `1.2M`.
pub(crate) fn short(number: u64) -> String {
    let (value, unit) = match number {
        0..1000 => return number.to_string(),
        1000..1_000_000 => (number as f64 / 1e3, "k"),
        _ => (number as f64 / 1e6, "M"),
    };
    let text = if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// How a turn ended, where that is not as expected.
pub(super) fn outcome_notice(outcome: &Outcome) -> Option<(Level, String)> {
    match outcome {
        Outcome::Done => None,
        Outcome::Stopped => Some((Level::Warning, "Stopped.".to_owned())),
        Outcome::MaxTokens => {
            Some((Level::Warning, "The model reached its output limit. Say “go on” for the rest.".to_owned()))
        }
        Outcome::MaxSteps => {
            Some((Level::Warning, "The step limit was reached. Say “go on” to continue.".to_owned()))
        }
        Outcome::Repeating => Some((
            Level::Warning,
            "The model repeated the same call, so the turn was stopped. Say what to do instead.".to_owned(),
        )),
        Outcome::Refused { reason } => Some((Level::Error, format!("The model refused: {reason}"))),
        Outcome::Failed { failure } => Some((Level::Error, failure.to_string())),
        Outcome::Interrupted => Some((
            Level::Warning,
            "Dragoman ended in the middle of this; say “go on” to continue.".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (12_345, "12.3k"),
            (200_000, "200k"),
            (1_000_000, "1M"),
            (1_250_000, "1.2M"),
        ] {
            assert_eq!(short(number), text);
        }
        let text = "The server is busy. Trying again in 12 s, at 10:00:00 UTC (attempt 2 of 8).";
        assert!(count_down(text, 5).contains("again in 7 s, at"), "{}", count_down(text, 5));
        assert!(count_down(text, 99).contains("in 0 s"));
        assert_eq!(count_down("Working in the dark", 3), "Working in the dark");
        assert_eq!(money(0.0123), "$0.0123");
        assert_eq!(money(1.5), "$1.50");
    }
}
