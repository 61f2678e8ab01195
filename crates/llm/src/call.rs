//! One call to a model: requests, waits and retries behind one stream of events.
//!
//! Knows the network and the clock, and of the formats only `encode` and `Decode`. Invariants: no output is emitted before
//! the answer has begun, so that a broken start can be tried again unseen; after that nothing is sent twice; dropping
//! the stream ends the call in every state.

use std::sync::Arc;
use std::time::Duration;

use domain::model::{BlockKind, Model, ModelEvent, ModelInfo, ModelStream, Prompt, StopReason};
use domain::{Failure, FailureKind};
use reqwest::header::ACCEPT_ENCODING;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until, timeout};

use crate::connection::{Connection, SHORTEST_SECRET};
use crate::downgrade;
use crate::fault::{Fault, FaultKind};
use crate::format::Events;
use crate::provider::Credential;
use crate::response::{ReadProgress, ResponseReader, read_error_response, silence_fault};
use crate::retry;
use crate::scrub::scrub;

/// The model that `Models::find` returns.
pub(crate) struct ConnectedModel(pub Arc<Connection>);

impl Model for ConnectedModel {
    fn stream(&self, prompt: Prompt) -> ModelStream {
        stream(self.0.clone(), prompt)
    }

    fn info(&self) -> ModelInfo {
        self.0.current_info()
    }
}

/// Attempts where nothing listens on this machine, or where another model follows.
const FEW_ATTEMPTS: u32 = 2;
/// The wait for a server of this machine that may just be starting.
const REFUSED_WAIT: Duration = Duration::from_millis(300);
/// A call whose arguments take longer is shown without them.
const CALL_SHOWN_AFTER: Duration = Duration::from_millis(200);
/// How long a call tries before the next model of a failover list is used.
const ALTERNATIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Starts a call when the stream is first polled.
pub(crate) fn stream(connection: Arc<Connection>, prompt: Prompt) -> ModelStream {
    let call = Box::new(Call {
        connection,
        prompt,
        reduced: None,
        attempt: 1,
        begun: None,
        downgrades: 0,
        credential: None,
        headers: Vec::new(),
        ready: Events::new(),
        began: false,
        answered: 0,
        permit: None,
        state: CallState::Idle,
    });
    Box::pin(futures_util::stream::unfold(call, |mut call| async move {
        let event = call.next().await?;
        Some((event, call))
    }))
}

struct Call {
    connection: Arc<Connection>,
    prompt: Prompt,
    /// The body without what the server refused.
    reduced: Option<Value>,
    attempt: u32,
    /// When the first attempt began.
    begun: Option<Instant>,
    downgrades: u32,
    credential: Option<Credential>,
    /// The configured ones, as they were sent.
    headers: Vec<(String, String)>,
    ready: Events,
    /// The answer has begun: events are emitted as they come, and no other attempt is made.
    began: bool,
    /// Bytes of text and arguments that were emitted.
    answered: usize,
    /// The right to use the provider now; given back when the call is over.
    permit: Option<OwnedSemaphorePermit>,
    state: CallState,
}

enum CallState {
    Idle,
    /// Waits for a permit of the rate limiter.
    Queued,
    Waiting(Instant),
    Reading(Box<ResponseReader>),
    Done,
}

/// Why an attempt did not work.
enum AttemptError {
    Fault(Fault),
    /// The cause is on this machine, so a retry does not help.
    Failure(Failure),
}

impl From<Fault> for AttemptError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Failure> for AttemptError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

fn no_web_search(model: &str) -> Failure {
    Failure::user(format!("The API of {model} has no web search of its own.")).hint(
        "Set `webSearch.model` to a model of Anthropic, OpenAI or Google, or `webSearch.url` to a service.",
    )
}

