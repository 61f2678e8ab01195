//! The little that the bridge must know of messages: which are requests, which answer one, how a batch falls apart.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;

/// A message from the peer to the server, with its kind.
pub(super) struct OutgoingMessage {
    pub kind: MessageKind,
    pub body: Bytes,
}

pub(super) enum MessageKind {
    Request {
        id: u64,
        initialize: bool,
    },
    Initialized,
    Cancelled {
        id: Option<u64>,
    },
    /// Another notification, or a response.
    Other,
    /// An error with a null id, which the peer writes for an unreadable message. The server must not receive it.
    NullIdError,
}

#[derive(Deserialize)]
struct OutgoingHead<'a> {
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

impl OutgoingMessage {
    /// Reads a message that the peer wrote.
    pub(super) fn read(body: &[u8]) -> Self {
        let head: Option<OutgoingHead<'_>> = serde_json::from_slice(body).ok();
        let kind = match head {
            Some(OutgoingHead { method: Some(method), id, params }) => {
                match (method, id.and_then(|id| id.as_u64())) {
                    (method, Some(id)) => MessageKind::Request { id, initialize: method == "initialize" },
                    ("notifications/initialized", None) => MessageKind::Initialized,
                    ("notifications/cancelled", None) => {
                        let id = params.and_then(|params| params.request_id).and_then(|id| id.as_u64());
                        MessageKind::Cancelled { id }
                    }
                    _ => MessageKind::Other,
                }
            }
            Some(OutgoingHead { id: Some(_), .. }) => MessageKind::Other,
            _ => MessageKind::NullIdError,
        };
        Self { kind, body: Bytes::copy_from_slice(body) }
    }
}

#[derive(Deserialize)]
struct IncomingHead<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<IgnoredAny>,
}

/// Whether a message from the server is the response to this request.
pub(super) fn is_response_to(line: &[u8], id: u64) -> bool {
    let head: Option<IncomingHead<'_>> = serde_json::from_slice(line).ok();
    head.is_some_and(|head| {
        let same = head.id.is_some_and(|theirs| theirs.get().trim_matches('"') == id.to_string());
        same && head.method.is_none()
    })
}

/// The messages in a body or event: one, several of a batch, or none. Each is one line.
pub(super) fn split_batch(text: &[u8]) -> Vec<Vec<u8>> {
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
pub(super) fn error_response(id: u64, reason: &str, data: Option<serde_json::Value>) -> Vec<u8> {
    let error = json!({"code": -32000, "message": reason, "data": data});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let kind = |text: &str| OutgoingMessage::read(text.as_bytes()).kind;
        assert!(matches!(
            kind(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#),
            MessageKind::Request { id: 1, initialize: true }
        ));
        assert!(matches!(
            kind(r#"{"id":2,"method":"x"}"#),
            MessageKind::Request { id: 2, initialize: false }
        ));
        assert!(matches!(kind(r#"{"method":"notifications/initialized"}"#), MessageKind::Initialized));
        let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
        assert!(matches!(kind(cancel), MessageKind::Cancelled { id: Some(7) }));
        assert!(matches!(kind(r#"{"id":"theirs","result":{}}"#), MessageKind::Other));
        assert!(matches!(kind(r#"{"id":null,"error":{}}"#), MessageKind::NullIdError));
        assert!(
            is_response_to(br#"{"id":"3","result":{}}"#, 3) && is_response_to(br#"{"error":{},"id":3}"#, 3)
        );
        assert!(
            !is_response_to(br#"{"id":3,"method":"ping"}"#, 3)
                && !is_response_to(br#"{"id":4,"result":1}"#, 3)
        );
    }

    #[test]
    fn a_batch_falls_apart_and_pretty_printing_does_no_harm() {
        assert_eq!(split_batch(b"\n {\"a\":\n1}\r\n"), [b"{\"a\": 1}".to_vec()]);
        assert_eq!(split_batch(b"[{\"a\":1},\n{\"b\":2}]"), [b"{\"a\":1}".to_vec(), b"{\"b\":2}".to_vec()]);
        assert!(
            split_batch(b"hello").is_empty() && split_batch(b"").is_empty() && split_batch(b"[{").is_empty()
        );
    }
}
