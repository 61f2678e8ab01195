//! Hosts of other machines that an administrator permits. The list is set once, before anything connects, and every
//! client asks here before each request, so that no path of the program forgets it.
//!
//! Invariants: without a list every host is permitted; with one, an address that cannot be read is refused; this machine
//! is always permitted.

use std::net::IpAddr;
use std::sync::OnceLock;

use crate::Failure;

/// Hosts as an administrator writes them: `example.org`, `*.example.org`, `example.org:8443`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostList(Vec<HostPattern>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostPattern {
    name: String,
    /// Names below it, instead of itself.
    is_below: bool,
    port: Option<u16>,
}

static PERMITTED: OnceLock<HostList> = OnceLock::new();

/// Nothing but these hosts is reached from now on. The first list stays.
pub fn permit_hosts(list: HostList) {
    let _ = PERMITTED.set(list);
}

/// Whether an address with a scheme may be reached.
pub fn check_address(address: &str) -> Result<(), Failure> {
    let Some(list) = PERMITTED.get() else { return Ok(()) };
    if list.permits_address(address) { Ok(()) } else { Err(refusal(address)) }
}

/// An address may hold a password: only its host is named.
fn refusal(address: &str) -> Failure {
    let host = host_of(address).map_or_else(|| "This address".to_owned(), |(host, _)| host);
    Failure::user(format!("{host} cannot be reached: the administrator of this machine does not permit it."))
        .hint("The list is `allowedHosts` in the managed settings; `dragoman config show` names the file.")
}

impl HostList {
    /// The error names the entry that cannot be read.
    pub fn parse(entries: &[String]) -> Result<Self, String> {
        let parse = |entry: &String| HostPattern::parse(entry).ok_or_else(|| entry.clone());
        entries.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether an address with a scheme may be reached.
    pub fn permits_address(&self, address: &str) -> bool {
        host_of(address).is_some_and(|(host, port)| self.permits(&host, port))
    }

    /// `None` is the usual port of the web.
    pub fn permits(&self, host: &str, port: Option<u16>) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        is_this_machine(&host) || self.0.iter().any(|pattern| pattern.fits(&host, port))
    }
}

impl HostPattern {
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.trim_end_matches('.').to_ascii_lowercase();
        let (is_below, entry) = match entry.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, entry.as_str()),
        };
        let (name, port) = split_port(entry)?;
        is_name(name).then(|| Self { name: name.to_owned(), is_below, port })
    }

    fn fits(&self, host: &str, port: Option<u16>) -> bool {
        let is_host = if self.is_below {
            host.strip_suffix(self.name.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        } else {
            host == self.name
        };
        is_host && self.port.is_none_or(|own| port == Some(own))
    }
}

/// A name, or an address in figures without brackets.
fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    !name.is_empty() && (name.bytes().all(fits) || name.parse::<IpAddr>().is_ok())
}

/// `host`, `host:port`, `[address]` and `[address]:port`.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port.parse().ok()?))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Some((text, None)),
        Some((host, port)) => Some((host, Some(port.parse().ok()?))),
        None => Some((text, None)),
    }
}

fn is_this_machine(host: &str) -> bool {
    let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
    host == "localhost" || host.ends_with(".localhost") || host.parse().is_ok_and(is_loopback)
}

/// The host and port of an address, as every client reads them. `None`: clients may read it differently.
fn host_of(address: &str) -> Option<(String, Option<u16>)> {
    let (scheme, rest) = address.split_once("://")?;
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    if !authority.bytes().all(is_plain) {
        return None;
    }
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = split_port(place)?;
    let usual = match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        "ssh" => Some(22),
        "postgres" | "postgresql" => Some(5432),
        _ => None,
    };
    is_name(host).then(|| (host.to_ascii_lowercase(), port.or(usual)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> HostList {
        let entries = ["example.org", "*.corp.example", "db.example:5432", "[2001:db8::1]:8443", "192.0.2.7"];
        HostList::parse(&entries.map(str::to_owned)).unwrap()
    }

    #[test]
    fn an_address_is_permitted_by_its_host_and_port() {
        for (address, permitted) in [
            ("https://example.org/x", true),
            ("https://EXAMPLE.org.:8443/x", true),
            ("https://user:p@example.org/", true),
            ("https://a.corp.example", true),
            ("wss://a.b.corp.example/socket", true),
            ("https://corp.example", false),
            ("https://evilcorp.example", false),
            ("https://example.org.evil.example", false),
            ("https://example.org@evil.example/", false),
            ("https://evil.example/example.org", false),
            ("https://evil.example?x=@example.org", false),
            ("https://evil.example#@example.org", false),
            ("https://evil.example\\@example.org/", false),
            ("https://exam\tple.org/", false),
            ("https://ex%61mple.org/", false),
            ("postgres://me:secret@db.example/chats", true),
            ("https://db.example/", false),
            ("https://[2001:db8::1]:8443/", true),
            ("https://[2001:db8::1]/", false),
            ("http://192.0.2.7/", true),
            ("http://169.254.169.254/latest", false),
            ("http://localhost:11434", true),
            ("http://127.0.0.1:1", true),
            ("http://[::1]:9/", true),
            ("http://127.0.0.1.evil.example/", false),
            ("example.org", false),
            ("https://", false),
        ] {
            assert_eq!(list().permits_address(address), permitted, "{address}");
        }
    }

    #[test]
    fn an_entry_that_is_no_host_is_named() {
        for entry in ["", "*", "https://example.org", "a b", "example.org:x", "*.*.org", "[::1"] {
            assert_eq!(HostList::parse(&[entry.to_owned()]), Err(entry.to_owned()));
        }
    }
}
