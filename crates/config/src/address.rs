//! Addresses: what in a URL may be a secret, and the URL without it. Pure.

use percent_encoding::percent_decode_str;

use crate::secret::MASK;

/// Parameters of a query that everybody may read; all others may be keys.
const PUBLIC_PARAMETERS: [&str; 3] = ["api-version", "version", "alt"];
/// A parameter without a value is a key from this length on, and a word before it.
const MIN_BARE_KEY_LENGTH: usize = 12;

/// `scheme://user:password@host/path?token=…#…` without user, password, the values of its query and what follows
/// the `#`. Also for texts that hold addresses, and for addresses that do not parse because of their password.
pub fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        let end = next_address(after).unwrap_or(after.len());
        shown.push_str(before);
        shown.push_str("://");
        shown.push_str(&masked_address(&after[..end]));
        rest = &after[end..];
    }
    shown.push_str(rest);
    shown
}

/// The place that a request goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) is_https: bool,
    /// In small letters, with its port where that is not the usual one.
    pub(crate) host: String,
}

/// The place of an `http` or `https` address. `None` for every text that programs could read in different ways: one with
/// a backslash, white space or control characters, or with another host than plain letters, digits, dots and hyphens.
pub(crate) fn place(url: &str) -> Option<Place> {
    let url = url.trim();
    if url.contains(|c: char| c == '\\' || c.is_whitespace() || c.is_control()) {
        return None;
    }
    let (scheme, rest) = url.split_once("://")?;
    let is_https = match scheme.to_ascii_lowercase().as_str() {
        "https" => true,
        "http" => false,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?.to_ascii_lowercase();
    let (name, port) = match host.strip_prefix('[') {
        Some(_) => host.split_once(']').map(|(name, port)| (format!("{name}]"), port.strip_prefix(':')))?,
        None => {
            host.split_once(':').map_or((host.clone(), None), |(name, port)| (name.to_owned(), Some(port)))
        }
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_address = |name: &str| name.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'));
    let is_known = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inner) => is_address(inner),
        None => name.chars().all(is_plain),
    };
    let usual = if is_https { "443" } else { "80" };
    let port = port.filter(|port| !port.is_empty() && *port != usual);
    if name.is_empty() || !is_known || port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return None;
    }
    let host = port.map_or(name.clone(), |port| format!("{name}:{port}"));
    Some(Place { is_https, host })
}

impl Place {
    /// A server of this machine needs no encryption.
    pub(crate) fn is_loopback(&self) -> bool {
        let name =
            self.host.rsplit_once(':').filter(|_| !self.host.ends_with(']')).map_or(&*self.host, |it| it.0);
        name == "localhost" || name == "[::1]" || name.starts_with("127.")
    }
}

/// Where the word begins that holds the next `://`, if it is another one.
fn next_address(text: &str) -> Option<usize> {
    let first_space = text.find(char::is_whitespace)?;
    let at = first_space + text[first_space..].find("://")?;
    let word = text[..at].rsplit(char::is_whitespace).next().unwrap_or_default();
    Some(at - word.len())
}

/// What follows the scheme, up to the next address.
fn masked_address(address: &str) -> String {
    let (user, rest) = user_and_rest(address);
    let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(host_end);
    let mut shown = user.map_or_else(String::new, |_| format!("{MASK}@"));
    shown.push_str(host);
    let first = !host.contains(char::is_whitespace);
    for (index, word) in rest.split_inclusive(char::is_whitespace).enumerate() {
        let bare = word.trim_end();
        shown.push_str(&masked_tail(bare, first && index == 0));
        shown.push_str(&word[bare.len()..]);
    }
    shown
}

/// The user with the password, if there is one, and the text after the `@`. A password may hold a character that ends a
/// host: the text before it then has a port that is not a number.
fn user_and_rest(address: &str) -> (Option<&str>, &str) {
    let end = address.find(['/', '?', '#']).unwrap_or(address.len());
    let host = &address[..end];
    let after_brackets = match host.strip_prefix('[') {
        Some(inside) => inside.split_once(']').map_or(host, |(_, after)| after),
        None => host,
    };
    let is_port = |text: &str| text.trim().parse::<u16>().is_ok();
    let odd = after_brackets.split_once(':').is_some_and(|(_, port)| !is_port(port));
    let within = if odd { address } else { host };
    match within.rfind('@') {
        Some(at) => (Some(&address[..at]), &address[at + 1..]),
        None => (None, address),
    }
}

