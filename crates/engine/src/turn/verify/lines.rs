//! Whether a shell line checks a project: a test, a build, a lint or a run of it. Pure.
//!
//! Must not know projects. Invariant: a line that only looks at files or at git is no check.

/// Programs that check something whatever their arguments are.
const ALWAYS: &[&str] = &[
    "make",
    "gmake",
    "just",
    "ninja",
    "ctest",
    "meson",
    "bazel",
    "bazelisk",
    "buck2",
    "pytest",
    "py.test",
    "tox",
    "nox",
    "mypy",
    "pyright",
    "basedpyright",
    "ruff",
    "flake8",
    "pylint",
    "black",
    "tsc",
    "vue-tsc",
    "eslint",
    "biome",
    "oxlint",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "playwright",
    "cypress",
    "karma",
    "mvn",
    "mvnw",
    "gradle",
    "gradlew",
    "sbt",
    "rspec",
    "rake",
    "rubocop",
    "phpunit",
    "phpstan",
    "psalm",
    "pest",
    "shellcheck",
    "golangci-lint",
    "rustc",
    "gcc",
    "g++",
    "cc",
    "c++",
    "clang",
    "clang++",
    "javac",
    "ghc",
    "scalac",
    "kotlinc",
    "pre-commit",
    "act",
    "bats",
    "nextest",
    "staticcheck",
    "terraform",
    "tofu",
    "ansible-lint",
    "hadolint",
    "yamllint",
    "actionlint",
    "luacheck",
    "busted",
    "lein",
    "elm-test",
    "ginkgo",
    "markdownlint",
];

/// Programs with the words that make a check of them.
const WITH_WORD: &[(&str, &[&str])] = &[
    (
        "cargo",
        &["test", "t", "build", "b", "check", "c", "clippy", "run", "r", "nextest", "bench", "doc", "miri"],
    ),
    ("go", &["test", "build", "vet", "run"]),
    ("npm", &["test", "t", "run", "run-script", "start", "exec"]),
    ("pnpm", &["test", "t", "run", "start", "exec", "build", "lint", "typecheck", "check", "dlx"]),
    (
        "yarn",
        &[
            "test",
            "run",
            "start",
            "exec",
            "build",
            "lint",
            "typecheck",
            "check",
            "jest",
            "vitest",
            "tsc",
            "eslint",
        ],
    ),
    ("bun", &["test", "run", "build"]),
    ("deno", &["test", "check", "lint", "run", "task", "bench"]),
    ("dotnet", &["test", "build", "run", "format"]),
    ("swift", &["test", "build", "run"]),
    ("zig", &["build", "test", "run"]),
    ("mix", &["test", "compile", "credo", "dialyzer", "run"]),
    ("dune", &["test", "build", "runtest", "exec"]),
    ("cabal", &["test", "build", "run"]),
    ("stack", &["test", "build", "run"]),
    ("composer", &["test", "run", "run-script", "check"]),
    ("flutter", &["test", "analyze", "build", "run"]),
    ("dart", &["test", "analyze", "run", "compile"]),
    ("cmake", &["--build"]),
    ("rails", &["test", "runner"]),
    ("nix", &["build", "flake", "run"]),
    ("docker", &["build", "compose"]),
    ("xcodebuild", &["test", "build"]),
    ("clojure", &["-X:test", "-M:test"]),
    ("clj", &["-X:test", "-M:test"]),
    ("task", &["test", "check", "lint", "build"]),
    ("hatch", &["test", "run", "fmt"]),
    ("git", &["bisect"]),
];

/// Programs that run the one that follows them.
const RUNNERS: &[(&str, &[&str])] = &[
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("rye", &["run"]),
    ("bundle", &["exec"]),
    ("npx", &[]),
    ("bunx", &[]),
    ("pnpx", &[]),
    ("time", &[]),
    ("env", &[]),
    ("nice", &[]),
    ("sudo", &[]),
    ("command", &[]),
    ("exec", &[]),
    ("xvfb-run", &[]),
];

