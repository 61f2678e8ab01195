//! The tool calls of one answer, one function per state: prepared, asked, run, ended exactly once.
//!
//! Must not know what a tool does. Invariants: an intent (`Running`) is in the journal before a tool runs and an outcome
//! after; policy decides every call; a call that could not run still has a result for the model.

pub(crate) mod agent_tools;
pub mod approval;
mod asking;
mod case;
mod cause;
pub(crate) mod context;
pub(crate) mod foreign;
pub(crate) mod input;
mod leftovers;
mod own_calls;
mod ready_call;
mod remembered;
pub(crate) mod reviewer;
mod running;
mod sampling;
pub(crate) mod server_paths;
mod settling;
pub(crate) mod taint;
mod unrecorded;
mod verdict;

use std::sync::Arc;
use std::time::Instant;

use domain::Failure;
use domain::event::{Fact, Outcome};
use domain::item::{Item, ItemKind, Part};
use domain::taint::Taint;
use domain::tool::{Invocation, Review, Tool, ToolEffect, ToolResult};
use domain::tool_call::{Details, RejectedBy, ToolCall, ToolInput};
use futures_util::future::join_all;
use serde_json::Value;

use crate::hooks;
use crate::session::Session;
use crate::subagents;
use crate::subagents::relay::RelayedCall;
use crate::tool_search::ToolList;
use crate::turn::loops::{LoopDetector, Repetition};
use crate::turn::nested_instructions;
use crate::turn::{Turn, goal_checks};
use crate::undo;
use approval::{ApprovalDecision, Decision, HookVerdict};
pub(crate) use case::with_case;
use case::{decide, scope};
use context::EngineToolContext;
use own_calls::explain_problem;
pub(crate) use own_calls::may_run;
pub(crate) use ready_call::REJECTED_WITH_REASON;
use ready_call::{ReadyCall, advance};
pub use running::STOPPED_BY_USER;
use running::{review_call, run_guarded, stopped_alone};
pub(crate) use settling::settle_interrupted;

/// What a model learns that repeats itself.
pub const REPEATED: &str =
    "Note: this call has now given the same result three times. Try something else or finish.";

pub(crate) enum CallsEnd {
    /// The model gets the results. `summary`: it asked to replace the history by this text.
    Continue {
        summary: Option<String>,
    },
    Stop(Outcome),
}

enum Prepared {
    Ready(Box<ReadyCall>),
    /// It has ended without having run.
    Ended(Item),
}

/// A call at its end, and the summary that takes the place of the history where the call asked for that.
type EndedCall = (Item, Option<String>);

/// Ends the calls of an answer that broke off before they could run.
pub(crate) fn drop_unrun(session: &Session, calls: impl IntoIterator<Item = Item>) {
    for item in calls {
        session.commit(vec![Fact::ItemEnded { item: stopped(item) }]);
    }
}

/// A call that was stopped before anybody looked at it.
fn stopped(mut item: Item) -> Item {
    if let ItemKind::ToolCall(call) = &mut item.kind
        && call.input.is_none()
    {
        call.input = Some(input::parse(&call.input_text).unwrap_or_else(|_| input::empty()));
    }
    advance(&mut item, ToolInput::Stop);
    item
}

/// Runs the calls of an answer in their order. Calls that only read and follow each other run together; each other call
/// is reviewed when its turn comes, so that its review sees what the calls before it did.
pub(crate) async fn run(
    turn: &Turn,
    calls: Vec<Item>,
    tools: &ToolList,
    loops: &mut LoopDetector,
) -> CallsEnd {
    let mut calls = calls.into_iter().peekable();
    let mut progress = CallsProgress { loops, repetition: Repetition::None, summary: None };
    while let Some(first) = calls.next() {
        let mut batch = vec![first];
        while let Some(next) = calls.next_if(|next| tools.only_reads(&batch[0]) && tools.only_reads(next)) {
            batch.push(next);
        }
        if let Err(failure) = run_batch(turn, batch, tools, &mut progress).await {
            return CallsEnd::Stop(Outcome::Failed { failure });
        }
        if turn.cancel.is_cancelled() || turn.hooks.stopped().is_some() {
            drop_unrun(&turn.session, calls);
            break;
        }
    }
    if turn.cancel.is_cancelled() {
        return CallsEnd::Stop(Outcome::Stopped);
    }
    if let Some(failure) = turn.hooks.stopped() {
        return CallsEnd::Stop(Outcome::Failed { failure });
    }
    if progress.repetition == Repetition::Stop {
        return CallsEnd::Stop(Outcome::Repeating);
    }
    CallsEnd::Continue { summary: progress.summary }
}

