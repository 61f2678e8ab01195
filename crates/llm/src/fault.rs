//! The errors of one attempt of a call, and whether another attempt can help.
//!
//! The HTTP status, the error object of a body and an error inside a stream all become one [`Fault`]. Knows no
//! network. Invariant: a message here was scrubbed of keys before it leaves the crate (see [`crate::scrub`]).

use std::time::Duration;

use domain::{Failure, FailureKind};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::retry;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The key is missing, wrong or not allowed to use this model.
    Auth,
    /// Too many requests now; later ones will do.
    RateLimit,
    /// Money or a monthly limit: waiting does not help.
    Exhausted,
    /// The server has too much to do for the moment, from all of its clients.
    Overloaded,
    /// The server is broken for the moment.
    Server,
    /// The connection failed or ended early.
    Network,
    /// Nothing listens at the address, which is on this machine.
    Refused,
    /// Nothing came for too long.
    Silent,
    /// The request itself was refused.
    Request,
    /// The prompt does not fit into the model's context.
    TooLong,
    /// The response was not an answer.
    Malformed,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    /// The wait that the server asked for.
    pub retry_after: Option<Duration>,
    /// The HTTP status that the server answered with, where it was not a success.
    pub status: Option<u16>,
}

impl Fault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, status: None }
    }

    pub fn malformed(what: &str, data: &str) -> Self {
        let head: String = data.chars().take(120).collect();
        Self::new(FaultKind::Malformed, format!("The stream held {what}: {head}"))
    }

    /// Whether another attempt, later, may succeed.
    pub fn can_retry(&self) -> bool {
        matches!(
            self.kind,
            FaultKind::RateLimit
                | FaultKind::Overloaded
                | FaultKind::Server
                | FaultKind::Network
                | FaultKind::Refused
                | FaultKind::Silent
        )
    }

    /// The fault of an HTTP status and its body.
    pub fn from_status(status: u16, body: &str) -> Self {
        let said = ErrorBody::read(body);
        let mut fault =
            Self::new(kind_of_status(status), said.message.unwrap_or_else(|| plain_message(body)));
        fault.status = Some(status);
        if let Some(kind) = said.code.as_deref().and_then(kind_of_code)
            && fault.kind != FaultKind::Auth
        {
            fault.kind = kind;
        }
        // Some servers send it as an error of their own.
        if matches!(fault.kind, FaultKind::Request | FaultKind::Server) && says_too_long(&fault.message) {
            fault.kind = FaultKind::TooLong;
        }
        if fault.message.is_empty() {
            fault.message = format!("The server answered with status {status}.");
        }
        fault
    }

    /// The fault of an error object inside a stream.
    pub fn from_stream(error: &str) -> Self {
        let said = ErrorBody::read(error);
        let known = said.code.as_deref().and_then(kind_of_code);
        let kind = known.or_else(|| said.unknown_codes.iter().find_map(|code| kind_of_unknown_code(code)));
        let kind = kind.unwrap_or(FaultKind::Server);
        let message = said.message.unwrap_or_else(|| plain_message(error));
        let kind = if says_too_long(&message) { FaultKind::TooLong } else { kind };
        Self::new(kind, message)
    }

    /// The fault of an event that no API defines but that reports an error: by the name of the event, or by its data.
    pub(crate) fn of_unknown_event(name: &str, data: &str) -> Option<Self> {
        let names_error = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.ends_with("error") || name.ends_with("exception")
        };
        if names_error(name) {
            return Some(Self::from_stream(data));
        }
        let event: Value = serde_json::from_str(data).ok()?;
        let has_error = !matches!(event.get("error"), None | Some(Value::Null | Value::Bool(false)));
        let is_error =
            ["type", "object", "event"].iter().any(|key| event[*key].as_str().is_some_and(names_error));
        (has_error || is_error).then(|| Self::from_stream(data))
    }

    /// The failure that a user reads when the call ends with it.
    pub fn into_failure(self, provider: &str, key_hint: &str) -> Failure {
        let message = self.message.trim_end_matches('.');
        let (kind, text, hint) = match self.kind {
            FaultKind::Auth => {
                (FailureKind::Auth, format!("{provider} refused the key: {message}."), key_hint.to_owned())
            }
            FaultKind::RateLimit => (
                FailureKind::Quota,
                format!("{provider} limits the rate of requests: {message}."),
                wait_hint(self.retry_after),
            ),
            FaultKind::Exhausted => (
                FailureKind::Quota,
                format!("The account at {provider} has no credit left: {message}."),
                "Check its billing page, or choose another model.".to_owned(),
            ),
            FaultKind::TooLong => (
                FailureKind::Quota,
                format!("The chat no longer fits into the model's context: {message}."),
                "Compact the chat or begin a new one.".to_owned(),
            ),
            FaultKind::Overloaded | FaultKind::Server => {
                let what = if self.kind == FaultKind::Overloaded { "is overloaded" } else { "failed" };
                let hint = "Try again in a while, or choose another model.".to_owned();
                (FailureKind::Provider, format!("{provider} {what}: {message}."), hint)
            }
            FaultKind::Refused => (
                FailureKind::Provider,
                format!("{provider} refuses connections ({message}). Is it running?"),
                "Start the server, correct the provider's url, or choose another model.".to_owned(),
            ),
            FaultKind::Network | FaultKind::Silent => (
                FailureKind::Provider,
                format!("{provider} could not be reached: {message}."),
                "Check the network, the proxy and the provider's url.".to_owned(),
            ),
            FaultKind::Request => (
                FailureKind::Provider,
                format!("{provider} refused the request: {message}."),
                "Check the model's name and settings, or choose another model.".to_owned(),
            ),
            FaultKind::Malformed => (
                FailureKind::Provider,
                format!("{provider} sent an answer that cannot be read: {message}."),
                "Check that the provider's api setting matches its url.".to_owned(),
            ),
        };
        let (retry_after, is_too_long) = (self.retry_after, self.kind == FaultKind::TooLong);
        Failure { retry_after, is_too_long, ..Failure::new(kind, text).hint(hint) }
    }
}

