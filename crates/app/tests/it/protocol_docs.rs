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
    for crate_name in ["proto-acp", "proto-threads", "app", "tools"] {
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
