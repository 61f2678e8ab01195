//! Which paths a line names, from every folder that its `cd`s may lead to, and which of them are outside the workspace.
//!
//! Invariants: a word counts as a path when it looks like one or is one, also behind `--`, in an option and in a
//! redirection; every folder that a `cd` of the line may reach counts for every word, whatever their order; `cd` is
//! followed as bash does it (`..` removes a name) and as the system does it (`..` follows links).

use std::path::{Component, Path, PathBuf};

use domain::tool::Scope;
use platform::resolve_links;

use super::line::{Command, ShellLine};
use super::word::Word;
use super::{git, keys};

/// What the paths of a line come to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinePaths {
    /// Resolved paths outside the workspace.
    pub outside: Vec<PathBuf>,
    /// Every resolved path that the line may read or write by name.
    pub named: Vec<PathBuf>,
    /// The line may read files that it does not name: below a folder, or by a pattern.
    pub reads_unnamed: bool,
    /// Folders in which git may start.
    pub git_folders: Vec<PathBuf>,
    /// Sentences, without their full stop.
    pub reasons: Vec<String>,
}

const MAX_FOLDERS: usize = 8;
const MAX_NAMED: usize = 2_000;
/// Longer words are not taken apart.
const MAX_OPTION: usize = 200;
const HARMLESS: &[&str] = &["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// Commands that show names and sizes, never contents.
const SHOW_NAMES_ONLY: &[&str] = &[
    "[", "basename", "cd", "df", "dirname", "du", "echo", "find", "ls", "mkdir", "printf", "pwd", "readlink",
    "realpath", "rmdir", "stat", "test", "touch", "tree",
];
/// Commands that read every file below the folder where they start.
const READ_FOLDERS: &[&str] = &["ack", "ag", "rg"];

pub fn find_line_paths(line: &ShellLine, from: &Path, scope: &Scope, home: Option<&Path>) -> LinePaths {
    let mut finder = PathFinder { scope, home, folders: vec![from.to_owned()], out: LinePaths::default() };
    for command in &line.commands {
        finder.follow_folder_change(command);
    }
    let folders = finder.folders.clone();
    for word in &line.redirected {
        finder.check_word(word, &folders);
    }
    for command in &line.commands {
        finder.check_command(command, &folders);
    }
    finder.out
}

const OF_GIT: &str = "It may change git's own files, which can make git run programs";

fn is_of_git(text: &str) -> bool {
    text.split(['/', '=']).any(|part| part.eq_ignore_ascii_case(".git"))
}

struct PathFinder<'a> {
    scope: &'a Scope,
    home: Option<&'a Path>,
    /// Where the shell may be, with the links that led there.
    folders: Vec<PathBuf>,
    out: LinePaths,
}

