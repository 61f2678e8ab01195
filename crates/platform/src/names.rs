//! Names of files as rules compare them.
//!
//! Pure: the system is an argument. Invariants: two texts that the file system takes for one file compare equal where that
//! can be known from the texts; a Windows name that means something else than it says is refused before any rule is
//! asked.

use crate::System;

/// Why a path is refused on Windows; `None` for an ordinary one. Streams (`a.txt:s`), devices (`NUL`, `COM1.txt`), names
/// that Windows shortens (`a.`, `a `) and the device name space (`\\.\`) would get around rules about the plain name.
pub fn odd_windows_path(path: &str) -> Option<&'static str> {
    let path: String = path.chars().map(|c| if c == '\\' { '/' } else { c }).collect();
    let rest = match path.strip_prefix("//?/") {
        Some(rest) => rest.strip_prefix("UNC/").map_or_else(|| drive_path(rest), Some),
        None if path.starts_with("//./") || path.starts_with("/??/") => None,
        None => Some(path.as_str()),
    };
    let Some(rest) = rest else { return Some("it names a device") };
    let rest = match rest.as_bytes() {
        [drive, b':', b'/', ..] if drive.is_ascii_alphabetic() => &rest[3..],
        // Relative to the folder that the drive has at the moment.
        [drive, b':', ..] if drive.is_ascii_alphabetic() => {
            return Some("it is relative to a drive; write it from the drive's root");
        }
        _ => rest,
    };
    rest.split('/').filter(|name| !matches!(*name, "" | "." | "..")).find_map(odd_windows_name)
}

fn drive_path(rest: &str) -> Option<&str> {
    matches!(rest.as_bytes(), [drive, b':', b'/', ..] if drive.is_ascii_alphabetic()).then_some(rest)
}

