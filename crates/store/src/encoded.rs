//! The stored form of a fact and what the index of chats makes of it, for every store alike.
//!
//! Must not know SQL. Invariant: two stores that were given the same facts list the same chats.

use domain::{Fact, Failure, ItemKind, Recorded, SessionId};
use serde::Deserialize;

use crate::record::{RecordV1, decode_fact, to_json};
use crate::searchable::searchable;

/// A page of facts ends after about this many bytes.
pub const PAGE: usize = 1 << 20;

/// A fact in the form in which the database stores it.
pub struct EncodedFact {
    kind: &'static str,
    body: String,
    index_change: IndexChange,
    is_searchable: bool,
}

/// The change of the chat's index row that a fact causes.
enum IndexChange {
    None,
    Opened { workspace: String, parent: Option<SessionId>, title: Option<String>, model: Option<String> },
    Changed { title: Option<String>, model: Option<String> },
    Message,
    Replaced,
}

impl EncodedFact {
    pub fn new(fact: &Fact) -> Result<Self, Failure> {
        let record = RecordV1::from(fact);
        let is_searchable = searchable(fact).is_some();
        Ok(Self {
            kind: record.kind(),
            body: to_json(&record)?,
            index_change: index_change(fact)?,
            is_searchable,
        })
    }

    /// Whether the full-text index will hold it.
    pub fn is_searchable(&self) -> bool {
        self.is_searchable
    }

    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// JSON.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Whether a chat may begin with it.
    pub fn opens(&self) -> bool {
        matches!(self.index_change, IndexChange::Opened { .. })
    }

    pub fn size(&self) -> usize {
        self.body.len()
    }
}

fn index_change(fact: &Fact) -> Result<IndexChange, Failure> {
    Ok(match fact {
        Fact::SessionOpened(opened) => IndexChange::Opened {
            workspace: to_json(&opened.workspace)?,
            parent: opened.parent.clone(),
            title: opened.settings.title.clone(),
            model: opened.settings.model.clone(),
        },
        Fact::SessionChanged { change } => {
            IndexChange::Changed { title: change.title.clone(), model: change.model.clone() }
        }
        // No setting of the chat names the default model.
        Fact::TurnStarted { model, .. } => {
            IndexChange::Changed { title: None, model: Some(model.clone()).filter(|model| !model.is_empty()) }
        }
        // Every message ends once, whether it streamed or not.
        Fact::ItemEnded { item } => item_index_change(&item.kind),
        Fact::HistoryReplaced { .. } => IndexChange::Replaced,
        Fact::TurnEnded { .. }
        | Fact::ItemStarted { .. }
        | Fact::ItemChanged { .. }
        | Fact::ItemGrew { .. }
        | Fact::AskRaised { .. }
        | Fact::AskSettled { .. }
        | Fact::UsageChanged { .. }
        | Fact::Notice { .. }
        | Fact::TaintChanged { .. } => IndexChange::None,
    })
}

fn item_index_change(kind: &ItemKind) -> IndexChange {
    match kind {
        ItemKind::UserMessage { .. } | ItemKind::AgentMessage { .. } => IndexChange::Message,
        ItemKind::Reasoning { .. }
        | ItemKind::ToolCall(_)
        | ItemKind::Citation { .. }
        | ItemKind::Compaction { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. }
        | ItemKind::Hook(_)
        | ItemKind::Note(_)
        | ItemKind::Flag { .. } => IndexChange::None,
    }
}

/// The change of the index row that several facts cause together.
#[derive(Default)]
pub struct IndexUpdate<'a> {
    pub title: Option<&'a String>,
    pub model: Option<&'a String>,
    /// The folders as a JSON array, and the chat that this one comes from.
    pub opened: Option<(&'a str, Option<&'a str>)>,
    pub messages: u64,
    /// The messages have to be counted again.
    pub replaced: bool,
}

impl<'a> IndexUpdate<'a> {
    pub fn of(facts: &'a [EncodedFact]) -> Self {
        let mut update = Self::default();
        for fact in facts {
            match &fact.index_change {
                IndexChange::None => {}
                IndexChange::Opened { workspace, parent, title, model } => {
                    update.opened = Some((workspace.as_str(), parent.as_ref().map(SessionId::as_str)));
                    update.name(title, model);
                }
                IndexChange::Changed { title, model } => update.name(title, model),
                IndexChange::Message => update.messages += 1,
                IndexChange::Replaced => update.replaced = true,
            }
        }
        update
    }