impl Call {
    async fn next(&mut self) -> Option<Result<ModelEvent, Failure>> {
        loop {
            if self.began
                && let Some(event) = self.ready.pop_front()
            {
                return Some(Ok(self.bounded(event)));
            }
            let problem = match &mut self.state {
                CallState::Done => {
                    self.permit = None;
                    return None;
                }
                CallState::Queued => {
                    self.wait_for_permit().await;
                    None
                }
                CallState::Waiting(until) => {
                    sleep_until(*until).await;
                    self.state = CallState::Idle;
                    None
                }
                CallState::Idle => {
                    if let Some(text) = self.check_limits().await {
                        return Some(Ok(ModelEvent::Waiting { text }));
                    }
                    let opened = self.open().await;
                    opened.map(|reading| self.state = CallState::Reading(Box::new(reading))).err()
                }
                CallState::Reading(reading) => match read(reading, &mut self.ready, self.began).await {
                    None => {
                        self.began = true;
                        None
                    }
                    Some(Ok(ReadProgress::More)) => None,
                    Some(Ok(ReadProgress::Ended)) => {
                        self.release();
                        None
                    }
                    Some(Err(fault)) => Some(AttemptError::Fault(fault)),
                },
            };
            self.began = self.began || self.ready.iter().any(is_output);
            if let Some(problem) = problem
                && let Some(event) = self.handle_error(problem).await
            {
                return Some(event);
            }
        }
    }

    /// The event, or the end of an answer that has become too large.
    fn bounded(&mut self, event: ModelEvent) -> ModelEvent {
        let ModelEvent::BlockDelta { text, .. } = &event else { return event };
        self.answered += text.len();
        let (name, policy) = (&self.connection.endpoint.name, &self.connection.endpoint.retry_policy);
        if self.answered <= policy.max_answer_bytes {
            return event;
        }
        tracing::warn!(model = self.connection.id, bytes = self.answered, "the answer is too large");
        let limit = policy.max_answer_bytes / 1024;
        let message = format!("The answer of {name} is larger than {limit} KiB, so the rest was not read.");
        self.ready.clear();
        self.permit = None;
        self.state = CallState::Done;
        ModelEvent::Ended { reason: StopReason::Cut { message } }
    }

    async fn wait_for_permit(&mut self) {
        let endpoint = &self.connection.endpoint;
        self.permit = endpoint.rate_limiter.permit(&endpoint.name, endpoint.retry_policy.concurrency).await;
        self.state = CallState::Idle;
    }

    /// The reason why the provider must not be called now, if there is one. Sets the state that waits.
    async fn check_limits(&mut self) -> Option<String> {
        let endpoint = &self.connection.endpoint;
        let (name, retry_policy) = (&endpoint.name, &endpoint.retry_policy);
        if self.permit.is_none() {
            self.permit = endpoint.rate_limiter.try_permit(name, retry_policy.concurrency);
        }
        if self.permit.is_none() {
            self.state = CallState::Queued;
            return Some(format!(
                "{name} has as many requests in progress as `concurrency` allows ({}); this one waits.",
                retry_policy.concurrency
            ));
        }
        let asked = endpoint.rate_limiter.wait(name).await?;
        // One that is too long is the provider's to refuse: it may have changed its mind.
        let wait = retry::wait(retry_policy, self.attempt, Some(asked), retry::random());
        if wait > retry_policy.longest_wait {
            return None;
        }
        self.state = CallState::Waiting(Instant::now() + wait);
        let why = format!("{name} limits the rate of requests.");
        Some(retry::notice(&why, wait, self.attempt, retry_policy.attempts))
    }

    /// The answer is complete: its connection can be used again.
    fn release(&mut self) {
        self.permit = None;
        if let CallState::Reading(reading) = std::mem::replace(&mut self.state, CallState::Done) {
            reading.release();
        }
    }

