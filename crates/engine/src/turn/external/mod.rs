//! A step of a turn that an external agent runs: its updates become the facts that our own turns are made of.
//!
//! The agent uses its own tools; the engine shows, asks, records and bounds. Must not know how an agent is spoken to.
//! Invariants: the files of the workspace are recorded before the agent works, and compared when it is idle again; the
//! session of the agent is in the journal before the prompt leaves; a stop takes effect at once.

mod calls;
mod handover;
mod opening;
mod usage;

use std::sync::Arc;
use std::time::Duration;

use domain::agent::{AgentCall, AgentEvent, AgentRequest, AgentStream, CallKind, ExternalAgent, OpenedAgent};
use domain::event::{Fact, Level, Notice, Outcome};
use domain::item::{Item, ItemKind, Part};
use domain::model::{BlockKind, ModelEvent, StopReason};
use domain::taint::Taint;
use domain::tool_call::{Origin, ToolCall, ToolState};
use domain::{BoxFuture, Failure};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::{AnswerEnd, AnswerReader, StepPosition};
use super::goal;
use super::goal_run::is_check;
use super::loops::LoopDetector;
use super::next::{Next, Said, outcome_of};
use super::state::Turn;
use crate::hooks;
use crate::spending;
use crate::tool_calls::agent_tools::{self, text_of};
use crate::tool_calls::foreign::{self, AgentVerdict, AgentWall};
use crate::tool_search::ToolList;
use calls::AgentCalls;
use handover::Handover;
pub use handover::{AGENT_PREFIX, is_of_agent};
pub(crate) use opening::offers;

/// The name of the call that stands for the agent's session.
const SESSION: &str = "session";
/// How long a stopped agent may take until its changes are looked at.
const IDLE_TIMEOUT: Duration = Duration::from_secs(7);

/// Sends the newest message of the turn to the agent, and works off what it does.
pub(super) async fn run(
    turn: &mut Turn,
    step: u32,
    agent: Arc<dyn ExternalAgent>,
    loops: &mut LoopDetector,
) -> Next {
    let ended = match prepare(turn, step, agent.as_ref()).await {
        Ok(Some((opened, parts))) => work(turn, step, agent.as_ref(), &opened, parts).await,
        Ok(None) => return Next::End(Outcome::Stopped),
        Err(failure) => AgentEnd { outcome: Some(Outcome::Failed { failure }), is_empty: true },
    };
    match ended.outcome {
        Some(Outcome::Failed { failure }) if ended.is_empty && turn.fail_over(&failure) => Next::Retry,
        Some(outcome) => Next::End(outcome),
        None => match turn.next_message().await {
            Some(Said::Report(text)) => turn.add_report(step, text),
            Some(Said::User(text)) => turn.add_message(step, text),
            None if turn.cancel.is_cancelled() => Next::End(Outcome::Stopped),
            None => finish(turn, step, loops).await,
        },
    }
}

/// The agent is done; the goal and hooks may have it go on.
async fn finish(turn: &mut Turn, step: u32, loops: &mut LoopDetector) -> Next {
    let tools = ToolList::new(turn.tools(), &turn.session, &turn.model.info());
    if let Some(next) = goal::at_end(turn, step, &tools, loops).await {
        return next;
    }
    match hooks::after_request(turn, step).await {
        Ok(Some(text)) => {
            turn.session.steering.open();
            turn.add_report(step, text)
        }
        Ok(None) => Next::End(Outcome::Done),
        Err(failure) => Next::End(Outcome::Failed { failure }),
    }
}

struct AgentEnd {
    /// `None`: the agent is done.
    outcome: Option<Outcome>,
    is_empty: bool,
}

