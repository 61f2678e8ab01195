//! Owns the terminal: enters raw mode and, unless the chat is inline, the alternate screen, and restores both.
//!
//! Invariant: dropping a `Tty` (by a return, a panic or a stopped task) restores the terminal.

use std::io::{self, Stdout, Write};

use base64::Engine;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture,
};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{cursor, execute};

use super::draw;
use super::inline::InlineRegion;
use super::screen::Screen;
use super::title::ProgressState;

/// Buttons, drags and the wheel, with coordinates beyond column 223. Motion without a button is not reported.
const REPORT_MOUSE: &str = "\x1b[?1000h\x1b[?1002h\x1b[?1006h";
const STOP_MOUSE: &str = "\x1b[?1006l\x1b[?1002l\x1b[?1000l";
/// On a screen of its own the terminal would send the wheel as arrow keys, which replace what was typed.
const WHEEL_IS_NO_KEY: &str = "\x1b[?1007l";
const WHEEL_AS_BEFORE: &str = "\x1b[?1007h";
/// Keys that old terminals cannot tell apart, such as Shift-Enter, get a code of their own: the kitty protocol, and
/// modifyOtherKeys in the same format. Terminals that know neither ignore both.
const DISTINCT_KEYS: &str = "\x1b[>1u\x1b[>4;1f\x1b[>4;1m";
const KEYS_AS_BEFORE: &str = "\x1b[>4m\x1b[>4f\x1b[<1u";

/// The title is kept and comes back at the end, where the terminal does such things.
const KEEP_TITLE: &str = "\x1b[22;2t";
const TITLE_AS_BEFORE: &str = "\x1b[23;2t";

/// How the user is called.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notify {
    /// `bell`, `osc9`, `osc99`, `osc777`; the program does the others.
    pub by: Vec<String>,
    /// Also while the terminal has the focus.
    pub always: bool,
}

pub(crate) struct Tty {
    surface: Surface,
    mouse: bool,
    notify_by: Vec<String>,
    /// What the terminal was told last.
    title: String,
    progress: ProgressState,
    taken: bool,
}

enum Surface {
    /// The whole screen, which the former one replaces at the end.
    Full(Terminal<CrosstermBackend<Stdout>>),
    /// The end of the terminal's own text.
    Inline(InlineRegion),
}

impl Tty {
    pub(crate) fn take(inline: bool, mouse: bool, notify_by: Vec<String>) -> io::Result<Self> {
        let surface = match inline {
            true => Surface::Inline(InlineRegion::default()),
            false => Surface::Full(Terminal::new(CrosstermBackend::new(io::stdout()))?),
        };
        let mut tty = Self {
            surface,
            mouse: mouse && !inline,
            notify_by,
            title: String::new(),
            progress: ProgressState::Idle,
            taken: false,
        };
        tty.enter()?;
        Ok(tty)
    }

    pub(crate) fn enter(&mut self) -> io::Result<()> {
        self.taken = true;
        enable_raw_mode()?;
        write!(io::stdout(), "{KEEP_TITLE}")?;
        execute!(io::stdout(), EnableBracketedPaste, EnableFocusChange)?;
        if let Surface::Full(terminal) = &mut self.surface {
            execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
            // The screen is empty now; a new `Terminal` forgets the last frame without a query to the real terminal.
            *terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
            if !self.mouse {
                write!(io::stdout(), "{WHEEL_IS_NO_KEY}")?;
            }
        }
        // After the other screen, because terminals keep these for each screen.
        ask_for_input(self.mouse)
    }

    /// Releases the terminal to the user or another program until `enter`.
    pub(crate) fn leave(&mut self) {
        if std::mem::take(&mut self.taken) {
            // Separate steps: if one fails, the others still run.
            let _ = end_input(self.mouse);
            if !self.mouse && matches!(self.surface, Surface::Full(_)) {
                let _ = write!(io::stdout(), "{WHEEL_AS_BEFORE}");
            }
            let _ = execute!(io::stdout(), DisableFocusChange, DisableBracketedPaste);
            let _ = match &mut self.surface {
                Surface::Full(_) => execute!(io::stdout(), LeaveAlternateScreen, cursor::Show),
                Surface::Inline(region) => region.clear(&mut io::stdout()),
            };
            let _ = self.show_progress(ProgressState::Idle);
            let _ = write!(io::stdout(), "{TITLE_AS_BEFORE}");
            self.title.clear();
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

    /// Calls the user by the bell and notifications, where the terminal does such things.
    pub(crate) fn notify(&mut self, text: &'static str) {
        for way in &self.notify_by {
            let _ = match way.as_str() {
                "bell" => write!(io::stdout(), "\x07"),
                "osc9" => write!(io::stdout(), "\x1b]9;{text}\x07"),
                "osc99" => write!(io::stdout(), "\x1b]99;;{text}\x1b\\"),
                "osc777" => write!(io::stdout(), "\x1b]777;notify;Dragoman;{text}\x07"),
                _ => Ok(()),
            };
        }
        let _ = io::stdout().flush();
    }

    /// The title of the window; written where it changed.
    pub(crate) fn set_title(&mut self, title: String) -> io::Result<()> {
        if title == self.title {
            return Ok(());
        }
        write!(io::stdout(), "\x1b]2;{title}\x07")?;
        self.title = title;
        io::stdout().flush()
    }

    /// Progress beside the title (OSC 9;4); written where it changed.
    pub(crate) fn show_progress(&mut self, state: ProgressState) -> io::Result<()> {
        if state == self.progress {
            return Ok(());
        }
        self.progress = state;
        let code = match state {
            ProgressState::Idle => "0",
            ProgressState::Working => "3",
            ProgressState::Waiting => "4;100",
        };
        write!(io::stdout(), "\x1b]9;4;{code}\x07")?;
        io::stdout().flush()
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

/// Consoles whose input is not a stream of codes are asked in their own way.
fn ask_for_input(mouse: bool) -> io::Result<()> {
    if !platform::terminal::ANSWERS_QUESTIONS {
        return if mouse { execute!(io::stdout(), EnableMouseCapture) } else { Ok(()) };
    }
    let mouse = if mouse { REPORT_MOUSE } else { "" };
    write!(io::stdout(), "{DISTINCT_KEYS}{mouse}")?;
    io::stdout().flush()
}

fn end_input(mouse: bool) -> io::Result<()> {
    if !platform::terminal::ANSWERS_QUESTIONS {
        return if mouse { execute!(io::stdout(), DisableMouseCapture) } else { Ok(()) };
    }
    let mouse = if mouse { STOP_MOUSE } else { "" };
    write!(io::stdout(), "{mouse}{KEYS_AS_BEFORE}")?;
    io::stdout().flush()
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.leave();
    }
}
