//! Owns the terminal: enters raw mode and, unless the chat is inline, the alternate screen, and restores both.
//!
//! Invariant: dropping a `Tty` (by a return, a panic or a stopped task) restores the terminal.

use std::io::{self, Stdout, Write};

use base64::Engine;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange,
};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{cursor, execute};

use super::draw;
use super::inline::InlineRegion;
use super::screen::Screen;

pub(crate) struct Tty {
    surface: Surface,
    taken: bool,
}

enum Surface {
    /// The whole screen, which the former one replaces at the end.
    Full(Terminal<CrosstermBackend<Stdout>>),
    /// The end of the terminal's own text.
    Inline(InlineRegion),
}

impl Tty {
    pub(crate) fn take(inline: bool) -> io::Result<Self> {
        let surface = match inline {
            true => Surface::Inline(InlineRegion::default()),
            false => Surface::Full(Terminal::new(CrosstermBackend::new(io::stdout()))?),
        };
        let mut tty = Self { surface, taken: false };
        tty.enter()?;
        Ok(tty)
    }

    pub(crate) fn enter(&mut self) -> io::Result<()> {
        self.taken = true;
        enable_raw_mode()?;
        execute!(io::stdout(), EnableBracketedPaste, EnableFocusChange)?;
        if let Surface::Full(terminal) = &mut self.surface {
            execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
            // The screen is empty now; a new `Terminal` forgets the last frame without a query to the real terminal.
            *terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        }
        Ok(())
    }

    /// Releases the terminal to the user or another program until `enter`.
    pub(crate) fn leave(&mut self) {
        if std::mem::take(&mut self.taken) {
            // Separate steps: if one fails, the others still run.
            let _ = execute!(io::stdout(), DisableFocusChange, DisableBracketedPaste);
            let _ = match &mut self.surface {
                Surface::Full(_) => execute!(io::stdout(), LeaveAlternateScreen, cursor::Show),
                Surface::Inline(region) => region.clear(&mut io::stdout()),
            };
            let _ = disable_raw_mode();
            let _ = io::stdout().flush();
        }
    }

    /// Puts text into the clipboard by OSC 52, where the terminal allows it.
    pub(crate) fn copy(&mut self, text: &str) {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        let _ = write!(io::stdout(), "\x1b]52;c;{encoded}\x07");
        let _ = io::stdout().flush();
    }

    /// Rings the bell and shows a notification (OSC 9), where the terminal does such things.
    pub(crate) fn notify(&mut self, text: &'static str) {
        let _ = write!(io::stdout(), "\x1b]9;{text}\x07\x07");
        let _ = io::stdout().flush();
    }

    /// `is_caught_up`: the screen has everything that was said so far.
    pub(crate) fn draw(&mut self, screen: &mut Screen, is_caught_up: bool) -> io::Result<()> {
        match &mut self.surface {
            Surface::Full(terminal) => {
                terminal.draw(|frame| {
                    if let Some(cursor) = draw::draw(screen, frame.buffer_mut()) {
                        frame.set_cursor_position(cursor);
                    }
                })?;
                Ok(())
            }
            Surface::Inline(region) => region.draw(screen, size()?, is_caught_up, &mut io::stdout()),
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.leave();
    }
}
