//! The little that the bridge must know of messages: which are requests, which answer one, how a batch falls apart.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;

/// A message of ours and what is special about it.
pub(super) struct Outgoing {
    pub kind: Kind,
    pub body: Bytes,
}

pub(super) enum Kind {
    Request {
        id: u64,
        initialize: bool,
    },
    Initialized,
    Cancelled {
        id: Option<u64>,
    },
    /// A notification or an answer of ours.
    Other,
    /// An answer to nothing, which a server must not be sent: the peer complains of a message it cannot read.
    Complaint,
}

#[derive(Deserialize)]
struct OurHead<'a> {
    #[serde(default)]
    id: Option<serde_json::Value>,
    #[serde(borrow, default)]
    method: Option<&'a str>,
    #[serde(default)]
    params: Option<Cancel>,
}

/// Every params decode as this; only those of a cancel notification have the member.
#[derive(Deserialize)]
struct Cancel {
    #[serde(default, rename = "requestId")]
    request_id: Option<serde_json::Value>,
}

impl Outgoing {
    /// Reads what our own peer wrote.
    pub(super) fn read(body: &[u8]) -> Self {
        let head: Option<OurHead<'_>> = serde_json::from_slice(body).ok();
        let kind = match head {
            Some(OurHead { method: Some(method), id, params }) => {
                match (method, id.and_then(|id| id.as_u64())) {
                    (method, Some(id)) => Kind::Request { id, initialize: method == "initialize" },
                    ("notifications/initialized", None) => Kind::Initialized,
                    ("notifications/cancelled", None) => {
                        let id = params.and_then(|params| params.request_id).and_then(|id| id.as_u64());
                        Kind::Cancelled { id }
                    }
                    _ => Kind::Other,
                }
            }
            Some(OurHead { id: Some(_), .. }) => Kind::Other,
            _ => Kind::Complaint,
        };
        Self { kind, body: Bytes::copy_from_slice(body) }
    }
}

#[derive(Deserialize)]
struct TheirHead<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<IgnoredAny>,
}

/// Whether a message of the server's answers this request of ours.
pub(super) fn answers(line: &[u8], id: u64) -> bool {
    let head: Option<TheirHead<'_>> = serde_json::from_slice(line).ok();
    head.is_some_and(|head| {
        let same = head.id.is_some_and(|theirs| theirs.get().trim_matches('"') == id.to_string());
        same && head.method.is_none()
    })
}

/// The messages in a body or event: one, several of a batch, or none. Each is one line.
pub(super) fn split(text: &[u8]) -> Vec<Vec<u8>> {
    let text = text.trim_ascii();
    let mut messages: Vec<Vec<u8>> = match text.first() {
        Some(b'{') => vec![text.to_vec()],
        Some(b'[') => {
            let batch: Vec<&RawValue> = serde_json::from_slice(text).unwrap_or_default();
            batch.into_iter().map(|message| message.get().as_bytes().to_vec()).collect()
        }
        _ => Vec::new(),
    };
    // Outside strings JSON has line ends as white space only, and inside it has none.
    for byte in messages.iter_mut().flatten().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    messages
}

/// An answer that says what went wrong on the way.
pub(super) fn fault(id: u64, reason: &str, data: Option<serde_json::Value>) -> Vec<u8> {
    let error = json!({"code": -32000, "message": reason, "data": data});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let kind = |text: &str| Outgoing::read(text.as_bytes()).kind;
        assert!(matches!(
            kind(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#),
            Kind::Request { id: 1, initialize: true }
        ));
        assert!(matches!(kind(r#"{"id":2,"method":"x"}"#), Kind::Request { id: 2, initialize: false }));
        assert!(matches!(kind(r#"{"method":"notifications/initialized"}"#), Kind::Initialized));
        let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
        assert!(matches!(kind(cancel), Kind::Cancelled { id: Some(7) }));
        assert!(matches!(kind(r#"{"id":"theirs","result":{}}"#), Kind::Other));
        assert!(matches!(kind(r#"{"id":null,"error":{}}"#), Kind::Complaint));
        assert!(answers(br#"{"id":"3","result":{}}"#, 3) && answers(br#"{"error":{},"id":3}"#, 3));
        assert!(!answers(br#"{"id":3,"method":"ping"}"#, 3) && !answers(br#"{"id":4,"result":1}"#, 3));
    }

    #[test]
    fn a_batch_falls_apart_and_pretty_printing_does_no_harm() {
        assert_eq!(split(b"\n {\"a\":\n1}\r\n"), [b"{\"a\": 1}".to_vec()]);
        assert_eq!(split(b"[{\"a\":1},\n{\"b\":2}]"), [b"{\"a\":1}".to_vec(), b"{\"b\":2}".to_vec()]);
        assert!(split(b"hello").is_empty() && split(b"").is_empty() && split(b"[{").is_empty());
    }
}
