//! Stdout and stderr of commands: every command writes through this module.
//!
//! Invariants: no write panics; text that could not be written is a failure of the command; a reader that has seen enough,
//! such as `head`, is not. Only `deliver` treats such a reader as a failure: nobody can ask for its text again.

use std::io::{self, ErrorKind, IsTerminal, Write};

use domain::Failure;

/// Writes the whole text to stdout.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    accept(write_to(&mut stdout().lock(), text.as_ref()))
}

/// Writes the text and a line break to stdout.
pub(crate) fn print_line(text: &str) -> Result<(), Failure> {
    print(format!("{text}\n"))
}

/// Writes one part of a text that has no end of its own. `false`: nobody reads the rest.
pub(crate) fn print_part(text: impl AsRef<[u8]>) -> Result<bool, Failure> {
    match write_to(&mut stdout().lock(), text.as_ref()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(failure(&error)),
    }
}

/// Writes text that is shown only once.
pub(crate) fn deliver(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    write_to(&mut stdout().lock(), text.as_ref()).map_err(|error| failure(&error))
}

/// Writes a line to stderr. An error is ignored: there is no place left to report it.
pub(crate) fn note(line: &str) {
    note_part(&format!("{line}\n"));
}

/// Writes to stderr without a line break: a question, or progress.
pub(crate) fn note_part(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Whether a person reads stdout.
pub(crate) fn is_terminal() -> bool {
    stdout().is_terminal()
}

/// For a writer that checks each write itself.
pub(crate) fn stdout() -> io::Stdout {
    io::stdout()
}

/// Turns the result of a write by another library into that of a command.
pub(crate) fn accept(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| failure(&error)),
    }
}

fn write_to(out: &mut impl Write, text: &[u8]) -> io::Result<()> {
    out.write_all(text)?;
    // Text without a line break at its end would wait in the buffer, and its error would be lost.
    out.flush()
}

fn failure(error: &io::Error) -> Failure {
    Failure::user(format!("The output could not be written to stdout: {error}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts some bytes, then fails; like stdout, it holds back what has no line break.
    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.contains(&b'\n') { Err(self.0.into()) } else { Ok(bytes.len()) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_failed_write_is_reported_and_a_reader_that_has_gone_is_not() {
        for text in ["a line\n", "a question? "] {
            let full = accept(write_to(&mut Broken(ErrorKind::StorageFull), text.as_bytes()));
            assert!(full.is_err_and(|failure| failure.message.contains("stdout")), "{text}");
            assert!(accept(write_to(&mut Broken(ErrorKind::BrokenPipe), text.as_bytes())).is_ok(), "{text}");
        }
    }
}
