//! Reads files with instructions and what they import by `@file`, each text once.
//!
//! Invariants: an import never leaves the folder that bounds it, never names a file that may hold secrets, and ends at a depth.

use std::path::{Path, PathBuf};

use platform::project_files;

use super::looks::Looks;
use super::set::{FILE_LIMIT_BYTES, InstructionFile, InstructionSet, LeftOutFile};

/// An import in a file that is this many imports away from the first one is not followed.
const MAX_DEPTH: usize = 5;
/// Files that are read in all, however they import each other.
const MAX_FILES: usize = 100;

/// Collects the files that count.
pub(super) struct Importer<'a> {
    set: InstructionSet,
    /// `None` where nobody asks later whether the files have changed.
    looks: Option<Looks>,
    seen: Vec<SeenFile>,
    /// Files that are not among `seen` yet: most looks find nothing to compare with them.
    known: &'a [InstructionFile],
    is_forbidden: &'a dyn Fn(&Path) -> bool,
}

struct SeenFile {
    /// As it was named.
    path: PathBuf,
    real: PathBuf,
    text: String,
    /// The file that imports it.
    imported_by: Option<PathBuf>,
}

/// What a file is read for.
struct Reading<'p> {
    boundary: &'p Path,
    depth: usize,
    imported_by: Option<&'p Path>,
}

impl<'a> Importer<'a> {
    pub(super) fn new(is_forbidden: &'a dyn Fn(&Path) -> bool) -> Self {
        let (set, looks) = (InstructionSet::default(), Some(Looks::default()));
        Self { set, looks, seen: Vec::new(), known: &[], is_forbidden }
    }

    /// The texts of these files count once and are not given again.
    pub(super) fn knowing(mut self, known: &'a InstructionSet) -> Self {
        self.known = &known.files;
        self.looks = None;
        self
    }

    pub(super) fn into_set(self) -> (InstructionSet, Looks) {
        (self.set, self.looks.unwrap_or_default())
    }

    /// Must be called before the place is looked at.
    pub(super) fn note_place(&mut self, path: &Path) {
        if let Some(looks) = &mut self.looks {
            looks.add(path);
        }
    }

    pub(super) fn leave_out(&mut self, path: &Path, why: impl Into<String>) {
        self.set.left_out.push(LeftOutFile { path: path.to_owned(), why: why.into() });
    }

    /// The file of the user, wherever links lead.
    pub(super) fn add_global(&mut self, folder: &Path, path: &Path) {
        self.note_place(path);
        if let Ok(bytes) = project_files::read_named(path, FILE_LIMIT_BYTES)
            && let Ok(text) = String::from_utf8(bytes)
        {
            self.add_text(&Reading { boundary: folder, depth: 0, imported_by: None }, path, text);
        }
    }

    /// Whether the file is there with a text, be it one that counts already.
    pub(super) fn add_file(&mut self, boundary: &Path, path: &Path) -> bool {
        self.add(&Reading { boundary, depth: 0, imported_by: None }, path)
    }

    /// A text of a file of rules, for files of these patterns.
    pub(super) fn add_rule(&mut self, boundary: &Path, path: &Path, text: String, globs: Vec<String>) {
        let count = self.set.files.len();
        self.add_text(&Reading { boundary, depth: 0, imported_by: None }, path, text);
        self.set.files[count..].iter_mut().for_each(|file| file.globs.clone_from(&globs));
    }