fn wait_hint(retry_after: Option<Duration>) -> String {
    match retry_after.and_then(retry::clock) {
        Some(time) => format!("Try again after {time}, or choose another model."),
        None => "Wait and try again, or choose another model.".to_owned(),
    }
}

/// `{"error": {"type", "code", "message"}}` in the spellings of all vendors.
#[derive(Default)]
struct ErrorBody {
    message: Option<String>,
    /// The first code or type that is known.
    code: Option<String>,
    /// Codes and types that are not known.
    unknown_codes: Vec<String>,
}

impl ErrorBody {
    fn read(text: &str) -> Self {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow, default)]
            error: Option<&'a RawValue>,
            #[serde(borrow, default)]
            errors: Option<&'a RawValue>,
            #[serde(borrow, default)]
            message: Option<&'a RawValue>,
            #[serde(borrow, default, rename = "Message")]
            capital_message: Option<&'a RawValue>,
            #[serde(borrow, default)]
            detail: Option<&'a RawValue>,
            #[serde(borrow, default)]
            code: Option<&'a RawValue>,
            #[serde(borrow, default, rename = "type", alias = "__type")]
            kind: Option<&'a RawValue>,
            #[serde(borrow, default)]
            status: Option<&'a RawValue>,
        }
        let text = text.trim();
        // Google wraps an error in a list.
        if text.starts_with('[')
            && let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(text)
        {
            return list.first().map(|first| Self::read(first.get())).unwrap_or_default();
        }
        if text.starts_with('"') {
            return Self { message: serde_json::from_str(text).ok(), ..Self::default() };
        }
        let Ok(wire) = serde_json::from_str::<Wire>(text) else { return Self::default() };
        if let Some(inner) = wire.error.or(wire.errors).filter(|inner| inner.get() != "null") {
            let mut inner = Self::read(inner.get());
            inner.message = inner.message.or_else(|| wire.message.and_then(text_of));
            return inner;
        }
        let message = wire.message.or(wire.capital_message).or(wire.detail);
        let codes = [wire.code, wire.kind, wire.status].into_iter().flatten().filter_map(text_of);
        let (known, unknown_codes): (Vec<_>, Vec<_>) = codes.partition(|code| kind_of_code(code).is_some());
        Self { message: message.and_then(text_of), code: known.into_iter().next(), unknown_codes }
    }
}

fn text_of(raw: &RawValue) -> Option<String> {
    match raw.get() {
        "null" => None,
        text if text.starts_with('"') => serde_json::from_str(text).ok(),
        other => Some(other.to_owned()),
    }
}

fn plain_message(body: &str) -> String {
    let body = body.trim();
    if body.starts_with('<') {
        return String::new();
    }
    body.chars().take(300).collect()
}

fn kind_of_status(status: u16) -> FaultKind {
    match status {
        401 | 403 => FaultKind::Auth,
        402 => FaultKind::Exhausted,
        413 => FaultKind::TooLong,
        429 => FaultKind::RateLimit,
        529 => FaultKind::Overloaded,
        408 | 409 | 425 | 500..=599 => FaultKind::Server,
        _ => FaultKind::Request,
    }
}