/// Path, query and fragment. Prose has a `#` too, so that away from an address only `#name=…` is taken for one.
fn masked_tail(word: &str, of_address: bool) -> String {
    let (word, fragment) = match word.split_once('#') {
        Some((before, fragment)) if of_address || fragment.contains('=') => (before, Some(fragment)),
        _ => (word, None),
    };
    let (path, query) = word.split_once('?').map_or((word, None), |(path, query)| (path, Some(query)));
    // Some gateways have another address in their path.
    let mut shown =
        match path.split_once("://").and_then(|(before, inner)| Some((before, inner.rsplit_once('@')?))) {
            Some((before, (_, host))) => format!("{before}://{MASK}@{host}"),
            None => path.to_owned(),
        };
    if let Some(query) = query {
        let parameters: Vec<_> = query.split('&').map(masked_parameter).collect();
        shown.push('?');
        shown.push_str(&parameters.join("&"));
    }
    if let Some(fragment) = fragment {
        shown.push('#');
        shown.push_str(if fragment.is_empty() { "" } else { MASK });
    }
    shown
}

fn masked_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, value)) if is_plain(name, value) => parameter.to_owned(),
        Some((name, _)) if !is_bare_key(parameter) => format!("{name}={MASK}"),
        None if !is_bare_key(parameter) => parameter.to_owned(),
        _ => MASK.to_owned(),
    }
}

fn is_plain(name: &str, value: &str) -> bool {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    PUBLIC_PARAMETERS.contains(&name) && value.chars().all(harmless)
}

/// A key by itself; in base64 it may end in `=`.
fn is_bare_key(parameter: &str) -> bool {
    let key = parameter.trim_end_matches('=');
    key.chars().count() >= MIN_BARE_KEY_LENGTH && !key.contains('=')
}

/// The parts of an address that may be keys: its password, or the user without a password, and the values of its query, each
/// as it is written and as it is meant.
pub(crate) fn secrets(address: &str) -> Vec<String> {
    let Some((_, address)) = address.trim().split_once("://") else { return Vec::new() };
    let (user, rest) = user_and_rest(address);
    let user = user.map(|user| match user.split_once(':') {
        Some((_, password)) if !password.is_empty() => password,
        Some((user, _)) => user,
        None => user,
    });
    let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let values = query.split('&').filter_map(|parameter| match parameter.split_once('=') {
        _ if is_bare_key(parameter) => Some(parameter),
        Some((name, value)) if !is_plain(name, value) => Some(value),
        _ => None,
    });
    let mut secrets = Vec::new();
    for (written, in_query) in user.map(|user| (user, false)).into_iter().chain(values.map(|it| (it, true))) {
        let meant = decoded(written, in_query);
        secrets.extend((meant != written).then_some(meant));
        secrets.push(written.to_owned());
    }
    secrets
}

