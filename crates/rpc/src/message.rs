//! What a message is: ids, faults, params, and the sorting of a body into request, notification, response or invalid.
//!
//! It must not know connections or queues. Invariant: ids and params are kept as the peer wrote them; nothing a peer
//! sends makes it panic or hold more than the message.

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The id of a request, kept verbatim: a number of any form or a string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Id(Box<str>);

/// The params of a message as received; `null` counts as absent.
#[derive(Clone, Copy, Debug)]
pub struct Params<'a>(Option<&'a RawValue>);

/// The error object of a response.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fault {
    #[serde(default = "Fault::unknown_code")]
    pub code: i64,
    #[serde(default)]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl Id {
    /// The id as JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    fn read(raw: &RawValue) -> Option<Id> {
        let text = raw.get();
        let fits = text.len() <= Id::LIMIT && text.starts_with(|first: char| "-0123456789\"".contains(first));
        fits.then(|| Id(text.into()))
    }

    /// Ids are kept while a request runs, so their size is bounded.
    const LIMIT: usize = 1024;
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'a> Params<'a> {
    pub fn raw(self) -> Option<&'a RawValue> {
        self.0
    }

    /// The params as `T`, or the -32602 fault to answer with. Absent params decode like `null` or else like `{}`.
    pub fn decode<T: Deserialize<'a>>(self) -> Result<T, Fault> {
        let decoded = match self.0 {
            Some(raw) => serde_json::from_str(raw.get()),
            None => serde_json::from_str("null").or_else(|_| serde_json::from_str("{}")),
        };
        decoded.map_err(Fault::invalid_params)
    }
}

impl<'a> From<Option<&'a RawValue>> for Params<'a> {
    fn from(raw: Option<&'a RawValue>) -> Params<'a> {
        Params(raw.filter(|raw| raw.get() != "null"))
    }
}

impl Fault {
    pub const PARSE_ERROR: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL_ERROR: i64 = -32603;
    /// As the Language Server Protocol has it.
    pub const CANCELLED: i64 = -32800;

    pub fn new(code: i64, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), data: None }
    }

    pub fn method_not_found(method: &str) -> Fault {
        let shown: String = method.chars().take(200).collect();
        Fault::new(Fault::METHOD_NOT_FOUND, format!("Method not found - '{shown}'"))
    }

    /// With what is wrong with them, such as serde's message.
    pub fn invalid_params(reason: impl fmt::Display) -> Fault {
        Fault::new(Fault::INVALID_PARAMS, format!("Invalid params - {reason}"))
    }

    /// With the sentence to show; -32603.
    pub fn internal(message: impl Into<String>) -> Fault {
        Fault::new(Fault::INTERNAL_ERROR, message)
    }

    pub fn cancelled() -> Fault {
        Fault::new(Fault::CANCELLED, "The request was cancelled.")
    }

    fn invalid_request(message: &str) -> Fault {
        Fault::new(Fault::INVALID_REQUEST, format!("Invalid request - {message}"))
    }

    fn unknown_code() -> i64 {
        Fault::INTERNAL_ERROR
    }

    /// Peers also send plain strings and the like as errors.
    fn read(raw: &RawValue) -> Fault {
        serde_json::from_str(raw.get())
            .unwrap_or_else(|_| Fault::internal(raw.get().chars().take(1000).collect::<String>()))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Fault {}

pub(crate) enum Incoming<'a> {
    Request { id: Id, method: Cow<'a, str>, params: Params<'a> },
    Notification { method: Cow<'a, str>, params: Params<'a> },
    Response { id: Option<Id>, outcome: Outcome<'a> },
    Invalid { id: Option<Id>, fault: Fault },
}

pub(crate) enum Outcome<'a> {
    Result(&'a RawValue),
    Error(Fault),
    /// Neither member is there.
    Missing,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Tells a member that is null from one that is not there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Sorts the body of one message.
pub(crate) fn read(body: &[u8], version_member: bool) -> Incoming<'_> {
    match parse(body) {
        Err(fault) => Incoming::Invalid { id: None, fault },
        Ok(envelope) if envelope.method.is_some() => read_call(&envelope, version_member),
        Ok(envelope) => {
            let id = envelope.id.and_then(Id::read);
            let outcome = match (envelope.error.filter(|error| error.get() != "null"), envelope.result) {
                (Some(error), _) => Outcome::Error(Fault::read(error)),
                (None, Some(result)) => Outcome::Result(result),
                (None, None) => Outcome::Missing,
            };
            Incoming::Response { id, outcome }
        }
    }
}

/// The fault for an object that is neither a call nor an answer to an outgoing request.
pub(crate) fn without_method() -> Fault {
    Fault::invalid_request("the member 'method' is missing")
}

fn parse(body: &[u8]) -> Result<Envelope<'_>, Fault> {
    let text = std::str::from_utf8(body)
        .map_err(|error| Fault::new(Fault::PARSE_ERROR, format!("Parse error - {error}")))?
        .trim_start_matches('\u{feff}')
        .trim_ascii();
    let parse_error = |error| Fault::new(Fault::PARSE_ERROR, format!("Parse error - {error}"));
    if !text.starts_with('{') {
        serde_json::from_str::<IgnoredAny>(text).map_err(parse_error)?;
        return Err(Fault::invalid_request(if text.starts_with('[') {
            "batches are not supported, send each message on its own"
        } else {
            "a message is a JSON object"
        }));
    }
    serde_json::from_str(text).map_err(|error| {
        if error.classify() == serde_json::error::Category::Data {
            return Fault::invalid_request(&error.to_string());
        }
        parse_error(error)
    })
}

