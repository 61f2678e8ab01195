//! The path policy: where a text that names a path leads, whether that is inside the workspace, and how it is opened.
//!
//! Invariant: a [`ResolvedPath`] held no symlink and no `..` when it was made, and everything here that opens one
//! refuses to follow a symlink that has come since. A path outside the workspace is used only when the call was
//! approved with it and it still leads where it led when the user was asked.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use domain::tool::{Invocation, Scope};
use domain::{Review, SessionId};
use platform::resolve_links;
use platform::{Folder, System, names};

use crate::outputs::OutputFolder;

const MAX_REVIEWED: usize = 1_024;

/// Where a path really leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedPath {
    path: PathBuf,
    inside: bool,
    /// How it is written for people and models: relative to the workspace where it is inside.
    shown: String,
}

impl ResolvedPath {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_inside(&self) -> bool {
        self.inside
    }

    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Opens for reading; never follows a symlink and never blocks on a pipe or device.
    pub fn open(&self) -> io::Result<File> {
        platform::open_file(&self.path)
    }

    /// The folder it stands in, held open, and its name there.
    pub fn folder(&self) -> io::Result<(Folder, OsString)> {
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(io::Error::other("it has no folder"));
        };
        Ok((Folder::open(parent)?, name.to_owned()))
    }

    /// Creates the missing folders above it, each looked at before it is entered.
    pub fn create_folders(&self) -> io::Result<()> {
        let Some(parent) = self.path.parent() else { return Ok(()) };
        let mut missing = Vec::new();
        let mut base = parent;
        let mut folder = loop {
            match Folder::open(base) {
                Ok(folder) => break folder,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let (Some(above), Some(name)) = (base.parent(), base.file_name()) else {
                        return Err(error);
                    };
                    missing.push(name);
                    base = above;
                }
                Err(error) => return Err(error),
            }
        };
        for name in missing.into_iter().rev() {
            folder = folder.create_folder(name)?;
        }
        Ok(())
    }
}

/// Paths that no tool may read, for tools that read files nobody named.
#[derive(Clone, Debug)]
pub struct ForbiddenPaths {
    patterns: regex::RegexSet,
    roots: std::sync::Arc<[PathBuf]>,
}

impl ForbiddenPaths {
    pub fn new(scope: &Scope) -> Result<Self, String> {
        let whole = scope.forbidden_paths.iter().map(|pattern| format!("^(?:{pattern})$"));
        let patterns =
            regex::RegexSetBuilder::new(whole).dot_matches_new_line(true).case_insensitive(true).build();
        let patterns =
            patterns.map_err(|error| format!("A rule that forbids paths cannot be used: {error}."))?;
        Ok(Self { patterns, roots: scope.roots.clone() })
    }

    pub fn contains(&self, path: &Path) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let short = self.roots.first().and_then(|root| path.strip_prefix(root).ok());
        let mut texts = [Some(path), short].into_iter().flatten().map(rule_text);
        texts.any(|text| self.patterns.is_match(&text))
    }
}

/// Resolves paths and remembers where those outside the workspace led when the user was asked.
#[derive(Default)]
pub struct Paths {
    home: Option<PathBuf>,
    outputs: OutputFolder,
    reviewed: Mutex<VecDeque<(SessionId, String, PathBuf)>>,
}

impl Paths {
    pub fn new(home: Option<PathBuf>, outputs: OutputFolder) -> Self {
        Self { home, outputs, reviewed: Mutex::default() }
    }

    /// Where the outputs of commands are kept.
    pub(crate) fn outputs(&self) -> &OutputFolder {
        &self.outputs
    }

    /// A kept output of this very chat, for tools that read. Nothing else below the folder of outputs is reached.
    fn find_output(&self, text: &str, scope: &Scope) -> Option<ResolvedPath> {
        let folder = resolve_links(&self.outputs.of(&scope.session)?).ok()?;
        let path = resolve_links(Path::new(text)).ok()?;
        let is_output = path.parent() == Some(&folder) && path.is_file();
        is_output.then(|| ResolvedPath { inside: true, shown: path.display().to_string(), path })
    }

    /// Like `review`, for a tool that only reads: outputs of the chat's own commands are open to it.
    pub(crate) fn review_read(
        &self,
        argument: &str,
        text: &str,
        scope: &Scope,
        review: &mut Review,
    ) -> Result<ResolvedPath, String> {
        let Some(output) = self.find_output(text, scope) else {
            return self.review(argument, text, scope, review);
        };
        self.record_review(argument, text, &output, scope, review);
        Ok(output)
    }

    /// Like `resolve_approved`, for a tool that only reads. Says whether it is a kept output.
    pub(crate) fn resolve_read(&self, text: &str, call: &Invocation) -> Result<(ResolvedPath, bool), String> {
        match self.find_output(text, &call.scope) {
            Some(output) => Ok((output, true)),
            None => Ok((self.resolve_approved(text, call)?, false)),
        }
    }

    /// For `review`: notes where the path of an argument leads.
    pub fn review(
        &self,
        argument: &str,
        text: &str,
        scope: &Scope,
        review: &mut Review,
    ) -> Result<ResolvedPath, String> {
        let resolved = self.resolve(text, scope)?;
        self.record_review(argument, text, &resolved, scope, review);
        Ok(resolved)
    }

    /// The same for what a path names itself, though it be a symlink.
    pub fn review_entry(
        &self,
        argument: &str,
        text: &str,
        scope: &Scope,
        review: &mut Review,
    ) -> Result<ResolvedPath, String> {
        let resolved = self.resolve_entry(text, scope)?;
        self.record_review(argument, text, &resolved, scope, review);
        Ok(resolved)
    }

