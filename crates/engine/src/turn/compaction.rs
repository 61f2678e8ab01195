//! A long history in few words: the model writes the summary, and code keeps word for word what must not be lost.
//!
//! Invariants: the journal keeps the whole; only what the model is sent gets shorter; the summary covers the whole history,
//! asked for at the end of the chat itself, or of a transcript in parts where the window is too small; the request that is being answered stays whole, with everything that the user
//! attached to it.

pub(crate) mod clearing;
mod kept;
mod limits;
mod prefix;
pub(crate) mod transcript;

use std::collections::VecDeque;

use domain::command::Completion;
use domain::event::Fact;
use domain::item::{Item, ItemKind};
use domain::model::{ModelInfo, Tokens};
use domain::{Failure, TurnId};

use limits::{LEAST_PART, MODEL_TIMEOUT, part_size, window};

use super::{Turn, prompt};
use crate::completion::{self, Used};
use crate::context_use::{self, Estimate};
use crate::hooks;
use crate::own_text::own_text;
use crate::session::Session;
use crate::spending;

/// The request for a summary, unless the settings have another.
const REQUEST: &str = "Summarize this conversation between a user and a coding assistant so that the assistant can go \
    on from your summary alone: what the user wants and forbids, what was decided and why, what was done in which files, \
    which tasks are open, what is left. Be exact with names and paths. Leave out pleasantries.";
/// What is added where a conversation is too long for one request.
const IN_PARTS: &str = "The conversation is too long for one request and comes in parts. You get the summary of the parts \
    before and the next part: write one summary of everything so far, and lose nothing of the summary that you get.";

/// Whether the context window is nearly full after the last answer.
pub(crate) fn is_due(session: &Session, model: &ModelInfo) -> bool {
    if let Some(is_due) = session.decisions.is_compaction_due() {
        return is_due;
    }
    let used = session.state().usage().last.all();
    used > 0 && is_full(session, model, used) && items_to_replace(session) > 2
}

/// Whether the next request would not fit, by an estimate of its tokens.
pub(super) fn is_due_for(session: &Session, turn: TurnId, model: &ModelInfo, estimate: Estimate) -> bool {
    let Some(limit) = model.context_limit.filter(|limit| *limit > 0) else { return false };
    // An estimate by lengths alone may be too high.
    let most = match estimate.is_counted {
        true => room(session, limit),
        false => limit,
    };
    // A summary cannot make room for a request that is too long without any history.
    estimate.has_too_long_history(most)
        && estimate.without_history(request_length(session, turn)) < limit
        && is_possible(session, turn)
}

/// Whether there is something that a summary can take the place of, beside the request itself.
pub(super) fn is_possible(session: &Session, turn: TurnId) -> bool {
    let state = session.state();
    let mut since =
        state.items().iter().rev().take_while(|item| !matches!(item.kind, ItemKind::Compaction { .. }));
    session.decisions.measures_requests()
        && since.any(|item| match &item.kind {
            ItemKind::UserMessage { .. } => item.turn != turn,
            ItemKind::AgentMessage { .. } | ItemKind::Reasoning { .. } | ItemKind::ToolCall(_) => true,
            ItemKind::Citation { .. }
            | ItemKind::Compaction { .. }
            | ItemKind::Command { .. }
            | ItemKind::SystemText { .. }
            | ItemKind::Hook(_)
            | ItemKind::Note(_)
            | ItemKind::Flag { .. } => false,
        })
}

/// The bytes of the messages that are being answered, which a compaction keeps.
fn request_length(session: &Session, turn: TurnId) -> u64 {
    let state = session.state();
    let messages = state.items().iter().filter(|item| item.turn == turn).filter_map(|item| {
        let ItemKind::UserMessage { parts, .. } = &item.kind else { return None };
        Some(context_use::parts_length(parts))
    });
    messages.sum()
}

fn is_full(session: &Session, model: &ModelInfo, used: u64) -> bool {
    let Some(limit) = model.context_limit.filter(|limit| *limit > 0) else { return false };
    used >= room(session, limit)
}

/// The tokens of a window that may be filled.
fn room(session: &Session, window: u64) -> u64 {
    let (settings, behavior) = (&session.workspace.settings, session.behavior());
    let left = settings.auto_compact_tokens_left(&behavior);
    room_by(window, settings.auto_compact_percentage(&behavior), left)
}

fn room_by(window: u64, percentage: u64, left: Option<u64>) -> u64 {
    let by_percentage = window.saturating_mul(percentage) / 100;
    left.map_or(by_percentage, |left| by_percentage.min(window.saturating_sub(left)).max(1))
}

/// The items since the last compaction.
fn items_to_replace(session: &Session) -> usize {
    let state = session.state();
    let since = state.items().iter().rev();
    since.take_while(|item| !matches!(item.kind, ItemKind::Compaction { .. })).count()
}

/// Asks the model for a summary and puts it in the place of the history.
/// `trigger`: `manual` or `auto`, for hooks.
pub(crate) async fn run(turn: &Turn, wish: Option<&str>, trigger: &str) -> Result<(), Failure> {
    if !hooks::before_compaction(turn, wish, trigger).await? {
        return Ok(());
    }
    turn.session.show_progress("Compacting the chat");
    let own = own_text(turn.session.prompts().compact.as_ref());
    let mut request = own.unwrap_or_else(|| REQUEST.to_owned());
    if let Some(wish) = wish {
        request.push_str("\nThe user adds: ");
        request.push_str(wish);
    }
    let mut used = Used::default();
    let summary = match prefix::summarize(turn, &request, &mut used).await {
        Ok(Some(summary)) => Ok(summary),
        Ok(None) => summarize(turn, &request, &mut used).await,
        Err(failure) => Err(failure),
    };
    used.record(&turn.session, "compact", summary.is_ok());
    finish(turn, summary?, trigger).await
}