fn read_call<'a>(envelope: &Envelope<'a>, version_member: bool) -> Incoming<'a> {
    let id = envelope.id.and_then(Id::read);
    let invalid = |message| Incoming::Invalid { id: id.clone(), fault: Fault::invalid_request(message) };
    if version_member && envelope.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return invalid("the member 'jsonrpc' must be \"2.0\"");
    }
    let Some(method) = envelope.method.and_then(read_text) else {
        return invalid("the member 'method' must be a string");
    };
    let params = Params::from(envelope.params);
    if params.raw().is_some_and(|raw| !raw.get().starts_with(['{', '['])) {
        return invalid("the member 'params' must be an object, an array or null");
    }
    match (envelope.id.is_some(), id) {
        (false, _) => Incoming::Notification { method, params },
        (true, Some(id)) => Incoming::Request { id, method, params },
        (true, None) => Incoming::Invalid {
            id: None,
            fault: Fault::invalid_request("the member 'id' must be a number or a short string"),
        },
    }
}

fn read_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let plain = serde_json::from_str::<&str>(raw.get()).map(Cow::Borrowed);
    plain.or_else(|_| serde_json::from_str::<String>(raw.get()).map(Cow::Owned)).ok()
}

/// The id named by a cancel notification.
pub(crate) fn read_cancelled(params: Params<'_>, parameter: &str) -> Option<Id> {
    let members: std::collections::HashMap<Cow<'_, str>, &RawValue> = params.decode().ok()?;
    members.get(parameter).and_then(|raw| Id::read(raw))
}

/// The members that the first bytes of an unread message show.
#[derive(Default)]
pub(crate) struct MessageHead {
    pub id: Option<Id>,
    pub is_call: bool,
    pub is_response: bool,
}

impl MessageHead {
    pub(crate) fn of(head: &[u8]) -> MessageHead {
        let mut seen = MessageHead::default();
        // It ends in an error where the bytes end; what was seen before counts.
        let _ = serde_json::Deserializer::from_slice(head).deserialize_map(MessageHeadVisitor(&mut seen));
        seen
    }
}

struct MessageHeadVisitor<'g>(&'g mut MessageHead);

impl<'de> Visitor<'de> for MessageHeadVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut id = None;
        while let Some(member) = members.next_key::<String>()? {
            // Only now is it sure that the id's last digit was seen.
            self.0.id = self.0.id.take().or(id.take());
            match member.as_str() {
                "id" => id = Id::read(members.next_value::<&RawValue>()?),
                name => {
                    self.0.is_call |= name == "method";
                    self.0.is_response |= matches!(name, "result" | "error");
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        self.0.id = self.0.id.take().or(id);
        Ok(())
    }
}
