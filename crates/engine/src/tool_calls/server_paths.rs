//! Texts in the arguments for a server's tool, and the paths that they may stand for.
//!
//! A server's tool says nothing about its arguments, so each text counts as a path that the server might use. Pure but for
//! following links.

use std::path::{Path, PathBuf};

use platform::resolve_links;
use serde_json::Value;

/// A longer text is no path.
const LONGEST_PATH: usize = 4096;

/// Every text in the arguments, without the scheme of a file's address.
pub(super) fn texts_of(input: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    add_texts(input, &mut texts);
    texts
}

fn add_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let path = platform::file_uri::to_path_leniently(text);
            let written = text.strip_prefix("file://").unwrap_or(text);
            texts.extend(
                path.and_then(|path| path.into_os_string().into_string().ok()).filter(|path| path != written),
            );
            texts.push(written.to_owned());
        }
        Value::Array(values) => values.iter().for_each(|value| add_texts(value, texts)),
        Value::Object(values) => values.values().for_each(|value| add_texts(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The paths that the texts may stand for, as rules compare paths: seen from each folder of the workspace, relative to the
/// first where it is inside, and absolute.
pub(crate) fn paths_of(input: &Value, roots: &[PathBuf]) -> Vec<[String; 2]> {
    let mut paths = Vec::new();
    for text in texts_of(input) {
        if text.is_empty() || text.len() > LONGEST_PATH || text.contains(['\n', '\0']) {
            continue;
        }
        for root in roots {
            let path = root.join(&text);
            let path = resolve_links(&path).unwrap_or(path);
            let shown =
                roots.first().and_then(|root| path.strip_prefix(root).ok()).unwrap_or(Path::new(&path));
            let both = [shown.display().to_string(), path.display().to_string()];
            if !paths.contains(&both) {
                paths.push(both);
            }
        }
    }
    paths
}
