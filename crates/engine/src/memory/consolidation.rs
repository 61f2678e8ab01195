//! `/memory-consolidate`: the model proposes a shorter memory; the user sees the difference and applies it, or not.
//!
//! Invariant: nothing changes before `/memory apply`, and then only what was shown.

use std::time::Duration;

use domain::Failure;
use domain::command::TurnLimits;
use domain::item::Part;
use domain::model::{Prompt, PromptEntry};

use super::files::{MemoryEntry, MemoryFolders, MemoryScope, is_same};
use super::keeping::{OFF, holds_secret};
use super::pending::Consolidation;
use crate::completion::{Used, collect};
use crate::paid_call;
use crate::session::Session;
use crate::spending;
use crate::turn::start;

/// The purpose of these calls in the usage of a chat.
pub const PURPOSE: &str = "memory";
const TIMEOUT: Duration = Duration::from_secs(120);
const REQUEST: &str = include_str!("../texts/memory_consolidate.md");

pub(super) async fn propose(session: &Session, wish: &[String]) -> Result<String, Failure> {
    let folders = session.workspace.texts.memory().ok_or_else(|| Failure::user(OFF))?;
    let entries = folders.counting();
    if entries.len() < 2 {
        return Ok("There is nothing to consolidate: the memory has fewer than two entries.".to_owned());
    }
    let answer = ask(session, &request(&entries, &wish.join(" "))).await?;
    let mut proposal = compare(&entries, &answer)?;
    proposal.added.retain(|(_, fact)| !holds_secret(fact));
    if proposal.removed.is_empty() && proposal.added.is_empty() {
        return Ok("The model would leave the memory as it is.".to_owned());
    }
    let text = diff(&proposal);
    session.memory.lock().consolidation = Some(proposal);
    Ok(format!("```diff\n{text}```\n`/memory apply` makes these changes; nothing has changed yet."))
}

/// Makes the changes that were shown last.
pub(super) fn apply(session: &Session, folders: &MemoryFolders) -> Result<String, Failure> {
    let proposal = session.memory.lock().consolidation.take();
    let Some(Consolidation { removed, added }) = proposal else {
        return Err(
            Failure::user("There is nothing to apply.").hint("`/memory-consolidate` proposes changes.")
        );
    };
    let date = config::local_now().strftime("%Y-%m-%d").to_string();
    // New entries first: a failure then loses nothing.
    for (scope, fact) in &added {
        folders.add(*scope, fact, Some(session.id.as_str()), &date)?;
    }
    // A file that was edited since has words that nobody was shown.
    let now = folders.read().entries;
    let is_as_shown =
        |shown: &&MemoryEntry| now.iter().any(|entry| entry.path == shown.path && entry.text == shown.text);
    let unchanged: Vec<&MemoryEntry> = removed.iter().filter(is_as_shown).collect();
    for entry in &unchanged {
        folders.remove(entry)?;
    }
    Ok(format!("The memory has {} new entries, and {} are removed.", added.len(), unchanged.len()))
}

fn request(entries: &[MemoryEntry], wish: &str) -> String {
    let mut text = REQUEST.trim().to_owned();
    for (scope, heading) in [(MemoryScope::User, "## user"), (MemoryScope::Project, "## project")] {
        text.push_str(&format!("\n\n{heading}"));
        for entry in entries.iter().filter(|entry| entry.scope == scope) {
            text.push_str(&format!("\n- {} [{}]", entry.text.replace('\n', " "), entry.date));
        }
    }
    if !wish.trim().is_empty() {
        text.push_str(&format!("\n\nThe user adds: {}", wish.trim()));
    }
    text
}

