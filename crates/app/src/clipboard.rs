//! The image in the clipboard, read by the program that the desktop has for it.
//!
//! Must not know the terminal. Invariant: nothing is linked for it and nothing stays running.

use std::time::Duration;

use config::Environment;
use domain::command::Context;
use domain::{CancellationToken, Failure};
use process::{OutputLimit, Spawn};

const TIMEOUT: Duration = Duration::from_secs(5);
/// macOS writes an image as hexadecimal digits.
const MAX_BYTES: usize = 2 * crate::commands::run::MAX_IMAGE_BYTES as usize + 64;

/// The program of this desktop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Clipboard {
    Wayland,
    X11,
    MacOs,
    /// There is no desktop, as in a login from afar.
    Absent,
}

impl Clipboard {
    pub(crate) fn of(environment: &Environment) -> Self {
        let is_set = |name: &str| environment.var(name).is_some_and(|value| !value.is_empty());
        match std::env::consts::OS {
            "macos" => Self::MacOs,
            _ if is_set("WAYLAND_DISPLAY") => Self::Wayland,
            _ if is_set("DISPLAY") => Self::X11,
            _ => Self::Absent,
        }
    }

    fn command(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Self::Wayland => Some(("wl-paste", &["--no-newline", "--type", "image/png"])),
            Self::X11 => Some(("xclip", &["-selection", "clipboard", "-target", "image/png", "-out"])),
            Self::MacOs => Some(("osascript", &["-e", "the clipboard as «class PNGf»"])),
            Self::Absent => None,
        }
    }

    pub(crate) async fn image(self) -> Result<Context, Failure> {
        let hint = "Paste the path of an image file instead.";
        let (program, arguments) = self
            .command()
            .ok_or_else(|| Failure::user("This terminal has no clipboard that can be read.").hint(hint))?;
        let limit = OutputLimit { head: MAX_BYTES, tail: 0 };
        let spawn = Spawn::new(program).args(arguments).deadline(TIMEOUT).limit(limit);
        let finished = spawn.run(&CancellationToken::new()).await.map_err(|_| {
            Failure::user(format!("`{program}`, which reads the clipboard, is not installed.")).hint(hint)
        })?;
        let bytes = match self {
            Self::MacOs => decode(&finished.stdout.head),
            Self::Wayland | Self::X11 | Self::Absent => finished.stdout.head,
        };
        crate::commands::run::image_of(&bytes)
            .ok_or_else(|| Failure::user("There is no image in the clipboard.").hint(hint))
    }
}

/// `«data PNGf89504E47…»`.
fn decode(printed: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(printed);
    let digits = text.split_once("PNGf").map_or("", |(_, digits)| digits).trim_end_matches(['»', '\n']);
    let pairs = digits.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).ok());
    pairs.map_while(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_of_macos_are_bytes() {
        assert_eq!(decode("«data PNGf89504E470D»\n".as_bytes()), b"\x89PNG\r");
        assert_eq!(decode(b"nothing"), b"");
    }
}
