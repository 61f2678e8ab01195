//! Files with instructions of folders: which of them count, in which order, and why another does not.
//!
//! Must not know sessions. Invariants: one function, [`read_folder`], decides about a folder, by one table; a text counts
//! once, however many names and imports lead to it; nothing is read outside of the project; a file that is a fallback never
//! is beside `AGENTS.md` or `CLAUDE.md`.

mod imports;
mod looks;
mod rule_files;
pub(crate) mod set;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use imports::Importer;
pub(crate) use looks::Looks;
use set::limit;
pub use set::{InstructionFile, InstructionSet, LIMIT, LeftOutFile};

/// When a place counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Always,
    /// Where there is no `CLAUDE.md` beside it.
    WithoutClaude,
    /// Where the folder has neither `AGENTS.md` nor `CLAUDE.md`.
    WithoutOwn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PlaceKind {
    File,
    /// A folder of rules, each a file with one of these endings.
    Rules(&'static [&'static str]),
}

/// The order of precedence within a folder. docs/instructions.md has the same table.
const PLACES: [(&str, PlaceKind, Counts); 8] = [
    ("AGENTS.md", PlaceKind::File, Counts::Always),
    ("CLAUDE.md", PlaceKind::File, Counts::Always),
    (".claude/CLAUDE.md", PlaceKind::File, Counts::WithoutClaude),
    ("CLAUDE.local.md", PlaceKind::File, Counts::Always),
    ("GEMINI.md", PlaceKind::File, Counts::WithoutOwn),
    (".cursor/rules", PlaceKind::Rules(&[".mdc", ".md"]), Counts::WithoutOwn),
    (".github/copilot-instructions.md", PlaceKind::File, Counts::WithoutOwn),
    (".github/instructions", PlaceKind::Rules(&[".instructions.md"]), Counts::WithoutOwn),
];

/// The folders whose instructions hold from the start of a chat, outermost first.
pub struct Folders<'a> {
    /// The user's own file, for all chats.
    pub global: Option<&'a Path>,
    pub roots: &'a [PathBuf],
    /// The folders above the roots count too.
    pub with_parents: bool,
    /// A rule of the user forbids to read it.
    pub is_forbidden: &'a dyn Fn(&Path) -> bool,
}

/// Reads everything that holds from the start of a chat, with files for some patterns among it. At most [`LIMIT`] bytes.
pub fn read_all(folders: &Folders<'_>) -> InstructionSet {
    read_and_note(folders).0
}

/// The same, with what the disk had where files were looked for.
pub(crate) fn read_and_note(folders: &Folders<'_>) -> (InstructionSet, Looks) {
    let mut importer = Importer::new(folders.is_forbidden);
    if let Some((path, folder)) = folders.global.and_then(|path| Some((path, path.parent()?))) {
        importer.add_global(folder, path);
    }
    for root in folders.roots {
        let count = if folders.with_parents { usize::MAX } else { 1 };
        let mut all: Vec<&Path> = root.ancestors().take(count).collect();
        all.reverse();
        for folder in all {
            read_folder(&mut importer, folder, folder);
        }
    }
    let (mut set, looks) = importer.into_set();
    // Those for some files are given later, and limited then.
    let (later, now) = set.files.into_iter().partition(|file: &InstructionFile| !file.globs.is_empty());
    set.files = now;
    limit(&mut set, LIMIT);
    set.files.extend::<Vec<InstructionFile>>(later);
    (set, looks)
}

/// Reads the files of folders below a root, outermost first, that say something beyond what is known.
pub(crate) fn read_nested(
    root: &Path,
    folders: &[PathBuf],
    known: &InstructionSet,
    is_forbidden: &dyn Fn(&Path) -> bool,
) -> InstructionSet {
    let mut importer = Importer::new(is_forbidden).knowing(known);
    for folder in folders {
        read_folder(&mut importer, root, folder);
    }
    importer.into_set().0
}

/// Decides which files of a folder count. Links and imports stay below `boundary`.
fn read_folder(importer: &mut Importer<'_>, boundary: &Path, folder: &Path) {
    let mut is_own = false;
    let mut has_claude = false;
    for (name, kind, counts) in PLACES {
        let path = folder.join(name);
        let why_not = match counts {
            Counts::WithoutClaude if has_claude => Some("CLAUDE.md beside it counts"),
            Counts::WithoutOwn if is_own => Some("AGENTS.md or CLAUDE.md counts in this folder"),
            Counts::Always | Counts::WithoutClaude | Counts::WithoutOwn => None,
        };
        if let Some(why) = why_not {
            importer.note_place(&path);
            if path.symlink_metadata().is_ok() {
                importer.leave_out(&path, why);
            }
            continue;
        }
        let has_text = match kind {
            PlaceKind::File => importer.add_file(boundary, &path),
            PlaceKind::Rules(endings) => rule_files::add(importer, boundary, &path, endings),
        };
        has_claude |= has_text && name == "CLAUDE.md";
        is_own |= has_text && matches!(name, "AGENTS.md" | "CLAUDE.md" | ".claude/CLAUDE.md");
    }
}

/// The file with the instructions of a folder that models are given, or the folder of such files.
pub fn instruction_file(folder: &Path) -> Option<PathBuf> {
    let mut importer = Importer::new(&|_| false);
    read_folder(&mut importer, folder, folder);
    let files = importer.into_set().0.files;
    let place_of = |file: &InstructionFile| {
        let (name, ..) = PLACES.iter().find(|(name, ..)| file.path.starts_with(folder.join(name)))?;
        (*name != "CLAUDE.local.md").then(|| folder.join(name))
    };
    files.iter().find_map(place_of)
}
