//! Commands that run other commands, and where in their arguments those are.

use super::keys;

/// What a command runs besides itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Runs {
    /// The arguments from here on are a command, run as it is.
    Unchanged(usize),
    /// The arguments from here on are a command, run in some other way.
    Command(usize),
    /// This argument is a shell line.
    Line(usize),
    Unknown,
}

/// Run what follows, as somebody else, elsewhere, later or often.
const WRAPPERS: &[&str] = &[
    "arch",
    "batch",
    "builtin",
    "bwrap",
    "caffeinate",
    "chroot",
    "chronic",
    "chrt",
    "command",
    "coproc",
    "doas",
    "env",
    "exec",
    "firejail",
    "flock",
    "gtimeout",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "prlimit",
    "rlwrap",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "unbuffer",
    "unshare",
    "watch",
    "xargs",
    "xvfb-run",
];

const FIND_RUNS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "csh", "tcsh"];

pub(super) fn runs(name: &str, arguments: &[&str]) -> Option<Runs> {
    if let Some(plainly) = plainly(name, arguments) {
        return Some(plainly);
    }
    if name == "command" && matches!(arguments, ["-v" | "-V", ..]) {
        return None;
    }
    if SHELLS.contains(&name) {
        return shell(arguments);
    }
    if keys::is_interpreter(name) {
        return interpreter(arguments);
    }
    match name {
        "eval" => Some(if arguments.len() == 1 { Runs::Line(0) } else { Runs::Unknown }),
        "find" => {
            let at = arguments.iter().position(|word| FIND_RUNS.contains(word))? + 1;
            Some(if at < arguments.len() { Runs::Command(at) } else { Runs::Unknown })
        }
        "busybox" | "toybox" => Some(if arguments.is_empty() { Runs::Unknown } else { Runs::Command(0) }),
        _ if WRAPPERS.contains(&name) => Some(inner(arguments).map_or(Runs::Unknown, Runs::Command)),
        _ => None,
    }
}

/// The forms that change nothing about what they run.
fn plainly(name: &str, arguments: &[&str]) -> Option<Runs> {
    let is_duration = |word: &str| {
        let digits = word.trim_end_matches(['s', 'm', 'h']);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    match (name, arguments) {
        ("timeout", [duration, command, ..]) if is_duration(duration) && !command.starts_with('-') => {
            Some(Runs::Unchanged(1))
        }
        ("time" | "nice", [command, ..]) if !command.starts_with('-') => Some(Runs::Unchanged(0)),
        ("nice", ["-n", _, command, ..]) if !command.starts_with('-') => Some(Runs::Unchanged(2)),
        _ => None,
    }
}

/// The first argument that is neither option nor variable nor number: a guess that only shows, never allows.
fn inner(arguments: &[&str]) -> Option<usize> {
    let skipped = |word: &&str| {
        word.starts_with('-') || word.contains('=') || word.starts_with(|char: char| char.is_ascii_digit())
    };
    arguments.iter().position(|word| !skipped(word))
}

fn shell(arguments: &[&str]) -> Option<Runs> {
    let Some(first) = arguments.first() else { return Some(Runs::Unknown) };
    if !first.starts_with(['-', '+']) {
        return None;
    }
    let line = arguments
        .iter()
        .position(|word| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'));
    match line {
        Some(at) if at + 1 < arguments.len() => Some(Runs::Line(at + 1)),
        _ => Some(Runs::Unknown),
    }
}

/// Code on the command line or from the input is not known; a file or a module is the key.
fn interpreter(arguments: &[&str]) -> Option<Runs> {
    match arguments {
        ["-m", module, ..] if !module.starts_with('-') => None,
        ["--version" | "-V" | "-v"] => None,
        [first, ..] if !first.starts_with('-') => None,
        _ => Some(Runs::Unknown),
    }
}