    /// The text of a file of the project; `None` where it is not there or cannot count.
    pub(super) fn read(&mut self, boundary: &Path, path: &Path) -> Option<String> {
        self.note_place(path);
        // Most places are empty, and a look is cheaper than opening them.
        if path.symlink_metadata().is_err() {
            return None;
        }
        let real = path.canonicalize().ok();
        for named in std::iter::once(path).chain(real.as_deref()) {
            let why = match (self.is_forbidden)(named) {
                true => "a deny rule forbids to read it",
                false if project_files::is_secret(named) => "it may hold secrets",
                false => continue,
            };
            self.leave_out(path, why);
            return None;
        }
        let inner = path.strip_prefix(boundary).unwrap_or(path);
        match project_files::read_beneath(boundary, inner, FILE_LIMIT_BYTES) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Some(text).filter(|text| !text.trim().is_empty()),
                Err(_) => {
                    self.leave_out(path, "it is not UTF-8 text");
                    None
                }
            },
            Err(_) if path.symlink_metadata().is_err() || path.is_dir() => None,
            Err(error) => {
                self.leave_out(path, error.to_string());
                None
            }
        }
    }

    fn add(&mut self, reading: &Reading<'_>, path: &Path) -> bool {
        let Some(text) = self.read(reading.boundary, path) else { return false };
        self.add_text(reading, path, text);
        true
    }

    fn add_text(&mut self, reading: &Reading<'_>, path: &Path, text: String) {
        self.seen.extend(std::mem::take(&mut self.known).iter().map(|file| SeenFile {
            path: file.path.clone(),
            real: file.path.canonicalize().unwrap_or_else(|_| file.path.clone()),
            text: file.text.trim().to_owned(),
            imported_by: None,
        }));
        if text.trim().is_empty() || self.seen.len() >= MAX_FILES {
            return;
        }
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(why) = self.repetition(path, &real, &text) {
            // An import of a text that counts needs no line of its own.
            if reading.imported_by.is_none() {
                self.leave_out(path, why);
            }
            return;
        }
        let imports = imports_in(&text);
        let only_imports = imports.is_all;
        self.seen.push(SeenFile {
            path: path.to_owned(),
            real,
            text: text.trim().to_owned(),
            imported_by: reading.imported_by.map(Path::to_owned),
        });
        let at = self.set.files.len();
        self.set.files.push(InstructionFile { path: path.to_owned(), text, globs: Vec::new() });
        let followed = self.follow(reading, path, &imports.names);
        if only_imports && followed == imports.names.len() {
            self.set.files.remove(at);
            self.leave_out(path, "it only imports files that count by themselves");
        }
    }

    /// Why a text that is there already does not count once more.
    fn repetition(&self, path: &Path, real: &Path, text: &str) -> Option<String> {
        let same_file = self.seen.iter().find(|seen| seen.real == real);
        if let Some(seen) = same_file {
            return Some(match &seen.imported_by {
                Some(by) => format!("{} imports it", by.display()),
                None if seen.path == path => "it counts already".to_owned(),
                None => format!("it is a link to the same file as {}", seen.path.display()),
            });
        }
        let equal = self.seen.iter().find(|seen| seen.text == text.trim())?;
        Some(format!("its text is equal to that of {}", equal.path.display()))
    }

    /// How many of the imports lead to a text that counts.
    fn follow(&mut self, reading: &Reading<'_>, path: &Path, names: &[String]) -> usize {
        let Some(folder) = path.parent() else { return 0 };
        let mut followed = 0;
        for name in names {
            let target = folder.join(name);
            let target = lexically_plain(&target);
            if name.starts_with('~') || !target.starts_with(reading.boundary) {
                // `@~` and `@/usr` are meant as paths; `@someone` is not.
                self.leave_out(
                    Path::new(name),
                    format!("{} imports it from outside of the project", path.display()),
                );
                continue;
            }
            self.note_place(&target);
            if !target.is_file() {
                continue;
            }
            if reading.depth >= MAX_DEPTH {
                self.leave_out(&target, format!("imports are followed {MAX_DEPTH} deep"));
                continue;
            }
            if project_files::is_secret(&target) {
                self.leave_out(&target, "it may hold secrets");
                continue;
            }
            let reading =
                Reading { boundary: reading.boundary, depth: reading.depth + 1, imported_by: Some(path) };
            followed += usize::from(self.add(&reading, &target));
        }
        followed
    }
}

/// A path without `.` and `..`, without a look at the disk.
fn lexically_plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::Prefix(_)
            | std::path::Component::RootDir
            | std::path::Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

struct Imports {
    names: Vec<String>,
    /// The text has nothing else.
    is_all: bool,
}

/// The paths behind `@` in a Markdown text, outside of code.
fn imports_in(text: &str) -> Imports {
    let mut names = Vec::new();
    let mut is_fenced = false;
    let mut rest = 0;
    for line in text.lines() {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            is_fenced = !is_fenced;
            rest += 1;
            continue;
        }
        let mut words = 0;
        // Every second piece between backticks is code.
        for piece in line.split('`').step_by(if is_fenced { usize::MAX } else { 2 }) {
            for word in piece.split_whitespace().filter(|_| !is_fenced) {
                match word
                    .strip_prefix('@')
                    .map(|name| name.trim_end_matches(['.', ',', ';', ':', ')', '!', '?']))
                {
                    Some(name) if !name.is_empty() => names.push(name.to_owned()),
                    Some(_) | None => words += 1,
                }
            }
        }
        let is_plain = line.trim().is_empty() || words == 0 && !is_fenced && !line.contains('`');
        rest += usize::from(!is_plain);
    }
    let is_all = rest == 0 && !names.is_empty();
    Imports { names, is_all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_words_outside_of_code() {
        let text =
            "See @docs/a.md, and @b.md.\n`@code.md` x@mail.md (@no.md)\n```\n@fenced.md\n```\n- @./c.md\n";
        let imports = imports_in(text);
        assert_eq!(imports.names, ["docs/a.md", "b.md", "./c.md"]);
        assert!(!imports.is_all);
        assert!(imports_in("@AGENTS.md\n\n@docs/x.md\n").is_all);
        assert!(!imports_in("Read @AGENTS.md\n").is_all && !imports_in("\n").is_all);
    }
}
