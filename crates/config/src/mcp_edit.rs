//! `mcpServers` of a configuration file: entries are found, added, changed and removed in place.
//!
//! Must not know how a file is written: `settings_edit` does that.

use std::path::{Path, PathBuf};

use domain::Failure;
use domain::names::is_same_name;
use jsonc_parser::cst::{CstObject, CstObjectProp};
use serde_json::{Map, Value};

use crate::environment::Environment;
use crate::settings_edit::{SavedFile, SettingsFile, input};

const SECTION: &str = "mcpServers";

/// A configuration file that may hold servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpFile {
    file: SettingsFile,
}

impl McpFile {
    /// The user's own file.
    pub fn of_user(environment: &Environment) -> Self {
        Self { file: SettingsFile::of_user(environment) }
    }

    /// The file of a project.
    pub fn of_folder(folder: &Path) -> Self {
        Self { file: SettingsFile::of_folder(folder) }
    }

    /// Every file that may hold a server for these folders, the strongest first.
    pub fn all(environment: &Environment, folders: &[PathBuf]) -> Vec<Self> {
        let of_eca = |path: PathBuf| Self { file: SettingsFile::at(path) };
        let mut files = Vec::new();
        for folder in folders.iter().rev() {
            files.extend([Self::of_folder(folder), of_eca(folder.join(".eca/config.json"))]);
        }
        files.push(Self::of_user(environment));
        files.push(of_eca(environment.eca_config_dir().join("config.json")));
        files
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The entry of a server as it is written, without what other files add.
    pub fn entry(&self, name: &str) -> Result<Option<Value>, Failure> {
        let mut file = self.file.values()?;
        let Some(Value::Object(servers)) = file.get_mut(SECTION) else { return Ok(None) };
        let name = written_name(servers.keys(), name);
        Ok(servers.get_mut(&name).map(Value::take))
    }

    /// Adds a server, or replaces its entry.
    pub fn put(&self, name: &str, entry: &Value) -> Result<SavedFile, Failure> {
        self.edit(|servers| match find(servers, name) {
            Some(property) => property.set_value(input(entry)),
            None => drop(servers.append(name, input(entry))),
        })
    }

    /// Changes members of a server's entry; null removes one.
    pub fn update(&self, name: &str, changes: &Map<String, Value>) -> Result<SavedFile, Failure> {
        self.edit(|servers| {
            let Some(entry) = find(servers, name).and_then(|property| property.object_value()) else {
                return;
            };
            for (member, value) in changes {
                match (entry.get(member), value) {
                    (Some(property), Value::Null) => property.remove(),
                    (None, Value::Null) => {}
                    (Some(property), value) => property.set_value(input(value)),
                    (None, value) => drop(entry.append(member, input(value))),
                }
            }
        })
    }

    pub fn remove(&self, name: &str) -> Result<SavedFile, Failure> {
        self.edit(|servers| {
            if let Some(property) = find(servers, name) {
                property.remove();
            }
        })
    }

    fn edit(&self, change: impl FnOnce(&CstObject)) -> Result<SavedFile, Failure> {
        self.file.edit(|root| {
            let servers =
                root.object_value_or_create(SECTION).ok_or_else(|| format!("`{SECTION}` is no object"))?;
            change(&servers);
            Ok(())
        })
    }
}

/// The name as a file has it: ECA's files have `test-mcp` for `testMcp`.
fn written_name<'n>(names: impl Iterator<Item = &'n String> + Clone, name: &str) -> String {
    let is_there = names.clone().any(|known| known == name);
    let other = || names.clone().find(|known| is_same_name(known, name)).cloned();
    Some(name.to_owned()).filter(|_| is_there).or_else(other).unwrap_or_else(|| name.to_owned())
}

fn find(servers: &CstObject, name: &str) -> Option<CstObjectProp> {
    let properties = servers.properties();
    let names: Vec<String> =
        properties.iter().filter_map(|property| property.name()?.decoded_value().ok()).collect();
    servers.get(&written_name(names.iter(), name))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use serde_json::json;

    const WRITTEN: &str = r#"{
  // the model of the house
  "defaultModel": "house/qwen",
  "mcpServers": {
    "memory": {"command": "npx"}, // for notes
    /* kept */
    "web": {
      "url": "https://mcp.example.com", // the address
    },
  },
}
"#;

    fn file(text: Option<&str>) -> (tempfile::TempDir, McpFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = McpFile { file: SettingsFile::at(folder.path().join("config.json")) };
        if let Some(text) = text {
            fs::write(file.path(), text).unwrap();
        }
        (folder, file)
    }

    #[test]
    fn an_edit_keeps_comments_and_a_copy() {
        let (_folder, file) = file(Some(WRITTEN));
        file.put("files", &json!({"command": "server-files", "args": ["/a \"b\""], "env": {"A": "1"}}))
            .unwrap();
        let saved =
            file.update("web", json!({"disabled": true, "url": "https://b"}).as_object().unwrap()).unwrap();
        file.update("web", json!({"disabled": null}).as_object().unwrap()).unwrap();
        file.remove("memory").unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        for kept in ["// the model of the house", "/* kept */", "// the address", "\"house/qwen\""] {
            assert!(text.contains(kept), "{kept} is gone:\n{text}");
        }
        assert!(!text.contains("memory") && !text.contains("disabled"), "{text}");
        assert_eq!(file.entry("web").unwrap().unwrap(), json!({"url": "https://b"}));
        assert_eq!(file.entry("files").unwrap().unwrap()["args"], json!(["/a \"b\""]));
        assert!(
            fs::read_to_string(saved.copy.unwrap()).unwrap().contains("memory"),
            "the copy is one edit old"
        );
    }

    #[test]
    fn an_entry_is_found_in_either_spelling() {
        let (_folder, file) =
            file(Some(r#"{"mcpServers": {"test-mcp": {"command": "a"}, "testMcp2": {"command": "b"}}}"#));
        assert_eq!(file.entry("testMcp").unwrap(), Some(json!({"command": "a"})));
        assert_eq!(file.entry("test").unwrap(), None);
        file.update("testMcp", json!({"disabled": true}).as_object().unwrap()).unwrap();
        assert_eq!(file.entry("test-mcp").unwrap(), Some(json!({"command": "a", "disabled": true})));
        file.put("testMcp", &json!({"command": "c"})).unwrap();
        file.remove("test-mcp2").unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(text.contains("test-mcp") && !text.contains("testMcp"), "{text}");
    }

    #[test]
    fn a_new_file_is_private_and_a_broken_one_is_left_alone() {
        let (_folder, new) = file(None);
        assert_eq!(new.put("a", &json!({"command": "x"})).unwrap().copy, None);
        #[cfg(unix)]
        assert_eq!(platform::mode_of(&fs::metadata(new.path()).unwrap()), 0o600);
        for broken in ["{\"mcpServers\": {", "[]", "{\"mcpServers\": 7}", "{\"a\": 1, \"a\": 2}"] {
            let (_folder, file) = file(Some(broken));
            let failure = file.put("a", &json!({"command": "x"})).unwrap_err();
            assert!(failure.message.contains("cannot be changed"), "{failure}");
            assert_eq!(fs::read_to_string(file.path()).unwrap(), broken);
        }
    }

    #[test]
    fn a_link_stays_a_link() {
        let (folder, file) = file(None);
        let real = folder.path().join("real.json");
        fs::write(&real, "{}").unwrap();
        platform::symlink(&real, file.path()).unwrap();
        file.put("a", &json!({"command": "x"})).unwrap();
        assert!(fs::symlink_metadata(file.path()).unwrap().is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("command"));
    }
}
