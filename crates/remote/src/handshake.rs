//! The names and the one computation of the WebSocket handshake (RFC 6455), which both sides need.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// The connection, as the remote transport of ACP names it.
pub const CONNECTION_ID: &str = "acp-connection-id";
/// How many messages the sender of this header has received. A client that sends it can resume.
pub const RESUME: &str = "dragoman-resume";

const SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The answer to a `Sec-WebSocket-Key`. The protocol demands SHA-1; no secret depends on it.
pub fn accept_key(key: &str) -> String {
    let text = format!("{key}{SUFFIX}");
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

/// Whether this is 16 bytes in base64.
pub fn is_key(key: &str) -> bool {
    STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification() {
        assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(is_key("dGhlIHNhbXBsZSBub25jZQ=="));
        for key in ["", "abc", "dGhlIHNhbXBsZSBub25jZQ", "!!!"] {
            assert!(!is_key(key), "{key}");
        }
    }
}