impl PathFinder<'_> {
    fn check_command(&mut self, command: &Command, folders: &[PathBuf]) {
        let Some((name, arguments)) = command.words.split_first() else { return };
        let program = keys::name(&name.text);
        let mut folders = folders.to_vec();
        if program == "git" {
            folders.extend(git_folders(arguments, &folders));
            self.out.git_folders.extend(folders.iter().cloned());
        }
        // The system's own programs are what their bare names stand for.
        if program.contains('/') {
            if self.folders.len() > 1 && !name.text.starts_with('/') {
                self.add_reason("It runs a program by its path after changing the folder");
            }
            self.check_path(&name.text, &folders);
        }
        for word in arguments {
            if !command.read_only && is_of_git(&word.text) {
                self.add_reason(OF_GIT);
            }
            self.check_word(word, &folders);
        }
        self.check_folder_reads(program, arguments, &folders);
    }

    /// Commands that read what is in a folder read also what the links in it lead to.
    fn check_folder_reads(&mut self, program: &str, arguments: &[Word], folders: &[PathBuf]) {
        if SHOW_NAMES_ONLY.contains(&program) {
            return;
        }
        let is_folder = |word: &Word| folders.iter().any(|folder| folder.join(&word.text).is_dir());
        let names_folder = arguments.iter().any(is_folder);
        let texts: Vec<&str> = arguments.iter().map(Word::as_str).collect();
        let has_pattern = arguments.iter().any(|word| word.pattern_at.is_some());
        let git_reads = program == "git" && git::shows_contents(&texts);
        if names_folder || has_pattern || git_reads || READ_FOLDERS.contains(&program) {
            self.out.reads_unnamed = true;
        }
        if program == "diff" && names_folder {
            self.add_reason("`diff` of folders follows the links in them");
        }
    }

    fn check_word(&mut self, word: &Word, folders: &[PathBuf]) {
        let text = word.text.as_str();
        // A pattern stands for paths below what it begins with.
        let text = match word.pattern_at {
            Some(at) => text[..at]
                .rsplit_once('/')
                .map_or("", |(folder, _)| if folder.is_empty() { "/" } else { folder }),
            None => text,
        };
        if word.tilde {
            return self.check_home_path(text);
        }
        self.check_path(text, folders);
        for (at, char) in text.char_indices() {
            // `--file=PATH`, `HEAD:PATH`, `-d @PATH`, but not `https://`
            if matches!(char, '=' | ':' | '@') && !text[at..].starts_with("://") {
                self.check_path(&text[at + 1..], folders);
            }
        }
        if let Some(option) = text.strip_prefix('-').filter(|option| option.len() <= MAX_OPTION) {
            self.check_option(option, folders);
        }
    }

    /// An option may hold its value without a sign between them: `-I/usr/include`, `-fPATH`.
    fn check_option(&mut self, option: &str, folders: &[PathBuf]) {
        if let Some(at) = option.find(['/', '.']) {
            self.check_path(&option[at..], folders);
        }
        for (at, _) in option.char_indices() {
            let rest = &option[at..];
            let first = rest.split('/').next().unwrap_or_default();
            let exists = |folder: &PathBuf| folder.join(first).symlink_metadata().is_ok();
            if !first.is_empty() && folders.iter().any(exists) {
                self.check_path(rest, folders);
            }
        }
    }

    fn check_path(&mut self, text: &str, folders: &[PathBuf]) {
        if text.is_empty() || HARMLESS.contains(&text) {
            return;
        }
        if text.starts_with('~') {
            return self.check_home_path(text);
        }
        let looks = text.starts_with('/') || text.split('/').any(|part| part == "..");
        let first = text.split('/').next().unwrap_or_default();
        let is_address = text.contains("://") && !text.starts_with('/');
        for folder in folders {
            // An address is one only where no folder has its name.
            if is_address && folder.join(first).symlink_metadata().is_err() {
                continue;
            }
            let path = folder.join(text);
            // A name that exists may be a link that leads outside.
            let is_path = looks || text.contains('/') || path.symlink_metadata().is_ok();
            self.check_resolved(&path, is_path);
        }
    }

    fn check_home_path(&mut self, text: &str) {
        match (self.home, text.strip_prefix('~')) {
            (Some(home), Some(rest)) if rest.is_empty() || rest.starts_with('/') => {
                let path = home.join(rest.trim_start_matches('/'));
                self.check_resolved(&path, true);
            }
            _ => self.add_reason("It names somebody's home folder (~)"),
        }
    }

    fn check_resolved(&mut self, path: &Path, is_path: bool) {
        match resolve_links(path) {
            Ok(path) => {
                let inside = self.scope.roots.iter().any(|root| path.starts_with(root));
                if !inside && is_path && !self.out.outside.contains(&path) {
                    self.out.outside.push(path.clone());
                }
                if self.out.named.len() < MAX_NAMED && !self.out.named.contains(&path) {
                    self.out.named.push(path);
                }
            }
            Err(_) if is_path => self.add_reason("It names a path that cannot be resolved"),
            Err(_) => {}
        }
    }

    /// `cd`: from here on the shell may be there, or still where it was if that fails.
    fn follow_folder_change(&mut self, command: &Command) {
        let Some((name, arguments)) = command.words.split_first() else { return };
        if name.text != "cd" && name.text != "pushd" {
            return;
        }
        let [folder] = arguments else {
            return self.add_reason("It changes the folder in a way that is not analyzed");
        };
        if folder.text.starts_with('-') || folder.pattern_at.is_some() {
            return self.add_reason("It changes the folder in a way that is not analyzed");
        }
        if is_of_git(&folder.text) {
            self.add_reason(OF_GIT);
        }
        let target = match (folder.tilde, self.home) {
            (true, Some(home)) => home.join(folder.text.trim_start_matches(['~', '/'])),
            _ => PathBuf::from(&folder.text),
        };
        for from in self.folders.clone() {
            let written = from.join(&target);
            let reached = [Some(remove_dots(&written)), resolve_links(&written).ok()];
            for folder in reached.into_iter().flatten() {
                if !self.folders.contains(&folder) {
                    self.folders.push(folder);
                }
            }
        }
        if self.folders.len() > MAX_FOLDERS {
            self.add_reason("It changes the folder too often to be followed");
            self.folders.truncate(MAX_FOLDERS);
        }
    }

    fn add_reason(&mut self, reason: &str) {
        if !self.out.reasons.iter().any(|known| known == reason) {
            self.out.reasons.push(reason.to_owned());
        }
    }
}

/// `..` removes the name before it, as bash's `cd` does.
fn remove_dots(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            other @ Component::Prefix(_) | other @ Component::RootDir | other @ Component::Normal(_) => {
                out.push(other)
            }
        }
    }
    out
}

/// Where the `-C` options of git lead.
fn git_folders(arguments: &[Word], from: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders = from.to_vec();
    let mut words = arguments.iter();
    while let Some(word) = words.next().filter(|word| word.text.starts_with('-')) {
        if word.text == "-C"
            && let Some(folder) = words.next()
        {
            folders.iter_mut().for_each(|from| *from = from.join(&folder.text));
        }
    }
    folders
}