fn odd_windows_name(name: &str) -> Option<&'static str> {
    if name.contains(':') {
        return Some("it names a stream of a file");
    }
    if name.ends_with(['.', ' ']) {
        return Some("Windows leaves out the dots and spaces at its end");
    }
    if name.chars().any(|c| c < ' ' || "<>\"|?*".contains(c)) {
        return Some("it holds a character that Windows does not allow in names");
    }
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(' ').to_uppercase();
    let is_numbered = |start: &str| {
        let number = stem.strip_prefix(start).unwrap_or_default();
        let mut number = number.chars();
        matches!((number.next(), number.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
    };
    let is_device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$" | "CLOCK$")
        || is_numbered("COM")
        || is_numbered("LPT");
    is_device.then_some("it names a device")
}

/// Whether a name may be one of the short names (`PROGRA~1`) that Windows makes beside the long one.
pub fn may_be_short_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    stem.rsplit_once('~').is_some_and(|(_, number)| {
        !number.is_empty() && stem.len() <= 12 && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A path as rules compare it: with slashes and without a verbatim prefix on Windows, in the composed form of Unicode on
/// macOS. The letters' case stays: rules ignore it themselves.
pub fn for_rules(path: &str, system: System) -> String {
    match system {
        System::Linux => path.to_owned(),
        System::Windows => {
            let path = path.replace('\\', "/");
            match path.strip_prefix("//?/UNC/") {
                Some(rest) => format!("//{rest}"),
                None => path.strip_prefix("//?/").map(str::to_owned).unwrap_or(path),
            }
        }
        System::MacOs => compose(path),
    }
}

/// Whether a file system of this kind takes the two names for one, as far as their texts tell. Systems that ignore case
/// compare in lower case, which is close to what they do.
pub fn is_same_name(one: &str, other: &str, system: System) -> bool {
    let fold = |name: &str| for_rules(name, system).to_lowercase();
    match system {
        System::Linux => one == other,
        System::MacOs | System::Windows => fold(one) == fold(other),
    }
}

/// Joins a letter and the mark behind it where Unicode has one letter for both, for Latin and Cyrillic letters. Names on disk come from the system itself (`resolve_links`); this is for names that do not exist yet.
fn compose(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut composed = String::with_capacity(text.len());
    for mark in text.chars() {
        let joined = composed.chars().next_back().and_then(|letter| join(letter, mark));
        match joined {
            Some(joined) => {
                composed.pop();
                composed.push(joined);
            }
            None => composed.push(mark),
        }
    }
    composed
}

/// Rows of a mark, the letters before it and what they become.
const JOINED: &[(char, &str, &str)] = &[
    ('\u{300}', "AEIOUNaeiouneЕИеи", "ÀÈÌÒÙǸàèìòùǹèЀЍѐѝ"),
    ('\u{301}', "AEIOUYCLNRSZaeiouyclnrszГКгк", "ÁÉÍÓÚÝĆĹŃŔŚŹáéíóúýćĺńŕśźЃЌѓќ"),
    ('\u{302}', "AEIOUCGHJSWYaeioucghjswy", "ÂÊÎÔÛĈĜĤĴŜŴŶâêîôûĉĝĥĵŝŵŷ"),
    ('\u{303}', "AINOUaino", "ÃĨÑÕŨãĩñõ"),
    ('\u{303}', "u", "ũ"),
    ('\u{304}', "AEIOUaeiouИиУу", "ĀĒĪŌŪāēīōūӢӣӮӯ"),
    ('\u{306}', "AEGIOUaegiouИиУуЖжАаЕе", "ĂĔĞĬŎŬăĕğĭŏŭЙйЎўӁӂӐӑӖӗ"),
    ('\u{307}', "CEGIZcegz", "ĊĖĠİŻċėġż"),
    ('\u{308}', "AEIOUYaeiouyЕеІіИиОоАаЭэ", "ÄËÏÖÜŸäëïöüÿЁёЇїӤӥӦӧӒӓӬӭ"),
    ('\u{30a}', "AUau", "ÅŮåů"),
    ('\u{30b}', "OUou", "ŐŰőű"),
    ('\u{30c}', "CDENRSTZGKcdenrstzgkj", "ČĎĚŇŘŠŤŽǦǨčďěňřšťžǧǩǰ"),
    ('\u{327}', "CGKLNRSTcgklnrst", "ÇĢĶĻŅŖŞŢçģķļņŗşţ"),
    ('\u{328}', "AEIUOaeiuo", "ĄĘĮŲǪąęįųǫ"),
];

fn join(letter: char, mark: char) -> Option<char> {
    let rows = JOINED.iter().filter(|(known, _, _)| *known == mark);
    rows.flat_map(|(_, letters, joined)| letters.chars().zip(joined.chars()))
        .find_map(|(known, joined)| (known == letter).then_some(joined))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_get_around_a_rule_are_refused_on_windows() {
        for odd in [
            r"C:\work\.env:stream",
            r"C:\work\.env::$DATA",
            r".env:$DATA",
            r"C:\work\NUL",
            r"C:\work\nul.txt",
            "con",
            r"work\COM1.log",
            "LPT¹",
            "AUX .txt",
            r"C:\work\.env.",
            r"C:\work\.env ",
            r"C:\work\. .\x",
            r"C:\work\secret...\x",
            r"\\.\C:\work\.env",
            r"\\.\PhysicalDrive0",
            r"\\?\GLOBALROOT\Device\x",
            r"\??\C:\x",
            "//./pipe/x",
            r"C:.env",
            r"\\?\C:\work\.env:s",
            "a\u{1}b",
            "what?",
        ] {
            assert!(odd_windows_path(odd).is_some(), "{odd}");
        }
        for plain in [
            r"C:\work\.env",
            r"c:/code/src/main.rs",
            r"..\x\.\y",
            r"\\server\share\a.txt",
            r"\\?\C:\work\a",
            r"\\?\UNC\server\share\a",
            "console.log",
            "COM10",
            "nullable.rs",
            "LPT",
            ".config",
            "ä.txt",
        ] {
            assert_eq!(odd_windows_path(plain), None, "{plain}");
        }
    }

    #[test]
    fn short_names_are_known() {
        for short in ["PROGRA~1", "ENV~1", "secret~12.txt", "A~1.B"] {
            assert!(may_be_short_name(short), "{short}");
        }
        for long in ["main.rs", "a~b", "~", "backup~", "a.txt~1", "a-rather-long-name~1"] {
            assert!(!may_be_short_name(long), "{long}");
        }
    }

    #[test]
    fn rules_see_one_text_for_one_file() {
        assert_eq!(for_rules(r"\\?\C:\a\b", System::Windows), "C:/a/b");
        assert_eq!(for_rules(r"\\?\UNC\server\share", System::Windows), "//server/share");
        assert_eq!(for_rules(r"src\a.rs", System::Windows), "src/a.rs");
        assert_eq!(for_rules(r"a\b", System::Linux), r"a\b");
        assert_eq!(for_rules("cafe\u{301}/u\u{308}ber/Й/И\u{306}", System::MacOs), "café/über/Й/Й");
        assert!(is_same_name("Geheimnis-a\u{308}.ENV", "geheimnis-ä.env", System::MacOs));
        assert!(is_same_name(r"SRC\Main.rs", "src/main.rs", System::Windows));
        assert!(!is_same_name("A", "a", System::Linux));
        for (_, letters, joined) in JOINED {
            assert_eq!(letters.chars().count(), joined.chars().count(), "{letters}");
        }
    }
}
