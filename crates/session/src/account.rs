//! What a session remembers of its calls to models beside its usage: the cached prefix, lengths, who pays.
//!
//! Must not know prices of providers or budgets. Invariant: a break of the cached prefix is named once, by the first reason
//! that was known.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::event::{ContextUse, PrefixBreak};
use domain::model::{Price, Prompt, Tokens};
use domain::spending::Gate;
use domain::tool::ToolSpec;
use tokio::task::JoinHandle;

/// What a session remembers of its spending beside its usage; gone with the process.
#[derive(Default)]
pub struct Account(Mutex<AccountState>);

#[derive(Default)]
pub struct AccountState {
    pub prefix: Prefix,
    /// The lengths of what the call under way sends.
    pub lengths: ContextUse,
    pub known_lengths: KnownLengths,
    /// What the last call sent: its length, and the tokens that its provider counted.
    pub counted: Option<(u64, u64)>,
    /// The last cost on its way to the day's sum.
    pub charging: Option<JoinHandle<()>>,
    /// Who pays what the newest prompt causes.
    pub gate: Gate,
}

/// The lengths of the oldest entries of a chat: requests grow at their end, so these are counted once.
#[derive(Default)]
pub struct KnownLengths {
    /// The entries that are counted.
    pub keys: Vec<u64>,
    pub conversation: u64,
    pub tool_calls: u64,
}

impl Account {
    /// The history was replaced: the next call begins otherwise.
    pub fn break_prefix(&self, reason: &str) {
        self.lock().prefix.break_because(reason);
    }

    /// A prompt came: its sender pays from now on.
    pub fn set_gate(&self, gate: Gate) {
        self.lock().gate = gate;
    }

    pub fn lock(&self) -> MutexGuard<'_, AccountState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a provider's cache holds of a chat after a call.
#[derive(Default)]
pub struct Prefix {
    /// The model, and what is before the history.
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

    /// The length of the definitions of all tools in bytes.
    pub fn tools_length(&self) -> u64 {
        self.tools.length
    }

    pub fn learn_tools(&mut self, prompt: &Prompt) {
        if let Some(before) = self.tools.learn(&prompt.tools) {
            self.servers_before.get_or_insert(before);
        }
    }

    /// Compares a call with the one before it; names the break.
    pub fn begin_call(&mut self, model: &str, prompt: &Prompt) -> Option<&str> {
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
    pub fn finish_call(&mut self, tokens: &Tokens, price: Option<&Price>) -> Option<PrefixBreak> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(system: &str) -> Prompt {
        Prompt { system: vec![system.into()], ..Prompt::default() }
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
