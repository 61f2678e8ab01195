//! What may be inside the program: licenses, sources and packages in several versions, by deny.toml.
//!
//! cargo-deny reads the same file in the release workflow, where it also looks for advisories. Invariant: nothing is
//! fetched here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::packages::{self, Package};

/// Everything that deny.toml forbids, one line each.
pub fn problems(root: &Path) -> Vec<String> {
    let packages = packages::host(root).and_then(|host| packages::of_program(root, &host));
    match packages {
        Ok(packages) => check(&Rules::read(root), &packages),
        Err(error) => vec![error],
    }
}

#[derive(Debug, Default)]
struct Rules {
    allowed: BTreeSet<String>,
    /// Licenses that one package alone may have.
    exceptions: BTreeSet<(String, String)>,
    /// Packages that may be there in several versions.
    skipped: BTreeSet<String>,
}

impl Rules {
    fn read(root: &Path) -> Self {
        Self::parse(&std::fs::read_to_string(root.join("deny.toml")).unwrap_or_default())
    }

    /// Reads the part of TOML that the file uses: a list has one entry a line.
    fn parse(text: &str) -> Self {
        let mut rules = Self::default();
        let (mut section, mut key) = ("", "");
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name;
            } else if let Some(name) = line.strip_suffix(" = [") {
                key = name;
            }
            let strings: Vec<String> = line.split('"').skip(1).step_by(2).map(str::to_owned).collect();
            match (section, key, strings.as_slice()) {
                ("licenses", "allow", [license]) => drop(rules.allowed.insert(license.clone())),
                ("licenses", "exceptions", [package, license]) => {
                    rules.exceptions.insert((package.clone(), license.clone()));
                }
                ("bans", "skip", [package]) => drop(rules.skipped.insert(package.clone())),
                _ => {}
            }
        }
        rules
    }
}

fn check(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let may_use = |license: &str| {
            rules.allowed.contains(license)
                || rules.exceptions.contains(&(package.name.clone(), license.to_owned()))
        };
        if !is_satisfied(&package.license, &may_use) {
            problems.push(format!(
                "{}: deny.toml does not allow its license, {}",
                package.id(),
                package.license
            ));
        }
        let is_public =
            |source: &String| source.starts_with("registry+") && source.ends_with("/crates.io-index");
        if !package.source.as_ref().is_none_or(is_public) {
            problems.push(format!("{}: its source is not the public registry", package.id()));
        }
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let several: BTreeMap<&str, Vec<&str>> = versions.into_iter().filter(|(_, it)| it.len() > 1).collect();
    for (name, versions) in &several {
        if !rules.skipped.contains(*name) {
            problems.push(format!(
                "{name} is there in several versions ({}): unite them, or add `{{ crate = \"{name}\" }},` to deny.toml",
                versions.join(", ")
            ));
        }
    }
    problems
}

/// Whether an SPDX expression can be fulfilled: `OR` needs one side, `AND` both.
fn is_satisfied(expression: &str, may_use: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut position = 0;
    let satisfied = any(&words, &mut position, may_use);
    satisfied && position == words.len()
}

fn any(words: &[&str], position: &mut usize, may_use: &dyn Fn(&str) -> bool) -> bool {
    let mut satisfied = all(words, position, may_use);
    while words.get(*position) == Some(&"OR") {
        *position += 1;
        satisfied |= all(words, position, may_use);
    }
    satisfied
}

fn all(words: &[&str], position: &mut usize, may_use: &dyn Fn(&str) -> bool) -> bool {
    let mut satisfied = one(words, position, may_use);
    while words.get(*position) == Some(&"AND") {
        *position += 1;
        satisfied &= one(words, position, may_use);
    }
    satisfied
}

fn one(words: &[&str], position: &mut usize, may_use: &dyn Fn(&str) -> bool) -> bool {
    let Some(word) = words.get(*position) else { return false };
    *position += 1;
    if *word == "(" {
        let satisfied = any(words, position, may_use);
        *position += 1;
        return satisfied && words.get(*position - 1) == Some(&")");
    }
    if words.get(*position) == Some(&"WITH") {
        let name = format!("{word} WITH {}", words.get(*position + 1).copied().unwrap_or_default());
        *position += 2;
        return may_use(&name);
    }
    may_use(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_as_spdx_means_them() {
        let may_use = |license: &str| ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].contains(&license);
        for (expression, satisfied) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(MIT OR GPL-3.0) AND ISC", true),
            ("MIT OR GPL-3.0 AND BSD", true),
            ("Apache-2.0 WITH LLVM-exception OR BSL-1.0", true),
            ("Apache-2.0", false),
            ("", false),
            ("(MIT", false),
            ("MIT ISC", false),
        ] {
            assert_eq!(is_satisfied(expression, &may_use), satisfied, "{expression}");
        }
    }

    #[test]
    fn each_rule_can_refuse() {
        let rules = Rules::parse(
            "[licenses]\nallow = [\n  \"MIT\",\n]\nexceptions = [\n  { crate = \"roots\", allow = [\"CDLA\"] },\n]\n\
             [bans]\nskip = [\n  { crate = \"twice\" },\n]\n",
        );
        let package = |name: &str, version: &str, license: &str, source: &str| Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: license.to_owned(),
            authors: Vec::new(),
            source: Some(source.to_owned()),
            folder: Default::default(),
            checksum: None,
            dependencies: BTreeSet::new(),
        };
        let good = "registry+https://host/crates.io-index";
        for (packages, part) in [
            (vec![package("a", "1.0.0", "MIT", good), package("roots", "1.0.0", "CDLA", good)], None),
            (vec![package("twice", "1.0.0", "MIT", good), package("twice", "2.0.0", "MIT", good)], None),
            (vec![package("a", "1.0.0", "CDLA", good)], Some("license")),
            (vec![package("a", "1.0.0", "MIT", "git+https://host/crates.io-index")], Some("source")),
            (
                vec![package("b", "1.0.0", "MIT", good), package("b", "2.0.0", "MIT", good)],
                Some("several versions"),
            ),
        ] {
            let found = check(&rules, &packages);
            assert_eq!(found.len(), usize::from(part.is_some()), "{found:?}");
            assert!(part.is_none_or(|part| found[0].contains(part)), "{found:?}");
        }
    }
}
