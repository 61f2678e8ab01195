//! The fixed list of commands that change nothing, each with the options it may have.
//!
//! Invariant: an option that is not on the list takes a command off it. Which files are read is not decided here.

use super::{git_words, plain_sed, risky};

/// What a command may be given.
struct Allowed {
    name: &'static str,
    /// Short options without a value.
    flags: &'static str,
    /// Short options with a value.
    valued: &'static str,
    /// Long options, exactly; a value may follow by `=` only.
    long: &'static [&'static str],
    /// How many words that are no options.
    most: usize,
}

const ANY: usize = usize::MAX;

const fn allow(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    most: usize,
) -> Allowed {
    Allowed { name, flags, valued, long, most }
}

#[rustfmt::skip]
const COMMANDS: &[Allowed] = &[
    allow(":", "", "", &[], ANY),
    allow("arch", "", "", &[], 0),
    allow("basename", "az", "s", &[], ANY),
    allow("cat", "AbeEnstTuv", "", &["number", "show-all", "show-ends", "show-tabs", "squeeze-blank"], ANY),
    allow("cmp", "bls", "n", &[], 2),
    allow("column", "tx", "sc", &[], ANY),
    allow("comm", "123i", "", &[], 2),
    allow("cut", "sz", "bcdf", &["complement"], ANY),
    allow("date", "uR", "", &["utc", "iso-8601"], 1),
    allow("df", "ahHiklmPT", "t", &["human-readable"], ANY),
    // Not `-r`: it would follow symlinks on its way.
    allow("diff", "aBbcdEenqsTtuwy", "CIUWx", &["brief", "color", "minimal", "side-by-side", "unified"], 2),
    allow("dirname", "z", "", &[], ANY),
    allow("du", "0abcDHhklmSsx", "dt", &["apparent-size", "human-readable", "max-depth", "summarize", "total"], ANY),
    allow("egrep", GREP_FLAGS, GREP_VALUED, GREP_LONG, ANY),
    allow("exit", "", "", &[], 1),
    allow("expand", "i", "t", &[], ANY),
    allow("false", "", "", &[], ANY),
    allow("fgrep", GREP_FLAGS, GREP_VALUED, GREP_LONG, ANY),
    allow("file", "biLh", "", &["brief", "mime", "mime-type"], ANY),
    allow("fmt", "csu", "w", &[], ANY),
    allow("fold", "bs", "w", &[], ANY),
    allow("grep", GREP_FLAGS, GREP_VALUED, GREP_LONG, ANY),
    allow("groups", "", "", &[], 0),
    allow("head", "qvz0123456789", "cn", &["bytes", "lines", "quiet", "verbose"], ANY),
    allow("hexdump", "bCcdox", "ns", &[], ANY),
    allow("hostname", "", "", &[], 0),
    allow("id", "Ggnru", "", &[], ANY),
    allow("join", "i", "12tv", &[], 2),
    // Not `-L` and `-H`: they would show what links lead to.
    allow("ls", "1AaBbCcdFfGghiklmNnopQqRrSsTtUuvXxZ", "Iw", &["all", "almost-all", "classify", "color", "file-type", "full-time", "group-directories-first", "human-readable", "recursive", "reverse", "sort", "time", "time-style"], ANY),
    allow("md5sum", "bt", "", &[], ANY),
    allow("nl", "", "bdfhilnsvw", &[], ANY),
    allow("nproc", "", "", &["all"], 0),
    allow("od", "abcdfilosvx", "ANjtw", &[], ANY),
    allow("paste", "sz", "d", &[], ANY),
    allow("printf", "", "", &[], ANY),
    allow("pwd", "LP", "", &[], 0),
    allow("readlink", "efmnqsvz", "", &[], ANY),
    allow("realpath", "eLmPqsz", "", &["relative-to", "relative-base"], ANY),
    allow("rev", "", "", &[], ANY),
    allow("rg", "0cFHhIilNnopPqSsUuvwx", "ABCEefgjMmrTt", RG_LONG, ANY),
    allow("seq", "w", "fs", &[], ANY),
    allow("sha1sum", "bt", "", &[], ANY),
    allow("sha256sum", "bt", "", &[], ANY),
    allow("sleep", "", "", &[], 1),
    allow("sort", "bcCdfghiMnRrsuVz", "kt", &["reverse", "unique", "numeric-sort", "human-numeric-sort", "version-sort"], ANY),
    allow("stat", "Lft", "c", &["format", "printf"], ANY),
    allow("strings", "a", "nte", &[], ANY),
    allow("tac", "br", "s", &[], ANY),
    allow("tail", "qvz0123456789", "cn", &["bytes", "lines", "quiet", "verbose"], ANY),
    allow("tr", "Ccdst", "", &["complement", "delete", "squeeze-repeats"], 2),
    allow("tree", "aCDdfFghiJnpqrstuvxX", "ILP", &["dirsfirst", "gitignore", "noreport", "filelimit", "prune"], ANY),
    allow("true", "", "", &[], ANY),
    allow("tty", "s", "", &[], 0),
    allow("type", "aptP", "", &[], ANY),
    allow("uname", "aimnoprsv", "", &[], 0),
    allow("unexpand", "a", "t", &[], ANY),
    allow("uniq", "cdDiuz", "fsw", &["count", "repeated", "unique", "ignore-case"], 1),
    allow("uptime", "ps", "", &[], 0),
    allow("wc", "clLmw", "", &["bytes", "chars", "lines", "max-line-length", "words"], ANY),
    allow("which", "as", "", &[], ANY),
    allow("whoami", "", "", &[], 0),
];

