//! A request of the frame and its answer, as the page sends and gets them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

/// What the frame asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct NetworkRequest {
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub query: Vec<(String, String)>,
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    #[serde(default)]
    pub body: Option<NetworkBody>,
    /// The answer is wanted while it comes.
    #[serde(default, rename = "inParts")]
    pub is_in_parts: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NetworkBody {
    Text(String),
    Base64(String),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NetworkFault {
    pub kind: &'static str,
    pub message: String,
}

impl NetworkFault {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new("refused", message)
    }

    pub(crate) fn shown(&self) -> Value {
        json!({"error": {"kind": self.kind, "message": self.message}})
    }
}

#[derive(Debug)]
pub(crate) struct NetworkAnswer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body has gone on in parts; what is here is for the console.
    pub was_streamed: bool,
    pub duration: Duration,
}

impl NetworkAnswer {
    pub(crate) fn shown(&self) -> Value {
        let body = match std::str::from_utf8(&self.body) {
            _ if self.was_streamed => json!({"text": ""}),
            Ok(text) => json!({"text": text}),
            Err(_) => json!({"base64": STANDARD.encode(&self.body)}),
        };
        json!({
            "status": self.status,
            "ok": (200..300).contains(&self.status),
            "headers": self.headers,
            "body": body,
            "duration": milliseconds(self.duration),
        })
    }
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