/// Codes and types of errors as the vendors write them; statuses too, which some put into a code.
const CODES: &[(FaultKind, &[&str])] = &[
    (
        FaultKind::Auth,
        &[
            "authentication_error",
            "permission_error",
            "invalid_api_key",
            "401",
            "403",
            "UNAUTHENTICATED",
            "PERMISSION_DENIED",
            "AccessDeniedException",
            "UnrecognizedClientException",
        ],
    ),
    (
        FaultKind::RateLimit,
        &[
            "rate_limit_error",
            "rate_limit_exceeded",
            "429",
            "RESOURCE_EXHAUSTED",
            "ThrottlingException",
            "too_many_requests",
        ],
    ),
    (FaultKind::Exhausted, &["insufficient_quota", "billing_error", "billing_hard_limit_reached", "402"]),
    (
        FaultKind::TooLong,
        &[
            "context_length_exceeded",
            "exceed_context_size_error",
            "model_max_prompt_tokens_exceeded",
            "request_too_large",
            "tokens_limit_reached",
        ],
    ),
    (
        FaultKind::Request,
        &[
            "invalid_request_error",
            "not_found_error",
            "invalid_prompt",
            "400",
            "404",
            "INVALID_ARGUMENT",
            "NOT_FOUND",
            "ValidationException",
        ],
    ),
    (FaultKind::Overloaded, &["overloaded_error", "overloaded", "server_is_overloaded", "529"]),
    (
        FaultKind::Server,
        &[
            "api_error",
            "server_error",
            "timeout_error",
            "500",
            "502",
            "503",
            "504",
            "UNAVAILABLE",
            "INTERNAL",
            "InternalServerException",
            "ServiceUnavailableException",
            "ModelStreamErrorException",
        ],
    ),
];

fn kind_of_code(code: &str) -> Option<FaultKind> {
    // An exception inside a stream begins with a small letter.
    let listed =
        |known: &&str| *known == code || (code.ends_with("Exception") && known.eq_ignore_ascii_case(code));
    CODES.iter().find(|(_, codes)| codes.iter().any(&listed)).map(|(kind, _)| *kind)
}

/// The kind of a code that is in no list, by its number or its words. Without either the server failed.
fn kind_of_unknown_code(code: &str) -> Option<FaultKind> {
    if let Some(status) = code.parse().ok().filter(|status| (400..600).contains(status)) {
        return Some(kind_of_status(status));
    }
    let code = code.to_ascii_lowercase();
    CODE_WORDS.iter().find(|(word, _)| code.contains(word)).map(|(_, kind)| *kind)
}

/// Words in the codes of servers that no list has. The first that is found decides.
const CODE_WORDS: &[(&str, FaultKind)] = &[
    ("overload", FaultKind::Overloaded),
    ("capacity", FaultKind::Overloaded),
    ("rate_limit", FaultKind::RateLimit),
    ("ratelimit", FaultKind::RateLimit),
    ("throttl", FaultKind::RateLimit),
    ("too_many", FaultKind::RateLimit),
    ("quota", FaultKind::Exhausted),
    ("billing", FaultKind::Exhausted),
    ("credit", FaultKind::Exhausted),
    ("context_length", FaultKind::TooLong),
    ("too_large", FaultKind::TooLong),
    ("authenticat", FaultKind::Auth),
    ("unauthorized", FaultKind::Auth),
    ("permission", FaultKind::Auth),
    ("forbidden", FaultKind::Auth),
    ("api_key", FaultKind::Auth),
    ("bad_request", FaultKind::Request),
    ("invalid_request", FaultKind::Request),
    ("badrequest", FaultKind::Request),
    ("invalidrequest", FaultKind::Request),
    ("validation", FaultKind::Request),
    ("not_found", FaultKind::Request),
    ("notfound", FaultKind::Request),
    ("unsupported", FaultKind::Request),
];

/// The vendors have no common code for it, so the sentences are known instead.
fn says_too_long(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    TOO_LONG.iter().any(|sentence| message.contains(sentence))
}

