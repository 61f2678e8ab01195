//! What a client sends first, and whether it asks for the host that the proxy connected it to. Many hosts share one
//! address: the server behind it chooses by the name that the client sends, in TLS or in a header, so a name that is not
//! checked reaches any of them. Pure: bytes in, a judgment out.
//!
//! Invariants: a head is passed on with one `Host`, that of the destination; nothing that a server could read as another
//! name is passed on; a greeting that cannot be read is refused.

/// More than this is no greeting.
pub(crate) const LONGEST: usize = 32 * 1024;

const TLS_HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: usize = 0;

/// The beginning of a tunnel.
#[derive(Debug, PartialEq)]
pub(crate) enum Opening {
    /// Not enough bytes to tell.
    Unfinished,
    /// Neither TLS nor HTTP, or TLS that names no host.
    Other,
    /// TLS for this host.
    Tls(String),
    /// An HTTP request whose head has this many bytes.
    Http(usize),
    /// TLS or HTTP that cannot be read.
    Malformed,
}

pub(crate) fn judge(bytes: &[u8]) -> Opening {
    match bytes {
        [] => Opening::Unfinished,
        [TLS_HANDSHAKE] => Opening::Unfinished,
        [TLS_HANDSHAKE, 3, ..] => judge_tls(bytes),
        _ => judge_http(bytes),
    }
}

fn judge_tls(bytes: &[u8]) -> Opening {
    // A greeting may be spread over several records.
    let mut greeting = Vec::new();
    let mut rest = bytes;
    loop {
        if let [CLIENT_HELLO, a, b, c, body @ ..] = greeting.as_slice() {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            if body.len() >= length {
                return match server_name(&body[..length]) {
                    Some(Some(name)) => Opening::Tls(name),
                    Some(None) => Opening::Other,
                    None => Opening::Malformed,
                };
            }
        } else if greeting.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Opening::Malformed;
        }
        let [kind, _, _, a, b, more @ ..] = rest else { return Opening::Unfinished };
        let length = usize::from(*a) << 8 | usize::from(*b);
        if *kind != TLS_HANDSHAKE || length == 0 {
            return Opening::Malformed;
        }
        let Some((piece, more)) = more.split_at_checked(length) else { return Opening::Unfinished };
        greeting.extend_from_slice(piece);
        rest = more;
    }
}

/// The name in a client's greeting. `None`: it cannot be read; `Some(None)`: it holds none.
fn server_name(body: &[u8]) -> Option<Option<String>> {
    let mut reader = Reader(body);
    reader.take(2 + 32)?;
    let session = reader.number(1)?;
    reader.take(session)?;
    let ciphers = reader.number(2)?;
    reader.take(ciphers)?;
    let compressions = reader.number(1)?;
    reader.take(compressions)?;
    if reader.0.is_empty() {
        return Some(None);
    }
    let length = reader.number(2)?;
    let mut extensions = Reader(reader.take(length)?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let (kind, length) = (extensions.number(2)?, extensions.number(2)?);
        let mut data = Reader(extensions.take(length)?);
        if kind != SERVER_NAME {
            continue;
        }
        let length = data.number(2)?;
        let mut list = Reader(data.take(length)?);
        while !list.0.is_empty() {
            let (_, length) = (list.number(1)?, list.number(2)?);
            let name = String::from_utf8(list.take(length)?.to_vec()).ok()?;
            // Two names: a server may take either.
            if found.replace(plain_name(&name)).is_some() {
                return None;
            }
        }
    }
    Some(found)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (piece, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(piece)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }
}

fn judge_http(bytes: &[u8]) -> Opening {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let line = end.map_or(bytes, |end| bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]));
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let (method, target, version) = (words.next().unwrap_or_default(), words.next(), words.next());
    let is_method = !method.is_empty() && method.len() <= 32 && method.iter().all(is_token);
    let fits = is_method
        && target.is_none_or(|target| target.iter().all(u8::is_ascii_graphic))
        && version.is_none_or(|version| {
            let known = version.len().min(5);
            version[..known] == b"HTTP/"[..known] && version.iter().all(u8::is_ascii_graphic)
        });
    match (fits, end, version) {
        (false, _, _) | (true, Some(_), None) => Opening::Other,
        (true, None, _) => Opening::Unfinished,
        (true, Some(_), Some(_)) => match head_length(bytes) {
            Some(length) => Opening::Http(length),
            None => Opening::Unfinished,
        },
    }
}

/// Up to and with the empty line.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let mut start = 0;
    for (index, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        if matches!(&bytes[start..index], b"" | b"\r") {
            return Some(index + 1);
        }
        start = index + 1;
    }
    None
}

/// Why a head is not passed on.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    Malformed,
    /// It names this host instead of the destination.
    OtherHost(String),
}

/// The head of a request for `host` and `port` as it is passed on: for one answer, so that each request is judged.
/// `target` takes the place of the second word.
pub(crate) fn pass_on(head: &str, target: Option<&str>, host: &str, port: u16) -> Result<String, Refusal> {
    let mut lines = head.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(asked), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::Malformed);
    };
    let target = target.unwrap_or(asked);
    // The greeting of HTTP/2, and targets that name a host.
    if method == "PRI" || !(target.starts_with('/') || target == "*") {
        return Err(Refusal::Malformed);
    }
    let place = if port == 80 { host.to_owned() } else { format!("{host}:{port}") };
    let mut passed = format!("{method} {target} {version}\r\nHost: {place}\r\nConnection: close\r\n");
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(Refusal::Malformed)?;
        let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.is_empty();
        // A line that begins with a blank goes on with the one before it, for some servers.
        if !is_plain || line.contains(['\r', '\0']) {
            return Err(Refusal::Malformed);
        }
        match name.to_ascii_lowercase().as_str() {
            "host" if !names(value.trim(), host, port) => {
                return Err(Refusal::OtherHost(value.trim().to_owned()));
            }
            "host" | "connection" | "proxy-connection" | "proxy-authorization" | "keep-alive" => {}
            _ => passed.extend([line, "\r\n"]),
        }
    }
    passed.push_str("\r\n");
    Ok(passed)
}

