//! The tables of docs/protocols, docs/waits.md and docs/holes.md name the test behind each line: every named test is there.
//!
//! A test is written `file::name` (a file of some crate's tests or sources) or `name` alone; `file::*` names all tests
//! of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Pages besides those of docs/protocols.
const TABLES: [&str; 2] = ["docs/waits.md", "docs/holes.md"];

/// Each test that is named and not there, one line each.
pub fn problems(root: &Path) -> Vec<String> {
    let mut tests: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in ["crates", "interfaces", "testkit", "xtask"] {
        collect(&root.join(folder), &mut tests);
    }
    let mut problems = Vec::new();
    let Ok(pages) = fs::read_dir(root.join("docs/protocols")) else {
        return vec!["docs/protocols is not there".to_owned()];
    };
    for page in pages.flatten().map(|page| page.path()).chain(TABLES.map(|page| root.join(page))) {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&page).unwrap_or_default();
        for line in text.lines() {
            problems.extend(
                missing(line, &tests)
                    .into_iter()
                    .map(|test| format!("{name} names {test}, which is no test")),
            );
        }
    }
    problems
}

/// Names of test functions by the stem of their file.
fn collect(folder: &Path, tests: &mut BTreeMap<String, BTreeSet<String>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target" && name != "node_modules") {
            collect(&path, tests);
        }
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if path.extension().is_none_or(|kind| kind != "rs") {
            continue;
        }
        let names = tests.entry(stem.to_owned()).or_default();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut marked = false;
        for line in text.lines().map(str::trim) {
            let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
            match function.and_then(|rest| rest.split('(').next()) {
                Some(name) if marked => {
                    names.insert(name.to_owned());
                    marked = false;
                }
                _ => marked |= line.starts_with("#[test]") || line.starts_with("#[tokio::test"),
            }
        }
    }
}

fn missing(line: &str, tests: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let is_there = |quoted: &str| match quoted.split_once("::") {
        Some((stem, test)) if is_name(stem) && (test == "*" || test.contains('_') && is_name(test)) => {
            tests.get(stem).is_some_and(|all| test == "*" && !all.is_empty() || all.contains(test))
        }
        // A name alone is taken for one of a test when it has as many words as those have.
        None if quoted.matches('_').count() >= 3 && is_name(quoted) => {
            tests.values().any(|all| all.contains(quoted))
        }
        _ => true,
    };
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|quoted| !is_there(quoted)).map(str::to_owned).collect()
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_test_is_told() {
        let tests =
            BTreeMap::from([("eca".to_owned(), BTreeSet::from(["it_works_as_it_should".to_owned()]))]);
        for (line, told) in [
            ("| `chat/prompt` | `eca::it_works_as_it_should` |", 0),
            ("`eca::*`, `it_works_as_it_should`", 0),
            ("`eca::it_was_renamed_since`", 1),
            ("`nowhere::*` and `it_works_as_it_should`", 1),
            ("`it_was_renamed_some_time_ago`", 1),
            ("`std::fs::File` and `some_name`", 0),
        ] {
            assert_eq!(missing(line, &tests).len(), told, "{line}: {:?}", missing(line, &tests));
        }
    }
}
