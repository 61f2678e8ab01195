//! The JSON form of OTLP: attributes, spans and the envelope around them. 64-bit numbers are texts there.

use serde_json::{Value, json};

pub(super) enum Attribute {
    Text(String),
    Number(u64),
    Amount(f64),
    Flag(bool),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Attribute {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Attribute {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<f64> for Attribute {
    fn from(amount: f64) -> Self {
        Self::Amount(amount)
    }
}

impl From<bool> for Attribute {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

pub(super) fn attribute(key: &str, value: impl Into<Attribute>) -> Value {
    let value = match value.into() {
        Attribute::Text(text) => json!({ "stringValue": text }),
        Attribute::Number(number) => json!({ "intValue": number.to_string() }),
        Attribute::Amount(amount) => json!({ "doubleValue": amount }),
        Attribute::Flag(flag) => json!({ "boolValue": flag }),
    };
    json!({ "key": key, "value": value })
}

#[derive(Clone, Copy)]
pub(super) struct SpanPlace {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
}

impl SpanPlace {
    /// The beginning of a new trace, or a span below another.
    pub(super) fn below(parent: Option<&SpanPlace>) -> Self {
        let trace = parent.map_or_else(|| *uuid::Uuid::now_v7().as_bytes(), |parent| parent.trace);
        let mut span = [0; 8];
        // The second half of such an id is random.
        span.copy_from_slice(&uuid::Uuid::now_v7().as_bytes()[8..]);
        Self { trace, span, parent: parent.map(|parent| parent.span) }
    }
}

#[derive(Clone, Copy)]
pub(super) enum SpanKind {
    Internal = 1,
    Client = 3,
}

pub(super) fn span(
    place: &SpanPlace,
    name: &str,
    kind: SpanKind,
    times: (u64, u64),
    is_error: bool,
    attributes: Vec<Value>,
) -> Value {
    let mut span = json!({
        "traceId": hex(&place.trace),
        "spanId": hex(&place.span),
        "name": name,
        "kind": kind as u8,
        "startTimeUnixNano": times.0.to_string(),
        "endTimeUnixNano": times.1.max(times.0).to_string(),
        "attributes": attributes,
        "status": if is_error { json!({ "code": 2 }) } else { json!({}) },
    });
    if let Some(parent) = &place.parent {
        span["parentSpanId"] = hex(parent).into();
    }
    span
}

/// The body of one request: `spans` or `metrics` of this program.
pub(super) fn envelope(kind: Kind, resource: &[Value], entries: Vec<Value>) -> Value {
    let (outer, inner, list) = match kind {
        Kind::Traces => ("resourceSpans", "scopeSpans", "spans"),
        Kind::Metrics => ("resourceMetrics", "scopeMetrics", "metrics"),
    };
    let scope = json!({ "name": "dragoman", "version": env!("CARGO_PKG_VERSION") });
    json!({ outer: [{ "resource": { "attributes": resource }, inner: [{ "scope": scope, list: entries }] }] })
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Traces,
    Metrics,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
