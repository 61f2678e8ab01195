//! Entries of the memory: one short fact per Markdown file, of the user or of a project.
//!
//! Must not know chats. Invariants: a file of a project is read and written in its folder only, whatever links say; a fact that
//! is there already is not written twice; nothing is cut in half by a crash.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use domain::Failure;
use platform::project_files;
use serde_json::Value;

/// Longer facts belong into a document.
pub(crate) const MAX_FACT: usize = 1000;
/// Entries of one folder.
const MAX_ENTRIES: usize = 500;
const MAX_FILE_BYTES: u64 = 64 << 10;
/// What the index shows of an entry, in characters.
const MAX_DESCRIPTION: usize = 100;

/// Where the memory is, and how it may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFolders {
    /// The user's own, for all projects.
    pub user: PathBuf,
    /// The root of the project and the folder in it.
    pub project: Option<(PathBuf, PathBuf)>,
    /// The user trusts the project, so its entries count.
    pub is_trusted: bool,
    /// The model may propose entries.
    pub may_propose: bool,
    /// With a chat go the entries that came from it.
    pub delete_with_chats: bool,
}

/// Whose an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryScope {
    User,
    Project,
}

/// One fact that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryEntry {
    pub path: PathBuf,
    pub scope: MemoryScope,
    pub name: String,
    pub description: String,
    pub text: String,
    /// The day it was kept, as in `2026-11-17`.
    pub date: String,
    /// The chat it came from.
    pub chat: Option<String>,
    /// Milliseconds since 1970.
    pub modified: u64,
}

/// What is in the folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryContents {
    /// Those of the project first, in each the newest first.
    pub entries: Vec<MemoryEntry>,
    /// Files that are no entries, with the reason.
    pub skipped: Vec<(PathBuf, MemoryScope, String)>,
}

impl MemoryFolders {
    pub fn read(&self) -> MemoryContents {
        let mut contents = MemoryContents::default();
        if let Some((root, inner)) = &self.project
            && linked_part(root, &root.join(inner)).is_none()
        {
            let folder = root.join(inner);
            let read = |path: &Path| {
                project_files::read_beneath(root, path.strip_prefix(root).unwrap_or(path), MAX_FILE_BYTES)
            };
            read_folder(&folder, MemoryScope::Project, &read, &mut contents);
        }
        let read = |path: &Path| project_files::read_named(path, MAX_FILE_BYTES);
        read_folder(&self.user, MemoryScope::User, &read, &mut contents);
        contents
    }

    /// The entries that a model is told of: those of a project count where the user trusts it.
    pub fn counting(&self) -> Vec<MemoryEntry> {
        let counts = |entry: &MemoryEntry| entry.scope == MemoryScope::User || self.is_trusted;
        self.read().entries.into_iter().filter(counts).collect()
    }

    /// Keeps a fact. `false`: it was there already.
    pub fn add(
        &self,
        scope: MemoryScope,
        fact: &str,
        chat: Option<&str>,
        date: &str,
    ) -> Result<bool, Failure> {
        let fact = fact.trim();
        if fact.is_empty() {
            return Err(Failure::user("There is nothing to remember."));
        }
        if fact.chars().count() > MAX_FACT {
            let failure = Failure::user(format!("This has more than {MAX_FACT} characters."));
            return Err(failure.hint("Keep a shorter fact, or write a document and name it in AGENTS.md."));
        }
        let known = self.read().entries;
        if known.iter().any(|entry| entry.scope == scope && is_same(&entry.text, fact)) {
            return Ok(false);
        }
        if known.iter().filter(|entry| entry.scope == scope).count() >= MAX_ENTRIES {
            return Err(
                Failure::user("The memory is full.").hint("`/memory-consolidate` proposes what can go.")
            );
        }
        let folder = self.folder_for_writing(scope)?;
        let slug = slug(fact);
        let chat = chat.map(|chat| format!("chat: {chat}\n")).unwrap_or_default();
        // Quotes in quotes would need a grammar that people need not know.
        let description = format!("\"{}\"", describe(fact).replace(['"', '\\'], "'"));
        let numbered = (2..MAX_ENTRIES).map(|number| format!("{slug}-{number}"));
        for name in std::iter::once(slug.clone()).chain(numbered) {
            let content =
                format!("---\nname: {name}\ndescription: {description}\ndate: {date}\n{chat}---\n\n{fact}\n");
            if write_new(&folder.join(format!("{name}.md")), &content)? {
                return Ok(true);
            }
        }
        Err(Failure::user("There are too many facts that begin with these words."))
    }

    pub fn remove(&self, entry: &MemoryEntry) -> Result<(), Failure> {
        project_files::remove_entry(&entry.path)
            .map_err(|error| Failure::user(format!("{} cannot be removed: {error}.", entry.path.display())))
    }

    /// Removes what came from a chat, where the user wants that. How many entries went.
    pub fn forget_chat(&self, chat: &str) -> usize {
        if !self.delete_with_chats {
            return 0;
        }
        let entries = self.read().entries.into_iter().filter(|entry| entry.chat.as_deref() == Some(chat));
        entries.filter(|entry| self.remove(entry).is_ok()).count()
    }

    /// The folder of a scope, made where it is not there. No link leads out of a project.
    fn folder_for_writing(&self, scope: MemoryScope) -> Result<PathBuf, Failure> {
        let failed = |folder: &Path, why: String| {
            Failure::user(format!("{} cannot be used: {why}.", folder.display()))
        };
        let (folder, root) = match (scope, &self.project) {
            (MemoryScope::User, _) => (self.user.clone(), None),
            (MemoryScope::Project, Some((root, inner))) => (root.join(inner), Some(root)),
            (MemoryScope::Project, None) => {
                return Err(Failure::user("This chat has no folder of a project."));
            }
        };
        if let Some(link) = root.and_then(|root| linked_part(root, &folder)) {
            return Err(failed(link, "it is a link".to_owned()));
        }
        platform::create_private_folder(&folder).map_err(|error| failed(&folder, error.to_string()))?;
        Ok(folder)
    }
}

