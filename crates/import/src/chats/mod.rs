//! Chats of other programs: found, and written into the one history.
//!
//! Invariants: a chat gets an id made of its program and its id there, so importing twice adds nothing; its first entry
//! names its origin; it is tainted, because others may have written its text; nothing of it is sent anywhere.

mod claude;
mod codex;
mod eca;
mod foreign;
mod opencode;
mod opencode_database;
mod transit;

use std::path::Path;

use config::Environment;
use domain::command::SessionSettings;
use domain::event::{Fact, SessionOpened};
use domain::item::{Item, ItemKind, Part};
use domain::store::{Lease, Store};
use domain::taint::Taint;
use domain::tool_call::{Origin, ToolCall, ToolState};
use domain::{Failure, ItemId, Outcome, Recorded, SessionId, TurnId};
use serde_json::{Value, json};

pub(super) use foreign::ForeignChat;
use foreign::{ForeignEntry, Unusable};

use super::plan::{Program, server_name};
use super::secrets::mask_keys;

/// More of one text than this is cut, with a note.
const MAX_TEXT_BYTES: usize = 256 << 10;
const MAX_TITLE_CHARS: usize = 80;
/// Facts per transaction.
const PAGE_FACTS: usize = 500;

/// Everything that is there, the oldest first.
pub(super) fn find(
    environment: &Environment,
    folder: &Path,
    programs: &[Program],
) -> (Vec<ForeignChat>, Vec<Unusable>) {
    let (mut chats, mut unusable) = (Vec::new(), Vec::new());
    for program in programs {
        let found = match program {
            Program::Claude => claude::find(environment),
            Program::Codex => codex::find(environment),
            Program::Opencode => opencode::find(environment),
            Program::Eca => eca::find(environment, folder),
            Program::Gemini | Program::Goose | Program::Cursor => continue,
        };
        for chat in found {
            match chat {
                Ok(chat) if chat.turns.is_empty() && chat.unreadable > 0 => {
                    let why = format!("none of it could be read ({} lines are no JSON)", chat.unreadable);
                    unusable.push((chat.file, why));
                }
                Ok(chat) if chat.turns.is_empty() => {}
                Ok(chat) => chats.push(chat),
                Err(reason) => unusable.push(reason),
            }
        }
    }
    chats.sort_by(|a, b| (&a.day, &a.id).cmp(&(&b.day, &b.id)));
    (chats, unusable)
}

impl ForeignChat {
    pub(super) fn session(&self) -> SessionId {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let id: String = self.id.chars().map(plain).take(120).collect();
        SessionId::new(format!("{}-{id}", self.program.name()))
    }

    fn title(&self) -> Option<String> {
        let first = self.turns.iter().map(|turn| turn.prompt.trim()).find(|prompt| !prompt.is_empty());
        let title = self.title.as_deref().or(first)?;
        let line = domain::visible_line(&mask_keys(title.lines().next().unwrap_or_default())).into_owned();
        Some(line.chars().take(MAX_TITLE_CHARS).collect())
    }

    /// The chat as facts of a session, each with its own time. Times never go back.
    fn records(&self) -> Vec<Recorded> {
        let mut records: Vec<Recorded> = Vec::new();
        let first = self.turns.iter().map(|turn| turn.at).find(|at| *at > 0).unwrap_or(self.updated);
        // A clock that was wrong must not put a chat before all that follow.
        let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(u64::MAX);
        for (at, fact) in self.facts() {
            let before = records.last().map_or(first, |last| last.at);
            let at = at.max(before).min(now);
            records.push(Recorded { number: records.len() as u64 + 1, at, fact });
        }
        if let Some(last) = records.last_mut() {
            last.at = last.at.max(self.updated.min(now));
        }
        records
    }