/// What the calls of an answer have come to.
struct CallsProgress<'a> {
    loops: &'a mut LoopDetector,
    repetition: Repetition,
    summary: Option<String>,
}

impl CallsProgress<'_> {
    fn end(&mut self, turn: &Turn, item: Item) {
        self.repetition = self.repetition.max(end(turn, item, self.loops));
    }
}

/// One call, or several that only read: each is prepared, then they run together.
async fn run_batch(
    turn: &Turn,
    batch: Vec<Item>,
    tools: &ToolList,
    progress: &mut CallsProgress<'_>,
) -> Result<(), Failure> {
    let mut ready = Vec::new();
    // What the chat will have read when the calls before have run.
    let mut taint = turn.session.taint();
    for item in batch {
        if turn.hooks.stopped().is_some() {
            progress.end(turn, stopped(item));
            continue;
        }
        match prepare(turn, item, tools, &taint).await? {
            Prepared::Ready(call) => {
                taint.merge(&taint_of(turn, &call));
                ready.push(*call);
            }
            Prepared::Ended(item) => progress.end(turn, item),
        }
    }
    for (item, summary) in join_all(ready.into_iter().map(|call| decide_and_run(turn, call))).await {
        progress.summary = summary.or(progress.summary.take());
        progress.end(turn, item);
    }
    Ok(())
}

/// `Preparing`: reads the arguments, lets the tool review them and asks policy.
async fn prepare(turn: &Turn, mut item: Item, tools: &ToolList, taint: &Taint) -> Result<Prepared, Failure> {
    let ItemKind::ToolCall(call) = &mut item.kind else { return Ok(Prepared::Ended(item)) };
    let (tool, mut input) = match identify(turn, call, tools) {
        Ok(identified) => identified,
        Err(problem) => return Ok(end_with_problem(item, problem)),
    };
    let mut review = match review_call(turn, tool.as_ref(), &input).await {
        Ok(review) => review,
        Err(problem) => {
            let told = explain_problem(turn, &item, tool.as_ref(), &input, tools, problem).await;
            return Ok(end_with_problem(item, told));
        }
    };
    if turn.cancel.is_cancelled() {
        return Ok(Prepared::Ended(stopped(item)));
    }
    let mut approval = decide(turn, item.id, tool.as_ref(), &input, &review, None, taint);
    let mut verdict = None;
    // Where nobody can be asked, a hook may still allow it.
    if approval.decision != Decision::Deny || approval.unasked {
        let said = hooks::before_call(turn, &item, tool.as_ref(), &input, &review, &approval).await;
        if let Some(changed) = said.input {
            input = changed;
            review = match review_call(turn, tool.as_ref(), &input).await {
                Ok(review) => review,
                Err(problem) => return Ok(end_with_problem(item, problem)),
            };
        }
        let by_hook = matches!(said.verdict, Some(HookVerdict::Deny { .. }));
        verdict = said.verdict;
        approval = decide(turn, item.id, tool.as_ref(), &input, &review, verdict.clone(), taint);
        approval.by_hook |= by_hook;
        if turn.cancel.is_cancelled() {
            return Ok(Prepared::Ended(stopped(item)));
        }
    }
    describe(turn, &mut item, input, &review);
    // The check of a goal stays within its sandbox, whatever allowed it.
    review.contained = approval.contained || (review.contained && goal_checks::is_check_of(turn, item.id));
    let (taint, once) = (taint.clone(), approval.once);
    let ready = ReadyCall { item, tool, review, hook: verdict, taint, ask: None, relayed: None, once };
    match approval.decision {
        Decision::Allow => Ok(Prepared::Ready(Box::new(ready))),
        Decision::Deny => Ok(Prepared::Ended(deny(turn, ready.item, &approval, &ready.review))),
        Decision::Ask => {
            asking::ask(turn, ready, approval).await.map(|ready| Prepared::Ready(Box::new(ready)))
        }
    }
}

