//! A recorded chat in the place of models, tools and policy: it plays the script of one turn after the other.
//!
//! Must not know stores. Invariant: where the record says nothing more, it waits forever, and the replay decides how the
//! turn ends.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::item::{Item, ItemKind, Part};
use domain::model::{
    BlockKind, Model, ModelEvent, ModelInfo, ModelStream, Models, Prompt, StopReason, Tokens,
};
use domain::note::Note;
use domain::tool::{
    Invocation, Review, Scope, Tool, ToolEffect, ToolResult, ToolServer, ToolSource, ToolSpec,
};
use domain::tool_call::Origin;
use domain::{AskKind, BoxFuture, Failure, ItemId, TurnId};
use engine::approval::{ApprovalDecision, Decision};
use engine::recorded::TITLE_REQUEST;
use engine::{CommandOutput, Decisions};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::answer_script::{AnswerEnd, AnswerScript, CallScript, ItemRecord, Preparation, Run, end_by};
use super::script::TitleScript;
use super::turn_end::TurnEnd;
use super::turn_script::{OutputScript, Piece, TurnScript};

/// What a replay feeds the engine with.
#[derive(Clone)]
pub(super) struct Recording(Arc<Mutex<Progress>>);

struct Progress {
    turn: Option<TurnScript>,
    title: Option<TitleScript>,
    /// Calls of the answer at hand that no call of the replay stands for yet.
    calls: Vec<CallScript>,
    /// The call that is being prepared.
    preparing: Option<CallScript>,
    /// By the item of the replay.
    matched: HashMap<ItemId, CallScript>,
    gate: Option<Gate>,
    /// What Dragoman told the model after the answer at hand.
    notes: Vec<Note>,
    /// The text of the summary at hand: a long chat is summarized in several requests.
    summary: Option<String>,
}

/// Something that the user must do before the script goes on.
pub(super) enum Gate {
    Steer(String, oneshot::Sender<()>),
    Stop(oneshot::Sender<()>),
}

impl Recording {
    pub(super) fn new(title: Option<TitleScript>) -> Self {
        Self(Arc::new(Mutex::new(Progress {
            turn: None,
            title,
            calls: Vec::new(),
            preparing: None,
            matched: HashMap::new(),
            gate: None,
            notes: Vec::new(),
            summary: None,
        })))
    }

    pub(super) fn begin(&self, turn: TurnScript) {
        let mut progress = self.lock();
        progress.calls.clear();
        progress.notes.clear();
        (progress.preparing, progress.gate, progress.summary) = (None, None, None);
        progress.matched.clear();
        progress.turn = Some(turn);
    }

    pub(super) fn take_gate(&self) -> Option<Gate> {
        self.lock().gate.take()
    }

    /// Works on the script of the turn at hand.
    pub(super) fn with_turn<R>(&self, work: impl FnOnce(&mut TurnScript) -> R) -> Option<R> {
        self.lock().turn.as_mut().map(work)
    }

    /// The recorded item that an item of the replay stands for.
    pub(super) fn recorded_item(&self, item: ItemId) -> Option<ItemId> {
        self.lock().matched.get(&item).map(|call| call.item)
    }

