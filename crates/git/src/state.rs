//! Which files of a git directory are plain state, that git reads and never runs.
//!
//! Knows names and contents; opens nothing. Invariant: a name that is not known is refused.

use std::path::Path;

/// The git directory that a path is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Repository,
    /// Below `modules`.
    Module {
        is_new: bool,
    },
    /// Below `worktrees`.
    Worktree {
        is_new: bool,
    },
}

/// What may happen with a file that a command wrote or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is named by its contents: a new one is taken, one that is there is never replaced.
    Object,
    /// A name of a commit. It is not replaced where somebody else changed it meanwhile.
    Reference,
    /// Taken as it is.
    Plain,
    /// Steps of a rebase or cherry-pick, which may run commands.
    Steps,
    /// Options of a rebase or cherry-pick.
    Options,
    /// Leads from a new worktree to its repository, or back.
    Link,
    Configuration,
    /// Of use while a command runs only.
    Passing,
    Refused,
}

impl Kind {
    pub fn accepts(self, path: &Path, contents: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(contents) else {
            return matches!(self, Self::Object | Self::Plain);
        };
        match self {
            Self::Object | Self::Plain | Self::Configuration => true,
            Self::Reference => is_reference(path, text),
            Self::Steps => text.lines().all(is_step),
            // git reads its settings in any case.
            Self::Options => {
                let text = text.to_ascii_lowercase();
                !["strategy", "gpg", "exec"].iter().any(|word| text.contains(word))
            }
            Self::Link => match path.file_name().and_then(|name| name.to_str()) {
                Some("commondir") => text.trim_end() == "../..",
                Some("gitdir") => text.trim_end().ends_with("/.git") && text.lines().count() == 1,
                _ => false,
            },
            Self::Passing | Self::Refused => false,
        }
    }
}

/// Files of a git directory's top.
const FILES: &[&str] = &[
    "AUTO_MERGE",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "NOTES_EDITMSG",
    "SQUASH_MSG",
    "TAG_EDITMSG",
    "index",
    "shallow",
];

/// Names of commits at a git directory's top.
const HEADS: &[&str] = &[
    "BISECT_HEAD",
    "CHERRY_PICK_HEAD",
    "HEAD",
    "MERGE_AUTOSTASH",
    "MERGE_HEAD",
    "ORIG_HEAD",
    "REBASE_HEAD",
    "REVERT_HEAD",
];

/// What a path of a git directory is.
pub fn judge(part: Part, path: &Path) -> Kind {
    let Some(names) = path.iter().map(|name| name.to_str()).collect::<Option<Vec<&str>>>() else {
        return Kind::Refused;
    };
    let Some((last, above)) = names.split_last() else { return Kind::Refused };
    if names.contains(&"..") {
        return Kind::Refused;
    }
    if last.ends_with(".lock") || last.starts_with("tmp_") || last.starts_with(".tmp") {
        return Kind::Passing;
    }
    let is_new = matches!(part, Part::Module { is_new: true } | Part::Worktree { is_new: true });
    match (above, *last) {
        ([], name) if FILES.contains(&name) || name.starts_with("BISECT_") && !HEADS.contains(&name) => {
            Kind::Plain
        }
        ([], name) if HEADS.contains(&name) => Kind::Reference,
        ([], name) if is_shared_index(name) => Kind::Plain,
        ([], "packed-refs") => Kind::Reference,
        ([], "config") => Kind::Configuration,
        ([], "gitdir" | "commondir") if part == (Part::Worktree { is_new: true }) => Kind::Link,
        ([], "gc.log" | "gc.pid" | "description") => Kind::Passing,
        ([], name) if name.starts_with("next-index-") || name.starts_with("fsmonitor--daemon") => {
            Kind::Passing
        }
        (["info"], "exclude" | "sparse-checkout") => Kind::Plain,
        (["info"], "refs") => Kind::Passing,
        (["objects", ..], _) => object(&names[1..]),
        (["refs", ..], _) => Kind::Reference,
        (["logs", ..], _) => Kind::Plain,
        (["reftable"], name) if name == "tables.list" || name.ends_with(".ref") => Kind::Plain,
        (["rebase-merge" | "rebase-apply" | "sequencer", below @ ..], name) => operation(below, name),
        (["rr-cache", _], _) => Kind::Plain,
        (["lfs", "objects", _, _], name) if is_hex(name, 64) => Kind::Object,
        (["lfs", ..], _) => Kind::Passing,
        // Hooks of a new submodule are the samples of git, or they are not wanted.
        (["hooks", ..], _) if is_new => Kind::Passing,
        (["hooks", ..], name) if name.ends_with(".sample") => Kind::Passing,
        _ => Kind::Refused,
    }
}

/// A folder that a command removed: it may go with everything in it.
pub(crate) fn may_be_removed(part: Part, path: &Path) -> bool {
    let names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
    match names.as_slice() {
        ["rebase-merge" | "rebase-apply" | "sequencer"] => true,
        ["refs" | "logs", _, ..] => true,
        ["worktrees", _] => part == Part::Repository,
        ["worktrees"] => part == Part::Repository,
        _ => false,
    }
}

impl Part {
    /// Whether a folder of it that a command removed may go with everything in it.
    pub fn may_lose(self, folder: &Path) -> bool {
        may_be_removed(self, folder)
    }
}

fn operation(below: &[&str], name: &str) -> Kind {
    match name {
        _ if !below.is_empty() && below != ["rewritten"] => Kind::Refused,
        "strategy" | "strategy_opts" | "gpg_sign_opt" => Kind::Refused,
        "opts" => Kind::Options,
        "done" | "todo" => Kind::Steps,
        name if name.contains("todo") => Kind::Steps,
        _ => Kind::Plain,
    }
}

