//! Lays out one entry of the chat as rows, by the kind of its item. A layout is cached until width or content change.
//!
//! Invariant: a frame lays out only the last block of a growing answer, not all of it.

use std::borrow::Cow;

use domain::TextCursor;
use domain::event::{Channel, Level};
use domain::item::{Item, ItemKind};
use domain::tool_call::ToolState;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::diff;
use super::growing;
use super::markdown;
use super::theme::Theme;
use super::tool;
use super::wrap::{self, Indent};
use crate::text::{clean, clean_line, shorten};

/// A prompt or an output with more lines is folded to its first ones.
const MAX_UNFOLDED_LINES: usize = 16;
const FOLDED_LINES: usize = 8;

pub(crate) struct TranscriptEntry {
    pub body: Body,
    /// Whether the user opened or closed it; `None`: the default.
    pub opened: Option<bool>,
    /// The item will not change any more.
    pub ended: bool,
    printed: PrintedPart,
    layout: Option<Layout>,
}

/// The beginning of an answer that belongs to the terminal.
#[derive(Default)]
struct PrintedPart {
    bytes: usize,
    /// See [`growing::Printable`].
    opening: String,
}

impl PrintedPart {
    /// The text that is still to be shown.
    fn rest<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let rest = text.get(self.bytes..).unwrap_or_default();
        match self.opening.as_str() {
            "" => Cow::Borrowed(rest),
            opening => Cow::Owned(format!("{opening}{rest}")),
        }
    }
}

pub(crate) enum Body {
    Item(Item),
    /// The output of a shell command of the user.
    Output {
        title: String,
        text: String,
    },
    /// A sentence of the terminal that is not in the chat's history.
    Notice {
        level: Level,
        text: String,
    },
}

struct Layout {
    columns: u16,
    /// The content has changed since the layout was made.
    stale: bool,
    rows: Vec<Line<'static>>,
    /// The bytes of the text that will not change, and the number of their rows.
    settled: (usize, usize),
}

impl TranscriptEntry {
    pub(crate) fn item(item: Item, ended: bool) -> Self {
        Self { body: Body::Item(item), opened: None, ended, printed: PrintedPart::default(), layout: None }
    }

    pub(crate) fn output(title: String, text: String) -> Self {
        Self {
            body: Body::Output { title, text },
            opened: None,
            ended: true,
            printed: PrintedPart::default(),
            layout: None,
        }
    }

    pub(crate) fn notice(level: Level, text: String) -> Self {
        Self {
            body: Body::Notice { level, text },
            opened: None,
            ended: true,
            printed: PrintedPart::default(),
            layout: None,
        }
    }

    /// Replaces the item and drops the layout.
    pub(crate) fn replace(&mut self, item: Item, ended: bool) {
        self.body = Body::Item(item);
        self.ended = ended;
        self.layout = None;
    }

    /// Appends the part of `text` (at a byte offset) that is new. Returns false if nothing is new.
    pub(crate) fn grow(&mut self, channel: Channel, offset: u64, text: &str) -> bool {
        let Body::Item(item) = &mut self.body else { return false };
        let Some(have) = item.channel_text_mut(channel) else { return false };
        let Some(rest) = TextCursor::at(have.len()).advance(offset, text) else { return false };
        have.push_str(rest);
        if let Some(layout) = &mut self.layout {
            layout.stale = true;
        }
        true
    }

    pub(crate) fn forget_layout(&mut self) {
        self.layout = None;
    }

    pub(crate) fn toggle(&mut self) {
        self.opened = Some(!self.is_open());
        self.layout = None;
    }

    pub(crate) fn open(&mut self) {
        self.opened = Some(true);
        self.layout = None;
    }

    /// It can be folded: to one line, or to its first lines where it is long.
    pub(crate) fn is_foldable(&self) -> bool {
        self.is_long() || self.folds_to_a_line()
    }

    /// A prompt or an output of which only the first lines are shown until it is opened.
    fn is_long(&self) -> bool {
        let text = match &self.body {
            Body::Item(Item { kind: ItemKind::UserMessage { text, .. }, .. }) | Body::Output { text, .. } => {
                text
            }
            Body::Item(_) | Body::Notice { .. } => return false,
        };
        text.lines().nth(MAX_UNFOLDED_LINES).is_some()
    }

    fn folds_to_a_line(&self) -> bool {
        let Body::Item(item) = &self.body else { return false };
        matches!(
            item.kind,
            ItemKind::ToolCall(_)
                | ItemKind::Reasoning { .. }
                | ItemKind::Compaction { .. }
                | ItemKind::Note(_)
        )
    }

    /// A prompt of the user.
    pub(crate) fn is_prompt(&self) -> bool {
        matches!(&self.body, Body::Item(Item { kind: ItemKind::UserMessage { .. }, .. }))
    }

