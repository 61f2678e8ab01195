//! The user's terminal on Unix.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex};

/// The terminal answers escape sequences on standard input.
pub const ANSWERS_QUESTIONS: bool = true;

const MAX_LINE_BYTES: usize = 16 << 10;

/// The width of the terminal at standard output.
pub fn columns() -> Option<usize> {
    let size = termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Reads what the terminal has sent, unbuffered, and waits at most this long; 0 bytes: nothing came.
pub fn read_within(wait: Duration, buffer: &mut [u8]) -> io::Result<usize> {
    let input = io::stdin();
    let mut ready = [PollFd::new(&input, PollFlags::IN)];
    let wait = Timespec { tv_sec: wait.as_secs() as _, tv_nsec: wait.subsec_nanos().into() };
    if poll(&mut ready, Some(&wait))? == 0 {
        return Ok(0);
    }
    Ok(rustix::io::read(input.as_fd(), buffer)?)
}

/// Reads one line without showing it, byte by byte, so that Ctrl-C also restores the terminal.
pub fn read_hidden_line() -> io::Result<String> {
    let stdin = io::stdin();
    let before = termios::tcgetattr(&stdin)?;
    let mut hidden = before.clone();
    hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
    hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
    hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
    termios::tcsetattr(&stdin, OptionalActions::Flush, &hidden)?;
    let mut bytes = Vec::new();
    let mut one = [0];
    let read = loop {
        match stdin.lock().read(&mut one) {
            Ok(0) => break Ok(()),
            Ok(_) => match one[0] {
                b'\r' | b'\n' => break Ok(()),
                3 | 4 => break Err(io::Error::other("given up")),
                8 | 127 => {
                    bytes.pop();
                }
                byte if bytes.len() < MAX_LINE_BYTES => bytes.push(byte),
                _ => {}
            },
            Err(error) => break Err(error),
        }
    };
    termios::tcsetattr(&stdin, OptionalActions::Flush, &before)?;
    read?;
    String::from_utf8(bytes).map_err(io::Error::other)
}
