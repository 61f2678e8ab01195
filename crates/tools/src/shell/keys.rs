//! The names of commands for rules, and what an approval is remembered by.
//!
//! Invariant: a remembered key covers another command only where that one does the same kind of thing to the same kind
//! of target; where that is not known, the key is the whole command.

/// Programs whose first word says what they do.
const WITH_SUBCOMMAND: &[&str] = &[
    "apt",
    "apt-get",
    "aws",
    "az",
    "brew",
    "bun",
    "bundle",
    "bunx",
    "cabal",
    "cargo",
    "cmake",
    "composer",
    "conda",
    "dart",
    "deno",
    "dnf",
    "docker",
    "dotnet",
    "dune",
    "flutter",
    "gcloud",
    "gem",
    "gh",
    "git",
    "glab",
    "gmake",
    "go",
    "gradle",
    "hatch",
    "helm",
    "journalctl",
    "just",
    "kubectl",
    "lein",
    "lerna",
    "make",
    "meson",
    "mix",
    "mvn",
    "nix",
    "nox",
    "npm",
    "npx",
    "nx",
    "opam",
    "pacman",
    "pdm",
    "pip",
    "pip3",
    "pipx",
    "pnpm",
    "podman",
    "poetry",
    "rails",
    "rake",
    "rustup",
    "sbt",
    "stack",
    "swift",
    "systemctl",
    "task",
    "terraform",
    "tox",
    "turbo",
    "uv",
    "uvx",
    "yarn",
    "yum",
    "zig",
];

/// Subcommands that have subcommands of their own; an empty list means all of them.
const WITH_TWO: &[(&str, &[&str])] = &[
    ("aws", &[]),
    ("az", &[]),
    ("bun", &["run", "x"]),
    ("bundle", &["exec"]),
    ("deno", &["run", "task"]),
    ("docker", &["compose", "container", "image", "network", "volume", "run", "exec"]),
    ("dotnet", &["run", "tool"]),
    ("gcloud", &[]),
    ("gh", &[]),
    (
        "git",
        &["bisect", "bundle", "config", "lfs", "notes", "reflog", "remote", "stash", "submodule", "worktree"],
    ),
    ("glab", &[]),
    ("go", &["mod", "run", "tool", "work"]),
    ("helm", &["repo"]),
    ("kubectl", &["config", "rollout"]),
    ("nix", &["develop", "flake", "run", "shell"]),
    ("npm", &["exec", "run", "run-script"]),
    ("pdm", &["run"]),
    ("pnpm", &["dlx", "exec", "run"]),
    ("podman", &["compose", "container", "image", "network", "volume", "run", "exec"]),
    ("poetry", &["run"]),
    ("rustup", &["component", "default", "override", "target", "toolchain"]),
    ("uv", &["pip", "run", "tool"]),
    ("yarn", &["dlx", "exec", "run"]),
];

/// Programs that run a file of code.
pub(super) const INTERPRETERS: &[&str] = &[
    "Rscript",
    "ash",
    "bash",
    "csh",
    "dash",
    "fish",
    "julia",
    "ksh",
    "lua",
    "luajit",
    "mksh",
    "node",
    "nodejs",
    "osascript",
    "perl",
    "php",
    "powershell",
    "pwsh",
    "python",
    "python2",
    "python3",
    "ruby",
    "sh",
    "tclsh",
    "tcsh",
    "zsh",
];

/// Where the system's own programs are.
const SYSTEM: &[&str] =
    &["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/"];

/// The program's name: its path is dropped where that is one of the system's.
pub(super) fn name(written: &str) -> &str {
    for folder in SYSTEM {
        if let Some(rest) = written.strip_prefix(folder)
            && !rest.contains('/')
        {
            return rest;
        }
    }
    written
}

