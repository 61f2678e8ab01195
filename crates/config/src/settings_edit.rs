//! Changes of a configuration file, in place: comments, order and spaces of the rest stay as they are.
//!
//! Invariants: a file that does not parse is refused and not touched; the old file is kept beside the new one (`.bak`); a reader
//! sees the old or the new file, never a part; a file that somebody else changed meanwhile is not overwritten.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use domain::Failure;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use platform::OpenOptionsExt;
use serde_json::{Map, Value};

use crate::environment::Environment;
use crate::jsonc;
use crate::seen_file;

/// A configuration file, whether it exists or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFile {
    path: PathBuf,
}

/// A file that was changed.
#[derive(Debug, PartialEq, Eq)]
pub struct SavedFile {
    pub path: PathBuf,
    /// The file as it was before.
    pub copy: Option<PathBuf>,
}

/// One change: the keys on the way to a value, and the new value.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingsChange {
    pub keys: Vec<String>,
    pub value: NewValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NewValue {
    /// Takes the place of the old value.
    Set(Value),
    /// Is added to the end of a list.
    Append(Value),
}

impl SettingsFile {
    /// The user's own file.
    pub fn of_user(environment: &Environment) -> Self {
        Self { path: environment.config_dir().join("config.json") }
    }

    /// The file of a project.
    pub fn of_folder(folder: &Path) -> Self {
        Self { path: folder.join(".dragoman/config.json") }
    }

    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The values as they are written, without what other files add.
    pub fn values(&self) -> Result<Map<String, Value>, Failure> {
        let text = self.read()?.unwrap_or_default();
        jsonc::parse(&text).map_err(|error| self.refused(&error.0))
    }

    /// Makes all changes, or none.
    pub fn change(&self, changes: &[SettingsChange]) -> Result<SavedFile, Failure> {
        self.edit(|root| changes.iter().try_for_each(|change| apply(root, change)))
    }

    /// The text of the file after the changes, without writing it.
    pub fn preview(&self, changes: &[SettingsChange]) -> Result<(String, String), Failure> {
        let before = self.read()?.unwrap_or_default();
        let after = self.edited(&before, |root| changes.iter().try_for_each(|change| apply(root, change)))?;
        Ok((before, after))
    }

    pub(crate) fn edit(
        &self,
        change: impl FnOnce(&CstObject) -> Result<(), String>,
    ) -> Result<SavedFile, Failure> {
        let before = self.read()?;
        let after = self.edited(before.as_deref().unwrap_or_default(), change)?;
        self.write(before.as_deref(), &after).map_err(|error| {
            Failure::config(format!("{} cannot be written: {error}.", self.path.display()))
                .hint("Check that you may write there.")
        })
    }

    fn edited(
        &self,
        before: &str,
        change: impl FnOnce(&CstObject) -> Result<(), String>,
    ) -> Result<String, Failure> {
        jsonc::parse(before).map_err(|error| self.refused(&error.0))?;
        let options = ParseOptions::default();
        let root = CstRootNode::parse(before, &options).map_err(|error| self.refused(&error.to_string()))?;
        let object = root.object_value_or_create().ok_or_else(|| self.refused("it is no object"))?;
        change(&object).map_err(|reason| self.refused(&reason))?;
        let mut after = root.to_string();
        if !after.ends_with('\n') {
            after.push('\n');
        }
        // What was written must be readable: a defect of the editor must not cost the user the file.
        jsonc::parse(&after).map_err(|error| self.refused(&error.0))?;
        Ok(after)
    }

    fn write(&self, before: Option<&str>, after: &str) -> io::Result<SavedFile> {
        // A link, as managers of dot files make them, stays a link.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        let mode = fs::metadata(&target).map_or(0o600, |metadata| platform::mode_of(&metadata) & 0o777);
        let copy = target.with_extension("json.bak");
        if let Some(before) = before {
            replace(&copy, before.as_bytes(), mode)?;
        }
        if fs::read_to_string(&target).ok().as_deref() != before {
            return Err(io::Error::other("it was changed at the same time; try again"));
        }
        replace(&target, after.as_bytes(), mode)?;
        seen_file::note_own_write(&self.path);
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

/// Follows the keys, creating objects on the way, and changes the value at their end.
fn apply(root: &CstObject, change: &SettingsChange) -> Result<(), String> {
    let Some((last, way)) = change.keys.split_last() else { return Ok(()) };
    let mut object = root.clone();
    for key in way {
        object = object.object_value_or_create(key).ok_or_else(|| format!("`{key}` is no object"))?;
    }
    match &change.value {
        NewValue::Set(value) => match object.get(last) {
            Some(property) => property.set_value(input(value)),
            None => drop(object.append(last, input(value))),
        },
        NewValue::Append(value) => {
            let list = object.array_value_or_create(last).ok_or_else(|| format!("`{last}` is no list"))?;
            list.append(input(value));
        }
    }
    Ok(())
}

fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .new_mode(mode)
        .open(&temporary)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        })
        .and_then(|()| platform::replace_file(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

pub(crate) fn input(value: &Value) -> CstInputValue {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_set_and_appended_and_comments_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = SettingsFile::at(folder.path().join("config.json"));
        let before = "{\n  // mine\n  \"a\": {\"list\": [1 /* one */]},\n}\n";
        fs::write(file.path(), before).unwrap();
        let change = |keys: &[&str], value: NewValue| SettingsChange {
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            value,
        };
        let changes = [
            change(&["a", "list"], NewValue::Append(json!(2))),
            change(&["b", "c"], NewValue::Set(json!({"d": true}))),
        ];
        assert_eq!(file.preview(&changes).unwrap().0, before);
        assert_eq!(fs::read_to_string(file.path()).unwrap(), before, "a preview writes nothing");
        let saved = file.change(&changes).unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(text.contains("// mine") && text.contains("/* one */"), "{text}");
        let values = Value::Object(file.values().unwrap());
        assert_eq!(values, json!({"a": {"list": [1, 2]}, "b": {"c": {"d": true}}}));
        assert_eq!(fs::read_to_string(saved.copy.unwrap()).unwrap(), before);
        let wrong = [change(&["a", "list", "x"], NewValue::Set(json!(1)))];
        assert!(file.change(&wrong).is_err(), "a list is no object");
        assert_eq!(fs::read_to_string(file.path()).unwrap(), text);
    }
}