    fn facts(&self) -> Vec<(u64, Fact)> {
        let title = self.title();
        let mut taint = Taint::default();
        taint.add_source(format!("a chat that was imported from {}", self.program.title()));
        let mut facts = vec![
            (
                0,
                Fact::SessionOpened(SessionOpened {
                    workspace: self.folder.iter().cloned().collect(),
                    settings: SessionSettings { title, ..SessionSettings::default() },
                    parent: None,
                    client: self.program.name().to_owned(),
                }),
            ),
            (0, Fact::TaintChanged { taint }),
        ];
        let mut items = ItemWriter { program: self.program, next: 1, turn: TurnId(1), step: 0 };
        for (index, turn) in self.turns.iter().enumerate() {
            items.turn = TurnId(index as u64 + 1);
            items.step = 0;
            facts.push((turn.at, Fact::TurnStarted { turn: items.turn, model: turn.model.clone() }));
            if index == 0 {
                facts.push((turn.at, items.end(ItemKind::SystemText { text: self.origin() })));
            }
            if !turn.prompt.trim().is_empty() {
                let text = bounded(&turn.prompt);
                let parts = vec![Part::text(text.clone())];
                facts.push((turn.at, items.end(ItemKind::UserMessage { text, parts })));
            }
            facts.extend(turn.entries.iter().map(|(at, entry)| (*at, items.write(entry))));
            facts.push((0, Fact::TurnEnded { turn: items.turn, outcome: Outcome::Done }));
        }
        facts
    }

    fn origin(&self) -> String {
        let day = if self.day.is_empty() { String::new() } else { format!(", {}", self.day) };
        let file = domain::visible_line(&self.file.display().to_string()).into_owned();
        let unread = match self.unreadable {
            0 => String::new(),
            count => format!(" {count} of its entries could not be read."),
        };
        format!("Imported from {}: chat {}{day}, {file}.{unread}", self.program.title(), self.id)
    }
}

/// Numbers the items of a chat.
struct ItemWriter {
    program: Program,
    next: u64,
    turn: TurnId,
    step: u32,
}

impl ItemWriter {
    fn end(&mut self, kind: ItemKind) -> Fact {
        let item = Item { id: ItemId(self.next), turn: self.turn, step: self.step, parent: None, kind };
        self.next += 1;
        Fact::ItemEnded { item }
    }

    fn write(&mut self, entry: &ForeignEntry) -> Fact {
        let kind = match entry {
            ForeignEntry::Answer(text) => {
                ItemKind::AgentMessage { text: bounded(text), interrupted: false, provider: None }
            }
            ForeignEntry::Reasoning(text) => {
                ItemKind::Reasoning { text: bounded(text), millis: 0, provider: None }
            }
            ForeignEntry::Call { name, input, output, failed, .. } => {
                ItemKind::ToolCall(Box::new(self.call(name, input, output, *failed)))
            }
        };
        let fact = self.end(kind);
        // A call ends an answer; what follows it is the next one.
        self.step += u32::from(matches!(entry, ForeignEntry::Call { .. }));
        fact
    }

    fn call(&self, name: &str, input: &Value, output: &str, failed: bool) -> ToolCall {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let input = if input.is_object() { input.clone() } else { json!({"input": input}) };
        let masked = mask_keys(&input.to_string());
        let input = serde_json::from_str(&masked).unwrap_or_else(|_| json!({"input": masked}));
        ToolCall {
            // The item's own id keeps the pair of call and result unique.
            call_id: String::new(),
            name: name.chars().map(plain).take(40).collect(),
            server: server_name(self.program).to_owned(),
            origin: Origin::Mcp,
            input_text: input.to_string(),
            input: Some(input),
            state: ToolState::Done,
            summary: domain::visible_line(name).into_owned(),
            details: None,
            manual_approval: false,
            live_output: String::new(),
            result: vec![Part::text(bounded(output))],
            error: failed,
            millis: 0,
            locations: Vec::new(),
            provider: None,
        }
    }
}

/// The text without keys, cut where it is very long.
fn bounded(text: &str) -> String {
    let text = &mask_keys(text);
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    format!("{}\n[{} more bytes were left out by the import]", &text[..end], text.len() - end)
}

/// Writes a chat, unless it is there.
pub(super) async fn write(journal: &dyn Store, chat: &ForeignChat) -> Result<bool, Failure> {
    let id = chat.session();
    if journal.newest(&id).await?.is_some() {
        return Ok(false);
    }
    if let Lease::HeldBy { holder, .. } = journal.lease(&id).await? {
        return Err(Failure::user(format!("Another Dragoman is writing the chat {id}: {holder}.")));
    }
    for page in chat.records().chunks(PAGE_FACTS) {
        if let Err(failure) = journal.adopt(&id, page.to_vec()).await {
            let _ = journal.delete(&id).await;
            return Err(failure);
        }
    }
    journal.release(&id).await?;
    Ok(true)
}
