//! Commands, skills and agents of other programs: Markdown files with a head of `key: value` lines.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::plan::{Plan, Scope, Source};

/// Larger files are left out.
const MAX_BYTES: u64 = 256 << 10;
const MAX_FILES: usize = 500;
const UNREADABLE: &str = "it is no text, a link or too large; copy it by hand";
/// Folders in folders of a skill.
const SKILL_DEPTH: usize = 3;
/// Tools of Claude Code, and tools of ours that an agent without them must not have.
const TOOLS: [(&[&str], &[&str]); 4] = [
    (&["Bash"], &["shell_command", "background_job"]),
    (&["Edit", "Write", "MultiEdit"], &["edit_file", "write_file", "move_file"]),
    (&["WebFetch"], &["fetch_url"]),
    (&["Task", "Agent"], &["spawn_agent"]),
];

/// A text with its head.
pub(super) struct Document {
    head: Vec<(String, String)>,
    pub body: String,
}

impl Document {
    pub(super) fn parse(text: &str) -> Self {
        let text = text.replace("\r\n", "\n");
        let inner = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
        let Some((head, body)) = inner else { return Self { head: Vec::new(), body: text } };
        let mut pairs: Vec<(String, String)> = Vec::new();
        for line in head.lines() {
            match (line.trim().strip_prefix("- "), line.split_once(':')) {
                // An entry of a list belongs to the key above it.
                (Some(entry), _) => {
                    if let Some((_, value)) = pairs.last_mut() {
                        value.push_str(&format!(", {}", unquoted(entry)));
                    }
                }
                (None, Some((key, value))) if !key.starts_with(' ') => {
                    pairs.push((key.trim().to_lowercase(), unquoted(value)));
                }
                (None, _) => {}
            }
        }
        Self { head: pairs, body: body.trim_start_matches('-').trim_start().to_owned() }
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let value = self.head.iter().find(|(known, _)| known == key).map(|(_, value)| value.trim())?;
        Some(value.trim_start_matches(", ")).filter(|value| !value.is_empty())
    }
}

fn unquoted(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

/// A folder of another program.
pub(super) struct Folder<'a> {
    pub source: &'a Source,
    pub folder: PathBuf,
}

impl Folder<'_> {
    /// The Markdown files with their names; those of folders are `folder-name`.
    fn files(&self) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        collect(&self.folder, "", 3, &mut found);
        found
    }

    fn read(&self, plan: &Plan<'_>, file: &Path) -> Option<String> {
        let bytes = match self.source.scope {
            Scope::User => project_files::read_named(file, MAX_BYTES),
            Scope::Project => {
                let inner = file.strip_prefix(plan.folder).ok()?;
                project_files::read_beneath(plan.folder, inner, MAX_BYTES)
            }
        };
        String::from_utf8(bytes.ok()?).ok()
    }

    fn at(&self, file: &Path) -> Source {
        Source { path: file.to_owned(), ..self.source.clone() }
    }

    pub(super) fn commands(&self, plan: &mut Plan<'_>) {
        for (name, file) in self.files() {
            let source = self.at(&file);
            let Some(text) = self.read(plan, &file) else {
                plan.leave_out(&source, "the file", UNREADABLE);
                continue;
            };
            let document = Document::parse(&text);
            plan.found.push(source.clone());
            for (key, value) in document.head.iter().filter(|(key, _)| key != "description") {
                let why = "commands have no such setting here";
                plan.leave_out(&source, format!("{key}: {}", value.trim_start_matches(", ")), why);
            }
            if document.body.contains("!`") {
                plan.leave_out(&source, "!`command`", "a command's text runs no programs here");
            }
            let content = command_text(document.get("description"), &document.body);
            plan.file(&source, &format!("commands/{name}.md"), &content);
        }
    }

    /// Rules of Cursor that hold for some files only. Those that always hold are read where they are.
    pub(super) fn cursor_rules(&self, plan: &mut Plan<'_>) {
        let mut files = Vec::new();
        collect_all(&self.folder, SKILL_DEPTH, &mut files);
        for file in files.iter().filter(|file| file.extension().is_some_and(|it| it == "mdc")) {
            let source = self.at(file);
            let Some(text) = self.read(plan, file) else {
                plan.leave_out(&source, "the file", UNREADABLE);
                continue;
            };
            let document = Document::parse(&text);
            if document.head.is_empty() || document.get("alwaysapply") == Some("true") {
                continue;
            }
            plan.found.push(source.clone());
            let name = file.file_stem().map(|stem| plain_name(&stem.to_string_lossy())).unwrap_or_default();
            match document.get("globs").map(|globs| globs.trim_matches(['[', ']'])) {
                Some(globs) if !globs.trim().is_empty() => {
                    let paths = split_patterns(globs);
                    let content = format!("---\npaths: {}\n---\n\n{}", json!(paths), document.body);
                    plan.file(&source, &format!("rules/{name}.md"), &content);
                }
                _ => plan.leave_out(
                    &source,
                    "its text",
                    "a rule on request is a skill here (`dragoman docs extending`)",
                ),
            }
        }
    }

    /// A skill keeps its form: a folder with a `SKILL.md` and the files that it names.
    pub(super) fn skills(&self, plan: &mut Plan<'_>) {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        folders.sort();
        for folder in folders.into_iter().take(MAX_FILES) {
            let file = folder.join("SKILL.md");
            let Some(text) = self.read(plan, &file) else {
                if file.symlink_metadata().is_ok() {
                    plan.leave_out(&self.at(&file), "the file", UNREADABLE);
                }
                continue;
            };
            let Some(name) = folder.file_name().map(|name| plain_name(&name.to_string_lossy())) else {
                continue;
            };
            let (source, document) = (self.at(&file), Document::parse(&text));
            plan.found.push(source.clone());
            if document.get("description").is_none() {
                let why = "a skill needs a description here: it tells the model when to use it";
                plan.leave_out(&source, format!("skill {name}"), why);
                continue;
            }
            if let Some(tools) = document.get("allowed-tools") {
                let why = "a skill allows no tools here; approval rules do";
                plan.leave_out(&source, format!("allowed-tools: {tools}"), why);
            }
            self.skill_files(plan, &folder, &format!("skills/{name}"));
        }
    }

    /// Text files keep their places and whether they are programs; others are named.
    fn skill_files(&self, plan: &mut Plan<'_>, folder: &Path, target: &str) {
        let mut paths = Vec::new();
        collect_all(folder, SKILL_DEPTH, &mut paths);
        for path in paths {
            let Some(inner) = path.strip_prefix(folder).ok().and_then(Path::to_str) else { continue };
            let source = self.at(&path);
            match self.read(plan, &path) {
                Some(text) => {
                    plan.file_or_program(
                        &source,
                        &format!("{target}/{inner}"),
                        &text,
                        platform::is_executable(&path),
                    );
                }
                None => {
                    plan.leave_out(&source, inner, UNREADABLE);
                }
            }
        }
    }

    pub(super) fn agents(&self, plan: &mut Plan<'_>) {
        for (name, file) in self.files() {
            let source = self.at(&file);
            let Some(text) = self.read(plan, &file) else {
                plan.leave_out(&source, "the file", UNREADABLE);
                continue;
            };
            let document = Document::parse(&text);
            plan.found.push(source.clone());
            if domain::key_text::holds_key(&text) {
                plan.leave_out(&source, "the agent", "it seems to hold a key, which is not copied");
                continue;
            }
            let name = document.get("name").map_or(name, plain_name);
            if let Some(model) = document.get("model").filter(|model| *model != "inherit") {
                plan.leave_out(
                    &source,
                    format!("model: {model}"),
                    "set `defaultModel` of the agent to a model of yours",
                );
            }
            if plan.has(source.scope, &["agent", &name]) {
                continue;
            }
            let mut agent =
                json!({"mode": "subagent", "systemPrompt": format!("${{file:agents/{name}.md}}")});
            if let Some(description) = document.get("description") {
                agent["description"] = json!(description);
            }
            if let Some(tools) = document.get("tools") {
                agent["disabledTools"] = json!(disabled_tools(tools));
            }
            plan.file(&source, &format!("agents/{name}.md"), &document.body);
            plan.set(source.scope, vec!["agent".to_owned(), name.clone()], agent, format!("agent {name}"));
        }
    }
}

