//! The summary as the next message of the chat itself: the request is appended to what the provider has cached, with the same
//! instructions and tools, so only the request and the summary are paid in full.
//!
//! Invariant: nothing of it becomes part of the history but the summary.

use std::sync::Arc;

use domain::item::Part;
use domain::model::{BlockKind, ModelEvent, ModelStream, PromptEntry, StopReason};
use domain::{Failure, FailureKind};
use futures_util::StreamExt;

use super::limits::{MODEL_TIMEOUT, window};
use crate::completion::Used;
use crate::paid_call;
use crate::spending;
use crate::tool_search::ToolList;
use crate::turn::{Turn, images};

/// What is asked beside the request itself.
const ALONE: &str =
    "Do not go on with the work, do not answer the last request and call no tool: write the summary alone.";
/// The part of the window that the summary may need, as a divisor.
const ROOM: u64 = 16;

/// The summary; `None`: the window is too small for the chat and the request, or the model wrote none.
pub(super) async fn summarize(
    turn: &Turn,
    request: &str,
    used: &mut Used,
) -> Result<Option<String>, Failure> {
    let session = &turn.session;
    if session.decisions.is_recorded() {
        return Ok(None);
    }
    let info = turn.model.info();
    let tools = ToolList::new(turn.tools(), session, &info);
    let mut prompt = turn.prompt(&tools);
    // The request is in no later prompt, so its written form is not kept.
    (prompt.written, prompt.output_schema) = (None, None);
    if images::are_refused(session, &info.id).await {
        images::remove(&mut prompt);
    }
    prompt.entries.push(PromptEntry::User { parts: vec![Part::text(format!("{request}\n{ALONE}"))] });
    let tokens = spending::estimate_call(session, &prompt).tokens;
    if window(turn).is_some_and(|limit| tokens + limit / ROOM > limit) {
        return Ok(None);
    }
    spending::check_caps(session, &turn.limits, turn.cost_before).await?;
    let mut own = Used::of(&info);
    let model = Arc::clone(&turn.model);
    let call = async {
        let call = paid_call::reserve(&spending::gate(session), &info, &prompt).await?;
        read_summary(call.stream(model.stream(prompt)), &mut own).await
    };
    let answered = tokio::select! {
        answered = tokio::time::timeout(MODEL_TIMEOUT, call) => answered,
        () = turn.cancel.cancelled() => Ok(Err(Failure::user("Stopped."))),
    };
    used.add(own);
    match answered {
        Ok(Ok(summary)) => Ok(summary.filter(|text| !text.trim().is_empty())),
        // The transcript goes in parts, without tools and images.
        Ok(Err(failure)) if failure.is_too_long || failure.kind == FailureKind::Provider => Ok(None),
        Ok(Err(failure)) => Err(failure),
        Err(_) => {
            Err(Failure::provider(format!("The model gave no summary within {} s.", MODEL_TIMEOUT.as_secs())))
        }
    }
}

/// The whole text of an answer; `None`: the model went on with the work, or its text was cut off.
async fn read_summary(mut stream: ModelStream, used: &mut Used) -> Result<Option<String>, Failure> {
    let (mut text, mut blocks, mut is_whole) = (String::new(), Vec::new(), true);
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::BlockStarted { block, kind: BlockKind::Text } => blocks.push(block),
            ModelEvent::BlockStarted { kind: BlockKind::ToolCall { .. }, .. } => is_whole = false,
            ModelEvent::BlockDelta { block, text: more } if blocks.contains(&block) => text.push_str(&more),
            ModelEvent::Usage(tokens) => used.tokens = tokens,
            ModelEvent::Ended { reason } => is_whole &= reason == StopReason::Done,
            ModelEvent::BlockStarted { .. }
            | ModelEvent::BlockDelta { .. }
            | ModelEvent::BlockEnded { .. }
            | ModelEvent::Waiting { .. }
            | ModelEvent::Warning { .. }
            | ModelEvent::ImagesRefused => {}
        }
    }
    Ok(is_whole.then_some(text))
}