    fn name(&mut self, title: &'a Option<String>, model: &'a Option<String>) {
        self.title = title.as_ref().or(self.title);
        self.model = model.as_ref().or(self.model);
    }
}

/// Counts the messages that remain after rollbacks. It is shown the facts of the kinds `itemStarted`, `itemEnded` and
/// `historyReplaced` in order. Items are in the order of their first fact, and a message counts once it has ended.
#[derive(Default)]
pub struct MessageCount {
    items: Vec<(u64, bool)>,
}

impl MessageCount {
    pub fn observe(&mut self, number: u64, kind: &str, body: &str) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            item: Option<Item<'a>>,
            keep: Option<u64>,
        }
        #[derive(Deserialize)]
        struct Item<'a> {
            id: u64,
            #[serde(borrow)]
            kind: Kind<'a>,
        }
        #[derive(Deserialize)]
        struct Kind<'a> {
            r#type: &'a str,
        }
        let body: Body = serde_json::from_str(body).map_err(|error| unreadable(number, &error))?;
        if kind == "historyReplaced" {
            self.cut(body.keep);
        }
        let Some(item) = body.item else { return Ok(()) };
        let counts = kind == "itemEnded" && matches!(item.kind.r#type, "userMessage" | "agentMessage");
        // Ids only grow, so one that is greater than the last is new.
        let is_new = self.items.last().is_none_or(|(last, _)| *last < item.id);
        let known = if is_new { None } else { self.items.iter_mut().rev().find(|(id, _)| *id == item.id) };
        match known {
            Some((_, counted)) => *counted |= counts,
            None => self.items.push((item.id, counts)),
        }
        Ok(())
    }

    pub fn total(&self) -> u64 {
        self.items.iter().filter(|(_, counts)| *counts).count() as u64
    }

    /// The history now ends with the item `keep`.
    fn cut(&mut self, keep: Option<u64>) {
        let length = match keep {
            None => 0,
            Some(keep) => {
                self.items.iter().position(|(id, _)| *id == keep).map_or(self.items.len(), |at| at + 1)
            }
        };
        self.items.truncate(length);
    }
}

/// Checks that the facts of a chat come one after the other. A damaged file can give them in another order, twice or
/// without end, and a caller that asks for what follows the last one would then never end.
pub struct FactOrder {
    last: u64,
    newest: u64,
}

impl FactOrder {
    /// For the facts after this number, of a chat whose index names this newest one.
    pub fn new(after: u64, newest: u64) -> Self {
        Self { last: after, newest }
    }

    pub fn check_next(&mut self, chat: &str, number: u64) -> Result<(), Failure> {
        self.last += 1;
        if number == self.last {
            return Ok(());
        }
        Err(damaged_chat(chat, &format!("its fact {} is missing", self.last)))
    }

    /// No further fact was found.
    pub fn check_end(&self, chat: &str) -> Result<(), Failure> {
        if self.last >= self.newest {
            return Ok(());
        }
        Err(damaged_chat(chat, &format!("its facts after {} are missing", self.last)))
    }
}

/// `what` completes the sentence "The chat is damaged: …".
pub fn damaged_chat(chat: &str, what: &str) -> Failure {
    Failure::config(format!("The chat {chat} is damaged: {what}."))
        .hint("Other chats are not affected. `dragoman store check` looks at all of them, and `dragoman store repair` saves what can be read.")
}

/// A fact as it was stored.
pub fn decode(number: u64, at: u64, kind: &str, body: &str) -> Result<Recorded, Failure> {
    let fact = decode_fact(kind, body).map_err(|error| unreadable(number, &error))?;
    Ok(Recorded { number, at, fact })
}

/// The first fact of a chat must open it.
pub fn no_chat(session: &SessionId) -> Failure {
    Failure::user(format!("There is no chat {session}; it may have been deleted.")).hint("Start a new chat.")
}

/// Only the holder of a lease writes.
pub fn not_held(session: &SessionId) -> Failure {
    Failure::internal(format!("The chat {session} cannot be written without its lease."))
        .hint("Open the chat again, or fork it.")
}

/// The message names the fact's number and never quotes its text.
fn unreadable(number: u64, error: &serde_json::Error) -> Failure {
    Failure::internal(format!("Fact {number} of this chat cannot be read ({:?} error).", error.classify()))
        .hint("A newer Dragoman may have written it: update Dragoman to open this chat.")
}
