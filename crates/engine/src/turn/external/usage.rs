//! What an agent says of its use of tokens and money → the usage of the chat.
//!
//! Agents report sums of their session, so what counts is the growth since the last report of the same model in this chat. A
//! smaller sum is that of a new session. Invariant: nothing is invented: what an agent does not report is not counted.

use domain::agent::AgentUsage;
use domain::event::{Fact, SessionUsage};
use domain::model::Tokens;

use crate::session::Session;
use crate::spending;

const PURPOSE: &str = "answers";

/// A report while the agent works. True where the chat has cost more since.
pub(super) fn record_report(session: &Session, model: &str, report: AgentUsage) -> bool {
    let mut cost = None;
    session.commit_with(|state| {
        let mut usage = state.usage().clone();
        usage.last = Tokens { input: report.used, ..Tokens::default() };
        usage.context_limit = Some(report.window).filter(|window| *window > 0);
        cost = report.cost.map(|sum| growth(sum, known_cost(&usage, model))).filter(|cost| *cost > 0.0);
        if let Some(cost) = cost {
            usage.last_cost = Some(cost);
            add(&mut usage, model, Tokens::default(), Some(cost), false);
        }
        vec![Fact::UsageChanged { usage }]
    });
    if session.inherited.is_none() {
        spending::charge_day_later(session, cost);
    }
    cost.is_some()
}

/// The end of a prompt.
pub(super) fn record_end(session: &Session, model: &str, tokens: Option<Tokens>) {
    session.commit_with(|state| {
        let mut usage = state.usage().clone();
        let known = usage.spent.iter().find(|spent| spent.model == model).map(|spent| spent.tokens);
        let grown = tokens.map_or_else(Tokens::default, |sum| tokens_growth(sum, known.unwrap_or_default()));
        add(&mut usage, model, grown, None, true);
        vec![Fact::UsageChanged { usage }]
    });
}

fn add(usage: &mut SessionUsage, model: &str, tokens: Tokens, cost: Option<f64>, is_call: bool) {
    spending::add_call(usage, PURPOSE, model, tokens, cost);
    let row = usage.spent.iter_mut().find(|spent| spent.purpose == PURPOSE && spent.model == model);
    if let Some(row) = row.filter(|_| !is_call) {
        row.calls -= 1;
    }
}

fn known_cost(usage: &SessionUsage, model: &str) -> f64 {
    let row = usage.spent.iter().find(|spent| spent.purpose == PURPOSE && spent.model == model);
    row.and_then(|row| row.cost).unwrap_or(0.0)
}

fn growth(sum: f64, known: f64) -> f64 {
    if sum >= known { sum - known } else { sum }
}

fn tokens_growth(sum: Tokens, known: Tokens) -> Tokens {
    if sum.all() < known.all() {
        return sum;
    }
    Tokens {
        input: sum.input.saturating_sub(known.input),
        cache_read: sum.cache_read.saturating_sub(known.cache_read),
        cache_write: sum.cache_write.saturating_sub(known.cache_write),
        output: sum.output.saturating_sub(known.output),
        reasoning: sum.reasoning.saturating_sub(known.reasoning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_a_session_count_once() {
        assert_eq!((growth(0.5, 0.0), growth(0.75, 0.5), growth(0.1, 0.75)), (0.5, 0.25, 0.1));
        let tokens = |input, output| Tokens { input, output, ..Tokens::default() };
        assert_eq!(tokens_growth(tokens(30, 9), tokens(10, 4)), tokens(20, 5));
        assert_eq!(tokens_growth(tokens(3, 1), tokens(10, 4)), tokens(3, 1), "a new session");
    }
}
