//! Makes the cases: a file of the repository, an edit of it, and the call that a model would write, with its usual mistakes.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Format {
    Exact,
    Numbered,
    Whitespace,
    Typography,
    Escapes,
    Stale,
    ApplyPatch,
    Unified,
    Blocks,
    Whole,
    Anchors,
    Several,
}

pub(super) const FORMATS: [Format; 12] = [
    Format::Exact,
    Format::Numbered,
    Format::Whitespace,
    Format::Typography,
    Format::Escapes,
    Format::Stale,
    Format::ApplyPatch,
    Format::Unified,
    Format::Blocks,
    Format::Whole,
    Format::Anchors,
    Format::Several,
];

impl Format {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact text",
            Self::Numbered => "text with line numbers",
            Self::Whitespace => "whitespace off",
            Self::Typography => "typographic quotes and dashes",
            Self::Escapes => "literal `\\n`",
            Self::Stale => "stale context (must be refused)",
            Self::ApplyPatch => "`apply_patch`",
            Self::Unified => "unified diff",
            Self::Blocks => "search/replace blocks",
            Self::Whole => "whole file",
            Self::Anchors => "anchors (`@@` lines)",
            Self::Several => "several edits in one call",
        }
    }

    /// Percent of the open cases that must be applied.
    pub(super) fn least_applied(self) -> usize {
        match self {
            Self::Stale => 0,
            Self::Escapes | Self::Anchors => 50,
            Self::Whitespace | Self::Typography => 70,
            _ => 85,
        }
    }
}

pub(super) struct Case {
    pub path: String,
    pub before: Vec<u8>,
    pub tool: &'static str,
    pub input: Value,
    /// `None`: it must be refused.
    pub wanted: Option<Vec<u8>>,
}

impl Case {
    pub(super) fn describe(&self) -> String {
        format!("{} {}\n{:#}\n", self.tool, self.path, self.input)
    }
}

/// Small and the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }
}

/// Source files and pages of this repository, in the order of their names.
pub(super) fn sources() -> Vec<(String, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in ["crates", "docs", "scripts", "xtask/src"] {
        collect(&root.join(folder), &mut files);
    }
    files.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let name = path.file_name()?.to_str()?.to_owned();
        ((20..900).contains(&lines.len()) && !text.contains('\r')).then_some((name, lines))
    };
    files.into_iter().filter_map(read).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_hidden =
            entry.file_name().to_string_lossy().starts_with(['.', 't']) && path.ends_with("target");
        if path.is_dir() && !is_hidden {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|it| ["rs", "md", "sh", "py", "toml"].iter().any(|own| it == *own))
        {
            files.push(path);
        }
    }
}

/// How the file is stored.
#[derive(Clone, Copy)]
struct Form {
    has_carriage: bool,
    has_mark: bool,
    has_last_end: bool,
}

impl Form {
    fn bytes(self, lines: &[String]) -> Vec<u8> {
        let end = if self.has_carriage { "\r\n" } else { "\n" };
        let mut text = lines.join(end);
        if self.has_last_end {
            text.push_str(end);
        }
        let mark: &[u8] = if self.has_mark { b"\xef\xbb\xbf" } else { b"" };
        [mark, text.as_bytes()].concat()
    }
}

/// Lines of a file that become others.
struct Edit {
    from: usize,
    old: Vec<String>,
    new: Vec<String>,
}

impl Edit {
    fn apply(&self, lines: &[String]) -> Vec<String> {
        let rest = &lines[self.from + self.old.len()..];
        lines[..self.from].iter().chain(&self.new).chain(rest).cloned().collect()
    }
}

/// Some lines, of which one is changed, or one comes or goes. The first and the last line stay.
fn edit(dice: &mut Dice, lines: &[String]) -> Option<Edit> {
    let count = 3 + dice.roll(5);
    let from = 1 + dice.roll(lines.len().checked_sub(count + 2)?);
    let old: Vec<String> = lines[from..from + count].to_vec();
    if old[0].trim().is_empty() || old[count - 1].trim().is_empty() {
        return None;
    }
    let mut new = old.clone();
    let at = 1 + dice.roll(count - 2);
    match dice.roll(4) {
        0 | 1 => new[at] = rename(&new[at], dice)?,
        2 => {
            let line = rename(&old[at], dice)?;
            new.insert(at, line);
        }
        _ if count > 3 && !old[at].trim().is_empty() => drop(new.remove(at)),
        _ => return None,
    }
    let is_short = dice.roll(4) == 0 && old.len() == new.len();
    match is_short {
        // The changed line alone, which may be there several times.
        true => Some(Edit { from: from + at, old: vec![old[at].clone()], new: vec![new[at].clone()] }),
        false => Some(Edit { from, old, new }),
    }
}

