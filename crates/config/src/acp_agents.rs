//! `acpAgents`: agents of other vendors that answer prompts as child processes.
//!
//! Invariant: a project neither takes the sandbox away nor grants; what it names needs trust like every program of it.

use domain::{Failure, Level};
use serde_json::Value;

use crate::cursor::Cursor;
use crate::environment::Environment;
use crate::lazy_text::SecretSource;
use crate::origin::Origin;
use crate::settings_edit::{SavedFile, SettingsFile, input};

const SECTION: &str = "acpAgents";

#[derive(Debug, Clone, PartialEq)]
pub struct AcpAgent {
    pub name: String,
    /// `None`: the program of the known agent of this name.
    pub command: Option<String>,
    pub args: Option<Vec<String>>,
    pub env: Vec<(String, SecretSource)>,
    /// Whether the sandbox holds it.
    pub sandbox: bool,
    /// What its sandbox is granted, as it is written.
    pub grants: Vec<String>,
    /// Its own files and folders, which it may read and write.
    pub state: Vec<String>,
    pub disabled: bool,
}

pub(crate) fn read(cursor: &Cursor) -> Vec<AcpAgent> {
    cursor.entries().iter().filter_map(read_agent).collect()
}

fn read_agent(entry: &Cursor) -> Option<AcpAgent> {
    let name = entry.name().to_owned();
    if !is_name(&name) {
        entry.report(
            Level::Error,
            "must have a name of letters, digits, hyphens and underscores. The agent is left out.",
        );
        return None;
    }
    let mut parts = entry.entries().into_iter();
    let is_of_project = parts.any(|part| matches!(part.origin(), Origin::ProjectFile { .. }));
    let expand = |command: String| entry.scope().environment.expand_home(&command).display().to_string();
    let own = |texts: Vec<String>| if is_of_project { Vec::new() } else { texts };
    let args = entry.get("args");
    Some(AcpAgent {
        name,
        command: entry.get("command").text().map(expand),
        args: args.value().is_some().then(|| args.texts()),
        env: if is_of_project { Vec::new() } else { entry.get("env").secrets() },
        sandbox: is_of_project || entry.get("sandbox").flag().unwrap_or(true),
        grants: own(entry.get("grants").texts()),
        state: own(entry.get("state").texts()),
        disabled: entry.get("disabled").flag().unwrap_or_default(),
    })
}

/// Whether `acp:NAME/…` can name it.
pub fn is_agent_name(name: &str) -> bool {
    is_name(name)
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !name.is_empty() && name.len() <= 60 && name.chars().all(is_part)
}

/// The agents in the user's own file.
pub struct AcpAgentFile(SettingsFile);

impl AcpAgentFile {
    pub fn of_user(environment: &Environment) -> Self {
        Self(SettingsFile::of_user(environment))
    }

    /// The entry as it is written.
    pub fn entry(&self, name: &str) -> Result<Option<Value>, Failure> {
        let mut file = self.0.values()?;
        Ok(file.get_mut(SECTION).and_then(|agents| agents.get_mut(name)).map(Value::take))
    }

    /// Adds an agent, or replaces its entry.
    pub fn put(&self, name: &str, entry: &Value) -> Result<SavedFile, Failure> {
        self.0.edit(|root| {
            let agents = root.object_value_or_create(SECTION).ok_or(NO_OBJECT)?;
            match agents.get(name) {
                Some(property) => property.set_value(input(entry)),
                None => drop(agents.append(name, input(entry))),
            }
            Ok(())
        })
    }

    pub fn remove(&self, name: &str) -> Result<SavedFile, Failure> {
        self.0.edit(|root| {
            let agents = root.object_value_or_create(SECTION).ok_or(NO_OBJECT)?;
            if let Some(property) = agents.get(name) {
                property.remove();
            }
            Ok(())
        })
    }
}

const NO_OBJECT: &str = "`acpAgents` is no object";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Inputs, resolve};

    fn agents(config: &Value) -> Vec<AcpAgent> {
        let environment = Environment::new("/nonexistent", [("DRAGOMAN_CONFIG", config.to_string())]);
        resolve(&environment, &Inputs::default()).settings.acp_agents
    }

    #[test]
    fn the_sandbox_is_on_unless_the_user_takes_it_away() {
        let read = agents(&json!({"acpAgents": {
            "mine": {"command": "my-agent", "args": ["acp"], "grants": ["network:models.example.com"]},
            "codex": {"sandbox": false}, "a/b": {"command": "x"}}}));
        assert_eq!(read.len(), 2, "a name with a slash could not be told from a model");
        let of = |name: &str| read.iter().find(|agent| agent.name == name).unwrap();
        assert!(of("mine").sandbox && of("mine").command.as_deref() == Some("my-agent"));
        assert!(!of("codex").sandbox && of("codex").command.is_none());
    }

    #[test]
    fn a_project_gives_no_grants_and_keeps_the_sandbox() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        std::fs::create_dir_all(root.join(".dragoman")).unwrap();
        let entry = json!({"acpAgents": {"mine": {"command": "evil", "sandbox": false, "grants": ["network"], "env": {"A": "b"}}}});
        std::fs::write(root.join(".dragoman/config.json"), entry.to_string()).unwrap();
        let environment = Environment::new(folder.path(), [("X", "y")]);
        let inputs = Inputs { workspace_roots: vec![root.clone()], ..Inputs::default() };
        assert_eq!(resolve(&environment, &inputs).settings.acp_agents, [], "without trust it is not there");
        crate::trust::grant(&environment, &root).unwrap();
        let read = resolve(&environment, &inputs).settings.acp_agents;
        assert!(read[0].sandbox && read[0].grants.is_empty() && read[0].env.is_empty(), "{read:?}");
    }

    #[test]
    fn an_entry_is_added_and_removed_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment::new(folder.path(), [("X", "y")]);
        let file = AcpAgentFile::of_user(&environment);
        file.put("mine", &json!({"command": "a"})).unwrap();
        assert_eq!(file.entry("mine").unwrap(), Some(json!({"command": "a"})));
        file.remove("mine").unwrap();
        assert_eq!(file.entry("mine").unwrap(), None);
    }
}
