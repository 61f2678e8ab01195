//! Money: what each call used and cost, the caps that stop before the next call, and what broke the cached prefix.
//!
//! Must not know providers. Invariants: every call of a chat is in its usage, whatever its purpose; all processes of
//! the machine share the day's sum through the store; a cap is checked before a call, never after.

use config::Budget;
use domain::command::TurnLimits;
use domain::event::{Fact, Level, Notice, SessionUsage, Spent};
use domain::model::{ModelInfo, Prompt, Tokens};
use domain::spending::Gate;
use domain::{Failure, FailureKind, Store};
use session::account::AccountState;

use crate::context_use::{self, Estimate};
use crate::session::{Inherited, Session};

/// The kind of the store's records that hold what was spent on a day.
const DAYS: &str = "spent";
/// The purpose of calls that a running tool asked for.
pub const TOOLS: &str = "tools";
/// Breaks that an account remembers.
const BREAKS: usize = 50;

/// Compares a call of the conversation with the one before it; a break of the cached prefix is named in the log.
/// [`estimate_call`] comes before it.
pub(crate) fn note_call(session: &Session, model: &str, prompt: &Prompt) {
    let mut account = session.account.lock();
    if let Some(reason) = account.prefix.begin_call(model, prompt) {
        tracing::info!(session = %session.id, reason, "the cached prefix ends");
    }
}

/// Measures a request that may be sent, and estimates its tokens.
pub(crate) fn estimate_call(session: &Session, prompt: &Prompt) -> Estimate {
    let mut account = session.account.lock();
    let AccountState { prefix, lengths, known_lengths, counted, .. } = &mut *account;
    prefix.learn_tools(prompt);
    *lengths = context_use::lengths(prompt, prefix.tools_length(), known_lengths);
    context_use::estimate(lengths, *counted)
}

/// Who pays the calls of a chat; those of a subagent are its parent's.
pub(crate) fn gate(session: &Session) -> Gate {
    match &session.inherited {
        Some(inherited) => gate(&inherited.parent),
        None => session.account.lock().gate.clone(),
    }
}

/// Records what a call of the conversation used.
pub(crate) fn record_answer(session: &Session, info: &ModelInfo, tokens: Tokens) {
    let (broken, lengths) = {
        let mut account = session.account.lock();
        account.counted =
            Some((account.lengths.total(), tokens.input + tokens.cache_read + tokens.cache_write));
        (account.prefix.finish_call(&tokens, info.price.as_ref()), account.lengths)
    };
    let cost = info.price.map(|price| price.of(&tokens));
    session.commit_with(|state| {
        let mut usage = state.usage().clone();
        usage.last = tokens;
        usage.last_cost = cost;
        usage.context = Some(context_use::fit(&lengths, &tokens));
        usage.context_limit = info.context_limit;
        usage.output_limit = info.output_limit;
        if let Some(broken) = broken.filter(|_| usage.breaks.len() < BREAKS) {
            usage.breaks.push(broken);
        }
        add_call(&mut usage, "answers", &info.id, tokens, cost);
        vec![Fact::UsageChanged { usage }]
    });
    match &session.inherited {
        // The parent's chat pays.
        Some(inherited) => record_side_call(&inherited.parent, "subagents", &info.id, tokens, cost),
        None => charge_day_later(session, cost),
    }
}

/// Records what a call beside the conversation used: a title, a summary, a search.
pub(crate) fn record_side_call(
    session: &Session,
    purpose: &str,
    model: &str,
    tokens: Tokens,
    cost: Option<f64>,
) {
    session.commit_with(|state| {
        let mut usage = state.usage().clone();
        add_call(&mut usage, purpose, model, tokens, cost);
        vec![Fact::UsageChanged { usage }]
    });
    match &session.inherited {
        Some(inherited) => record_side_call(&inherited.parent, "subagents", model, tokens, cost),
        None => charge_day_later(session, cost),
    }
}

/// Records what a running tool had the model answer. The chat of a subagent's parent pays for it too.
pub(crate) fn record_call_for_tool(session: &Session, model: &str, tokens: Tokens, cost: Option<f64>) {
    let Some(inherited) = &session.inherited else {
        return record_side_call(session, TOOLS, model, tokens, cost);
    };
    session.commit_with(|state| {
        let mut usage = state.usage().clone();
        add_call(&mut usage, TOOLS, model, tokens, cost);
        vec![Fact::UsageChanged { usage }]
    });
    record_side_call(&inherited.parent, "subagents", model, tokens, cost);
}

pub(crate) fn add_call(
    usage: &mut SessionUsage,
    purpose: &str,
    model: &str,
    tokens: Tokens,
    cost: Option<f64>,
) {
    usage.total += tokens;
    if let Some(cost) = cost {
        usage.session_cost = Some(usage.session_cost.unwrap_or(0.0) + cost);
    }
    let known = usage.spent.iter_mut().find(|spent| spent.purpose == purpose && spent.model == model);
    let row = match known {
        Some(row) => row,
        None => {
            usage.spent.push(Spent { purpose: purpose.into(), model: model.into(), ..Spent::default() });
            // Just pushed.
            let Some(row) = usage.spent.last_mut() else { return };
            row
        }
    };
    row.calls += 1;
    row.tokens += tokens;
    if let Some(cost) = cost {
        row.cost = Some(row.cost.unwrap_or(0.0) + cost);
    }
}

