//! `dragoman chats`: lists, searches, shows, exports, imports and deletes stored chats, without an engine.
//!
//! Invariants: printed text has no control characters; an imported chat brings no permissions (its folder is the
//! current one, and its trust is dropped).

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use config::Environment;
use domain::store::{Lease, ListFilter, SearchHit, SearchQuery, SessionSummary};
use domain::taint::Taint;
use domain::{Fact, Failure, ItemKind, Recorded, SessionId, Store};
use serde_json::{Value, json};
use terminal::text::{clean, clean_line, shorten};

use super::{chats_json, failed};
use crate::{lifetime, stores};

/// The first member of an export's first line.
const FORMAT: &str = "dragoman-chat";
/// Increases when an older Dragoman can no longer read the file.
const VERSION: u64 = 1;
/// Facts read or written at a time.
const PAGE_FACTS: usize = 512;
/// The maximum length of a line of an import.
const MAX_LINE_BYTES: u64 = 64 << 20;

#[derive(clap::Subcommand)]
pub(crate) enum ChatsTask {
    /// List the chats of this folder, newest first.
    #[command(
        after_help = "Example:\n  dragoman chats list\n  dragoman chats list --all --json | jq -r '.chats[].id'"
    )]
    List {
        /// List the chats of all folders.
        #[arg(long)]
        all: bool,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Search what was said in the chats of this folder: messages that have all the words.
    #[command(
        after_help = "Example:\n  dragoman chats search race condition\n  dragoman chats search --all postgres"
    )]
    Search {
        /// The last may be the beginning of a word.
        #[arg(required = true, value_name = "WORD")]
        words: Vec<String>,
        /// Search the chats of all folders.
        #[arg(long)]
        all: bool,
        /// How many chats to list at most.
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Print a chat as Markdown.
    #[command(after_help = "Example:\n  dragoman chats show 0198c2d4-… | less")]
    Show {
        id: String,
        /// Its items, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// Write a chat with everything in it, one JSON object a line.
    #[command(after_help = "Example:\n  dragoman chats export 0198c2d4-… -o chat.jsonl")]
    Export {
        id: String,
        /// A new file; stdout by default.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Import an exported chat into this folder.
    #[command(after_help = "Example:\n  dragoman chats import chat.jsonl")]
    Import {
        file: PathBuf,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Delete chats permanently.
    #[command(after_help = "Example:\n  dragoman chats delete 0198c2d4-…")]
    Delete {
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(task: ChatsTask) -> ExitCode {
    let environment = Environment::from_process();
    let journal = match stores::open(&environment) {
        Ok(journal) => journal,
        Err(failure) => return failed(&failure),
    };
    lifetime::run(async {
        let journal = journal.as_ref();
        match task {
            ChatsTask::List { all, json } => list(journal, all, json).await,
            ChatsTask::Search { words, all, limit, json } => search(journal, &words, all, limit, json).await,
            ChatsTask::Show { id, json } => show(journal, &id, json).await,
            ChatsTask::Export { id, output } => export(journal, &id, output.as_deref()).await,
            ChatsTask::Import { file, json } => import(journal, &file, json).await,
            ChatsTask::Delete { ids, json } => delete(&environment, journal, &ids, json).await,
        }
    })
}

async fn list(journal: &dyn Store, all: bool, json: bool) -> Result<(), Failure> {
    let workspace = (!all).then(crate::working_folder::current_folder);
    let chats = journal.list(ListFilter { workspace, ..ListFilter::default() }).await?;
    if json {
        return print(&format!(
            "{:#}\n",
            json!({"chats": chats.iter().map(chats_json::chat).collect::<Vec<_>>()})
        ));
    }
    if chats.is_empty() {
        let hint = if all { "" } else { " `dragoman chats list --all` lists those of other folders." };
        return print(&format!("There are no chats of this folder.{hint}\n"));
    }
    let lines: Vec<String> = chats.iter().map(line).collect();
    print(&format!("{}\n", lines.join("\n")))
}

async fn search(
    journal: &dyn Store,
    words: &[String],
    all: bool,
    limit: usize,
    json: bool,
) -> Result<(), Failure> {
    let workspace = (!all).then(crate::working_folder::current_folder);
    let query = SearchQuery { text: words.join(" "), workspace, limit: Some(limit) };
    let hits = journal.search(query).await?;
    if json {
        let found = |hit: &SearchHit| json!({"chat": chats_json::chat(&hit.chat), "excerpt": hit.excerpt});
        return print(&format!("{:#}\n", json!({"hits": hits.iter().map(found).collect::<Vec<_>>()})));
    }
    if hits.is_empty() {
        let hint = if all { "" } else { " `dragoman chats search --all` searches those of other folders." };
        return print(&format!("No message has all these words.{hint}\n"));
    }
    let lines = hits.iter().map(|hit| format!("{}\n    {}\n", line(&hit.chat), clean_line(&hit.excerpt)));
    print(&lines.collect::<String>())
}

fn line(chat: &SessionSummary) -> String {
    let title = chat.title.as_deref().map(clean_line).unwrap_or_else(|| "untitled".to_owned());
    let id = clean_line(chat.id.as_str());
    let (day, count) = (day(chat.updated_at), chat.message_count);
    let unit = if count == 1 { "message " } else { "messages" };
    format!("{id}  {day}  {count:>4} {unit}  {}", shorten(&title, 60))
}

/// `2026-11-15 05:33`, in local time.
pub(crate) fn day(millis: u64) -> String {
    let time = i64::try_from(millis).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    let zone = config::local_zone();
    time.map(|time| time.to_zoned(zone).strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
}

pub(crate) async fn show(journal: &dyn Store, id: &str, json: bool) -> Result<(), Failure> {
    let facts = domain::replay::visible_facts(read(journal, id).await?.into_iter().map(Into::into).collect());
    let items = items(&facts);
    if json {
        let value = json!({"id": id, "items": items.iter().map(chats_json::item).collect::<Vec<_>>()});
        return print(&domain::visible_json(&format!("{value:#}\n")));
    }
    let mut text = String::new();
    for item in &items {
        let (heading, body) = match &item.kind {
            ItemKind::UserMessage { text, .. } | ItemKind::Command { text } => ("## You", text.clone()),
            ItemKind::AgentMessage { text, .. } => ("## Dragoman", text.clone()),
            ItemKind::SystemText { text } => ("##", text.clone()),
            ItemKind::Note(note) => ("", format!("- {}", clean_line(&note.text))),
            ItemKind::ToolCall(call) => {
                let title = if call.summary.is_empty() { &call.name } else { &call.summary };
                ("", format!("- {}{}", clean_line(title), if call.error { " (failed)" } else { "" }))
            }
            ItemKind::Flag { text } if !text.is_empty() => ("", format!("⚑ {}", clean_line(text))),
            ItemKind::Reasoning { .. }
            | ItemKind::Citation { .. }
            | ItemKind::Compaction { .. }
            | ItemKind::Hook(_)
            | ItemKind::Flag { .. } => continue,
        };
        if !heading.is_empty() {
            text.push_str(&format!("\n{heading}\n\n"));
        }
        text.push_str(clean(&body).trim_end());
        text.push('\n');
    }
    print(text.trim_start())
}

/// All items; those that a dead process left open are as long as they got.
fn items(facts: &[std::sync::Arc<Recorded>]) -> Vec<domain::Item> {
    let mut items: Vec<domain::Item> = Vec::new();
    for recorded in facts {
        if let Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item } =
            &recorded.fact
        {
            match items.iter_mut().rev().find(|known| known.id == item.id) {
                Some(known) => *known = item.clone(),
                None => items.push(item.clone()),
            }
        } else if let Fact::ItemGrew { item, channel, offset, text } = &recorded.fact {
            let known = items.iter_mut().rev().find(|known| known.id == *item);
            let whole = known.and_then(|known| known.channel_text_mut(*channel));
            if let Some(whole) = whole.filter(|whole| whole.len() as u64 == *offset) {
                whole.push_str(text);
            }
        }
    }
    items
}

async fn export(journal: &dyn Store, id: &str, output: Option<&Path>) -> Result<(), Failure> {
    let facts = read(journal, id).await?;
    let mut text = format!("{}\n", json!({"type": FORMAT, "version": VERSION, "id": id}));
    for recorded in &facts {
        text.push_str(&store::export_line(recorded)?);
        text.push('\n');
    }
    // Control characters of a chat are written as JSON escapes, so that a terminal does not obey them.
    let text = domain::visible_json(&text).into_owned();
    let Some(output) = output else { return print(&text) };
    write_new_file(output, text.as_bytes())
        .map_err(|error| Failure::user(format!("{} cannot be written: {error}.", output.display())))
}

/// Writes a new private file atomically; an existing file is an error.
fn write_new_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Temporary files have mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    std::fs::File::open(folder)?.sync_all()
}

async fn import(journal: &dyn Store, file: &Path, json: bool) -> Result<(), Failure> {
    let (exported_id, facts) = read_export(file)?;
    let taken = journal.newest(&exported_id).await?.is_some();
    let id = if taken { unused_id(journal, &exported_id).await? } else { exported_id };
    match journal.lease(&id).await? {
        Lease::Held => {}
        Lease::HeldBy { holder, .. } => {
            return Err(Failure::user(format!("Another Dragoman is writing this chat: {holder}.")));
        }
    }
    for page in facts.chunks(PAGE_FACTS) {
        if let Err(failure) = journal.adopt(&id, page.to_vec()).await {
            let _ = journal.delete(&id).await;
            return Err(failure);
        }
    }
    journal.release(&id).await?;
    if json {
        return print(&format!("{}\n", json!({"id": id.as_str(), "facts": facts.len()})));
    }
    print(&format!("Imported. To continue it: dragoman chat --session {id}\n"))
}

async fn unused_id(journal: &dyn Store, id: &SessionId) -> Result<SessionId, Failure> {
    for number in 2..1000 {
        let candidate = SessionId::new(format!("{id}-{number}"));
        if journal.newest(&candidate).await?.is_none() {
            return Ok(candidate);
        }
    }
    Err(Failure::user("This chat was imported a thousand times already.").hint("Delete some of them."))
}

fn read_export(file: &Path) -> Result<(SessionId, Vec<Recorded>), Failure> {
    let shown = file.display();
    let read_error = |error: std::io::Error| Failure::user(format!("{shown} cannot be read: {error}."));
    let invalid = |line: usize, what: &str| {
        Failure::user(format!("{shown}, line {line}: {what}."))
            .hint("`dragoman chats export` makes such files.")
    };
    let mut reader = std::io::BufReader::new(std::fs::File::open(file).map_err(read_error)?);
    let mut text = String::new();
    read_line(&mut reader, &mut text).map_err(read_error)?;
    let head: Value = serde_json::from_str(&text).map_err(|_| invalid(1, "this is not an exported chat"))?;
    if head["type"] != FORMAT {
        return Err(invalid(1, "this is not an exported chat"));
    }
    if head["version"].as_u64().is_none_or(|version| version > VERSION) {
        return Err(invalid(1, "a newer Dragoman wrote this"));
    }
    let id = head["id"]
        .as_str()
        .filter(|id| is_valid_id(id))
        .ok_or_else(|| invalid(1, "the id is missing or invalid"))?;
    let id = SessionId::new(id);
    let mut facts: Vec<Recorded> = Vec::new();
    let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(u64::MAX);
    let add = |facts: &mut Vec<Recorded>, at: u64, fact: Fact| {
        // The file may have been written by anyone: its numbers do not count, and times never go back.
        let at = facts.last().map_or(at, |last| last.at.max(at)).min(now);
        facts.push(Recorded { number: facts.len() as u64 + 1, at, fact });
    };
    for line in 2.. {
        text.clear();
        if read_line(&mut reader, &mut text).map_err(read_error)? == 0 {
            break;
        }
        let recorded = store::import_line(&text)
            .map_err(|error| invalid(line, &format!("this is not a fact ({error})")))?;
        add(&mut facts, recorded.at, strip_permissions(recorded.fact));
    }
    let taint = Fact::TaintChanged { taint: foreign_taint(&facts) };
    add(&mut facts, 0, taint);
    match facts.first().map(|first| &first.fact) {
        Some(Fact::SessionOpened(_)) => Ok((id, facts)),
        _ => Err(invalid(2, "a chat begins with its opening")),
    }
}

/// Whoever wrote the file wrote the chat.
fn foreign_taint(facts: &[Recorded]) -> Taint {
    let own = facts.iter().rev().find_map(|recorded| {
        let Fact::TaintChanged { taint } = &recorded.fact else { return None };
        Some(taint.clone())
    });
    let mut taint = own.unwrap_or_default();
    taint.add_source("a chat that was imported from a file");
    taint
}

fn read_line(reader: &mut impl BufRead, text: &mut String) -> std::io::Result<usize> {
    let read = std::io::Read::take(&mut *reader, MAX_LINE_BYTES).read_line(text)?;
    if read as u64 == MAX_LINE_BYTES {
        return Err(std::io::Error::other("a line is longer than 64 MiB"));
    }
    Ok(read)
}

/// Letters, digits and a few signs, as in ids of Dragoman and of clients.
fn is_valid_id(id: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    !id.is_empty() && id.len() <= 200 && id.chars().all(is_allowed)
}

/// Drops the permissions, folder and parent of an imported chat.
fn strip_permissions(mut fact: Fact) -> Fact {
    if let Fact::SessionOpened(opened) = &mut fact {
        opened.workspace = crate::working_folder::current_folder();
        opened.settings.trust = None;
        opened.parent = None;
    } else if let Fact::SessionChanged { change } = &mut fact {
        change.trust = None;
    }
    fact
}

async fn delete(
    environment: &Environment,
    journal: &dyn Store,
    ids: &[String],
    json: bool,
) -> Result<(), Failure> {
    let undo = crate::stores::undo_store(environment, config::UndoSettings::default());
    let outputs = crate::built_in_tools::outputs(environment);
    let memory = crate::places::memory_here(environment);
    // Check all ids before the first chat is deleted.
    for id in ids {
        if journal.newest(&SessionId::new(id.as_str())).await?.is_none() {
            return Err(unknown(id));
        }
    }
    for id in ids {
        let session = SessionId::new(id.as_str());
        if let Lease::HeldBy { holder, .. } = journal.lease(&session).await? {
            return Err(Failure::user(format!("Another Dragoman is writing {}: {holder}.", clean_line(id)))
                .hint("Close it there first."));
        }
        journal.delete(&session).await?;
        undo.forget(id).map_err(|error| Failure::internal(error.to_string()))?;
        outputs.forget(&session).map_err(|error| Failure::internal(error.to_string()))?;
        if let Some(memory) = &memory {
            memory.forget_chat(id);
        }
    }
    if json {
        return print(&format!("{}\n", json!({"deleted": ids})));
    }
    print(&format!("{} deleted.\n", if ids.len() == 1 { "One chat" } else { "The chats were" }))
}

/// All facts of a chat.
pub(super) async fn read(journal: &dyn Store, id: &str) -> Result<Vec<Recorded>, Failure> {
    let session = SessionId::new(id);
    let mut all: Vec<Recorded> = Vec::new();
    loop {
        let after = all.last().map_or(0, |last| last.number);
        let page = journal.read(&session, after, PAGE_FACTS).await?;
        if page.is_empty() {
            break;
        }
        all.extend(page);
    }
    if all.is_empty() { Err(unknown(id)) } else { Ok(all) }
}

fn unknown(id: &str) -> Failure {
    Failure::user(format!("There is no chat {}.", clean_line(id)))
        .hint("`dragoman chats list --all` lists them.")
}

fn print(text: &str) -> Result<(), Failure> {
    crate::output::print(text)
}
