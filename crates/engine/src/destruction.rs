//! Which files a tool call may destroy that undo could not bring back.
//!
//! Must not know how files are kept. Invariant: a command that is known to delete or overwrite, and that may reach such a
//! file, names it; a doubt about the path counts as a yes.

use std::path::{Path, PathBuf};

use domain::tool::{Review, ToolEffect};

/// Programs that delete, empty or overwrite the files that they name.
const DELETERS: &[&str] = &[
    "rm", "unlink", "shred", "srm", "wipe", "truncate", "mv", "cp", "install", "dd", "tee", "rmdir", "ln",
    "sponge", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "lzma",
];

/// Programs that do so only with one of these words.
const WITH_WORD: &[(&str, &[&str])] = &[
    ("find", &["-delete", "rm", "unlink", "shred", "truncate", "mv"]),
    ("fd", &["rm", "unlink", "shred"]),
    ("xargs", &["rm", "unlink", "shred", "truncate", "mv"]),
    ("tar", &["--remove-files"]),
    ("zip", &["-m", "--move"]),
    ("zstd", &["--rm"]),
    ("awk", &["inplace"]),
    ("gawk", &["inplace"]),
    ("rsync", &["--delete", "--delete-before", "--delete-after", "--delete-during", "--delete-excluded"]),
    ("git", &["clean", "reset", "checkout", "switch", "restore", "stash", "rm", "mv", "filter-branch"]),
];

/// Programs that rewrite the files that they name where an option has an `i`, such as `-i`, `-pi` or `--in-place`.
const IN_PLACE: &[&str] = &["sed", "gsed", "perl", "ruby"];

/// Programs that run code from their command line, and the parts of such code that delete or overwrite.
const INTERPRETERS: &[&str] = &["python", "perl", "ruby", "node", "php", "deno", "bun", "lua"];
const DESTROYING_CODE: &[&str] = &[
    "remove",
    "unlink",
    "rmtree",
    "rmdir",
    "rmSync",
    "rm(",
    "rename",
    "replace(",
    "move",
    "truncate",
    "write",
    "\"w",
    "'w",
    "File.delete",
];

/// Of the `unrecoverable` files, those that the call may destroy.
pub(crate) fn endangered(
    effect: ToolEffect,
    review: &Review,
    roots: &[PathBuf],
    unrecoverable: &[PathBuf],
) -> Vec<PathBuf> {
    let lines = lines_of(review);
    let by_command = |path: &&PathBuf| lines.iter().any(|line| reaches(line, roots, path));
    let mut paths: Vec<PathBuf> = match effect {
        // Only files that the call names were looked at.
        ToolEffect::WritesFiles => unrecoverable.to_vec(),
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
            review.changes && lines_of(review).iter().any(|line| deletes(&words_of(line)))
        }
        ToolEffect::Reads | ToolEffect::Previews | ToolEffect::UsesNetwork | ToolEffect::Other => false,
    }
}

/// The commands of the line, and each redirection that empties a file as the command that would do the same.
fn lines_of(review: &Review) -> Vec<String> {
    let mut lines = review.commands.clone();
    // `>>` keeps what is there, and `>&2` names no file.
    for after in review.summary.replace(">>", " ").replace(">|", ">").split('>').skip(1) {
        let target = after.trim_start().split([' ', '\n', ';', '&', '|', ')']).next().unwrap_or_default();
        if !target.is_empty() {
            lines.push(format!("truncate {}", target.trim_matches(['"', '\''])));
        }
    }
    lines
}

fn words_of(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Whether some word is a program that deletes: wrappers such as `sudo` or `env` may be before it.
fn deletes(words: &[&str]) -> bool {
    let name = |word: &&str| word.rsplit('/').next().unwrap_or(word).to_owned();
    words.iter().enumerate().any(|(at, word)| {
        let program = name(word);
        let after = &words[at + 1..];
        DELETERS.contains(&program.as_str())
            || WITH_WORD.iter().any(|(known, needed)| {
                *known == program && after.iter().any(|word| needed.contains(&name(word).as_str()))
            })
            || IN_PLACE.contains(&program.as_str()) && after.iter().any(|word| edits_in_place(word))
            || runs_destroying_code(&program, after)
    })
}

fn edits_in_place(option: &str) -> bool {
    option == "--in-place"
        || option.starts_with("--in-place=")
        || option.starts_with('-') && !option.starts_with("--") && option.contains('i')
}

fn runs_destroying_code(program: &str, after: &[&str]) -> bool {
    INTERPRETERS.iter().any(|known| program.starts_with(known))
        && after.iter().any(|word| matches!(*word, "-c" | "-e" | "-E" | "-r" | "--eval" | "eval"))
        && after.iter().any(|word| DESTROYING_CODE.iter().any(|part| word.contains(part)))
}

fn reaches(line: &str, roots: &[PathBuf], path: &Path) -> bool {
    let words = words_of(line);
    if !deletes(&words) {
        return false;
    }
    // Code names its files within larger words.
    let has_code = words.iter().any(|word| INTERPRETERS.iter().any(|known| word.starts_with(known)));
    let is_in_code = |name: &std::ffi::OsStr| name.to_str().is_none_or(|name| line.contains(name));
    if has_code && path.file_name().is_some_and(is_in_code) {
        return true;
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
            "sed -i s/a/b/ data/large.bin",
            "perl -pi -e s/a/b/ data/large.bin",
            "gzip data/large.bin",
            "tar cf x.tar --remove-files data",
            "ln -sf other data/large.bin",
            "python3 -c import os; os.remove('data/large.bin')",
            "python3 -c open('data/large.bin', 'w')",
            "perl -e unlink q(data/large.bin)",
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
            "sed -n 5p data/large.bin",
            "sed -i s/a/b/ small.txt",
            "python3 -c print(len(open('data/large.bin').read()))",
            "python3 -c import os; os.remove('small.txt')",
            "tar cf x.tar data",
        ] {
            check(line, false);
        }
    }

    #[test]
    fn a_redirection_that_empties_a_file_counts() {
        let roots = [PathBuf::from("/w")];
        for (line, expected) in [
            (": > data/large.bin", true),
            ("make >data/large.bin 2>&1", true),
            ("echo a >| 'data/large.bin'", true),
            ("make > small.txt 2>&1", false),
            ("make 2>&1 | tail", false),
            ("date >> data/large.bin", false),
        ] {
            let review = Review { summary: format!("$ {line}"), ..Review::default() };
            let path = Path::new("/w/data/large.bin");
            assert_eq!(lines_of(&review).iter().any(|line| reaches(line, &roots, path)), expected, "{line}");
        }
    }
}
