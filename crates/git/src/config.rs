//! git's configuration files: which entries make git run nothing, and which paths a file names that git reads or runs.
//!
//! Invariant: an entry counts as harmless only if its line has the plain form that git writes itself; whatever else
//! is in a file counts as dangerous.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::find::read_small;

/// How deep files include files.
const MOST_INCLUDES: usize = 10;

/// Sections without a subsection whose entries run nothing, but for words in [`PROGRAM_WORDS`].
const SECTIONS: &[&str] = &[
    "advice",
    "apply",
    "author",
    "color",
    "column",
    "commit",
    "committer",
    "diff",
    "extensions",
    "feature",
    "fetch",
    "gc",
    "i18n",
    "index",
    "init",
    "log",
    "merge",
    "notes",
    "pack",
    "pull",
    "push",
    "rebase",
    "receive",
    "rerere",
    "stash",
    "status",
    "tag",
    "user",
];

/// Entries of `core`.
const CORE: &[&str] = &[
    "abbrev",
    "autocrlf",
    "bare",
    "bigfilethreshold",
    "checkstat",
    "commentchar",
    "compression",
    "eol",
    "filemode",
    "ignorecase",
    "logallrefupdates",
    "longpaths",
    "loosecompression",
    "precomposeunicode",
    "preloadindex",
    "protecthfs",
    "protectntfs",
    "quotepath",
    "repositoryformatversion",
    "safecrlf",
    "sharedrepository",
    "sparsecheckout",
    "sparsecheckoutcone",
    "splitindex",
    "symlinks",
    "trustctime",
    "untrackedcache",
    "whitespace",
];

/// Words in the names of entries that name programs, or files with programs.
const PROGRAM_WORDS: &[&str] = &[
    "askpass",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "exec",
    "external",
    "file",
    "filter",
    "helper",
    "hook",
    "pager",
    "path",
    "process",
    "program",
    "proxy",
    "smudge",
    "sshcommand",
    "template",
    "textconv",
    "tool",
    "options",
];

/// Entries of named sections.
const NAMED: &[(&str, &[&str])] = &[
    (
        "branch",
        &["description", "merge", "pushremote", "rebase", "remote", "vscode-merge-base", "gh-merge-base"],
    ),
    (
        "remote",
        &[
            "fetch",
            "gh-resolved",
            "mirror",
            "partialclonefilter",
            "promisor",
            "prune",
            "prunetags",
            "push",
            "pushurl",
            "skipdefaultupdate",
            "skipfetchall",
            "tagopt",
            "url",
        ],
    ),
    ("submodule", &["active", "branch", "fetchrecursesubmodules", "ignore", "shallow", "update", "url"]),
];

/// Settings of `git lfs install --local`, which name the program by its name alone.
const LARGE_FILES: &[(&str, &str)] = &[
    ("filter.lfs.clean", "git-lfs clean -- %f"),
    ("filter.lfs.smudge", "git-lfs smudge -- %f"),
    ("filter.lfs.smudge", "git-lfs smudge --skip -- %f"),
    ("filter.lfs.process", "git-lfs filter-process"),
    ("filter.lfs.process", "git-lfs filter-process --skip"),
    ("filter.lfs.required", "true"),
    ("lfs.repositoryformatversion", "0"),
];

/// One line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Entry {
        section: String,
        name: Option<String>,
        key: String,
        value: String,
    },
    /// Not of the plain form.
    Other(String),
}

impl Line {
    fn is_harmless(&self, in_module: bool) -> bool {
        let Self::Entry { section, name, key, value } = self else { return false };
        let named_entry = name.as_ref().map_or_else(
            || format!("{section}.{key}"),
            |name| format!("{section}.{}.{key}", name.to_ascii_lowercase()),
        );
        if LARGE_FILES.contains(&(named_entry.as_str(), value.as_str())) {
            return true;
        }
        match (section.as_str(), name) {
            ("core", None) if key == "worktree" => in_module && value.starts_with("../"),
            ("core", None) => CORE.contains(&key.as_str()),
            (section, None) => {
                SECTIONS.contains(&section) && !PROGRAM_WORDS.iter().any(|word| key.contains(word))
            }
            ("color", Some(_)) => true,
            (section, Some(_)) => {
                let known =
                    NAMED.iter().any(|(known, keys)| *known == section && keys.contains(&key.as_str()));
                // An address may name a program (`ext::sh -c …`), and an update may be one.
                known && !value.contains("::") && !value.starts_with(['!', '-'])
            }
        }
    }

    fn text(&self) -> Option<(String, String)> {
        let Self::Entry { section, name, key, value } = self else { return None };
        let header = match name {
            Some(name) => format!("[{section} \"{name}\"]"),
            None => format!("[{section}]"),
        };
        Some((header, format!("\t{key} = {value}")))
    }
}

