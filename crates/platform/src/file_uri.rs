//! `file:` addresses ↔ paths: the one reader and writer of them.
//!
//! Pure. Invariant: an address that does not name a file of this machine has no path; a host is kept as a UNC path on
//! Windows and refused elsewhere.

use std::path::{Path, PathBuf};

use crate::System;

/// `file:///…`
pub fn from_path(path: &Path) -> String {
    write(crate::name_bytes(path.as_os_str()), System::CURRENT)
}

/// The path that an address names on this system.
pub fn to_path(uri: &str) -> Option<PathBuf> {
    let bytes = read(uri, System::CURRENT)?;
    Some(crate::name_from_bytes(bytes).into())
}

/// The same for an address as some clients write it: a percent sign may stand for itself, and `?` and `#` belong to the
/// path.
pub fn to_path_leniently(uri: &str) -> Option<PathBuf> {
    let bytes = read_leniently(uri, System::CURRENT)?;
    Some(crate::name_from_bytes(bytes).into())
}

/// The address of a path that is given as bytes.
pub fn write(path: &[u8], system: System) -> String {
    let mut uri = "file://".to_owned();
    let slashes: Vec<u8>;
    let mut path = path;
    if system == System::Windows {
        slashes = path.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }).collect();
        // `\\?\C:\…` and `\\?\UNC\…` are other ways to write a path.
        path = match slashes.as_slice() {
            [b'/', b'/', b'?', b'/', b'U', b'N', b'C', b'/', share @ ..] => share,
            [b'/', b'/', b'?', b'/', rest @ ..] => {
                uri.push('/');
                rest
            }
            [b'/', b'/', share @ ..] => share,
            path @ [b'/', ..] => path,
            path => {
                uri.push('/');
                path
            }
        };
    }
    for (at, byte) in path.iter().enumerate() {
        let is_drive_colon = system == System::Windows && at == 1 && *byte == b':';
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) || is_drive_colon {
            uri.push(char::from(*byte));
        } else {
            uri.push('%');
            uri.push(hex_digit(byte >> 4));
            uri.push(hex_digit(byte & 15));
        }
    }
    uri
}

/// The bytes of the path that an address names.
pub fn read(uri: &str, system: System) -> Option<Vec<u8>> {
    let end = uri.find(['?', '#']).unwrap_or(uri.len());
    let uri = &uri[..end];
    let has_whole_escapes = uri.split('%').skip(1).all(|rest| escaped(rest).is_some());
    has_whole_escapes.then(|| read_leniently(uri, system)).flatten()
}

fn read_leniently(uri: &str, system: System) -> Option<Vec<u8>> {
    let scheme = uri.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:"))?;
    let rest = &uri[scheme.len()..];
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/')?),
        None => ("", rest),
    };
    let is_local = host.is_empty() || host.eq_ignore_ascii_case("localhost");
    let mut path = decode(path);
    if path.contains(&0) || !path.starts_with(b"/") {
        return None;
    }
    if system != System::Windows {
        return is_local.then_some(path);
    }
    if !is_local {
        let mut share = format!("//{host}").into_bytes();
        share.append(&mut path);
        path = share;
    } else if let [b'/', drive, colon @ (b':' | b'|'), ..] = path.as_mut_slice()
        && drive.is_ascii_alphabetic()
    {
        *colon = b':';
        // Editors write `c:` and `C:` for the same drive.
        drive.make_ascii_uppercase();
        path.remove(0);
        if path.len() == 2 {
            path.push(b'/');
        }
    } else if !path.starts_with(b"//") {
        return None;
    }
    path.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'\\');
    Some(path)
}

fn decode(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match escaped(part) {
            Some(byte) => {
                decoded.push(byte);
                decoded.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                decoded.push(b'%');
                decoded.extend_from_slice(part.as_bytes());
            }
        }
    }
    decoded
}

/// The byte that two digits at the start of a text stand for.
fn escaped(text: &str) -> Option<u8> {
    let digits = text.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

fn hex_digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap_or('0').to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_on_every_system() {
        use System::{Linux, MacOs, Windows};
        for (uri, system, expected) in [
            ("file:///tmp/a%20b", Linux, Some("/tmp/a b")),
            ("file:///tmp/a%20b", MacOs, Some("/tmp/a b")),
            ("FILE://localhost/tmp/a", Linux, Some("/tmp/a")),
            ("file:/tmp/a", Linux, Some("/tmp/a")),
            ("file:///tmp/a?x#y", Linux, Some("/tmp/a")),
            ("file://server/share/a", Linux, None),
            ("file:///a%00b", Linux, None),
            ("file:///a%zz", Linux, None),
            ("file:///a%+1", Linux, None),
            ("file://", Linux, None),
            ("file:relative", Linux, None),
            ("http://a/b", Linux, None),
            ("file:///C:/a%20b/c.rs", Windows, Some(r"C:\a b\c.rs")),
            ("file:///c%3A/a", Windows, Some(r"C:\a")),
            ("file:///c|/a", Windows, Some(r"C:\a")),
            ("file:///C:", Windows, Some(r"C:\")),
            ("file://localhost/C:/a", Windows, Some(r"C:\a")),
            ("file://server/share/a", Windows, Some(r"\\server\share\a")),
            ("file:////server/share/a", Windows, Some(r"\\server\share\a")),
            ("file:///tmp/a", Windows, None),
        ] {
            let found = read(uri, system).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(found.as_deref(), expected, "{uri} on {system:?}");
        }
    }

    #[test]
    fn clients_may_write_paths_as_they_are() {
        for (uri, expected) in [
            ("file:///tmp/100%/a#b?c", "/tmp/100%/a#b?c"),
            ("file:///tmp/%20a%zz", "/tmp/ a%zz"),
            ("file:///tmp/ä", "/tmp/ä"),
        ] {
            assert_eq!(read_leniently(uri, System::Linux).as_deref(), Some(expected.as_bytes()), "{uri}");
        }
        assert_eq!(read_leniently("/tmp/a", System::Linux), None);
    }

    #[test]
    fn written_addresses_are_read_back() {
        for (path, system, uri) in [
            ("/tmp/a b#ä", System::Linux, "file:///tmp/a%20b%23%C3%A4"),
            (r"C:\a b\c", System::Windows, "file:///C:/a%20b/c"),
            (r"\\server\share\a", System::Windows, "file://server/share/a"),
        ] {
            assert_eq!(write(path.as_bytes(), system), uri);
            assert_eq!(read(uri, system).as_deref(), Some(path.as_bytes()));
        }
        assert_eq!(write(br"\\?\C:\a", System::Windows), "file:///C:/a");
        assert_eq!(write(br"\\?\UNC\server\share\a", System::Windows), "file://server/share/a");
    }
}
