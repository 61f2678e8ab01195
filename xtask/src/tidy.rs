//! The structure of the repository, checked: who depends on whom, how long files and functions are, what each file
//! says of itself.
//!
//! Exceptions stand in `xtask/exceptions.txt`, one `path[::function] lines` a line. The list may only shrink: an entry
//! that is larger than the truth, or not needed any more, is a problem too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 50;

/// Who may depend on whom. Everything else is an error. Decisions behind additions are in docs/decisions.
const ALLOWED: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("platform", &[]),
    ("rpc", &["platform"]),
    ("tls", &[]),
    ("apiui", &[]),
    ("git", &["platform"]),
    ("sandbox", &["git", "platform"]),
    ("process", &["sandbox", "platform"]),
    ("config", &["domain", "platform", "process"]),
    ("answer-text", &["domain"]),
    ("llm", &["answer-text", "domain", "rpc", "tls"]),
    ("local-model", &["answer-text", "domain", "platform"]),
    ("store", &["domain", "platform"]),
    ("store-postgres", &["domain", "store", "tls"]),
    ("link", &["domain", "platform", "store"]),
    ("undo", &["platform"]),
    ("setup", &["platform"]),
    ("tools", &["domain", "git", "platform", "process", "tls"]),
    ("mcp", &["domain", "platform", "process", "rpc", "tls"]),
    ("language-servers", &["domain", "platform", "process", "rpc"]),
    ("acp-client", &["domain", "process", "rpc"]),
    ("external-agents", &["acp-client", "config", "domain", "platform", "process", "tools"]),
    ("session", &["domain"]),
    ("replay", &["domain", "config", "engine", "session"]),
    ("import", &["config", "domain", "llm", "platform"]),
    ("plugins", &["config", "domain", "platform", "process"]),
    ("providers", &["config", "domain", "llm", "process"]),
    ("model-hub", &["config", "domain", "local-model", "platform", "providers"]),
    ("stats", &["domain", "terminal"]),
    ("telemetry", &["config", "domain", "llm"]),
    ("worker", &["config", "domain", "platform", "process", "store-postgres", "tools"]),
    ("engine", &["domain", "config", "platform", "session", "undo"]),
    ("proto-eca", &["domain", "platform", "rpc"]),
    ("proto-acp", &["domain", "platform", "rpc"]),
    ("proto-threads", &["domain", "rpc"]),
    ("proto-copilot", &["domain", "rpc", "apiui"]),
    ("terminal", &["domain", "platform"]),
    ("web", &["tls"]),
    ("interfaces", &["apiui", "domain", "platform", "proto-copilot", "studio", "tls", "tools"]),
    ("studio", &["domain", "process", "tools", "apiui", "web", "tls"]),
    ("remote", &["domain", "rpc", "tls"]),
    ("serve", &["domain", "remote", "rpc", "web"]),
    ("testkit", &["domain", "rpc"]),
    (
        "fuzz-targets",
        &[
            "domain",
            "apiui",
            "config",
            "llm",
            "local-model",
            "proto-acp",
            "proto-copilot",
            "proto-eca",
            "proto-threads",
            "rpc",
            "tools",
        ],
    ),
    ("xtask", &["llm"]),
];

/// Dependencies that only tests and benchmarks may have; `*` is any crate.
const ALLOWED_IN_TESTS: &[(&str, &str)] = &[
    ("*", "testkit"),
    ("sandbox", "process"),
    ("serve", "tls"),
    ("studio", "store"),
    ("engine", "link"),
    ("engine", "replay"),
    ("serve", "proto-acp"),
    ("serve", "proto-eca"),
];

/// Everything that is wrong, one line each.
pub fn problems() -> Vec<String> {
    let root = root();
    let mut problems = dependencies(&root);
    problems.extend(crate::budgets::problems(&root));
    problems.extend(crate::deny::problems(&root));
    problems.extend(crate::publishing::problems(&root));
    problems.extend(crate::workflows::problems(&root));
    problems.extend(sources(&root));
    problems.extend(crate::cited::problems(&root));
    problems.extend(crate::circles::problems(&root));
    problems.extend(crate::crossings::problems(&root));
    problems
}

pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

