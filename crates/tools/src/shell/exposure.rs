//! How a command could send something to other machines, by its name and subcommand.
//!
//! Invariant: a program that is on no list counts as unknown code.

use domain::tool::Exposure;

use super::{git_words, keys};

/// Work on the files that they are given, run no code of the project and use no network.
#[rustfmt::skip]
const LOCAL: &[&str] = &[
    "base64", "bg", "black", "cd", "chgrp", "chmod", "chown", "clang-format", "cp", "csplit", "cut", "diff", "disown",
    "echo", "false", "fg", "fmt", "gofmt", "gunzip", "gzip", "install", "isort", "jobs", "jq", "kill", "ln", "md5sum",
    "mkdir", "mkfifo", "mktemp", "mv", "od", "paste", "pkill", "popd", "printf", "pushd", "rm", "rmdir", "ruff",
    "rustfmt", "sed", "sha256sum", "shfmt", "shred", "sleep", "sort", "split", "sync", "tee", "test", "touch", "tr",
    "true", "truncate", "uniq", "unlink", "wait", "wc", "xxd", "xz", "yes", "zip", "zstd", ":", "[",
];

/// Build, test or check the project: its own code runs.
#[rustfmt::skip]
const PROJECT: &[&str] = &[
    "cmake", "ctest", "cypress", "dune", "eslint", "gmake", "gradle", "gradlew", "jest", "just", "lein", "make", "meson",
    "mocha", "mvn", "mypy", "ninja", "nox", "phpunit", "prettier", "pylint", "pyright", "pytest", "rake", "rspec",
    "rubocop", "sbt", "task", "tox", "tsc", "vite", "vitest", "webpack",
];

/// Talk to other machines.
#[rustfmt::skip]
const NETWORK: &[&str] = &[
    "apk", "apt", "apt-get", "aria2c", "aws", "axel", "az", "brew", "bundle", "composer", "conda", "curl", "dig", "dnf",
    "docker", "ftp", "gcloud", "gem", "gh", "glab", "gsutil", "helm", "host", "http", "httpie", "https", "kubectl",
    "lftp", "lynx", "mail", "mosh", "nc", "ncat", "netcat", "nmap", "nslookup", "open", "openssl", "pacman", "ping",
    "pip", "pip3", "pipx", "podman", "poetry", "rclone", "rsync", "s3cmd", "scp", "sendmail", "sftp", "skopeo", "socat",
    "ssh", "telnet", "terraform", "traceroute", "twine", "w3m", "wget", "whois", "xdg-open", "yum",
];

/// Package managers, and the subcommands of each that run the project's own code.
#[rustfmt::skip]
const MANAGERS: &[(&str, &[&str])] = &[
    ("bun", &["run", "test"]),
    ("cargo", &["bench", "build", "check", "clean", "clippy", "doc", "fmt", "metadata", "nextest", "run", "test", "tree"]),
    ("deno", &["check", "fmt", "lint", "task", "test"]),
    ("dotnet", &["build", "format", "run", "test"]),
    ("go", &["build", "fmt", "run", "test", "vet"]),
    ("mix", &["compile", "format", "test"]),
    ("npm", &["run", "run-script", "start", "t", "test"]),
    ("pnpm", &["run", "start", "test"]),
    ("swift", &["build", "run", "test"]),
    ("uv", &["run"]),
    ("yarn", &["run", "start", "test"]),
    ("zig", &["build", "fmt", "test"]),
];

/// Subcommands of git that talk to other machines.
const GIT_NETWORK: &[&str] = &[
    "archive",
    "clone",
    "fetch",
    "fetch-pack",
    "lfs",
    "ls-remote",
    "pull",
    "push",
    "remote",
    "send-pack",
    "submodule",
];

/// Subcommands of git that change files to what a file or a text says.
const GIT_UNKNOWN: &[&str] = &["am", "apply", "bisect", "config", "filter-branch", "hook", "send-email"];

pub(super) fn of(name: &str, arguments: &[&str]) -> Exposure {
    let sub = arguments.iter().copied().find(|word| !word.starts_with(['-', '+'])).unwrap_or_default();
    if name == "git" {
        let sub = git_words::split(arguments).1.first().copied().unwrap_or_default();
        return match sub {
            sub if GIT_NETWORK.contains(&sub) => Exposure::Network,
            sub if GIT_UNKNOWN.contains(&sub) => Exposure::Unknown,
            _ => Exposure::Local,
        };
    }
    // A line may have thousands of commands with thousands of words; the first ones say what a command does.
    let words: Vec<&str> = std::iter::once(name).chain(arguments.iter().copied().take(64)).collect();
    if crate::publishing::publishes(&words) {
        return Exposure::Network;
    }
    if let Some((_, project)) = MANAGERS.iter().find(|(manager, _)| *manager == name) {
        return if project.contains(&sub) { Exposure::RunsProject } else { Exposure::Network };
    }
    if keys::is_interpreter(name) && matches!(arguments, ["-m", "pytest" | "unittest", ..]) {
        return Exposure::RunsProject;
    }
    if LOCAL.contains(&name) {
        Exposure::Local
    } else if PROJECT.contains(&name) {
        Exposure::RunsProject
    } else if NETWORK.contains(&name) {
        Exposure::Network
    } else {
        Exposure::Unknown
    }
}
