//! What a chat has used, as text.

use domain::model::Tokens;

use crate::shared::Shared;

pub async fn text(shared: &Shared) -> String {
    let usage = shared.state().usage.clone();
    let money =
        |cost: Option<f64>| cost.map_or_else(|| "price unknown".to_owned(), |cost| format!("${cost:.4}"));
    let mut lines = vec![
        format!("This chat: {}", money(usage.session_cost)),
        format!("Tokens: {}", counts(&usage.total)),
        format!("Last call: {} ({})", money(usage.last_cost), counts(&usage.last)),
    ];
    if let Some(limit) = usage.context_limit.filter(|limit| *limit > 0) {
        lines.push(format!("Context: {} of {limit} tokens", usage.last.all()));
    }
    lines.join("\n")
}

fn counts(tokens: &Tokens) -> String {
    format!(
        "{} in, {} cache read, {} cache written, {} out",
        tokens.input, tokens.cache_read, tokens.cache_write, tokens.output
    )
}
