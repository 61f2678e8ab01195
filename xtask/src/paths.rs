//! The paths that a source file names: its `use` lines, those that it hands on, and paths in its code.
//!
//! Reads tokens, not syntax: comments, strings and everything from the tests on are left out. Invariant: never fails; what
//! it does not understand draws no arrow.

/// One name that a `use` line brings.
pub(crate) struct Import {
    /// What it is called here.
    pub name: String,
    pub path: Vec<String>,
}

/// The paths of one file.
#[derive(Default)]
pub(crate) struct Paths {
    pub imported: Vec<Import>,
    /// By `pub use` and its kin.
    pub handed_on: Vec<Import>,
    /// Paths of at least two names in the code.
    pub used: Vec<Vec<String>>,
}

pub(crate) fn read(text: &str) -> Paths {
    let tokens = tokens(text);
    let mut paths = Paths::default();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            let is_public = is_public(&tokens[..at]);
            let mut imports = Vec::new();
            at = tree(&tokens, at + 1, &[], &mut imports);
            if is_public {
                paths.handed_on.extend(imports)
            } else {
                paths.imported.extend(imports)
            }
            continue;
        }
        let mut path = Vec::new();
        while is_name(&tokens[at]) {
            path.push(tokens[at].clone());
            let goes_on = tokens.get(at + 1).is_some_and(|next| next == "::")
                && tokens.get(at + 2).is_some_and(|next| is_name(next));
            if !goes_on {
                break;
            }
            at += 2;
        }
        if path.len() > 1 {
            paths.used.push(path);
        }
        at += 1;
    }
    paths
}

/// The code of a file as one text of its names and marks with a blank around each, without comments, strings and tests.
pub(crate) fn code(text: &str) -> String {
    format!(" {} ", tokens(text).join(" "))
}

/// Whether the tokens end with `pub` or `pub(…)`.
fn is_public(before: &[String]) -> bool {
    match before.last().map(String::as_str) {
        Some("pub") => true,
        Some(")") => {
            let open = before.iter().rposition(|token| token == "(");
            open.is_some_and(|open| open > 0 && before[open - 1] == "pub")
        }
        _ => false,
    }
}

/// Reads a tree of imports; returns the place after it.
fn tree(tokens: &[String], mut at: usize, prefix: &[String], imports: &mut Vec<Import>) -> usize {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "::" => at += 1,
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}") {
                    at = tree(tokens, at, &path, imports);
                    if tokens.get(at).is_some_and(|token| token == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "as" => {
                if let Some(name) = tokens.get(at + 1) {
                    imports.push(Import { name: name.clone(), path });
                }
                return at + 2;
            }
            name if is_name(name) => {
                // `a::{self}` is `a`.
                if name != "self" || path.is_empty() {
                    path.push(name.to_owned());
                }
                at += 1;
            }
            _ => break,
        }
    }
    if let Some(name) = path.last().cloned() {
        imports.push(Import { name, path });
    }
    // `*` names nothing in particular.
    if tokens.get(at).is_some_and(|token| token == "*") { at + 1 } else { at.max(1) }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::` and single marks, without comments, strings and tests.
fn tokens(text: &str) -> Vec<String> {
    let end = text.find("\n#[cfg(test)]\n").unwrap_or(text.len());
    let mut rest = &text[..end];
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = text_length(rest) {
            length
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else if first.is_alphanumeric() || first == '_' {
            let word = rest.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(rest.len());
            tokens.push(rest[..word].to_owned());
            word
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of a string or a character that begins here.
fn text_length(rest: &str) -> Option<usize> {
    let start = rest.trim_start_matches(['b', 'c']);
    let before = rest.len() - start.len();
    if before > 1 {
        return None;
    }
    if let Some(raw) = start.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let body = raw[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = body.find(&close).map_or(body.len(), |end| end + close.len());
        return Some(before + 1 + hashes + 1 + end);
    }
    if let Some(body) = start.strip_prefix('"') {
        return Some(before + 1 + quoted_length(body));
    }
    // `'a'` and `'\n'`, not the lifetime `'a`.
    let body = start.strip_prefix('\'')?;
    if body.starts_with('\\') {
        return Some(before + 1 + body[2.min(body.len())..].find('\'').map_or(1, |end| end + 3));
    }
    let first = body.chars().next()?;
    body[first.len_utf8()..].starts_with('\'').then(|| before + 2 + first.len_utf8())
}

/// The length of a string up to and with its closing mark.
fn quoted_length(body: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_lifetimes_are_no_paths() {
        let text = "/* a::b */ fn f<'a>(x: &'a str) { g('\\'', b\"c::d\", r#\"e\"::f\"#, 'x'); h::i::<T>(); } // j::k\n";
        assert_eq!(read(text).used, [["h", "i"]]);
    }

    #[test]
    fn a_tree_of_imports_is_read_as_its_leaves() {
        let paths =
            read("use crate::{a::{self, B}, c as d};\npub(super) use self::e::*;\nuse super::super::F;\n");
        let names = |imports: &[Import]| {
            imports
                .iter()
                .map(|import| format!("{}={}", import.name, import.path.join("::")))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(&paths.imported),
            ["a=crate::a", "B=crate::a::B", "d=crate::c", "F=super::super::F"]
        );
        assert_eq!(names(&paths.handed_on), ["e=self::e"]);
    }
}