const GREP_FLAGS: &str = "abcEFGHhiILlnoPqrsTUvVwxyZz0123456789";
const GREP_VALUED: &str = "ABCem";
#[rustfmt::skip]
const GREP_LONG: &[&str] = &[
    "after-context", "basic-regexp", "before-context", "binary-files", "color", "color", "context", "count",
    "exclude", "exclude-dir", "extended-regexp", "files-with-matches", "files-without-match", "fixed-strings",
    "ignore-case", "include", "invert-match", "line-number", "line-regexp", "max-count", "no-filename",
    "no-messages", "only-matching", "perl-regexp", "quiet", "recursive", "regexp", "silent", "text", "with-filename",
    "word-regexp",
];
#[rustfmt::skip]
const RG_LONG: &[&str] = &[
    "after-context", "before-context", "case-sensitive", "color", "column", "context", "count", "count-matches",
    "crlf", "files", "files-with-matches", "files-without-match", "fixed-strings", "glob", "heading", "hidden",
    "iglob", "ignore-case", "invert-match", "json", "line-number", "line-regexp", "max-columns", "max-count",
    "max-depth", "multiline", "no-config", "no-filename", "no-heading", "no-ignore", "no-ignore-vcs",
    "no-line-number", "no-messages", "only-matching", "passthru", "pcre2", "quiet", "regexp", "smart-case", "sort",
    "sortr", "stats", "text", "trim", "type", "type-list", "type-not", "vimgrep", "with-filename", "word-regexp",
];

const LOG_FLAGS: &str = "0123456789abcgimpqrRstuvwzE";
const LOG_VALUED: &str = "GLMSCUnl";
#[rustfmt::skip]
const LOG_LONG: &[&str] = &[
    "abbrev", "abbrev-commit", "after", "all", "all-match", "ancestry-path", "author", "author-date-order", "before",
    "branches", "cached", "cc", "check", "cherry", "cherry-pick", "color", "color-words", "committer", "compact-summary",
    "date", "date-order", "decorate", "diff-algorithm", "diff-filter", "dirstat", "exit-code", "first-parent",
    "find-renames", "follow", "format", "full-index", "function-context", "graph", "grep", "histogram", "ignore-all-space",
    "ignore-blank-lines", "ignore-space-at-eol", "ignore-space-change", "left-right", "max-count", "merge-base",
    "merges", "minimal", "name-only", "name-status", "no-abbrev", "no-abbrev-commit", "no-color", "no-decorate",
    "no-ext-diff", "no-index", "no-merges", "no-patch", "no-prefix", "no-renames", "no-textconv", "no-walk",
    "numstat", "oneline", "patch", "patch-with-stat", "patience", "pickaxe-all", "pickaxe-regex", "pretty", "quiet",
    "raw", "regexp-ignore-case", "remotes", "reverse", "shortstat", "show-pulls", "simplify-by-decoration", "since",
    "skip", "staged", "stat", "summary", "tags", "text", "topo-order", "unified", "until", "walk-reflogs",
    "word-diff", "word-diff-regex",
];

