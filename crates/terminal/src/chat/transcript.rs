//! The chat as a list of entries, and the visible part of it.
//!
//! Invariant: only visible entries are laid out, so a frame costs the same in a chat of ten and of ten thousand
//! messages. The scroll position is an entry and a row in it, so a resize or a growing answer does not move it.

use std::collections::HashMap;

use domain::event::{Channel, Level};
use domain::item::Item;
use domain::{ItemId, ItemKind, TurnId};
use ratatui::text::Line;

use super::entry::{Body, TranscriptEntry};
use super::theme::Theme;

/// A chat that is opened prints at most its last rows.
const MAX_PRINTED_ROWS: usize = 1000;

#[derive(Default)]
pub struct Transcript {
    entries: Vec<TranscriptEntry>,
    places: HashMap<ItemId, usize>,
    /// The entry and its row at the top of the screen; `None`: the view follows the end.
    top: Option<(usize, usize)>,
    selected: Option<usize>,
    /// Entries before this one were printed and belong to the terminal.
    first: usize,
    /// A printed entry that is printed once more, opened.
    reopened: Option<usize>,
    /// The columns and rows of the last frame.
    size: (u16, u16),
    /// The row of the screen where the chat begins.
    begins_at: u16,
    blank: Line<'static>,
}

/// A row on the screen.
pub struct VisibleRow<'a> {
    pub line: &'a Line<'static>,
    pub selected: bool,
}

impl Transcript {
    pub fn put(&mut self, item: Item, ended: bool) {
        match self.places.get(&item.id) {
            Some(&at) => self.entries[at].replace(item, ended),
            None => {
                self.places.insert(item.id, self.entries.len());
                self.entries.push(TranscriptEntry::item(item, ended));
            }
        }
    }

    pub fn add_notice(&mut self, level: Level, text: impl Into<String>) {
        self.entries.push(TranscriptEntry::notice(level, text.into()));
    }

    /// The output of a shell command of the user.
    pub(crate) fn add_output(&mut self, title: String, text: String) {
        self.entries.push(TranscriptEntry::output(title, text));
    }