const TOO_LONG: &[&str] = &[
    "context length",
    "context_length",
    "context limit",
    "context size",
    "context window",
    "exceeded model token limit",
    "exceeds max length",
    "exceeds the maximum number of tokens",
    "input is too long",
    "input token count",
    "inputs` must have less than",
    "inputs` tokens + `max_new_tokens`",
    "maximum context",
    "maximum prompt length",
    "prompt is too long",
    "prompt token count",
    "range of input length",
    "reduce the length of the messages",
    "too many tokens in the prompt",
    "too many tokens: ",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, kind: FaultKind, message: &str) {
        let fault = Fault::from_status(status, body);
        assert_eq!((fault.kind, fault.message.as_str()), (kind, message), "{status} {body}");
    }

    #[test]
    fn bodies_of_all_vendors_are_read() {
        use FaultKind::*;
        check(401, r#"{"error":{"message":"Bad key.","type":"invalid_request_error"}}"#, Auth, "Bad key.");
        check(
            429,
            r#"{"error":{"message":"Slow down","code":"rate_limit_exceeded"}}"#,
            RateLimit,
            "Slow down",
        );
        check(
            429,
            r#"{"error":{"message":"Pay","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Exhausted,
            "Pay",
        );
        check(
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Overloaded,
            "Overloaded",
        );
        check(529, "", Overloaded, "The server answered with status 529.");
        check(529, "<html>busy</html>", Overloaded, "The server answered with status 529.");
        check(400, r#"[{"error":{"code":400,"message":"No","status":"INVALID_ARGUMENT"}}]"#, Request, "No");
        check(
            400,
            r#"{"error":{"message":"This model's maximum context length is 10 tokens"}}"#,
            TooLong,
            "This model's maximum context length is 10 tokens",
        );
        check(404, r#"{"error":"model 'x' not found"}"#, Request, "model 'x' not found");
        check(502, "<html>Bad gateway</html>", Server, "The server answered with status 502.");
        check(500, "", Server, "The server answered with status 500.");
        check(403, r#"{"Message":"Not authorized"}"#, Auth, "Not authorized");
        check(400, r#"{"error":{"message":"p","type":"tokens","code":null}}"#, Request, "p");
    }

    #[test]
    fn an_event_that_reports_an_error_is_one_whatever_its_type() {
        use FaultKind::*;
        for (name, data, kind, message) in [
            ("error", r#"{"type":"boiler_on_fire","message":"Hot."}"#, Server, "Hot."),
            ("error", "the backend went away", Server, "the backend went away"),
            ("response.error", r#"{"detail":"no"}"#, Server, "no"),
            ("", r#"{"type":"engine_error","message":"m"}"#, Server, "m"),
            ("", r#"{"type":"x","error":{"type":"model_overload","message":"busy"}}"#, Overloaded, "busy"),
            ("error", r#"{"error":{"code":"my_invalid_request","message":"bad"}}"#, Request, "bad"),
            ("error", r#"{"error":{"code":422,"message":"bad"}}"#, Request, "bad"),
            ("error", r#"{"error":{"code":524,"message":"late"}}"#, Server, "late"),
            ("error", r#"{"error":{"type":"gateway_quota","message":"pay"}}"#, Exhausted, "pay"),
        ] {
            let fault = Fault::of_unknown_event(name, data).unwrap();
            assert_eq!((fault.kind, fault.message.as_str()), (kind, message), "{name} {data}");
        }
        for (name, data) in [
            ("", r#"{"type":"ping"}"#),
            ("message", r#"{"choices":[],"error":null}"#),
            ("", r#"{"text":"an error"}"#),
            ("", "text"),
        ] {
            assert_eq!(Fault::of_unknown_event(name, data), None, "{name} {data}");
        }
    }

    /// What the servers of each format say about a prompt that does not fit, in a response and inside a stream.
    #[test]
    fn prompts_that_do_not_fit_are_known_in_every_format() {
        for (status, body) in [
            // OpenAI, and those that speak its formats.
            (
                400,
                r#"{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.","type":"BadRequestError","code":400}"#,
            ),
            (
                400,
                r#"{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            ),
            (
                400,
                r#"{"message":"prompt token count of 130000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}"#,
            ),
            (
                413,
                r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large. Max size: 8000 tokens."}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072","type":"invalid_request_error"}}"#,
            ),
            (
                422,
                r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193.","error_type":"validation"}"#,
            ),
            // Anthropic and Bedrock.
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"}}"#,
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            ),
            (400, r#"{"__type":"ValidationException","message":"Input is too long for requested model."}"#),
            // Gemini.
            (
                400,
                r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            ),
            // Ollama, llama.cpp, LM Studio.
            (500, r#"{"error":"the input length exceeds the context length"}"#),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_ctx":4096}}"#,
            ),
            (
                500,
                r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#,
            ),
        ] {
            let fault = Fault::from_status(status, body);
            assert_eq!(fault.kind, FaultKind::TooLong, "{status} {body}");
            assert!(!fault.can_retry() && fault.into_failure("p", "").is_too_long, "{body}");
            assert_eq!(Fault::from_stream(body).kind, FaultKind::TooLong, "{body}");
        }
        let other = Fault::from_status(400, r#"{"error":{"message":"No such model"}}"#);
        assert!(!other.into_failure("p", "").is_too_long);
    }
}
