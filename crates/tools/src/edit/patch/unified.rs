//! Unified diffs, as `diff -u` and git write them and as models write them: without true counts and numbers.

use super::hunk::{FilePatch, Hunk, Mark, Operation};

pub(super) fn is_form(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let has_names = lines.windows(2).any(|pair| is_names(pair[0], pair[1]));
    let has_hunk = lines.iter().any(|line| head_line(line).is_some());
    let is_marked = || lines.iter().any(|line| line.starts_with(['+', '-']));
    (has_names || has_hunk) && is_marked()
}

fn is_names(old: &str, new: &str) -> bool {
    old.starts_with("--- ") && new.starts_with("+++ ")
}

/// The first line in the old file of `@@ -12,5 +12,6 @@`.
pub(super) fn head_line(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, new) = rest.split_once(" +")?;
    new.starts_with(|char: char| char.is_ascii_digit()).then_some(())?;
    old.split(',').next()?.parse().ok()
}

/// A line of a hunk. A line without anything is one that stays and is blank: its space was lost.
pub(super) fn marked(line: &str) -> Option<(Mark, String)> {
    let mark = match line.bytes().next() {
        None | Some(b' ') => Mark::Keep,
        Some(b'-') => Mark::Remove,
        Some(b'+') => Mark::Add,
        Some(_) => return None,
    };
    Some((mark, line.get(1..).unwrap_or_default().to_owned()))
}

pub(super) fn parse(text: &str, path: Option<&str>) -> Result<Vec<FilePatch>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut reader = DiffReader { path: path.map(str::to_owned), ..DiffReader::default() };
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let next = lines.get(at + 1).copied().unwrap_or_default();
        if is_names(line, next) {
            reader.begin(file_name(line), file_name(next))?;
            at += 2;
            continue;
        }
        reader.line(line, at + 1)?;
        at += 1;
    }
    reader.end_file()?;
    Ok(reader.files)
}

#[derive(Default)]
struct DiffReader {
    files: Vec<FilePatch>,
    /// The file of hunks without a name.
    path: Option<String>,
    /// Names before and after; `None` stands for `/dev/null`.
    names: Option<(Option<String>, Option<String>)>,
    rename: (Option<String>, Option<String>),
    hunks: Vec<Hunk>,
    open: Option<Hunk>,
    unmarked: usize,
    /// The side of the last line, for the note about its end.
    last: Option<Mark>,
}

impl DiffReader {
    fn begin(&mut self, old: Option<String>, new: Option<String>) -> Result<(), String> {
        // The names of a rename are before these.
        let rename = std::mem::take(&mut self.rename);
        self.end_file()?;
        self.rename = rename;
        self.names = Some(strip_sides(old, new));
        Ok(())
    }

    fn line(&mut self, line: &str, number: usize) -> Result<(), String> {
        if line.starts_with("diff --git ") {
            return self.end_file();
        }
        if let Some(path) = line.strip_prefix("rename from ").filter(|_| self.open.is_none()) {
            self.rename.0 = Some(path.to_owned());
            return Ok(());
        }
        if let Some(path) = line.strip_prefix("rename to ").filter(|_| self.open.is_none()) {
            self.rename.1 = Some(path.to_owned());
            return Ok(());
        }
        if line.starts_with("@@") {
            self.end_hunk();
            self.open = Some(Hunk { line: head_line(line), ..Hunk::default() });
            return Ok(());
        }
        let Some(hunk) = &mut self.open else { return Ok(()) };
        if line.starts_with('\\') {
            match self.last {
                Some(Mark::Remove) => hunk.ends_with_newline = Some(true),
                Some(Mark::Add) => {
                    hunk.ends_with_newline =
                        if hunk.ends_with_newline.is_some() { None } else { Some(false) };
                }
                Some(Mark::Keep) | None => {}
            }
            return Ok(());
        }
        if line.starts_with("```") {
            self.end_hunk();
            return Ok(());
        }
        let piece = marked(line).ok_or_else(|| {
            let shown: String = line.chars().take(80).collect();
            format!(
                "Line {number} of the diff begins with neither ` `, `-` nor `+`: `{shown}`. Nothing was changed."
            )
        })?;
        self.last = Some(piece.0);
        self.unmarked = if line.is_empty() { self.unmarked + 1 } else { 0 };
        hunk.lines.push(piece);
        Ok(())
    }

    fn end_hunk(&mut self) {
        let unmarked = std::mem::take(&mut self.unmarked);
        if let Some(mut hunk) = self.open.take() {
            hunk.drop_unmarked_end(unmarked);
            if !hunk.lines.is_empty() {
                self.hunks.push(hunk);
            }
        }
        self.last = None;
    }

    fn end_file(&mut self) -> Result<(), String> {
        self.end_hunk();
        let hunks = std::mem::take(&mut self.hunks);
        let names = self.names.take();
        let rename = std::mem::take(&mut self.rename);
        if hunks.is_empty() && rename.1.is_none() {
            return Ok(());
        }
        let (old, new) = match (rename, names) {
            ((Some(old), Some(new)), _) => (Some(old), Some(new)),
            (_, Some(names)) => names,
            (_, None) => (self.path.clone(), self.path.clone()),
        };
        let (path, operation) = match (old, new) {
            (None, Some(path)) => (path, Operation::Add { content: added(&hunks) }),
            (Some(path), None) => (path, Operation::Delete),
            (Some(old), Some(new)) => {
                let move_to = (old != new).then_some(new);
                (old, Operation::Update { move_to, hunks })
            }
            (None, None) => {
                return Err("The diff names no file. Put `--- a/PATH` and `+++ b/PATH` before it.".to_owned());
            }
        };
        self.files.push(FilePatch { path, operation });
        Ok(())
    }
}

fn added(hunks: &[Hunk]) -> String {
    let lines = hunks.iter().flat_map(|hunk| &hunk.lines).filter(|(mark, _)| *mark == Mark::Add);
    let mut content: String = lines.map(|(_, line)| format!("{line}\n")).collect();
    if hunks.last().is_some_and(|hunk| hunk.ends_with_newline == Some(false)) {
        content.pop();
    }
    content
}

/// The name in `--- a/src/main.rs` and the date behind it; `None`: `/dev/null`.
fn file_name(line: &str) -> Option<String> {
    let name = line[4..].split('\t').next().unwrap_or_default().trim();
    (name != "/dev/null").then(|| name.trim_matches('"').to_owned())
}

/// Git writes `a/` and `b/` before the names.
fn strip_sides(old: Option<String>, new: Option<String>) -> (Option<String>, Option<String>) {
    let is_side = |name: &Option<String>, side: &str| name.as_ref().is_none_or(|name| name.starts_with(side));
    if is_side(&old, "a/") && is_side(&new, "b/") {
        let strip = |name: Option<String>| name.map(|name| name[2..].to_owned());
        return (strip(old), strip(new));
    }
    (old, new)
}