    /// The next question that the tool of a call asked by itself.
    fn next_question(&self, item: ItemId) -> Option<AskKind> {
        self.with_turn(|script| script.questions.get_mut(&item)?.pop_front()).flatten()
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next answer of the turn at hand, and its end where it has one of its own.
    fn next_answer(&self) -> AnswerScript {
        let mut progress = self.lock();
        let Some(turn) = &mut progress.turn else { return AnswerScript::default() };
        let end = match &turn.end {
            TurnEnd::Itself(outcome) => end_by(outcome),
            TurnEnd::Aborted | TurnEnd::Killed => AnswerEnd::Hangs,
        };
        let is_answer = matches!(turn.pieces.front(), Some(Piece::Answer(_)));
        match turn.pieces.pop_front().filter(|_| is_answer) {
            Some(Piece::Answer(answer)) => {
                progress.calls = answer.calls.clone();
                progress.notes = answer.notes.clone();
                (progress.preparing, progress.summary) = (None, None);
                *answer
            }
            // The model said nothing.
            Some(Piece::Summary { .. }) | None => AnswerScript { end, ..AnswerScript::default() },
        }
    }

    /// The next summary of the turn at hand.
    fn next_summary(&self) -> (Option<(Option<String>, Tokens)>, AnswerEnd) {
        let mut progress = self.lock();
        let Some(turn) = &mut progress.turn else { return (None, AnswerEnd::Hangs) };
        let end = match &turn.end {
            TurnEnd::Itself(outcome) => end_by(outcome),
            TurnEnd::Aborted | TurnEnd::Killed => AnswerEnd::Hangs,
        };
        let is_summary = matches!(turn.pieces.front(), Some(Piece::Summary { .. }));
        match take_if(&mut turn.pieces, is_summary) {
            Some(Piece::Summary { text, tokens }) => {
                progress.summary = text.clone();
                (Some((text, tokens)), end)
            }
            // All requests for one summary were recorded as one.
            Some(Piece::Answer(_)) | None => {
                let again = progress.summary.clone().map(|text| (Some(text), Tokens::default()));
                (again, end)
            }
        }
    }

    /// Waits until the user has done something.
    async fn wait_at(&self, make: impl FnOnce(oneshot::Sender<()>) -> Gate) {
        let (sender, receiver) = oneshot::channel();
        self.lock().gate = Some(make(sender));
        let _ = receiver.await;
    }
}

impl Decisions for Recording {
    /// The decision about the call that was reviewed last. From now on the item stands for that call.
    fn decide_call(&self, item: ItemId, _by_rules: &dyn Fn() -> ApprovalDecision) -> ApprovalDecision {
        let mut progress = self.lock();
        if let Some(reviewed) = progress.preparing.take() {
            progress.matched.insert(item, reviewed);
        }
        let known = progress.matched.get(&item).map(|call| call.decision.clone());
        known.unwrap_or_else(|| ApprovalDecision {
            decision: Decision::Deny,
            reason: "The record has no such call.".to_owned(),
            unasked: false,
            contained: false,
            by_hook: false,
            reviewable: false,
            once: false,
        })
    }

    /// `None`: a command answered it.
    fn message(&self, turn: TurnId) -> Option<Vec<Part>> {
        self.with_turn(|script| script.message.clone().filter(|_| script.id == turn)).flatten()
    }

    fn command_output(&self, _turn: TurnId) -> Option<CommandOutput> {
        let script = self.with_turn(|script| (script.output.take().unwrap_or_default(), script.end.clone()));
        let (output, end) = script.unwrap_or_else(|| {
            let output = OutputScript { text: Some(String::new()), ..OutputScript::default() };
            (output, TurnEnd::Killed)
        });
        let text = async move {
            match (output.text, end) {
                (Some(text), _) => Ok(text),
                (None, TurnEnd::Itself(outcome)) => match end_by(&outcome) {
                    AnswerEnd::Model(_) => Ok(String::new()),
                    AnswerEnd::Fails(failure) => Err(failure),
                    AnswerEnd::Hangs => std::future::pending().await,
                },
                (None, TurnEnd::Aborted | TurnEnd::Killed) => std::future::pending().await,
            }
        };
        Some(CommandOutput { facts: output.facts, text: Box::pin(text) })
    }

    /// Whether the chat got a title that the user did not set: something prevented it otherwise.
    fn makes_titles(&self) -> bool {
        self.lock().title.is_some()
    }

    fn is_compaction_due(&self) -> Option<bool> {
        let due = self.with_turn(|script| matches!(script.pieces.front(), Some(Piece::Summary { .. })));
        Some(due.unwrap_or(false))
    }

    fn is_recorded(&self) -> bool {
        true
    }

    fn take_notes(&self) -> Vec<Note> {
        std::mem::take(&mut self.lock().notes)
    }

    fn measures_requests(&self) -> bool {
        false
    }
}

impl Models for Recording {
    fn find(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        let id = self.with_turn(|script| {
            let is_next = script.failovers.iter().any(|known| known == name);
            // The chat may name its model by another name than the model itself.
            (!is_next).then(|| script.model.clone())
        });
        let title = self.lock().title.clone().and_then(|title| title.call);
        let is_title = title.is_some_and(|(model, _)| model == name);
        let id = id.flatten().filter(|_| !is_title).unwrap_or_else(|| name.to_owned());
        Ok(Arc::new(RecordedModel { id, recording: self.clone() }))
    }

