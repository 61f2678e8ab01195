//! `/share`: this chat as one HTML file without scripts and addresses, which opens anywhere.
//!
//! Invariants: a new file inside the workspace, never over another one; every text is escaped.

use domain::Failure;
use domain::item::{Item, ItemKind};

use super::export;
use crate::session::Session;

/// Characters of a tool's result on the page.
const SHOWN_RESULT: usize = 4_000;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#1d2128;\
    background:#fff}h1{font-size:1.4rem}.you{background:#e9edf3;border-radius:.4rem;padding:.6rem .9rem;white-space:pre-wrap}\
    .answer{white-space:pre-wrap;margin:1rem 0}details{margin:.4rem 0;color:#4b5563}pre{overflow:auto;background:#f4f5f7;\
    padding:.6rem;border-radius:.4rem}@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#16181d}\
    .you{background:#2a2e38}pre{background:#22252c}details{color:#a3a9b5}}";

pub(super) fn write(session: &Session, file: Option<&str>) -> Result<String, Failure> {
    let (title, page) = {
        let state = session.state();
        let title = state.settings().title.clone().unwrap_or_else(|| session.id.to_string());
        let page = page(&title, state.items());
        (title, page)
    };
    let name = file.map_or_else(|| export::file_name(&title, "html"), str::to_owned);
    let path = export::write_new(session, &name, &page, "/share notes/chat.html")?;
    Ok(format!(
        "This chat is written to {}. It has everything that was said, so look at it before you send it.",
        path.display()
    ))
}

fn page(title: &str, items: &[Item]) -> String {
    let title = escape(title);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1>\n"
    );
    for item in items {
        page.push_str(&section(&item.kind));
    }
    page.push_str("</html>\n");
    page
}

fn section(kind: &ItemKind) -> String {
    if let ItemKind::UserMessage { text, .. } = kind {
        return format!("<p class=\"you\">{}</p>\n", escape(text.trim()));
    }
    if let ItemKind::AgentMessage { text, .. } = kind {
        return format!("<div class=\"answer\">{}</div>\n", escape(text.trim()));
    }
    let (summary, text) = if let ItemKind::ToolCall(call) = kind {
        let result: Vec<&str> = call.result.iter().map(export::part_text).collect();
        let shown: String = result.join("\n").chars().take(SHOWN_RESULT).collect();
        (if call.summary.is_empty() { call.name.clone() } else { call.summary.clone() }, shown)
    } else if let ItemKind::Compaction { summary, .. } = kind {
        ("Summary".to_owned(), summary.clone())
    } else {
        return String::new();
    };
    format!("<details><summary>{}</summary><pre>{}</pre></details>\n", escape(&summary), escape(&text))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_of_a_chat_is_text_on_the_page() {
        let made = page("<script>", &[]);
        assert!(made.contains("<title>&lt;script&gt;</title>") && !made.contains("<script>"), "{made}");
    }
}