/// Subcommands of git. `most` counts the words behind it.
#[rustfmt::skip]
const GIT: &[Allowed] = &[
    allow("blame", "beflnpstw", "LCM", &["date", "line-porcelain", "porcelain", "show-email", "show-name"], ANY),
    allow("branch", "arv", "", &["all", "color", "contains", "format", "list", "merged", "no-color", "no-contains", "no-merged", "points-at", "remotes", "show-current", "sort", "verbose"], 0),
    allow("cat-file", "epst", "", &[], ANY),
    allow("count-objects", "vH", "", &[], 0),
    allow("describe", "", "", &["abbrev", "all", "always", "exact-match", "first-parent", "long", "match", "tags"], ANY),
    allow("diff", LOG_FLAGS, LOG_VALUED, LOG_LONG, ANY),
    allow("diff-tree", LOG_FLAGS, LOG_VALUED, LOG_LONG, ANY),
    allow("for-each-ref", "", "", &["contains", "count", "format", "merged", "points-at", "sort"], ANY),
    allow("grep", "acEFGHhIiLlnoPpvWwz", "ABCefm", &["all-match", "and", "break", "cached", "color", "column", "count", "extended-regexp", "files-with-matches", "fixed-strings", "function-context", "heading", "ignore-case", "invert-match", "line-number", "max-depth", "name-only", "not", "only-matching", "or", "perl-regexp", "untracked", "word-regexp"], ANY),
    allow("log", LOG_FLAGS, LOG_VALUED, LOG_LONG, ANY),
    allow("ls-files", "cdimostuvz", "xX", &["cached", "deleted", "error-unmatch", "exclude-standard", "full-name", "ignored", "modified", "others", "stage", "unmerged"], ANY),
    allow("ls-tree", "dlrtz", "", &["abbrev", "full-name", "full-tree", "name-only", "name-status", "object-only"], ANY),
    allow("merge-base", "a", "", &["all", "fork-point", "independent", "is-ancestor", "octopus"], ANY),
    allow("name-rev", "", "", &["all", "always", "name-only", "tags"], ANY),
    allow("remote", "v", "", &["verbose"], 0),
    allow("rev-list", LOG_FLAGS, LOG_VALUED, LOG_LONG, ANY),
    allow("rev-parse", "q", "", &["abbrev-ref", "all", "git-dir", "is-bare-repository", "is-inside-git-dir", "is-inside-work-tree", "quiet", "short", "show-cdup", "show-prefix", "show-toplevel", "symbolic", "symbolic-full-name", "verify"], ANY),
    allow("shortlog", "ensc", "", &["all", "email", "no-merges", "numbered", "since", "summary", "until"], ANY),
    allow("show", LOG_FLAGS, LOG_VALUED, LOG_LONG, ANY),
    allow("show-ref", "dqs", "", &["abbrev", "dereference", "hash", "heads", "tags", "verify"], ANY),
    // Not `-v`: it shows differences, which could be made by a program.
    allow("status", "bsz", "u", &["ahead-behind", "branch", "column", "ignored", "long", "no-ahead-behind", "no-renames", "porcelain", "renames", "short", "show-stash", "untracked-files"], ANY),
    allow("tag", "ln", "", &["color", "contains", "format", "list", "merged", "no-contains", "no-merged", "points-at", "sort"], 0),
];

/// Two words that only look.
#[rustfmt::skip]
const GIT_TWO: &[(&str, &str, Allowed)] = &[
    ("config", "--get", allow("", "", "", &[], 1)),
    ("config", "--list", allow("", "", "", &["global", "local", "show-origin", "system"], 0)),
    ("config", "-l", allow("", "", "", &["global", "local", "show-origin", "system"], 0)),
    ("reflog", "show", allow("", LOG_FLAGS, LOG_VALUED, LOG_LONG, ANY)),
    ("remote", "get-url", allow("", "", "", &["all", "push"], 1)),
    ("stash", "list", allow("", LOG_FLAGS, LOG_VALUED, LOG_LONG, 0)),
    ("stash", "show", allow("", LOG_FLAGS, LOG_VALUED, LOG_LONG, 1)),
    ("worktree", "list", allow("", "v", "", &["porcelain"], 0)),
];

