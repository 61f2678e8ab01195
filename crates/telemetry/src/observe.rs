//! Sees what happens: the facts on their way into the journal, and the streams of models. Both pass unchanged.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

use domain::event::{Fact, Outcome, Recorded};
use domain::item::{ItemKind, Part};
use domain::model::{Model, ModelEvent, ModelInfo, ModelStream, Prompt, StopReason, Tokens};
use domain::store::{HeldChat, Lease, ListFilter, Preview, SearchHit, SearchQuery, SessionSummary};
use domain::tool_call::{ToolCall, ToolState};
use domain::{BoxFuture, Failure, FailureKind, SessionId, Store};
use futures_util::{Stream, StreamExt};

use super::recorder::{ModelCall, Signal, ToolEnd};
use super::{QUEUE, Queue};

/// Of a text that goes along. The exporter removes known secrets and then keeps the first half.
const MOST_TEXT: usize = 16 << 10;

/// A store whose facts are seen.
pub fn observe_store(store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(ObservedStore(store))
}

/// A model whose calls are seen, where somebody looks.
pub fn observe_model(model: Arc<dyn Model>) -> Arc<dyn Model> {
    if QUEUE.get().is_some() { Arc::new(ObservedModel(model)) } else { model }
}

struct ObservedStore(Arc<dyn Store>);

impl Store for ObservedStore {
    fn prepare(&self) -> BoxFuture<'_, Result<(), Failure>> {
        self.0.prepare()
    }

    fn trouble(&self) -> Option<String> {
        self.0.trouble()
    }

    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        facts: Vec<Fact>,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, Failure>> {
        let Some(queue) = QUEUE.get() else { return self.0.append(session, facts) };
        Box::pin(async move {
            let recorded = self.0.append(session, facts).await?;
            for fact in &recorded {
                if let Some(signal) = signal_of(queue, session, fact) {
                    queue.push(signal);
                }
            }
            Ok(recorded)
        })
    }

    fn lease<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Lease, Failure>> {
        self.0.lease(session)
    }

    fn announce(&self, address: &str) {
        self.0.announce(address);
    }

    fn held(&self) -> BoxFuture<'_, Result<Vec<HeldChat>, Failure>> {
        self.0.held()
    }

    fn release<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), Failure>> {
        self.0.release(session)
    }

    fn adopt<'a>(
        &'a self,
        session: &'a SessionId,
        records: Vec<Recorded>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        self.0.adopt(session, records)
    }

    fn leases_end(&self) -> bool {
        self.0.leases_end()
    }

    fn lease_at_risk<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        self.0.lease_at_risk(session)
    }

    fn changed<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        self.0.changed(session)
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, Failure>> {
        self.0.read(session, after, limit)
    }

    fn preview<'a>(
        &'a self,
        session: &'a SessionId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Preview>, Failure>> {
        self.0.preview(session, limit)
    }

    fn newest<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<u64>, Failure>> {
        self.0.newest(session)
    }

    fn list(&self, filter: ListFilter) -> BoxFuture<'_, Result<Vec<SessionSummary>, Failure>> {
        self.0.list(filter)
    }

    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<Vec<SearchHit>, Failure>> {
        self.0.search(query)
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, Failure>> {
        self.0.delete(session)
    }

    fn get<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<String>, Failure>> {
        self.0.get(kind, key)
    }

    fn add<'a>(&'a self, kind: &'a str, key: &'a str, amount: f64) -> BoxFuture<'a, Result<f64, Failure>> {
        self.0.add(kind, key, amount)
    }

    fn put<'a>(&'a self, kind: &'a str, key: &'a str, value: String) -> BoxFuture<'a, Result<(), Failure>> {
        self.0.put(kind, key, value)
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "every other fact is nothing that is counted")]
fn signal_of(queue: &Queue, session: &SessionId, recorded: &Recorded) -> Option<Signal> {
    let (session, at) = (session.clone(), recorded.at.saturating_mul(1_000_000));
    Some(match &recorded.fact {
        Fact::SessionOpened(opened) => Signal::Opened {
            session,
            parent: opened.parent.clone(),
            folder: opened
                .workspace
                .first()
                .filter(|_| queue.content)
                .map(|folder| folder.display().to_string()),
        },
        Fact::TurnStarted { model, .. } => Signal::TurnStarted { session, at, model: model.clone() },
        Fact::TurnEnded { outcome, .. } => Signal::TurnEnded { session, at, outcome: outcome_word(outcome) },
        Fact::ItemEnded { item } => match &item.kind {
            ItemKind::ToolCall(call) => Signal::Tool { session, end: tool_end(queue, call, at) },
            ItemKind::UserMessage { text, .. } if queue.content => Signal::Said { session, text: cut(text) },
            ItemKind::AgentMessage { text, .. } if queue.content => {
                Signal::Answered { session, text: cut(text) }
            }
            _ => return None,
        },
        _ => return None,
    })
}

