//! git: its subcommand behind its own options, and the options that run or write something.

use super::git_words::{asks_for_signatures, split};
use super::risky;

/// Options before the subcommand that only look.
const PLAIN: &[&str] =
    &["--literal-pathspecs", "--no-optional-locks", "--no-pager", "--no-replace-objects", "--version"];

/// Subcommands that run programs by themselves or change what git runs later.
const ALWAYS: &[&str] = &[
    "config",
    "credential",
    "credential-cache",
    "credential-store",
    "daemon",
    "difftool",
    "filter-branch",
    "for-each-repo",
    "fsmonitor--daemon",
    "gui",
    "help",
    "hook",
    "instaweb",
    "maintenance",
    "mergetool",
    "receive-pack",
    "remote-ext",
    "remote-fd",
    "send-email",
    "shell",
    "upload-archive",
    "upload-pack",
    "web--browse",
];

/// Subcommands that only look, whatever their options and words are.
const READERS: &[&str] = &[
    "blame",
    "cat-file",
    "count-objects",
    "describe",
    "diff",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
];

/// Subcommands of subcommands that only look.
const READERS_OF_TWO: &[(&str, &str)] =
    &[("reflog", "show"), ("stash", "list"), ("stash", "show"), ("worktree", "list"), ("remote", "get-url")];

/// The command only looks, so nothing of the repository needs to run for it.
pub(super) fn inspects(arguments: &[&str]) -> bool {
    match split(arguments).1 {
        [sub, second, ..] if READERS_OF_TWO.contains(&(sub, second)) => true,
        [sub, ..] if READERS.contains(sub) => true,
        _ => super::read_only::is_read_only("git", arguments),
    }
}

/// The command shows what files hold.
pub(super) fn shows_contents(arguments: &[&str]) -> bool {
    const SHOW: &[&str] = &["blame", "cat-file", "diff", "diff-tree", "grep", "log", "show", "stash"];
    split(arguments).1.first().is_some_and(|sub| SHOW.contains(sub))
}

/// The command shows contents that the repository keeps. A log shows them only with its differences.
pub(super) fn shows_stored(arguments: &[&str]) -> bool {
    const SHOW: &[&str] = &[
        "archive",
        "blame",
        "bundle",
        "cat-file",
        "checkout",
        "diff",
        "diff-index",
        "diff-tree",
        "fast-export",
        "format-patch",
        "grep",
        "range-diff",
        "restore",
        "show",
        "stash",
        "worktree",
    ];
    let rest = split(arguments).1;
    let is_patch = |word: &&str| {
        ["-p", "-u", "-c", "--cc", "-m"].contains(word)
            || ["--patch", "-U", "-L", "--unified", "--word-diff", "--color-words", "--full-diff", "--binary"]
                .iter()
                .any(|start| word.starts_with(start))
    };
    match rest {
        ["log" | "whatchanged" | "reflog", words @ ..] => {
            rest[0] == "whatchanged" || words.iter().any(is_patch)
        }
        [sub, ..] => SHOW.contains(sub),
        [] => false,
    }
}

/// Options that keep the command from running programs of the repository and from entering submodules, and the
/// number of the argument behind which they stand.
pub(super) fn safe_options(arguments: &[&str]) -> Option<(usize, &'static str)> {
    const DIFF: &str = " --no-ext-diff --no-textconv --ignore-submodules=all";
    let (before, rest) = split(arguments);
    match rest {
        ["stash", "show" | "list", ..] | ["reflog", "show", ..] => Some((before.len() + 1, DIFF)),
        ["diff" | "diff-tree" | "log" | "show", ..] => Some((before.len(), DIFF)),
        ["status", ..] => Some((before.len(), " --ignore-submodules=all")),
        ["blame" | "grep", ..] => Some((before.len(), " --no-textconv")),
        _ => None,
    }
}

pub(super) fn name_with_subcommand(arguments: &[&str]) -> String {
    let Some((sub, rest)) = split(arguments).1.split_first() else { return "git".to_owned() };
    const WITH_TWO: &[&str] =
        &["bisect", "bundle", "config", "lfs", "notes", "reflog", "remote", "stash", "submodule", "worktree"];
    match rest.iter().find(|word| !word.starts_with('-')).filter(|_| WITH_TWO.contains(sub)) {
        Some(second) => format!("git {sub} {second}"),
        None => format!("git {sub}"),
    }
}

pub(super) fn reasons(arguments: &[&str]) -> Vec<String> {
    let mut reasons = Vec::new();
    let (before, rest) = split(arguments);
    let mut before = before.iter();
    while let Some(option) = before.next() {
        // The folder is looked at as a path of the line.
        if *option == "-C" {
            before.next();
        } else if !PLAIN.contains(option) {
            reasons.push(format!("`git {option}` changes what git runs or where"));
        }
    }
    let Some((sub, rest)) = rest.split_first() else { return reasons };
    let reads_config = *sub == "config" && super::read_only::is_read_only("git", arguments);
    if ALWAYS.contains(sub) && !reads_config {
        reasons.push(format!("`git {sub}` can run programs or set what git runs"));
    }
    if READERS.contains(sub) && !super::read_only::is_read_only("git", arguments) {
        reasons.push(format!("`git {sub}` has an option that is not known here"));
    }
    let has = |option: &str| rest.iter().any(|word| word.starts_with(option));
    match (*sub, rest) {
        ("bisect", ["run", ..]) | ("submodule", ["foreach", ..]) => {
            reasons.push(format!("`git {sub} {}` runs commands", rest[0]));
        }
        ("rebase", _) if rest.iter().any(|word| risky::is_short(word, &['x', 'i'])) => {
            reasons.push("`git rebase` can run commands".to_owned());
        }
        ("grep", _) if has("-O") => {
            reasons.push("`git grep -O` runs a program".to_owned());
        }
        ("format-patch" | "archive" | "bundle" | "fast-export", _) if has("-o") => {
            reasons.push(format!("`git {sub} -o` writes files"));
        }
        ("clone", _) if rest.iter().any(|word| risky::is_short(word, &['c', 'u'])) => {
            reasons.push("`git clone` has an option that runs or sets something".to_owned());
        }
        ("rev-parse", _) if rest.contains(&"--parseopt") || rest.contains(&"--sq-quote") => {
            reasons.push("`git rev-parse` reads a script".to_owned());
        }
        _ => {}
    }
    if let Some(option) = rest.iter().find(|word| risky::is_risky("git", word) || is_interactive(word)) {
        reasons.push(format!("`git {sub} {option}` can run or write something"));
    }
    if asks_for_signatures(rest) || rest.iter().any(|word| word.contains("::")) {
        reasons.push("A format with signatures, or an address with `::`, makes git run a program".to_owned());
    }
    reasons
}

/// Opens an editor or a dialogue, which nobody can answer, or sets what git runs. git takes options shortened.
fn is_interactive(word: &str) -> bool {
    const OPTIONS: &[&str] =
        &["config", "edit", "interactive", "separate-git-dir", "show-signature", "template"];
    let Some(option) = word.strip_prefix("--") else { return false };
    let option = option.split('=').next().unwrap_or_default();
    let meant = |known: &&str| !option.is_empty() && known.starts_with(option);
    option.starts_with("config") || OPTIONS.iter().any(meant)
}