/// With `%41` put as `A`, and in a query `+` as a space.
fn decoded(written: &str, in_query: bool) -> String {
    let spaced = if in_query { written.replace('+', " ") } else { written.to_owned() };
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_only_where_every_program_reads_the_same() {
        for (url, expected) in [
            ("https://gw.corp/v1", Some((true, "gw.corp"))),
            ("HTTPS://GW.Corp:443/v1?x=@evil", Some((true, "gw.corp"))),
            ("https://u:p@gw.corp:8443", Some((true, "gw.corp:8443"))),
            ("http://[::1]:8080/x", Some((false, "[::1]:8080"))),
            ("https://u:p@evil.example/@gw.corp", Some((true, "evil.example"))),
            ("https://a@b@evil.example/v1", Some((true, "evil.example"))),
            ("https://evil.example\\@gw.corp/v1", None),
            ("https://ev\til.example/v1", None),
            ("https:///gw.corp", None),
            ("https:gw.corp", None),
            ("https://gw%2ecorp/", None),
            ("https://gw.corp:x/", None),
            ("https://größe.example/", None),
            ("ftp://gw.corp/", None),
            ("", None),
        ] {
            let found = place(url);
            assert_eq!(found.as_ref().map(|it| (it.is_https, it.host.as_str())), expected, "{url}");
        }
        let is_loopback = |url: &str| place(url).unwrap().is_loopback();
        assert!(
            is_loopback("http://127.0.0.1:9/")
                && is_loopback("http://localhost")
                && is_loopback("http://[::1]")
        );
        assert!(!is_loopback("http://127.evil.example@gw.corp/") && !is_loopback("http://gw.corp"));
    }

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (address, shown) in [
            ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
            ("http://bob:hunter2@host/v1", "http://********@host/v1"),
            ("http://bob:hunter2@host?token=abc", "http://********@host?token=********"),
            (
                "https://x/y?api-version=2025-01-01&sig=s%3D1",
                "https://x/y?api-version=2025-01-01&sig=********",
            ),
            ("https://x/y?alt=sse;key=SECRET", "https://x/y?alt=********"),
            ("http://host/a@b?flag", "http://host/a@b?flag"),
            ("http://host:8000/a@b", "http://host:8000/a@b"),
            ("http://[::1]:8000/a@b", "http://[::1]:8000/a@b"),
            ("https://TOKEN@gw/v1", "https://********@gw/v1"),
            ("https://TOKEN@gw:8443/v1", "https://********@gw:8443/v1"),
            ("no address", "no address"),
        ] {
            assert_eq!(masked(address), shown);
        }
    }

    #[test]
    fn a_password_with_any_character_is_not_shown() {
        for (address, shown) in [
            ("http://bob:p?w@host/v1", "http://********@host/v1"),
            ("http://bob:p/w@host/v1", "http://********@host/v1"),
            ("http://bob:p#w@host/v1", "http://********@host/v1"),
            ("http://bob:p w@host/v1", "http://********@host/v1"),
            ("http://bob:p@a/w@host/v1", "http://********@host/v1"),
            ("http://bob:p://w@host/v1", "http://********@host/v1"),
            ("http://bob:/w@host:80/v1?key=a", "http://********@host:80/v1?key=********"),
            ("http://gw/http://bob:pw@host", "http://gw/http://********@host"),
        ] {
            assert_eq!(masked(address), shown);
        }
    }

    #[test]
    fn queries_and_fragments_are_masked_up_to_the_next_space() {
        for (address, shown) in [
            ("https://x/v1?key=SECRET ", "https://x/v1?key=******** "),
            (" https://x/v1?key=SECRET\n", " https://x/v1?key=********\n"),
            ("https://x/my path?key=SECRET", "https://x/my path?key=********"),
            ("Is it at https://x/y?z=1 now?", "Is it at https://x/y?z=******** now?"),
            ("Is it C# or http://x or #3?", "Is it C# or http://x or #3?"),
            ("http://x?a=1\u{2003}see\thttp://bob:pw@y", "http://x?a=********\u{2003}see\thttp://********@y"),
            ("http://x?a=1 http://bob:pw@y", "http://x?a=******** http://********@y"),
            ("https://gw/v1?sk-live-0123456789abcdef", "https://gw/v1?********"),
            ("https://gw/v1?c2VjcmV0LXRva2Vu==&flag", "https://gw/v1?********&flag"),
            ("https://gw/v1#token=SECRET", "https://gw/v1#********"),
            ("https://gw/v1?a=b#SECRET?c=d", "https://gw/v1?a=********#********"),
            ("https://gw#", "https://gw#"),
        ] {
            assert_eq!(masked(address), shown);
        }
        for long in ["http://x/", "http://x ", "://", "a@"] {
            assert!(masked(&long.repeat(100_000)).len() <= 10 * 100_000);
        }
    }

    #[test]
    fn what_may_be_a_key_is_known_as_written_and_as_meant() {
        for (address, known) in [
            ("http://bob:hunter2@host?token=abc&alt=sse", &["hunter2", "abc"][..]),
            ("http://bob:p%40ss@host?token=a%2Bb+c#d", &["p@ss", "p%40ss", "a+b c", "a%2Bb+c"]),
            ("http://bob:p/w+1@host/v1", &["p/w+1"]),
            ("https://TOK%2FEN@gw/v1", &["TOK/EN", "TOK%2FEN"]),
            ("https://TOKEN:@gw/v1", &["TOKEN"]),
            ("https://gw/v1?sk-live-0123456789abcdef&flag", &["sk-live-0123456789abcdef"]),
            ("https://gw/v1?key=100%&b=%zz", &["100%", "%zz"]),
            ("https://gw:8443/v1", &[]),
        ] {
            assert_eq!(secrets(address), known, "{address}");
        }
    }
}