fn tool_end(queue: &Queue, call: &ToolCall, at: u64) -> ToolEnd {
    let texts = || {
        call.result.iter().filter_map(|part| if let Part::Text { text } = part { Some(text) } else { None })
    };
    let outcome = match call.state {
        ToolState::Done if call.error => "error",
        ToolState::Done => "done",
        ToolState::Rejected { .. } => "rejected",
        ToolState::Preparing | ToolState::Waiting { .. } | ToolState::Running | ToolState::Stopped { .. } => {
            "stopped"
        }
    };
    ToolEnd {
        name: format!("{}__{}", call.server, call.name),
        ended: at,
        nanos: call.millis.saturating_mul(1_000_000),
        outcome,
        was_asked: call.manual_approval,
        input_bytes: call.input_text.len(),
        result_bytes: texts().map(String::len).sum(),
        content: queue.content.then(|| {
            let result: Vec<&str> = texts().map(String::as_str).collect();
            (cut(&call.input_text), cut(&result.join("\n")))
        }),
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MOST_TEXT)].to_owned()
}

fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Stopped => "stopped",
        Outcome::MaxTokens => "max_tokens",
        Outcome::MaxSteps => "max_steps",
        Outcome::Repeating => "repeating",
        Outcome::Refused { .. } => "refused",
        Outcome::Failed { failure } => failure_word(failure.kind),
        Outcome::Interrupted => "interrupted",
    }
}

/// Whose failure it was; the message may hold paths and texts.
fn failure_word(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::User => "failed_user",
        FailureKind::Taken => "failed_taken",
        FailureKind::Config => "failed_config",
        FailureKind::Auth => "failed_auth",
        FailureKind::Quota => "failed_quota",
        FailureKind::Provider => "failed_provider",
        FailureKind::Tool => "failed_tool",
        FailureKind::Internal => "failed_internal",
    }
}

struct ObservedModel(Arc<dyn Model>);

impl Model for ObservedModel {
    fn stream(&self, prompt: Prompt) -> ModelStream {
        let seen = SeenCall::new(prompt.session.clone(), self.0.info());
        Box::pin(ObservedStream { inner: self.0.stream(prompt), seen })
    }

    fn info(&self) -> ModelInfo {
        self.0.info()
    }

    fn agent(&self) -> Option<Arc<dyn domain::agent::ExternalAgent>> {
        self.0.agent()
    }
}

struct ObservedStream {
    inner: ModelStream,
    seen: SeenCall,
}

impl Stream for ObservedStream {
    type Item = Result<ModelEvent, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.inner.poll_next_unpin(context);
        if let Poll::Ready(Some(event)) = &polled {
            self.seen.see(event);
        }
        polled
    }
}

/// One call so far. It is told of when the stream goes, because a stop ends a stream by dropping it.
struct SeenCall {
    session: Option<SessionId>,
    info: ModelInfo,
    started: u64,
    first: Option<u64>,
    tokens: Tokens,
    outcome: &'static str,
}

impl SeenCall {
    fn new(session: Option<SessionId>, info: ModelInfo) -> Self {
        Self { session, info, started: now(), first: None, tokens: Tokens::default(), outcome: "stopped" }
    }

    fn see(&mut self, event: &Result<ModelEvent, Failure>) {
        match event {
            Ok(ModelEvent::BlockDelta { .. }) if self.first.is_none() => self.first = Some(now()),
            Ok(ModelEvent::Usage(tokens)) => self.tokens = *tokens,
            Ok(ModelEvent::Ended { reason }) => {
                self.outcome = match reason {
                    StopReason::Done => "done",
                    StopReason::ToolCalls => "tool_calls",
                    StopReason::MaxTokens => "max_tokens",
                    StopReason::Refused { .. } => "refused",
                    StopReason::Cut { .. } => "cut",
                }
            }
            Ok(_) => {}
            Err(failure) => self.outcome = failure_word(failure.kind),
        }
    }
}

impl Drop for SeenCall {
    fn drop(&mut self) {
        let Some(queue) = QUEUE.get() else { return };
        queue.push(Signal::Model(ModelCall {
            session: self.session.take(),
            cost: self.info.price.map(|price| price.of(&self.tokens)),
            model: std::mem::take(&mut self.info.id),
            started: self.started,
            first: self.first,
            ended: now(),
            tokens: self.tokens,
            outcome: self.outcome,
        }));
    }
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