/// Opens the agent's session. Gives the parts of the prompt; `None`: the turn was stopped.
async fn prepare(
    turn: &Turn,
    step: u32,
    agent: &dyn ExternalAgent,
) -> Result<Option<(OpenedAgent, Vec<Part>)>, Failure> {
    let model = turn.model.info().id;
    let name = handover::agent_of(&model).to_owned();
    turn.session.show_progress(format!("Starting {name}"));
    let (opening, Handover { unseen, everything, .. }) =
        opening::of_chat(&turn.session, &turn.model.info(), turn.id);
    let opened = tokio::select! {
        biased;
        () = turn.cancel.cancelled() => return Ok(None),
        opened = agent.open(opening) => opened?,
    };
    let history = if opened.is_known { unseen } else { everything };
    if !history.is_empty() {
        tell(turn, Level::Info, format!("{name} was given the earlier messages of this chat as text."));
    }
    if !opened.is_known {
        let item = session_item(turn, step, &model, &opened);
        turn.session.commit(vec![Fact::ItemEnded { item }]).on_disk().await?;
    }
    Ok(Some((opened, handover::with_history(&history, newest_messages(turn)))))
}

/// The item that says which session of the agent belongs to the chat.
fn session_item(turn: &Turn, step: u32, model: &str, opened: &OpenedAgent) -> Item {
    let mut call = ToolCall::new(String::new(), opened.agent.clone(), SESSION.to_owned(), Origin::Native);
    let place = if opened.is_confined { "in the sandbox" } else { "without a sandbox" };
    call.summary = format!("{} works {place}", opened.title);
    (call.input, call.state) = (Some(json!({})), ToolState::Done);
    call.provider = Some(handover::mark(model, &opened.session, &turn.session.id));
    turn.session.new_item(turn.id, step, ItemKind::ToolCall(Box::new(call)))
}

/// What was said in the turn since the agent last did something: by the user, by Dragoman, by subagents and hooks.
fn newest_messages(turn: &Turn) -> Vec<Part> {
    let state = turn.session.state();
    let items: Vec<&Item> = state.items().iter().filter(|item| item.turn == turn.id).collect();
    let is_work = |item: &&Item| is_of_agent(item) && !is_session(item);
    let start = items.iter().rposition(is_work).map_or(0, |at| at + 1);
    let mut parts = Vec::new();
    for item in &items[start..] {
        if let ItemKind::UserMessage { parts: said, .. } = &item.kind {
            parts.extend(said.iter().cloned());
        } else if let ItemKind::Note(note) = &item.kind {
            parts.extend(note.parts.iter().cloned());
        } else if let ItemKind::ToolCall(call) = &item.kind
            && is_check(call)
        {
            parts.push(Part::text(check_text(call)));
        }
    }
    parts
}

/// A check of the goal, which the agent has not seen.
fn check_text(call: &ToolCall) -> String {
    let line = call.input.as_ref().and_then(|input| input["command"].as_str()).unwrap_or_default();
    format!("The command `{line}` was run to check the goal. Its output:\n{}", text_of(&call.result))
}

/// Tool calls of one prompt. The steps of a goal count prompts.
fn most_calls(turn: &Turn) -> usize {
    let most = turn.session.workspace.settings.max_steps(&turn.session.behavior());
    let most = turn.limits.max_steps.map_or(most, |limit| most.min(limit.into()));
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// The item that names the agent's session.
fn is_session(item: &Item) -> bool {
    matches!(&item.kind, ItemKind::ToolCall(call) if call.name == SESSION)
}

async fn work(
    turn: &Turn,
    step: u32,
    agent: &dyn ExternalAgent,
    opened: &OpenedAgent,
    parts: Vec<Part>,
) -> AgentEnd {
    let recording = match agent_tools::begin_recording(turn).await {
        Ok(recording) => recording,
        Err(failure) => return AgentEnd { outcome: Some(Outcome::Failed { failure }), is_empty: true },
    };
    if !turn.session.workspace.is_trusted {
        taint(turn, format!("files of this folder, as {} read them", opened.agent));
    }
    turn.session.show_progress("Waiting for the agent");
    let stream = agent.prompt(&turn.session.id, parts);
    let tools = ToolList::new(Vec::new(), &turn.session, &turn.model.info());
    let run = AgentRun::new(turn, step, opened, &tools);
    let ended = run.follow(stream).await;
    // What it changes from now on would not be found.
    let _ = tokio::time::timeout(IDLE_TIMEOUT, agent.wait_until_idle(&turn.session.id)).await;
    if let Some(recording) = recording {
        recording.end(&turn.session).await;
    }
    ended
}

fn tell(turn: &Turn, level: Level, text: String) {
    turn.session.commit(vec![Fact::Notice { notice: Notice { level, text } }]);
}

fn taint(turn: &Turn, source: String) {
    let mut taint = Taint::default();
    taint.add_source(source);
    turn.session.add_taint(&taint);
}

/// A request of the agent that was worked off.
enum Finished {
    Permission { id: String, item: Box<Item>, is_allowed: bool, reply: oneshot::Sender<bool> },
    Other,
}

/// One prompt that an agent works on.
struct AgentRun<'a> {
    turn: &'a Turn,
    step: u32,
    model: String,
    agent: String,
    wall: AgentWall,
    reader: AnswerReader<'a>,
    calls: AgentCalls<'a>,
    /// The text or thought that is being written: its number, and whether it is a thought.
    block: Option<(u32, bool)>,
    blocks: u32,
    mark: domain::item::ProviderBlock,
    /// Requests of the agent that take time.
    pending: FuturesUnordered<BoxFuture<'a, Finished>>,
}

