//! Makes spans and metrics of signals. One trace is one turn, with the turns of its subagents below it.

use std::collections::HashMap;

use config::Redactor;
use domain::SessionId;
use domain::model::Tokens;
use serde_json::Value;

use super::encode::{Attribute, SpanKind, SpanPlace, attribute, span};
use super::metrics::{Distribution, Labels, Metrics, Sum};

/// Whether a chat is one of a subagent.
pub type IsSubagent = fn(&SessionId) -> bool;

/// Chats whose turn is under way, and subagents that were started.
const MOST_CHATS: usize = 4096;
/// Spans that wait for the next request; later ones are dropped.
const MOST_SPANS: usize = 4096;
const MOST_TEXT: usize = 8 << 10;
const MOST_EARLY: usize = 256;

/// Something that happened. Times are nanoseconds since 1970.
pub(super) enum Signal {
    Opened { session: SessionId, parent: Option<SessionId>, folder: Option<String> },
    TurnStarted { session: SessionId, at: u64, model: String },
    TurnEnded { session: SessionId, at: u64, outcome: &'static str },
    Tool { session: SessionId, end: ToolEnd },
    Model(ModelCall),
    Said { session: SessionId, text: String },
    Answered { session: SessionId, text: String },
}

pub(super) struct ToolEnd {
    pub(super) name: String,
    pub(super) ended: u64,
    pub(super) nanos: u64,
    pub(super) outcome: &'static str,
    pub(super) was_asked: bool,
    pub(super) input_bytes: usize,
    pub(super) result_bytes: usize,
    /// Arguments and result.
    pub(super) content: Option<(String, String)>,
}

pub(super) struct ModelCall {
    pub(super) session: Option<SessionId>,
    /// `provider/name`.
    pub(super) model: String,
    pub(super) started: u64,
    pub(super) first: Option<u64>,
    pub(super) ended: u64,
    pub(super) tokens: Tokens,
    pub(super) cost: Option<f64>,
    pub(super) outcome: &'static str,
}

struct OpenTurn {
    place: SpanPlace,
    started: u64,
    model: String,
    /// Attributes that came while it ran.
    content: Vec<Value>,
}

pub(super) struct Recorder {
    pub(super) spans: Vec<Value>,
    pub(super) metrics: Metrics,
    pub(super) dropped_spans: u64,
    turns: HashMap<SessionId, OpenTurn>,
    /// The last turn of a chat and its end, for calls that are told of late.
    ended: HashMap<SessionId, (SpanPlace, u64)>,
    /// Calls of turns whose start is still on its way through the store, each with the exports it has waited for.
    early: Vec<(ModelCall, u8)>,
    parents: HashMap<SessionId, SessionId>,
    folders: HashMap<SessionId, String>,
    redactor: Redactor,
    is_subagent: IsSubagent,
}

impl Recorder {
    pub(super) fn new(redactor: Redactor, is_subagent: IsSubagent) -> Self {
        Self {
            spans: Vec::new(),
            metrics: Metrics::default(),
            dropped_spans: 0,
            turns: HashMap::new(),
            ended: HashMap::new(),
            early: Vec::new(),
            parents: HashMap::new(),
            folders: HashMap::new(),
            redactor,
            is_subagent,
        }
    }

    pub(super) fn take(&mut self, signal: Signal) {
        match signal {
            Signal::Opened { session, parent, folder } => {
                if let Some(parent) = parent.filter(|_| self.parents.len() < MOST_CHATS) {
                    self.parents.insert(session.clone(), parent);
                }
                if let Some(folder) = folder.filter(|_| self.folders.len() < MOST_CHATS) {
                    self.folders.insert(session, folder);
                }
            }
            Signal::TurnStarted { session, at, model } => self.start_turn(session, at, model),
            Signal::TurnEnded { session, at, outcome } => self.end_turn(&session, at, outcome),
            Signal::Tool { session, end } => self.end_tool(&session, end),
            Signal::Model(call) => self.take_model_call(call),
            Signal::Said { session, text } => self.add_text(&session, "dragoman.prompt", &text),
            Signal::Answered { session, text } => self.add_text(&session, "dragoman.answer", &text),
        }
    }

