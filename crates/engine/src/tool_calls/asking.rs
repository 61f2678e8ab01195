//! The question about one call: how it is raised, who answers it, and what the answer does.
//!
//! Must not know what the call does. Invariants: an answer for the rest of the session settles every open question that it
//! covers, by the same decision that raised the question; an approval that covers one call alone is never remembered.

use std::sync::atomic::{AtomicBool, Ordering};

use domain::event::Fact;
use domain::item::{Item, ItemKind, Part};
use domain::tool::{Review, Tool};
use domain::tool_call::{RejectedBy, ToolInput};
use domain::{Answer, Ask, AskKind, CancellationToken, Failure};
use futures_util::future::join3;
use serde_json::Value;
use session::asks::PendingAsk;

use super::approval::{ApprovalDecision, Decision, rememberable};
use super::case::{decide, scope};
use super::ready_call::{REJECTED_WITH_REASON, ReadyCall, advance};
use super::reviewer::{self, Looked};
use crate::subagents::relay::{self, RelayedCall};
use crate::turn::Turn;

/// A person is asked, unless a reviewer allows the call.
pub(super) async fn ask(
    turn: &Turn,
    ready: ReadyCall,
    approval: ApprovalDecision,
) -> Result<ReadyCall, Failure> {
    let reason = match reviewer::look_at(turn, &ready, &approval).await {
        Some(Looked::Allows) => return Ok(ready),
        Some(Looked::Leaves(why)) => format!("{} {why}", approval.reason),
        None => approval.reason,
    };
    raise(turn, ready, reason).await
}

/// `Waiting`: a person is asked.
async fn raise(turn: &Turn, mut ready: ReadyCall, reason: String) -> Result<ReadyCall, Failure> {
    let pending = turn.session.asks.wait_for(turn.session.log.next_ask());
    let id = pending.id;
    if let ItemKind::ToolCall(call) = &mut ready.item.kind {
        call.manual_approval = true;
    }
    advance(&mut ready.item, ToolInput::MustAsk { ask: id });
    let item = &ready.item;
    let keys = if ready.once { Vec::new() } else { keys_of(item, ready.tool.as_ref(), &ready.review) };
    let kind = AskKind::Approval { reason, keys };
    let ask = Ask { id, turn: turn.id, item: Some(item.id), kind: kind.clone() };
    pending.raise(&turn.session, ask, vec![Fact::ItemChanged { item: item.clone() }]).await?;
    ready.relayed = relay::raise_call(&turn.session, item, kind).await?;
    ready.ask = Some(pending);
    Ok(ready)
}

/// Exactly what an approval for the rest of the session covers.
fn keys_of(item: &Item, tool: &dyn Tool, review: &Review) -> Vec<String> {
    rememberable(tool.spec(), input_of(item), review)
}

fn input_of(item: &Item) -> &Value {
    let ItemKind::ToolCall(call) = &item.kind else { return &Value::Null };
    call.input.as_ref().unwrap_or(&Value::Null)
}

/// The answer to a question.
pub(super) struct Answered {
    pub(super) answer: Answer,
    /// A person has seen the question; else an answer to another one settled it.
    pub(super) by_person: bool,
}

/// The answer may be given in the chat of a subagent's parent, or by an answer to another question that holds for the rest of
/// the session.
pub(super) async fn wait_for_answer(
    turn: &Turn,
    ready: &ReadyCall,
    ask: PendingAsk,
    relayed: Option<&mut RelayedCall>,
) -> Answered {
    let (id, settled) = (ask.id, turn.cancel.child_token());
    let is_remembered = AtomicBool::new(false);
    let own = async {
        let answer = ask.answer(&turn.session, &turn.cancel).await;
        settled.cancel();
        answer
    };
    let of_parent = async {
        if let Some(relayed) = relayed {
            let answer = relayed.answer(&settled).await;
            turn.session.asks.settle(id, answer);
        }
    };
    let remembered = async {
        if let Some(answer) = remembered_answer(turn, ready, &settled).await {
            is_remembered.store(turn.session.asks.settle_open(id, answer), Ordering::Relaxed);
        }
    };
    let (answer, (), ()) = join3(own, of_parent, remembered).await;
    Answered { answer, by_person: !is_remembered.load(Ordering::Relaxed) }
}

/// Waits until what a person allowed or refused for the session settles this question too. `None`: it was settled before.
async fn remembered_answer(turn: &Turn, ready: &ReadyCall, settled: &CancellationToken) -> Option<Answer> {
    let mut changes = turn.session.remembered_changes();
    let ReadyCall { item, tool, review, hook, taint, .. } = ready;
    loop {
        // What the question was raised with, and what the chat has read since.
        let mut taint = taint.clone();
        taint.merge(&turn.session.taint());
        let now = decide(turn, item.id, tool.as_ref(), input_of(item), review, hook.clone(), &taint);
        match now.decision {
            Decision::Allow => return Some(Answer::Allow { remember: false }),
            Decision::Deny => return Some(Answer::Deny { remember: false, reason: None }),
            Decision::Ask => {}
        }
        tokio::select! {
            changed = changes.changed() => changed.ok()?,
            () = settled.cancelled() => return None,
        }
    }
}

/// True where the call may run.
pub(super) fn apply_answer(turn: &Turn, ready: &mut ReadyCall, answer: Answer) -> bool {
    let ReadyCall { item, tool, review, once, .. } = ready;
    match answer {
        Answer::Allow { remember } => {
            if remember && !*once {
                if review.must_ask.is_none() {
                    tool.remember(&review.keys, &scope(turn));
                }
                let keys = keys_of(item, tool.as_ref(), review);
                turn.session.change_remembered(|remembered| remembered.add(&keys));
            }
            return true;
        }
        Answer::Deny { remember, reason } => {
            if remember {
                turn.session.change_remembered(|remembered| remembered.deny(tool.spec()));
            }
            if let ItemKind::ToolCall(call) = &mut item.kind {
                let text = match reason {
                    Some(reason) => format!("{REJECTED_WITH_REASON}{reason}"),
                    None => {
                        "The user rejected this call. Do not try it again; ask or go on without it.".into()
                    }
                };
                call.result = vec![Part::text(text)];
                call.error = true;
            }
            advance(item, ToolInput::Refused { by: RejectedBy::User });
        }
        Answer::Text { .. } | Answer::Form { .. } | Answer::Cancelled => advance(item, ToolInput::Stop),
    }
    false
}
