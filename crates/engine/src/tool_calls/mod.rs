//! The tool calls of one answer: decided, asked, run, each ended exactly once.
//!
//! Invariants: an intent (`Running`) is in the journal before a tool runs and an outcome after; policy is asked for
//! every call; a call that could not run still has a result for the model.

pub mod approval;
pub(crate) mod asks;
pub(crate) mod context;

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::event::{Fact, Outcome};
use domain::item::{Item, ItemKind, Part};
use domain::tool::{Invocation, Review, Scope, Tool, ToolResult};
use domain::tool_call::{Details, RejectedBy, ToolCall, ToolInput, next};
use domain::{Answer, Ask, AskId, AskKind, Failure};
use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::behavior;
use crate::tool_calls::approval::{ApprovalDecision, Decision, rememberable};
use crate::tool_calls::context::CallContext;
use crate::turn::Turn;
use crate::turn::loops::{Circle, LoopDetector};

/// How long a stopped tool may take to clean up.
const STOP_GRACE: Duration = Duration::from_secs(3);

pub enum CallsEnded {
    /// The model is told the results. `compact`: it asked to replace the history by this summary.
    Go {
        compact: Option<String>,
    },
    Stop(Outcome),
}

/// A call that passed the policy or waits for a person.
struct Ready {
    item: Item,
    tool: Arc<dyn Tool>,
    review: Review,
    waiting: Option<(AskId, oneshot::Receiver<Answer>)>,
}

enum Prepared {
    Ready(Box<Ready>),
    /// It is over without having run.
    Ended(Item),
}

