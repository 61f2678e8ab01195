//! Paths ↔ addresses of files, and characters ↔ the units in which servers count.
//!
//! Pure. Invariant: an address that is not one of a file on this machine has no path.

use domain::host::Position;
pub(crate) use platform::file_uri::{from_path as uri_of, to_path as path_of};

use crate::wire::WirePosition;

/// What a server counts within a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Units {
    Characters,
    Utf16,
    Bytes,
}

impl Units {
    /// As `positionEncoding` names them; UTF-16 is the protocol's default.
    pub(crate) fn named(name: Option<&str>) -> Self {
        match name {
            Some("utf-32") => Self::Characters,
            Some("utf-8") => Self::Bytes,
            _ => Self::Utf16,
        }
    }

    fn count(self, character: char) -> usize {
        match self {
            Self::Characters => 1,
            Self::Utf16 => character.len_utf16(),
            Self::Bytes => character.len_utf8(),
        }
    }

    /// From 1-based characters to what the server counts.
    pub(crate) fn encode(self, position: Position, text: &str) -> WirePosition {
        let line = position.line.saturating_sub(1);
        let before = position.character.saturating_sub(1);
        let start = text.lines().nth(line as usize).unwrap_or_default().chars().take(before as usize);
        let units = start.map(|character| self.count(character)).sum::<usize>();
        WirePosition { line, character: u32::try_from(units).unwrap_or(u32::MAX) }
    }

    /// From what the server counts to 1-based characters. Without the line its units are taken for characters.
    pub(crate) fn decode(self, position: WirePosition, line: Option<&str>) -> Position {
        let number = position.line.saturating_add(1);
        let Some(line) = line.filter(|_| self != Self::Characters) else {
            return Position { line: number, character: position.character.saturating_add(1) };
        };
        let mut left = position.character as usize;
        let before = line.chars().take_while(|character| {
            let fits = left > 0;
            left = left.saturating_sub(self.count(*character));
            fits
        });
        Position { line: number, character: u32::try_from(before.count()).unwrap_or(u32::MAX - 1) + 1 }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn paths_survive_as_addresses() {
        for path in ["/a/b.rs", "/with space/ä#?.rs", "/100%/[x].ts"] {
            assert_eq!(path_of(&uri_of(Path::new(path))).unwrap(), Path::new(path));
        }
        for uri in ["https://example.com/a", "file://host/a", "untitled:1", "file:///%zz", "file:///%e"] {
            assert_eq!(path_of(uri), None, "{uri}");
        }
    }

    #[test]
    fn places_survive_whatever_a_server_counts() {
        let text = "one\nä𝄞x = yes\n";
        for units in [Units::Characters, Units::Utf16, Units::Bytes] {
            for character in 1..=9 {
                let position = Position { line: 2, character };
                let wire = units.encode(position, text);
                assert_eq!(units.decode(wire, text.lines().nth(1)), position, "{units:?}");
            }
        }
        assert_eq!(Units::Utf16.encode(Position { line: 2, character: 3 }, text).character, 3);
        assert_eq!(Units::Bytes.encode(Position { line: 2, character: 3 }, text).character, 6);
    }
}
