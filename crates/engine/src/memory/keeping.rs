//! What a chat has of the memory, and what it adds to it.

use domain::event::{Fact, Level, Notice};
use domain::item::{ItemKind, Part};
use domain::memory::{MemoryList, MemorySummary};
use domain::taint::Taint;
use domain::{Failure, TurnId};

use super::files::{MemoryContents, MemoryEntry, MemoryFolders, MemoryScope, is_same};
use crate::session::Session;
use crate::tool_calls::taint;

/// What is said where there is no memory.
pub(super) const OFF: &str = "The memory is switched off: `memory.enabled` is false in the settings.";
/// The part of the first request that is about the memory.
const INDEX_BYTES: usize = 400;
const HEADING: &str =
    "Memory (read a file for more; propose a lasting fact as <memory>…</memory>), newest first:";
const HEADING_ONLY: &str = "Memory (read a file for more), newest first:";
/// What the index shows of an entry, in bytes.
const LINE_BYTES: usize = 90;
/// Facts of one answer.
const MAX_PROPOSALS: usize = 3;
/// How a prompt begins that wants something kept.
const WISHES: [&str; 4] = ["remember that ", "please remember that ", "remember: ", "please remember: "];

/// The lines for the system prompt, how many entries they name, and all of them; `None` where there is nothing to tell.
pub(crate) fn index(folders: &MemoryFolders) -> Option<(String, usize, Vec<MemoryEntry>)> {
    let entries = folders.counting();
    let first = entries.first()?;
    let mut text = if folders.may_propose { HEADING } else { HEADING_ONLY }.to_owned();
    let mut folder = None;
    let mut named = 0;
    for entry in &entries {
        let parent = entry.path.parent();
        let place = match parent.filter(|parent| folder != Some(*parent)) {
            Some(parent) => format!("\n{}/", parent.display()),
            None => String::new(),
        };
        let file = entry.path.file_name().unwrap_or_default().to_string_lossy();
        let mut line = format!("\n- {file}: {}", entry.description.replace('\n', " "));
        line.truncate(line.floor_char_boundary(LINE_BYTES));
        // Room for the last line.
        if text.len() + place.len() + line.len() > INDEX_BYTES - 20 {
            break;
        }
        text.push_str(&place);
        text.push_str(&line);
        folder = parent;
        named += 1;
    }
    if named == 0 {
        let parent = first.path.parent().unwrap_or(&first.path);
        text.push_str(&format!("\n{}/", parent.display()));
        text.truncate(text.floor_char_boundary(INDEX_BYTES - 20));
    }
    if named < entries.len() {
        text.push_str(&format!("\n- {} more files", entries.len() - named));
    }
    Some((text, named, entries))
}

/// The entries for clients.
pub(crate) fn summary(folders: &MemoryFolders) -> MemoryList {
    let MemoryContents { entries, skipped } = folders.read();
    let is_of_project = |scope| scope == MemoryScope::Project;
    MemoryList {
        indexed: index(folders).map_or(0, |(_, named, _)| named),
        entries: entries
            .into_iter()
            .map(|entry| MemorySummary {
                is_of_project: is_of_project(entry.scope),
                path: entry.path,
                name: entry.name,
                description: entry.description,
                modified: entry.modified,
            })
            .collect(),
        skipped: skipped.into_iter().map(|(path, scope, why)| (path, is_of_project(scope), why)).collect(),
    }
}

/// The index for a chat. From now on the model reads these files without a question.
pub(crate) fn instructions(session: &Session) -> Option<String> {
    if session.is_subagent() {
        return None;
    }
    let (text, _, entries) = index(&session.workspace.texts.memory()?)?;
    let outside = entries.iter().filter(|entry| entry.scope == MemoryScope::User);
    let real = outside.filter_map(|entry| entry.path.canonicalize().ok());
    let keys: Vec<String> = real.map(|path| format!("read_file {}", path.display())).collect();
    session.change_remembered(|remembered| {
        let missing: Vec<String> = keys.into_iter().filter(|key| !remembered.contains(key)).collect();
        remembered.add(&missing);
    });
    Some(text)
}

/// The fact of a prompt `remember that …`.
pub(crate) fn wish<'p>(session: &Session, prompt: &'p str) -> Option<&'p str> {
    let start = prompt.trim_start();
    let lower = start.to_lowercase();
    let wish = WISHES.iter().find(|wish| lower.starts_with(**wish))?;
    let fact = start.get(wish.len()..)?.lines().next().unwrap_or_default().trim();
    (!fact.is_empty() && !session.is_subagent() && !session.decisions.is_recorded()).then_some(fact)
}