pub(crate) fn charge_day_later(session: &Session, cost: Option<f64>) {
    let Some(cost) = cost.filter(|cost| *cost > 0.0) else { return };
    let store = session.store.clone();
    let mut account = session.account.lock();
    let earlier = account.charging.take();
    account.charging = Some(tokio::spawn(async move {
        if let Some(earlier) = earlier {
            let _ = earlier.await;
        }
        charge_day(store.as_ref(), cost).await;
    }));
}

/// Adds to what was spent today on this machine.
pub(crate) async fn charge_day(store: &dyn Store, cost: f64) {
    if let Err(failure) = store.add(DAYS, &today(), cost).await {
        tracing::warn!(%failure, "the day's spending could not be recorded");
    }
}

/// What was spent today by all processes, with everything that this session has begun to charge.
pub(crate) async fn spent_today(session: &Session) -> Result<f64, Failure> {
    let charging = session.account.lock().charging.take();
    if let Some(charging) = charging {
        let _ = charging.await;
    }
    session.store.add(DAYS, &today(), 0.0).await
}

/// Kind and key of the store's record of what was spent today.
pub fn record_of_today() -> (&'static str, String) {
    (DAYS, today())
}

fn today() -> String {
    config::local_now().date().to_string()
}

/// Fails where a cap forbids the next call to a model. `before`: what the chat had cost before this turn.
pub(crate) async fn check_caps(session: &Session, limits: &TurnLimits, before: f64) -> Result<(), Failure> {
    check_caps_beside(session, limits, before, 0.0).await
}

/// The same while some calls are not in the usage yet: they have cost `beside`.
pub(crate) async fn check_caps_beside(
    session: &Session,
    limits: &TurnLimits,
    before: f64,
    beside: f64,
) -> Result<(), Failure> {
    check_own_caps(session, limits, before, beside).await?;
    match &session.inherited {
        Some(Inherited { parent, limits, cost_before, .. }) => {
            check_own_caps(parent, limits, *cost_before, beside).await
        }
        None => Ok(()),
    }
}

async fn check_own_caps(
    session: &Session,
    limits: &TurnLimits,
    before: f64,
    beside: f64,
) -> Result<(), Failure> {
    let budget = session.workspace.settings.budget;
    let chat = session.state().usage().session_cost.unwrap_or(0.0) + beside;
    let (run, run_setting) = match limits.max_cost {
        Some(cap) if session.is_subagent() => (Some(cap), "maxCost of the agent"),
        Some(cap) => (Some(cap), "--max-cost"),
        None => (budget.run, "budget.run"),
    };
    let mut caps =
        vec![(run, chat - before, "This turn", run_setting), (budget.chat, chat, "This chat", "budget.chat")];
    let managed = session.workspace.settings.managed.run_budget();
    caps.push((managed, chat - before, "This turn", "`budgets.run` in the managed settings of this machine"));
    if budget.day.is_some() {
        match spent_today(session).await {
            Ok(day) => caps.push((budget.day, day + beside, "Today's work on this machine", "budget.day")),
            // A cap that cannot be checked holds.
            Err(failure) => return Err(failure),
        }
    }
    for (cap, spent, subject, setting) in caps {
        if let Some(cap) = cap.filter(|cap| spent >= *cap) {
            let message = format!("{subject} has used {} of {}.", dollars(spent), dollars(cap));
            return Err(Failure::new(FailureKind::Quota, message).hint(format!("Raise {setting} to go on.")));
        }
    }
    Ok(())
}

/// An amount with as many digits as it needs: `$1.50`, `$0.0123`, `$0.0000004`.
fn dollars(amount: f64) -> String {
    let decimals = match amount {
        amount if amount >= 0.1 || amount <= 0.0 => 2,
        amount if amount >= 0.0001 => 4,
        amount if amount >= 0.000_000_1 => 7,
        _ => 10,
    };
    format!("${amount:.decimals$}")
}

/// Fails where the turn has a cap and the model has no price: such a cap could not hold.
pub(crate) fn check_price(limits: &TurnLimits, model: &ModelInfo) -> Result<(), Failure> {
    if limits.max_cost.is_none() || model.price.is_some() {
        return Ok(());
    }
    if !limits.gate.is_default() {
        return Err(Failure::user(format!(
            "{} has no known price, so it cannot be used with a budget.",
            model.id
        ))
        .hint("Choose another model."));
    }
    let failure = Failure::user(format!("--max-cost cannot hold, because {} has no price.", model.id));
    Err(failure.hint(format!("{}, or leave --max-cost (maxCost of an agent) out.", price_hint(model))))
}

/// Warns where caps of the settings do not count the model. They hold for other models.
pub(crate) fn budget_warning(budget: &Budget, model: &ModelInfo) -> Option<Notice> {
    budget.run.or(budget.chat).or(budget.day).filter(|_| model.price.is_none())?;
    let text =
        format!("`budget` does not count {}, because it has no price. {}.", model.id, price_hint(model));
    Some(Notice { level: Level::Warning, text })
}

fn price_hint(model: &ModelInfo) -> String {
    let (provider, name) = model.id.split_once('/').unwrap_or(("PROVIDER", &model.id));
    format!(
        "Set `providers.{provider}.models.{name}.cost` to {{\"input\": …, \"output\": …}}, in dollars per million tokens (0 \
         where it is free)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_amount_is_not_shown_as_nothing() {
        for (amount, text) in [
            (0.0, "$0.00"),
            (1.5, "$1.50"),
            (0.0123, "$0.0123"),
            (0.0001, "$0.0001"),
            (0.000_01, "$0.0000100"),
        ] {
            assert_eq!(dollars(amount), text);
        }
    }
}
