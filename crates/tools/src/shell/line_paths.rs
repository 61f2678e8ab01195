//! Which paths outside the workspace a line names, from wherever its `cd`s may lead.
//!
//! Invariant: a word counts as a path when it looks like one or is one; when it is not known which folder a command
//! runs in, every folder that is possible counts.

use std::path::{Path, PathBuf};

use domain::tool::Scope;

use super::{ShellLine, Word, keys, repository};
use project_files::resolve_links;

/// What the paths of a line come to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinePaths {
    pub outside: Vec<PathBuf>,
    pub reasons: Vec<String>,
}

const MAX_FOLDERS: usize = 8;
const HARMLESS: &[&str] = &["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

pub fn find_line_paths(line: &ShellLine, from: &Path, scope: &Scope, home: Option<&Path>) -> LinePaths {
    let mut finder = PathFinder { scope, home, folders: vec![from.to_owned()], out: LinePaths::default() };
    for word in &line.redirected {
        finder.word(word);
    }
    for command in &line.commands {
        let Some((name, arguments)) = command.words.split_first() else { continue };
        if name.text == "cd" || name.text == "pushd" {
            finder.enter(arguments);
            continue;
        }
        if command.read_only && keys::name(&name.text) == "git" {
            finder.repositories(arguments);
        }
        // The system's own programs are what their bare names stand for.
        if keys::name(&name.text).contains('/') {
            if finder.folders.len() > 1 && !name.text.starts_with('/') {
                finder.add_reason("It runs a program by its path after changing the folder");
            }
            finder.path(&name.text);
        }
        for word in arguments {
            if !command.read_only && is_of_git(&word.text) {
                finder.add_reason(OF_GIT);
            }
            finder.word(word);
        }
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
    /// Where the shell may be.
    folders: Vec<PathBuf>,
    out: LinePaths,
}

impl PathFinder<'_> {
    fn word(&mut self, word: &Word) {
        let text = word.text.as_str();
        // A pattern stands for paths below what it begins with.
        let text = match word.pattern_at {
            Some(at) => text[..at]
                .rsplit_once('/')
                .map_or("", |(folder, _)| if folder.is_empty() { "/" } else { folder }),
            None => text,
        };
        if word.tilde {
            return self.below_home(text);
        }
        let value = match text.strip_prefix('-') {
            None => text,
            Some(option) => match option.split_once('=') {
                Some((_, value)) => value,
                // `-I/usr/include`
                None => match option.find(['/', '.']) {
                    Some(at) => &option[at..],
                    None => return,
                },
            },
        };
        self.path(value);
        if let Some((_, value)) = value.split_once('=') {
            self.path(value);
        }
    }

    fn path(&mut self, text: &str) {
        if text.is_empty() || text.contains("://") || HARMLESS.contains(&text) {
            return;
        }
        if text.starts_with('~') {
            return self.below_home(text);
        }
        let looks = text.starts_with('/') || text.split('/').any(|part| part == "..");
        for folder in self.folders.clone() {
            let path = folder.join(text);
            // A name that is there may be a symlink that leads outside.
            if looks || path.symlink_metadata().is_ok() || text.contains('/') {
                self.check(&path);
            }
        }
    }

    /// git is asked about where a repository could make it run programs, in any folder it may start in.
    fn repositories(&mut self, arguments: &[Word]) {
        let mut folders = self.folders.clone();
        let mut words = arguments.iter();
        while let Some(word) = words.next().filter(|word| word.text.starts_with('-')) {
            if word.text == "-C"
                && let Some(folder) = words.next()
            {
                folders.iter_mut().for_each(|from| *from = from.join(&folder.text));
            }
        }
        if folders.iter().any(|folder| repository::names_programs(&resolve_links(folder).unwrap_or_default()))
        {
            self.add_reason("The repository's own configuration makes git run programs");
        }
    }

    fn below_home(&mut self, text: &str) {
        match (self.home, text.strip_prefix('~')) {
            (Some(home), Some(rest)) if rest.is_empty() || rest.starts_with('/') => {
                let path = home.join(rest.trim_start_matches('/'));
                self.check(&path);
            }
            _ => self.add_reason("It names somebody's home folder (~)"),
        }
    }

    fn check(&mut self, path: &Path) {
        match resolve_links(path) {
            Ok(path) => {
                let inside = self.scope.roots.iter().any(|root| path.starts_with(root));
                if !inside && !self.out.outside.contains(&path) {
                    self.out.outside.push(path);
                }
            }
            Err(_) => self.add_reason("It names a path that cannot be resolved"),
        }
    }

    /// `cd`: from here on the shell may be there, or still where it was if that fails.
    fn enter(&mut self, arguments: &[Word]) {
        let [folder] = arguments else {
            return self.add_reason("It changes the folder in a way that is not analyzed");
        };
        if folder.text.starts_with('-') || folder.pattern_at.is_some() {
            return self.add_reason("It changes the folder in a way that is not analyzed");
        }
        if is_of_git(&folder.text) {
            self.add_reason(OF_GIT);
        }
        self.word(folder);
        let mut more = Vec::new();
        for from in &self.folders {
            if let Ok(to) = resolve_links(&from.join(&folder.text))
                && !self.folders.contains(&to)
            {
                more.push(to);
            }
        }
        self.folders.extend(more);
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