    async fn open(&mut self) -> Result<ResponseReader, AttemptError> {
        self.begun.get_or_insert_with(Instant::now);
        let connection = self.connection.clone();
        if self.prompt.web_search && !connection.api.searches_web() {
            return Err(no_web_search(&connection.id).into());
        }
        let endpoint = &connection.endpoint;
        let credential = endpoint.credential().await?;
        self.headers = connection.configured_headers().await?;
        let bytes = match &self.reduced {
            Some(body) => body.to_string().into_bytes(),
            None => connection.encode_bytes(&self.prompt),
        };
        let request = connection.request(&self.prompt, bytes, credential.as_ref(), &self.headers).await?;
        self.credential = credential;
        tracing::debug!(model = connection.id, attempt = self.attempt, "calling the model");
        let silence = endpoint.retry_policy.silence;
        let sent = timeout(silence, request.header(ACCEPT_ENCODING, "identity").send());
        let response = match sent.await {
            Err(_) => return Err(silence_fault(silence).into()),
            Ok(Err(error)) => return Err(connection.network_fault(error).into()),
            Ok(Ok(response)) => response,
        };
        if !response.status().is_success() {
            return Err(read_error_response(response).await.into());
        }
        Ok(ResponseReader::new(response, &connection, &self.prompt)?)
    }

    /// Decides what follows an error: another attempt at once, a wait to announce, or the end.
    async fn handle_error(&mut self, problem: AttemptError) -> Option<Result<ModelEvent, Failure>> {
        self.state = CallState::Done;
        let mut fault = match problem {
            AttemptError::Failure(failure) => return Some(Err(failure)),
            AttemptError::Fault(fault) => fault,
        };
        fault.message = self.scrub_secrets(&fault.message);
        let connection = self.connection.clone();
        let (provider, retry_policy) = (&connection.endpoint.name, &connection.endpoint.retry_policy);
        if self.began {
            self.cut_off(&fault);
            return None;
        }
        self.ready.clear();
        if let Some(event) = self.downgrade(&fault) {
            self.state = CallState::Idle;
            return Some(Ok(event));
        }
        if fault.kind == FaultKind::Auth && self.has_new_key().await {
            self.state = CallState::Idle;
            return None;
        }
        if let (FaultKind::RateLimit, Some(asked)) = (fault.kind, fault.retry_after) {
            connection.endpoint.rate_limiter.record_limit(provider, asked).await;
        }
        let is_refused = fault.kind == FaultKind::Refused;
        let attempts = self.attempts(is_refused);
        let wait = match is_refused {
            true => REFUSED_WAIT.min(retry_policy.first_wait),
            false => retry::wait(retry_policy, self.attempt + 1, fault.retry_after, retry::random()),
        };
        let is_late = self.prompt.has_alternative && self.elapsed() + wait > ALTERNATIVE_TIMEOUT;
        let cannot_fill = connection.cannot_fill(&self.prompt, &fault);
        let is_last = self.attempt >= attempts || wait > retry_policy.longest_wait;
        if !fault.can_retry() || is_last || is_late || cannot_fill {
            return Some(Err(self.failure(fault)));
        }
        self.attempt += 1;
        let why = describe_fault(provider, &fault);
        tracing::info!(
            model = self.connection.id,
            attempt = self.attempt,
            ?wait,
            why,
            "waiting to try again"
        );
        self.state = CallState::Waiting(Instant::now() + wait);
        let text = retry::notice(&why, wait, self.attempt, attempts);
        Some(Ok(ModelEvent::Waiting { text }))
    }

    /// Ends an answer that broke after it had begun.
    fn cut_off(&mut self, fault: &Fault) {
        tracing::warn!(model = self.connection.id, fault = fault.message, "the answer was cut off");
        let (provider, why) = (&self.connection.endpoint.name, fault.message.trim_end_matches('.'));
        let message = format!("The answer of {provider} broke off: {why}.");
        self.ready.push_back(ModelEvent::Ended { reason: StopReason::Cut { message } });
    }

    /// The number of attempts: few where nothing listens or where another model follows.
    fn attempts(&self, is_refused: bool) -> u32 {
        let attempts = self.connection.endpoint.retry_policy.attempts;
        if is_refused || self.prompt.has_alternative { attempts.min(FEW_ATTEMPTS) } else { attempts }
    }

