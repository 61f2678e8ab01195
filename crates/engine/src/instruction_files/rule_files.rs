//! Folders of rules: those of Cursor (`*.mdc`) and of GitHub Copilot (`*.instructions.md`). The lines at the top of a file
//! say for which files it holds.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::imports::Importer;

/// More files are left out.
const MAX_FILES: usize = 50;

/// For which files a rule holds.
#[derive(Debug, PartialEq)]
enum Holds {
    Always,
    For(Vec<String>),
    /// Its assistant gives it to the model where a person asks for it.
    ByRequest,
}

/// Adds the rules of a folder. Whether there are any.
pub(super) fn add(importer: &mut Importer<'_>, boundary: &Path, folder: &Path, endings: &[&str]) -> bool {
    importer.note_place(folder);
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let has_ending = |name: &str| endings.iter().any(|ending| name.ends_with(ending));
    let mut paths: Vec<PathBuf> = entries
        .take(MAX_FILES * 4)
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(has_ending))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    for path in paths.iter().skip(MAX_FILES) {
        importer.leave_out(path, format!("a folder of rules may have {MAX_FILES} files"));
    }
    let mut has_text = false;
    for path in paths.iter().take(MAX_FILES) {
        let Some(text) = importer.read(boundary, path) else { continue };
        has_text = true;
        let (values, body) = config::front_matter::split(&text);
        match holds(&values) {
            Holds::Always => importer.add_rule(boundary, path, body.to_owned(), Vec::new()),
            Holds::For(globs) => importer.add_rule(boundary, path, body.to_owned(), globs),
            Holds::ByRequest => importer.leave_out(path, "it does not say for which files it holds"),
        }
    }
    has_text
}

fn holds(values: &serde_json::Map<String, Value>) -> Holds {
    let patterns = values.get("globs").or_else(|| values.get("applyTo")).map(patterns).unwrap_or_default();
    if values.get("alwaysApply") == Some(&Value::Bool(true)) || patterns.iter().any(|glob| glob == "**") {
        return Holds::Always;
    }
    match patterns.is_empty() {
        false => Holds::For(patterns),
        // A file without a head is one of plain Markdown.
        true if values.is_empty() => Holds::Always,
        true => Holds::ByRequest,
    }
}

/// `*.ts, src/**` or a list. A pattern without a folder holds in every folder.
fn patterns(value: &Value) -> Vec<String> {
    let texts: Vec<&str> = match value {
        Value::String(text) => text.split(',').collect(),
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let plain = texts.into_iter().map(|text| text.trim().trim_matches(['"', '\'']));
    let in_any_folder = |glob: &str| match glob {
        "*" | "**" | "**/*" => "**".to_owned(),
        glob if glob.contains('/') => glob.to_owned(),
        glob => format!("**/{glob}"),
    };
    plain.filter(|glob| !glob.is_empty()).map(in_any_folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_rule_says_for_which_files_it_holds() {
        let of = |text: &str| holds(&config::front_matter::split(text).0);
        let globs = |globs: &[&str]| Holds::For(globs.iter().map(|glob| (*glob).to_owned()).collect());
        for (head, expected) in [
            ("---\nalwaysApply: true\n---\n", Holds::Always),
            ("---\nglobs: *.rs\nalwaysApply: false\n---\n", globs(&["**/*.rs"])),
            ("---\nglobs: [\"src/**\", \"*.ts\"]\n---\n", globs(&["src/**", "**/*.ts"])),
            ("---\ndescription: about tests\nalwaysApply: false\n---\n", Holds::ByRequest),
            ("---\napplyTo: \"**\"\n---\n", Holds::Always),
            ("---\napplyTo: \"**/*.ts,**/*.tsx\"\n---\n", globs(&["**/*.ts", "**/*.tsx"])),
            ("Plain.", Holds::Always),
        ] {
            assert_eq!(of(head), expected, "{head}");
        }
    }
}
