//! Commands, skills and agents of other programs: Markdown files with a head of `key: value` lines.

use std::path::{Path, PathBuf};

use platform::project_files;
use serde_json::{Map, Value, json};

use super::agents::{Restrictions, Surroundings};
use super::permissions::Context;
use super::plan::{Plan, Scope, Source};

/// Larger files are left out.
const MAX_BYTES: u64 = 256 << 10;
const MAX_FILES: usize = 500;
const UNREADABLE: &str = "it is no text, a link or too large; copy it by hand";
/// Agents that are built in here, and names of the first one.
const BUILT_IN: [&str; 5] = ["agent", "code", "plan", "explorer", "general"];
/// Settings of a command that limit what its text may do.
const LIMITS: [&str; 2] = ["agent", "subtask"];
/// Folders in folders of a skill.
const SKILL_DEPTH: usize = 3;
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
            if let Some((key, value)) = document.head.iter().find(|(key, _)| LIMITS.contains(&key.as_str())) {
                let why = "it is not imported: it belongs to an agent, whose limits it would lose";
                plan.leave_out(&source, format!("{key}: {value}"), why);
                continue;
            }
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

    /// Commands of Gemini: `git/commit.toml` is `/git:commit` there and `/git-commit` here.
    pub(super) fn gemini_commands(&self, plan: &mut Plan<'_>) {
        let mut files = Vec::new();
        collect_all(&self.folder, SKILL_DEPTH, &mut files);
        for file in files.iter().filter(|file| file.extension().is_some_and(|it| it == "toml")) {
            let source = self.at(file);
            plan.found.push(source.clone());
            let Some(text) = self.read(plan, file) else {
                plan.leave_out(&source, "the file", UNREADABLE);
                continue;
            };
            let inner = file.strip_prefix(&self.folder).unwrap_or(file).with_extension("");
            let name = plain_name(&inner.to_string_lossy());
            match gemini_command(&text) {
                Ok((content, notes)) => {
                    notes
                        .into_iter()
                        .for_each(|note| plan.leave_out(&source, format!("command {name}"), note));
                    plan.file(&source, &format!("commands/{name}.md"), &content);
                }
                Err(why) => plan.leave_out(&source, format!("command {name}"), why),
            }
        }
    }

    /// Rules of Cursor: those that count where they are, and copies of those that do not.
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
            plan.found.push(source.clone());
            let name = file.file_stem().map(|stem| plain_name(&stem.to_string_lossy())).unwrap_or_default();
            if document.head.is_empty() || document.get("alwaysapply") == Some("true") {
                // Beside AGENTS.md or CLAUDE.md it would not count.
                plan.file(&source, &format!("rules/{name}.md"), &document.body);
                continue;
            }
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
            plan.found.push(source.clone());
            let (settings, body) = config::front_matter::split(&text);
            if settings.is_empty() && text.trim_start().starts_with("---") {
                plan.leave_out(
                    &source,
                    format!("agent {name}"),
                    "it is not imported: its head is not understood",
                );
                continue;
            }
            let name = settings.get("name").and_then(Value::as_str).map_or(name, plain_name);
            agent(plan, &source, &name, &settings, body.trim_start());
        }
    }
}

/// Plans an agent, unless something that it may not do would be lost.
pub(super) fn agent(
    plan: &mut Plan<'_>,
    source: &Source,
    name: &str,
    settings: &Map<String, Value>,
    body: &str,
) {
    let what = format!("agent {name}");
    if domain::key_text::holds_key(body) || domain::key_text::holds_key(&json!(settings).to_string()) {
        return plan.leave_out(source, what, "it seems to hold a key, which is not copied");
    }
    if BUILT_IN.contains(&name) {
        return plan.leave_out(source, what, "an agent of this name is built in here");
    }
    let (home, servers) = (plan.environment.home().to_owned(), plan.servers.clone());
    let custom_tools = plan.custom_tools();
    let context = Context { home: &home, servers: &servers };
    let around = Surroundings { context, custom_tools: &custom_tools };
    let restrictions = match Restrictions::read(settings, &around) {
        Ok(restrictions) => restrictions,
        Err(why) => return plan.leave_out(source, what, format!("it is not imported: {why}")),
    };
    let text = |key: &str| settings.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(model) = text("model").filter(|model| *model != "inherit") {
        plan.leave_out(
            source,
            format!("model: {model}"),
            "set `defaultModel` of the agent to a model of yours",
        );
    }
    for (what, why) in &restrictions.notes {
        plan.leave_out(source, format!("agent {name}, {what}"), why.clone());
    }
    if plan.has(source.scope, &["agent", name]) || plan.is_used_in_place(source) {
        return;
    }
    let mut agent = json!({"mode": mode(text("mode"))});
    if !body.is_empty() {
        agent["systemPrompt"] = json!(format!("${{file:agents/{name}.md}}"));
        plan.file(source, &format!("agents/{name}.md"), body);
    }
    if let Some(description) = text("description") {
        agent["description"] = json!(description);
    }
    restrictions.apply(&mut agent);
    plan.set(source, vec!["agent".to_owned(), name.to_owned()], agent, what);
}

/// Whether an agent can be chosen for a chat, is started by others, or both.
fn mode(theirs: Option<&str>) -> Value {
    match theirs {
        Some("primary") => json!("primary"),
        Some("all") => json!(["primary", "subagent"]),
        _ => json!("subagent"),
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

/// A command of Gemini: TOML with `prompt` and `description`. An error is the reason why it cannot be imported.
pub(super) fn gemini_command(text: &str) -> Result<(String, Vec<&'static str>), String> {
    let values = crate::toml::read(text)?;
    let prompt = values.get("prompt").and_then(Value::as_str).filter(|prompt| !prompt.trim().is_empty());
    let prompt = prompt.ok_or("it has no prompt")?;
    let mut notes = Vec::new();
    if prompt.contains("!{") {
        notes.push("!{command}: a command's text runs no programs here");
    }
    if prompt.contains("@{") {
        notes.push("@{file}: a command's text reads no files here; the model can");
    }
    let body = match prompt.contains("{{args}}") {
        true => prompt.replace("{{args}}", "$ARGUMENTS"),
        // Arguments follow the prompt there.
        false => format!("{}\n\n$ARGUMENTS", prompt.trim_end()),
    };
    let description = values.get("description").and_then(Value::as_str).and_then(|text| text.lines().next());
    Ok((command_text(description, &format!("{}\n", body.trim_end())), notes))
}

/// One of our commands; its description is what completion shows.
pub(super) fn command_text(description: Option<&str>, body: &str) -> String {
    let head = description.map(|text| format!("---\ndescription: {text}\n---\n\n"));
    head.unwrap_or_default() + body
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
    }
}
