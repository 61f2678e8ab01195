//! Converts ECA's types to the domain's. Pure.
//!
//! Invariant: `agent` and `code` are one behavior, kebab-case and camelCase one key, a path or a file URI one path.

use std::path::PathBuf;
use std::sync::Arc;

use domain::Abilities;
use domain::command::{Catalog, Context};
use domain::host::Position;
use domain::names::is_same_name;
use domain::tool::Resource;
use serde_json::Value;

use crate::wire::notifications::Diagnostic;
use crate::wire::requests::InitializeParams;
use crate::wire::{self, LinePosition};

/// Rewrites `request-id` to `requestId`, everywhere but inside configuration.
pub(crate) fn camel_case(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(key, value)| {
                    if key == "initializationOptions" || key == "initialization-options" {
                        ("initializationOptions".to_owned(), value)
                    } else {
                        (camel_key(key), camel_case(value))
                    }
                })
                .collect(),
        ),
        Value::Array(values) => Value::Array(values.into_iter().map(camel_case).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn camel_key(key: String) -> String {
    if !key.contains('-') {
        return key;
    }
    let mut camel = String::with_capacity(key.len());
    let mut upper = false;
    for character in key.chars() {
        match character {
            '-' => upper = true,
            c if upper => {
                camel.extend(c.to_uppercase());
                upper = false;
            }
            c => camel.push(c),
        }
    }
    camel
}

/// A file URI, percent-encoded or not, or a plain path.
pub(crate) fn path(uri: &str) -> PathBuf {
    let Some(decoded) = platform::file_uri::to_path_leniently(uri) else { return plain(uri) };
    // Emacs sends paths as they are: a name with a percent sign stays what it is if that file exists.
    let written = uri.strip_prefix("file://").filter(|rest| rest.contains('%')).map(plain);
    written
        .filter(|path| path.is_absolute() && path.exists())
        .unwrap_or_else(|| decoded.components().collect())
}

/// Without a slash at its end.
fn plain(path: &str) -> PathBuf {
    std::path::Path::new(path).components().collect()
}

/// The behavior a client means by either of its two fields.
pub(crate) fn behavior(behavior: Option<String>, agent: Option<String>) -> Option<String> {
    let name = agent.or(behavior).filter(|name| !name.is_empty())?;
    Some(if name == "code" { "agent".to_owned() } else { name })
}

/// The abilities that a client names when it connects.
pub(crate) fn abilities(params: &InitializeParams) -> Abilities {
    let client = params.client_info.as_ref().map_or_else(String::new, |info| {
        let name = info.name.as_deref().unwrap_or("eca client");
        let version = info.version.as_deref().and_then(|version| version.lines().next()).unwrap_or_default();
        format!("{name} {version}").trim().to_owned()
    });
    let assistant = params.capabilities.as_ref().and_then(|all| all.code_assistant.as_ref());
    let editor = assistant.and_then(|it| it.editor.as_ref());
    let can = |flag: Option<bool>| flag.unwrap_or(false);
    let questions =
        can(assistant.and_then(|it| it.chat_capabilities.as_ref()).and_then(|it| it.ask_question));
    Abilities {
        client,
        questions,
        // A form is asked field by field.
        forms: questions,
        diagnostics: can(editor.and_then(|it| it.diagnostics)),
        definition: can(editor.and_then(|it| it.definition)),
        references: can(editor.and_then(|it| it.references)),
        ..Abilities::default()
    }
}

/// The model of the catalog that a client means: ECA writes the names of providers in kebab-case. Unknown names stay.
pub(crate) fn model(catalog: &Catalog, name: String) -> String {
    let is_known = |id: &str| catalog.models.iter().any(|model| model.id == id);
    let Some((provider, model)) = name.split_once('/').filter(|_| !is_known(&name)) else { return name };
    let same = catalog.models.iter().find(|known| {
        known.id.split_once('/').is_some_and(|(it, rest)| rest == model && is_same_name(it, provider))
    });
    same.map_or(name.clone(), |known| known.id.clone())
}

/// The draft's file may carry the cursor, which is a context of its own.
pub(crate) fn contexts(all: Vec<wire::Context>) -> Vec<Context> {
    let both = |one: wire::Context| {
        let cursor = one.cursor.filter(|_| one.kind == "file").zip(one.path.as_deref().map(path));
        let cursor = cursor.map(|(at, path)| {
            let at = position(at);
            Context::Cursor { path, start: at, end: at }
        });
        context(one).into_iter().chain(cursor)
    };
    all.into_iter().flat_map(both).collect()
}

/// `None`: an unknown kind, or one that lacks a member it needs.
pub(crate) fn context(context: wire::Context) -> Option<Context> {
    let place = context.path.as_deref().map(path);
    Some(match context.kind.as_str() {
        "file" => Context::File { path: place?, lines: lines(&context) },
        "directory" => Context::Directory { path: place? },
        "web" => Context::Web { url: context.url? },
        "repoMap" => Context::RepoMap,
        "cursor" => {
            let range = context.position?;
            Context::Cursor { path: place?, start: position(range.start), end: position(range.end) }
        }
        "mcpResource" => Context::McpResource(Resource {
            server: context.server.unwrap_or_default(),
            uri: context.uri?,
            name: context.name.unwrap_or_default(),
            description: context.description.unwrap_or_default(),
            mime: context.mime_type.unwrap_or_default(),
        }),
        "code" => Context::Code {
            content: context.content?,
            language: context.language.unwrap_or_default(),
            description: context.description,
        },
        "text" | "terminal" => Context::Text {
            name: context.label.or(context.name).unwrap_or(context.kind),
            text: context.text.or(context.content)?,
        },
        "image" => Context::Image { mime: context.media_type?, data: Arc::from(context.base64?) },
        _ => return None,
    })
}

fn lines(context: &wire::Context) -> Option<(u32, u32)> {
    let range = context.lines_range.map(|range| (range.start, range.end));
    let selection = context.selection.map(|selection| (selection.start_line, selection.end_line));
    range.or(selection)
}

/// 1-based by the protocol; clients of 2025 count characters from 0.
pub(crate) fn position(position: LinePosition) -> Position {
    Position { line: position.line.max(1), character: position.character }
}

/// Editors send diagnostics as their language servers count them, from 0.
fn from_zero(position: LinePosition) -> Position {
    let LinePosition { line, character } = position;
    Position { line: line.saturating_add(1), character: character.saturating_add(1) }
}

pub(crate) fn diagnostic(diagnostic: Diagnostic) -> domain::host::Diagnostic {
    domain::host::Diagnostic {
        path: path(&diagnostic.uri),
        severity: diagnostic.severity.unwrap_or_else(|| "error".into()),
        source: diagnostic.source.unwrap_or_default(),
        start: from_zero(diagnostic.range.start),
        end: from_zero(diagnostic.range.end),
        code: diagnostic.code.map(|code| code.as_str().map_or_else(|| code.to_string(), str::to_owned)),
        message: diagnostic.message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_of_both_spellings_are_read() {
        let value = camel_case(
            json!({"request-id": 1, "a": [{"tool-call-id": "x"}], "initializationOptions": {"k-b": 1}}),
        );
        assert_eq!(
            value,
            json!({"requestId": 1, "a": [{"toolCallId": "x"}], "initializationOptions": {"k-b": 1}})
        );
    }

    #[test]
    fn uris_and_paths_are_paths() {
        for (uri, expected) in [
            ("file:///home/a%20b/", "/home/a b"),
            ("file:///home/a b", "/home/a b"),
            ("/plain/path/", "/plain/path"),
            ("file:///", "/"),
            ("file:///bad%zz", "/bad%zz"),
        ] {
            assert_eq!(path(uri), PathBuf::from(expected), "{uri}");
        }
    }

    #[test]
    fn both_spellings_of_a_provider_find_its_model() {
        let known = |id: &str| domain::model::ModelInfo { id: id.into(), ..Default::default() };
        let models = vec![known("myProvider/big"), known("openai/gpt"), known("a/b/c")];
        let catalog = Catalog { models, ..Catalog::default() };
        for (written, expected) in [
            ("my-provider/big", "myProvider/big"),
            ("myProvider/big", "myProvider/big"),
            ("my-provider/other", "my-provider/other"),
            ("a/b/c", "a/b/c"),
            ("gpt", "gpt"),
        ] {
            assert_eq!(model(&catalog, written.into()), expected);
        }
    }

    #[test]
    fn agent_and_code_are_one_behavior() {
        for (behavior_field, agent_field, expected) in [
            (None, Some("code"), Some("agent")),
            (Some("agent"), None, Some("agent")),
            (Some("plan"), None, Some("plan")),
            (Some("plan"), Some("code"), Some("agent")),
            (None, None, None),
        ] {
            let read = behavior(behavior_field.map(str::to_owned), agent_field.map(str::to_owned));
            assert_eq!(read.as_deref(), expected);
        }
    }
}
