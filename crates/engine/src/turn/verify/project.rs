//! The checks that a project has by itself, as commands: its tests first.
//!
//! Must not run anything. Invariant: files are read without leaving their folder; a project without a known check has none.

use std::path::Path;

use platform::project_files;
use serde_json::Value;

/// Larger files are not read.
const FILE_LIMIT: u64 = 256 << 10;

/// A file whose presence alone means that a command checks the project.
const BY_FILE: &[(&str, &str)] = &[
    ("Cargo.toml", "cargo test"),
    ("go.mod", "go test ./..."),
    ("tox.ini", "tox"),
    ("noxfile.py", "nox"),
    ("pytest.ini", "pytest"),
    ("conftest.py", "pytest"),
    ("pom.xml", "mvn test"),
    ("gradlew", "./gradlew test"),
    ("build.gradle", "gradle test"),
    ("build.gradle.kts", "gradle test"),
    ("build.sbt", "sbt test"),
    ("mix.exs", "mix test"),
    ("Package.swift", "swift test"),
    ("build.zig", "zig build test"),
    ("dune-project", "dune test"),
    ("stack.yaml", "stack test"),
    ("meson.build", "meson test"),
    ("deno.json", "deno test"),
    ("pubspec.yaml", "dart test"),
    ("Rakefile", "rake test"),
    (".rspec", "rspec"),
    ("phpunit.xml", "phpunit"),
    ("phpunit.xml.dist", "phpunit"),
    ("CMakeLists.txt", "cmake --build build"),
    ("tsconfig.json", "npx tsc --noEmit"),
];

/// Targets of make and just, and scripts of package.json, that check something.
const NAMES: &[&str] = &["test", "tests", "check", "lint", "typecheck", "build"];

/// The checks of a folder, the most telling ones first.
pub(super) fn checks_in(folder: &Path) -> Vec<String> {
    let mut checks = Vec::new();
    let text = |name: &str| {
        let bytes = project_files::read_beneath(folder, Path::new(name), FILE_LIMIT).ok()?;
        String::from_utf8(bytes).ok()
    };
    for (name, program) in [
        ("Makefile", "make"),
        ("makefile", "make"),
        ("GNUmakefile", "make"),
        ("justfile", "just"),
        ("Justfile", "just"),
    ] {
        if let Some(text) = text(name) {
            checks.extend(targets(&text).map(|target| format!("{program} {target}")));
        }
    }
    if let Some(package) = text("package.json") {
        checks.extend(scripts(&package, manager(folder)));
    }
    let is_there = |name: &str| folder.join(name).is_file();
    checks.extend(BY_FILE.iter().filter(|(name, _)| is_there(name)).map(|(_, check)| (*check).to_owned()));
    if let Some(project) = text("pyproject.toml").or_else(|| text("setup.cfg"))
        && (project.contains("pytest") || folder.join("tests").is_dir())
    {
        checks.push("pytest".to_owned());
    }
    if let Some(composer) = text("composer.json")
        && serde_json::from_str::<Value>(&composer).is_ok_and(|value| value["scripts"]["test"].is_string())
    {
        checks.push("composer test".to_owned());
    }
    let mut known = std::collections::HashSet::new();
    checks.retain(|check| known.insert(check.clone()));
    checks
}

/// The targets that check something, `test` before `build`.
fn targets(makefile: &str) -> impl Iterator<Item = &'static str> {
    let defines = |name: &str| {
        makefile.lines().any(|line| {
            let rest = line.strip_prefix(name).map(str::trim_start);
            rest.is_some_and(|rest| rest.starts_with(':') && !rest.starts_with(":="))
        })
    };
    NAMES.iter().copied().filter(move |name| defines(name)).collect::<Vec<_>>().into_iter()
}

/// The scripts of a package.json that check something.
fn scripts(package: &str, manager: &str) -> Vec<String> {
    let Ok(package) = serde_json::from_str::<Value>(package) else { return Vec::new() };
    let is_there = |name: &&&str| {
        // What `npm init` writes says that there is none.
        package["scripts"][**name].as_str().is_some_and(|script| !script.contains("no test specified"))
    };
    let command = |name: &&str| match *name {
        "test" => format!("{manager} test"),
        name => format!("{manager} run {name}"),
    };
    NAMES.iter().filter(is_there).map(command).collect()
}

fn manager(folder: &Path) -> &'static str {
    let locks =
        [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];
    locks.iter().find(|(file, _)| folder.join(file).is_file()).map_or("npm", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_project_has_its_check() {
        for (file, text, wanted) in [
            ("Makefile", "all: x\n\ntest: build\n\tcargo test\n", vec!["make test"]),
            ("Makefile", "test := 1\nclean:\n", vec![]),
            ("Cargo.toml", "[package]\n", vec!["cargo test"]),
            (
                "package.json",
                r#"{"scripts": {"test": "vitest", "lint": "eslint ."}}"#,
                vec!["npm test", "npm run lint"],
            ),
            (
                "package.json",
                r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
                vec![],
            ),
            ("package.json", "not json", vec![]),
            ("pyproject.toml", "[tool.pytest.ini_options]\n", vec!["pytest"]),
            ("pyproject.toml", "[project]\n", vec![]),
            ("go.mod", "module x\n", vec!["go test ./..."]),
            ("README.md", "# x\n", vec![]),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join(file), text).expect("a file");
            assert_eq!(checks_in(folder.path()), wanted, "{file} {text}");
        }
    }
}
