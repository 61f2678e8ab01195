//! The figures as charts of text, for a terminal. Prints nothing itself.

use std::fmt::Write;

use terminal::text::{shorten, width};

use crate::collect::{Figures, Stats, sorted};

/// The longest list of a section.
const MAX_ROWS: usize = 10;

pub fn render(stats: &Stats, columns: usize) -> String {
    if stats.total.requests == 0 && stats.total.tool_calls == 0 {
        return "Nothing was used in this time. `--days 365` looks further back.\n".to_owned();
    }
    let mut text = String::new();
    let _ = writeln!(text, "{}", summary(&stats.total));
    let days: Vec<(String, &Figures)> = stats.days.iter().map(|(day, it)| (day.to_string(), it)).collect();
    let skipped = days.len().saturating_sub(31);
    let days = days.iter().skip(skipped).map(|(day, figures)| (day.as_str(), *figures));
    section(&mut text, "By day", &days.collect::<Vec<_>>(), usize::MAX, columns);
    section(&mut text, "By model", &sorted(&stats.models), MAX_ROWS, columns);
    section(&mut text, "By project", &sorted(&stats.projects), MAX_ROWS, columns);
    let mut chats: Vec<(&str, &Figures)> =
        stats.chats.values().map(|(title, it)| (title.as_str(), it)).collect();
    chats.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.tokens.all()));
    section(&mut text, "By chat", &chats, MAX_ROWS, columns);
    tools(&mut text, stats, columns);
    text
}

fn summary(figures: &Figures) -> String {
    let cache =
        figures.cache_hits().map_or(String::new(), |percent| format!(", {percent} % of it from the cache"));
    format!(
        "{}: {} tokens read{cache}, {} written. {} in {} of work, with {}.",
        count(figures.requests, "request"),
        number(figures.tokens.input + figures.tokens.cache_read + figures.tokens.cache_write),
        number(figures.tokens.output),
        cost(figures),
        duration(figures.millis),
        count(figures.tool_calls, "tool call")
    )
}

fn section(text: &mut String, title: &str, rows: &[(&str, &Figures)], limit: usize, columns: usize) {
    let _ = writeln!(text, "\n{title}");
    let most = rows.iter().map(|(_, figures)| figures.tokens.all()).max().unwrap_or(0).max(1);
    let name_columns = (columns / 3).clamp(10, 40);
    // The figures after the bar: tokens, cost, time, calls.
    let bar_columns = columns.saturating_sub(name_columns + 40).clamp(4, 60);
    for (name, figures) in rows.iter().take(limit) {
        let filled = usize::try_from(figures.tokens.all() * bar_columns as u64 / most).unwrap_or(0);
        let name = shorten(name, name_columns);
        let space = " ".repeat(name_columns - width(&name));
        let _ = writeln!(
            text,
            "{name}{space} {:<bar_columns$} {:>7} {:>9} {:>8} {:>11}",
            "█".repeat(filled.max(1)),
            number(figures.tokens.all()),
            cost(figures),
            duration(figures.millis),
            count(figures.tool_calls, "call"),
        );
    }
    if rows.len() > limit {
        let _ = writeln!(text, "… and {} more (`--json` has all)", rows.len() - limit);
    }
}

fn tools(text: &mut String, stats: &Stats, columns: usize) {
    if stats.tools.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nBy tool");
    let mut tools: Vec<_> = stats.tools.iter().collect();
    tools.sort_by_key(|(_, (calls, _))| std::cmp::Reverse(*calls));
    let name_columns = (columns / 3).clamp(10, 40);
    for (name, (calls, failed)) in tools.into_iter().take(MAX_ROWS) {
        let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
        let name = shorten(name, name_columns);
        let _ = writeln!(text, "{name:<name_columns$} {}{failed}", count(*calls, "call"));
    }
}

/// `950`, `12.3k`, `1.2M`.
pub(crate) fn number(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

pub(crate) fn cost(figures: &Figures) -> String {
    let sign = if figures.is_cost_partial { "+" } else { "" };
    match figures.cost {
        cost if cost >= 0.1 || cost == 0.0 => format!("${cost:.2}{sign}"),
        cost if cost < 0.0001 => format!("<$0.0001{sign}"),
        cost => format!("${cost:.4}{sign}"),
    }
}

/// `1 call`, `2 calls`.
fn count(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

pub(crate) fn duration(millis: u64) -> String {
    match millis / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds => format!("{}.{} h", seconds / 3600, seconds % 3600 / 360),
    }
}