    /// A call that waits for approval is open by default; everything else is folded.
    pub(crate) fn is_open(&self) -> bool {
        if let Some(opened) = self.opened {
            return opened;
        }
        let Body::Item(Item { kind: ItemKind::ToolCall(call), .. }) = &self.body else { return false };
        matches!(call.state, ToolState::Waiting { .. })
    }

    /// Returns the rows at this width and lays them out if needed.
    pub(crate) fn rows(&mut self, columns: u16, theme: &Theme) -> &[Line<'static>] {
        let fits = self.layout.as_ref().is_some_and(|layout| layout.columns == columns && !layout.stale);
        if !fits {
            let old = self.layout.take().filter(|layout| layout.columns == columns);
            self.layout = Some(self.lay_out(columns, old, theme));
        }
        self.layout.as_ref().map_or(&[], |layout| &layout.rows)
    }

    /// The rows of the last layout.
    pub(crate) fn known_rows(&self) -> &[Line<'static>] {
        self.layout.as_ref().map_or(&[], |layout| &layout.rows)
    }

    fn lay_out(&self, columns: u16, old: Option<Layout>, theme: &Theme) -> Layout {
        if let Body::Item(Item { kind: ItemKind::AgentMessage { text, .. }, .. }) = &self.body
            && !self.ended
        {
            return lay_out_growing(&self.printed.rest(text), columns, old, theme);
        }
        let mut rows = match &self.body {
            Body::Output { title, text } => {
                let (text, more) = self.visible_lines(text);
                let mut rows = tool::output_rows(title, text, columns.into(), theme);
                rows.extend(more_lines(more, theme));
                rows
            }
            Body::Item(Item { kind: ItemKind::UserMessage { text, .. }, .. }) => {
                let (text, more) = self.visible_lines(text);
                let mut rows = user_rows(text, columns.into(), theme);
                rows.extend(more_lines(more, theme));
                rows
            }
            Body::Notice { level, text } => notice_rows(*level, text, columns.into(), theme),
            Body::Item(Item { kind: ItemKind::AgentMessage { text, interrupted, .. }, .. }) => {
                answer_rows(&self.printed.rest(text), *interrupted, columns.into(), theme)
            }
            Body::Item(item) => item_rows(item, self.is_open(), self.ended, columns.into(), theme),
        };
        if !rows.is_empty() && !self.is_folded() {
            rows.push(Line::default());
        }
        Layout { columns, stale: false, rows, settled: (0, 0) }
    }

    /// The part of a long text that is shown, and the number of lines that are not.
    fn visible_lines<'t>(&self, text: &'t str) -> (&'t str, usize) {
        if self.is_open() || !self.is_long() {
            return (text, 0);
        }
        let end = text.match_indices('\n').nth(FOLDED_LINES - 1).map_or(text.len(), |(at, _)| at);
        (&text[..end], text[end..].trim_start().lines().count())
    }

    /// Returns the rows of a growing answer that will not change any more, once each.
    pub(crate) fn take_settled(&mut self, columns: u16, theme: &Theme) -> Vec<Line<'static>> {
        let Body::Item(Item { kind: ItemKind::AgentMessage { text, .. }, .. }) = &self.body else {
            return Vec::new();
        };
        let rest = self.printed.rest(text);
        let Some(piece) = Some(&rest).filter(|_| !self.ended).and_then(|rest| growing::printable(rest))
        else {
            return Vec::new();
        };
        let mut rows = markdown::render(&rest[..piece.length], columns.into(), theme);
        rows.extend(piece.ends_block.then(Line::default));
        self.printed.bytes += piece.length - self.printed.opening.len();
        self.printed.opening = piece.opening;
        self.layout = None;
        rows
    }

    /// The terminal has its beginning.
    pub(crate) fn is_partly_printed(&self) -> bool {
        self.printed.bytes > 0
    }

    /// Folded entries stand close together.
    pub(crate) fn is_folded(&self) -> bool {
        self.folds_to_a_line() && !self.is_open()
    }
}

/// Keeps the rows of the finished blocks and lays out the rest.
fn lay_out_growing(text: &str, columns: u16, old: Option<Layout>, theme: &Theme) -> Layout {
    let (mut rows, mut settled) = match old {
        Some(old) if text.is_char_boundary(old.settled.0) => {
            let mut rows = old.rows;
            rows.truncate(old.settled.1);
            (rows, old.settled.0)
        }
        _ => (Vec::new(), 0),
    };
    let rest = &text[settled..];
    let last = growing::settled(rest);
    if last > 0 && !rest[..last].trim().is_empty() {
        rows.extend(markdown::render(&rest[..last], columns.into(), theme));
        rows.push(Line::default());
        settled += last;
    }
    let settled = (settled, rows.len());
    rows.extend(markdown::render(&text[settled.0..], columns.into(), theme));
    rows.push(Line::default());
    Layout { columns, stale: false, rows, settled }
}

