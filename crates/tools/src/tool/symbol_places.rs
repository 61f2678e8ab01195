//! Where a name occurs in the files of a workspace, for questions about code that need a line and a column.
//!
//! Knows words, not languages. Invariants: a place is where the name occurs as a whole word; what git ignores and what rules
//! forbid is not read; the search is bounded in time and size.

use std::path::{Path, PathBuf};

use domain::CancellationToken;
use domain::host::Position;
use platform::project_files;

use crate::options::Limits;
use crate::paths::{ForbiddenPaths, ResolvedPath};
use crate::walk::Walk;

/// So many places are tried until one of them is known.
pub(super) const MOST_TRIED: usize = 5;
/// Places that are compared.
const MOST_FOUND: usize = 500;
/// The words before a name that is defined, in most languages.
const DEFINING: &[&str] = &[
    "class",
    "const",
    "def",
    "defn",
    "enum",
    "fn",
    "fun",
    "func",
    "function",
    "impl",
    "interface",
    "let",
    "macro",
    "mod",
    "module",
    "namespace",
    "object",
    "package",
    "proc",
    "record",
    "static",
    "struct",
    "sub",
    "trait",
    "type",
    "union",
    "val",
    "var",
];
/// How comments begin.
const COMMENTS: &[&str] = &["//", "#", "*", "/*", "--", ";", "\"\"\"", "%", "<!--"];
/// Names of files that hold no code.
const PROSE: &[&str] =
    &["css", "csv", "html", "json", "lock", "log", "md", "svg", "toml", "txt", "xml", "yaml", "yml"];

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) position: Position,
}

struct Found {
    place: Place,
    /// Smaller is better.
    rank: (bool, bool, bool, u32),
}

/// The name in what a model calls a symbol: `bar` in `Foo::bar()`.
pub(super) fn name_of(symbol: &str) -> Option<&str> {
    let symbol = symbol.trim().trim_matches('`').split('(').next().unwrap_or_default();
    let symbol = symbol.trim().trim_end_matches(['!', '?', ':', ';']);
    let name = symbol.rsplit(|character| !is_word(character)).next()?;
    (!name.is_empty()).then_some(name)
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// The likeliest places of a name in a file, or in the files of a folder. `near`: a line of the file.
pub(super) fn find(
    name: &str,
    from: &ResolvedPath,
    near: Option<u32>,
    limits: &Limits,
    forbidden: &ForbiddenPaths,
    cancel: CancellationToken,
) -> Result<Vec<Place>, String> {
    let mut found = Vec::new();
    let mut walk = Walk::new(from.path(), limits.walk_time, cancel);
    for entry in walk.by_ref() {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if !is_file || forbidden.contains(entry.path()) || found.len() >= MOST_FOUND {
            continue;
        }
        if let Some(text) = read(entry.path(), limits.file_bytes) {
            add_places(name, entry.path(), &text, near, &mut found);
        }
    }
    if walk.is_stopped() {
        return Err("The call was stopped.".to_owned());
    }
    found.sort_by_key(|found| found.rank);
    if found.is_empty() {
        return Err(format!("The name {name} does not occur in {}.", from.shown()));
    }
    Ok(found.into_iter().take(MOST_TRIED).map(|found| found.place).collect())
}

fn read(path: &Path, limit: u64) -> Option<String> {
    let file = project_files::open_regular(path).ok()?;
    String::from_utf8(project_files::read_open_file(file, limit).ok()?).ok()
}

fn add_places(name: &str, path: &Path, text: &str, near: Option<u32>, found: &mut Vec<Found>) {
    let kind = path.extension().map(|kind| kind.to_string_lossy().to_lowercase()).unwrap_or_default();
    let is_prose = PROSE.contains(&kind.as_str());
    for (line, number) in text.lines().zip(1_u32..) {
        let Some(at) = word_at(line, name) else { continue };
        let start = line.trim_start();
        let is_comment = COMMENTS.iter().any(|mark| start.starts_with(mark));
        let is_defining = is_after_keyword(&line[..at]);
        // Columns count as in the protocols of editors.
        let character = line[..at].encode_utf16().count() + 1;
        let position = Position { line: number, character: u32::try_from(character).unwrap_or(1) };
        let distance = near.map_or(0, |near| near.abs_diff(number));
        let rank = match near {
            Some(_) => (false, is_comment && distance > 0, false, distance),
            None => (is_prose, is_comment, !is_defining, 0),
        };
        found.push(Found { place: Place { path: path.to_owned(), position }, rank });
        if found.len() >= MOST_FOUND {
            return;
        }
    }
}

/// Whether a word that defines something is right before a name.
fn is_after_keyword(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t', '*', '&']);
    let before = before.strip_suffix(" mut").unwrap_or(before);
    let word = before.rsplit(|character| !is_word(character)).next().unwrap_or_default();
    DEFINING.contains(&word)
}

/// The first place of a name in a line, as a whole word.
fn word_at(line: &str, name: &str) -> Option<usize> {
    line.match_indices(name).map(|(at, _)| at).find(|at| {
        let before = line[..*at].chars().next_back();
        let after = line[at + name.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_in_what_models_write() {
        for (symbol, name) in [
            ("bar", Some("bar")),
            ("Foo::bar()", Some("bar")),
            ("foo.bar", Some("bar")),
            ("`Foo#bar`", Some("bar")),
            ("vec!", Some("vec")),
            ("größe", Some("größe")),
            ("$scope", Some("$scope")),
            ("", None),
            ("()", None),
        ] {
            assert_eq!(name_of(symbol), name, "{symbol}");
        }
    }

    fn ranked(text: &str, name: &str, near: Option<u32>) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        add_places(name, Path::new("a.rs"), text, near, &mut found);
        found.sort_by_key(|found| found.rank);
        found.iter().map(|found| (found.place.position.line, found.place.position.character)).collect()
    }

    #[test]
    fn definitions_come_first_and_comments_last() {
        let text = "// total is a sum\nlet x = total(1) + subtotal;\nfn total(a: u8) {}\n    totals();\n";
        assert_eq!(ranked(text, "total", None), [(3, 4), (2, 9), (1, 4)]);
        assert_eq!(ranked(text, "total", Some(2)), [(2, 9), (3, 4), (1, 4)]);
        assert_eq!(ranked(text, "total", Some(1))[0], (1, 4));
        assert_eq!(ranked("let s = \"ü😀\"; run();", "run", None), [(1, 16)]);
        assert!(ranked(text, "tota", None).is_empty());
    }
}