/// The line with one of its words changed.
fn rename(line: &str, dice: &mut Dice) -> Option<String> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, char) in line.char_indices().chain([(line.len(), ' ')]) {
        match (char.is_ascii_alphanumeric() || char == '_', start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                words.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    let word = words.get(dice.roll(words.len()))?.clone();
    let mut changed = line.to_owned();
    changed.insert_str(word.end, &format!("_x{}", dice.roll(90)));
    Some(changed)
}

pub(super) fn case(sources: &[(String, Vec<String>)], format: Format, seed: u64) -> Option<Case> {
    let mut dice = Dice((seed << 8 | format as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    dice.roll(2);
    let (path, lines) = &sources[dice.roll(sources.len())];
    let form =
        Form { has_carriage: dice.roll(4) == 0, has_mark: dice.roll(8) == 0, has_last_end: dice.roll(6) > 0 };
    let edit = edit(&mut dice, lines)?;
    let mut made = Made { path, lines: lines.clone(), wanted: Some(edit.apply(lines)), call: None };
    match format {
        Format::Exact => made.replace(&edit.old, &edit.new),
        Format::Numbered => numbered(&edit, &mut dice, &mut made),
        Format::Whitespace => whitespace(&edit, &mut dice, &mut made)?,
        Format::Typography => typography(&edit, &mut dice, &mut made)?,
        Format::Escapes => escapes(&edit, &mut dice, &mut made),
        Format::Stale => stale(&edit, &mut dice, &mut made)?,
        Format::ApplyPatch => made.patch(envelope(path, lines, &edit, None)),
        Format::Unified => unified(&edit, &mut dice, &mut made),
        Format::Blocks => blocks(&edit, &mut dice, &mut made),
        Format::Whole => {
            let content = made.wanted.iter().flatten().map(|line| format!("{line}\n")).collect::<String>();
            let content = if form.has_last_end { content } else { content.trim_end_matches('\n').to_owned() };
            made.call = Some(("write_file", json!({"path": path, "content": content})));
        }
        Format::Anchors => anchors(&edit, lines, &mut made)?,
        Format::Several => several(&mut dice, &edit, &mut made)?,
    }
    let (tool, input) = made.call?;
    let before = form.bytes(&made.lines);
    let wanted = made.wanted.map(|lines| form.bytes(&lines));
    // The last line of a file whose last line is blank has no end of its own.
    let is_clear = made.lines.last().is_some_and(|last| !last.is_empty());
    (is_clear && wanted.as_ref() != Some(&before)).then(|| Case {
        path: path.clone(),
        before,
        tool,
        input,
        wanted,
    })
}

struct Made<'a> {
    path: &'a str,
    lines: Vec<String>,
    wanted: Option<Vec<String>>,
    call: Option<(&'static str, Value)>,
}

impl Made<'_> {
    fn replace(&mut self, old: &[String], new: &[String]) {
        self.replace_text(&old.join("\n"), &new.join("\n"));
    }

    fn replace_text(&mut self, old: &str, new: &str) {
        let input = json!({"path": self.path, "original_content": old, "new_content": new});
        self.call = Some(("edit_file", input));
    }

    fn patch(&mut self, patch: String) {
        self.call = Some(("apply_patch", json!({"input": patch})));
    }
}

fn numbered(edit: &Edit, dice: &mut Dice, made: &mut Made<'_>) {
    let with = |lines: &[String]| -> Vec<String> {
        lines.iter().enumerate().map(|(at, line)| format!("{}\t{line}", edit.from + at + 1)).collect()
    };
    // Some models number the new lines on, others leave the numbers out.
    let new = if dice.roll(2) == 0 { with(&edit.new) } else { edit.new.clone() };
    made.replace(&with(&edit.old), &new);
}

fn blank_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn whitespace(edit: &Edit, dice: &mut Dice, made: &mut Made<'_>) -> Option<()> {
    let all = || edit.old.iter().chain(&edit.new).filter(|line| !line.trim().is_empty());
    let common = all().map(|line| blank_of(line)).min().unwrap_or(0);
    let spaces = |line: &str| line[..blank_of(line)].bytes().all(|byte| byte == b' ');
    let change: Box<dyn Fn(&String) -> String> = match dice.roll(6) {
        0 if common > 0 => Box::new(move |line| line.get(common..).unwrap_or_default().to_owned()),
        1 => Box::new(|line| if line.is_empty() { String::new() } else { format!("    {line}") }),
        2 => Box::new(|line| format!("{line}  ")),
        3 if all().all(|line| spaces(line) && blank_of(line).is_multiple_of(4))
            && all().any(|line| blank_of(line) > 0) =>
        {
            Box::new(|line| format!("{}{}", "\t".repeat(blank_of(line) / 4), line.trim_start()))
        }
        4 if all().all(|line| spaces(line) && blank_of(line).is_multiple_of(4))
            && all().any(|line| blank_of(line) > 0) =>
        {
            Box::new(|line| format!("{}{}", " ".repeat(blank_of(line) / 2), line.trim_start()))
        }
        5 if all().all(|line| spaces(line) && blank_of(line).is_multiple_of(4)) => {
            // The file has tabs, and the model writes spaces.
            fn tabs(lines: &[String]) -> Vec<String> {
                let tab = |line: &String| {
                    let blank = blank_of(line);
                    let is_plain = line[..blank].bytes().all(|byte| byte == b' ') && blank.is_multiple_of(4);
                    if is_plain {
                        format!("{}{}", "\t".repeat(blank / 4), line.trim_start())
                    } else {
                        line.clone()
                    }
                };
                lines.iter().map(tab).collect()
            }
            made.lines = tabs(&made.lines);
            made.wanted = made.wanted.as_deref().map(tabs);
            Box::new(String::clone)
        }
        _ => return None,
    };
    let old: Vec<String> = edit.old.iter().map(&change).collect();
    let new: Vec<String> = edit.new.iter().map(&change).collect();
    made.replace(&old, &new);
    Some(())
}

/// As word processors write it.
fn typographic(line: &str) -> String {
    let mut is_open = false;
    line.chars()
        .map(|char| match char {
            '"' => {
                is_open = !is_open;
                if is_open { '\u{201c}' } else { '\u{201d}' }
            }
            '\'' => '\u{2019}',
            '-' => '\u{2013}',
            other => other,
        })
        .collect()
}

fn typography(edit: &Edit, dice: &mut Dice, made: &mut Made<'_>) -> Option<()> {
    let is_plain = |line: &String| line.is_ascii();
    if !edit.old.iter().chain(&edit.new).all(is_plain)
        || !edit.old.iter().any(|line| typographic(line) != *line)
    {
        return None;
    }
    let all = |lines: &[String]| -> Vec<String> { lines.iter().map(|line| typographic(line)).collect() };
    if dice.roll(2) == 0 {
        made.replace(&all(&edit.old), &all(&edit.new));
        return Some(());
    }
    // The file has them, and the model writes plain ones.
    let end = edit.from + edit.old.len();
    let (head, tail) = (&made.lines[..edit.from], &made.lines[end..]);
    let with = |middle: Vec<String>| [head, &middle, tail].concat();
    let (before, wanted) = (with(all(&edit.old)), with(all(&edit.new)));
    (made.lines, made.wanted) = (before, Some(wanted));
    made.replace(&edit.old, &edit.new);
    Some(())
}

fn escapes(edit: &Edit, dice: &mut Dice, made: &mut Made<'_>) {
    let (old, new) = (edit.old.join("\n"), edit.new.join("\n"));
    let encode = |text: &str| -> String {
        let quoted = Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    if dice.roll(2) == 0 {
        made.replace_text(&encode(&old), &encode(&new));
    } else {
        made.replace_text(&old.replace('\n', "\\n"), &new.replace('\n', "\\n"));
    }
}

/// A line that stays is not as the model remembers it.
fn stale(edit: &Edit, dice: &mut Dice, made: &mut Made<'_>) -> Option<()> {
    if edit.old.len() < 3 {
        return None;
    }
    let at = if dice.roll(2) == 0 { 0 } else { edit.old.len() - 1 };
    let wrong = rename(&edit.old[at], dice)?;
    if made.lines.contains(&wrong) {
        return None;
    }
    let change = |lines: &[String], at: usize| {
        let mut lines = lines.to_vec();
        lines[at] = wrong.clone();
        lines
    };
    let new_at = if at == 0 { 0 } else { edit.new.len() - 1 };
    let stale = Edit { from: edit.from, old: change(&edit.old, at), new: change(&edit.new, new_at) };
    made.wanted = None;
    match dice.roll(3) {
        0 => made.replace(&stale.old, &stale.new),
        1 => {
            let mut lines = made.lines.clone();
            lines[edit.from + at] = wrong.clone();
            let (_, hunk) = hunk(&lines, &stale, edit.old.len());
            let patch = format!("*** Update File: {}\n@@\n{}", made.path, hunk.join("\n"));
            made.patch(format!("*** Begin Patch\n{patch}\n*** End Patch"));
        }
        _ => {
            let patch = block(&stale);
            made.call = Some(("edit_file", json!({"path": made.path, "patch": patch})));
        }
    }
    Some(())
}

/// The lines of a hunk with up to three lines around the change.
fn hunk(lines: &[String], edit: &Edit, around: usize) -> (usize, Vec<String>) {
    let head = edit.old.iter().zip(&edit.new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&edit.old[head..], &edit.new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (from, gone) = (edit.from + head, old.len() - tail);
    let start = from.saturating_sub(around);
    let end = (from + gone + around).min(lines.len());
    let mut hunk: Vec<String> = lines[start..from].iter().map(|line| format!(" {line}")).collect();
    hunk.extend(old[..gone].iter().map(|line| format!("-{line}")));
    hunk.extend(new[..new.len() - tail].iter().map(|line| format!("+{line}")));
    hunk.extend(lines[from + gone..end].iter().map(|line| format!(" {line}")));
    (start, hunk)
}

fn envelope(path: &str, lines: &[String], edit: &Edit, anchor: Option<(&str, usize)>) -> String {
    let (head, around) =
        anchor.map_or(("@@".to_owned(), 3), |(anchor, around)| (format!("@@ {anchor}"), around));
    let (_, hunk) = hunk(lines, edit, around);
    format!("*** Begin Patch\n*** Update File: {path}\n{head}\n{}\n*** End Patch", hunk.join("\n"))
}

fn unified(edit: &Edit, dice: &mut Dice, made: &mut Made<'_>) {
    let (start, hunk) = hunk(&made.lines, edit, 3);
    // Models count badly.
    let number = if dice.roll(2) == 0 { start + 1 } else { start + 1 + dice.roll(40) };
    let count = hunk.iter().filter(|line| !line.starts_with('+')).count();
    let path = made.path;
    let head = format!("--- a/{path}\n+++ b/{path}\n@@ -{number},{count} +{number},{count} @@\n");
    let hunk = if dice.roll(3) == 0 {
        // The space before a blank line is lost on the way.
        hunk.into_iter().map(|line| if line == " " { String::new() } else { line }).collect()
    } else {
        hunk
    };
    let diff = format!("{head}{}\n", hunk.join("\n"));
    match dice.roll(3) {
        0 => made.call = Some(("edit_file", json!({"path": path, "diff": diff}))),
        1 => {
            made.call =
                Some(("edit_file", json!({"path": path, "original_content": "", "new_content": diff})))
        }
        _ => made.patch(diff),
    }
}

fn block(edit: &Edit) -> String {
    let (old, new) = (edit.old.join("\n"), edit.new.join("\n"));
    format!("<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n")
}

fn blocks(edit: &Edit, dice: &mut Dice, made: &mut Made<'_>) {
    let block = block(edit);
    match dice.roll(3) {
        0 => made.call = Some(("edit_file", json!({"path": made.path, "new_content": block}))),
        1 => made.call = Some(("edit_file", json!({"path": made.path, "patch": block}))),
        _ => made.patch(format!("{}\n```\n{block}```\n", made.path)),
    }
}

/// One line of context, and the line that opens what encloses it.
fn anchors(edit: &Edit, lines: &[String], made: &mut Made<'_>) -> Option<()> {
    let own = blank_of(&edit.old[0]);
    let opens = |line: &&String| !line.trim().is_empty() && blank_of(line) < own;
    let anchor = lines[..edit.from].iter().rev().find(opens)?;
    if anchor.trim().len() < 8 || anchor.trim_start().starts_with(['}', ')', ']', '#', '/']) {
        return None;
    }
    made.patch(envelope(made.path, lines, edit, Some((anchor.trim(), 1))));
    Some(())
}

/// A second edit further down, in the same call.
fn several(dice: &mut Dice, first: &Edit, made: &mut Made<'_>) -> Option<()> {
    let after = first.from + first.old.len();
    let second = edit(dice, made.lines.get(after..)?)?;
    let second = Edit { from: second.from + after, ..second };
    made.wanted = Some(first.apply(&second.apply(&made.lines)));
    if dice.roll(2) == 0 {
        let one = |edit: &Edit| json!({"old_str": edit.old.join("\n"), "new_str": edit.new.join("\n")});
        made.call = Some(("edit_file", json!({"path": made.path, "edits": [one(first), one(&second)]})));
        return Some(());
    }
    let (_, one) = hunk(&made.lines, first, 2);
    let (_, other) = hunk(&made.lines, &second, 2);
    if after + 4 > second.from {
        return None;
    }
    let hunks = format!("@@\n{}\n@@\n{}", one.join("\n"), other.join("\n"));
    made.patch(format!("*** Begin Patch\n*** Update File: {}\n{hunks}\n*** End Patch\n", made.path));
    Some(())
}
