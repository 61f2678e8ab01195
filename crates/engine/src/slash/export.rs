//! `/export` and `/fork`: this chat as a file, and as another chat.
//!
//! Invariants: an export writes a new file inside the workspace and never over another one; a fork leaves this chat as
//! it is.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use domain::event::{Fact, SessionOpened};
use domain::item::{Item, ItemKind, Part};
use domain::{Failure, SessionId};
use session::fork;

use crate::session::Session;

/// Characters of a tool's result in an export.
const SHOWN_RESULT: usize = 2_000;

/// `/fork`: a new chat with everything that was said so far.
pub(super) async fn fork_chat(session: &Session) -> Result<String, Failure> {
    session.log.flush().await?;
    let create = fork::fork(session.store.as_ref(), &session.id, None, "fork".to_owned()).await?;
    let id = SessionId::new(uuid::Uuid::now_v7().to_string());
    let title = create.settings.title.clone().unwrap_or_else(|| id.to_string());
    let opened = SessionOpened {
        workspace: create.workspace,
        settings: create.settings,
        parent: create.parent,
        client: create.client,
    };
    let facts = [vec![Fact::SessionOpened(opened)], create.facts].concat();
    session.store.lease(&id).await?;
    let appended = session.store.append(&id, facts).await;
    session.store.release(&id).await?;
    appended?;
    Ok(format!(
        "The new chat is called \"{title}\" ({id}). Open it from the list of chats, or with `/resume {id}`."
    ))
}

/// `/export [file]`: the chat as Markdown.
pub(super) fn write(session: &Session, file: Option<&str>) -> Result<String, Failure> {
    let (title, text) = {
        let state = session.state();
        let title = state.settings().title.clone().unwrap_or_else(|| session.id.to_string());
        let text = markdown(&title, state.items());
        (title, text)
    };
    let name = file.map_or_else(|| file_name(&title, "md"), str::to_owned);
    let path = write_new(session, &name, &text, "/export notes/chat.md")?;
    Ok(format!("This chat is written to {}.", path.display()))
}

/// Writes a new file of the workspace; `example` names another one.
pub(super) fn write_new(
    session: &Session,
    name: &str,
    text: &str,
    example: &str,
) -> Result<PathBuf, Failure> {
    let root = session.roots.first().ok_or_else(|| Failure::user("This chat has no folder to write to."))?;
    let path = inside(root, Path::new(name))?;
    let written = OpenOptions::new().write(true).create_new(true).open(&path);
    written.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        Failure::user(format!("{} cannot be written: {error}.", path.display()))
            .hint(format!("Name another file: `{example}`."))
    })?;
    Ok(path)
}

/// A new file below the workspace folder, through no link.
fn inside(root: &Path, name: &Path) -> Result<PathBuf, Failure> {
    let is_plain = name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let path = root.join(name);
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let root = root.canonicalize().ok();
    match (folder, root) {
        (Some(folder), Some(root)) if is_plain && folder.starts_with(&root) => Ok(path),
        _ => Err(Failure::user(format!("{} is not a place inside the workspace.", name.display()))
            .hint("Name a file of the workspace whose folder exists.")),
    }
}

pub(super) fn file_name(title: &str, ending: &str) -> String {
    let plain: String = title
        .chars()
        .take(60)
        .map(|character| if character.is_alphanumeric() { character } else { '-' })
        .collect();
    format!("chat-{}.{ending}", plain.trim_matches('-').to_lowercase())
}

fn markdown(title: &str, items: &[Item]) -> String {
    let mut out = format!("# {title}\n");
    for item in items {
        // Writing to a string cannot fail.
        let _ = match &item.kind {
            ItemKind::UserMessage { text, .. } => write!(out, "\n## User\n\n{}\n", text.trim()),
            ItemKind::AgentMessage { text, .. } if !text.trim().is_empty() => {
                write!(out, "\n## Assistant\n\n{}\n", text.trim())
            }
            ItemKind::ToolCall(call) => {
                let result: String = call.result.iter().map(part_text).collect::<Vec<_>>().join("\n");
                let shown: String = result.chars().take(SHOWN_RESULT).collect();
                let summary = if call.summary.is_empty() { &call.name } else { &call.summary };
                write!(out, "\n### {summary}\n\n{}\n", fenced(&shown))
            }
            ItemKind::Compaction { summary, .. } => write!(out, "\n## Summary\n\n{}\n", summary.trim()),
            ItemKind::Flag { text } if !text.is_empty() => write!(out, "\n> Flag: {text}\n"),
            ItemKind::AgentMessage { .. }
            | ItemKind::Reasoning { .. }
            | ItemKind::Citation { .. }
            | ItemKind::Command { .. }
            | ItemKind::SystemText { .. }
            | ItemKind::Hook(_)
            | ItemKind::Note(_)
            | ItemKind::Flag { .. } => Ok(()),
        };
    }
    out
}

pub(super) fn part_text(part: &Part) -> &str {
    match part {
        Part::Text { text } => text,
        Part::Image { .. } => "(an image)",
    }
}

/// A fence that is longer than every one inside.
fn fenced(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_stays_inside_the_workspace_and_has_a_plain_name() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("notes")).unwrap();
        platform::symlink(&std::env::temp_dir(), &root.path().join("out")).unwrap();
        for (name, is_inside) in [
            ("a.md", true),
            ("notes/a.md", true),
            ("../a.md", false),
            ("/tmp/a.md", false),
            ("out/a.md", false),
        ] {
            assert_eq!(inside(root.path(), Path::new(name)).is_ok(), is_inside, "{name}");
        }
        assert_eq!(file_name("Fix: the/race!", "md"), "chat-fix--the-race.md");
        assert_eq!(fenced("a\n```\nb"), "````\na\n```\nb\n````");
    }
}
