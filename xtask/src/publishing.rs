//! Whether `cargo publish --workspace` would be accepted, so that `cargo install dragoman` works after a release: what the
//! registry demands of each package of the program, from the manifests alone.
//!
//! Invariant: nothing is fetched, and nothing is said about whether a name is free.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::packages::{list, text, workspace};

/// The longest description that the registry accepts.
const LONGEST_DESCRIPTION: usize = 1000;

/// Everything that the registry would refuse, one line each.
pub fn problems(root: &Path) -> Vec<String> {
    match workspace(root) {
        Ok(metadata) => check(list(&metadata["packages"])),
        Err(error) => vec![error],
    }
}

fn check(packages: &[Value]) -> Vec<String> {
    let ours: BTreeMap<String, &Value> = packages.iter().map(|it| (text(it, "name"), it)).collect();
    let published = needed(&ours, "dragoman");
    let mut problems = Vec::new();
    for (name, package) in &ours {
        let is_offered = package["publish"].is_null();
        if is_offered != published.contains(name.as_str()) {
            let wanted = if is_offered { "publish = false" } else { "publish = true" };
            problems
                .push(format!("{name} needs `{wanted}`: `cargo install dragoman` decides what is published"));
        }
        if is_offered {
            problems.extend(check_package(name, package, &ours));
        }
    }
    problems
}

/// The packages of this repository that the program is built from.
fn needed<'a>(ours: &'a BTreeMap<String, &'a Value>, start: &'a str) -> BTreeSet<&'a str> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![start]);
    while let Some(name) = waiting.pop() {
        let Some(package) = ours.get(name).filter(|_| found.insert(name)) else { continue };
        let dependencies = list(&package["dependencies"]).iter().filter(|it| it["kind"] != "dev");
        waiting.extend(dependencies.filter_map(|it| it["name"].as_str()));
    }
    found.retain(|name| ours.contains_key(*name));
    found
}

fn check_package(name: &str, package: &Value, ours: &BTreeMap<String, &Value>) -> Vec<String> {
    let mut problems = Vec::new();
    let description = text(package, "description");
    if description.is_empty() || description.len() > LONGEST_DESCRIPTION {
        problems.push(format!("{name} has no description of at most {LONGEST_DESCRIPTION} bytes"));
    }
    if text(package, "license").is_empty() {
        problems.push(format!("{name} has no license"));
    }
    for dependency in list(&package["dependencies"]) {
        let Some((other, found)) = ours.get_key_value(&text(dependency, "name")) else { continue };
        let asked = text(dependency, "req");
        // cargo leaves out a path without a version where only tests need it.
        if dependency["kind"] != "dev" {
            let wanted = format!("^{}", text(found, "version"));
            if asked != wanted {
                problems.push(format!("{name} must name {other} with the version {wanted}"));
            }
        } else if asked != "*" && (!found["publish"].is_null() || needed(ours, other).contains(name)) {
            problems.push(format!("{name} must name {other} without a version: only its tests need it"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, publish: &Value, description: &str, dependencies: &Value) -> Value {
        json!({"name": name, "publish": publish, "version": "0.1.0", "description": description, "license": "MIT",
            "dependencies": dependencies})
    }

    #[test]
    fn what_the_registry_refuses_is_found() {
        let needs =
            |name: &str, req: &str, kind: Option<&str>| json!({"name": name, "req": req, "kind": kind});
        let program = |dependencies| package("dragoman", &Value::Null, "A program", &dependencies);
        let part = package("part", &Value::Null, "A part", &json!([]));
        let kit = package("kit", &json!([]), "", &json!([]));
        let fine = program(json!([needs("part", "^0.1.0", None), needs("kit", "*", Some("dev"))]));
        assert_eq!(check(&[fine.clone(), part.clone(), kit.clone()]), Vec::<String>::new());
        for (packages, expected) in [
            (
                [program(json!([needs("part", "*", None)])), part.clone(), kit.clone()],
                "with the version ^0.1.0",
            ),
            (
                [
                    program(json!([needs("part", "^0.1.0", None), needs("kit", "^0.1.0", Some("dev"))])),
                    part.clone(),
                    kit,
                ],
                "without a version",
            ),
            (
                [fine.clone(), package("part", &json!([]), "A part", &json!([])), Value::Null],
                "part needs `publish = true`",
            ),
            ([fine.clone(), package("part", &Value::Null, "", &json!([])), Value::Null], "no description"),
            ([fine, part, package("kit", &Value::Null, "A kit", &json!([]))], "kit needs `publish = false`"),
        ] {
            let packages: Vec<Value> = packages.into_iter().filter(|it| !it.is_null()).collect();
            let problems = check(&packages);
            assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected}: {problems:?}");
        }
    }
}
