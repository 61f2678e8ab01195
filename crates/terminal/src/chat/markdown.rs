//! Draws Markdown for a terminal as rows of a given width.
//!
//! Invariant: every word of the text is shown, whatever its markup; an incomplete text is drawn as far as it goes.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "most Markdown events and tags need no handling of their own"
)]

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::highlight::Highlighter;
use super::table::Table;
use super::theme::Theme;
use super::wrap::{self, Indent};
use crate::text::{clean, width};

pub(crate) fn render(text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let text = clean(text);
    let mut writer = Writer::new(columns, theme);
    for event in Parser::new_ext(&text, options()) {
        writer.take(event);
    }
    writer.finish()
}

pub(super) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// A container of blocks.
enum Container {
    Quote,
    Item {
        /// Shown once, before the item's first row.
        marker: Option<String>,
        wide: usize,
    },
}

struct Writer<'a> {
    theme: &'a Theme,
    columns: usize,
    lines: Vec<Line<'static>>,
    /// The open paragraph.
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    containers: Vec<Container>,
    /// The next number of each open list; `None`: a list without numbers.
    lists: Vec<Option<u64>>,
    code: Option<(Highlighter, String)>,
    link: Option<(String, usize)>,
    table: Option<Table>,
}

impl<'a> Writer<'a> {
    fn new(columns: usize, theme: &'a Theme) -> Self {
        Self {
            theme,
            columns,
            lines: Vec::new(),
            spans: Vec::new(),
            styles: vec![theme.text],
            containers: Vec::new(),
            lists: Vec::new(),
            code: None,
            link: None,
            table: None,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => {
                let style = self.style().patch(self.theme.code);
                self.push(&text, style);
            }
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(&text, self.theme.code),
            Event::Html(text) | Event::InlineHtml(text) => self.push(&text, self.theme.dim),
            // Keep line breaks, as most chats do.
            Event::SoftBreak | Event::HardBreak => self.push("\n", self.style()),
            Event::Rule => {
                self.gap();
                let rule = "─".repeat(self.columns.min(40));
                self.spans.push(Span::styled(rule, self.theme.dim));
                self.flush();
            }
            Event::TaskListMarker(done) => self.push(if done { "[x] " } else { "[ ] " }, self.theme.accent),
            Event::FootnoteReference(name) => self.push(&format!("[{name}]"), self.theme.dim),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                self.styles.push(self.theme.heading);
                if level >= HeadingLevel::H3 {
                    self.push(&"#".repeat(level as usize), self.theme.dim);
                    self.push(" ", self.theme.dim);
                }
            }
            Tag::BlockQuote(_) => {
                self.gap();
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.gap();
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((Highlighter::new(&language), String::new()));
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.gap();
                }
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.modify(Modifier::ITALIC),
            Tag::Strong => self.modify(Modifier::BOLD),
            Tag::Strikethrough => self.modify(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.to_string(), self.spans.len()));
                self.styles.push(self.style().patch(self.theme.link));
            }
            Tag::Table(alignments) => {
                self.gap();
                self.table = Some(Table::new(alignments.iter().map(|it| *it == Alignment::Right).collect()));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.flush();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush();
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let room = self.columns.saturating_sub(self.indent_width());
                    for row in table.rows(room, self.theme) {
                        self.spans = row;
                        self.flush_hard();
                    }
                }
            }
            _ => {}
        }
    }

    fn item(&mut self) {
        self.flush();
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "• ".to_owned(),
        };
        let wide = width(&marker);
        self.containers.push(Container::Item { marker: Some(marker), wide });
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, code)) => code.push_str(text),
            None => self.push(text, self.style()),
        }
    }

    fn end_code(&mut self) {
        let Some((mut highlighter, code)) = self.code.take() else { return };
        for line in code.trim_end_matches('\n').split('\n') {
            let mut spans = vec![Span::styled("  ", self.theme.dim)];
            spans.extend(highlighter.line(line, self.theme));
            self.spans = spans;
            self.flush_hard();
        }
    }

    /// Shows the address if the text of the link differs from it.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some((address, from)) = self.link.take() else { return };
        let shown: String = self.spans.iter().skip(from).map(|span| span.content.as_ref()).collect();
        if shown != address && !address.is_empty() {
            self.push(&format!(" ({address})"), self.theme.dim);
        }
    }

    fn modify(&mut self, modifier: Modifier) {
        self.styles.push(self.style().add_modifier(modifier));
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push(&mut self, text: &str, style: Style) {
        self.spans.push(Span::styled(text.to_owned(), style));
    }

    /// An empty row between two blocks.
    fn gap(&mut self) {
        self.flush();
        let fresh_item = matches!(self.containers.last(), Some(Container::Item { marker: Some(_), .. }));
        if self.lines.is_empty() || fresh_item || self.lines.last().is_some_and(is_blank) {
            return;
        }
        let quotes = self.containers.iter().take_while(|it| matches!(it, Container::Quote)).count();
        self.lines.push(Line::from(vec![Span::styled("│ ", self.theme.dim); quotes]));
    }

    fn indent_width(&self) -> usize {
        let wide = |container: &Container| match container {
            Container::Quote => 2,
            Container::Item { wide, .. } => *wide,
        };
        self.containers.iter().map(wide).sum()
    }

    /// The prefix of the next rows by their containers; takes the markers.
    fn indent(&mut self) -> Indent {
        let mut indent = Indent::default();
        for container in &mut self.containers {
            match container {
                Container::Quote => {
                    let bar = Span::styled("│ ", self.theme.dim);
                    indent.first.push(bar.clone());
                    indent.other.push(bar);
                }
                Container::Item { marker, wide } => {
                    let spaces = Span::raw(" ".repeat(*wide));
                    let first = marker.take().map(|marker| Span::styled(marker, self.theme.accent));
                    indent.first.push(first.unwrap_or_else(|| spaces.clone()));
                    indent.other.push(spaces);
                }
            }
        }
        indent
    }

    fn flush(&mut self) {
        if self.spans.iter().all(|span| span.content.is_empty()) {
            self.spans.clear();
            return;
        }
        let indent = self.indent();
        let spans = std::mem::take(&mut self.spans);
        self.lines.extend(wrap::words(&spans, self.columns, &indent));
    }

    fn flush_hard(&mut self) {
        let indent = self.indent();
        let spans = std::mem::take(&mut self.spans);
        self.lines.extend(wrap::hard(&spans, self.columns, &indent));
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        if self.code.is_some() {
            self.end_code();
        }
        self.flush();
        self.lines
    }
}

