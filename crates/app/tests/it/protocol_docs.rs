//! The pages about protocols name tests that exist and leave out no method.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs/protocols").join(name)).expect("the page")
}

/// Names of functions in the Rust files below a folder.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            functions(&path, names);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = std::fs::read_to_string(&path).expect("a file");
            let after = text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
            names.extend(after.map(str::to_owned));
        }
    }
}

#[test]
fn the_tests_that_pages_name_exist() {
    let mut known = BTreeSet::new();
    for crate_name in ["proto-acp", "proto-threads", "app", "serve", "tools"] {
        for folder in ["src", "tests"] {
            functions(&root().join("crates").join(crate_name).join(folder), &mut known);
        }
    }
    for name in ["acp.md", "threads.md"] {
        let text = page(name);
        let named: Vec<&str> = text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| word.matches('_').count() > 2 && !word.contains(['/', ' ', '.']))
            .collect();
        assert!(named.len() > 15, "{name} names {named:?}");
        let missing: Vec<&&str> = named.iter().filter(|word| !known.contains(**word)).collect();
        assert!(missing.is_empty(), "{name} names tests that are not there: {missing:?}");
    }
}

#[test]
fn no_method_of_threads_is_left_out() {
    let threads = page("threads.md");
    for method in [
        "getThreads",
        "createThread",
        "openThread",
        "getThreadEntries",
        "sendMessage",
        "streamMessageChunk",
        "readTextFile",
        "readBinaryFile",
        "stat",
        "globSearch",
    ] {
        assert!(threads.contains(&format!("| `{method}` |")), "{method}");
    }
}

/// Each method that the ECA server knows has a row, and each row has a test or says in words why it has none.
#[test]
fn every_method_and_row_of_eca_is_accounted_for() {
    let text = page("eca.md");
    let requests = root().join("crates/proto-eca/src/wire/requests.rs");
    let requests = std::fs::read_to_string(requests).expect("the table of methods");
    let table = requests.split("\nmethods! {").nth(1).and_then(|rest| rest.split("\n}").next());
    let table = table.expect("the table");
    let methods: Vec<&str> = table.split(" = \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(methods.len() > 40, "{methods:?}");
    for method in methods {
        assert!(text.contains(&format!("`{method}`")), "{method} has no row");
    }
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("|---"));
    for row in rows {
        let last = row.trim_end_matches('|').rsplit(" | ").next().unwrap_or_default().trim();
        let names_test = last.contains("::") || last.matches('_').count() > 2;
        let says_why = last.split_whitespace().count() >= 3;
        let is_head = ["test", "here", "same", "below"].contains(&last);
        assert!(names_test || says_why || is_head, "neither a test nor a reason: {row}");
    }
}