/// Interpreters: they check when they run a file or a module of the project.
const INTERPRETERS: &[&str] = &[
    "python", "python3", "node", "ruby", "perl", "php", "bash", "sh", "zsh", "lua", "java", "tsx", "ts-node",
    "Rscript", "julia",
];

/// Whether any command of a line is a check.
pub(super) fn is_check(line: &str) -> bool {
    commands(line).iter().any(|words| is_checking_command(words))
}

/// The commands of a line as words. Quotes are not understood: a part that is no command reads like no check.
fn commands(line: &str) -> Vec<Vec<&str>> {
    let parts = line.split(['\n', ';', '|', '&', '(', ')', '{', '}', '`']);
    let words = parts.map(|part| part.split_whitespace().collect::<Vec<_>>());
    words.filter(|words| !words.is_empty()).collect()
}

fn is_checking_command(words: &[&str]) -> bool {
    let is_assignment = |word: &&str| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    let at = words.iter().position(|word| !is_assignment(word)).unwrap_or(words.len());
    let Some((program, arguments)) = words[at..].split_first() else { return false };
    let is_path = program.contains('/');
    let name = program.rsplit('/').next().unwrap_or(program);
    if name == "timeout" {
        let rest = arguments.iter().position(|word| word.starts_with(|it: char| it.is_ascii_digit()));
        return rest.is_some_and(|at| is_checking_command(&arguments[at + 1..]));
    }
    if let Some((_, needed)) = RUNNERS.iter().find(|(known, _)| *known == name) {
        let rest = match needed.is_empty() {
            true => arguments,
            false if arguments.first().is_some_and(|word| needed.contains(word)) => &arguments[1..],
            false => return false,
        };
        let rest: Vec<&str> = rest.iter().copied().skip_while(|word| word.starts_with('-')).collect();
        return is_checking_command(&rest);
    }
    if ALWAYS.contains(&name) {
        return true;
    }
    if let Some((_, known)) = WITH_WORD.iter().find(|(known, _)| *known == name) {
        return arguments.iter().take(4).any(|word| known.contains(word));
    }
    if INTERPRETERS.contains(&name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.')) {
        return arguments
            .iter()
            .any(|word| *word == "-m" || *word == "-n" || *word == "--test" || is_file(word));
    }
    // A program of the project itself.
    is_path && !program.starts_with('/') && !program.starts_with('~')
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
}

/// An argument that names a script.
fn is_file(word: &str) -> bool {
    !word.starts_with('-') && !word.starts_with(['"', '\'']) && word.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_builds_lints_and_runs_are_checks() {
        for line in [
            "make test",
            "cargo test -p shop",
            "cd shop && cargo +nightly clippy --all",
            "RUST_LOG=debug cargo run -- --help",
            "timeout 60 npm test",
            "npx vitest run",
            "uv run pytest -q",
            "python -m unittest",
            "python3.12 app.py",
            "./run-tests.sh",
            "bash scripts/check.sh",
            "go vet ./... | tail -3",
            "(cd web; yarn lint)",
            "bundle exec rspec",
            "node index.js",
            "target/debug/shop --version",
            "tsc --noEmit",
        ] {
            assert!(is_check(line), "{line}");
        }
    }

    #[test]
    fn looking_around_is_no_check() {
        for line in [
            "ls -la",
            "git status",
            "git commit -am 'make test'",
            "cat Makefile",
            "grep -rn pytest .",
            "cargo add serde",
            "npm install",
            "go get example.com/x",
            "sed -i s/a/b/ src/lib.rs",
            "python -c 'print(1)'",
            "/bin/ls",
            "echo done",
            "",
            "A=1",
            "timeout 5",
        ] {
            assert!(!is_check(line), "{line}");
        }
    }
}