fn dependencies(root: &Path) -> Vec<String> {
    #[expect(clippy::disallowed_methods, reason = "a chore of the repository, not of the program")]
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output();
    let metadata = match output {
        Ok(output) if output.status.success() => {
            serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()
        }
        _ => return vec!["cargo metadata does not answer".to_owned()],
    };
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let ours: BTreeSet<&str> = packages.iter().filter_map(|package| folder(&package["name"])).collect();
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut problems = Vec::new();
    for package in &packages {
        let Some(name) = folder(&package["name"]).filter(|name| *name != "dragoman") else { continue };
        let Some(may) = allowed.get(name) else {
            problems.push(format!("{name} is not in the table of dependencies (xtask/src/tidy.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let Some(other) = folder(&dependency["name"]).filter(|other| ours.contains(other)) else {
                continue;
            };
            let in_tests = dependency["kind"].as_str() == Some("dev");
            if !(may.contains(&other) || in_tests && is_allowed_in_tests(name, other)) {
                problems.push(format!("{name} may not depend on {other}"));
            }
        }
    }
    problems
}

fn is_allowed_in_tests(name: &str, other: &str) -> bool {
    ALLOWED_IN_TESTS.iter().any(|(from, to)| (*from == "*" || *from == name) && *to == other)
}

/// A package's name without the project's prefix: the name of its folder.
fn folder(package: &Value) -> Option<&str> {
    let name = package.as_str()?;
    Some(name.strip_prefix("dragoman-").unwrap_or(name))
}

fn sources(root: &Path) -> Vec<String> {
    let mut exceptions = exceptions(root);
    let mut problems = Vec::new();
    let mut code = Vec::new();
    for file in rust_files(root) {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        if !text.starts_with("//!") {
            problems.push(format!("{name} does not open with what it owns (//!)"));
        }
        let lines: Vec<&str> = without_tests(&text);
        code.push((name.clone(), lines.iter().map(|line| (*line).to_owned()).collect()));
        measure(&mut problems, &mut exceptions, name.clone(), lines.len(), FILE_LINES);
        for (function, length) in functions(&lines) {
            measure(&mut problems, &mut exceptions, format!("{name}::{function}"), length, FUNCTION_LINES);
        }
    }
    problems.extend(crate::platform_code::problems(root, &code));
    problems.extend(crate::output_code::problems(&code));
    problems.extend(crate::two_products::problems(root, &code));
    problems.extend(crate::words::problems(&code));
    for (place, _) in exceptions {
        problems.push(format!("xtask/exceptions.txt names {place}, which needs no exception any more"));
    }
    problems
}

fn measure(
    problems: &mut Vec<String>,
    exceptions: &mut BTreeMap<String, usize>,
    place: String,
    lines: usize,
    limit: usize,
) {
    if lines <= limit {
        return;
    }
    match exceptions.remove(&place) {
        Some(granted) if granted == lines => {}
        Some(granted) if granted > lines => {
            problems.push(format!("{place} has shrunk to {lines} lines: lower its exception from {granted}"));
        }
        _ => problems.push(format!("{place} has {lines} lines; at most {limit}")),
    }
}

fn exceptions(root: &Path) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(root.join("xtask/exceptions.txt")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(place, lines)| Some((place.to_owned(), lines.parse().ok()?)))
        .collect()
}

/// Sources of the program: no tests, benches, examples or test kit.
fn rust_files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = ["crates", "interfaces", "xtask"].map(|folder| root.join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(
                    name.as_str(),
                    "tests" | "benches" | "examples" | "target" | "node_modules" | "fuzz"
                ) {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") && name != "build.rs" {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The lines before a trailing test module.
fn without_tests(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.iter().position(|line| *line == "#[cfg(test)]").unwrap_or(lines.len());
    lines[..end].to_vec()
}

/// Functions and their lengths. Formatted code closes a function at the indentation it was opened with.
fn functions(lines: &[&str]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indentation = &line[..line.len() - code.len()];
        let Some(name) = function_name(code) else { continue };
        let closing = format!("{indentation}}}");
        // A signature ends where its body begins, or with a semicolon in a trait.
        let signature_end = lines[at..].iter().find(|line| line.ends_with(['{', ';', '}']));
        if signature_end.is_none_or(|end| !end.ends_with('{')) {
            continue;
        }
        if let Some(length) = lines[at..].iter().position(|line| *line == closing) {
            found.push((name, length + 1));
        }
    }
    found
}

fn function_name(code: &str) -> Option<String> {
    let mut words = code.split_whitespace();
    for word in words.by_ref() {
        match word {
            "fn" => break,
            "async" | "const" | "unsafe" | "pub" | "extern" | "\"C\"" => {}
            word if word.starts_with("pub(") || word.ends_with(')') && word.len() < 12 => {}
            _ => return None,
        }
    }
    let name: String = words.next()?.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured() {
        let text = "pub async fn a(\n    x: u8,\n) {\n    b();\n}\n\ntrait T {\n    fn d(&self);\n    fn f(\n        &self,\n    ) -> u8;\n    fn e(&self) {\n    }\n}\n";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(functions(&lines), [("a".to_owned(), 5), ("e".to_owned(), 2)]);
    }
}