/// The part of a folder of a project that is a link, and could lead out of it.
fn linked_part<'p>(root: &Path, folder: &'p Path) -> Option<&'p Path> {
    folder.ancestors().take_while(|above| *above != root).find(|above| above.is_symlink())
}

fn read_folder(
    folder: &Path,
    scope: MemoryScope,
    read: &dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
    contents: &mut MemoryContents,
) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES).flatten();
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "md"))
    {
        let text = read(&path).map_err(|error| error.to_string());
        match text.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())) {
            Ok(text) => found.push(entry(&path, scope, &text)),
            Err(why) => contents.skipped.push((path, scope, why)),
        }
    }
    found.sort_by(|one, other| other.modified.cmp(&one.modified).then_with(|| one.path.cmp(&other.path)));
    contents.entries.append(&mut found);
}

/// A file without the lines at its top is an entry too: people write such files.
fn entry(path: &Path, scope: MemoryScope, text: &str) -> MemoryEntry {
    let (values, body) = config::front_matter::split(text);
    let value = |key: &str| values.get(key).and_then(Value::as_str).map(str::to_owned);
    let body = body.trim().to_owned();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let modified = path.metadata().and_then(|metadata| metadata.modified()).ok();
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    MemoryEntry {
        scope,
        name: value("name").unwrap_or(stem),
        description: value("description").unwrap_or_else(|| describe(&body)),
        date: value("date").unwrap_or_default(),
        chat: value("chat"),
        modified: modified.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        text: body,
        path: path.to_owned(),
    }
}

/// Two facts that differ in case, white space or punctuation are one.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let plain = |text: &str| {
        let words = text.split(|it: char| !it.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect::<Vec<_>>()
    };
    plain(one) == plain(other)
}

fn describe(fact: &str) -> String {
    fact.lines().next().unwrap_or_default().chars().take(MAX_DESCRIPTION).collect()
}

/// The name of a file for a fact.
fn slug(fact: &str) -> String {
    let words = fact.split(|it: char| !it.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.take(6).map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    slug.truncate(40);
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "fact".to_owned() } else { slug.to_owned() }
}

/// Writes a file that is not there yet. `false`: another one has the name.
fn write_new(path: &Path, content: &str) -> Result<bool, Failure> {
    let temporary = path.with_extension(format!("{}.new", uuid::Uuid::now_v7()));
    let written = std::fs::OpenOptions::new().write(true).create_new(true).open(&temporary);
    let written = written.and_then(|mut file| {
        file.write_all(content.as_bytes())?;
        file.sync_all()
    });
    // Whole or not at all, and never in the place of a file that another process has written meanwhile.
    let linked = written.and_then(|()| match std::fs::hard_link(&temporary, path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(error),
        // Not every file system has such links.
        Err(_) if path.symlink_metadata().is_err() => platform::replace_file(&temporary, path),
        linked => linked,
    });
    let _ = std::fs::remove_file(&temporary);
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Failure::user(format!("{} cannot be written: {error}.", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(root: &Path) -> MemoryFolders {
        MemoryFolders {
            user: root.join("user/memory"),
            project: Some((root.join("work"), PathBuf::from(".dragoman/memory"))),
            is_trusted: false,
            may_propose: true,
            delete_with_chats: true,
        }
    }

    #[test]
    fn a_fact_is_kept_once_with_its_day_and_its_chat() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        let folders = folders(root.path());
        assert!(
            folders
                .add(MemoryScope::User, "The tests need PostgreSQL: \"15\".", Some("c1"), "2026-11-17")
                .unwrap()
        );
        assert!(
            !folders
                .add(MemoryScope::User, "the tests  need postgresql 15", Some("c2"), "2026-11-18")
                .unwrap()
        );
        assert!(folders.add(MemoryScope::Project, "Use tabs", None, "2026-11-17").unwrap());
        let entries = folders.read().entries;
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].scope, MemoryScope::Project);
        let fact = &entries[1];
        assert_eq!((fact.date.as_str(), fact.chat.as_deref()), ("2026-11-17", Some("c1")));
        assert_eq!(fact.description, "The tests need PostgreSQL: '15'.");
        assert!(fact.path.ends_with("the-tests-need-postgresql-15.md"), "{}", fact.path.display());
        let counting: Vec<String> = folders.counting().into_iter().map(|entry| entry.text).collect();
        assert_eq!(counting, ["The tests need PostgreSQL: \"15\"."], "a project counts when it is trusted");
        assert_eq!(folders.forget_chat("c1"), 1);
        assert_eq!(folders.read().entries.len(), 1);
        let kept = MemoryFolders { delete_with_chats: false, ..folders };
        assert_eq!(kept.forget_chat("c1"), 0);
    }

    #[test]
    fn a_link_of_a_project_leads_nowhere() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("work")).unwrap();
        std::fs::create_dir(root.path().join("outside")).unwrap();
        std::fs::write(root.path().join("outside/secret.md"), "secret").unwrap();
        platform::symlink(Path::new("../outside"), &root.path().join("work/.dragoman")).unwrap();
        let folders = folders(root.path());
        assert!(folders.add(MemoryScope::Project, "x", None, "").is_err());
        std::fs::create_dir(root.path().join("outside/memory")).unwrap();
        std::fs::write(root.path().join("outside/memory/a.md"), "secret").unwrap();
        assert!(folders.read().entries.is_empty());
    }
}
