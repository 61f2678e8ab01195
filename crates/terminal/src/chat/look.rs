//! How the user wants the screen to be. Plain data.

use super::status_line::StatusLine;
use super::theme::Theme;

#[derive(Default)]
pub struct Look {
    /// The themes to choose from, by name.
    pub themes: Vec<(String, Theme)>,
    /// The first row has the folder, the model and the behavior.
    pub has_header: bool,
    /// Nothing moves by itself.
    pub is_calm: bool,
    /// No frames and bars: a screen reader reads line after line.
    pub is_linear: bool,
    /// The user's own last line, and what its command printed.
    pub status_line: Option<StatusLine>,
    pub status_output: String,
    /// The user is called also while the terminal has the focus.
    pub notifies_always: bool,
}
