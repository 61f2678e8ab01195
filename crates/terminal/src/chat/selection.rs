//! Text that the user marks with the mouse: from the cell where the button went down to the cell under the pointer.
//!
//! Must not know what is drawn. Invariant: only cells that were on the screen are copied.

use crate::text::width;

/// A column and a row of the screen.
pub(crate) type Place = (u16, u16);

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selection {
    begin: Place,
    end: Place,
    /// The symbols of the last frame, row by row.
    frame: Vec<Vec<String>>,
}

impl Selection {
    pub(super) fn new(at: Place) -> Self {
        Self { begin: at, end: at, frame: Vec::new() }
    }

    pub(super) fn extend(&mut self, to: Place) {
        self.end = to;
    }

    /// The button went up where it went down.
    pub(super) fn is_click(&self) -> bool {
        self.begin == self.end
    }

    pub(super) fn begin(&self) -> Place {
        self.begin
    }

    /// The columns of a row that are marked, the last one included.
    pub(super) fn columns(&self, row: u16) -> Option<(u16, u16)> {
        if self.is_click() {
            return None;
        }
        let key = |place: Place| (place.1, place.0);
        let (first, last) =
            if key(self.begin) <= key(self.end) { (self.begin, self.end) } else { (self.end, self.begin) };
        if !(first.1..=last.1).contains(&row) {
            return None;
        }
        let from = if row == first.1 { first.0 } else { 0 };
        let to = if row == last.1 { last.0 } else { u16::MAX };
        Some((from, to))
    }

    pub(super) fn keep_frame(&mut self, frame: Vec<Vec<String>>) {
        self.frame = frame;
    }

    /// The marked text, without the blanks at the ends of its rows.
    pub(super) fn text(&self) -> String {
        let mut rows: Vec<String> = Vec::new();
        for (row, cells) in (0..).zip(&self.frame) {
            let Some((from, to)) = self.columns(row) else { continue };
            let (mut text, mut covered) = (String::new(), 0);
            for (column, symbol) in (0_u16..).zip(cells) {
                if covered > 0 {
                    // A wide letter covers this cell too.
                    covered -= 1;
                    continue;
                }
                covered = width(symbol).saturating_sub(1);
                if (from..=to).contains(&column) {
                    text.push_str(symbol);
                }
            }
            rows.push(text.trim_end().to_owned());
        }
        rows.join("\n").trim_matches('\n').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_rows_are_copied_without_their_blanks() {
        let mut selection = Selection::new((2, 0));
        selection.extend((1, 2));
        let cells = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        selection.keep_frame(vec![cells("ab漢 d  "), cells("whole   "), cells("xyz")]);
        assert_eq!(selection.text(), "漢d\nwhole\nxy");
        selection.extend((2, 0));
        assert!(selection.is_click() && selection.text().is_empty());
    }
}