impl<'a> AgentRun<'a> {
    fn new(turn: &'a Turn, step: u32, opened: &OpenedAgent, tools: &'a ToolList) -> Self {
        let model = turn.model.info().id;
        let mark = handover::mark(&model, &opened.session, &turn.session.id);
        let mut reader = AnswerReader::new(&turn.session, StepPosition { turn: turn.id, step }, tools);
        reader.mark = Some(mark.clone());
        Self {
            turn,
            step,
            model,
            agent: opened.agent.clone(),
            wall: AgentWall { is_confined: opened.is_confined, seals_forbidden: opened.seals_forbidden },
            reader,
            calls: AgentCalls::new(&turn.session, turn.id, step, opened.agent.clone(), mark.clone()),
            block: None,
            blocks: 0,
            mark,
            pending: FuturesUnordered::new(),
        }
    }

    async fn follow(mut self, mut stream: AgentStream) -> AgentEnd {
        let end = loop {
            let flush_at = self.reader.flush_at;
            let handled = tokio::select! {
                biased;
                () = self.turn.cancel.cancelled() => break AnswerEnd::Stopped,
                Some(finished) = self.pending.next(), if !self.pending.is_empty() => {
                    self.finish_request(finished);
                    Ok(None)
                }
                event = stream.next() => match event {
                    Some(Ok(event)) => self.handle(event).await,
                    Some(Err(failure)) => break AnswerEnd::Failed(failure),
                    None => Ok(Some(StopReason::Cut { message: "The agent's answer ended early.".to_owned() })),
                },
                () = tokio::time::sleep_until(flush_at.unwrap_or_else(Instant::now)), if flush_at.is_some() => {
                    self.reader.flush(true).map(|()| None)
                }
            };
            match handled {
                Ok(None) => {}
                Ok(Some(reason)) => break AnswerEnd::Model(reason),
                Err(failure) => break AnswerEnd::Failed(failure),
            }
            if self.calls.count() > most_calls(self.turn) {
                drop(stream);
                self.close(AnswerEnd::Stopped).await;
                return AgentEnd { outcome: Some(Outcome::MaxSteps), is_empty: false };
            }
        };
        drop(stream);
        self.close(end).await
    }

    /// Ends everything that is open.
    async fn close(mut self, end: AnswerEnd) -> AgentEnd {
        let is_whole = matches!(end, AnswerEnd::Model(StopReason::Done | StopReason::ToolCalls));
        // Nobody waits for the answers after this.
        self.turn.session.asks.cancel_all();
        while let Some(finished) = self.pending.next().await {
            self.finish_request(finished);
        }
        let _ = self.end_block().await;
        self.calls.end(is_whole);
        let is_without_calls = self.calls.count() == 0;
        let answer = self.reader.finish(end);
        AgentEnd { is_empty: answer.is_empty && is_without_calls, outcome: outcome_of(answer.end) }
    }

