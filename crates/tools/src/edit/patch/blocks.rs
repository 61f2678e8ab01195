//! Search/replace blocks, as aider and its like have taught them: old lines and new lines between marks of a merge conflict.

use super::hunk::{FilePatch, Hunk, Operation};

pub(super) fn is_form(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end);
    lines.any(is_begin) && lines.any(is_middle) && lines.any(is_end)
}

fn is_begin(line: &str) -> bool {
    let rest = line.trim_start_matches('<');
    (5..=9).contains(&(line.len() - rest.len())) && matches!(rest.trim(), "SEARCH" | "ORIGINAL" | "OLD")
}

fn is_middle(line: &str) -> bool {
    (5..=9).contains(&line.len()) && line.bytes().all(|byte| byte == b'=')
}

fn is_end(line: &str) -> bool {
    let rest = line.trim_start_matches('>');
    (5..=9).contains(&(line.len() - rest.len())) && matches!(rest.trim(), "REPLACE" | "UPDATED" | "NEW")
}

pub(super) fn parse(text: &str, path: Option<&str>) -> Result<Vec<FilePatch>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut files: Vec<FilePatch> = Vec::new();
    let mut named: Option<String> = path.map(str::to_owned);
    let mut at = 0;
    let mut outside = 0;
    while at < lines.len() {
        if !is_begin(lines[at].trim_end()) {
            at += 1;
            continue;
        }
        named = name_before(&lines[outside..at]).or(named);
        let end = block_end(&lines, at)?;
        let middle =
            at + 1 + lines[at + 1..end].iter().position(|line| is_middle(line.trim_end())).unwrap_or(0);
        let path =
            named.clone().ok_or("A block names no file. Put its path on the line before the block.")?;
        files.push(file(path, &lines[at + 1..middle], &lines[middle + 1..end]));
        at = end + 1;
        outside = at;
    }
    Ok(files)
}

/// The line that ends a block which begins at `at` and has one middle.
fn block_end(lines: &[&str], at: usize) -> Result<usize, String> {
    let rest = &lines[at + 1..];
    let end = rest.iter().position(|line| is_end(line.trim_end()) || is_begin(line.trim_end()));
    let end = end.filter(|end| is_end(rest[*end].trim_end()));
    let end = end.ok_or_else(|| {
        format!("The block from line {} does not end with `>>>>>>> REPLACE`. Nothing was changed.", at + 1)
    })?;
    match rest[..end].iter().filter(|line| is_middle(line.trim_end())).count() {
        1 => Ok(at + 1 + end),
        count => Err(format!(
            "The block from line {} has {count} lines `=======` and needs one. Nothing was changed. Use edit_file \
             for text with such lines.",
            at + 1
        )),
    }
}

fn file(path: String, old: &[&str], new: &[&str]) -> FilePatch {
    if old.iter().all(|line| line.trim().is_empty()) {
        let content = new.iter().map(|line| format!("{line}\n")).collect();
        return FilePatch { path, operation: Operation::Add { content } };
    }
    let hunks = vec![Hunk::replacing(old, new)];
    FilePatch { path, operation: Operation::Update { move_to: None, hunks } }
}

/// The last line before a block that can be a path.
fn name_before(lines: &[&str]) -> Option<String> {
    let line = lines
        .iter()
        .rev()
        .map(|line| line.trim())
        .find(|line| !line.is_empty() && !line.starts_with("```"))?;
    let name = line.trim_start_matches(['#', '*', '`', ' ']).trim_end_matches([':', '*', '`', ' ']);
    (!name.is_empty() && !name.contains(char::is_whitespace)).then(|| name.to_owned())
}