    /// The messages and the titles of tool calls as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        for item in self.items() {
            if let ItemKind::UserMessage { text: message, .. } = &item.kind {
                text.push_str(&format!("\n## You\n\n{}\n", message.trim_end()));
            } else if let ItemKind::AgentMessage { text: message, .. } = &item.kind {
                text.push_str(&format!("\n## Dragoman\n\n{}\n", message.trim_end()));
            } else if let ItemKind::ToolCall(call) = &item.kind {
                let failed = if call.error { " (failed)" } else { "" };
                text.push_str(&format!("\n- {}{failed}\n", super::tool::title(call)));
            }
        }
        text.trim_start().to_owned()
    }

    pub fn grow(&mut self, item: ItemId, channel: Channel, offset: u64, text: &str) {
        if let Some(&at) = self.places.get(&item) {
            self.entries[at].grow(channel, offset, text);
        }
    }

    /// Removes all entries after this item.
    pub fn truncate_after(&mut self, last: Option<ItemId>) {
        let length = match last {
            None => 0,
            Some(last) => self.places.get(&last).map_or(self.entries.len(), |at| at + 1),
        };
        self.entries.truncate(length);
        self.places.retain(|_, at| *at < length);
        self.selected = None;
        self.top = None;
        self.first = self.first.min(length);
    }

    pub fn clear(&mut self) {
        *self = Self { size: self.size, ..Self::default() };
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn item(&self, id: ItemId) -> Option<&Item> {
        match &self.entries.get(*self.places.get(&id)?)?.body {
            Body::Item(item) => Some(item),
            Body::Notice { .. } | Body::Output { .. } => None,
        }
    }

    /// The user's messages with their turns, oldest first.
    pub fn user_messages(&self) -> Vec<(TurnId, &str)> {
        self.items()
            .filter_map(|item| {
                let ItemKind::UserMessage { text, .. } = &item.kind else { return None };
                Some((item.turn, text.as_str()))
            })
            .collect()
    }

    /// The last item of a turn.
    pub fn end_of(&self, turn: TurnId) -> Option<ItemId> {
        self.items().filter(|item| item.turn == turn).last().map(|item| item.id)
    }

    pub(super) fn items(&self) -> impl Iterator<Item = &Item> {
        self.entries.iter().filter_map(|entry| match &entry.body {
            Body::Item(item) => Some(item),
            Body::Notice { .. } | Body::Output { .. } => None,
        })
    }

    /// The view follows the end.
    pub fn follows(&self) -> bool {
        self.top.is_none()
    }

    pub fn go_to_end(&mut self) {
        self.top = None;
        self.selected = None;
    }

    pub fn go_to_start(&mut self, theme: &Theme) {
        self.top = Some((self.first, 0));
        self.settle(theme);
    }

    /// The rows of a page, with an overlap of two.
    pub fn page(&self) -> isize {
        isize::try_from(self.size.1.saturating_sub(2).max(1)).unwrap_or(1)
    }

    /// Scrolls down if `rows` is positive.
    pub fn scroll(&mut self, rows: isize, theme: &Theme) {
        let (mut entry, mut row) = self.top_place(theme);
        if rows < 0 {
            let mut left = rows.unsigned_abs();
            while left > row && entry > self.first {
                left -= row;
                entry -= 1;
                row = self.height(entry, theme);
            }
            row = row.saturating_sub(left);
        } else {
            row += rows.unsigned_abs();
            while entry < self.entries.len() && row >= self.height(entry, theme) {
                row -= self.height(entry, theme);
                entry += 1;
            }
        }
        self.top = Some((entry, row));
        self.settle(theme);
    }

    /// Selects the next foldable entry, upwards or downwards.
    pub fn select(&mut self, up: bool, theme: &Theme) {
        let is_foldable = |at: &usize| self.entries[*at].is_foldable();
        let found = match (self.selected, up) {
            (None, true) => (self.first..self.entries.len()).rev().find(is_foldable),
            (None, false) => None,
            (Some(now), true) => (self.first..now).rev().find(is_foldable).or(Some(now)),
            (Some(now), false) => (now + 1..self.entries.len()).find(is_foldable),
        };
        self.selected = found;
        match found {
            None => self.top = None,
            Some(at) => self.show(at, theme),
        }
    }

    /// Scrolls to an item, unless it belongs to the terminal already.
    pub(crate) fn show_item(&mut self, item: ItemId, theme: &Theme) {
        if let Some(at) = self.places.get(&item).copied().filter(|at| *at >= self.first) {
            self.top = Some((at, 0));
            self.settle(theme);
        }
    }

    /// Scrolls to the prompt before or after the first visible row.
    pub fn jump_to_prompt(&mut self, up: bool, theme: &Theme) {
        let (top, row) = self.top_place(theme);
        let is_prompt = |at: &usize| self.entries[*at].is_prompt();
        let found = match up {
            // Within a prompt, its own beginning is the one before.
            true => (self.first..(top + usize::from(row > 0)).min(self.entries.len())).rev().find(is_prompt),
            false => (top + 1..self.entries.len()).find(is_prompt),
        };
        match found {
            Some(at) => {
                self.top = Some((at, 0));
                self.settle(theme);
            }
            None if !up => self.go_to_end(),
            None => {}
        }
    }

    pub fn is_selecting(&self) -> bool {
        self.selected.is_some()
    }

    pub fn deselect(&mut self) {
        self.selected = None;
    }

    /// Opens or closes the selected entry, or the last foldable one.
    pub fn toggle(&mut self, theme: &Theme) {
        let last = || (0..self.entries.len()).rev().find(|at| self.entries[*at].is_foldable());
        if let Some(at) = self.selected.or_else(last) {
            if at < self.first {
                self.entries[at].open();
                self.reopened = Some(at);
                return;
            }
            let place = self.top_place(theme);
            self.entries[at].toggle();
            if self.entries[at].is_open() {
                // Keep its first line in place.
                self.top = Some(place);
                self.show(at, theme);
            }
        }
    }

    /// Forgets all layouts, because the colors have changed.
    pub(crate) fn lay_out_anew(&mut self) {
        self.entries.iter_mut().for_each(TranscriptEntry::forget_layout);
    }

    /// The chat begins in this row of the screen.
    pub(crate) fn place_at(&mut self, row: u16) {
        self.begins_at = row;
    }

    /// Opens or closes the entry in a row of the screen, where it can be folded. Its first line stays where it is.
    pub(crate) fn toggle_at(&mut self, row: u16, theme: &Theme) {
        let Some(below) = row.checked_sub(self.begins_at).filter(|below| *below < self.size.1) else {
            return;
        };
        let place = self.top_place(theme);
        let (mut entry, mut left) = (place.0, place.1 + usize::from(below));
        while entry < self.entries.len() {
            let height = self.height(entry, theme);
            if left < height {
                break;
            }
            left -= height;
            entry += 1;
        }
        if self.entries.get(entry).is_some_and(TranscriptEntry::is_foldable) {
            self.entries[entry].toggle();
            self.top = Some(place);
            self.settle(theme);
        }
    }

    /// Returns the rows of entries that will not change any more, once each, and those of an answer that grows; from then
    /// on the view begins after them.
    pub(crate) fn take_finished(&mut self, columns: u16, theme: &Theme) -> Vec<Line<'static>> {
        self.size.0 = columns;
        let end = self.first + self.entries[self.first..].iter().take_while(|entry| entry.ended).count();
        let (mut start, mut count) = (end, 0);
        while start > self.first && count < MAX_PRINTED_ROWS {
            start -= 1;
            count += self.height(start, theme);
        }
        let mut rows = Vec::new();
        if start > self.first {
            let text =
                format!("… {} earlier entries; /export writes all of them to a file.", start - self.first);
            rows.extend([Line::styled(text, theme.dim), Line::default()]);
        }
        for at in (start..end).chain(self.reopened.take()) {
            rows.extend(self.gap_before(at));
            rows.extend_from_slice(self.entries[at].rows(columns, theme));
        }
        if end < self.entries.len() {
            let gap = self.gap_before(end);
            let settled = self.entries[end].take_settled(columns, theme);
            rows.extend(gap.filter(|_| !settled.is_empty()));
            rows.extend(settled);
        }
        if end > self.first {
            (self.first, self.top, self.selected) = (end, None, None);
        }
        rows
    }

    /// The entry after a folded one was not known when that was printed.
    fn gap_before(&self, at: usize) -> Option<Line<'static>> {
        let is_needed = at > 0 && self.has_gap(at - 1) && !self.entries[at].is_partly_printed();
        is_needed.then(Line::default)
    }

    /// Lays out the visible entries and returns their rows.
    pub fn view(&mut self, columns: u16, rows: u16, theme: &Theme) -> Vec<VisibleRow<'_>> {
        self.size = (columns, rows);
        let (entry, row) = self.top_place(theme);
        let mut left = usize::from(rows);
        let mut last = entry;
        let mut skip = row;
        while last < self.entries.len() && left > 0 {
            left = left.saturating_sub(self.height(last, theme).saturating_sub(skip));
            skip = 0;
            last += 1;
        }
        let visible = self.entries[entry.min(last)..last].iter().zip(entry..).flat_map(|(it, at)| {
            let gap = self.has_gap(at).then_some(&self.blank);
            let selected = self.selected == Some(at);
            it.known_rows().iter().chain(gap).map(move |line| VisibleRow { line, selected })
        });
        visible.skip(row).take(rows.into()).collect()
    }

    fn height(&mut self, at: usize, theme: &Theme) -> usize {
        let (columns, gap) = (self.size.0, usize::from(self.has_gap(at)));
        self.entries.get_mut(at).map_or(0, |entry| entry.rows(columns, theme).len() + gap)
    }

    /// A blank row separates a folded entry from the text after it.
    fn has_gap(&self, at: usize) -> bool {
        let folded = |at: usize| self.entries.get(at).map(TranscriptEntry::is_folded);
        folded(at) == Some(true) && folded(at + 1) == Some(false)
    }

    /// The entry and row at the top of the screen.
    fn top_place(&mut self, theme: &Theme) -> (usize, usize) {
        if let Some((entry, row)) = self.top {
            let height = self.height(entry, theme);
            return (entry.min(self.entries.len()), row.min(height));
        }
        let mut left = usize::from(self.size.1);
        let mut entry = self.entries.len();
        while entry > self.first {
            let height = self.height(entry - 1, theme);
            entry -= 1;
            if height >= left {
                return (entry, height - left);
            }
            left -= height;
        }
        (self.first, 0)
    }

    /// Follows the end again if nothing is below the screen.
    fn settle(&mut self, theme: &Theme) {
        let Some((entry, row)) = self.top else { return };
        let mut below = 0;
        for at in entry..self.entries.len() {
            below += self.height(at, theme);
            if below > row + usize::from(self.size.1) {
                return;
            }
        }
        self.top = None;
    }

    /// Scrolls as little as needed to show the first row of an entry.
    fn show(&mut self, at: usize, theme: &Theme) {
        let (entry, row) = self.top_place(theme);
        if at < entry || (at == entry && row > 0) {
            self.top = Some((at, 0));
        } else {
            let mut before = 0;
            for between in entry..at {
                before += self.height(between, theme);
                if before.saturating_sub(row) + 1 >= usize::from(self.size.1) {
                    self.top = Some((at, 0));
                    break;
                }
            }
        }
        self.settle(theme);
    }
}