/// Builds, tests and checks: they run the project's own code whatever their other arguments are.
const TASKS: &[(&str, &[&str])] = &[
    ("bun", &["test"]),
    ("cargo", &["bench", "build", "check", "clippy", "doc", "fmt", "nextest", "test"]),
    ("dotnet", &["build", "test"]),
    ("go", &["build", "fmt", "test", "vet"]),
    ("gradle", &["assemble", "build", "check", "test"]),
    ("mix", &["compile", "format", "test"]),
    ("mvn", &["compile", "package", "test", "verify"]),
    ("npm", &["test"]),
    ("pnpm", &["test"]),
    ("swift", &["build", "test"]),
    ("yarn", &["test"]),
    ("zig", &["build", "test"]),
];

/// Programs that check or format the project, or make an empty file or folder, with any arguments. A path outside the
/// workspace is asked all the same.
const CHECKERS: &[&str] = &[
    "black", "eslint", "jest", "mkdir", "mypy", "prettier", "pytest", "ruff", "rustfmt", "touch", "tsc",
    "vitest",
];

/// Options that do not change what `git add` and `git commit` mean.
const GIT_PLAIN: &[(&str, &[&str])] = &[
    ("add", &["-A", "-u", "-v", "--all"]),
    ("commit", &["-a", "-am", "-m", "-q", "-v", "--all", "--message"]),
];

/// What is remembered of a command that may change something: `cargo test …` covers other arguments, a command
/// without `…` covers only itself.
pub(super) fn remembered_key(words: &[&str]) -> String {
    let Some((written, arguments)) = words.split_first() else { return String::new() };
    let program = name(written);
    let covers = match (program, arguments) {
        ("git", [sub, rest @ ..]) => GIT_PLAIN.iter().any(|(plain, options)| {
            plain == sub && rest.iter().all(|word| !word.starts_with('-') || options.contains(word))
        }),
        ("python" | "python3", ["-m", "pytest" | "unittest", ..]) => {
            return format!("{program} -m {} …", arguments[1]);
        }
        ("npm" | "pnpm" | "yarn" | "bun", ["run", script, ..]) if !script.starts_with('-') => {
            return format!("{program} run {script} …");
        }
        _ => {
            let sub = arguments.iter().find(|word| is_subcommand(word));
            CHECKERS.contains(&program)
                || TASKS
                    .iter()
                    .any(|(task, subs)| *task == program && sub.is_some_and(|sub| subs.contains(sub)))
        }
    };
    if covers {
        return format!("{} …", name_with_subcommand(words));
    }
    let mut quoted = vec![quote(program)];
    quoted.extend(arguments.iter().map(|word| quote(word)));
    quoted.join(" ")
}

/// A word as it can be typed, so that two different commands never have the same key.
fn quote(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-./:=@%+,".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The program and its subcommand, where it has some.
pub(super) fn name_with_subcommand(words: &[&str]) -> String {
    let Some((written, arguments)) = words.split_first() else { return String::new() };
    let name = name(written);
    let plain: Vec<&str> = arguments.iter().copied().filter(|word| is_subcommand(word)).collect();
    if name == "git" {
        return super::git::name_with_subcommand(arguments);
    }
    if is_interpreter(name) {
        return match arguments {
            ["-m", module, ..] => format!("{name} -m {module}"),
            [first, ..] => format!("{name} {first}"),
            [] => name.to_owned(),
        };
    }
    let Some(sub) = plain.first().filter(|_| WITH_SUBCOMMAND.contains(&name)) else {
        let writes_in_place = name == "sed" && arguments.iter().any(|word| word.starts_with("-i"));
        return if writes_in_place { "sed -i".to_owned() } else { name.to_owned() };
    };
    let two = WITH_TWO.iter().any(|(with, subs)| *with == name && (subs.is_empty() || subs.contains(sub)));
    match plain.get(1).filter(|_| two) {
        Some(second) => format!("{name} {sub} {second}"),
        None => format!("{name} {sub}"),
    }
}

/// `python3.12` is a python too.
pub(super) fn is_interpreter(name: &str) -> bool {
    let bare = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    INTERPRETERS.contains(&name) || (bare != name && INTERPRETERS.contains(&bare))
}

/// Not an option, not a toolchain (`cargo +nightly`).
fn is_subcommand(word: &str) -> bool {
    !word.starts_with(['-', '+']) && !word.contains('=')
}
