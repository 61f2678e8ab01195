//! Settings from real files in a home of their own. Nothing of the machine's own environment is read.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod approvals;
mod broken;
mod eca;
mod environment;
mod interpolation;
mod keys;
mod layers;
mod managed;
mod masks;
mod pure;
mod trust;

use std::fs;
use std::path::PathBuf;

use config::{Environment, Inputs, Resolved, Settings};
use serde_json::Value;
use tempfile::TempDir;

const ECA_GLOBAL: &str = "home/.config/eca/config.json";
const OUR_GLOBAL: &str = "home/.config/dragoman/config.json";
const ECA_PROJECT: &str = "project/.eca/config.json";
const OUR_PROJECT: &str = "project/.dragoman/config.json";

/// A home and a project, empty at first.
struct World {
    directory: TempDir,
    variables: Vec<(String, String)>,
    options: Option<Value>,
    overrides: serde_json::Map<String, Value>,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("home")).unwrap();
        fs::create_dir_all(directory.path().join("project")).unwrap();
        Self { directory, variables: Vec::new(), options: None, overrides: serde_json::Map::new() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(path)
    }

    fn write(self, path: &str, text: impl ToString) -> Self {
        self.put(path, text);
        self
    }

    fn put(&self, path: &str, text: impl ToString) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.to_string()).unwrap();
    }

    fn var(mut self, name: &str, value: impl ToString) -> Self {
        self.variables.push((name.into(), value.to_string()));
        self
    }

    fn options(mut self, options: Value) -> Self {
        self.options = Some(options);
        self
    }

    fn environment(&self) -> Environment {
        Environment::new(self.path("home"), self.variables.clone())
    }

    fn resolve(&self) -> Resolved {
        let inputs = Inputs {
            workspace_roots: vec![self.path("project")],
            initialization_options: self.options.clone(),
            overrides: self.overrides.clone(),
            ..Inputs::default()
        };
        config::resolve(&self.environment(), &inputs)
    }

    fn settings(&self) -> Settings {
        self.resolve().settings
    }

    fn trust(&self) -> Vec<String> {
        config::trust::grant(&self.environment(), &self.path("project")).unwrap()
    }
}

/// All notices in one text, with the world's directory taken out.
fn notices(world: &World, resolved: &Resolved) -> String {
    let root = world.path("");
    let texts: Vec<&str> = resolved.notices.iter().map(|notice| notice.text.as_str()).collect();
    texts.join("\n").replace(root.to_str().unwrap(), "")
}
