//! `/memory`: lists, adds, removes and exports entries, and takes the user's word for what waits for it.

use domain::Failure;

use super::consolidation;
use super::files::{MemoryFolders, MemoryScope};
use super::keeping::{OFF, keep};
use crate::session::Session;

/// What `/memory` and `/memory-consolidate` say.
pub(crate) async fn answer(session: &Session, name: &str, arguments: &[String]) -> Result<String, Failure> {
    match name {
        "memory-consolidate" => consolidation::propose(session, arguments).await,
        _ => run(session, arguments),
    }
}

fn run(session: &Session, arguments: &[String]) -> Result<String, Failure> {
    let folders = session.workspace.texts.memory().ok_or_else(|| Failure::user(OFF))?;
    let (first, rest) = arguments.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let rest = rest.join(" ");
    match first {
        "" | "list" => Ok(list(&folders)),
        "add" | "user" => kept(session, MemoryScope::User, &rest),
        "project" => kept(session, MemoryScope::Project, &rest),
        "forget" => forget(&folders, rest.trim()),
        "keep" => keep_proposal(session, rest.trim()),
        "apply" => consolidation::apply(session, &folders),
        "export" => Ok(export(&folders)),
        _ => Err(Failure::user(format!("`/memory` does not know {first:?}."))
            .hint("/memory lists; add, project, forget, keep, apply and export change or print it.")),
    }
}

fn kept(session: &Session, scope: MemoryScope, fact: &str) -> Result<String, Failure> {
    keep(session, scope, fact).unwrap_or_else(|| Err(Failure::user(OFF)))
}

fn list(folders: &MemoryFolders) -> String {
    let contents = folders.read();
    let mut lines = Vec::new();
    for (number, entry) in (1..).zip(&contents.entries) {
        let whose = match (entry.scope, folders.is_trusted) {
            (MemoryScope::User, _) => "",
            (MemoryScope::Project, true) => " (project)",
            (MemoryScope::Project, false) => " (project; models are told of it after `dragoman trust`)",
        };
        let chat = entry.chat.as_ref().map(|chat| format!(", chat {chat}")).unwrap_or_default();
        lines.push(format!(
            "{number}. {}{whose} ({}{chat}) {}",
            entry.text,
            entry.date,
            entry.path.display()
        ));
    }
    lines.extend(
        contents.skipped.iter().map(|(path, _, why)| format!("{} is no entry: {why}", path.display())),
    );
    if lines.is_empty() {
        return "Nothing is in memory. Say \"remember that …\", or `/memory add FACT`, or `/memory project FACT` for this project."
            .to_owned();
    }
    lines.push(
        "\nThe files are yours to edit. `/memory forget NUMBER` removes one, `/memory export` prints all."
            .to_owned(),
    );
    domain::visible_text(&lines.join("\n")).into_owned()
}

fn forget(folders: &MemoryFolders, which: &str) -> Result<String, Failure> {
    let entries = folders.read().entries;
    let by_number = which.parse::<usize>().ok().and_then(|number| entries.get(number.checked_sub(1)?));
    let entry = by_number.or_else(|| entries.iter().find(|entry| entry.name == which)).ok_or_else(|| {
        Failure::user(format!("There is no entry {which:?}."))
            .hint("`/memory` lists them with their numbers.")
    })?;
    folders.remove(entry)?;
    Ok(format!("Removed from memory: {}", entry.text))
}

fn keep_proposal(session: &Session, which: &str) -> Result<String, Failure> {
    let number = which.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let fact = number.and_then(|number| session.memory.lock().proposals.get(number).cloned());
    let fact = fact.ok_or_else(|| {
        Failure::user(format!("There is no proposal {which:?}.")).hint("`/memory add FACT` keeps any fact.")
    })?;
    kept(session, MemoryScope::User, &fact)
}

/// All entries as one Markdown text.
fn export(folders: &MemoryFolders) -> String {
    let mut text = String::from("# Memory\n");
    for (scope, heading) in [(MemoryScope::User, "Of the user"), (MemoryScope::Project, "Of the project")] {
        text.push_str(&format!("\n## {heading}\n\n"));
        for entry in folders.read().entries.iter().filter(|entry| entry.scope == scope) {
            text.push_str(&format!("- {} ({})\n", entry.text.replace('\n', "\n  "), entry.date));
        }
    }
    text
}
