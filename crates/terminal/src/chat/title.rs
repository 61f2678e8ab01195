//! What the terminal shows outside of the chat: the title of its window, and progress beside it.

use super::screen::Screen;
use crate::text::{clean_line, shorten};

const MAX_TITLE_COLUMNS: usize = 80;

/// The state of the program for the terminal's own display (OSC 9;4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ProgressState {
    #[default]
    Idle,
    Working,
    /// A question waits.
    Waiting,
}

impl Screen {
    /// `title · Dragoman`, with a sign while it works or waits.
    pub(super) fn window_title(&self) -> String {
        let folder = self.intro.folders.first().map(|folder| clean_line(folder)).unwrap_or_default();
        let title = self.settings.title.as_deref().map(clean_line).filter(|title| !title.is_empty());
        let sign = match self.progress_state() {
            ProgressState::Idle => "",
            ProgressState::Working => "● ",
            ProgressState::Waiting => "? ",
        };
        shorten(&format!("{sign}{} · Dragoman", title.unwrap_or(folder)), MAX_TITLE_COLUMNS)
    }

    pub(super) fn progress_state(&self) -> ProgressState {
        match (self.busy, self.asks.count()) {
            (None, _) => ProgressState::Idle,
            (Some(_), 0) => ProgressState::Working,
            (Some(_), _) => ProgressState::Waiting,
        }
    }
}