/// The tool and the arguments of a call, or why they make no sense.
fn identify(turn: &Turn, call: &mut ToolCall, tools: &ToolList) -> Result<(Arc<dyn Tool>, Value), String> {
    let input = input::parse(&call.input_text)?;
    call.input = Some(input.clone());
    let tool = tools.find(&call.server, &call.name).cloned().ok_or_else(|| tools.unknown(call))?;
    match tools.refusal(&turn.session, tool.as_ref(), &input) {
        Some(problem) => Err(problem),
        None => Ok((tool, input)),
    }
}

/// The call as people see it before it runs.
fn describe(turn: &Turn, item: &mut Item, input: Value, review: &Review) {
    let ItemKind::ToolCall(call) = &mut item.kind else { return };
    call.input = Some(input);
    call.summary = review.summary.clone();
    call.details = review.details.clone();
    subagents::name_session(&turn.session.id, item.id, &mut call.details);
    call.locations = review.locations.clone();
}

/// `Rejected`, or `Done` for a client that applies changes by itself (the draft protocol).
fn deny(turn: &Turn, mut item: Item, approval: &ApprovalDecision, review: &Review) -> Item {
    let ItemKind::ToolCall(call) = &mut item.kind else { return item };
    let client_applies = turn.editor.as_ref().is_some_and(|editor| editor.abilities.proposes_changes);
    if client_applies && approval.unasked && matches!(review.details, Some(Details::FileChange(_))) {
        call.manual_approval = true;
        let text = "This change was not applied: it is shown to the user as a proposal, to apply or not.";
        call.result = vec![Part::text(text)];
        advance(&mut item, ToolInput::Allowed);
        advance(&mut item, ToolInput::Finished);
        return item;
    }
    call.result = vec![Part::text(approval.message_for_model())];
    call.error = true;
    let by = match approval.unasked {
        _ if approval.by_hook => RejectedBy::Hook,
        true => RejectedBy::Unasked,
        false => RejectedBy::Policy,
    };
    advance(&mut item, ToolInput::Refused { by });
    item
}

/// Waits for the answer where a person is asked, and runs the tool where it may.
async fn decide_and_run(turn: &Turn, mut ready: ReadyCall) -> EndedCall {
    let mut relayed = ready.relayed.take();
    let ended = run_answered(turn, ready, relayed.as_mut()).await;
    if let Some(relayed) = relayed {
        relayed.end(&ended.0);
    }
    ended
}

async fn run_answered(turn: &Turn, mut ready: ReadyCall, relayed: Option<&mut RelayedCall>) -> EndedCall {
    let mut is_seen = false;
    if let Some(ask) = ready.ask.take() {
        let answered = asking::wait_for_answer(turn, &ready, ask, relayed).await;
        is_seen = answered.by_person;
        if !asking::apply_answer(turn, &mut ready, answered.answer) {
            return (ready.item, None);
        }
    }
    // A person who was asked has seen the call.
    ready.review.keeps_run_later &= !is_seen && !turn.session.taint().sources().is_empty();
    let ReadyCall { mut item, tool, review, .. } = ready;
    if turn.cancel.is_cancelled() {
        advance(&mut item, ToolInput::Stop);
        return (item, None);
    }
    let (mut item, summary) = execute(turn, item, tool.clone(), &review).await;
    hooks::after_call(turn, &mut item, tool.as_ref(), &review).await;
    (item, summary)
}

/// A call that leaves no trace: it may run while its intent is on the way to the disk, because a process that dies in
/// between has done nothing that somebody must know of.
fn is_repeatable(tool: &dyn Tool, item: &Item) -> bool {
    let starts_session = matches!(&item.kind, ItemKind::ToolCall(call)
        if matches!(call.details, Some(Details::Subagent { .. })));
    match tool.spec().effect {
        ToolEffect::Reads | ToolEffect::Previews => !starts_session,
        ToolEffect::WritesFiles | ToolEffect::UsesNetwork | ToolEffect::RunsCommands | ToolEffect::Other => {
            false
        }
    }
}

