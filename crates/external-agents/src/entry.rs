//! An agent as the settings and the list of known ones describe it. Plain data.

use std::path::PathBuf;

use config::SecretSource;
use serde_json::{Value, json};

use crate::known::KnownAgent;

/// What begins the names of these models.
pub const PREFIX: &str = "acp:";

/// An agent as it would be started.
#[derive(Clone)]
pub struct AgentEntry {
    pub name: String,
    pub title: String,
    /// `None`: it is not installed.
    pub program: Option<PathBuf>,
    pub command: String,
    pub args: Vec<String>,
    pub is_confined: bool,
    /// The settings name it.
    pub is_configured: bool,
    pub install: &'static str,
    pub(crate) env: Vec<(String, SecretSource)>,
    pub(crate) grants: Vec<String>,
    pub(crate) state: Vec<String>,
    pub(crate) known: Option<&'static KnownAgent>,
}

impl AgentEntry {
    /// The name of the agent as a model.
    pub fn model(&self) -> String {
        format!("{PREFIX}{}/default", self.name)
    }

    /// The agent for scripts.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "model": self.model(),
            "installed": self.program.is_some(),
            "program": self.program,
            "command": self.command,
            "args": self.args,
            "sandbox": self.is_confined,
            "configured": self.is_configured,
            "install": self.install,
        })
    }
}
