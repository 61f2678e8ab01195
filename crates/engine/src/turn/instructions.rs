//! The system prompt: the text of the behavior, the user's rules, the project's AGENTS.md, servers' instructions.
//!
//! Invariant: made once per chat, behavior and model; nothing in it changes from turn to turn, so the cached prefix holds.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use domain::model::ModelInfo;
use domain::taint::Taint;
use domain::tool::{Tool, ToolEffect};
use domain::tool_call::Origin;
use platform::project_files;

use crate::behavior::canonical;
use crate::own_text::own_text;
use crate::rules::{self, Rules};
use crate::session::{Instructions, Session};

const SMALL: &str = include_str!("../texts/small.md");

/// Marks of lines in our texts, and the kind of tool that each depends on.
const MARKS: [(&str, ToolEffect); 3] = [
    ("{writes files}", ToolEffect::WritesFiles),
    ("{runs commands}", ToolEffect::RunsCommands),
    ("{previews}", ToolEffect::Previews),
];

/// Files with instructions are cut here.
pub const FILE_LIMIT: usize = 32 << 10;
/// Larger files are left out.
const FILE_LIMIT_BYTES: u64 = 4 * FILE_LIMIT as u64;
/// More files of rules than this are left out.
const MAX_RULE_FILES: usize = 50;
/// Files with instructions for a folder; the first that is there counts. The others are those of other assistants.
const INSTRUCTION_FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];

/// The instructions of this chat in its present behavior.
pub(crate) fn of(session: &Session, model: &ModelInfo) -> Instructions {
    let behavior = session.state().settings().behavior.clone();
    let behavior = canonical(behavior.as_deref().unwrap_or_default()).to_owned();
    // Rules may be for some models only.
    let key = (behavior, model.id.clone(), model.tools);
    let mut cached = session.instructions.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, instructions)) = &*cached
        && *known == key
    {
        return instructions.clone();
    }
    let rules = Rules::of(session, &key.0, model);
    let system = make(session, &key.0, model, &rules);
    let instructions = Instructions { system, fetched_rules: rules.fetched };
    *cached = Some((key, instructions.clone()));
    instructions
}

fn make(session: &Session, behavior: &str, model: &ModelInfo, rules: &Rules) -> Vec<Arc<str>> {
    let settings = &session.workspace.settings;
    let own = own_text(settings.prompts(behavior).chat.as_ref());
    if model.id.starts_with("local/") {
        return vec![own.as_deref().unwrap_or(SMALL).trim().into()];
    }
    let tools = crate::behavior::tools(session, Some(behavior), model);
    let own = session.workspace.texts.system_prompt().or(own);
    let base = own
        .unwrap_or_else(|| filled(crate::behavior::system_prompt(settings.base_behavior(behavior)), &tools));
    let mut text = base.trim().to_owned();
    text.push_str("\n\nWorkspace:");
    for root in session.roots.iter() {
        text.push_str(&format!(" {}", root.display()));
    }
    let environment = session.workspace.texts.environment();
    if !environment.is_empty() {
        text.push_str(&format!("\n{}", environment.trim()));
    }
    for rule in &rules.given {
        text.push_str(&format!("\n\n{}", rules::text(rule)));
    }
    if let Some(catalog) = rules::catalog(&rules.fetched) {
        text.push_str(&format!("\n\n{catalog}"));
    }
    let files = agents_files(session);
    let is_own = |path: &Path| session.roots.iter().all(|root| !path.starts_with(root));
    if !session.workspace.is_trusted && files.iter().any(|(path, _)| !is_own(path)) {
        let mut taint = Taint::default();
        taint.add_source("instructions of a folder that you have not trusted");
        session.add_taint(&taint);
    }
    for (path, content) in files {
        text.push_str(&format!(
            "\n\n<instructions file=\"{}\">\n{}\n</instructions>",
            path.display(),
            content.trim()
        ));
    }
    if model.tools
        && let Some(skills) = crate::skills::instructions(session)
    {
        text.push_str(&format!("\n\n{skills}"));
    }
    for instructions in session.sources().flat_map(|source| source.instructions()) {
        text.push_str("\n\n");
        text.push_str(instructions.trim());
    }
    vec![text.into()]
}