/// Patterns with commas between them; `*.{ts,tsx}` is one.
fn split_patterns(text: &str) -> Vec<String> {
    let mut depth = 0_i32;
    let parts = text.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    parts.map(unquoted).filter(|part| !part.is_empty()).collect()
}

/// A command of ours; its description is what completion shows.
pub(super) fn command_text(description: Option<&str>, body: &str) -> String {
    let head = description.map(|text| format!("---\ndescription: {text}\n---\n\n"));
    head.unwrap_or_default() + body
}

/// The tools of ours that a list of theirs leaves out.
fn disabled_tools(tools: &str) -> Vec<&'static str> {
    let named: Vec<&str> = tools.split(',').map(str::trim).collect();
    let missing = TOOLS.iter().filter(|(theirs, _)| !theirs.iter().any(|tool| named.contains(tool)));
    missing.flat_map(|(_, ours)| ours.iter().copied()).collect()
}

fn collect(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<(String, PathBuf)>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let Some(stem) = path.file_stem().map(|stem| plain_name(&stem.to_string_lossy())) else { continue };
        if path.is_dir() && depth > 0 {
            collect(&path, &format!("{prefix}{stem}-"), depth - 1, found);
        } else if path.extension().is_some_and(|it| it == "md") && found.len() < MAX_FILES {
            found.push((format!("{prefix}{stem}"), path));
        }
    }
}

/// All files beneath a folder; links are not followed.
fn collect_all(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        if is_folder && depth > 0 {
            collect_all(&path, depth - 1, found);
        } else if !is_folder && found.len() < MAX_FILES {
            found.push(path);
        }
    }
}

/// Letters, digits and hyphens.
fn plain_name(name: &str) -> String {
    name.trim().chars().map(|c| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_and_taken_off() {
        let document = Document::parse("---\nname: \"reviewer\"\ntools:\n  - Read\n  - Grep\n---\n\nLook.\n");
        assert_eq!((document.get("name"), document.get("tools")), (Some("reviewer"), Some("Read, Grep")));
        assert_eq!(document.body, "Look.\n");
        assert_eq!(Document::parse("No head.").body, "No head.");
        assert_eq!(split_patterns(r#""*.{ts,tsx}", src/**,"#), ["*.{ts,tsx}", "src/**"]);
        assert_eq!(
            disabled_tools("Read, Bash"),
            ["edit_file", "write_file", "move_file", "fetch_url", "spawn_agent"]
        );
    }
}