/// Ends calls of an answer that broke off before they could run.
pub fn drop_unrun(turn: &mut Turn, calls: Vec<Item>) {
    for mut item in calls {
        if let ItemKind::ToolCall(call) = &mut item.kind {
            call.input.get_or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
        step(&mut item, ToolInput::Stop);
        turn.history.put(item.clone());
        turn.session.journal.note(Fact::ItemEnded { item });
    }
}

pub async fn run(
    turn: &mut Turn,
    calls: Vec<Item>,
    tools: &[Arc<dyn Tool>],
    loops: &mut LoopDetector,
) -> CallsEnded {
    let mut ready = Vec::new();
    let mut circle = Circle::No;
    for item in calls {
        // The history holds every call of the answer, in order, from the start; it is replaced when it ends.
        turn.history.put(item.clone());
        match prepare(turn, item, tools).await {
            Ok(Prepared::Ready(call)) => ready.push(*call),
            Ok(Prepared::Ended(item)) => circle = circle.max(close(turn, item, loops)),
            Err(failure) => return CallsEnded::Stop(Outcome::Failed { failure }),
        }
    }
    let together = ready.iter().all(|call| call.tool.spec().effect.is_read_only());
    let mut ended = Vec::new();
    if together {
        ended = join_all(ready.into_iter().map(|call| carry_out(turn, call))).await;
    } else {
        for call in ready {
            ended.push(carry_out(turn, call).await);
        }
    }
    let mut compact = None;
    for (item, summary) in ended {
        compact = summary.or(compact);
        circle = circle.max(close(turn, item, loops));
    }
    if turn.cancel.is_cancelled() {
        return CallsEnded::Stop(Outcome::Stopped);
    }
    if circle == Circle::Stop {
        return CallsEnded::Stop(Outcome::MaxSteps);
    }
    CallsEnded::Go { compact }
}

/// The one place where a call ends: the model is told when it goes in circles, whatever its calls came to.
fn close(turn: &mut Turn, mut item: Item, loops: &mut LoopDetector) -> Circle {
    let mut circle = Circle::No;
    if let ItemKind::ToolCall(call) = &mut item.kind {
        circle = loops.see(call);
        if circle == Circle::Tell {
            call.result.push(Part::text(
                "Note: this call has now given the same result three times. Try something else or finish.",
            ));
        }
    }
    turn.history.put(item.clone());
    turn.session.journal.note(Fact::ItemEnded { item });
    circle
}

/// Parses, reviews and decides one call.
async fn prepare(turn: &Turn, mut item: Item, tools: &[Arc<dyn Tool>]) -> Result<Prepared, Failure> {
    let ItemKind::ToolCall(call) = &mut item.kind else { return Ok(Prepared::Ended(item)) };
    let input = match parse_input(&call.input_text) {
        Ok(input) => input,
        Err(problem) => return Ok(refuse_input(item, problem)),
    };
    call.input = Some(input.clone());
    let Some(tool) = tools.iter().find(|tool| is(tool.as_ref(), call)).cloned() else {
        let known: Vec<String> = tools.iter().map(|tool| tool.spec().offered_name()).collect();
        let problem = format!("There is no tool {}. There are: {}.", call.name, known.join(", "));
        return Ok(refuse_input(item, problem));
    };
    let scope = scope(turn);
    let review = match tool.review(&input, &scope) {
        Ok(review) => review,
        Err(problem) => return Ok(refuse_input(item, problem)),
    };
    call.summary = review.summary.clone();
    call.details = review.details.clone();
    call.locations = review.locations.clone();
    let verdict = decide(turn, tool.as_ref(), &input, &review);
    match verdict.decision {
        Decision::Allow => Ok(Prepared::Ready(Box::new(Ready { item, tool, review, waiting: None }))),
        Decision::Deny if proposes(turn, &verdict, &review) => {
            call.manual_approval = true;
            let told = "This change was not applied: it is shown to the user as a proposal, to apply or not.";
            call.result = vec![Part::text(told)];
            step(&mut item, ToolInput::Allowed);
            step(&mut item, ToolInput::Finished);
            Ok(Prepared::Ended(item))
        }
        Decision::Deny => {
            call.result = vec![Part::text(verdict.message_for_model())];
            call.error = true;
            let by = if verdict.unasked { RejectedBy::Unasked } else { RejectedBy::Policy };
            step(&mut item, ToolInput::Refused { by });
            Ok(Prepared::Ended(item))
        }
        Decision::Ask => {
            let ready = raise(turn, item, tool, review, verdict).await?;
            Ok(Prepared::Ready(Box::new(ready)))
        }
    }
}

/// A client of the draft protocol applies changes by itself.
fn proposes(turn: &Turn, verdict: &ApprovalDecision, review: &Review) -> bool {
    let client = turn.host.as_ref().is_some_and(|host| host.abilities.proposes_changes);
    client && verdict.unasked && matches!(review.details, Some(Details::FileChange(_)))
}

async fn raise(
    turn: &Turn,
    mut item: Item,
    tool: Arc<dyn Tool>,
    review: Review,
    verdict: ApprovalDecision,
) -> Result<Ready, Failure> {
    let id = AskId(turn.session.next_ask());
    let waiting = turn.session.asks.wait_for(id);
    if let ItemKind::ToolCall(call) = &mut item.kind {
        call.manual_approval = true;
        if let Ok(state) = next(&call.state, ToolInput::MustAsk { ask: id }) {
            call.state = state;
        }
    }
    let kind = AskKind::Approval { reason: verdict.reason, keys: rememberable(tool.spec(), &review) };
    let ask = Ask { id, turn: turn.id, item: Some(item.id), kind };
    // The ask first: a client may answer the moment it sees the call wait.
    let facts = vec![Fact::AskRaised { ask }, Fact::ItemChanged { item: item.clone() }];
    turn.session.journal.record(facts).done().await?;
    Ok(Ready { item, tool, review, waiting: Some((id, waiting)) })
}

/// Waits for the answer where one is asked, runs the tool, and gives the ended call back.
async fn carry_out(turn: &Turn, ready: Ready) -> (Item, Option<String>) {
    let Ready { mut item, tool, review, waiting } = ready;
    if let Some((id, waiting)) = waiting {
        let answer = tokio::select! {
            answer = waiting => answer.unwrap_or(Answer::Cancelled),
            () = turn.cancel.cancelled() => Answer::Cancelled,
        };
        turn.session.asks.settle(id, Answer::Cancelled);
        turn.session.journal.note(Fact::AskSettled { id, answer: answer.clone() });
        if !take_answer(turn, &mut item, &tool, &review, answer) {
            return (item, None);
        }
    }
    if turn.cancel.is_cancelled() {
        step(&mut item, ToolInput::Stop);
        return (item, None);
    }
    execute(turn, item, tool, review).await
}

/// True when the call may run.
fn take_answer(turn: &Turn, item: &mut Item, tool: &Arc<dyn Tool>, review: &Review, answer: Answer) -> bool {
    match answer {
        Answer::Allow { remember } => {
            if remember {
                turn.session.state().remembered.allow(tool.spec(), review);
            }
            true
        }
        Answer::Deny { remember, reason } => {
            if remember {
                turn.session.state().remembered.deny(tool.spec());
            }
            if let ItemKind::ToolCall(call) = &mut item.kind {
                let text = match reason {
                    Some(reason) => format!("The user rejected this call and said: {reason}"),
                    None => {
                        "The user rejected this call. Do not try it again; ask or go on without it.".into()
                    }
                };
                call.result = vec![Part::text(text)];
                call.error = true;
            }
            step(item, ToolInput::Refused { by: RejectedBy::User });
            false
        }
        Answer::Text { .. } | Answer::Form { .. } | Answer::Cancelled => {
            step(item, ToolInput::Stop);
            false
        }
    }
}

async fn execute(turn: &Turn, mut item: Item, tool: Arc<dyn Tool>, review: Review) -> (Item, Option<String>) {
    step(&mut item, ToolInput::Allowed);
    if turn.session.journal.record(vec![Fact::ItemChanged { item: item.clone() }]).done().await.is_err() {
        step(&mut item, ToolInput::Stop);
        return (item, None);
    }
    turn.session.progress("Calling tool".into());
    let input = match &item.kind {
        ItemKind::ToolCall(call) => call.input.clone().unwrap_or(Value::Null),
        _ => Value::Null,
    };
    let cancel = turn.cancel.child_token();
    let port = Arc::new(CallContext::new(
        turn.session.clone(),
        turn.id,
        Some(item.id),
        turn.host.clone(),
        cancel.clone(),
    ));
    let invocation = Invocation {
        item: item.id,
        input,
        scope: scope(turn),
        outside_allowed: !review.outside.is_empty(),
        cancel: cancel.clone(),
        context: port.clone(),
    };
    let since = Instant::now();
    let result = run_guarded(turn, tool, invocation).await;
    let millis = since.elapsed().as_millis() as u64;
    let live_output = port.take_output();
    let stopped = turn.cancel.is_cancelled();
    let mut compact = None;
    if let ItemKind::ToolCall(call) = &mut item.kind {
        call.millis = millis;
        call.live_output = live_output;
        if let Some(ToolResult { parts, error, details, locations, compact: summary }) = result {
            call.result = parts;
            call.error = error || stopped;
            call.details = details.or(call.details.take());
            if !locations.is_empty() {
                call.locations = locations;
            }
            compact = summary;
        } else {
            call.error = true;
        }
    }
    step(&mut item, if stopped { ToolInput::Stop } else { ToolInput::Finished });
    (item, compact)
}

/// A tool that panics or does not stop in time cannot take the turn with it.
async fn run_guarded(turn: &Turn, tool: Arc<dyn Tool>, invocation: Invocation) -> Option<ToolResult> {
    let mut task = tokio::spawn(async move { tool.run(invocation).await });
    let joined = tokio::select! {
        joined = &mut task => joined,
        () = turn.cancel.cancelled() => match tokio::time::timeout(STOP_GRACE, &mut task).await {
            Ok(joined) => joined,
            Err(_) => {
                task.abort();
                return None;
            }
        },
    };
    match joined {
        Ok(result) => Some(result),
        Err(_) => Some(ToolResult::error(
            "The tool failed inside Dragoman. This is a mistake of ours; the log has it.",
        )),
    }
}

fn decide(turn: &Turn, tool: &dyn Tool, input: &Value, review: &Review) -> ApprovalDecision {
    let (remembered, settings) = {
        let state = turn.session.state();
        (state.remembered.clone(), state.settings.clone())
    };
    let abilities = turn.host.as_ref().map(|host| host.abilities.clone()).unwrap_or_default();
    let behavior = behavior::canonical(settings.behavior.as_deref().unwrap_or_default());
    let rules = approval::rules_for(&turn.session.workspace.settings, behavior);
    approval::decide(&approval::Case {
        rules: &rules,
        spec: tool.spec(),
        input,
        review,
        remembered: &remembered,
        read_only: behavior::is_read_only(behavior),
        trust: settings.trust.unwrap_or(false),
        can_ask: abilities.approvals,
        granted: abilities.grants,
    })
}

fn scope(turn: &Turn) -> Scope {
    let state = turn.session.state();
    Scope {
        session: turn.session.id.clone(),
        roots: turn.session.roots.clone(),
        read_only: behavior::is_read_only(state.settings.behavior.as_deref().unwrap_or_default()),
        remembered: state.remembered.commands().into(),
    }
}

fn is(tool: &dyn Tool, call: &ToolCall) -> bool {
    tool.spec().name == call.name && tool.spec().server == call.server
}

/// Arguments are a JSON object; an empty text means none.
fn parse_input(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("The arguments must be a JSON object.".into()),
        Err(error) => Err(format!("The arguments are not valid JSON: {error}.")),
    }
}

/// A call that makes no sense ends at once, and the model is told why.
fn refuse_input(mut item: Item, problem: String) -> Prepared {
    if let ItemKind::ToolCall(call) = &mut item.kind {
        call.result = vec![Part::text(problem)];
        call.error = true;
        call.input.get_or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    step(&mut item, ToolInput::Allowed);
    step(&mut item, ToolInput::Finished);
    Prepared::Ended(item)
}

fn step(item: &mut Item, input: ToolInput) {
    if let ItemKind::ToolCall(call) = &mut item.kind {
        match next(&call.state, input) {
            Ok(state) => call.state = state,
            Err(illegal) => tracing::error!(%illegal, "a tool call took a step it cannot take"),
        }
    }
}
