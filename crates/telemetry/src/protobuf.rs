//! The binary form of OTLP, made from its JSON form by a table of the fields that we send.
//!
//! Invariant: a field that the table does not have is left out, so the tests compare the result with what the official
//! package reads (`crates/app/tests/it/telemetry.rs`). Numbers and types of fields are those of opentelemetry-proto 1.x.

use serde_json::{Map, Value};

use super::encode::Kind;

/// A field of a message: its name in JSON, its number, and what it holds.
type Field = (&'static str, u64, Holds);

#[derive(Clone, Copy)]
enum Holds {
    Text,
    /// Bytes, which JSON has as hexadecimal digits.
    Bytes,
    Varint,
    Fixed64,
    Double,
    /// A list of numbers, one after the other.
    PackedFixed64,
    PackedDouble,
    /// One message or a list of them.
    Message(&'static [Field]),
}

const VALUE: &[Field] = &[
    ("stringValue", 1, Holds::Text),
    ("boolValue", 2, Holds::Varint),
    ("intValue", 3, Holds::Varint),
    ("doubleValue", 4, Holds::Double),
];
const ATTRIBUTE: &[Field] = &[("key", 1, Holds::Text), ("value", 2, Holds::Message(VALUE))];
const RESOURCE: &[Field] = &[("attributes", 1, Holds::Message(ATTRIBUTE))];
const SCOPE: &[Field] = &[("name", 1, Holds::Text), ("version", 2, Holds::Text)];

const STATUS: &[Field] = &[("code", 3, Holds::Varint)];
const SPAN: &[Field] = &[
    ("traceId", 1, Holds::Bytes),
    ("spanId", 2, Holds::Bytes),
    ("parentSpanId", 4, Holds::Bytes),
    ("name", 5, Holds::Text),
    ("kind", 6, Holds::Varint),
    ("startTimeUnixNano", 7, Holds::Fixed64),
    ("endTimeUnixNano", 8, Holds::Fixed64),
    ("attributes", 9, Holds::Message(ATTRIBUTE)),
    ("status", 15, Holds::Message(STATUS)),
];
const SCOPE_SPANS: &[Field] = &[("scope", 1, Holds::Message(SCOPE)), ("spans", 2, Holds::Message(SPAN))];
const RESOURCE_SPANS: &[Field] =
    &[("resource", 1, Holds::Message(RESOURCE)), ("scopeSpans", 2, Holds::Message(SCOPE_SPANS))];
const TRACES: &[Field] = &[("resourceSpans", 1, Holds::Message(RESOURCE_SPANS))];

const NUMBER_POINT: &[Field] = &[
    ("startTimeUnixNano", 2, Holds::Fixed64),
    ("timeUnixNano", 3, Holds::Fixed64),
    ("asDouble", 4, Holds::Double),
    ("attributes", 7, Holds::Message(ATTRIBUTE)),
];
const SUM: &[Field] = &[
    ("dataPoints", 1, Holds::Message(NUMBER_POINT)),
    ("aggregationTemporality", 2, Holds::Varint),
    ("isMonotonic", 3, Holds::Varint),
];
const HISTOGRAM_POINT: &[Field] = &[
    ("startTimeUnixNano", 2, Holds::Fixed64),
    ("timeUnixNano", 3, Holds::Fixed64),
    ("count", 4, Holds::Fixed64),
    ("sum", 5, Holds::Double),
    ("bucketCounts", 6, Holds::PackedFixed64),
    ("explicitBounds", 7, Holds::PackedDouble),
    ("attributes", 9, Holds::Message(ATTRIBUTE)),
];
const HISTOGRAM: &[Field] =
    &[("dataPoints", 1, Holds::Message(HISTOGRAM_POINT)), ("aggregationTemporality", 2, Holds::Varint)];
const METRIC: &[Field] = &[
    ("name", 1, Holds::Text),
    ("unit", 3, Holds::Text),
    ("sum", 7, Holds::Message(SUM)),
    ("histogram", 9, Holds::Message(HISTOGRAM)),
];
const SCOPE_METRICS: &[Field] =
    &[("scope", 1, Holds::Message(SCOPE)), ("metrics", 2, Holds::Message(METRIC))];
const RESOURCE_METRICS: &[Field] =
    &[("resource", 1, Holds::Message(RESOURCE)), ("scopeMetrics", 2, Holds::Message(SCOPE_METRICS))];
const METRICS: &[Field] = &[("resourceMetrics", 1, Holds::Message(RESOURCE_METRICS))];

/// The body of a request whose JSON form this is.
pub(super) fn encode(kind: Kind, body: &Value) -> Vec<u8> {
    let fields = match kind {
        Kind::Traces => TRACES,
        Kind::Metrics => METRICS,
    };
    body.as_object().map(|body| message(fields, body)).unwrap_or_default()
}

fn message(fields: &[Field], object: &Map<String, Value>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, number, holds) in fields {
        if let Some(value) = object.get(*name) {
            put_field(&mut bytes, *number, *holds, value);
        }
    }
    bytes
}

fn put_field(bytes: &mut Vec<u8>, number: u64, holds: Holds, value: &Value) {
    match holds {
        Holds::Text => put_bytes(bytes, number, value.as_str().unwrap_or_default().as_bytes()),
        Holds::Bytes => put_bytes(bytes, number, &from_hex(value.as_str().unwrap_or_default())),
        Holds::Varint => {
            put_varint(bytes, number << 3);
            put_varint(bytes, whole(value));
        }
        Holds::Fixed64 => {
            put_varint(bytes, number << 3 | 1);
            bytes.extend(whole(value).to_le_bytes());
        }
        Holds::Double => {
            put_varint(bytes, number << 3 | 1);
            bytes.extend(value.as_f64().unwrap_or_default().to_le_bytes());
        }
        Holds::PackedFixed64 => {
            let packed: Vec<u8> = list(value).iter().flat_map(|it| whole(it).to_le_bytes()).collect();
            put_bytes(bytes, number, &packed);
        }
        Holds::PackedDouble => {
            let double = |it: &Value| it.as_f64().unwrap_or_default().to_le_bytes();
            let packed: Vec<u8> = list(value).iter().flat_map(double).collect();
            put_bytes(bytes, number, &packed);
        }
        Holds::Message(fields) => {
            for object in list(value).iter().filter_map(Value::as_object) {
                put_bytes(bytes, number, &message(fields, object));
            }
        }
    }
}

/// The entries of a list; anything else is the only one.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

/// A number, a switch, or a number of 64 bits, which JSON has as a text.
fn whole(value: &Value) -> u64 {
    if let Some(text) = value.as_str() {
        return text.parse().unwrap_or_default();
    }
    value.as_bool().map(u64::from).or_else(|| value.as_u64()).unwrap_or_default()
}

fn put_bytes(bytes: &mut Vec<u8>, number: u64, content: &[u8]) {
    put_varint(bytes, number << 3 | 2);
    put_varint(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}

fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn from_hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::encode::{SpanKind, SpanPlace, attribute, envelope, span};

    /// What the official Python package reads from these bytes is what was written: checked when the test was written, and
    /// anew by `crates/app/tests/it/telemetry.rs` where the package can be installed.
    #[test]
    fn a_span_has_the_bytes_of_the_standard() {
        let place = SpanPlace { trace: [0xab; 16], span: [1; 8], parent: Some([2; 8]) };
        let attributes = vec![attribute("n", 300_u64), attribute("f", 0.5), attribute("b", true)];
        let span = span(&place, "turn", SpanKind::Client, (1, 2), true, attributes);
        let bytes = message(SPAN, span.as_object().expect("an object"));
        let expected = "0a10abababababababababababababababab 12080101010101010101 22080202020202020202 2a047475726e 3003 \
             390100000000000000 410200000000000000 4a08 0a016e 1203 18ac02 4a0e 0a0166 1209 21000000000000e03f \
             4a07 0a0162 1202 1001 7a02 1802";
        assert_eq!(bytes, from_hex(&expected.replace(' ', "")));
    }

    #[test]
    fn lists_of_numbers_are_packed_and_unknown_fields_left_out() {
        let point = json!({"count": "3", "bucketCounts": ["1", "2"], "explicitBounds": [0.5], "new": 1});
        let bytes = message(HISTOGRAM_POINT, point.as_object().expect("an object"));
        let expected = "210300000000000000 3210 0100000000000000 0200000000000000 3a08 000000000000e03f";
        assert_eq!(bytes, from_hex(&expected.replace(' ', "")));
        let body = envelope(Kind::Metrics, &[], Vec::new());
        assert_eq!(encode(Kind::Traces, &body), b"", "metrics are no traces");
        assert!(encode(Kind::Metrics, &body).starts_with(b"\x0a"));
    }
}
