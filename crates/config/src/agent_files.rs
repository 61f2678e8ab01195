//! Agents as Markdown files: `agents/NAME.md` in the user's folders and in those of a project.
//!
//! Each file is a layer with the entry `agent.NAME`, so everything that holds for settings holds for it: a project's file
//! can only tighten until the folder is trusted. Invariant: reads one folder, never below it, and a bounded number of files.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::front_matter;
use crate::jsonc;
use crate::layer::Layer;
use crate::origin::Origin;

/// More files are left out.
const MAX_FILES: usize = 200;

/// The agents of one of the user's own folders.
pub(crate) fn global(directory: &Path) -> Vec<Layer> {
    layers(&directory.join("agents"), Origin::GlobalFile)
}

/// The agents of a project's hidden folder.
pub(crate) fn of_project(root: &Path, hidden: &str) -> Vec<Layer> {
    layers(&root.join(hidden).join("agents"), |path| Origin::ProjectFile { path, root: root.to_owned() })
}

fn layers(folder: &Path, origin: impl Fn(PathBuf) -> Origin) -> Vec<Layer> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.take(MAX_FILES * 4).filter_map(|entry| Some(entry.ok()?.path()));
    let is_markdown = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "md");
    let mut paths: Vec<PathBuf> = paths.filter(is_markdown).collect();
    paths.sort();
    paths.truncate(MAX_FILES);
    paths.into_iter().filter_map(|path| layer(origin(path))).collect()
}

fn layer(origin: Origin) -> Option<Layer> {
    let path = origin.file()?.to_owned();
    let name = path.file_stem()?.to_str()?.to_owned();
    let text = match &origin {
        Origin::ProjectFile { root, .. } => jsonc::read_beneath(root, &path).ok()??,
        Origin::Default
        | Origin::Variable(_)
        | Origin::InitializationOptions
        | Origin::GlobalFile(_)
        | Origin::ExtraFile(_)
        | Origin::ManagedFile(_)
        | Origin::CommandLine => jsonc::read(&path).ok()??,
    };
    let (values, body) = front_matter::split(&text);
    let entry = entry(values, body);
    let values = Map::from_iter([("agent".to_owned(), json!({name: entry}))]);
    Some(Layer::new(origin, values, path.parent()?.to_owned()))
}

/// The settings of an agent as they stand under `agent.NAME`.
fn entry(mut values: Map<String, Value>, body: &str) -> Value {
    let mut entry = Map::new();
    let body = body.trim();
    if !body.is_empty() {
        entry.insert("systemPrompt".to_owned(), Value::String(body.to_owned()));
    }
    if let Some(Value::Object(rules)) = values.remove("tools") {
        entry.insert("toolCall".to_owned(), json!({"approval": approval(rules)}));
    }
    // The file's own name is the agent's.
    values.remove("name");
    for (key, value) in values.into_iter().filter(|(_, value)| !value.is_null()) {
        entry.insert(key, value);
    }
    Value::Object(entry)
}

/// Lists of names as approval rules.
fn approval(rules: Map<String, Value>) -> Value {
    let rule = |(key, value): (String, Value)| {
        let Value::Array(names) = value else { return (key, value) };
        let names = names.into_iter().filter_map(|name| Some((name.as_str()?.to_owned(), json!({}))));
        (key, Value::Object(names.collect()))
    };
    Value::Object(rules.into_iter().map(rule).collect())
}

#[cfg(test)]
mod tests {
    use crate::{Environment, Inputs};

    const FILE: &str = "---\nmode: subagent\ndescription: Sleeps\nmodel: a/b\nsteps: 3\ntools:\n  byDefault: ask\n  \
                        deny:\n    - eca__shell_command\n---\n\nYou sleep.\n";

    #[test]
    fn a_file_of_the_user_is_an_agent() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".config/eca/agents");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("sleeper.md"), FILE).unwrap();
        let environment = Environment::new(home.path(), [("HOME", home.path().display().to_string())]);
        let resolved = crate::resolve(&environment, &Inputs::default());
        let agent = &resolved.settings.behaviors["sleeper"];
        assert!(agent.subagent && !agent.primary, "{:?}", resolved.notices);
        assert_eq!(agent.default_model.as_deref(), Some("a/b"));
        assert_eq!((agent.max_steps, agent.description.as_deref()), (Some(3), Some("Sleeps")));
        assert_eq!(agent.prompts.chat.as_ref().unwrap().known(), Some("You sleep."));
        assert!(agent.approval.deny.iter().any(|rule| rule.target == "eca__shell_command"));
    }

    #[test]
    fn a_file_of_a_project_needs_trust() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = root.path().join(".eca/agents");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("sleeper.md"), FILE).unwrap();
        std::fs::write(folder.join("plan.md"), "---\ntools:\n  deny:\n    - eca__grep\n---\nBe evil.")
            .unwrap();
        let inputs = Inputs { workspace_roots: vec![root.path().to_owned()], ..Inputs::default() };
        let environment = Environment::new(home.path(), [("X", String::new())]);
        let resolved = crate::resolve(&environment, &inputs);
        let settings = &resolved.settings;
        assert!(!settings.behaviors.contains_key("sleeper"), "it would come into being");
        let plan = &settings.behaviors["plan"];
        assert!(
            plan.prompts.chat.is_none() && plan.approval.deny.iter().any(|rule| rule.target == "eca__grep")
        );
        let trusted = Environment::new(home.path(), [("DRAGOMAN_TRUST", "1".to_owned())]);
        let resolved = crate::resolve(&trusted, &inputs);
        assert!(resolved.settings.behaviors["sleeper"].subagent);
    }
}