/// What an answer would change. An answer without the form changes nothing.
fn compare(entries: &[MemoryEntry], answer: &str) -> Result<Consolidation, Failure> {
    let mut scope = None;
    let mut facts: Vec<(MemoryScope, String)> = Vec::new();
    for line in answer.lines().map(str::trim) {
        match line.trim_start_matches('#').trim() {
            "user" if line.starts_with('#') => scope = Some(MemoryScope::User),
            "project" if line.starts_with('#') => scope = Some(MemoryScope::Project),
            _ => {
                let fact = line.strip_prefix("- ").map(without_date).filter(|fact| !fact.is_empty());
                facts.extend(scope.zip(fact.map(str::to_owned)));
            }
        }
    }
    if facts.is_empty() {
        let failure =
            Failure::provider("The answer of the model has no list of facts, so nothing is proposed.");
        return Err(failure.hint("Try again, or remove entries with `/memory forget`."));
    }
    let is_kept = |entry: &&MemoryEntry| {
        facts.iter().any(|(scope, fact)| *scope == entry.scope && is_same(fact, &entry.text))
    };
    let is_new = |(scope, fact): &&(MemoryScope, String)| {
        !entries.iter().any(|entry| entry.scope == *scope && is_same(&entry.text, fact))
    };
    let removed = entries.iter().filter(|entry| !is_kept(entry)).cloned().collect();
    let added = facts.iter().filter(is_new).cloned().collect();
    Ok(Consolidation { removed, added })
}

/// The day behind a fact is ours, not a part of it.
fn without_date(line: &str) -> &str {
    match line.rsplit_once(" [") {
        Some((fact, rest)) if rest.ends_with(']') && rest.len() <= 12 => fact.trim(),
        _ => line.trim(),
    }
}

fn diff(proposal: &Consolidation) -> String {
    let name = |scope| match scope {
        MemoryScope::User => "user",
        MemoryScope::Project => "project",
    };
    let removed = proposal.removed.iter().map(|entry| format!("- {}: {}\n", name(entry.scope), entry.text));
    let added = proposal.added.iter().map(|(scope, fact)| format!("+ {}: {fact}\n", name(*scope)));
    domain::visible_text(&removed.chain(added).collect::<String>()).into_owned()
}

async fn ask(session: &Session, request: &str) -> Result<String, Failure> {
    let spent = session.state().usage().session_cost.unwrap_or(0.0);
    spending::check_caps(session, &TurnLimits::default(), spent).await?;
    let model = start::choose_model(session)?;
    let entries = vec![PromptEntry::User { parts: vec![Part::text(request)] }];
    let prompt = Prompt { session: Some(session.id.clone()), entries, ..Prompt::default() };
    let info = model.info();
    let call = paid_call::reserve(&spending::gate(session), &info, &prompt).await?;
    let mut used = Used::of(&info);
    let answer = collect(call.stream(model.stream(prompt)), None, &mut used);
    let answer = tokio::time::timeout(TIMEOUT, answer).await;
    used.record(session, PURPOSE, matches!(answer, Ok(Ok(_))));
    let late =
        |_| Failure::provider(format!("The model gave no whole answer within {} s.", TIMEOUT.as_secs()));
    Ok(answer.map_err(late)??.text)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn entry(scope: MemoryScope, text: &str) -> MemoryEntry {
        MemoryEntry {
            path: PathBuf::from("/x.md"),
            scope,
            name: "x".into(),
            description: text.into(),
            text: text.into(),
            date: "2026-11-17".into(),
            chat: None,
            modified: 0,
        }
    }

    #[test]
    fn a_proposal_is_the_difference_and_an_answer_without_form_is_none() {
        use MemoryScope::{Project, User};
        let entries = [entry(User, "Likes tabs"), entry(User, "Prefers tabs."), entry(Project, "Use pnpm")];
        let answer = "Sure.\n## user\n- Prefers tabs [2026-11-17]\n## project\n- Use pnpm\n- Never use npm\n";
        let proposal = compare(&entries, answer).unwrap();
        assert_eq!(proposal.removed, [entries[0].clone()]);
        assert_eq!(proposal.added, [(Project, "Never use npm".to_owned())]);
        assert_eq!(diff(&proposal), "- user: Likes tabs\n+ project: Never use npm\n");
        assert!(compare(&entries, "I cannot do that.").is_err());
        assert!(compare(&entries, "- a fact without a heading").is_err());
    }
}