/// The summary of a transcript in parts. Each request has the summary of the parts before it.
async fn summarize(turn: &Turn, request: &str, used: &mut Used) -> Result<String, Failure> {
    let entries = prompt::entries(&turn.session.state(), false);
    let mut left = VecDeque::from(transcript::parts(&entries, part_size(window(turn))));
    let (mut summary, mut done) = (String::new(), 0);
    while let Some(part) = left.pop_front() {
        let spent = used.cost().unwrap_or(0.0);
        spending::check_caps_beside(&turn.session, &turn.limits, turn.cost_before, spent).await?;
        let is_whole = done == 0 && left.is_empty();
        if !is_whole {
            let text = format!("Compacting the chat, part {} of {}", done + 1, done + 1 + left.len());
            turn.session.show_progress(text);
        }
        let (system, message) = match is_whole {
            true => (request.to_owned(), part.clone()),
            false => (format!("{request}\n{IN_PARTS}"), with_summary(&summary, &part)),
        };
        match ask(turn, system, message, used).await {
            // A model that says nothing about a part must not make it forget those before.
            Ok(text) if text.trim().is_empty() && !summary.is_empty() => done += 1,
            Ok(text) => {
                summary = text;
                done += 1;
            }
            Err(failure) if failure.is_too_long && part.len() > LEAST_PART => {
                for half in transcript::halves(&part).into_iter().rev() {
                    left.push_front(half);
                }
            }
            Err(failure) => return Err(Failure { is_too_long: false, ..failure }),
        }
    }
    if summary.trim().is_empty() {
        return Err(Failure::provider("The model wrote no summary, so the chat is as before.")
            .hint("Compact it again, or choose another model."));
    }
    Ok(summary)
}

fn with_summary(summary: &str, part: &str) -> String {
    if summary.is_empty() {
        return part.to_owned();
    }
    format!("Summary of the parts before:\n{summary}\n\nThe next part of the conversation:\n{part}")
}

async fn ask(turn: &Turn, system: String, message: String, used: &mut Used) -> Result<String, Failure> {
    let completion = Completion {
        purpose: "compact".into(),
        system,
        messages: vec![message],
        output_schema: None,
        middle: None,
        model: Some(turn.model.info().id),
        no_local: false,
        deadline: MODEL_TIMEOUT,
        gate: spending::gate(&turn.session),
    };
    let models = turn.session.workspace.models.clone();
    let mut own = Used::default();
    let completed = tokio::select! {
        completed = completion::run(models.as_ref(), completion, None, &mut own) => completed,
        () = turn.cancel.cancelled() => Err(Failure::user("Stopped.")),
    };
    used.add(own);
    completed.map(|completed| completed.text)
}

/// The same with a summary that the model wrote by itself.
pub(crate) async fn replace_by(turn: &Turn, summary: String, trigger: &str) -> Result<(), Failure> {
    if hooks::before_compaction(turn, None, trigger).await? {
        finish(turn, summary, trigger).await?;
    }
    Ok(())
}

async fn finish(turn: &Turn, summary: String, trigger: &str) -> Result<(), Failure> {
    let summary = hooks::after_compaction(turn, summary, trigger).await;
    replace_history(turn, summary);
    // The next request is read anew anyway, so it has the instructions as they are now.
    turn.instructions.forget();
    turn.hooks.stopped().map_or(Ok(()), Err)
}

/// Puts a summary in the place of the history. The context window counts as empty until the next call.
fn replace_history(turn: &Turn, summary: String) {
    let id = turn.session.log.next_item();
    turn.session.account.break_prefix("compaction");
    let window = window(turn);
    let budget = kept::budget(window);
    turn.session.commit_with(|state| {
        let step = state.items().last().map_or(0, |item| item.step);
        let kind = ItemKind::Compaction { summary, kept: kept::parts(state.items(), turn.id, budget) };
        let item = Item { id, turn: turn.id, step, parent: None, kind };
        let mut usage = state.usage().clone();
        usage.last = Tokens::default();
        usage.context = None;
        // What was kept depends on it, and a replay has it from here.
        usage.context_limit = window.or(usage.context_limit);
        vec![Fact::ItemEnded { item }, Fact::UsageChanged { usage }]
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_is_full_by_its_share_or_by_what_is_left() {
        for (window, percentage, left, room) in [
            (100_000, 80, None, 80_000),
            (100_000, 80, Some(5_000), 80_000),
            (20_000, 80, Some(5_000), 15_000),
            (4_000, 80, Some(5_000), 1),
        ] {
            assert_eq!(room_by(window, percentage, left), room, "{window} {percentage} {left:?}");
        }
    }

    #[test]
    fn a_part_leaves_room_in_the_window() {
        for (window, bytes) in [
            (None, 400_000),
            (Some(100), 4_000),
            (Some(32_768), 78_643),
            (Some(200_000), 400_000),
            (Some(u64::MAX), 400_000),
        ] {
            assert_eq!(part_size(window), bytes, "{window:?}");
        }
    }
}