fn more_lines(more: usize, theme: &Theme) -> Option<Line<'static>> {
    let text = format!("  … {more} more lines (Ctrl-O opens)");
    (more > 0).then(|| Line::from(Span::styled(text, theme.dim)))
}

fn item_rows(item: &Item, open: bool, ended: bool, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    match &item.kind {
        ItemKind::UserMessage { text, .. } | ItemKind::Command { text } => user_rows(text, columns, theme),
        ItemKind::AgentMessage { text, interrupted, .. } => answer_rows(text, *interrupted, columns, theme),
        ItemKind::Reasoning { text, millis, .. } => {
            reasoning_rows(text, *millis, open, ended, columns, theme)
        }
        ItemKind::ToolCall(call) => tool::render(call, open, columns, theme),
        ItemKind::Citation { title, url } => {
            let text = format!("{} ({})", clean_line(title), clean_line(url));
            wrap::words(&[Span::styled(text, theme.link)], columns, &Indent::default())
        }
        ItemKind::Compaction { summary, .. } => {
            folded_rows("≡", "Earlier messages were summarized", summary, open, columns, theme)
        }
        ItemKind::SystemText { text } => markdown::render(text, columns, theme),
        ItemKind::Hook(run) => {
            let title = format!("Hook {}", clean_line(&run.name));
            let text = [run.output.as_str(), run.error.as_str()].join("\n");
            folded_rows("↪", &title, text.trim(), open, columns, theme)
        }
        ItemKind::Note(note) => {
            let said = note.parts.iter().map(tool::part_text);
            let text: Vec<&str> = std::iter::once(note.text.as_str()).chain(said).collect();
            folded_rows("›", &clean_line(&note.text), &text.join("\n"), open, columns, theme)
        }
        ItemKind::Flag { text } if text.is_empty() => Vec::new(),
        ItemKind::Flag { text } => {
            vec![Line::from(Span::styled(format!("⚑ {}", clean_line(text)), theme.user))]
        }
    }
}

fn answer_rows(text: &str, interrupted: bool, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut rows = markdown::render(text, columns, theme);
    rows.extend(interrupted.then(|| Line::from(Span::styled("(cut off)", theme.warning))));
    rows
}

fn user_rows(text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let bar = theme.prompt_bar;
    let indent = Indent {
        first: vec![Span::styled("› ", bar.patch(theme.user))],
        other: vec![Span::styled("  ", bar)],
    };
    let (text, mut rows) = (clean(text), Vec::new());
    for (at, line) in text.trim_end().split('\n').enumerate() {
        let indent = if at == 0 { indent.clone() } else { Indent::same(indent.other.clone()) };
        // Code keeps its spaces.
        let wrap = if line.starts_with(' ') || line.contains("  ") { wrap::hard } else { wrap::words };
        let wrapped = wrap(&[Span::styled(line.to_owned(), bar.patch(theme.user))], columns, &indent);
        rows.extend(wrapped.into_iter().map(|row| diff::fill(row, columns, bar)));
    }
    rows
}

fn reasoning_rows(
    text: &str,
    millis: u64,
    open: bool,
    ended: bool,
    columns: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let title = match (ended, millis / 1000) {
        (false, _) => {
            let last = text.trim_end().lines().next_back().unwrap_or_default();
            format!("Thinking: {}", clean_line(last))
        }
        (true, 0) => "Thought".to_owned(),
        (true, seconds) => format!("Thought for {seconds} s"),
    };
    folded_rows("∴", &title, text, open, columns, theme)
}

fn folded_rows(
    sign: &str,
    title: &str,
    text: &str,
    open: bool,
    columns: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let arrow = if open { "▾" } else { "▸" };
    let title = shorten(&format!("{arrow} {sign} {title}"), columns);
    let mut rows = vec![Line::from(Span::styled(title, theme.dim))];
    if open {
        let indent = Indent::same(vec![Span::styled("  │ ", theme.dim)]);
        for line in clean(text).trim().split('\n') {
            rows.extend(wrap::words(&[Span::styled(line.to_owned(), theme.dim)], columns, &indent));
        }
    }
    rows
}

fn notice_rows(level: Level, text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (sign, style): (_, Style) = match level {
        Level::Info => ("· ", theme.dim),
        Level::Warning => ("! ", theme.warning),
        Level::Error => ("✗ ", theme.bad),
    };
    let indent = Indent { first: vec![Span::styled(sign, style)], other: vec![Span::raw("  ")] };
    wrap::words(&[Span::styled(clean(text).into_owned(), style)], columns, &indent)
}
