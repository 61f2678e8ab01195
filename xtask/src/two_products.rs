//! The assistant (`crates/`) does not know the crates that generate interfaces (`interfaces/`). The program joins both in one
//! module, by one crate.

use std::path::Path;

use serde_json::Value;

use crate::packages::{list, text, workspace};

/// The crate that the program uses, and the module that does so.
const JOINED_BY: &str = "dragoman-interfaces";
const JOINED_AT: &str = "crates/app/src/commands/interfaces/";

/// Development only: its table names the parsers of all crates.
const DEVELOPMENT: &str = "dragoman-fuzz-targets";

/// Everything that knows too much of the other product, one line each.
pub(crate) fn problems(root: &Path, files: &[(String, Vec<String>)]) -> Vec<String> {
    match workspace(root) {
        Ok(metadata) => {
            let mut problems = dependencies(list(&metadata["packages"]));
            problems.extend(uses(files));
            problems
        }
        Err(error) => vec![error],
    }
}

fn is_interface(package: &Value) -> bool {
    text(package, "manifest_path").replace('\\', "/").contains("/interfaces/")
}

fn dependencies(packages: &[Value]) -> Vec<String> {
    let interfaces: Vec<String> =
        packages.iter().filter(|it| is_interface(it)).map(|it| text(it, "name")).collect();
    let mut problems = Vec::new();
    for package in packages.iter().filter(|it| !is_interface(it) && it["name"] != DEVELOPMENT) {
        let name = text(package, "name");
        for dependency in list(&package["dependencies"]).iter().filter(|it| it["kind"] != "dev") {
            let other = text(dependency, "name");
            let is_joint = name == "dragoman" && other == JOINED_BY && dependency["optional"] == true;
            if interfaces.contains(&other) && !is_joint {
                problems.push(format!("{name} may not depend on {other}, which is in interfaces/"));
            }
        }
    }
    problems
}

fn uses(files: &[(String, Vec<String>)]) -> Vec<String> {
    let outside =
        files.iter().filter(|(name, _)| name.starts_with("crates/") && !name.starts_with(JOINED_AT));
    outside
        .filter(|(_, lines)| lines.iter().any(|line| names_the_crate(line)))
        .map(|(name, _)| format!("{name} uses the crate `interfaces`: only {JOINED_AT} may"))
        .collect()
}

/// `interfaces::` at the start of a path; `commands::interfaces::` is the module.
fn names_the_crate(line: &str) -> bool {
    let is_start = |at: usize| !line[..at].ends_with(|c: char| c == ':' || c == '_' || c.is_alphanumeric());
    !line.trim_start().starts_with("//") && line.match_indices("interfaces::").any(|(at, _)| is_start(at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_joint_depends_on_the_other_product() {
        let package = |name: &str, folder: &str, dependencies: Value| json!({"name": name, "manifest_path": format!("/r/{folder}/Cargo.toml"), "dependencies": dependencies});
        let check = |name: &str, dependency: Value| {
            let other = dependency["name"].as_str().unwrap_or_default().to_owned();
            dependencies(&[
                package(name, "crates/a", json!([dependency])),
                package(&other, "interfaces/b", json!([])),
            ])
            .len()
        };
        for (name, dependency, problems) in [
            ("dragoman", json!({"name": JOINED_BY, "optional": true}), 0),
            ("dragoman", json!({"name": JOINED_BY, "optional": false}), 1),
            ("dragoman", json!({"name": "dragoman-apiui", "optional": true}), 1),
            ("dragoman", json!({"name": "dragoman-apiui", "kind": "dev"}), 0),
            ("dragoman-serve", json!({"name": JOINED_BY, "optional": true}), 1),
            (DEVELOPMENT, json!({"name": "dragoman-apiui"}), 0),
        ] {
            assert_eq!(check(name, dependency.clone()), problems, "{name} {dependency}");
        }
    }

    #[test]
    fn only_the_joint_names_the_crate() {
        let file = |name: &str, line: &str| (name.to_owned(), vec![line.to_owned()]);
        for (name, line, problems) in [
            ("crates/app/src/cli.rs", "        Task::Copilot => commands::interfaces::copilot(level),", 0),
            ("crates/app/src/cli.rs", "use interfaces::Assistant;", 1),
            ("crates/app/src/cli.rs", "    let x = interfaces::generate();", 1),
            ("crates/app/src/cli.rs", "// use interfaces::Assistant;", 0),
            ("crates/app/src/commands/interfaces/mod.rs", "use interfaces::Assistant;", 0),
            ("interfaces/commands/src/lib.rs", "use interfaces::Assistant;", 0),
        ] {
            assert_eq!(uses(&[file(name, line)]).len(), problems, "{name}: {line}");
        }
    }
}