    fn list(&self) -> Vec<ModelInfo> {
        Vec::new()
    }

    fn default_model(&self) -> Option<String> {
        self.with_turn(|script| script.model.clone())
    }

    fn small_model(&self, _main: &str) -> Option<String> {
        self.lock().title.clone()?.call.map(|(model, _)| model)
    }
}

struct RecordedModel {
    id: String,
    recording: Recording,
}

impl Model for RecordedModel {
    fn stream(&self, prompt: Prompt) -> ModelStream {
        if prompt.session.is_some() {
            return self.answer();
        }
        if prompt.system.iter().any(|text| **text == *TITLE_REQUEST) {
            return self.title();
        }
        let (summary, end) = self.recording.next_summary();
        match summary {
            Some((Some(text), tokens)) => whole_text(Some(text), tokens, AnswerEnd::Model(StopReason::Done)),
            Some((None, tokens)) => Box::pin(stream::iter([Ok(ModelEvent::Usage(tokens))]).chain(ended(end))),
            None => ended(end),
        }
    }

    fn info(&self) -> ModelInfo {
        let context_limit = self.recording.with_turn(|script| script.context_limit).flatten();
        ModelInfo { id: self.id.clone(), context_limit, tools: true, images: true, ..ModelInfo::default() }
    }
}

impl RecordedModel {
    fn answer(&self) -> ModelStream {
        let answer = self.recording.next_answer();
        let blocks = (0..).zip(answer.items).flat_map(|(block, record)| block_events(block, record));
        let mut events: Vec<_> = blocks.map(Ok).collect();
        events.extend(answer.tokens.map(|tokens| Ok(ModelEvent::Usage(tokens))));
        let (recording, steering, end) = (self.recording.clone(), answer.steering, answer.end);
        let end = stream::once(async move {
            if let Some(text) = steering {
                recording.wait_at(|open| Gate::Steer(text, open)).await;
            }
            ended(end)
        });
        Box::pin(stream::iter(events).chain(end.flatten()))
    }

    fn title(&self) -> ModelStream {
        match self.recording.lock().title.clone() {
            Some(TitleScript { text, call: Some((_, tokens)) }) => {
                whole_text(text, tokens, AnswerEnd::Model(StopReason::Done))
            }
            Some(TitleScript { call: None, .. }) | None => ended(AnswerEnd::Hangs),
        }
    }
}

fn take_if(pieces: &mut VecDeque<Piece>, is_wanted: bool) -> Option<Piece> {
    if is_wanted { pieces.pop_front() } else { None }
}

fn whole_text(text: Option<String>, tokens: Tokens, end: AnswerEnd) -> ModelStream {
    let start = Ok(ModelEvent::BlockStarted { block: 0, kind: BlockKind::Text });
    let text = Ok(ModelEvent::BlockDelta { block: 0, text: text.unwrap_or_default() });
    let events = [start, text, Ok(ModelEvent::Usage(tokens))];
    Box::pin(stream::iter(events).chain(ended(end)))
}

fn ended(end: AnswerEnd) -> ModelStream {
    match end {
        AnswerEnd::Model(reason) => Box::pin(stream::iter([Ok(ModelEvent::Ended { reason })])),
        AnswerEnd::Fails(failure) => Box::pin(stream::iter([Err(failure)])),
        AnswerEnd::Hangs => Box::pin(stream::pending()),
    }
}

/// The events that make the item again.
fn block_events(block: u32, ItemRecord { last, ended, .. }: ItemRecord) -> Vec<ModelEvent> {
    let Item { kind, .. } = last;
    let (kind, text, provider, ended) = match kind {
        ItemKind::AgentMessage { text, interrupted, provider } => {
            (BlockKind::Text, text, provider, ended && !interrupted)
        }
        ItemKind::Reasoning { text, provider, .. } => (BlockKind::Reasoning, text, provider, ended),
        ItemKind::Citation { title, url } => (BlockKind::Citation { title, url }, String::new(), None, true),
        ItemKind::ToolCall(call) => {
            let name = format!("{}__{}", call.server, call.name);
            (BlockKind::ToolCall { call_id: call.call_id, name }, call.input_text, call.provider, true)
        }
        ItemKind::SystemText { text } => return vec![ModelEvent::Warning { text }],
        ItemKind::UserMessage { .. }
        | ItemKind::Compaction { .. }
        | ItemKind::Command { .. }
        | ItemKind::Hook(_)
        | ItemKind::Note(_)
        | ItemKind::Flag { .. } => return Vec::new(),
    };
    let mut events = vec![ModelEvent::BlockStarted { block, kind }];
    if !text.is_empty() {
        events.push(ModelEvent::BlockDelta { block, text });
    }
    if ended {
        events.push(ModelEvent::BlockEnded { block, provider });
    }
    events
}

impl ToolSource for Recording {
    fn servers(&self) -> Vec<ToolServer> {
        Vec::new()
    }

