//! What an approval is remembered by: the command, and its subcommand where it has some.

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
pub const INTERPRETERS: &[&str] = &[
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
pub fn name(written: &str) -> &str {
    for folder in SYSTEM {
        if let Some(rest) = written.strip_prefix(folder)
            && !rest.contains('/')
        {
            return rest;
        }
    }
    written
}

pub fn key(words: &[&str]) -> String {
    let Some((written, arguments)) = words.split_first() else { return String::new() };
    let name = name(written);
    let plain: Vec<&str> = arguments.iter().copied().filter(|word| is_subcommand(word)).collect();
    if name == "git" {
        return super::git::key(arguments);
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
pub fn is_interpreter(name: &str) -> bool {
    let bare = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    INTERPRETERS.contains(&name) || (bare != name && INTERPRETERS.contains(&bare))
}

/// Not an option, not a toolchain (`cargo +nightly`).
fn is_subcommand(word: &str) -> bool {
    !word.starts_with(['-', '+']) && !word.contains('=')
}
