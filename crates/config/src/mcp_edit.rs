//! Changes of `mcpServers` in a configuration file, in place: comments, order and spaces of the rest stay as they are.
//!
//! Invariants: a file that does not parse is refused and not touched; the old file is kept beside the new one (`.bak`); a reader
//! sees the old or the new file, never a part; a file that somebody else changed meanwhile is not overwritten.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use domain::Failure;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};

use crate::environment::Environment;
use crate::jsonc;

const SECTION: &str = "mcpServers";

/// A configuration file that may hold servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpFile {
    path: PathBuf,
}

/// A file that was changed.
#[derive(Debug, PartialEq, Eq)]
pub struct SavedFile {
    pub path: PathBuf,
    /// The file as it was before.
    pub copy: Option<PathBuf>,
}

impl McpFile {
    /// The user's own file.
    pub fn of_user(environment: &Environment) -> Self {
        Self { path: environment.config_dir().join("config.json") }
    }

    /// The file of a project.
    pub fn of_folder(folder: &Path) -> Self {
        Self { path: folder.join(".dragoman/config.json") }
    }

    /// Every file that may hold a server for these folders, the strongest first.
    pub fn all(environment: &Environment, folders: &[PathBuf]) -> Vec<Self> {
        let of_eca = |path: PathBuf| Self { path };
        let mut files = Vec::new();
        for folder in folders.iter().rev() {
            files.extend([Self::of_folder(folder), of_eca(folder.join(".eca/config.json"))]);
        }
        files.push(Self::of_user(environment));
        files.push(of_eca(environment.eca_config_dir().join("config.json")));
        files
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entry of a server as it is written, without what other files add.
    pub fn entry(&self, name: &str) -> Result<Option<Value>, Failure> {
        let Some(text) = self.read()? else { return Ok(None) };
        let mut file = jsonc::parse(&text).map_err(|error| self.refused(&error.0))?;
        Ok(file.get_mut(SECTION).and_then(|servers| servers.get_mut(name)).map(Value::take))
    }

    /// Adds a server, or replaces its entry.
    pub fn put(&self, name: &str, entry: &Value) -> Result<SavedFile, Failure> {
        self.edit(|servers| match servers.get(name) {
            Some(property) => property.set_value(input(entry)),
            None => drop(servers.append(name, input(entry))),
        })
    }

    /// Changes members of a server's entry; null removes one.
    pub fn update(&self, name: &str, changes: &Map<String, Value>) -> Result<SavedFile, Failure> {
        self.edit(|servers| {
            let Some(entry) = servers.get(name).and_then(|property| property.object_value()) else { return };
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
            if let Some(property) = servers.get(name) {
                property.remove();
            }
        })
    }

    fn edit(&self, change: impl FnOnce(&CstObject)) -> Result<SavedFile, Failure> {
        let before = self.read()?;
        let text = before.as_deref().unwrap_or_default();
        jsonc::parse(text).map_err(|error| self.refused(&error.0))?;
        let options = ParseOptions::default();
        let root = CstRootNode::parse(text, &options).map_err(|error| self.refused(&error.to_string()))?;
        let object = root.object_value_or_create().ok_or_else(|| self.refused("it is no object"))?;
        let servers = object
            .object_value_or_create(SECTION)
            .ok_or_else(|| self.refused(&format!("`{SECTION}` is no object")))?;
        change(&servers);
        let mut after = root.to_string();
        if !after.ends_with('\n') {
            after.push('\n');
        }
        // What was written must be readable: a defect of the editor must not cost the user the file.
        jsonc::parse(&after).map_err(|error| self.refused(&error.0))?;
        self.write(before.as_deref(), &after).map_err(|error| {
            Failure::config(format!("{} cannot be written: {error}.", self.path.display()))
                .hint("Check that you may write there.")
        })
    }

    fn write(&self, before: Option<&str>, after: &str) -> io::Result<SavedFile> {
        // A link, as managers of dot files make them, stays a link.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        let mode = fs::metadata(&target).map_or(0o600, |metadata| metadata.permissions().mode() & 0o777);
        let copy = target.with_extension("json.bak");
        if let Some(before) = before {
            replace(&copy, before.as_bytes(), mode)?;
        }
        if fs::read_to_string(&target).ok().as_deref() != before {
            return Err(io::Error::other("it was changed at the same time; try again"));
        }
        replace(&target, after.as_bytes(), mode)?;
        Ok(SavedFile { path: target, copy: before.map(|_| copy) })
    }

    fn read(&self) -> Result<Option<String>, Failure> {
        jsonc::read(&self.path).map_err(|error| self.refused(&error.0))
    }

    fn refused(&self, reason: &str) -> Failure {
        Failure::config(format!("{} cannot be changed: {reason}.", self.path.display()))
            .hint("Mend the file, then try again; `dragoman config check` shows what is wrong.")
    }
}

fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&temporary)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
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
        let file = McpFile { path: folder.path().join("config.json") };
        if let Some(text) = text {
            fs::write(&file.path, text).unwrap();
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
        let text = fs::read_to_string(&file.path).unwrap();
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
    fn a_new_file_is_private_and_a_broken_one_is_left_alone() {
        let (_folder, new) = file(None);
        assert_eq!(new.put("a", &json!({"command": "x"})).unwrap().copy, None);
        assert_eq!(fs::metadata(&new.path).unwrap().permissions().mode() & 0o777, 0o600);
        for broken in ["{\"mcpServers\": {", "[]", "{\"mcpServers\": 7}", "{\"a\": 1, \"a\": 2}"] {
            let (_folder, file) = file(Some(broken));
            let failure = file.put("a", &json!({"command": "x"})).unwrap_err();
            assert!(failure.message.contains("cannot be changed"), "{failure}");
            assert_eq!(fs::read_to_string(&file.path).unwrap(), broken);
        }
    }

    #[test]
    fn a_link_stays_a_link() {
        let (folder, file) = file(None);
        let real = folder.path().join("real.json");
        fs::write(&real, "{}").unwrap();
        std::os::unix::fs::symlink(&real, &file.path).unwrap();
        file.put("a", &json!({"command": "x"})).unwrap();
        assert!(fs::symlink_metadata(&file.path).unwrap().is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("command"));
    }
}
