//! The beginning of a link: each side says which version it speaks, and the peer shows a secret.
//!
//! Invariant: the first line is the same in every version, so that a program of another version can say which of the two
//! is to be restarted.

use std::time::Duration;

/// Changes when two programs could not understand each other.
pub(crate) const VERSION: u32 = 2;

/// A peer that says nothing is let go.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) const LONGEST_LINE: usize = 256;

const NAME: &str = "dragoman-link";

/// `dragoman-link 2 dragoman 0.1.0 (process 7)`.
pub(crate) fn first_line(program: &str) -> String {
    let program: String = program.chars().filter(|c| !c.is_control()).take(150).collect();
    format!("{NAME} {VERSION} {program}")
}

/// The version and the program of a first line.
pub(crate) fn version(line: &str) -> Option<(u32, &str)> {
    let rest = line.strip_prefix(NAME)?.strip_prefix(' ')?;
    let (version, program) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((version.parse().ok()?, program))
}

/// Compares in a time that does not depend on where two texts differ.
pub(crate) fn is_same(shown: &str, secret: &str) -> bool {
    let (shown, secret) = (shown.as_bytes(), secret.as_bytes());
    let differences = shown.iter().zip(secret).fold(0, |all, (a, b)| all | (a ^ b));
    !secret.is_empty() && shown.len() == secret.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_tells_version_and_program() {
        assert_eq!(version(&first_line("dragoman 2")), Some((VERSION, "dragoman 2")));
        assert_eq!(version("dragoman-link 9 newer (process 3)"), Some((9, "newer (process 3)")));
        assert_eq!(version("dragoman-link 9"), Some((9, "")));
        for line in ["", "dragoman-link", "dragoman-link x", "GET / HTTP/1.1", "dragoman-linked 1 x"] {
            assert_eq!(version(line), None, "{line}");
        }
    }

    #[test]
    fn a_secret_is_compared_whole() {
        assert!(is_same("abc", "abc"));
        for (shown, secret) in [("abd", "abc"), ("ab", "abc"), ("abcd", "abc"), ("", ""), ("", "abc")] {
            assert!(!is_same(shown, secret), "{shown} {secret}");
        }
    }
}