/// The text without what could make git run a program; `None`: it has nothing of the kind.
pub(crate) fn without_programs(text: &str, in_module: bool) -> Option<String> {
    let lines = parse(text);
    if lines.iter().all(|line| line.is_harmless(in_module)) {
        return None;
    }
    let mut kept = String::new();
    let mut open = String::new();
    for (header, entry) in lines.iter().filter(|line| line.is_harmless(in_module)).filter_map(Line::text) {
        if header != open {
            kept.push_str(&header);
            kept.push('\n');
            open = header;
        }
        kept.push_str(&entry);
        kept.push('\n');
    }
    Some(kept)
}

/// Every entry that one of the texts has and the other has not makes git run nothing.
pub fn changes_are_harmless(before: &str, after: &str, in_module: bool) -> bool {
    let count = |text: &str| {
        let mut lines: BTreeMap<Line, usize> = BTreeMap::new();
        for line in parse(text) {
            *lines.entry(line).or_default() += 1;
        }
        lines
    };
    let (before, after) = (count(before), count(after));
    let differs = |line: &&Line| before.get(*line) != after.get(*line);
    before.keys().chain(after.keys()).filter(differs).all(|line| line.is_harmless(in_module))
}

/// Folders of this machine that a remote or a branch leads to, as they are written: git runs the hooks of a repository
/// that it pushes to.
pub(crate) fn local_remotes(text: &str) -> Vec<String> {
    let lines = parse(text).into_iter().filter_map(|line| match line {
        Line::Entry { section, name: Some(_), key, value } => Some((section, key, value)),
        Line::Entry { .. } | Line::Other(_) => None,
    });
    let leads = lines.filter(|(section, key, _)| {
        matches!(
            (section.as_str(), key.as_str()),
            ("remote", "url" | "pushurl") | ("branch", "remote" | "pushremote")
        )
    });
    let local = leads.filter_map(|(_, _, value)| match value.split_once("://") {
        Some((scheme, path)) => scheme.eq_ignore_ascii_case("file").then(|| path.to_owned()),
        None => Some(value),
    });
    local.collect()
}

fn parse(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    for line in text.lines() {
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() || line.starts_with(['#', ';']) {
            // A comment cannot go on in the next line.
            continue;
        }
        if let Some(inside) = line.strip_prefix('[') {
            section = header(inside);
            if section.is_none() {
                lines.push(Line::Other(line.to_owned()));
            }
            continue;
        }
        match (&section, entry(line)) {
            (Some((section, name)), Some((key, value))) => {
                let (section, name) = (section.clone(), name.clone());
                lines.push(Line::Entry { section, name, key, value });
            }
            _ => {
                lines.push(Line::Other(line.to_owned()));
                // What follows may belong to it.
                if line.ends_with('\\') {
                    section = None;
                }
            }
        }
    }
    lines
}

/// `core]` or `remote "origin"]`, with nothing behind.
fn header(inside: &str) -> Option<(String, Option<String>)> {
    let inside = inside.strip_suffix(']')?;
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    match inside.split_once(' ') {
        None => is_word(inside).then(|| (inside.to_ascii_lowercase(), None)),
        Some((section, name)) => {
            let name = name.strip_prefix('"')?.strip_suffix('"')?;
            let is_plain = is_word(section) && is_plain_value(name) && !name.contains(']');
            is_plain.then(|| (section.to_ascii_lowercase(), Some(name.to_owned())))
        }
    }
}

fn entry(line: &str) -> Option<(String, String)> {
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    let is_key = key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_key && is_plain_value(value)).then(|| (key.to_ascii_lowercase(), value.to_owned()))
}

/// git takes it as it stands: no quotes, escapes, comments or controls.
fn is_plain_value(value: &str) -> bool {
    !value.chars().any(|char| char.is_control() || "\"\\#;".contains(char))
}

/// Folders of hooks and included files that these files name, and the files that those name. A path that is relative
/// to the working tree starts at `top`. They need not exist.
pub fn named_paths(files: &[PathBuf], top: &Path, home: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut left: Vec<(PathBuf, usize)> = files.iter().map(|file| (file.clone(), 0)).collect();
    while let Some((file, depth)) = left.pop() {
        let Some(text) = read_small(&file) else { continue };
        let base = file.parent().unwrap_or(top);
        for (is_include, value) in named_in(&text) {
            let path = match value.strip_prefix("~/") {
                Some(below) => home.join(below),
                None if is_include => base.join(&value),
                None => top.join(&value),
            };
            if paths.contains(&path) {
                continue;
            }
            if is_include && depth < MOST_INCLUDES {
                left.push((path.clone(), depth + 1));
            }
            paths.push(path);
        }
    }
    paths
}

