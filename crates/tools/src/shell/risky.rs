//! Commands and options that run or write something their key does not tell.

use super::plain_sed;

/// Change the shell itself, or hand over to something that takes commands.
const ALWAYS: &[&str] = &[
    ".",
    "alias",
    "at",
    "bind",
    "chsh",
    "complete",
    "crontab",
    "declare",
    "dd",
    "ed",
    "emacs",
    "enable",
    "ex",
    "expect",
    "export",
    "gdb",
    "hash",
    "history",
    "let",
    "lldb",
    "local",
    "mail",
    "mapfile",
    "mkfs",
    "nano",
    "nvim",
    "passwd",
    "printenv",
    "read",
    "readarray",
    "readonly",
    "rsync",
    "screen",
    "select",
    "set",
    "shopt",
    "source",
    "ssh",
    "telnet",
    "tmux",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "vi",
    "vim",
    "visudo",
];

/// Long options that run or write something, of whichever program has them.
const OPTIONS: &[&str] = &[
    "checkpoint-action",
    "command",
    "compress-program",
    "config-env",
    "editor",
    "eval",
    "exec",
    "exec-batch",
    "exec-path",
    "ext-diff",
    "hostname-bin",
    "init-file",
    "open-files-in-pager",
    "output",
    "output-directory",
    "output-document",
    "output-file",
    "pager",
    "pre",
    "rcfile",
    "receive-pack",
    "rsh",
    "rsync-path",
    "script-shell",
    "textconv",
    "to-command",
    "toolexec",
    "upload-pack",
    "use-askpass",
    "use-compress-program",
];

/// Programs that take long options shortened: `--outp=x`.
const TAKE_SHORTENED: &[&str] =
    &["curl", "diff", "git", "grep", "ls", "rsync", "sort", "tar", "uniq", "wc", "wget"];

/// Words of `find` that only look.
const FIND_LOOKS: &[&str] = &[
    "!",
    "(",
    ")",
    ",",
    "-a",
    "-amin",
    "-and",
    "-anewer",
    "-atime",
    "-cmin",
    "-cnewer",
    "-ctime",
    "-daystart",
    "-depth",
    "-empty",
    "-executable",
    "-false",
    "-fstype",
    "-gid",
    "-group",
    "-ilname",
    "-iname",
    "-inum",
    "-ipath",
    "-iregex",
    "-iwholename",
    "-links",
    "-lname",
    "-ls",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mount",
    "-mtime",
    "-name",
    "-newer",
    "-nogroup",
    "-not",
    "-nouser",
    "-o",
    "-or",
    "-path",
    "-perm",
    "-print",
    "-print0",
    "-printf",
    "-prune",
    "-quit",
    "-readable",
    "-regex",
    "-regextype",
    "-samefile",
    "-size",
    "-true",
    "-type",
    "-uid",
    "-used",
    "-user",
    "-wholename",
    "-writable",
    "-xdev",
    "-xtype",
    "-H",
    "-P",
];

pub(super) fn reasons(name: &str, arguments: &[&str]) -> Vec<String> {
    let mut reasons = Vec::new();
    if ALWAYS.contains(&name) {
        reasons.push(format!("`{name}` can do more than its name says"));
    }
    match name {
        "find" => reasons.extend(find(arguments)),
        "sed" if !plain_sed::is_plain(arguments) => {
            reasons.push("`sed` has a script that is not analyzed".to_owned());
        }
        "awk" | "gawk" | "mawk" | "nawk" if !plain_awk(arguments) => {
            reasons.push(format!("`{name}` has a script that can run or write something"));
        }
        "printf" if sets_a_subscript(arguments) => {
            reasons.push("`printf -v` evaluates a subscript of the name that it sets".to_owned());
        }
        // Numbers and names of variables are evaluated, and a subscript may hold a command.
        "test" | "[" if arguments.iter().any(|word| word.contains('[') && word.contains(['$', '`'])) => {
            reasons.push(format!("`{name}` evaluates a subscript"));
        }
        "tar" if arguments.iter().any(|word| word.starts_with("-I") || word.starts_with("-F")) => {
            reasons.push("`tar` has an option that runs a program".to_owned());
        }
        "go" if arguments.iter().any(|word| ["-exec", "-toolexec", "-o"].contains(word)) => {
            reasons.push("`go` has an option that runs or writes something".to_owned());
        }
        "fd" | "fdfind" if arguments.iter().any(|word| is_short(word, &['x', 'X'])) => {
            reasons.push(format!("`{name}` has an option that runs a program"));
        }
        _ => {}
    }
    if let Some(option) = arguments.iter().find(|word| is_risky(name, word)) {
        reasons.push(format!("`{name} {option}` can run or write something"));
    }
    if has_option_before_subcommand(name, arguments) {
        reasons.push(format!("`{name}` has an option before its subcommand"));
    }
    reasons
}