/// Lines about a kind of tool, such as `{writes files}`, stay only where a built-in tool of that kind is offered.
fn filled(template: &str, tools: &[Arc<dyn Tool>]) -> String {
    let is_offered = |effect| {
        tools.iter().any(|tool| tool.spec().origin == Origin::Native && tool.spec().effect == effect)
    };
    let line = |line: &str| {
        for (mark, effect) in MARKS {
            if let Some(rest) = line.strip_prefix(mark) {
                return is_offered(effect).then(|| rest.to_owned());
            }
        }
        Some(line.to_owned())
    };
    template.lines().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// The file with instructions of the user and of each workspace folder, outermost first.
fn agents_files(session: &Session) -> Vec<(PathBuf, String)> {
    let parents = session.workspace.settings.include_parent_agents_files;
    let global = session.workspace.texts.global_agents_file().into_iter().filter_map(|path| {
        let content = instructions_text(project_files::read_named(&path, FILE_LIMIT_BYTES))?;
        Some((path, content))
    });
    let local = session.roots.iter().flat_map(|root| {
        let mut folders: Vec<&Path> = root.ancestors().take(if parents { usize::MAX } else { 1 }).collect();
        folders.reverse();
        folders.into_iter().filter_map(in_use)
    });
    global.chain(local).collect()
}

/// The file with the instructions of a folder that models are given, or the folder of Cursor's rules.
pub fn instruction_file(folder: &Path) -> Option<PathBuf> {
    in_use(folder).map(|(path, _)| path)
}

fn in_use(folder: &Path) -> Option<(PathBuf, String)> {
    let file = INSTRUCTION_FILES.iter().find_map(|name| {
        let content = project_files::read_beneath(folder, Path::new(name), FILE_LIMIT_BYTES);
        Some((folder.join(name), instructions_text(content)?))
    });
    file.or_else(|| cursor_rules(folder))
}

/// The rules of Cursor that hold for every chat: those that say so, and those without a head.
fn cursor_rules(folder: &Path) -> Option<(PathBuf, String)> {
    let inner = Path::new(".cursor/rules");
    let entries = std::fs::read_dir(folder.join(inner)).ok()?.flatten();
    let mut names: Vec<PathBuf> = entries.map(|entry| inner.join(entry.file_name())).collect();
    names.retain(|name| name.extension().is_some_and(|it| it == "mdc" || it == "md"));
    names.sort();
    let mut all = String::new();
    for name in names.iter().take(MAX_RULE_FILES) {
        let read = project_files::read_beneath(folder, name, FILE_LIMIT_BYTES).ok();
        let Some(text) = read.and_then(|bytes| String::from_utf8(bytes).ok()) else { continue };
        let head = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
        let (applies, body) = match head {
            Some((head, body)) => (head.lines().any(|line| line.trim() == "alwaysApply: true"), body),
            None => (true, text.as_str()),
        };
        if applies && all.len() < FILE_LIMIT {
            all.push_str(body.trim());
            all.push_str("\n\n");
        }
    }
    Some((folder.join(inner), instructions_text(Ok(all.into_bytes()))?))
}

fn instructions_text(content: std::io::Result<Vec<u8>>) -> Option<String> {
    let mut content = String::from_utf8(content.ok()?).ok()?;
    if content.len() > FILE_LIMIT {
        content.truncate(content.floor_char_boundary(FILE_LIMIT));
        content.push_str("\n(cut)");
    }
    (!content.trim().is_empty()).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules that always apply come along, those for some files do not, and a long one is cut with its end.
    #[test]
    fn rules_of_cursor_that_always_apply_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(cursor_rules(folder.path()).is_none());
        let rules = folder.path().join(".cursor/rules");
        std::fs::create_dir_all(&rules).expect("a folder");
        for (name, text) in [
            ("a.mdc", "---\nalwaysApply: true\n---\nUse tabs.\n"),
            ("b.mdc", "---\nglobs: *.rs\nalwaysApply: false\n---\nOnly for Rust.\n"),
            ("c.md", "Speak plainly."),
            ("d.txt", "Not a rule."),
        ] {
            std::fs::write(rules.join(name), text).expect("a file");
        }
        let (_, text) = cursor_rules(folder.path()).expect("rules");
        assert_eq!(text.trim(), "Use tabs.\n\nSpeak plainly.");
        std::fs::write(rules.join("a.mdc"), "x".repeat(FILE_LIMIT)).expect("a file");
        let (_, text) = cursor_rules(folder.path()).expect("rules");
        assert!(text.ends_with("(cut)") && !text.contains("Speak plainly."));
    }
}
