//! The terminal, taken and given back.
//!
//! Invariant: whoever drops a `Tty`, by a return, a panic or a stopped task, leaves the terminal as it was found.

use std::io::{self, Stdout, Write};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};

use super::draw;
use super::screen::Screen;

pub struct Tty {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    taken: bool,
}

impl Tty {
    pub fn take() -> io::Result<Self> {
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let mut tty = Self { terminal, taken: false };
        tty.enter()?;
        Ok(tty)
    }

    pub fn enter(&mut self) -> io::Result<()> {
        self.taken = true;
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Clear(ClearType::All))?;
        // What was drawn before is gone; a terminal of its own forgets it without asking the real one anything.
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }

    /// The terminal is the user's (or another program's) until `enter`.
    pub fn leave(&mut self) {
        if std::mem::take(&mut self.taken) {
            // Each on its own: one that fails must not keep the others from being done.
            let _ = execute!(io::stdout(), DisableBracketedPaste);
            let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
            let _ = disable_raw_mode();
            let _ = io::stdout().flush();
        }
    }

    pub fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        self.terminal.draw(|frame| {
            if let Some(cursor) = draw::draw(screen, frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })?;
        Ok(())
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.leave();
    }
}
