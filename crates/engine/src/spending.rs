//! Money: what each call used and cost, the caps that stop before the next call, and what broke the cached prefix.
//!
//! Must not know providers. Invariants: every call of a chat is in its usage, whatever its purpose; all processes of
//! the machine share the day's sum through the store; a cap is checked before a call, never after.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::Budget;
use domain::command::TurnLimits;
use domain::event::{ContextUse, Fact, Level, Notice, PrefixBreak, SessionUsage, Spent};
use domain::model::{ModelInfo, Price, Prompt, Tokens};
use domain::spending::Gate;
use domain::tool::ToolSpec;
use domain::{Failure, FailureKind, Store};
use tokio::task::JoinHandle;

use crate::context_use::{self, Estimate};
use crate::session::Session;
use crate::subagents::Inherited;

/// The kind of the store's records that hold what was spent on a day.
const DAYS: &str = "spent";
/// The purpose of calls that a running tool asked for.
pub(crate) const TOOLS: &str = "tools";
/// Breaks that an account remembers.
const BREAKS: usize = 50;

/// What a session remembers of its spending beside its usage; gone with the process.
#[derive(Default)]
pub(crate) struct Account(Mutex<AccountState>);

#[derive(Default)]
struct AccountState {
    prefix: Prefix,
    /// The lengths of what the call under way sends.
    lengths: ContextUse,
    known_lengths: context_use::KnownLengths,
    /// What the last call sent: its length, and the tokens that its provider counted.
    counted: Option<(u64, u64)>,
    /// The last cost on its way to the day's sum.
    charging: Option<JoinHandle<()>>,
    /// Who pays what the newest prompt causes.
    gate: Gate,
}

impl Account {
    /// The history was replaced: the next call begins otherwise.
    pub(crate) fn break_prefix(&self, reason: &str) {
        self.lock().prefix.break_because(reason);
    }

    /// A prompt came: its sender pays from now on.
    pub(crate) fn set_gate(&self, gate: Gate) {
        self.lock().gate = gate;
    }

    fn lock(&self) -> MutexGuard<'_, AccountState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a provider's cache holds of a chat after a call.
#[derive(Default)]
struct Prefix {
    /// The model, and what stands before the history.
    head: Option<(String, u64, u64)>,
    /// The tools that the last request had.
    tools: KnownTools,
    /// The servers of the tools before, where they are other ones since the last call.
    servers_before: Option<BTreeSet<String>>,
    /// Tokens of the last call's prompt.
    tokens: u64,
    /// Why the call under way begins otherwise.
    broken: Option<String>,
}

impl Prefix {
    fn break_because(&mut self, reason: &str) {
        if self.head.is_some() {
            self.broken.get_or_insert_with(|| reason.to_owned());
        }
    }

    fn learn_tools(&mut self, prompt: &Prompt) {
        if let Some(before) = self.tools.learn(&prompt.tools) {
            self.servers_before.get_or_insert(before);
        }
    }

    /// Compares a call with the one before it; names the break.
    fn begin_call(&mut self, model: &str, prompt: &Prompt) -> Option<&str> {
        let system = hash(|hasher| prompt.system.hash(hasher));
        self.learn_tools(prompt);
        let (servers_before, tools) = (self.servers_before.take(), self.tools.hash);
        let before = self.head.replace((model.to_owned(), system, tools));
        if let Some((known, known_system, known_tools)) = before {
            let reason = if known != model {
                Some(format!("another model ({model})"))
            } else if known_system != system {
                Some("other instructions".to_owned())
            } else if known_tools != tools {
                Some(changed_tools(&servers_before.unwrap_or_default(), &self.tools.servers))
            } else {
                None
            };
            if reason.is_some() {
                self.broken = reason;
            }
        }
        self.broken.as_deref()
    }

