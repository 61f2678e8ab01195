//! Breaks styled text into rows of the screen.
//!
//! Invariant: no row is wider than requested (a single character that is wider is omitted).

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use crate::text::width;

/// The spans before the first row of a block, and before its other rows.
#[derive(Clone, Default)]
pub(crate) struct Indent {
    pub first: Vec<Span<'static>>,
    pub other: Vec<Span<'static>>,
}

impl Indent {
    pub(crate) fn same(spans: Vec<Span<'static>>) -> Self {
        Self { first: spans.clone(), other: spans }
    }
}

/// Breaks between words, and inside a word only if it is longer than a row. Joins runs of spaces.
pub(crate) fn words(spans: &[Span<'static>], columns: usize, indent: &Indent) -> Vec<Line<'static>> {
    let mut rows = Rows::new(columns, indent);
    let mut word: Vec<(String, Style)> = Vec::new();
    let mut space: Option<Style> = None;
    for span in spans {
        for piece in span.content.split_inclusive([' ', '\n']) {
            let bare = piece.trim_end_matches([' ', '\n']);
            if !bare.is_empty() {
                word.push((bare.to_owned(), span.style));
            }
            if bare.len() < piece.len() {
                rows.word(&mut word, &mut space);
                space = Some(span.style);
                if piece.ends_with('\n') {
                    rows.end();
                    space = None;
                }
            }
        }
    }
    rows.word(&mut word, &mut space);
    rows.finish()
}

/// Keeps every space, for code and output. Breaks at the end of the row.
pub(crate) fn hard(spans: &[Span<'static>], columns: usize, indent: &Indent) -> Vec<Line<'static>> {
    let mut rows = Rows::new(columns, indent);
    for span in spans {
        rows.push(&span.content, span.style);
    }
    rows.finish()
}

/// Keeps every space, for commands and output, and breaks before a word where that leaves it whole.
pub(crate) fn soft(spans: &[Span<'static>], columns: usize, indent: &Indent) -> Vec<Line<'static>> {
    let mut rows = Rows::new(columns, indent);
    for span in spans {
        for piece in span.content.split_inclusive(' ') {
            let word = piece.trim_end_matches(' ');
            rows.keep_whole(width(word));
            rows.push(word, span.style);
            let room = columns.saturating_sub(rows.used);
            // Spaces at the end of a row are not seen.
            rows.push(&" ".repeat((piece.len() - word.len()).min(room)), span.style);
        }
    }
    rows.finish()
}

struct Rows<'a> {
    columns: usize,
    indent: &'a Indent,
    done: Vec<Line<'static>>,
    row: Vec<Span<'static>>,
    used: usize,
    /// The row has text after its indent.
    filled: bool,
}

impl<'a> Rows<'a> {
    fn new(columns: usize, indent: &'a Indent) -> Self {
        let mut rows = Self { columns, indent, done: Vec::new(), row: Vec::new(), used: 0, filled: false };
        rows.begin(&indent.first);
        rows
    }

    fn begin(&mut self, indent: &[Span<'static>]) {
        let wide: usize = indent.iter().map(|span| width(&span.content)).sum();
        // An indent that leaves no room for text is omitted.
        if wide + 4 <= self.columns {
            self.row = indent.to_vec();
            self.used = wide;
        } else {
            self.row = Vec::new();
            self.used = 0;
        }
        self.filled = false;
    }

    fn end(&mut self) {
        self.done.push(Line::from(std::mem::take(&mut self.row)));
        let indent = self.indent;
        self.begin(&indent.other);
    }

    fn word(&mut self, word: &mut Vec<(String, Style)>, space: &mut Option<Style>) {
        if word.is_empty() {
            return;
        }
        let wide: usize = word.iter().map(|(text, _)| width(text)).sum();
        let gap = usize::from(space.is_some() && self.filled);
        if self.filled && self.used + gap + wide > self.columns {
            self.end();
        } else if let Some(style) = space.filter(|_| self.filled) {
            self.append(" ", style, 1);
        }
        *space = None;
        for (text, style) in word.drain(..) {
            self.push(&text, style);
        }
    }

    /// Begins another row where a word fits into that one and not into this one.
    fn keep_whole(&mut self, wide: usize) {
        let indent: usize = self.indent.other.iter().map(|span| width(&span.content)).sum();
        if self.filled && self.used + wide > self.columns && indent + wide <= self.columns {
            self.end();
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        let wide = width(text);
        if self.used + wide <= self.columns {
            return self.append(text, style, wide);
        }
        for grapheme in text.graphemes(true) {
            let wide = width(grapheme);
            if self.used + wide > self.columns {
                self.end();
            }
            if self.used + wide <= self.columns {
                self.append(grapheme, style, wide);
            }
        }
    }

    fn append(&mut self, text: &str, style: Style, wide: usize) {
        self.used += wide;
        let joins = self.filled && self.row.last().is_some_and(|last| last.style == style);
        match self.row.last_mut() {
            Some(last) if joins => last.content.to_mut().push_str(text),
            _ => self.row.push(Span::styled(text.to_owned(), style)),
        }
        self.filled = true;
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.done.push(Line::from(self.row));
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: &[Line<'_>]) -> Vec<String> {
        rows.iter().map(|row| row.spans.iter().map(|span| span.content.as_ref()).collect()).collect()
    }

    #[test]
    fn words_are_kept_together() {
        let indent = Indent { first: vec!["- ".into()], other: vec!["  ".into()] };
        let rows = words(&["one two  three".into(), " extraordinarily".into()], 10, &indent);
        assert_eq!(shown(&rows), ["- one two", "  three", "  extraord", "  inarily"]);
    }

    #[test]
    fn code_keeps_its_spaces() {
        assert_eq!(shown(&hard(&["a  b    c".into()], 5, &Indent::default())), ["a  b ", "   c"]);
    }

    #[test]
    fn words_of_output_stay_whole() {
        let rows = soft(&["cp  long-name  other".into()], 10, &Indent::same(vec!["| ".into()]));
        assert_eq!(shown(&rows), ["| cp  long", "| -name  ", "| other"]);
        let rows = soft(&["error: cannot find it".into()], 12, &Indent::default());
        assert_eq!(shown(&rows), ["error: ", "cannot find ", "it"]);
    }

    #[test]
    fn no_row_is_wider_than_the_screen() {
        let text = "日本語 text 🎉🎉🎉 with-a-very-long-word e\u{301}e\u{301}";
        for columns in 0..20 {
            for rows in [
                words(&[text.into()], columns, &Indent::same(vec!["> ".into()])),
                hard(&[text.into()], columns, &Indent::same(vec!["> ".into()])),
                soft(&[text.into()], columns, &Indent::same(vec!["> ".into()])),
            ] {
                assert!(
                    shown(&rows).iter().all(|row| width(row) <= columns),
                    "{columns}: {:?}",
                    shown(&rows)
                );
            }
        }
    }
}
