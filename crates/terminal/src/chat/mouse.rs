//! The mouse: the wheel scrolls what is shown, a click opens or closes an entry, a drag marks text and copies it.
//!
//! Invariant: the wheel never touches the line that is being typed.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::screen::{Effect, Overlay, Screen};
use super::selection::Selection;

/// The rows of one step of the wheel.
const WHEEL_ROWS: isize = 3;

impl Screen {
    pub fn handle_mouse(&mut self, event: MouseEvent) {
        let place = (event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.turn_wheel(-WHEEL_ROWS),
            MouseEventKind::ScrollDown => self.turn_wheel(WHEEL_ROWS),
            MouseEventKind::Down(MouseButton::Left) => self.selection = Some(Selection::new(place)),
            MouseEventKind::Drag(MouseButton::Left) => {
                if let Some(selection) = &mut self.selection {
                    selection.extend(place);
                }
            }
            MouseEventKind::Up(MouseButton::Left) => self.release_button(),
            MouseEventKind::Down(_)
            | MouseEventKind::Up(_)
            | MouseEventKind::Drag(_)
            | MouseEventKind::Moved
            | MouseEventKind::ScrollLeft
            | MouseEventKind::ScrollRight => {}
        }
    }

    fn turn_wheel(&mut self, rows: isize) {
        match &mut self.overlay {
            Some(Overlay::Page(page) | Overlay::Rule { page, .. } | Overlay::AllowAll { page, .. }) => {
                page.scroll(rows);
            }
            Some(Overlay::Picker(picker)) => picker.move_by(rows.signum()),
            Some(Overlay::Login(_)) => {}
            None => self.transcript.scroll(rows, &self.theme),
        }
    }

    fn release_button(&mut self) {
        let Some(selection) = self.selection.take() else { return };
        if selection.is_click() {
            return self.click(selection.begin().1);
        }
        let text = selection.text();
        if !text.is_empty() {
            let count = text.chars().count();
            self.push_effect(Effect::Copy(text));
            self.flash(format!(
                "{count} characters are in the clipboard, if the terminal allows it (OSC 52)."
            ));
        }
    }

    fn click(&mut self, row: u16) {
        if self.overlay.is_none() {
            self.transcript.toggle_at(row, &self.theme);
        }
    }
}