fn names(value: &str, host: &str, port: u16) -> bool {
    let (name, named_port) = match value.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok()),
        None => (value, Some(port)),
    };
    plain_name(name) == host && named_port == Some(port)
}

fn plain_name(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A greeting of TLS with these names, in records of at most `piece` bytes.
    fn greeting(names: &[&str], piece: usize) -> Vec<u8> {
        let list: Vec<u8> =
            names.iter().flat_map(|name| [&[0, 0, name.len() as u8][..], name.as_bytes()].concat()).collect();
        let mut body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 0x01, 1, 0]].concat();
        let data = [&[0, list.len() as u8][..], &list].concat();
        let other = [0, 43, 0, 3, 2, 3, 4];
        let named = [&[0, 0, 0, data.len() as u8][..], &data].concat();
        let extensions = if names.is_empty() { other.to_vec() } else { [&other[..], &named].concat() };
        body.extend([0, extensions.len() as u8]);
        body.extend(extensions);
        let whole = [&[1, 0, 0, body.len() as u8][..], &body].concat();
        whole.chunks(piece).flat_map(|part| [&[22, 3, 1, 0, part.len() as u8][..], part].concat()).collect()
    }

    #[test]
    fn the_name_of_a_greeting_is_found_however_it_is_split() {
        for piece in [1, 5, 60, 200] {
            let bytes = greeting(&["Example.ORG."], piece);
            assert_eq!(judge(&bytes), Opening::Tls("example.org".to_owned()), "{piece}");
            for end in 0..bytes.len() {
                assert_eq!(judge(&bytes[..end]), Opening::Unfinished, "{piece}: {end}");
            }
        }
        assert_eq!(judge(&greeting(&[], 200)), Opening::Other);
        assert_eq!(judge(&greeting(&["a.example", "b.example"], 200)), Opening::Malformed);
        let mut broken = greeting(&["a.example"], 200);
        let last = broken.len() - 10;
        broken[last] = 200;
        assert_eq!(judge(&broken), Opening::Malformed);
        assert_eq!(judge(&[22, 3, 1, 0, 0]), Opening::Malformed);
    }

    #[test]
    fn the_beginning_of_a_tunnel_is_told_apart() {
        let head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        for (text, opening) in [
            ("", Opening::Unfinished),
            ("GE", Opening::Unfinished),
            ("GET /index", Opening::Unfinished),
            ("GET / HTTP/1.1\r\nHost: a\r\n", Opening::Unfinished),
            (head, Opening::Http(head.len())),
            ("GET / HTTP/1.1\nHost: a\n\nbody", Opening::Http("GET / HTTP/1.1\nHost: a\n\n".len())),
            ("SSH-2.0-OpenSSH_9.6\r\n", Opening::Other),
            ("SSH-2.0-OpenSSH_9.6 Ubuntu-3\r\n", Opening::Other),
            ("hello\n", Opening::Other),
            ("GET / FTP", Opening::Other),
            ("\0\0\0\x08\x04\u{8}", Opening::Other),
        ] {
            assert_eq!(judge(text.as_bytes()), opening, "{text:?}");
        }
    }

    #[test]
    fn a_head_names_its_destination_and_no_other_host() {
        let pass = |lines: &str| pass_on(&format!("GET /x HTTP/1.1\r\n{lines}\r\n"), None, "example.org", 80);
        let other = |name: &str| Err(Refusal::OtherHost(name.to_owned()));
        let plain = "GET /x HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n";
        for (lines, passed) in [
            ("", Ok(format!("{plain}\r\n"))),
            ("Host: example.org\r\nAccept: */*\r\n", Ok(format!("{plain}Accept: */*\r\n\r\n"))),
            ("HOST:Example.org:80\r\nConnection: upgrade\r\n", Ok(format!("{plain}\r\n"))),
            ("Host: evil.example\r\n", other("evil.example")),
            ("Host: example.org\r\nhost: evil.example\r\n", other("evil.example")),
            ("Host: example.org:8080\r\n", other("example.org:8080")),
            ("Host: example.org@evil.example\r\n", other("example.org@evil.example")),
            ("Host : evil.example\r\n", Err(Refusal::Malformed)),
            ("Accept: a\r\n Host: evil.example\r\n", Err(Refusal::Malformed)),
            ("Accept: a\rHost: evil.example\r\n", Err(Refusal::Malformed)),
            ("Host\r\n", Err(Refusal::Malformed)),
        ] {
            assert_eq!(pass(lines), passed, "{lines:?}");
        }
        for first in ["PRI * HTTP/2.0", "GET http://evil.example/ HTTP/1.1", "GET  / HTTP/1.1"] {
            let refused = pass_on(&format!("{first}\r\n\r\n"), None, "example.org", 80);
            assert_eq!(refused, Err(Refusal::Malformed), "{first}");
        }
        let other_port = pass_on("GET / HTTP/1.1\r\n\r\n", None, "example.org", 8080).unwrap();
        assert!(other_port.contains("Host: example.org:8080\r\n"), "{other_port}");
    }
}