fn is_blank(line: &Line<'_>) -> bool {
    line.spans.iter().all(|span| span.content.trim().is_empty())
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::theme::Palette;
    use super::*;

    pub(in crate::chat) fn shown(text: &str, columns: usize) -> Vec<String> {
        let rows = render(text, columns, &Theme::new(Palette::Dark));
        rows.iter().map(|row| row.spans.iter().map(|span| span.content.as_ref()).collect()).collect()
    }

    #[test]
    fn blocks_are_drawn() {
        let text = "# Title\nSome *words* and `code`.\n\n- one\n- two\n  1. a\n  2. b\n\n> quoted\n\n```rust\nfn x() {}\n```\nend";
        assert_eq!(
            shown(text, 40),
            [
                "Title",
                "",
                "Some words and code.",
                "",
                "• one",
                "• two",
                "  1. a",
                "  2. b",
                "",
                "│ quoted",
                "",
                "  fn x() {}",
                "",
                "end"
            ]
        );
    }

    #[test]
    fn what_is_half_written_is_shown() {
        assert_eq!(shown("```py\nx = 1\ny", 40), ["  x = 1", "  y"]);
        assert_eq!(shown("**bold and [link](http", 40), ["**bold and [link](http"]);
        assert_eq!(shown("", 40), [""; 0]);
    }

    #[test]
    fn tables_and_links_are_drawn() {
        assert_eq!(
            shown("| a | long header |\n|---|---:|\n| 1 | 2 |", 40),
            ["a  long header", "─  ───────────", "1            2"]
        );
        assert_eq!(shown("[here](http://x.y) <http://z>", 60), ["here (http://x.y) http://z"]);
    }

    #[test]
    fn no_row_is_too_wide() {
        let text = "# A heading that is long\n\n| a | b |\n|---|---|\n| some long text here | and there |\n\n1. item \
            with words\n   - nested deeply\n     > quote in it\n\n```\nlong code line without a break at all\n```";
        for columns in 1..60 {
            for row in shown(text, columns) {
                assert!(width(&row) <= columns, "{columns}: {row:?}");
            }
        }
    }
}
