//! Adds up the facts of stored chats. Knows the journal, not how figures are shown.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::event::{Fact, SessionUsage, Spent};
use domain::model::Tokens;
use domain::store::{ListFilter, SessionSummary};
use domain::{Failure, ItemKind, Recorded, SessionId, Store};
use jiff::civil::Date;
use serde_json::{Value, json};
use terminal::text::clean_line;

/// Facts read at a time.
const PAGE_FACTS: usize = 512;

/// The figures of one day, model, project, chat, or of everything.
#[derive(Clone, Copy, Default, Debug)]
pub struct Figures {
    pub requests: u64,
    pub tokens: Tokens,
    pub cost: f64,
    /// Some requests have no known price.
    pub is_cost_partial: bool,
    pub tool_calls: u64,
    /// Time in turns.
    pub millis: u64,
}

impl Figures {
    /// The share of the input that came from the provider's cache, in percent.
    pub(crate) fn cache_hits(&self) -> Option<u64> {
        let input = self.tokens.input + self.tokens.cache_read + self.tokens.cache_write;
        (input > 0).then(|| self.tokens.cache_read * 100 / input)
    }

    fn add(&mut self, other: &Figures) {
        self.requests += other.requests;
        self.tokens += other.tokens;
        self.cost += other.cost;
        self.is_cost_partial |= other.is_cost_partial;
        self.tool_calls += other.tool_calls;
        self.millis += other.millis;
    }

    fn json(&self) -> Value {
        json!({
            "requests": self.requests,
            "inputTokens": self.tokens.input,
            "cacheReadTokens": self.tokens.cache_read,
            "cacheWriteTokens": self.tokens.cache_write,
            "outputTokens": self.tokens.output,
            "cacheHitPercent": self.cache_hits(),
            "cost": self.cost,
            "costIsPartial": self.is_cost_partial,
            "toolCalls": self.tool_calls,
            "milliseconds": self.millis,
        })
    }
}

#[derive(Default)]
pub struct Stats {
    pub total: Figures,
    pub days: BTreeMap<Date, Figures>,
    pub models: BTreeMap<String, Figures>,
    pub projects: BTreeMap<String, Figures>,
    /// By id: the title and the figures.
    pub chats: BTreeMap<String, (String, Figures)>,
    /// Calls and failed calls.
    pub tools: BTreeMap<String, (u64, u64)>,
    first: Option<Date>,
}

/// The largest first: by tokens, then by name.
pub(crate) fn sorted(groups: &BTreeMap<String, Figures>) -> Vec<(&str, &Figures)> {
    let mut list: Vec<(&str, &Figures)> = groups.iter().map(|(name, it)| (name.as_str(), it)).collect();
    list.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.tokens.all()));
    list
}

impl Stats {
    /// The members here are a promise to scripts.
    pub fn json(&self) -> Value {
        let named = |key: &str, name: &str, figures: &Figures| {
            let mut value = figures.json();
            value[key] = json!(name);
            value
        };
        let chat = |(id, (title, figures)): (&String, &(String, Figures))| {
            let mut value = named("id", id, figures);
            value["title"] = json!(title);
            value
        };
        json!({
            "version": 1,
            "total": self.total.json(),
            "days": self.days.iter().map(|(day, it)| named("day", &day.to_string(), it)).collect::<Vec<_>>(),
            "models": self.models.iter().map(|(name, it)| named("model", name, it)).collect::<Vec<_>>(),
            "projects": self.projects.iter().map(|(name, it)| named("project", name, it)).collect::<Vec<_>>(),
            "chats": self.chats.iter().map(chat).collect::<Vec<_>>(),
            "tools": self.tools.iter().map(|(name, (calls, failed))| {
                json!({"tool": name, "calls": calls, "failed": failed})
            }).collect::<Vec<_>>(),
        })
    }

    fn add(&mut self, chat: &SessionSummary, at: u64, model: Option<&str>, figures: &Figures) {
        let Some(day) = day(at).filter(|day| self.first.is_none_or(|first| *day >= first)) else { return };
        self.total.add(figures);
        self.days.entry(day).or_default().add(figures);
        // A command that asks no model has none.
        if let Some(model) = model.filter(|model| !model.is_empty()) {
            self.models.entry(clean_line(model)).or_default().add(figures);
        }
        let project =
            chat.workspace.first().map_or("no folder".to_owned(), |root| root.display().to_string());
        self.projects.entry(clean_line(&project)).or_default().add(figures);
        let title = chat.title.as_deref().map_or_else(|| "untitled".to_owned(), clean_line);
        self.chats.entry(clean_line(chat.id.as_str())).or_insert((title, Figures::default())).1.add(figures);
    }
}

/// What names of chats and servers say.
#[derive(Clone, Copy)]
pub struct ChatKinds {
    /// The chat is one of a subagent.
    pub is_subagent: fn(&SessionId) -> bool,
    /// Calls of this server came with a chat of another program.
    pub is_imported: fn(&str) -> bool,
}