    fn elapsed(&self) -> Duration {
        self.begun.map(|begun| begun.elapsed()).unwrap_or_default()
    }

    /// Removes the member that this server does not accept, if its error names one.
    fn downgrade(&mut self, fault: &Fault) -> Option<ModelEvent> {
        if fault.kind != FaultKind::Request
            || self.downgrades >= downgrade::MOST
            || self.prompt.middle.is_some()
        {
            return None;
        }
        let mut body = self.reduced.take().unwrap_or_else(|| self.connection.encode(&self.prompt));
        let taken = downgrade::without(&mut body, &fault.message);
        // An untouched body needs no keeping.
        self.reduced = (taken.is_some() || self.downgrades > 0).then_some(body);
        let taken = taken?;
        self.downgrades += 1;
        let name = &self.connection.id;
        tracing::warn!(model = name, taken, "sending the request again without what the provider refused");
        if taken == downgrade::IMAGES {
            return Some(ModelEvent::ImagesRefused);
        }
        let text = format!("{name} does not accept {taken}; sending the request again without it.");
        Some(ModelEvent::Waiting { text })
    }

    /// A key that was renewed meanwhile is worth one more attempt.
    async fn has_new_key(&mut self) -> bool {
        if self.attempt > 1 {
            return false;
        }
        self.attempt += 1;
        let now = self.connection.endpoint.credential().await;
        now.is_ok_and(|credential| credential != self.credential)
    }

    fn failure(&self, fault: Fault) -> Failure {
        let endpoint = &self.connection.endpoint;
        let other_api = self.connection.other_api_hint(&fault);
        let mut failure = fault.into_failure(&endpoint.name, &endpoint.key_hint());
        if let Some(hint) = other_api {
            failure = failure.hint(hint);
        }
        if failure.kind == FailureKind::Auth {
            tracing::warn!(provider = endpoint.name, "the key was refused");
        }
        failure
    }

    fn scrub_secrets(&self, message: &str) -> String {
        let mut secrets = self.credential.as_ref().map(Credential::secrets).unwrap_or_default();
        let values = self.headers.iter().map(|(_, value)| value.as_str());
        secrets.extend(values.filter(|value| value.len() >= SHORTEST_SECRET));
        let of_url = self.connection.endpoint.url_secrets();
        secrets.extend(of_url.iter().map(String::as_str));
        scrub(message, &secrets)
    }
}

/// Output that the user sees. After it no other attempt is made.
fn is_output(event: &ModelEvent) -> bool {
    matches!(event, ModelEvent::BlockDelta { .. } | ModelEvent::BlockEnded { .. } | ModelEvent::Ended { .. })
}

/// Reads more. `None`: a call has begun and its arguments take a moment, so it is shown now; until then a stream that
/// breaks is tried again unseen.
async fn read(
    reading: &mut ResponseReader,
    ready: &mut Events,
    began: bool,
) -> Option<Result<ReadProgress, Fault>> {
    let is_call = |event: &ModelEvent| {
        matches!(event, ModelEvent::BlockStarted { kind: BlockKind::ToolCall { .. }, .. })
    };
    if began || !ready.iter().any(is_call) {
        return Some(reading.read(ready).await);
    }
    timeout(CALL_SHOWN_AFTER, reading.read(ready)).await.ok()
}

fn describe_fault(provider: &str, fault: &Fault) -> String {
    match fault.kind {
        FaultKind::RateLimit => format!("Rate limited by {provider}."),
        FaultKind::Overloaded => format!("{provider} is overloaded."),
        FaultKind::Silent => format!("{provider} stayed silent."),
        FaultKind::Refused => format!("{provider} refuses connections."),
        FaultKind::Network => {
            format!("{provider} could not be reached: {}.", fault.message.trim_end_matches('.'))
        }
        FaultKind::Auth
        | FaultKind::Exhausted
        | FaultKind::Server
        | FaultKind::Request
        | FaultKind::TooLong
        | FaultKind::Malformed => format!("{provider} failed: {}.", fault.message.trim_end_matches('.')),
    }
}
