//! `dragoman config get | set | edit`: one setting, written without touching the rest of its file.
//!
//! Invariants: a value that the settings do not accept is not written; secrets are not printed.

use std::process::ExitCode;

use config::{Environment, Inputs, NewValue, SettingsChange, SettingsFile};
use domain::{Failure, Level, visible_json};
use serde_json::{Map, Value};

use super::failed;
use crate::lifetime;
use crate::output::print;

/// Prints the setting in force.
pub(crate) fn get(key: &str) -> ExitCode {
    let environment = Environment::from_process();
    let resolved = config::resolve(&environment, &inputs(Map::new()));
    let shown = resolved.show_json();
    let found = parts(key).and_then(|parts| {
        let settings = shown.get("settings").unwrap_or(&shown);
        let value = parts.iter().try_fold(settings, |value, part| value.get(part));
        value.cloned().ok_or_else(|| Failure::user(format!("{key} is not set.")))
    });
    match found {
        Ok(value) => super::print_bytes(visible_json(&format!("{value:#}\n")).as_bytes()),
        Err(failure) => failed(&failure),
    }
}

/// Writes the setting, if it is one.
pub(crate) fn set(key: &str, value: &str, project: bool) -> ExitCode {
    let environment = Environment::from_process();
    match write(&environment, key, value, project).and_then(print) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&failure),
    }
}

fn write(environment: &Environment, key: &str, value: &str, project: bool) -> Result<String, Failure> {
    let keys = parts(key)?;
    let value = read_value(value);
    check(environment, &keys, &value)?;
    let file = file(environment, project)?;
    let saved = file.change(&[SettingsChange { keys, value: NewValue::Set(value) }])?;
    Ok(format!("{key} is in {}.\n", saved.path.display()))
}

/// JSON, or the text itself.
pub(crate) fn read_value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// `a.b.c`; a part with dots is put in quotation marks.
pub(crate) fn parts(key: &str) -> Result<Vec<String>, Failure> {
    let mut parts = Vec::new();
    let mut rest = key;
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
        };
        if part.is_empty() {
            return Err(Failure::user(format!("{key:?} is no setting."))
                .hint("Write its path with dots: chat.theme, providers.\\\"my.server\\\".url."));
        }
        parts.push(part.to_owned());
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(parts),
            None => return Err(Failure::user(format!("{key:?} is no setting."))),
        }
    }
}

/// A setting as an object of settings.
pub(crate) fn nested(keys: &[String], value: Value) -> Value {
    keys.iter().rev().fold(value, |value, key| {
        let mut object = Map::new();
        object.insert(key.clone(), value);
        Value::Object(object)
    })
}

/// Reads the settings with this one, and refuses it where they complain about it.
fn check(environment: &Environment, keys: &[String], value: &Value) -> Result<(), Failure> {
    let Value::Object(overrides) = nested(keys, value.clone()) else { return Ok(()) };
    let resolved = config::resolve(environment, &inputs(overrides));
    let about = |text: &str| text.strip_prefix("command line: ").map(str::to_owned);
    let problem = resolved
        .notices
        .iter()
        .filter(|notice| notice.level != Level::Info)
        .find_map(|notice| about(&notice.text));
    match problem {
        Some(problem) => Err(Failure::user(problem)
            .hint("Nothing is written. `dragoman docs configuration` lists all settings.")),
        None => Ok(()),
    }
}

fn inputs(overrides: Map<String, Value>) -> Inputs {
    Inputs { workspace_roots: crate::working_folder::current_folder(), overrides, ..Inputs::default() }
}

fn file(environment: &Environment, project: bool) -> Result<SettingsFile, Failure> {
    if !project {
        return Ok(SettingsFile::of_user(environment));
    }
    let folder = crate::working_folder::current_folder();
    let folder = folder.first().ok_or_else(|| Failure::user("There is no folder here."))?;
    Ok(SettingsFile::of_folder(folder))
}

/// Opens the file in the user's editor, then says what is wrong with it.
pub(crate) fn edit(project: bool) -> ExitCode {
    let environment = Environment::from_process();
    let opened = lifetime::run(async {
        let file = file(&environment, project)?;
        open_editor(&environment, &file).await
    });
    if opened == ExitCode::SUCCESS { super::config::check(false) } else { opened }
}

async fn open_editor(environment: &Environment, file: &SettingsFile) -> Result<(), Failure> {
    let path = file.path();
    if !path.exists() {
        // `dragoman config schema` prints the file that this names, for editors that complete and check.
        let (keys, schema) = (vec!["$schema".to_owned()], "./config.schema.json");
        file.change(&[SettingsChange { keys, value: NewValue::Set(schema.into()) }])?;
    }
    let editor = environment.first(&["VISUAL", "EDITOR"]).map_or("vi", |(_, editor)| editor).to_owned();
    let line = format!("{editor} \"$@\"");
    let arguments = ["-c".into(), line.into(), editor.clone().into(), path.as_os_str().to_owned()];
    let exit = process::foreground("sh", arguments)
        .await
        .map_err(|error| Failure::user(format!("The editor did not start: {error}")))?;
    if exit.success() {
        return Ok(());
    }
    Err(Failure::user(format!("The editor `{editor}` failed."))
        .hint("Set VISUAL or EDITOR to an editor that is installed."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_read_and_made_an_object() {
        assert_eq!(parts("chat.theme").expect("a path"), ["chat", "theme"]);
        assert_eq!(parts("providers.\"my.server\".url").expect("a path"), ["providers", "my.server", "url"]);
        for wrong in ["", ".a", "a.", "a..b", "\"a\"b"] {
            assert!(parts(wrong).is_err(), "{wrong}");
        }
        assert_eq!(nested(&parts("a.b").expect("a path"), json!(1)), json!({"a": {"b": 1}}));
        assert_eq!(read_value("true"), json!(true));
        assert_eq!(read_value("light"), json!("light"));
    }
}
