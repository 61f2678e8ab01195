//! One response that is being read: framing, decoding, silence, and the fault of a response that is an error.
//!
//! Knows nothing of retries. Invariants: every wait has a deadline; the body of an error is bounded.

use std::time::Duration;

use domain::model::{ModelEvent, Prompt};
use futures_util::FutureExt;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use rpc::sse::SseEvent;
use tokio::time::{Instant, timeout};

use crate::connection::Connection;
use crate::discover;
use crate::fault::{Fault, FaultKind};
use crate::format::{Decode, Events};
use crate::framing::Framing;
use crate::retry;

/// After the answer is whole, how long its usage is waited for.
const SETTLED_TIMEOUT: Duration = Duration::from_secs(10);
/// A server may keep a stream alive without saying anything; not for ever.
const KEEP_ALIVE_FACTOR: u32 = 10;
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Characters of an unknown event that an error shows.
const UNREAD_LENGTH: usize = 200;
const ERROR_BODY_LIMIT: usize = 64 * 1024;
/// Content types of JSON lines, which some servers send where server-sent events are asked for.
const LINE_TYPES: [&str; 4] =
    ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/stream+json"];
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A response whose stream is being read.
pub(crate) struct ResponseReader {
    response: Response,
    framing: Framing,
    decoder: Box<dyn Decode>,
    silence: Duration,
    /// When the stream last said something that mattered.
    spoke: Instant,
    /// The beginning of an event that could not be read, while nothing else came.
    unread: Option<String>,
    has_output: bool,
}

#[derive(PartialEq, Eq)]
pub(crate) enum ReadProgress {
    More,
    Ended,
}

impl ResponseReader {
    pub(crate) fn new(response: Response, connection: &Connection, prompt: &Prompt) -> Result<Self, Fault> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let framing = if kind.starts_with("application/json") {
            Framing::document()
        } else if LINE_TYPES.iter().any(|line_type| kind.starts_with(line_type)) {
            Framing::Lines(Default::default())
        } else if kind.starts_with("text/html") {
            return Err(Fault::new(
                FaultKind::Malformed,
                "the url answers with a web page, not with a model",
            ));
        } else {
            connection.framing()
        };
        let (decoder, silence) = (connection.decoder(prompt), connection.endpoint.retry_policy.silence);
        Ok(Self {
            response,
            framing,
            decoder,
            silence,
            spoke: Instant::now(),
            unread: None,
            has_output: false,
        })
    }

    /// Waits for bytes and decodes them all.
    pub(crate) async fn read(&mut self, out: &mut Events) -> Result<ReadProgress, Fault> {
        let limit = if self.decoder.is_settled() { SETTLED_TIMEOUT } else { self.silence };
        let before = out.len();
        let progress = match timeout(limit, self.response.chunk()).await {
            Err(_) if self.decoder.finish(out) => return Ok(ReadProgress::Ended),
            Err(_) => return Err(silence_fault(limit)),
            Ok(Err(_)) if self.decoder.is_settled() && self.decoder.finish(out) => {
                return Ok(ReadProgress::Ended);
            }
            Ok(Err(error)) => return Err(network_fault(error)),
            Ok(Ok(None)) => return self.end(out),
            Ok(Ok(Some(bytes))) => self.decode(&bytes, out)?,
        };
        if out.len() > before {
            self.spoke = Instant::now();
        } else if self.spoke.elapsed() > self.silence.saturating_mul(KEEP_ALIVE_FACTOR) {
            return Err(silence_fault(self.spoke.elapsed()));
        }
        Ok(progress)
    }

    fn decode(&mut self, bytes: &[u8], out: &mut Events) -> Result<ReadProgress, Fault> {
        self.framing.push(bytes)?;
        while let Some(event) = self.framing.next_event()? {
            if let Some(fault) = error_event(event) {
                return Err(fault);
            }
            let (before, data) = (out.len(), event.data);
            self.decoder.push(event, out)?;
            if out.len() > before && !self.has_output {
                match out.back() {
                    Some(ModelEvent::Warning { .. }) => {
                        self.unread.get_or_insert_with(|| data.chars().take(UNREAD_LENGTH).collect());
                    }
                    _ => self.has_output = true,
                }
            }
            // Events after the end belong to no answer.
            if matches!(out.back(), Some(ModelEvent::Ended { .. })) {
                return Ok(ReadProgress::Ended);
            }
        }
        Ok(ReadProgress::More)
    }

    fn end(&mut self, out: &mut Events) -> Result<ReadProgress, Fault> {
        self.framing.finish();
        if self.decode(&[], out)? == ReadProgress::Ended || self.decoder.finish(out) {
            return Ok(ReadProgress::Ended);
        }
        match self.unread.take().filter(|_| !self.has_output) {
            Some(unread) => Err(Fault::malformed("events of another API", &unread)),
            None => Err(Fault::new(FaultKind::Network, "the stream ended before the answer did")),
        }
    }

    /// Reads the last bytes, so that the connection can be used again; not at the cost of a wait.
    pub(crate) fn release(mut self: Box<Self>) {
        match self.response.chunk().now_or_never() {
            Some(Ok(Some(_))) | None => {
                tokio::spawn(timeout(DRAIN_TIMEOUT, async move {
                    while let Ok(Some(_)) = self.response.chunk().await {}
                }));
            }
            Some(_) => {}
        }
    }
}

/// The fault of an event whose name says that it is an error, whatever type its data gives.
fn error_event(event: SseEvent<'_>) -> Option<Fault> {
    let is_error = event.name.eq_ignore_ascii_case("error") && !matches!(event.data.trim(), "" | "[DONE]");
    is_error.then(|| Fault::from_stream(event.data))
}

pub(crate) fn silence_fault(limit: Duration) -> Fault {
    Fault::new(FaultKind::Silent, format!("nothing came for {} seconds", limit.as_secs_f64().round()))
}

/// The fault of a status that is not a success.
pub(crate) async fn read_error_response(mut response: Response) -> Fault {
    let status = response.status();
    let asked = retry::asked_wait(response.headers(), jiff::Timestamp::now());
    if status.is_redirection() {
        let place =
            response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("elsewhere");
        let message = format!("it redirects to {place}; set the provider's url to where the API is");
        return Fault::new(FaultKind::Request, message);
    }
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            body.extend_from_slice(&bytes);
            if body.len() > ERROR_BODY_LIMIT {
                break;
            }
        }
    };
    let _ = timeout(ERROR_BODY_TIMEOUT, read).await;
    let mut fault = Fault::from_status(status.as_u16(), &String::from_utf8_lossy(&body));
    fault.retry_after = asked;
    fault
}

impl Connection {
    /// The fault of a request that was not sent. Nothing listens where a server of this machine refuses.
    pub(crate) fn network_fault(&self, error: reqwest::Error) -> Fault {
        let mut fault = network_fault(error);
        if fault.kind == FaultKind::Refused && !discover::is_loopback(&self.endpoint.url) {
            fault.kind = FaultKind::Network;
        }
        fault
    }
}

/// The innermost cause is the one that says something; the url may hold a key and is left out.
fn network_fault(error: reqwest::Error) -> Fault {
    let connecting = error.is_connect();
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let is_refused = cause
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
    let text = match (connecting, error.is_timeout()) {
        (true, true) => "no connection within 15 seconds".to_owned(),
        (true, false) => format!("no connection ({cause})"),
        (false, _) => format!("the connection broke ({cause})"),
    };
    Fault::new(if connecting && is_refused { FaultKind::Refused } else { FaultKind::Network }, text)
}