fn object(names: &[&str]) -> Kind {
    match names {
        [folder, file] if is_hex(folder, 2) && (is_hex(file, 38) || is_hex(file, 62)) => Kind::Object,
        ["pack", file] if is_pack(file) => Kind::Object,
        // What git makes anew, and what leads to other stores.
        ["pack", _] | ["info", "packs" | "commit-graph"] | ["info", "commit-graphs", ..] => Kind::Passing,
        ["pack" | "info"] => Kind::Passing,
        [folder] if is_hex(folder, 2) => Kind::Passing,
        // Quarantine of what is received.
        [folder, ..] if folder.starts_with("tmp_objdir") || folder.starts_with("incoming-") => Kind::Passing,
        _ => Kind::Refused,
    }
}

fn is_pack(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let Some(hash) = stem.strip_prefix("pack-") else { return false };
    (is_hex(hash, 40) || is_hex(hash, 64)) && ["pack", "idx", "rev", "promisor", "keep"].contains(&ending)
}

fn is_shared_index(name: &str) -> bool {
    name.strip_prefix("sharedindex.").is_some_and(|hash| is_hex(hash, 40) || is_hex(hash, 64))
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_reference(path: &Path, text: &str) -> bool {
    if path.file_name().is_some_and(|name| name == "packed-refs") {
        return text.lines().all(|line| {
            let is_pair = |line: &str| {
                line.split_once(' ').is_some_and(|(hash, name)| is_hash(hash) && name.starts_with("refs/"))
            };
            line.starts_with('#') || line.strip_prefix('^').is_some_and(is_hash) || is_pair(line)
        });
    }
    let text = text.trim_end_matches(['\n', '\r']);
    let is_name =
        |name: &str| name.trim_start().starts_with("refs/") && !name.contains("..") && !name.contains('\n');
    // MERGE_HEAD has a line for each of several.
    text.strip_prefix("ref:").is_some_and(is_name) || !text.is_empty() && text.lines().all(is_hash)
}

fn is_hash(text: &str) -> bool {
    is_hex(text, 40) || is_hex(text, 64)
}

/// A step of a rebase that runs no command.
pub(crate) fn is_step(line: &str) -> bool {
    const STEPS: &[&str] = &[
        "break",
        "b",
        "drop",
        "d",
        "edit",
        "e",
        "fixup",
        "f",
        "label",
        "l",
        "merge",
        "m",
        "noop",
        "pick",
        "p",
        "reset",
        "revert",
        "reword",
        "r",
        "squash",
        "s",
        "t",
        "update-ref",
        "u",
    ];
    let line = line.trim();
    line.is_empty()
        || line.starts_with('#')
        || line.split_whitespace().next().is_some_and(|word| STEPS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn only_state_is_taken() {
        let plain = Part::Repository;
        for (path, kind) in [
            ("index", Kind::Plain),
            ("HEAD", Kind::Reference),
            ("refs/heads/a/b", Kind::Reference),
            ("refs/jj/keep/x", Kind::Reference),
            ("logs/refs/stash", Kind::Plain),
            ("objects/01/23456789abcdef0123456789abcdef01234567", Kind::Object),
            ("objects/info/alternates", Kind::Refused),
            ("objects/info/commit-graph", Kind::Passing),
            ("config", Kind::Configuration),
            ("config.worktree", Kind::Refused),
            ("commondir", Kind::Refused),
            ("gitdir", Kind::Refused),
            ("hooks/pre-commit", Kind::Refused),
            ("info/attributes", Kind::Refused),
            ("info/grafts", Kind::Refused),
            ("remotes/origin", Kind::Refused),
            ("rebase-merge/git-rebase-todo", Kind::Steps),
            ("rebase-merge/strategy", Kind::Refused),
            ("index.lock", Kind::Passing),
            ("anything", Kind::Refused),
        ] {
            assert_eq!(judge(plain, Path::new(path)), kind, "{path}");
        }
        let link = Path::new("commondir");
        assert_eq!(judge(Part::Worktree { is_new: true }, link), Kind::Link);
        assert_eq!(judge(Part::Worktree { is_new: false }, link), Kind::Refused);
        assert_eq!(judge(Part::Module { is_new: true }, link), Kind::Refused);
        assert!(Kind::Link.accepts(link, b"../..\n") && !Kind::Link.accepts(link, b"../../evil\n"));
    }

    #[test]
    fn contents_are_looked_at_too() {
        let reference = |text: &str| Kind::Reference.accepts(Path::new("refs/heads/x"), text.as_bytes());
        assert!(reference(&format!("{HASH}\n")) && reference("ref: refs/heads/main\n"));
        assert!(!reference("ref: ../../x") && !reference("evil") && !reference(""));
        let packed = format!("# pack-refs with: peeled \n{HASH} refs/tags/v1\n^{HASH}\n");
        assert!(Kind::Reference.accepts(Path::new("packed-refs"), packed.as_bytes()));
        let options = |text: &str| Kind::Options.accepts(Path::new("opts"), text.as_bytes());
        assert!(options("[options]\n\tmainline = 1\n"));
        assert!(
            !options("[options]\n\tstrategy = ../evil\n") && !options("[Options]\n\tSTRATEGY = ../evil\n")
        );
        let steps = |text: &str| Kind::Steps.accepts(Path::new("done"), text.as_bytes());
        assert!(steps("pick 123 x\n# exec y\nupdate-ref refs/heads/a\n"));
        assert!(!steps("pick 1 x\nexec evil\n") && !steps("x evil"));
    }
}