/// Keeps the fact of a wish. What the model is told of it.
pub(crate) fn keep_wish(session: &Session, fact: &str) -> Option<Part> {
    let kept = keep(session, MemoryScope::User, fact)?;
    let text = match kept {
        Ok(text) => text,
        Err(failure) => {
            tell(session, Level::Warning, failure.to_string());
            return None;
        }
    };
    tell(session, Level::Info, text);
    Some(Part::text("(Dragoman has kept this in the user's memory; you need not.)"))
}

/// Facts that the model proposes in its answer.
pub(crate) fn take_proposals(session: &Session, turn: TurnId, step: u32, answer: &str) {
    if session.is_subagent() || session.decisions.is_recorded() || !answer.contains("<memory>") {
        return;
    }
    let Some(folders) = session.workspace.texts.memory().filter(|folders| folders.may_propose) else {
        return;
    };
    let facts = answer.split("<memory>").skip(1).filter_map(|piece| piece.split_once("</memory>"));
    let is_tainted = session.taint().is_tainted();
    let mut lines = Vec::new();
    for (fact, _) in facts.take(MAX_PROPOSALS) {
        let fact = fact.trim();
        let is_known = folders.read().entries.iter().any(|entry| is_same(&entry.text, fact));
        if fact.is_empty() || is_known {
            continue;
        }
        if is_tainted {
            let mut pending = session.memory.lock();
            pending.proposals.push(fact.to_owned());
            let number = pending.proposals.len();
            lines.push(format!(
                "The model proposes to remember: {fact}\nThis chat has read text of strangers, so it is kept only if you say \
                 so: `/memory keep {number}`."
            ));
        } else {
            match keep(session, MemoryScope::User, fact) {
                Some(Ok(text)) => lines.push(text),
                Some(Err(failure)) => lines.push(failure.to_string()),
                None => {}
            }
        }
    }
    if !lines.is_empty() {
        let text = domain::visible_text(&lines.join("\n")).into_owned();
        let item = session.new_item(turn, step, ItemKind::SystemText { text });
        session.commit(vec![Fact::ItemEnded { item }]);
    }
}

/// Keeps a fact; `None` where there is no memory. A sentence says what was done.
pub(super) fn keep(session: &Session, scope: MemoryScope, fact: &str) -> Option<Result<String, Failure>> {
    let folders = session.workspace.texts.memory()?;
    if holds_secret(fact) {
        return Some(Err(Failure::user("This looks like a key or a password, so it is not kept in memory.")));
    }
    let date = config::local_now().strftime("%Y-%m-%d").to_string();
    let added = folders.add(scope, fact, Some(session.id.as_str()), &date);
    Some(added.map(|is_new| match is_new {
        true => format!("Kept in memory: {fact} (`/memory` lists it, `/memory forget` removes it.)"),
        false => format!("Already in memory: {fact}"),
    }))
}

/// Whether a text looks like a key or a password.
pub(super) fn holds_secret(text: &str) -> bool {
    let mut found = Taint::default();
    taint::add_visible_secrets(&[Part::text(text)], &mut found);
    !found.secrets().is_empty()
}

fn tell(session: &Session, level: Level, text: String) {
    session.commit(vec![Fact::Notice { notice: Notice { level, text } }]);
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_index_stays_below_its_limit_and_is_not_there_without_entries() {
        let root = tempfile::tempdir().unwrap();
        let folders = MemoryFolders {
            user: root.path().join("memory"),
            project: Some((root.path().to_owned(), PathBuf::from(".dragoman/memory"))),
            is_trusted: true,
            may_propose: true,
            delete_with_chats: false,
        };
        assert!(index(&folders).is_none());
        folders.add(MemoryScope::User, "Prefers short answers", None, "2026-11-17").unwrap();
        let (text, named, _) = index(&folders).unwrap();
        assert_eq!(named, 1);
        assert!(text.contains("- prefers-short-answers.md: Prefers short answers"), "{text}");
        for number in 0..60 {
            let fact =
                format!("Fact number {number} about ünïcödé and a rather long tail of words behind it");
            folders.add(MemoryScope::User, &fact, None, "2026-11-17").unwrap();
            folders.add(MemoryScope::Project, &fact, None, "2026-11-17").unwrap();
        }
        let (text, _, entries) = index(&folders).unwrap();
        assert!(text.len() <= INDEX_BYTES, "{}", text.len());
        assert!(entries.len() == 121 && text.ends_with("more files"), "{text}");
    }
}
