//! One entry of the chat as rows: what each kind of item looks like. Layouts are kept until width or content change.
//!
//! Invariant: a growing answer costs its last block per frame, not the whole of it.

use domain::event::{Channel, Level};
use domain::item::{Item, ItemKind};
use domain::tool_call::ToolState;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::markdown;
use super::theme::Theme;
use super::tool;
use super::wrap::{self, Indent};
use crate::text::{clean, clean_line, shorten};

pub struct Entry {
    pub body: Body,
    /// The user opened or closed it; `None`: as it is by default.
    pub opened: Option<bool>,
    /// Nothing of it will change any more.
    pub ended: bool,
    layout: Option<Layout>,
}

pub enum Body {
    Item(Item),
    /// Something of ours that is not in the chat's history.
    Note {
        level: Level,
        text: String,
    },
}

struct Layout {
    columns: u16,
    /// The content has changed since.
    stale: bool,
    rows: Vec<Line<'static>>,
    /// Bytes of the text that will not change, and the rows they became.
    settled: (usize, usize),
}

impl Entry {
    pub fn item(item: Item, ended: bool) -> Self {
        Self { body: Body::Item(item), opened: None, ended, layout: None }
    }

    pub fn note(level: Level, text: String) -> Self {
        Self { body: Body::Note { level, text }, opened: None, ended: true, layout: None }
    }

    /// The item anew.
    pub fn replace(&mut self, item: Item, ended: bool) {
        self.body = Body::Item(item);
        self.ended = ended;
        self.layout = None;
    }

    /// Text at a byte offset; what is there already is not taken twice. False: nothing is new.
    pub fn grow(&mut self, channel: Channel, offset: u64, text: &str) -> bool {
        let Body::Item(item) = &mut self.body else { return false };
        let Some(have) = item.channel_text_mut(channel) else { return false };
        let skip = usize::try_from(offset).ok().and_then(|offset| have.len().checked_sub(offset));
        let Some(rest) = skip.and_then(|skip| text.get(skip..)).filter(|rest| !rest.is_empty()) else {
            return false;
        };
        have.push_str(rest);
        if let Some(layout) = &mut self.layout {
            layout.stale = true;
        }
        true
    }

    pub fn toggle(&mut self) {
        self.opened = Some(!self.is_open());
        self.layout = None;
    }

    /// It has more to show than one line.
    pub fn opens(&self) -> bool {
        let Body::Item(item) = &self.body else { return false };
        matches!(
            item.kind,
            ItemKind::ToolCall(_)
                | ItemKind::Reasoning { .. }
                | ItemKind::Compaction { .. }
                | ItemKind::Hook { .. }
        )
    }

    /// What a person is asked about is shown whole; everything else is one line until it is opened.
    pub fn is_open(&self) -> bool {
        let waits = match &self.body {
            Body::Item(Item { kind: ItemKind::ToolCall(call), .. }) => {
                matches!(call.state, ToolState::Waiting { .. })
            }
            _ => false,
        };
        self.opened.unwrap_or(waits)
    }

    /// The rows at this width, laid out where that was not done yet.
    pub fn rows(&mut self, columns: u16, theme: &Theme) -> &[Line<'static>] {
        let fits = self.layout.as_ref().is_some_and(|layout| layout.columns == columns && !layout.stale);
        if !fits {
            let old = self.layout.take().filter(|layout| layout.columns == columns);
            self.layout = Some(self.lay_out(columns, old, theme));
        }
        self.layout.as_ref().map_or(&[], |layout| &layout.rows)
    }

    /// The rows as they were last laid out.
    pub fn known_rows(&self) -> &[Line<'static>] {
        self.layout.as_ref().map_or(&[], |layout| &layout.rows)
    }