/// Programs that may be asked for their version. Not those that start what a file of the project names for it:
/// `rust-toolchain.toml`, `.yarnrc`, `packageManager`, `.mvn/jvm.config` …
#[rustfmt::skip]
const VERSIONED: &[&str] = &[
    "bash", "clang", "cmake", "docker", "gcc", "g++", "gh", "git", "java", "javac", "make", "node", "php", "python",
    "python3", "rg", "ruff", "uv",
];

pub(super) fn is_read_only(name: &str, arguments: &[&str]) -> bool {
    match (name, arguments) {
        (_, ["--version"]) if VERSIONED.contains(&name) => true,
        ("java", ["-version"]) => true,
        ("git", _) => git_reads(arguments),
        ("find", _) => risky::reasons("find", arguments).is_empty(),
        ("sed", _) => {
            let in_place = arguments.iter().any(|word| risky::is_short(word, &['i']));
            plain_sed::is_plain(arguments) && !in_place
        }
        ("awk" | "gawk" | "mawk" | "nawk", _) => risky::reasons(name, arguments).is_empty(),
        ("command", ["-v" | "-V", rest @ ..]) => rest.iter().all(|word| !word.starts_with('-')),
        ("echo", _) => true,
        // An array subscript is evaluated, and could hold a command.
        ("test", _) => !arguments.iter().any(|word| word.contains(['[', '$', '`'])),
        // `@file` holds more arguments.
        ("strings", _) if arguments.iter().any(|word| word.starts_with('@')) => false,
        ("cd", [folder]) => !folder.starts_with('-'),
        // `printf -v` evaluates what it is given; a format may begin with a dash only behind `--`.
        ("printf", [first, ..]) if first.starts_with('-') => false,
        // A date that is set is no format.
        ("date", _) if arguments.iter().any(|word| !word.starts_with(['+', '-'])) => false,
        _ => COMMANDS
            .iter()
            .find(|allowed| allowed.name == name)
            .is_some_and(|allowed| fits(allowed, arguments)),
    }
}

fn git_reads(arguments: &[&str]) -> bool {
    let (before, rest) = git_words::split(arguments);
    let mut before = before.iter();
    while let Some(option) = before.next() {
        match *option {
            "-C" if before.next().is_some() => {}
            "--no-pager" | "--no-optional-locks" | "--literal-pathspecs" => {}
            _ => return false,
        }
    }
    if git_words::asks_for_signatures(rest) {
        return false;
    }
    match rest {
        [sub, second, rest @ ..] if GIT_TWO.iter().any(|(one, two, _)| one == sub && two == second) => {
            GIT_TWO.iter().any(|(one, two, allowed)| one == sub && two == second && fits(allowed, rest))
        }
        ["branch" | "tag", "--list" | "-l", rest @ ..] => rest.iter().all(|word| !word.starts_with('-')),
        [sub, rest @ ..] => {
            GIT.iter().find(|allowed| allowed.name == *sub).is_some_and(|allowed| fits(allowed, rest))
        }
        [] => false,
    }
}

fn fits(allowed: &Allowed, arguments: &[&str]) -> bool {
    let mut words = 0;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if *word == "--" {
            words += rest.len();
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            if !allowed.long.contains(&name) {
                return false;
            }
        } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
            match short_fits(allowed, short) {
                Some(true) => drop(rest.next()),
                Some(false) => {}
                None => return false,
            }
        } else {
            words += 1;
        }
    }
    words <= allowed.most
}

/// Whether a cluster of short options is allowed, and if so whether its last one takes the next word.
fn short_fits(allowed: &Allowed, short: &str) -> Option<bool> {
    for (at, char) in short.char_indices() {
        if allowed.valued.contains(char) {
            return Some(at + char.len_utf8() == short.len());
        }
        if !allowed.flags.contains(char) {
            return None;
        }
    }
    Some(false)
}