    /// What the break of the call that just ended cost, if there was one.
    fn finish_call(&mut self, tokens: &Tokens, price: Option<&Price>) -> Option<PrefixBreak> {
        let reason = self.broken.take();
        let lost = self.tokens.saturating_sub(tokens.cache_read);
        self.tokens = tokens.input + tokens.cache_read + tokens.cache_write;
        let reason = reason.filter(|_| lost > 0)?;
        let cost = price.and_then(|price| {
            let saved = price.cache_write.unwrap_or(price.input) - price.cache_read?;
            Some(lost as f64 * saved.max(0.0) / 1_000_000.0)
        });
        Some(PrefixBreak { reason, tokens: lost, cost })
    }
}

/// What is computed of the tools once, for as long as calls have the same list.
struct KnownTools {
    list: Arc<[ToolSpec]>,
    hash: u64,
    /// The length of all definitions in bytes.
    length: u64,
    servers: BTreeSet<String>,
}

impl Default for KnownTools {
    fn default() -> Self {
        let list: Arc<[ToolSpec]> = Arc::default();
        Self { list, hash: hash(|_| {}), length: 0, servers: BTreeSet::new() }
    }
}

impl KnownTools {
    /// Returns the servers of the list before, where this is another one.
    fn learn(&mut self, tools: &Arc<[ToolSpec]>) -> Option<BTreeSet<String>> {
        if Arc::ptr_eq(&self.list, tools) {
            return None;
        }
        let mut length = 0;
        let hash = hash(|hasher| {
            for tool in tools.iter() {
                let schema = tool.input_schema.to_string();
                length += (tool.name.len() + tool.description.len() + schema.len()) as u64;
                (tool.offered_name(), &tool.description, schema).hash(hasher);
            }
        });
        let servers = tools.iter().map(|tool| tool.server.clone()).collect();
        Some(std::mem::replace(self, Self { list: tools.clone(), hash, length, servers }).servers)
    }
}

/// Names the servers that came or went.
fn changed_tools(before: &BTreeSet<String>, now: &BTreeSet<String>) -> String {
    let names =
        |servers: Vec<&String>| servers.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let (come, gone) = (names(now.difference(before).collect()), names(before.difference(now).collect()));
    match (come.is_empty(), gone.is_empty()) {
        (true, true) => "another set of tools".to_owned(),
        (false, true) => format!("another set of tools ({come} came)"),
        (true, false) => format!("another set of tools ({gone} went)"),
        (false, false) => format!("another set of tools ({come} came, {gone} went)"),
    }
}

fn hash(fill: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut hasher = DefaultHasher::new();
    fill(&mut hasher);
    hasher.finish()
}

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
    *lengths = context_use::lengths(prompt, prefix.tools.length, known_lengths);
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

    fn prompt(system: &str) -> Prompt {
        Prompt { system: vec![system.into()], ..Prompt::default() }
    }

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

    #[test]
    fn breaks_are_named_and_priced() {
        let price = Price { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: Some(3.75) };
        let cached = |cache_read, input| Tokens { cache_read, input, ..Tokens::default() };
        let mut prefix = Prefix::default();
        prefix.break_because("nothing was sent yet");
        assert_eq!(prefix.begin_call("a/one", &prompt("s")), None, "the first call breaks nothing");
        assert_eq!(prefix.finish_call(&cached(0, 1000), Some(&price)), None);
        assert_eq!(prefix.begin_call("a/one", &prompt("s")), None);
        assert_eq!(prefix.finish_call(&cached(1000, 200), Some(&price)), None);
        assert_eq!(prefix.begin_call("b/two", &prompt("s")), Some("another model (b/two)"));
        let broken = prefix.finish_call(&cached(0, 1400), Some(&price)).unwrap();
        assert_eq!(broken.tokens, 1200);
        assert!((broken.cost.unwrap() - 1200.0 * 3.45 / 1e6).abs() < 1e-12, "{broken:?}");
        prefix.break_because("compaction");
        assert_eq!(prefix.begin_call("b/two", &prompt("s")), Some("compaction"));
        assert_eq!(prefix.finish_call(&cached(0, 10), None).unwrap().cost, None);
        assert_eq!(prefix.begin_call("b/two", &prompt("other")), Some("other instructions"));
    }

    /// A request that was measured and not sent, because the chat had to be compacted first.
    #[test]
    fn a_request_that_is_not_sent_breaks_nothing() {
        let spec = |server: &str| ToolSpec {
            name: "t".into(),
            server: server.into(),
            origin: domain::tool_call::Origin::Mcp,
            description: String::new(),
            input_schema: serde_json::Value::Null,
            effect: domain::tool::ToolEffect::Other,
        };
        let with = |servers: &[&str]| Prompt {
            tools: servers.iter().map(|server| spec(server)).collect(),
            ..prompt("s")
        };
        let mut prefix = Prefix::default();
        let (one, two) = (with(&["one"]), with(&["one", "two"]));
        prefix.begin_call("a/one", &one);
        prefix.finish_call(&Tokens { input: 1_000, ..Tokens::default() }, None);
        prefix.learn_tools(&one);
        assert_eq!(prefix.begin_call("a/one", &one), None);
        prefix.finish_call(&Tokens { cache_read: 1_000, ..Tokens::default() }, None);
        prefix.learn_tools(&two);
        prefix.break_because("compaction");
        assert_eq!(prefix.begin_call("a/one", &two), Some("another set of tools (two came)"));
    }
}
