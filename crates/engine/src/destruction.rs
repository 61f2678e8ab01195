//! Which files a tool call may destroy that undo could not bring back.
//!
//! Must not know how files are kept. Invariant: a command that is known to delete or overwrite, and that may reach such a
//! file, names it; a doubt about the path counts as a yes.

use std::path::{Path, PathBuf};

use domain::tool::{Review, ToolEffect};

/// Programs that delete, empty or overwrite the files that they name.
const DELETERS: &[&str] =
    &["rm", "unlink", "shred", "srm", "wipe", "truncate", "mv", "cp", "install", "dd", "tee", "rmdir"];

/// Programs that do so only with one of these words.
const WITH_WORD: &[(&str, &[&str])] = &[
    ("find", &["-delete", "rm", "unlink", "shred", "truncate", "mv"]),
    ("fd", &["rm", "unlink", "shred"]),
    ("xargs", &["rm", "unlink", "shred", "truncate", "mv"]),
    ("rsync", &["--delete", "--delete-before", "--delete-after", "--delete-during", "--delete-excluded"]),
    ("git", &["clean", "reset", "checkout", "switch", "restore", "stash", "rm", "mv", "filter-branch"]),
];

/// Of the `unrecoverable` files, those that the call may destroy.
pub(crate) fn endangered(
    effect: ToolEffect,
    review: &Review,
    roots: &[PathBuf],
    unrecoverable: &[PathBuf],
) -> Vec<PathBuf> {
    let named = |path: &&PathBuf| review.locations.iter().any(|location| overlap(&location.path, path));
    let by_command = |path: &&PathBuf| review.commands.iter().any(|line| reaches(line, roots, path));
    let mut paths: Vec<PathBuf> = match effect {
        ToolEffect::WritesFiles => unrecoverable.iter().filter(named).cloned().collect(),
        ToolEffect::RunsCommands => unrecoverable.iter().filter(by_command).cloned().collect(),
        ToolEffect::Reads | ToolEffect::Previews | ToolEffect::UsesNetwork | ToolEffect::Other => Vec::new(),
    };
    paths.retain(|path| path.exists());
    paths
}

/// Whether the call is worth a look at the workspace.
pub(crate) fn may_destroy(effect: ToolEffect, review: &Review) -> bool {
    match effect {
        ToolEffect::WritesFiles => true,
        ToolEffect::RunsCommands => {
            review.changes && review.commands.iter().any(|line| deletes(&words_of(line)))
        }
        ToolEffect::Reads | ToolEffect::Previews | ToolEffect::UsesNetwork | ToolEffect::Other => false,
    }
}

fn words_of(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Whether some word is a program that deletes: wrappers such as `sudo` or `env` may stand before it.
fn deletes(words: &[&str]) -> bool {
    let name = |word: &&str| word.rsplit('/').next().unwrap_or(word).to_owned();
    words.iter().enumerate().any(|(at, word)| {
        let program = name(word);
        let after = &words[at + 1..];
        DELETERS.contains(&program.as_str())
            || WITH_WORD.iter().any(|(known, needed)| {
                *known == program && after.iter().any(|word| needed.contains(&name(word).as_str()))
            })
    })
}

fn reaches(line: &str, roots: &[PathBuf], path: &Path) -> bool {
    let words = words_of(line);
    if !deletes(&words) {
        return false;
    }
    let arguments: Vec<&str> = words.iter().skip(1).copied().filter(|word| !word.starts_with('-')).collect();
    // `git clean` and its like name no paths, and a word that the shell or a pattern changes may name any.
    let names_nothing = words.iter().any(|word| matches!(*word, "git" | "find" | "fd" | "xargs" | "rsync"));
    let is_open = |word: &&str| word.contains(['*', '?', '[', '$', '`', '{', '~']);
    names_nothing
        || arguments.is_empty()
        || arguments.iter().any(is_open)
        || arguments.iter().any(|word| {
            let word = word.strip_prefix("of=").unwrap_or(word);
            let same_name = Path::new(word).file_name().is_some_and(|name| path.ends_with(name));
            let is_above = |folder: &Path| matches!(word, "." | "..") || folder.ends_with(word);
            same_name
                || path.ancestors().skip(1).any(is_above)
                || roots.iter().any(|root| overlap(&normal(&root.join(word)), path))
        })
}

/// Whether one is the other or lies in it.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The path without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                normal.pop();
            }
            std::path::Component::CurDir => {}
            std::path::Component::Prefix(_)
            | std::path::Component::RootDir
            | std::path::Component::Normal(_) => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: bool) {
        let (roots, path) = ([PathBuf::from("/w")], Path::new("/w/data/large.bin"));
        assert_eq!(reaches(line, &roots, path), expected, "{line}");
    }

    #[test]
    fn a_command_that_may_delete_the_file_reaches_it() {
        for line in [
            "rm data/large.bin",
            "rm -rf data",
            "rm -rf .",
            "rm -rf ../w",
            "sudo rm -f /w/data/large.bin",
            "rm large.bin",
            "rm data/*",
            "rm $FILE",
            "mv other.bin data/large.bin",
            "cp other.bin data",
            "truncate -s 0 data/large.bin",
            "dd if=/dev/zero of=data/large.bin",
            "find . -delete",
            "find . -name x -exec rm {} +",
            "git clean -fdx",
            "git reset --hard",
            "/bin/rm data/large.bin",
            "rsync -a --delete empty/ data/",
        ] {
            check(line, true);
        }
        for line in [
            "rm small.txt",
            "rm -rf target",
            "ls data/large.bin",
            "git status",
            "find . -name large.bin",
            "cargo test",
        ] {
            check(line, false);
        }
    }
}
