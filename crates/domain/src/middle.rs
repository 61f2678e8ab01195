//! A hole in a text: the cursor of an editor with what stands before and after it, and where a text for it sensibly ends.
//!
//! Invariant: a text that is cut is the beginning of the text that was given.

/// The text around a cursor.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Middle {
    pub path: Option<String>,
    pub before: String,
    pub after: String,
}

/// Lines of one completion.
const MOST_LINES: usize = 24;
/// A tab counts like so many blanks.
const TAB: usize = 4;
/// So much of the text after the cursor, repeated at the end of a completion, is cut off whatever it is.
const SURE_OVERLAP: usize = 6;

impl Middle {
    /// Where `text` ends, if it has gone on for too long: at the end of the statement, of the block, or where the text after
    /// the cursor begins again. `None` while more may come.
    pub fn end(&self, text: &str) -> Option<usize> {
        self.end_of(text, false)
    }

    /// The part of a whole `text` that belongs into the hole.
    pub fn cut<'a>(&self, text: &'a str) -> &'a str {
        let text = &text[..self.end_of(text, true).unwrap_or(text.len())];
        let text = text.trim_end_matches(['\n', '\r']);
        let text = if self.rest_of_line().trim().is_empty() { text.trim_end() } else { text };
        &text[..text.len() - self.overlap(text)]
    }

    fn end_of(&self, text: &str, is_whole: bool) -> Option<usize> {
        let form = self.form();
        // A bracket that the line of the cursor leaves open may be closed.
        let opened = if matches!(form, Form::Block { .. }) { balance(self.line_before()).max(0) } else { 0 };
        let (mut start, mut depth) = (0, opened);
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let is_complete = is_whole || line.ends_with('\n');
            if number > 0 && self.ends_before(form, line, is_complete, depth) {
                // The line break before it goes too.
                return Some(text[..start].trim_end_matches(['\n', '\r']).len());
            }
            if number >= MOST_LINES {
                return Some(start);
            }
            depth += balance(line);
            let is_done =
                form == Form::Line || form == Form::Statement && depth <= 0 && !line.trim().is_empty();
            if is_done && line.ends_with('\n') {
                return Some(start + line.trim_end_matches(['\n', '\r']).len());
            }
            start += line.len();
        }
        None
    }

    /// Whether a completion ends before this line, which is not its first one.
    fn ends_before(&self, form: Form, line: &str, is_complete: bool, depth: i64) -> bool {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            return false;
        }
        if is_complete && self.repeats_after(trimmed) {
            return true;
        }
        let is_closer = trimmed.starts_with([')', ']', '}']);
        match form {
            Form::Line | Form::Statement => false,
            // A bracket may close what is open.
            Form::Block { least } if is_closer => indentation(line) < least && depth <= 0,
            Form::Block { least } => indentation(line) < least,
        }
    }

    /// Whether the line is the next one after the cursor.
    fn repeats_after(&self, line: &str) -> bool {
        let mut lines = self.after.lines().skip(1).map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default();
        first == line
            || self.after.lines().next().is_some_and(|rest| !rest.trim().is_empty() && rest.trim() == line)
    }

    fn form(&self) -> Form {
        let line = self.line_before();
        let opens = line.trim_end().ends_with(['{', '(', '[', ':']) || line.trim_end().ends_with("=>");
        let rest = self.rest_of_line().trim();
        let closes = opens && rest.chars().all(|letter| ")]};,".contains(letter));
        if !rest.is_empty() && !closes {
            return Form::Line;
        }
        match (line.trim().is_empty(), opens) {
            (true, _) => Form::Block { least: indentation(&format!("{line}x")) },
            (false, true) => Form::Block { least: indentation(line) + 1 },
            (false, false) => Form::Statement,
        }
    }

    fn line_before(&self) -> &str {
        self.before.rsplit('\n').next().unwrap_or_default()
    }

    fn rest_of_line(&self) -> &str {
        self.after.split(['\n', '\r']).next().unwrap_or_default()
    }

    /// How many bytes at the end of `text` stand after the cursor already.
    fn overlap(&self, text: &str) -> usize {
        let rest = self.rest_of_line().trim_end();
        let has = |length: &usize| rest.is_char_boundary(*length) && text.ends_with(&rest[..*length]);
        let Some(length) = (1..=rest.len().min(text.len())).rev().find(has) else { return 0 };
        let has_bracket = rest[..length].contains([')', ']', '}']);
        let is_excess = has_bracket && balance(text) < 0 || !has_bracket && length == rest.len();
        if is_excess || length >= SURE_OVERLAP { length } else { 0 }
    }
}

/// What a completion is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// The rest of a line that goes on after the cursor.
    Line,
    /// The rest of a statement, which may have several lines inside of brackets.
    Statement,
    /// Lines that are indented at least so far.
    Block { least: usize },
}

fn indentation(line: &str) -> usize {
    let blanks = line.chars().take_while(|letter| letter.is_whitespace());
    blanks.map(|letter| if letter == '\t' { TAB } else { 1 }).sum()
}

/// Opened brackets without closed ones.
fn balance(text: &str) -> i64 {
    text.chars().fold(0, |depth, letter| match letter {
        '(' | '[' | '{' => depth + 1,
        ')' | ']' | '}' => depth - 1,
        _ => depth,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `hole` has the cursor at `|`; `text` is what a model wrote, up to `expected` it belongs there.
    #[track_caller]
    fn check(hole: &str, text: &str, expected: &str) {
        let (before, after) = hole.split_once('|').unwrap();
        let middle = Middle { path: None, before: before.into(), after: after.into() };
        assert_eq!(middle.cut(text), expected, "{hole:?} {text:?}");
        // What comes in pieces ends at the same place, or goes on until it is whole.
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            if let Some(end) = middle.end(&text[..at]) {
                assert_eq!(middle.cut(&text[..end]), expected, "{hole:?} after {:?}", &text[..at]);
                break;
            }
        }
    }

    #[test]
    fn a_completion_ends_with_its_statement_or_block() {
        check("let sum = |\nnext();\n", "a + b;\nlet c = 3;\n", "a + b;");
        check("let list = |\n", "vec![\n    1,\n    2,\n];\nlet c = 3;\n", "vec![\n    1,\n    2,\n];");
        check(
            "fn add() {\n    |\n}\n",
            "let a = 1;\n    a + 2\n}\n\nfn other() {\n",
            "let a = 1;\n    a + 2",
        );
        check("fn add() {|\n}\n", "\n    1 + 2\n}\n", "\n    1 + 2");
        check("fn add() {|\n\nfn b() {}\n", "\n    1\n}\n\nfn c() {}\n", "\n    1\n}");
        check("    if x:|\n    done()\n", "\n        go()\n    done()\n", "\n        go()");
        check("def f():\n    |\n\ndef g():\n", "return 1\n\ndef g():\n    pass\n", "return 1");
        check("use a;\n|\n", "use b;\nuse c;\n", "use b;\nuse c;");
    }

    #[test]
    fn the_text_after_the_cursor_is_not_repeated() {
        check("call(|)\n", "a, b)\nmore();\n", "a, b");
        check("call(|);\n", "f(a)", "f(a)");
        check("let x = |;\n", "y + 1;\n", "y + 1");
        check("let name = |.trim();\n", "text.trim();", "text");
        check("foo(|, last)\n", "first", "first");
        check("match x {\n    |\n    B => 2,\n}\n", "A => 1,\n    B => 2,\n}\n", "A => 1,");
        check("a|", "", "");
    }
}