/// The figures of the last `days` days, of one folder or of all.
pub async fn collect(
    journal: &dyn Store,
    workspace: Option<Vec<PathBuf>>,
    days: u16,
    kinds: ChatKinds,
) -> Result<Stats, Failure> {
    let today = jiff::Zoned::now().date();
    let first = today.checked_sub(jiff::Span::new().days(i64::from(days.max(1)) - 1)).unwrap_or(today);
    let mut stats = Stats { first: Some(first), ..Stats::default() };
    for chat in journal.list(ListFilter { workspace, ..ListFilter::default() }).await? {
        if day(chat.updated_at).is_some_and(|day| day < first) {
            continue;
        }
        let mut reader = ChatReader {
            turn: None,
            usage: SessionUsage::default(),
            is_own: false,
            is_subagent: (kinds.is_subagent)(&chat.id),
            is_imported: kinds.is_imported,
        };
        let mut after = 0;
        loop {
            let page = journal.read(&chat.id, after, PAGE_FACTS).await?;
            let Some(last) = page.last() else { break };
            after = last.number;
            page.iter().for_each(|recorded| reader.read(&chat, recorded, &mut stats));
        }
    }
    Ok(stats)
}

/// The state of reading one journal.
struct ChatReader {
    /// When the running turn started, and its model.
    turn: Option<(u64, String)>,
    usage: SessionUsage,
    /// A turn was seen: from here on usage is this chat's own.
    is_own: bool,
    /// What a subagent used and how long it worked is counted in the chat that started it; here count its tool calls.
    is_subagent: bool,
    is_imported: fn(&str) -> bool,
}

impl ChatReader {
    fn read(&mut self, chat: &SessionSummary, recorded: &Recorded, stats: &mut Stats) {
        let at = recorded.at;
        match &recorded.fact {
            Fact::TurnStarted { model, .. } => {
                self.turn = Some((at, model.clone()));
                self.is_own = true;
            }
            Fact::TurnEnded { .. } => {
                if let Some((since, model)) = self.turn.take().filter(|_| !self.is_subagent) {
                    let figures = Figures { millis: at.saturating_sub(since), ..Figures::default() };
                    stats.add(chat, at, Some(&model), &figures);
                }
            }
            Fact::ItemEnded { item } => {
                let ItemKind::ToolCall(call) = &item.kind else { return };
                if (self.is_imported)(&call.server) {
                    return;
                }
                let Some((_, model)) = &self.turn else { return };
                let before = stats.total.tool_calls;
                stats.add(chat, at, Some(model), &Figures { tool_calls: 1, ..Figures::default() });
                if stats.total.tool_calls > before {
                    let (calls, failed) = stats.tools.entry(clean_line(&call.name)).or_default();
                    *calls += 1;
                    *failed += u64::from(call.error);
                }
            }
            Fact::UsageChanged { usage } => {
                if self.is_own && !self.is_subagent {
                    self.add_usage(chat, at, usage, stats);
                }
                self.usage = usage.clone();
            }
            Fact::SessionOpened(_)
            | Fact::SessionChanged { .. }
            | Fact::ItemStarted { .. }
            | Fact::ItemChanged { .. }
            | Fact::ItemGrew { .. }
            | Fact::HistoryReplaced { .. }
            | Fact::AskRaised { .. }
            | Fact::AskSettled { .. }
            | Fact::TaintChanged { .. }
            | Fact::Notice { .. } => {}
        }
    }

    /// Usage is a running total, so its growth since the last fact is what counts.
    fn add_usage(&self, chat: &SessionSummary, at: u64, usage: &SessionUsage, stats: &mut Stats) {
        for spent in &usage.spent {
            let same = |it: &&Spent| it.purpose == spent.purpose && it.model == spent.model;
            let before = self.usage.spent.iter().find(same).cloned().unwrap_or_default();
            let tokens = Tokens {
                input: spent.tokens.input.saturating_sub(before.tokens.input),
                cache_read: spent.tokens.cache_read.saturating_sub(before.tokens.cache_read),
                cache_write: spent.tokens.cache_write.saturating_sub(before.tokens.cache_write),
                output: spent.tokens.output.saturating_sub(before.tokens.output),
                reasoning: spent.tokens.reasoning.saturating_sub(before.tokens.reasoning),
            };
            let requests = spent.calls.saturating_sub(before.calls);
            if requests == 0 && tokens.all() == 0 {
                continue;
            }
            let cost = spent.cost.unwrap_or(0.0) - before.cost.unwrap_or(0.0);
            let is_cost_partial = spent.cost.is_none();
            let figures =
                Figures { requests, tokens, cost: cost.max(0.0), is_cost_partial, ..Figures::default() };
            stats.add(chat, at, Some(&spent.model), &figures);
        }
    }
}

fn day(millis: u64) -> Option<Date> {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(millis).ok()?).ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::system()).date())
}
