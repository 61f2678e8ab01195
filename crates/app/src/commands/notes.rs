//! `#note` of the terminal: a line for the file with the project's instructions.
//!
//! Invariants: the note goes to the file that models are given, and that file stays the one they are given; a link is followed
//! within the project only, and stays a link.

use std::io::Write;
use std::path::{Path, PathBuf};

use domain::Failure;

/// The file of a project that has none.
const NEW_FILE: &str = "AGENTS.md";
/// The file of a project that has rules of Cursor: without a head it holds for every chat.
const CURSOR_NOTES: &str = "notes.md";

/// Adds a line to the instructions of the first folder, else of the current one; gives the path to be shown.
pub(super) fn of(roots: &[PathBuf]) -> impl Fn(String) -> Result<String, Failure> + Send + Sync + use<> {
    let root = roots.first().cloned().unwrap_or_else(|| PathBuf::from("."));
    move |text| add(&root, &text)
}

fn add(root: &Path, text: &str) -> Result<String, Failure> {
    let named = file_for_notes(root);
    let shown = named.strip_prefix(root).unwrap_or(&named).display().to_string();
    let failed = |error: std::io::Error| Failure::user(format!("{shown} cannot be written: {error}."));
    let path = target(root, &named, &shown)?;
    let mut content = match std::fs::read_to_string(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    if !content.is_empty() && !content.ends_with('\n') {
        content.push('\n');
    }
    content.push_str(&format!("- {text}\n"));
    if content.len() > engine::INSTRUCTIONS_LIMIT {
        let limit = engine::INSTRUCTIONS_LIMIT >> 10;
        let failure = Failure::user(format!("{shown} is full: models are given its first {limit} KiB."));
        return Err(failure.hint("Shorten the file, then add the note again."));
    }
    replace(&path, &content).map_err(failed)?;
    Ok(shown)
}

/// The file in use; where none is, a file that is there without text, else a new one.
fn file_for_notes(root: &Path) -> PathBuf {
    match engine::instruction_file(root) {
        // A file of this folder holds for the files that it names, and a note for all.
        Some(folder) if folder.ends_with(".github/instructions") => {
            folder.with_file_name("copilot-instructions.md")
        }
        Some(folder) if folder.is_dir() => folder.join(CURSOR_NOTES),
        Some(file) => file,
        None => root.join(NEW_FILE),
    }
}

/// The file itself, where links lead to it within the project.
fn target(root: &Path, named: &Path, shown: &str) -> Result<PathBuf, Failure> {
    let inside = |path: &PathBuf| root.canonicalize().is_ok_and(|root| path.starts_with(root));
    let real = if named.is_symlink() {
        named.canonicalize().ok()
    } else {
        // A folder on the way may be a link too.
        let folder = named.parent().and_then(|folder| folder.canonicalize().ok());
        folder.zip(named.file_name()).map(|(folder, name)| folder.join(name))
    };
    real.filter(inside).ok_or_else(|| {
        Failure::user(format!("{shown} is a link that leads out of the project, so it is not changed."))
            .hint("Edit the file it names.")
    })
}

/// Replaces a file as a whole.
fn replace(path: &Path, content: &str) -> std::io::Result<()> {
    let permissions = match std::fs::metadata(path) {
        Ok(metadata) => Some(metadata.permissions()),
        Err(_) => platform::permissions_for_all(),
    };
    let mut builder = tempfile::Builder::new();
    if let Some(permissions) = permissions {
        builder.permissions(permissions);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(content.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The files of a project before the note, and the file that has it and is in use after it.
    #[test]
    fn a_note_goes_to_the_file_in_use_which_stays_in_use() {
        for (files, expected) in [
            (&[][..], "AGENTS.md"),
            (&[("AGENTS.md", "a")][..], "AGENTS.md"),
            (&[("CLAUDE.md", "c")], "CLAUDE.md"),
            (&[("GEMINI.md", "g")], "GEMINI.md"),
            (&[("CLAUDE.md", "c"), ("GEMINI.md", "g")], "CLAUDE.md"),
            (&[("AGENTS.md", "a"), ("CLAUDE.md", "c")], "AGENTS.md"),
            // An empty file is not in use.
            (&[("AGENTS.md", " \n"), ("CLAUDE.md", "c")], "CLAUDE.md"),
            (&[("AGENTS.md", "")], "AGENTS.md"),
            (&[(".cursor/rules/a.md", "Use tabs.")], ".cursor/rules/notes.md"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            for (name, content) in files {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            let before = engine::instruction_file(folder.path());
            assert_eq!(add(folder.path(), "be brief").unwrap(), expected, "{files:?}");
            let content = fs::read_to_string(folder.path().join(expected)).unwrap();
            assert!(content.ends_with("- be brief\n"), "{content}");
            let after = engine::instruction_file(folder.path());
            assert!(after.is_some() && (before.is_none() || before == after), "{before:?} {after:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_within_the_project_and_stays_a_link() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("project");
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("docs/rules.md"), "Use tabs.\n").unwrap();
        std::os::unix::fs::symlink("docs/rules.md", root.join("CLAUDE.md")).unwrap();
        assert_eq!(add(&root, "be brief").unwrap(), "CLAUDE.md");
        assert!(root.join("CLAUDE.md").is_symlink() && !root.join("AGENTS.md").exists());
        assert_eq!(fs::read_to_string(root.join("docs/rules.md")).unwrap(), "Use tabs.\n- be brief\n");
        fs::remove_file(root.join("CLAUDE.md")).unwrap();
        fs::write(outer.path().join("other.md"), "x").unwrap();
        std::os::unix::fs::symlink("../other.md", root.join("AGENTS.md")).unwrap();
        let failure = add(&root, "be brief").unwrap_err();
        assert!(failure.message.contains("leads out of the project"), "{failure}");
        assert_eq!(fs::read_to_string(outer.path().join("other.md")).unwrap(), "x");
        // A folder on the way that leads out of the project.
        fs::create_dir(outer.path().join("rules")).unwrap();
        std::os::unix::fs::symlink("../rules", root.join("linked")).unwrap();
        assert!(target(&root, &root.join("linked/notes.md"), "linked/notes.md").is_err());
        assert!(target(&root, &root.join("docs/notes.md"), "docs/notes.md").is_ok());
    }

    #[test]
    fn a_note_that_no_model_would_be_given_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("CLAUDE.md");
        fs::write(&path, "x".repeat(engine::INSTRUCTIONS_LIMIT - 3)).unwrap();
        let failure = add(folder.path(), "be brief").unwrap_err();
        assert!(failure.message.contains("32 KiB"), "{failure}");
        assert_eq!(fs::read(&path).unwrap().len(), engine::INSTRUCTIONS_LIMIT - 3);
    }
}
