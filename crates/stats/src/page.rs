//! The figures as one HTML page that opens offline: no script, no address, no font of elsewhere.
//!
//! Invariant: every text from a chat is escaped.

use std::fmt::Write;

use crate::collect::{Figures, Stats, sorted};
use crate::text::{cost, duration, number};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
    table{border-collapse:collapse;width:100%;margin:.5rem 0 2rem}td,th{padding:.2rem .5rem;text-align:right;\
    white-space:nowrap}td:first-child,th:first-child{text-align:left;max-width:22rem;overflow:hidden;\
    text-overflow:ellipsis}td.bar{width:40%}.bar div{height:.9rem;background:#3b7dd8;border-radius:2px}\
    tr:nth-child(even){background:#8881}@media(prefers-color-scheme:dark){body{background:#16191f;color:#d8dee9}}";

pub fn render(stats: &Stats) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Dragoman: usage</title><style>{STYLE}</style><h1>Usage</h1>"
    );
    let total = &stats.total;
    let cache = total.cache_hits().map_or("no".to_owned(), |percent| format!("{percent} %"));
    let _ = write!(
        page,
        "<p>{} requests, {} tokens, {cache} cache hits, {}, {} of work, {} tool calls.</p>",
        total.requests,
        number(total.tokens.all()),
        cost(total),
        duration(total.millis),
        total.tool_calls
    );
    let days: Vec<(String, &Figures)> = stats.days.iter().map(|(day, it)| (day.to_string(), it)).collect();
    let days: Vec<(&str, &Figures)> = days.iter().map(|(day, it)| (day.as_str(), *it)).collect();
    table(&mut page, "By day", &days);
    table(&mut page, "By model", &sorted(&stats.models));
    table(&mut page, "By project", &sorted(&stats.projects));
    let mut chats: Vec<(&str, &Figures)> =
        stats.chats.values().map(|(title, it)| (title.as_str(), it)).collect();
    chats.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.tokens.all()));
    table(&mut page, "By chat", &chats);
    page.push_str("<h2>By tool</h2><table><tr><th>tool<th>calls<th>failed</tr>");
    for (name, (calls, failed)) in &stats.tools {
        let _ = write!(page, "<tr><td>{}<td>{calls}<td>{failed}</tr>", escape(name));
    }
    page.push_str("</table></html>\n");
    page
}

fn table(page: &mut String, title: &str, rows: &[(&str, &Figures)]) {
    let _ = write!(
        page,
        "<h2>{title}</h2><table><tr><th><th><th>tokens<th>cache<th>cost<th>time<th>requests<th>tools</tr>"
    );
    let most = rows.iter().map(|(_, figures)| figures.tokens.all()).max().unwrap_or(0).max(1);
    for (name, figures) in rows {
        let share = figures.tokens.all() * 100 / most;
        let cache = figures.cache_hits().map_or(String::new(), |percent| format!("{percent} %"));
        let _ = write!(
            page,
            "<tr><td title=\"{0}\">{0}<td class=\"bar\"><div style=\"width:{share}%\"></div><td>{1}<td>{cache}<td>{2}\
             <td>{3}<td>{4}<td>{5}</tr>",
            escape(name),
            number(figures.tokens.all()),
            cost(figures),
            duration(figures.millis),
            figures.requests,
            figures.tool_calls
        );
    }
    page.push_str("</table>");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