    /// Gives the reason where the agent is done.
    async fn handle(&mut self, event: AgentEvent) -> Result<Option<StopReason>, Failure> {
        match event {
            AgentEvent::Text { text } => self.add_text(text, false).await?,
            AgentEvent::Thought { text } => self.add_text(text, true).await?,
            AgentEvent::Call(call) => {
                self.end_block().await?;
                if call.kind == Some(CallKind::Fetch) {
                    taint(self.turn, format!("pages that {} fetched", self.agent));
                }
                self.calls.update(*call);
            }
            AgentEvent::Plan { entries } => {
                self.end_block().await?;
                self.calls.plan(entries);
            }
            AgentEvent::Usage(report) => {
                if usage::record_report(&self.turn.session, &self.model, report) {
                    let Turn { session, limits, cost_before, .. } = self.turn;
                    spending::check_caps(session, limits, *cost_before).await?;
                }
            }
            AgentEvent::Notice { text } => tell(self.turn, Level::Info, text),
            AgentEvent::Request(request) => self.handle_request(request).await?,
            AgentEvent::Ended { reason, tokens } => {
                usage::record_end(&self.turn.session, &self.model, tokens);
                return Ok(Some(reason));
            }
        }
        Ok(None)
    }

    async fn add_text(&mut self, text: String, is_thought: bool) -> Result<(), Failure> {
        if self.block.is_none_or(|(_, known)| known != is_thought) {
            self.end_block().await?;
            self.blocks += 1;
            self.block = Some((self.blocks, is_thought));
            let kind = if is_thought { BlockKind::Reasoning } else { BlockKind::Text };
            self.reader.handle(ModelEvent::BlockStarted { block: self.blocks, kind }).await?;
        }
        self.reader.handle(ModelEvent::BlockDelta { block: self.blocks, text }).await
    }

    async fn end_block(&mut self) -> Result<(), Failure> {
        let Some((block, _)) = self.block.take() else { return Ok(()) };
        self.reader.handle(ModelEvent::BlockEnded { block, provider: Some(self.mark.clone()) }).await
    }

    async fn handle_request(&mut self, request: AgentRequest) -> Result<(), Failure> {
        let (turn, step, wall) = (self.turn, self.step, self.wall);
        match request {
            AgentRequest::Permission { call, reply } => {
                self.end_block().await?;
                return self.decide(*call, reply).await;
            }
            AgentRequest::ReadFile { path, line, limit, reply } => self.pending.push(Box::pin(async move {
                let _ = reply.send(agent_tools::read_file(turn, step, &path, line, limit).await);
                Finished::Other
            })),
            AgentRequest::WriteFile { path, content, reply } => self.pending.push(Box::pin(async move {
                let _ = reply.send(agent_tools::write_file(turn, step, wall, &path, content).await);
                Finished::Other
            })),
            AgentRequest::Command(command) => self.pending.push(Box::pin(async move {
                agent_tools::run_command(turn, step, command).await;
                Finished::Other
            })),
            AgentRequest::Tool(call) => self.pending.push(Box::pin(async move {
                agent_tools::run_tool(turn, step, call).await;
                Finished::Other
            })),
        }
        Ok(())
    }

    async fn decide(&mut self, call: AgentCall, reply: oneshot::Sender<bool>) -> Result<(), Failure> {
        let Some((item, known)) = self.calls.asked(call) else { return Ok(()) };
        let (item, verdict) = foreign::decide_about(self.turn, item, &known, self.wall).await?;
        match verdict {
            AgentVerdict::Allowed | AgentVerdict::Refused => {
                let is_allowed = matches!(verdict, AgentVerdict::Allowed);
                self.calls.decided(&known.id, item, false);
                let _ = reply.send(is_allowed);
            }
            AgentVerdict::Asked(asked) => {
                self.calls.decided(&known.id, item, true);
                let turn = self.turn;
                self.pending.push(Box::pin(async move {
                    let (item, is_allowed) = asked.answer(turn).await;
                    Finished::Permission { id: known.id, item: Box::new(item), is_allowed, reply }
                }));
            }
        }
        Ok(())
    }

    fn finish_request(&mut self, finished: Finished) {
        match finished {
            Finished::Permission { id, item, is_allowed, reply } => {
                self.calls.decided(&id, *item, false);
                let _ = reply.send(is_allowed);
            }
            Finished::Other => {}
        }
    }
}
