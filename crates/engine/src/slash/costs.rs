//! `/costs`: what a chat has used, as text.

use domain::event::SessionUsage;
use domain::model::Tokens;

use crate::session::Session;
use crate::spending;

pub(crate) async fn text(session: &Session) -> String {
    let usage = session.state().usage().clone();
    let today = spending::spent_today(session).await.ok();
    report(&usage, today)
}

fn report(usage: &SessionUsage, today: Option<f64>) -> String {
    let mut lines = vec![
        format!("This chat: {}", money(usage.session_cost)),
        format!("Tokens: {}", counts(&usage.total)),
        format!("Last call: {} ({})", money(usage.last_cost), counts(&usage.last)),
    ];
    if let Some(limit) = usage.context_limit.filter(|limit| *limit > 0) {
        lines.push(format!("Context: {} of {limit} tokens", usage.last.all()));
    }
    if let Some(today) = today {
        lines.push(format!("Today on this machine: {}", money(Some(today))));
    }
    if !usage.spent.is_empty() {
        lines.push("\nSpent on:".to_owned());
    }
    for row in &usage.spent {
        let (purpose, model, calls) = (&row.purpose, &row.model, row.calls);
        let calls = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
        lines.push(format!("- {purpose}, {model}: {} in {calls} ({})", money(row.cost), counts(&row.tokens)));
    }
    if !usage.breaks.is_empty() {
        lines.push("\nThe provider's cache could not be used on because of:".to_owned());
    }
    for it in &usage.breaks {
        lines.push(format!("- {}: {} tokens were read anew, {}", it.reason, it.tokens, more(it.cost)));
    }
    lines.join("\n")
}

fn money(cost: Option<f64>) -> String {
    cost.map_or_else(|| "price unknown".to_owned(), |cost| format!("${cost:.4}"))
}

fn more(cost: Option<f64>) -> String {
    cost.map_or_else(|| "at an unknown price".to_owned(), |cost| format!("${cost:.4} more"))
}

fn counts(tokens: &Tokens) -> String {
    format!(
        "{} in, {} cache read, {} cache written, {} out",
        tokens.input, tokens.cache_read, tokens.cache_write, tokens.output
    )
}
