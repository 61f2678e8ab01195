//! The address of a server, as a user writes it.
//!
//! Invariant: an address without TLS is one of this machine; an address holds no name, password, query or fragment.

use std::net::IpAddr;

use domain::Failure;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub is_secure: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// As the `Host` header has it.
    pub authority: String,
    pub path: String,
}

impl Address {
    /// `endpoint` is the last segment of the path, such as `acp`.
    pub fn parse(text: &str, endpoint: &str) -> Result<Self, Failure> {
        let wrong = |sentence: &str| {
            Failure::user(format!("The address of the server cannot be used: {sentence}"))
                .hint("Write it as https://HOST:PORT, or http://127.0.0.1:PORT on this machine.")
        };
        let (scheme, rest) = text.trim().split_once("://").ok_or_else(|| wrong("it names no protocol."))?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "https" | "wss" => true,
            "http" | "ws" => false,
            _ => return Err(wrong("its protocol is not https, wss, http or ws.")),
        };
        let is_plain =
            |c: char| c.is_ascii_graphic() && !matches!(c, '@' | '?' | '#' | '%' | '\\' | '"' | '<' | '>');
        if !rest.chars().all(is_plain) {
            return Err(wrong("it may hold a host, a port and a path, and nothing else."));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match split_port(authority) {
            Some((host, port)) if !host.is_empty() => (host, port),
            _ => return Err(wrong("its host or port is missing.")),
        };
        if !is_secure && !is_loopback(&host) {
            return Err(wrong("http is for this machine only; other machines need https."));
        }
        let port = match port {
            Some(port) => port,
            None => {
                if is_secure {
                    443
                } else {
                    80
                }
            }
        };
        let path = path.trim_matches('/');
        let path = match path.strip_suffix(endpoint).map(|rest| rest.trim_end_matches('/')) {
            Some(rest) if path.len() == endpoint.len() || path.ends_with(&format!("/{endpoint}")) => rest,
            _ => path,
        };
        let path = if path.is_empty() { format!("/{endpoint}") } else { format!("/{path}/{endpoint}") };
        Ok(Self { is_secure, host, port, authority: authority.to_owned(), path })
    }
}

/// `None` for a port that is no number.
fn split_port(authority: &str) -> Option<(String, Option<u16>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        host.parse::<std::net::Ipv6Addr>().ok()?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host.to_owned(), Some(port.parse().ok()?))),
            None if rest.is_empty() => Some((host.to_owned(), None)),
            None => None,
        };
    }
    match authority.split_once(':') {
        Some((host, port)) => Some((host.to_owned(), Some(port.parse().ok()?))),
        None => Some((authority.to_owned(), None)),
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_users_write_them() {
        for (text, host, port, path) in [
            ("https://example.com", "example.com", 443, "/acp"),
            ("wss://example.com:8443/", "example.com", 8443, "/acp"),
            ("https://example.com/acp", "example.com", 443, "/acp"),
            ("https://example.com/team/acp/", "example.com", 443, "/team/acp"),
            ("https://example.com/macp", "example.com", 443, "/macp/acp"),
            ("http://127.0.0.1:4000", "127.0.0.1", 4000, "/acp"),
            ("ws://[::1]:4000/x", "::1", 4000, "/x/acp"),
            ("http://localhost", "localhost", 80, "/acp"),
        ] {
            let address = Address::parse(text, "acp").unwrap();
            assert_eq!(
                (address.host.as_str(), address.port, address.path.as_str()),
                (host, port, path),
                "{text}"
            );
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        for text in [
            "",
            "example.com",
            "ftp://example.com",
            "http://example.com",
            "http://10.0.0.1:80",
            "https://",
            "https://:1",
            "https://a:b",
            "https://a:99999",
            "https://user:word@a",
            "https://a/?token=x",
            "https://a/#x",
            "https://a b",
            "http://127.0.0.1.example.com",
            "https://[::1",
            "https://a\r\nb",
        ] {
            assert!(Address::parse(text, "acp").is_err(), "{text}");
        }
    }
}