    /// For the review of a shell line: where its paths outside the workspace lead.
    pub fn record_line_paths(&self, line: &str, scope: &Scope, outside: &[PathBuf]) {
        let mut reviewed = self.reviewed.lock().unwrap_or_else(PoisonError::into_inner);
        reviewed.retain(|(session, other, _)| *session != scope.session || other != line);
        for path in outside {
            if reviewed.len() >= MAX_REVIEWED {
                reviewed.pop_front();
            }
            reviewed.push_back((scope.session.clone(), line.to_owned(), path.clone()));
        }
    }

    /// For `run`: the line was approved with this path, or nobody was asked about any.
    pub fn line_was_approved_with(&self, line: &str, path: &Path, call: &Invocation) -> bool {
        let reviewed = self.reviewed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut asked = reviewed
            .iter()
            .filter(|(session, other, _)| *session == call.scope.session && other == line)
            .peekable();
        asked.peek().is_none() || asked.any(|(_, _, asked)| asked == path)
    }

    /// For `run`: the path as it leads now, refused where the call was not approved with it.
    pub fn resolve_approved(&self, text: &str, call: &Invocation) -> Result<ResolvedPath, String> {
        self.check_approved(text, self.resolve(text, &call.scope)?, call)
    }

    /// The same for what a path names itself, though it be a symlink.
    pub fn resolve_approved_entry(&self, text: &str, call: &Invocation) -> Result<ResolvedPath, String> {
        self.check_approved(text, self.resolve_entry(text, &call.scope)?, call)
    }

    /// Where `text` leads, seen from the first folder of the workspace.
    pub fn resolve(&self, text: &str, scope: &Scope) -> Result<ResolvedPath, String> {
        let path = self.make_absolute(text, scope)?;
        let path = resolve_links(&path).map_err(|error| format!("{text} cannot be resolved: {error}."))?;
        Ok(locate(path, scope))
    }

    fn resolve_entry(&self, text: &str, scope: &Scope) -> Result<ResolvedPath, String> {
        let path = self.make_absolute(text, scope)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return self.resolve(text, scope);
        };
        let parent = resolve_links(parent).map_err(|error| format!("{text} cannot be resolved: {error}."))?;
        Ok(locate(parent.join(name), scope))
    }

    fn record_review(
        &self,
        argument: &str,
        text: &str,
        resolved: &ResolvedPath,
        scope: &Scope,
        review: &mut Review,
    ) {
        let leads_to = [names::for_rules(&resolved.shown, System::CURRENT), rule_text(&resolved.path)];
        review.paths.push((argument.to_owned(), leads_to));
        if resolved.inside {
            return;
        }
        let mut reviewed = self.reviewed.lock().unwrap_or_else(PoisonError::into_inner);
        reviewed.retain(|(session, other, _)| *session != scope.session || other != text);
        if reviewed.len() >= MAX_REVIEWED {
            reviewed.pop_front();
        }
        reviewed.push_back((scope.session.clone(), text.to_owned(), resolved.path.clone()));
        if !review.outside.contains(&resolved.path) {
            review.outside.push(resolved.path.clone());
        }
    }

    fn check_approved(
        &self,
        text: &str,
        resolved: ResolvedPath,
        call: &Invocation,
    ) -> Result<ResolvedPath, String> {
        if resolved.inside {
            return Ok(resolved);
        }
        let path = resolved.path.display();
        if !call.outside_allowed {
            return Err(format!("{path} is outside the workspace and this call was not approved for it."));
        }
        let reviewed = self.reviewed.lock().unwrap_or_else(PoisonError::into_inner);
        let asked =
            reviewed.iter().find(|(session, other, _)| *session == call.scope.session && other == text);
        match asked {
            Some((_, _, asked)) if *asked != resolved.path => Err(format!(
                "{text} led to {} when it was approved and leads to {path} now, so it was not used.",
                asked.display()
            )),
            _ => Ok(resolved),
        }
    }

    fn make_absolute(&self, text: &str, scope: &Scope) -> Result<PathBuf, String> {
        if text.is_empty() || text.contains('\0') {
            return Err("The path is empty or holds a NUL. Give the path of a file or folder.".to_owned());
        }
        if System::CURRENT == System::Windows
            && let Some(reason) = names::odd_windows_path(text)
        {
            return Err(format!("{text} is refused: {reason}. Give the plain path of a file or folder."));
        }
        if text == "~" || text.starts_with("~/") {
            let home = self.home.as_ref().ok_or("`~` is not known here. Give an absolute path.")?;
            return Ok(home.join(text.trim_start_matches('~').trim_start_matches('/')));
        }
        let path = Path::new(text);
        if path.is_absolute() {
            return Ok(path.to_owned());
        }
        match scope.roots.first() {
            Some(root) => Ok(root.join(path)),
            None => Err(format!("{text} is relative and no folder is open. Give an absolute path.")),
        }
    }
}

fn locate(path: PathBuf, scope: &Scope) -> ResolvedPath {
    let root = scope.roots.iter().find(|root| path.starts_with(root));
    let short =
        root.filter(|root| scope.roots.first() == Some(root)).and_then(|root| path.strip_prefix(root).ok());
    let short = short.filter(|short| !short.as_os_str().is_empty());
    let shown = short.unwrap_or(&path).display().to_string();
    ResolvedPath { inside: root.is_some(), path, shown }
}

/// A path as rules compare it: relative to the workspace where it is inside, and absolute.
pub(crate) fn path_texts(path: &Path, scope: &Scope) -> [String; 2] {
    let inside = scope.roots.first().and_then(|root| path.strip_prefix(root).ok());
    [rule_text(inside.unwrap_or(path)), rule_text(path)]
}

pub(crate) fn rule_text(path: &Path) -> String {
    names::for_rules(&path.to_string_lossy(), System::CURRENT)
}
