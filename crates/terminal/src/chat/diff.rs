//! Draws a unified diff in colors, with line numbers and marks on the words that changed within a line.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::highlight::Highlighter;
use super::theme::Theme;
use super::wrap::{self, Indent};
use crate::text::{clean, width};

/// The rows of a diff that are drawn unless it waits for an answer; the rest is shown as a number.
pub(crate) const MAX_ROWS: usize = 2000;
/// Longer runs of removed and added lines are not compared line by line.
const MAX_PAIRS: usize = 100;

/// `file` names the language of the added lines, which get the colors of code.
pub(crate) fn render(
    diff: &str,
    file: &str,
    most: usize,
    columns: usize,
    theme: &Theme,
    indent: &Indent,
) -> Vec<Line<'static>> {
    let diff = clean(diff);
    let all: Vec<&str> =
        diff.lines().filter(|line| !line.starts_with("--- ") && !line.starts_with("+++ ")).collect();
    let mut rows = Vec::new();
    let mut numbers = LineNumbers::default();
    let mut code = Highlighter::new(file);
    for (at, line) in all.iter().enumerate().take(most) {
        let background = line_background(line, theme);
        let mut spans = vec![Span::styled(numbers.next(line), theme.dim)];
        let marked = partner(&all, at).and_then(|other| changed(line, other));
        spans.extend(mark(line_spans(line, &mut code, file, theme), marked, word_style(line, theme)));
        // A mark keeps its own background.
        let painted = spans.into_iter().map(|span| Span::styled(span.content, background.patch(span.style)));
        let wrapped = wrap::hard(&painted.collect::<Vec<_>>(), columns, indent);
        rows.extend(wrapped.into_iter().map(|row| fill(row, columns, background)));
    }
    if let Some(more) = all.len().checked_sub(most).filter(|more| *more > 0) {
        rows.extend(wrap::words(&[Span::styled(format!("… {more} more lines"), theme.dim)], columns, indent));
    }
    rows
}

/// One line with its sign: removed and unchanged lines in one color, added ones in those of code.
fn line_spans(line: &str, code: &mut Highlighter, file: &str, theme: &Theme) -> Vec<Span<'static>> {
    let style = line_style(line, theme);
    let (sign, text) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
    match sign {
        "+" if code.knows_language() => {
            let mut spans = vec![Span::styled(sign.to_owned(), style)];
            spans.extend(code.line(text, theme));
            return spans;
        }
        // An open comment may go on behind an unchanged line.
        " " => drop(code.line(text, theme)),
        "@" => *code = Highlighter::new(file),
        _ => {}
    }
    vec![Span::styled(line.to_owned(), style)]
}

/// The same spans with a mark on some bytes of the line.
fn mark(spans: Vec<Span<'static>>, range: Option<std::ops::Range<usize>>, word: Style) -> Vec<Span<'static>> {
    let Some(range) = range else { return spans };
    let mut marked = Vec::new();
    let mut begin = 0;
    for span in spans {
        let end = begin + span.content.len();
        let (from, to) = (range.start.clamp(begin, end), range.end.clamp(begin, end));
        let pieces = [(begin, from, false), (from, to, true), (to, end, false)];
        for (from, to, is_changed) in pieces.into_iter().filter(|(from, to, _)| from < to) {
            let text = span.content[from - begin..to - begin].to_owned();
            let style = if is_changed { span.style.patch(word) } else { span.style };
            marked.push(Span::styled(text, style));
        }
        begin = end;
    }
    marked
}

/// The line that a changed line replaces or is replaced by: removed lines followed by as many added ones are pairs.
fn partner<'a>(all: &[&'a str], at: usize) -> Option<&'a str> {
    let sign = |index: usize| all.get(index).and_then(|line| line.bytes().next());
    let is_removed = match sign(at)? {
        b'-' => true,
        b'+' => false,
        _ => return None,
    };
    // Pairs of long runs say little, and looking for them would take long.
    let run = |from: usize, wanted: u8| {
        (from..all.len()).take_while(|index| sign(*index) == Some(wanted)).take(MAX_PAIRS + 1).count()
    };
    let back = |from: usize, wanted: u8| {
        (0..from).rev().take_while(|index| sign(*index) == Some(wanted)).take(MAX_PAIRS + 1).count()
    };
    let (first, place) = if is_removed {
        let before = back(at, b'-');
        (at - before, before)
    } else {
        let before = back(at, b'+');
        let removed = back(at - before, b'-');
        (at - before - removed, before)
    };
    let removed = run(first, b'-');
    let added = run(first + removed, b'+');
    if removed != added || removed == 0 || removed > MAX_PAIRS {
        return None;
    }
    all.get(if is_removed { first + removed + place } else { first + place }).copied()
}

/// The bytes of `line` that differ from `other`, grown to whole words. `None` where most of the line differs.
fn changed(line: &str, other: &str) -> Option<std::ops::Range<usize>> {
    let (text, other) = (line.get(1..)?, other.get(1..)?);
    let same = |a: std::str::Chars<'_>, b: std::str::Chars<'_>| -> usize {
        a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    let mut start = same(text.chars(), other.chars());
    let behind = text.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b);
    let most = text.len().min(other.len()).saturating_sub(start);
    let mut end = text.len() - behind.map(|(a, _)| a.len_utf8()).sum::<usize>().min(most);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start -= text[..start].chars().rev().take_while(|c| is_word(*c)).map(char::len_utf8).sum::<usize>();
    end += text[end..].chars().take_while(|c| is_word(*c)).map(char::len_utf8).sum::<usize>();
    let differing = text[start..end].trim().len();
    let worthwhile = start < end && differing * 3 <= text.trim().len() * 2;
    worthwhile.then_some(start + 1..end + 1)
}

