//! The form of OpenAI's `apply_patch`: files between `*** Begin Patch` and `*** End Patch`.

use super::hunk::{FilePatch, Hunk, Operation};
use super::unified;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

pub(super) fn is_form(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_end();
        line == BEGIN || [ADD, DELETE, UPDATE].iter().any(|head| line.starts_with(head))
    })
}

pub(super) fn parse(text: &str) -> Result<Vec<FilePatch>, String> {
    let all: Vec<&str> = text.lines().collect();
    let is = |line: &&str, mark: &str| line.trim() == mark;
    let begin = all.iter().position(|line| is(line, BEGIN));
    let end = all.iter().rposition(|line| is(line, END));
    let lines = match (begin, end) {
        (Some(begin), Some(end)) if begin < end => &all[begin + 1..end],
        (None, end) => &all[..end.unwrap_or(all.len())],
        _ => {
            return Err(format!(
                "The patch begins with `{BEGIN}` and does not end with `{END}`; it may have been cut. Nothing was \
                 changed. Send it whole."
            ));
        }
    };
    let mut reader = Reader { lines, at: 0, first: begin.map_or(1, |begin| begin + 2) };
    let mut files = Vec::new();
    while let Some(line) = reader.next() {
        if line.trim().is_empty() {
            continue;
        }
        files.push(reader.file(line)?);
    }
    Ok(files)
}

struct Reader<'a> {
    lines: &'a [&'a str],
    at: usize,
    /// The number of the first line, for messages.
    first: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let line = self.lines.get(self.at)?;
        self.at += 1;
        Some(line)
    }

    /// The next line, unless it begins the next file.
    fn next_of_file(&mut self) -> Option<&'a str> {
        let line = self.lines.get(self.at)?;
        if [ADD, DELETE, UPDATE].iter().any(|head| line.starts_with(head)) {
            return None;
        }
        self.next()
    }

    fn problem(&self, what: &str) -> String {
        let number = self.first + self.at - 1;
        let line = self.lines.get(self.at.saturating_sub(1)).copied().unwrap_or_default();
        let shown: String = line.chars().take(80).collect();
        format!("Line {number} of the patch {what}: `{shown}`. Nothing was changed.")
    }

    fn file(&mut self, head: &str) -> Result<FilePatch, String> {
        let named = |mark: &str| head.strip_prefix(mark).map(|path| path.trim().to_owned());
        let (path, operation) = if let Some(path) = named(ADD) {
            (path, Operation::Add { content: self.added()? })
        } else if let Some(path) = named(DELETE) {
            while let Some(line) = self.next_of_file() {
                if !line.trim().is_empty() {
                    return Err(self.problem("follows a deleted file"));
                }
            }
            (path, Operation::Delete)
        } else if let Some(path) = named(UPDATE) {
            (path, self.updated()?)
        } else {
            return Err(self.problem("is not the head of a file (`*** Update File: PATH`, Add or Delete)"));
        };
        if path.is_empty() {
            return Err(self.problem("names no file"));
        }
        Ok(FilePatch { path, operation })
    }

    fn added(&mut self) -> Result<String, String> {
        let mut content = String::new();
        let mut blank = 0;
        while let Some(line) = self.next_of_file() {
            match line.strip_prefix('+') {
                Some(line) => {
                    content.push_str(&"\n".repeat(std::mem::take(&mut blank)));
                    content.push_str(line);
                    content.push('\n');
                }
                None if line.trim().is_empty() => blank += 1,
                None => return Err(self.problem("of a new file does not begin with `+`")),
            }
        }
        Ok(content)
    }

    fn updated(&mut self) -> Result<Operation, String> {
        let mut move_to = None;
        let mut hunks: Vec<Hunk> = Vec::new();
        let mut open = Hunk::default();
        let mut unmarked = 0;
        let close = |open: &mut Hunk, unmarked: &mut usize, hunks: &mut Vec<Hunk>| {
            let mut hunk = std::mem::take(open);
            hunk.drop_unmarked_end(std::mem::take(unmarked));
            if !hunk.lines.is_empty() {
                hunks.push(hunk);
            }
        };
        while let Some(line) = self.next_of_file() {
            if let Some(path) = line.strip_prefix(MOVE) {
                move_to = Some(path.trim().to_owned());
            } else if line.trim_end() == END_OF_FILE {
                open.is_at_end = true;
            } else if let Some(head) = line.strip_prefix("@@") {
                if !open.lines.is_empty() {
                    close(&mut open, &mut unmarked, &mut hunks);
                }
                match unified::head_line(line) {
                    Some(number) => open.line = Some(number),
                    None if head.trim().is_empty() => {}
                    None => open.anchors.push(anchor(head).to_owned()),
                }
            } else {
                let piece = unified::marked(line).ok_or_else(|| {
                    self.problem(
                        "begins with neither ` `, `-` nor `+` (write a space before a line that stays)",
                    )
                })?;
                unmarked = if line.is_empty() { unmarked + 1 } else { 0 };
                open.lines.push(piece);
            }
        }
        close(&mut open, &mut unmarked, &mut hunks);
        if hunks.is_empty() && move_to.is_none() {
            return Err(self.problem("ends a file without any change"));
        }
        Ok(Operation::Update { move_to, hunks })
    }
}

/// `@@ fn name @@` and `@@ fn name` name the same line.
fn anchor(head: &str) -> &str {
    let head = head.trim();
    head.strip_suffix("@@").unwrap_or(head).trim_end()
}
