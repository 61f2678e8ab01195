//! The user's console on Windows.

use std::io::{self, BufRead};
use std::time::Duration;

use windows_sys::Win32::System::Console::{
    CONSOLE_SCREEN_BUFFER_INFO, ENABLE_ECHO_INPUT, GetConsoleMode, GetConsoleScreenBufferInfo, GetStdHandle,
    STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetConsoleMode,
};

/// The console is not asked anything here: its answers would be read as keys.
pub const ANSWERS_QUESTIONS: bool = false;

/// The width of the console at standard output.
pub fn columns() -> Option<usize> {
    let mut found = CONSOLE_SCREEN_BUFFER_INFO::default();
    // SAFETY: the structure is large enough; a handle that is no console makes the call fail.
    let asked = unsafe { GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &raw mut found) };
    let width = i32::from(found.srWindow.Right) - i32::from(found.srWindow.Left) + 1;
    (asked != 0).then(|| usize::try_from(width).ok()).flatten().filter(|columns| *columns > 0)
}

/// Never has anything to read, see [`ANSWERS_QUESTIONS`].
pub fn read_within(_wait: Duration, _buffer: &mut [u8]) -> io::Result<usize> {
    Ok(0)
}

/// Reads one line without showing it.
pub fn read_hidden_line() -> io::Result<String> {
    // SAFETY: no arguments that could be wrong; the handle is not closed.
    let input = unsafe { GetStdHandle(STD_INPUT_HANDLE) };
    let mut before = 0;
    // SAFETY: a handle that is no console makes the call fail.
    if unsafe { GetConsoleMode(input, &raw mut before) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    unsafe { SetConsoleMode(input, before & !ENABLE_ECHO_INPUT) };
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    // SAFETY: as above.
    unsafe { SetConsoleMode(input, before) };
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