    fn lay_out(&self, columns: u16, old: Option<Layout>, theme: &Theme) -> Layout {
        if let Body::Item(Item { kind: ItemKind::AgentMessage { text, .. }, .. }) = &self.body
            && !self.ended
        {
            return growing(text, columns, old, theme);
        }
        let mut rows = match &self.body {
            Body::Note { level, text } => note(*level, text, columns.into(), theme),
            Body::Item(item) => item_rows(item, self.is_open(), self.ended, columns.into(), theme),
        };
        if !rows.is_empty() && !self.is_one_line() {
            rows.push(Line::default());
        }
        Layout { columns, stale: false, rows, settled: (0, 0) }
    }

    /// Lines of calls stand close together.
    pub fn is_one_line(&self) -> bool {
        self.opens() && !self.is_open()
    }
}

/// Keeps the rows of what is settled and draws the rest.
fn growing(text: &str, columns: u16, old: Option<Layout>, theme: &Theme) -> Layout {
    let (mut rows, mut settled) = match old {
        Some(old) if text.is_char_boundary(old.settled.0) => {
            let mut rows = old.rows;
            rows.truncate(old.settled.1);
            (rows, old.settled.0)
        }
        _ => (Vec::new(), 0),
    };
    let rest = &text[settled..];
    let last = markdown::settled(rest);
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

fn item_rows(item: &Item, open: bool, ended: bool, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    match &item.kind {
        ItemKind::UserMessage { text, .. } | ItemKind::Command { text } => user(text, columns, theme),
        ItemKind::AgentMessage { text, interrupted, .. } => {
            let mut rows = markdown::render(text, columns, theme);
            if *interrupted {
                rows.push(Line::from(Span::styled("(cut off)", theme.warning)));
            }
            rows
        }
        ItemKind::Reasoning { text, millis, .. } => reasoning(text, *millis, open, ended, columns, theme),
        ItemKind::ToolCall(call) => tool::render(call, open, columns, theme),
        ItemKind::Citation { title, url } => {
            let text = format!("{} ({})", clean_line(title), clean_line(url));
            wrap::words(&[Span::styled(text, theme.link)], columns, &Indent::default())
        }
        ItemKind::Plan { entries } => tool::plan(entries, columns, theme),
        ItemKind::Compaction { summary, .. } => {
            folded("≡", "Earlier messages were summarized", summary, open, columns, theme)
        }
        ItemKind::Subagent { name, .. } => {
            let text = format!("A helper began: {}", clean_line(name));
            wrap::words(&[Span::styled(text, theme.dim)], columns, &Indent::default())
        }
        ItemKind::Hook { name, output, .. } => {
            folded("↪", &format!("Hook {}", clean_line(name)), output, open, columns, theme)
        }
        ItemKind::Flag { text } => {
            let text = format!("⚑ {}", clean_line(text));
            wrap::words(&[Span::styled(text, theme.warning)], columns, &Indent::default())
        }
        ItemKind::SystemText { text } => markdown::render(text, columns, theme),
    }
}

fn user(text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let indent = Indent { first: vec![Span::styled("› ", theme.user)], other: vec![Span::raw("  ")] };
    let (text, mut rows) = (clean(text), Vec::new());
    for (at, line) in text.trim_end().split('\n').enumerate() {
        let indent = if at == 0 { indent.clone() } else { Indent::same(indent.other.clone()) };
        rows.extend(wrap::hard(&[Span::styled(line.to_owned(), theme.user)], columns, &indent));
    }
    rows
}

fn reasoning(
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
    folded("∴", &title, text, open, columns, theme)
}

fn folded(
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

fn note(level: Level, text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (sign, style): (_, Style) = match level {
        Level::Info => ("· ", theme.dim),
        Level::Warning => ("! ", theme.warning),
        Level::Error => ("✗ ", theme.bad),
    };
    let indent = Indent { first: vec![Span::styled(sign, style)], other: vec![Span::raw("  ")] };
    wrap::words(&[Span::styled(clean(text).into_owned(), style)], columns, &indent)
}