pub(crate) fn line_style(line: &str, theme: &Theme) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => theme.added,
        Some(b'-') => theme.removed,
        Some(b'@') => theme.hunk,
        _ => theme.dim,
    }
}

/// The background of a changed line, up to the end of its rows.
fn line_background(line: &str, theme: &Theme) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => theme.added_line,
        Some(b'-') => theme.removed_line,
        _ => Style::new(),
    }
}

fn word_style(line: &str, theme: &Theme) -> Style {
    if line.starts_with('+') { theme.added_word } else { theme.removed_word }
}

/// Paints the rest of a row, where there is a background.
pub(super) fn fill(mut row: Line<'static>, columns: usize, background: Style) -> Line<'static> {
    if background.bg.is_some() {
        let used: usize = row.spans.iter().map(|span| width(&span.content)).sum();
        row.push_span(Span::styled(" ".repeat(columns.saturating_sub(used)), background));
    }
    row
}

/// The next line numbers of the old and of the new file, once a hunk has begun.
#[derive(Default)]
struct LineNumbers {
    next: Option<(u64, u64)>,
}

impl LineNumbers {
    /// The column before a line: the old number of a removed line, else the new one.
    fn next(&mut self, line: &str) -> String {
        if let Some(hunk) = line.strip_prefix("@@ ") {
            self.next = hunk_start(hunk);
            return String::new();
        }
        let Some((old, new)) = &mut self.next else { return String::new() };
        let number = match line.as_bytes().first() {
            Some(b'-') => {
                *old += 1;
                *old - 1
            }
            Some(b'+') => {
                *new += 1;
                *new - 1
            }
            Some(b'\\') => return String::new(),
            _ => {
                *old += 1;
                *new += 1;
                *new - 1
            }
        };
        format!("{number:>4} ")
    }
}

/// The starts of `-1,7 +1,8 @@`.
fn hunk_start(hunk: &str) -> Option<(u64, u64)> {
    let mut parts = hunk.split_whitespace();
    let mut start =
        |sign: char| -> Option<u64> { parts.next()?.strip_prefix(sign)?.split(',').next()?.parse().ok() };
    Some((start('-')?, start('+')?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::color::ColorDepth;
    use crate::chat::theme::Palette;

    #[test]
    fn lines_have_the_numbers_of_their_file() {
        let diff = "--- a\n+++ b\n@@ -7,3 +7,4 @@\n same\n-old\n+new\n+more\n same\n";
        let rows = render(diff, "", MAX_ROWS, 40, &Theme::new(Palette::Plain), &Indent::default());
        let shown: Vec<String> =
            rows.iter().map(|row| row.spans.iter().map(|span| span.content.as_ref()).collect()).collect();
        assert_eq!(
            shown,
            ["@@ -7,3 +7,4 @@", "   7  same", "   8 -old", "   8 +new", "   9 +more", "  10  same"]
        );
        let marked = |diff: &str| -> Vec<String> {
            let rows = render(diff, "", MAX_ROWS, 60, &Theme::new(Palette::Plain), &Indent::default());
            let spans = rows.iter().flat_map(|row| row.spans.iter());
            let marked =
                spans.filter(|span| span.style.add_modifier.contains(ratatui::style::Modifier::REVERSED));
            marked.map(|span| span.content.to_string()).collect()
        };
        let pairs =
            "@@ -1,2 +1,2 @@\n-let total = old_sum(1);\n-same\n+let total = new_sum(1);\n+quite other\n";
        assert_eq!(marked(pairs), ["old_sum", "new_sum"]);
        assert_eq!(marked("@@ -1,2 +1,1 @@\n-a b c d\n-e\n+a b x d\n"), Vec::<String>::new(), "no pairs");
        assert_eq!(marked("@@ -1,1 +1,1 @@\n-größe = 1 und ä\n+größe = 2 und ä\n"), ["1", "2"]);
        assert_eq!(
            render("no hunk\n", "", MAX_ROWS, 40, &Theme::new(Palette::Plain), &Indent::default()).len(),
            1
        );
    }

    #[test]
    fn added_lines_have_the_colors_of_their_language() {
        let theme = Theme::new(Palette::Dark);
        let diff = "@@ -1,1 +1,1 @@\n-let a = \"x\";\n+let a = \"y\";\n";
        let rows = render(diff, "src/a.rs", MAX_ROWS, 60, &theme, &Indent::default());
        let span = |row: usize, text: &str| {
            rows[row].spans.iter().find(|span| span.content.contains(text)).map(|span| span.style)
        };
        assert_eq!(span(2, "let"), Some(theme.keyword));
        assert_eq!(span(2, "y"), Some(theme.string.patch(theme.added_word)));
        assert_eq!(span(1, "let"), Some(theme.removed));
        let rich = Theme::with_depth(Palette::Dark, ColorDepth::True);
        let rows = render(diff, "src/a.rs", MAX_ROWS, 60, &rich, &Indent::default());
        let added = rows[2].spans.iter().find(|span| span.content.contains("let")).expect("the added line");
        assert_eq!(
            added.style,
            rich.added_line.patch(rich.keyword),
            "code on the background of an added line"
        );
        let width: usize = rows[1].spans.iter().map(|span| width(&span.content)).sum();
        assert_eq!(width, 60, "the background goes to the end of the row");
        let unknown = render(diff, "a.unknown", MAX_ROWS, 60, &theme, &Indent::default());
        assert!(unknown[2].spans.iter().all(|span| span.style.fg != theme.keyword.fg));
    }
}
