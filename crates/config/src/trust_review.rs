//! The settings of a project that need trust, for the person who decides about it: each value, each command line that
//! would run, and the files that the values refer to. Pure but for the look at where a file lies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use domain::visible_line;
use serde_json::Value;

use crate::environment::Environment;
use crate::layer::Layer;
use crate::lazy_text::closing;
use crate::tree::dotted;

/// `key = value` for each value.
pub(crate) fn describe_settings(part: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    visit(part, &mut Vec::new(), &mut |path, value| {
        lines.push(visible_line(&format!("{} = {value}", dotted(path.iter().copied()))).into_owned());
    });
    lines
}

/// `key: line` for each program.
pub(crate) fn describe_commands(part: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |key: &str, line: String| lines.push(visible_line(&format!("{key}: {line}")).into_owned());
    for section in ["mcpServers", "languageServers", "acpAgents"] {
        for (name, server) in part.get(section).and_then(Value::as_object).into_iter().flatten() {
            if let Some(mut line) = program(server, "command") {
                let given = server.get("env").map(secret_references).unwrap_or_default();
                if !given.is_empty() {
                    line.push_str(&format!(", with {}", given.join(", ")));
                }
                add(&dotted([section, name]), line);
            }
        }
    }
    for (ending, line) in part.get("formatters").and_then(Value::as_object).into_iter().flatten() {
        if let Some(line) = line.as_str() {
            add(&dotted(["formatters", ending]), line.to_owned());
        }
    }
    if let Some(line) = part.pointer("/toolCall/shellCommand").and_then(|shell| program(shell, "path")) {
        add("toolCall.shellCommand", line);
    }
    lines
}

/// `key: line` for each `${cmd:…}`.
pub(crate) fn describe_lookups(part: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    visit(part, &mut Vec::new(), &mut |path, value| {
        let key = dotted(path.iter().copied());
        let found = references(value, "cmd").into_iter();
        lines.extend(found.map(|line| visible_line(&format!("{key}: {line}")).into_owned()));
    });
    lines
}

/// `key = address` for each address of a provider, an MCP server or a search, with the references that are sent to it.
pub(crate) fn describe_addresses(part: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    visit(part, &mut Vec::new(), &mut |path, value| {
        let entry = match path {
            ["providers" | "mcpServers", name, "url"] | ["providers", name, "auth", "url"] => {
                part.get(path[0]).and_then(|section| section.get(*name))
            }
            ["webSearch", "url"] => part.get("webSearch"),
            _ => return,
        };
        let mut line = format!("{} = {value}", dotted(path.iter().copied()));
        let sent = entry.map(secret_references).unwrap_or_default();
        if !sent.is_empty() {
            line.push_str(&format!(", with {}", sent.join(", ")));
        }
        lines.push(visible_line(&line).into_owned());
    });
    lines
}

/// The references in an entry whose values are the user's own: variables, files, commands and entries of netrc.
fn secret_references(entry: &Value) -> Vec<String> {
    let mut found = BTreeSet::new();
    for kind in ["env", "file", "cmd", "netrc"] {
        found.extend(references(entry, kind).into_iter().map(|inner| format!("${{{kind}:{inner}}}")));
    }
    found.into_iter().collect()
}

/// The files of the project that `${file:…}` names. Files elsewhere are the user's own.
pub(crate) fn referenced_files(
    environment: &Environment,
    root: &Path,
    layer: &Layer,
    part: &Value,
) -> Vec<PathBuf> {
    let mut files = BTreeSet::new();
    visit(part, &mut Vec::new(), &mut |_, value| {
        for name in references(value, "file") {
            let file = layer.base.join(environment.expand_home(&name));
            let is_inside = |file: &Path| file.starts_with(root);
            if is_inside(&file) || file.canonicalize().is_ok_and(|file| is_inside(&file)) {
                files.insert(file);
            }
        }
    });
    files.into_iter().collect()
}

/// A program with its arguments.
fn program(entry: &Value, key: &str) -> Option<String> {
    let mut line = entry.get(key)?.as_str()?.to_owned();
    for argument in entry.get("args").and_then(Value::as_array).into_iter().flatten() {
        line.push(' ');
        line.push_str(argument.as_str().unwrap_or_default());
    }
    Some(line)
}

/// Every value that is not an object.
fn visit<'v>(value: &'v Value, path: &mut Vec<&'v str>, visitor: &mut impl FnMut(&[&'v str], &'v Value)) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (key, value) in object {
                path.push(key);
                visit(value, path, visitor);
                path.pop();
            }
        }
        value @ Value::Null
        | value @ Value::Bool(_)
        | value @ Value::Number(_)
        | value @ Value::String(_)
        | value @ Value::Array(_)
        | value @ Value::Object(_) => visitor(path, value),
    }
}

/// The insides of `${kind:…}` in all texts of a value.
fn references(value: &Value, kind: &str) -> Vec<String> {
    match value {
        Value::String(text) => {
            let (mut found, mut rest) = (Vec::new(), text.as_str());
            while let Some((_, inside)) = rest.split_once("${") {
                let Some(end) = closing(inside) else { break };
                let inner = inside[..end].strip_prefix(kind).and_then(|inner| inner.strip_prefix(':'));
                found.extend(inner.map(str::to_owned));
                rest = inside;
            }
            found
        }
        Value::Array(values) => values.iter().flat_map(|value| references(value, kind)).collect(),
        Value::Object(values) => values.values().flat_map(|value| references(value, kind)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
