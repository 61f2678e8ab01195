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
        /// Set for requests of the stateless era.
        stateless: Option<StatelessHeaders>,
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

/// The headers that repeat a request of the stateless era for gateways.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StatelessHeaders {
    pub version: String,
    pub method: String,
    pub name: Option<String>,
    /// The tool that a call is for.
    pub tool: Option<String>,
}

#[derive(Deserialize)]
struct OutgoingHead<'a> {
    #[serde(default)]
    id: Option<serde_json::Value>,
    #[serde(borrow, default)]
    method: Option<&'a str>,
    #[serde(default)]
    params: Option<OutgoingParams>,
}

/// Every params decode as this; the members are those that the bridge looks at.
#[derive(Deserialize)]
struct OutgoingParams {
    #[serde(default, rename = "requestId")]
    request_id: Option<serde_json::Value>,
    #[serde(default, rename = "_meta")]
    meta: Option<OutgoingMeta>,
    #[serde(default)]
    name: Option<serde_json::Value>,
    #[serde(default)]
    uri: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct OutgoingMeta {
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

impl StatelessHeaders {
    fn new(method: &str, params: Option<OutgoingParams>) -> Option<Self> {
        let params = params?;
        let version = params.meta?.version?;
        let name = match method {
            "tools/call" | "prompts/get" => params.name,
            "resources/read" => params.uri,
            _ => None,
        };
        let name = name.as_ref().and_then(serde_json::Value::as_str);
        let tool = name.filter(|_| method == "tools/call").map(str::to_owned);
        Some(Self { version, method: method.to_owned(), name: name.map(header_text), tool })
    }
}

/// A value that every proxy passes on; others are written in base64.
pub(super) fn header_text(value: &str) -> String {
    let plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim() == value;
    if plain && !value.is_empty() && !value.starts_with("=?") {
        return value.to_owned();
    }
    format!("=?base64?{}?=", base64(value.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

impl OutgoingMessage {
    /// Reads a message that the peer wrote.
    pub(super) fn read(body: &[u8]) -> Self {
        let head: Option<OutgoingHead<'_>> = serde_json::from_slice(body).ok();
        let kind = match head {
            Some(OutgoingHead { method: Some(method), id, params }) => {
                match (method, id.and_then(|id| id.as_u64())) {
                    (method, Some(id)) => MessageKind::Request {
                        id,
                        initialize: method == "initialize",
                        stateless: StatelessHeaders::new(method, params),
                    },
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
pub(super) fn error_response(id: u64, code: i64, reason: &str, data: Option<serde_json::Value>) -> Vec<u8> {
    let error = json!({"code": code, "message": reason, "data": data});
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
            MessageKind::Request { id: 1, initialize: true, stateless: None }
        ));
        assert!(matches!(
            kind(r#"{"id":2,"method":"x"}"#),
            MessageKind::Request { id: 2, initialize: false, .. }
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

    #[test]
    fn requests_of_the_stateless_era_carry_their_headers() {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let headers = |method: &str, more: &str| {
            let text = format!(r#"{{"id":1,"method":"{method}","params":{{{more}{meta}}}}}"#);
            let kind = OutgoingMessage::read(text.as_bytes()).kind;
            let MessageKind::Request { stateless, .. } = kind else { panic!("a request") };
            stateless.unwrap().name
        };
        assert_eq!(headers("tools/list", r#""name":"x","#), None);
        assert_eq!(headers("tools/call", r#""name":"echo","#).as_deref(), Some("echo"));
        assert_eq!(
            headers("resources/read", r#""uri":"note://größe","#).as_deref(),
            Some("=?base64?bm90ZTovL2dyw7bDn2U=?=")
        );
        assert_eq!(headers("prompts/get", r#""name":" a","#).as_deref(), Some("=?base64?IGE=?="));
    }
}