    fn start_turn(&mut self, session: SessionId, at: u64, model: String) {
        // A fork has a parent too, which works on by itself.
        let parent = self.parents.get(&session).filter(|_| (self.is_subagent)(&session));
        let parent = parent.and_then(|parent| self.turns.get(parent)).map(|turn| &turn.place);
        let place = SpanPlace::below(parent);
        let folder = self.folders.get(&session);
        let content =
            folder.map(|folder| attribute("dragoman.folder", folder.as_str())).into_iter().collect();
        if self.turns.len() < MOST_CHATS {
            self.turns.insert(session.clone(), OpenTurn { place, started: at, model, content });
        }
        let of_session = |(call, _): &(ModelCall, u8)| call.session.as_ref() == Some(&session);
        let waiting: Vec<(ModelCall, u8)> = std::mem::take(&mut self.early);
        let (own, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(of_session);
        self.early = others;
        own.iter().for_each(|(call, _)| self.end_model_call(call, Some(place)));
    }

    /// Puts a call below the turn that it belongs to, which may not have been told of yet.
    fn take_model_call(&mut self, call: ModelCall) {
        let Some(session) = &call.session else { return self.end_model_call(&call, None) };
        let ended = self.ended.get(session).filter(|(_, end)| call.started < *end).map(|(place, _)| *place);
        match self.turns.get(session).map(|turn| turn.place).or(ended) {
            None if self.early.len() < MOST_EARLY => self.early.push((call, 0)),
            place => self.end_model_call(&call, place),
        }
    }

    /// Called before an export: a call whose turn has not come by the second one stands alone.
    pub(super) fn settle(&mut self, is_last: bool) {
        for (call, waited) in std::mem::take(&mut self.early) {
            if is_last || waited > 0 {
                self.end_model_call(&call, None);
            } else {
                self.early.push((call, waited + 1));
            }
        }
    }

    fn end_turn(&mut self, session: &SessionId, at: u64, outcome: &'static str) {
        let Some(turn) = self.turns.remove(session) else { return };
        if (self.is_subagent)(session) {
            self.parents.remove(session);
            self.folders.remove(session);
        }
        if self.ended.len() >= MOST_CHATS {
            self.ended.clear();
        }
        self.ended.insert(session.clone(), (turn.place, at));
        let is_error = outcome.starts_with("failed");
        let mut attributes = vec![
            attribute("gen_ai.operation.name", "invoke_agent"),
            attribute("gen_ai.request.model", turn.model.as_str()),
            attribute("dragoman.outcome", outcome),
        ];
        attributes.extend(turn.content);
        let times = (turn.started, at);
        self.push(span(&turn.place, "turn", SpanKind::Internal, times, is_error, attributes));
        let labels = || vec![("dragoman.outcome", outcome.to_owned())];
        self.metrics.add(Sum::Turns, labels(), 1.0);
        self.metrics.record(Distribution::TurnDuration, labels(), seconds(at.saturating_sub(turn.started)));
    }

    fn end_tool(&mut self, session: &SessionId, end: ToolEnd) {
        let place = SpanPlace::below(self.turns.get(session).map(|turn| &turn.place));
        let mut attributes = vec![
            attribute("gen_ai.operation.name", "execute_tool"),
            attribute("gen_ai.tool.name", end.name.as_str()),
            attribute("dragoman.outcome", end.outcome),
            attribute("dragoman.tool.asked", end.was_asked),
            attribute("dragoman.tool.input_bytes", end.input_bytes as u64),
            attribute("dragoman.tool.result_bytes", end.result_bytes as u64),
        ];
        if let Some((input, result)) = &end.content {
            attributes.push(attribute("gen_ai.tool.call.arguments", self.shown(input)));
            attributes.push(attribute("gen_ai.tool.call.result", self.shown(result)));
        }
        let times = (end.ended.saturating_sub(end.nanos), end.ended);
        let name = format!("execute_tool {}", end.name);
        let is_error = end.outcome == "error";
        self.push(span(&place, &name, SpanKind::Internal, times, is_error, attributes));
        let labels =
            || vec![("gen_ai.tool.name", end.name.clone()), ("dragoman.outcome", end.outcome.to_owned())];
        self.metrics.add(Sum::ToolCalls, labels(), 1.0);
        self.metrics.record(Distribution::ToolDuration, labels(), seconds(end.nanos));
    }

    fn end_model_call(&mut self, call: &ModelCall, turn: Option<SpanPlace>) {
        let place = SpanPlace::below(turn.as_ref());
        let (provider, model) = call.model.split_once('/').unwrap_or(("", &call.model));
        let tokens = &call.tokens;
        let input = tokens.input + tokens.cache_read + tokens.cache_write;
        let mut attributes = vec![
            attribute("gen_ai.operation.name", "chat"),
            attribute("gen_ai.provider.name", provider),
            attribute("gen_ai.request.model", model),
            attribute("dragoman.outcome", call.outcome),
            attribute("gen_ai.usage.input_tokens", input),
            attribute("gen_ai.usage.output_tokens", tokens.output),
            attribute("gen_ai.usage.cache_read.input_tokens", tokens.cache_read),
            attribute("gen_ai.usage.cache_creation.input_tokens", tokens.cache_write),
        ];
        let first = call.first.map(|first| seconds(first.saturating_sub(call.started)));
        let optional = [("dragoman.time_to_first_token", first), ("dragoman.cost_usd", call.cost)];
        attributes.extend(optional.into_iter().filter_map(|(key, value)| Some(attribute(key, value?))));
        let (name, times) = (format!("chat {model}"), (call.started, call.ended));
        let is_error = call.outcome.starts_with("failed") || call.outcome == "cut";
        self.push(span(&place, &name, SpanKind::Client, times, is_error, attributes));
        let labels = || -> Labels {
            vec![("gen_ai.provider.name", provider.to_owned()), ("gen_ai.request.model", model.to_owned())]
        };
        let duration = seconds(call.ended.saturating_sub(call.started));
        self.metrics.record(Distribution::ModelDuration, labels(), duration);
        for (kind, count) in [("input", input), ("output", tokens.output)] {
            let mut labels = labels();
            labels.push(("gen_ai.token.type", kind.to_owned()));
            self.metrics.record(Distribution::Tokens, labels, count as f64);
        }
        if let Some(first) = first {
            self.metrics.record(Distribution::TimeToFirstToken, labels(), first);
        }
        if let Some(cost) = call.cost {
            self.metrics.add(Sum::Cost, labels(), cost);
        }
    }

    fn add_text(&mut self, session: &SessionId, key: &str, text: &str) {
        let shown = attribute(key, self.shown(text));
        let Some(turn) = self.turns.get_mut(session) else { return };
        turn.content.retain(|known| known["key"] != key);
        turn.content.push(shown);
    }

    /// A text without known secrets, cut.
    fn shown(&self, text: &str) -> Attribute {
        let text = self.redactor.redact(text);
        Attribute::Text(text[..text.floor_char_boundary(MOST_TEXT)].to_owned())
    }

    fn push(&mut self, span: Value) {
        if self.spans.len() < MOST_SPANS {
            self.spans.push(span);
        } else {
            self.dropped_spans += 1;
        }
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