/// `Running`: the intent is on disk, then the tool runs.
async fn execute(turn: &Turn, mut item: Item, tool: Arc<dyn Tool>, review: &Review) -> EndedCall {
    advance(&mut item, ToolInput::Allowed);
    // On disk before the tool runs: the chat is marked even where the process dies before the result is there.
    turn.session.add_taint(&taint::of_call(tool.spec(), review, &item, turn.session.workspace.is_trusted));
    let intent = turn.session.commit(vec![Fact::ItemChanged { item: item.clone() }]);
    if !is_repeatable(tool.as_ref(), &item) && intent.on_disk().await.is_err() {
        advance(&mut item, ToolInput::Stop);
        return (item, None);
    }
    turn.session.show_progress("Calling tool");
    let ItemKind::ToolCall(call) = &item.kind else { return (item, None) };
    let input = call.input.clone().unwrap_or(Value::Null);
    let cancel = turn.cancel.child_token();
    let _running = turn.session.running_calls.begin(item.id, cancel.clone());
    let context = Arc::new(EngineToolContext::of_call(turn, item.id, &cancel));
    let recording = match undo::begin(turn, tool.spec().effect, review).await {
        Ok(recording) => recording,
        Err(problem) if unrecorded::is_allowed(context.as_ref(), &problem).await => None,
        Err(problem) => return (unrecorded::refuse(turn, item, &problem), None),
    };
    if turn.cancel.is_cancelled() {
        return (unrecorded::stop(item), None);
    }
    let keeps = review.contained || review.keeps_run_later;
    let changes = settling::Changes::new(turn, recording, keeps);
    let invocation = Invocation {
        item: item.id,
        input,
        scope: scope(turn),
        outside_allowed: !review.outside.is_empty(),
        contained: review.contained,
        keeps_run_later: keeps,
        run_later: changes.run_later().to_vec(),
        cancel: cancel.clone(),
        context: context.clone(),
    };
    let (since, effect) = (Instant::now(), tool.spec().effect);
    let mut result = run_guarded(turn, tool, invocation).await;
    let millis = since.elapsed().as_millis() as u64;
    let removed = changes.settle(context.take_continued(), review).await;
    result.iter_mut().for_each(|result| result.parts.extend(removed.clone().map(Part::text)));
    turn.session.add_taint(&taint::of_result(result.as_ref()));
    // A call that was over before the stop came has its result.
    let stopped = turn.cancel.is_cancelled() || (cancel.is_cancelled() && stopped_alone(&mut result, effect));
    let summary = set_result(&mut item, result, context.take_output(), millis, stopped);
    advance(&mut item, if stopped { ToolInput::Stop } else { ToolInput::Finished });
    (item, summary)
}

/// Gives the summary back that the tool wants in the place of the history.
fn set_result(
    item: &mut Item,
    result: Option<ToolResult>,
    live_output: String,
    millis: u64,
    stopped: bool,
) -> Option<String> {
    let ItemKind::ToolCall(call) = &mut item.kind else { return None };
    call.millis = millis;
    call.live_output = live_output;
    let Some(ToolResult { parts, error, details, locations, compact, taint: _ }) = result else {
        call.error = true;
        return None;
    };
    call.result = parts;
    call.error = error || stopped;
    call.details = details.or(call.details.take());
    if !locations.is_empty() {
        call.locations = locations;
    }
    compact
}

/// The one place where a call ends. A model that repeats itself learns of it in the result.
fn end(turn: &Turn, mut item: Item, loops: &mut LoopDetector) -> Repetition {
    let mut repetition = Repetition::None;
    if let ItemKind::ToolCall(call) = &mut item.kind {
        repetition = loops.observe(call);
        if repetition == Repetition::Warn {
            call.result.push(Part::text(REPEATED));
        }
        if !turn.model.info().id.starts_with("local/") {
            call.result.extend(nested_instructions::of_call(&turn.session, call));
        }
    }
    turn.session.commit(vec![Fact::ItemEnded { item }]);
    repetition
}

/// A call that makes no sense ends at once; its result says why.
fn end_with_problem(mut item: Item, problem: String) -> Prepared {
    if let ItemKind::ToolCall(call) = &mut item.kind {
        call.result = vec![Part::text(problem)];
        call.error = true;
        call.input.get_or_insert_with(input::empty);
    }
    advance(&mut item, ToolInput::Allowed);
    advance(&mut item, ToolInput::Finished);
    Prepared::Ended(item)
}

fn taint_of(turn: &Turn, call: &ReadyCall) -> Taint {
    taint::of_review(call.tool.spec(), &call.review, turn.session.workspace.is_trusted)
}
