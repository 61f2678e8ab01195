//! Entries of MCP servers in configuration files: checks them and finds their file.
//!
//! Invariant: an entry that could never start is refused before anything is written.

use std::path::{Path, PathBuf};

use config::{Environment, McpFile, SavedFile};
use domain::Failure;
use serde_json::{Map, Value};

/// Adds a server to the user's file, or to the one of a folder.
pub(crate) fn add(
    environment: &Environment,
    name: &str,
    entry: &Value,
    folder: Option<&Path>,
) -> Result<SavedFile, Failure> {
    check(name, entry)?;
    let file = match folder {
        Some(folder) => McpFile::of_folder(folder),
        None => McpFile::of_user(environment),
    };
    if file.entry(name)?.is_some() {
        return Err(Failure::user(format!("{} has a server {name} already.", file.path().display()))
            .hint(format!("Remove it first: dragoman mcp remove {name}")));
    }
    file.put(name, entry)
}

/// Changes members of an entry in the file that holds it.
pub(crate) fn update(
    environment: &Environment,
    folders: &[PathBuf],
    name: &str,
    changes: &Value,
) -> Result<SavedFile, Failure> {
    let (file, mut entry) = find(environment, folders, name)?;
    let changes: Map<String, Value> = changes.as_object().cloned().unwrap_or_default();
    if let Some(members) = entry.as_object_mut() {
        members.extend(changes.clone());
        members.retain(|_, value| !value.is_null());
    }
    check_entry(name, &entry)?;
    file.update(name, &changes)
}

/// Takes a server out of the file that holds it.
pub(crate) fn remove(
    environment: &Environment,
    folders: &[PathBuf],
    name: &str,
) -> Result<SavedFile, Failure> {
    find(environment, folders, name)?.0.remove(name)
}

/// The file that holds an entry, and the entry as it is written there.
pub(crate) fn find(
    environment: &Environment,
    folders: &[PathBuf],
    name: &str,
) -> Result<(McpFile, Value), Failure> {
    for file in McpFile::all(environment, folders) {
        if let Some(entry) = file.entry(name)? {
            return Ok((file, entry));
        }
    }
    Err(Failure::user(format!("No configuration file has an MCP server {name}."))
        .hint("`dragoman mcp list` shows the servers."))
}

/// Refuses an entry that could never start.
pub(crate) fn check(name: &str, entry: &Value) -> Result<(), Failure> {
    check_name(name)?;
    check_entry(name, entry)
}

fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 100 || !name.chars().all(is_plain) {
        return Err(Failure::user(format!("{name:?} cannot be the name of a server."))
            .hint("Use letters, digits, hyphens, underscores and dots."));
    }
    if name.eq_ignore_ascii_case("eca") {
        return Err(Failure::user("The name eca belongs to the built-in tools.").hint("Choose another name."));
    }
    Ok(())
}

fn check_entry(name: &str, entry: &Value) -> Result<(), Failure> {
    let text = |member: &str| entry[member].as_str().is_some_and(|text| !text.trim().is_empty());
    let wrong = |what: &str| {
        Err(Failure::user(format!("The entry of {name} {what}."))
            .hint("It needs a `command` (with `args` and `env`) or a `url` (with `headers`)."))
    };
    match (text("command"), text("url")) {
        _ if !entry.is_object() => wrong("is no object"),
        (false, false) => wrong("has neither a command nor a url"),
        (true, true) => wrong("has both a command and a url"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wrong_entry_is_refused() {
        for (name, entry) in [
            ("a b", json!({"command": "x"})),
            ("", json!({"command": "x"})),
            ("ECA", json!({"command": "x"})),
            ("a", json!({})),
            ("a", json!("x")),
            ("a", json!({"command": "x", "url": "y"})),
        ] {
            assert!(check_name(name).and_then(|()| check_entry(name, &entry)).is_err(), "{name} {entry}");
        }
    }
}