pub(super) fn is_risky(name: &str, word: &str) -> bool {
    let Some(option) = word.strip_prefix("--") else { return false };
    let option = option.split('=').next().unwrap_or_default();
    // `git rebase --ex make` is `--exec`: any beginning that means one option alone is taken.
    let shortened = TAKE_SHORTENED.contains(&name) && !option.is_empty();
    OPTIONS.iter().any(|risky| *risky == option || (shortened && risky.starts_with(option)))
        || (name == "cargo" && option == "config")
}

pub(super) fn is_short(word: &str, letters: &[char]) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letters)
}

/// Everything that begins with a dash must be known.
fn find(arguments: &[&str]) -> Option<String> {
    let unknown = arguments.iter().find(|word| {
        word.starts_with('-') && word.len() > 1 && !FIND_LOOKS.contains(word) && !is_number(&word[1..])
    })?;
    Some(format!("`find {unknown}` can run or change something"))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// `printf -v` evaluates a subscript of the name that it sets.
fn sets_a_subscript(arguments: &[&str]) -> bool {
    let name = match arguments {
        ["-v", name, ..] => name,
        [first, ..] => first.strip_prefix("-v").unwrap_or("x"),
        [] => "x",
    };
    !name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

/// A program that neither runs, writes nor reads what it is not given.
fn plain_awk(arguments: &[&str]) -> bool {
    let mut rest = arguments;
    let program = loop {
        match rest {
            ["-F" | "-v", _, more @ ..] => rest = more,
            [word, more @ ..] if word.starts_with("-F") => rest = more,
            [word, ..] if word.starts_with('-') => return false,
            [program, ..] => break program,
            [] => return false,
        }
    };
    !["system", "getline", "ENVIRON", "|", ">", "@", "SYMTAB", "close", "PROCINFO", "ARGV", "ARGC"]
        .iter()
        .any(|bad| program.contains(bad))
}

/// `npm --prefix elsewhere run build` is not what `npm run build` was remembered for.
pub(super) fn has_option_before_subcommand(name: &str, arguments: &[&str]) -> bool {
    const MANY: &[&str] = &[
        "aws",
        "bun",
        "bundle",
        "cargo",
        "composer",
        "deno",
        "docker",
        "dotnet",
        "gcloud",
        "gh",
        "go",
        "gradle",
        "helm",
        "just",
        "kubectl",
        "make",
        "gmake",
        "mvn",
        "nix",
        "npm",
        "npx",
        "pip",
        "pip3",
        "pnpm",
        "podman",
        "poetry",
        "rake",
        "rustup",
        "systemctl",
        "terraform",
        "uv",
        "yarn",
    ];
    const HARMLESS: &[&str] =
        &["--help", "--quiet", "--verbose", "--version", "-V", "-h", "-q", "-v", "-s", "-y"];
    let is_harmless = |word: &str| {
        HARMLESS.contains(&word)
            || word.strip_prefix("-j").is_some_and(|jobs| jobs.is_empty() || is_number(jobs))
    };
    let mut before = arguments.iter().take_while(|word| word.starts_with('-') || word.contains('='));
    MANY.contains(&name) && before.any(|word| !is_harmless(word))
}