    /// The tools that the next answer calls.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let calls = self.with_turn(|script| match script.pieces.front() {
            Some(Piece::Answer(answer)) => {
                let calls = answer.items.iter().filter_map(|record| match &record.last.kind {
                    ItemKind::ToolCall(call) => Some((call.server.clone(), call.name.clone(), call.origin)),
                    _ => None,
                });
                (calls.collect::<Vec<_>>(), answer.one_by_one.clone())
            }
            Some(Piece::Summary { .. }) | None => (Vec::new(), HashSet::new()),
        });
        let (calls, one_by_one) = calls.unwrap_or_default();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for (server, name, origin) in calls {
            if tools.iter().all(|tool| tool.spec().server != server || tool.spec().name != name) {
                let is_alone = one_by_one.contains(&(server.clone(), name.clone()));
                let effect = if is_alone { ToolEffect::Other } else { ToolEffect::Reads };
                tools.push(Arc::new(RecordedTool::new(self.clone(), server, name, origin, effect)));
            }
        }
        tools
    }
}

struct RecordedTool {
    recording: Recording,
    spec: ToolSpec,
}

impl RecordedTool {
    fn new(recording: Recording, server: String, name: String, origin: Origin, effect: ToolEffect) -> Self {
        let input_schema = json!({"type": "object"});
        let spec = ToolSpec { name, server, origin, description: String::new(), input_schema, effect };
        Self { recording, spec }
    }

    /// The next call of this tool that the record has.
    fn next_call(&self) -> Option<CallScript> {
        let mut progress = self.recording.lock();
        let is_next = |call: &CallScript| call.name == self.spec.name && call.server == self.spec.server;
        let at = progress.calls.iter().position(is_next)?;
        Some(progress.calls.remove(at))
    }
}

impl Tool for RecordedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let call = self.next_call();
            let preparation = call.as_ref().map_or(Preparation::Ends, |call| call.preparation);
            self.recording.lock().preparing = call;
            match preparation {
                Preparation::Ends => {}
                Preparation::WaitsForStop => self.recording.wait_at(Gate::Stop).await,
                Preparation::Hangs => std::future::pending().await,
            }
        })
    }

    fn review(&self, _input: &Value, _scope: &Scope) -> Result<Review, String> {
        match &self.recording.lock().preparing {
            Some(call) => call.review.clone(),
            None => Err("The record has no such call.".to_owned()),
        }
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        let recorded = self.recording.lock().matched.get(&call.item).cloned();
        Box::pin(async move {
            let Some(recorded) = recorded else {
                return ToolResult::error("The record has no such call.");
            };
            call.context.output(&recorded.live_output);
            // Questions of the tool itself come before its result.
            while let Some(kind) = self.recording.next_question(recorded.item) {
                call.context.ask(kind).await;
            }
            match recorded.run {
                Run::Ends(result) => result,
                Run::EndsAtStop(result) => {
                    call.cancel.cancelled().await;
                    result
                }
                Run::StoppedAlone(result) => {
                    call.cancel.cancel();
                    result
                }
                Run::Hangs => std::future::pending().await,
            }
        })
    }
}
