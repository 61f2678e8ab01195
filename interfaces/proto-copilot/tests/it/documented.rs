//! The contract's page names tests: they are there.

use std::path::Path;

#[test]
fn every_test_that_is_named_exists() {
    let interfaces = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(interfaces.join("../docs/protocols/copilot.md")).expect("the page");
    let mut count = 0;
    for name in page.split('`').skip(1).step_by(2).filter(|name| name.contains("::")) {
        let named = |folder: &'static str| Some((folder, name.strip_prefix(&format!("{folder}::"))?));
        let (folder, test) = named("app").or_else(|| named("studio")).unwrap_or(("proto-copilot", name));
        let Some((module, test)) = test.split_once("::").filter(|(_, test)| !test.contains("::")) else {
            panic!("{name} is no module and test");
        };
        if folder == "proto-copilot" && module == "apiui" {
            continue;
        }
        // The tests in a browser are a program of their own.
        let file = if module == "page" {
            "tests/studio/main.rs".to_owned()
        } else {
            format!("tests/it/{module}.rs")
        };
        // Those of the whole program are beside the crates.
        let folder = if folder == "app" { "." } else { folder };
        let source = std::fs::read_to_string(interfaces.join(folder).join(file));
        let source = source.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(test == "*" || source.contains(&format!("fn {test}(")), "{name} is not there");
        count += 1;
    }
    assert!(count > 30, "{count} names");
    for code in [-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32003, -32004] {
        let row = page.lines().find(|line| line.starts_with(&format!("| {code} |")));
        assert!(row.is_some_and(|row| row.contains("::")), "{code} has a row with a test");
    }
}