/// Values of `core.hooksPath` and of `path` in sections of includes, in any form.
fn named_in(text: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    for line in text.replace("\\\n", "").lines() {
        let mut line = line.trim();
        if let Some(inside) = line.strip_prefix('[') {
            let Some(end) = inside.rfind(']') else { continue };
            section = inside[..end].to_ascii_lowercase();
            line = inside[end + 1..].trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.replace('"', "").replace("\\\\", "\\");
        let value = value.split([';', '#']).next().unwrap_or_default().trim().to_owned();
        if value.is_empty() {
            continue;
        }
        match key.trim().to_ascii_lowercase().as_str() {
            "hookspath" if section == "core" => found.push((false, value)),
            "path" if section.starts_with("include") => found.push((true, value)),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[remote \"origin\"]\n\t\
                         url = git@example.com:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\t\
                         remote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A B\n[commit]\n\tgpgsign = false\n";

    #[test]
    fn what_git_writes_itself_is_harmless() {
        assert_eq!(without_programs(PLAIN, false), None);
        assert_eq!(without_programs("# a\n; b\n\n[core]\n", false), None);
        assert_eq!(without_programs("[core]\n\tworktree = ../../../sub\n", true), None);
        assert!(without_programs("[core]\n\tworktree = ../../../sub\n", false).is_some());
    }

    #[test]
    fn whatever_names_a_program_goes() {
        for evil in [
            "[core]\n\tfsmonitor = evil",
            "[core] fsmonitor = evil",
            "[CORE]\n\tFSMonitor=evil",
            "[core]\n\tfsmonitor = \"evil\"",
            "[core]\n\tbare = false \\\n\tx",
            "[core]\n\tbare = \\\nfalse\n\tpager = evil",
            "[core]\n\thooksPath = evil",
            "[core]\n\tsshCommand = evil",
            "[core]\n\tattributesFile = evil",
            "[core]\n\tgitProxy = evil",
            "[alias]\n\tst = !evil",
            "[include]\n\tpath = evil",
            "[includeIf \"gitdir:/\"]\n\tpath = evil",
            "[filter \"x\"]\n\tclean = evil",
            "[filter \"lfs\"]\n\tclean = evil",
            "[lfs \"extension.x\"]\n\tclean = evil",
            "[diff]\n\texternal = evil",
            "[diff \"x\"]\n\ttextconv = evil",
            "[merge \"x\"]\n\tdriver = evil",
            "[remote \"o\"]\n\turl = ext::sh -c evil",
            "[remote \"o\"]\n\tuploadpack = evil",
            "[submodule \"s\"]\n\tupdate = !evil",
            "[gc]\n\trecentObjectsHook = evil",
            "[credential]\n\thelper = evil",
            "[gpg]\n\tprogram = evil",
            "[core.x]\n\tbare = false",
            "[remote \"a\\\"]\n\turl = x",
        ] {
            let text = format!("{PLAIN}{evil}\n");
            let kept = without_programs(&text, false).unwrap_or_else(|| panic!("{evil} counts as harmless"));
            assert!(!kept.contains("evil") && kept.contains("origin"), "{evil}: {kept}");
            assert_eq!(without_programs(&kept, false), None, "{kept}");
            assert!(!changes_are_harmless(PLAIN, &text, false), "{evil}");
        }
        let other = format!("{PLAIN}[remote \"mine\"]\n\turl = https://example.com/x\n");
        assert!(changes_are_harmless(PLAIN, &other, false));
        // An entry that was there before may name what it likes.
        let own = format!("{PLAIN}[alias]\n\tst = !x\n");
        assert!(changes_are_harmless(&own, &format!("{own}[user]\n\temail = a@b\n"), false));
    }

    #[test]
    fn folders_of_hooks_and_included_files_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        let text = "[core] hooksPath = \"tools/hooks\"\n[include]\n\tpath = ../shared.inc\n[includeIf \"onbranch:x\"] path = ~/more\n";
        std::fs::write(root.join(".git/config"), text).unwrap();
        std::fs::write(root.join("shared.inc"), "[core]\n\thookspath=other\n").unwrap();
        let mut found = named_paths(&[root.join(".git/config")], root, Path::new("/home/me"));
        found.sort();
        let mut expected = [
            PathBuf::from("/home/me/more"),
            root.join(".git/../shared.inc"),
            root.join("other"),
            root.join("tools/hooks"),
        ];
        expected.sort();
        assert_eq!(found, expected);
    }
}
