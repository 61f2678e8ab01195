//! Hooks around prompts, answers and compactions.

use std::sync::atomic::Ordering;

use config::{Hook, HookEvent, HookMatcher};
use domain::Failure;
use domain::event::Fact;
use domain::item::{ItemKind, Part};
use serde_json::{Map, Value, json};

use super::{HookScope, hooks_of};
use crate::turn::Turn;

fn fields(value: Value) -> Map<String, Value> {
    if let Value::Object(fields) = value { fields } else { Map::new() }
}

/// Hooks before a prompt goes to the model: `chatStart` at the first prompt of this process, then `preRequest`. Gives
/// the message back as it goes on, or why it does not.
pub(crate) async fn open_request(
    turn: &Turn,
    text: &str,
    mut parts: Vec<Part>,
) -> Result<Vec<Part>, Failure> {
    let session = &turn.session;
    let scope = HookScope::of(turn, 0, None);
    if !session.hooks_started.swap(true, Ordering::Relaxed) {
        let (parent, resumed) = {
            let state = session.state();
            (state.parent().cloned(), state.has_user_message())
        };
        let (event, input) = match parent {
            Some(parent) if session.is_subagent() => {
                (HookEvent::SubagentStart, json!({"parent_chat_id": parent.as_str()}))
            }
            _ => (HookEvent::ChatStart, json!({"resumed": resumed})),
        };
        let effects = scope.run(hooks_of(&session.workspace, event), fields(input)).await;
        parts.extend(effects.context_texts().map(Part::text));
        if let Some(why) = effects.stop {
            return Err(Failure::user(why));
        }
    }
    let hooks = hooks_of(&session.workspace, HookEvent::PreRequest);
    let effects = scope.run(hooks, fields(json!({"prompt": text}))).await;
    if let Some(why) = effects.stop {
        return Err(Failure::user(why));
    }
    if let Some((name, why)) = &effects.intervened {
        return Err(Failure::user(format!("Request blocked by hook '{name}': {why}")));
    }
    if let Some(prompt) = &effects.replaced_prompt {
        // What a command or a server wrote stays as it is.
        for part in parts.iter_mut().filter(|part| **part == Part::text(text)) {
            *part = Part::text(prompt.clone());
        }
    }
    parts.extend(effects.context_texts().map(Part::text));
    Ok(parts)
}

/// Hooks after the last answer of a turn. Gives the text back that the turn goes on with.
pub(crate) async fn after_request(turn: &Turn, step: u32) -> Result<Option<String>, Failure> {
    let session = &turn.session;
    super::report_unseen(session);
    let mut hooks = hooks_of(&session.workspace, HookEvent::PostRequest);
    if session.is_subagent() {
        hooks.extend(hooks_of(&session.workspace, HookEvent::SubagentPostRequest));
    }
    if hooks.is_empty() {
        return Ok(None);
    }
    let mut input = fields(json!({
        "response": last_answer(turn),
        "follow_up_active": turn.hooks.follow_up.load(Ordering::Relaxed),
    }));
    let parent = session.state().parent().cloned();
    if let Some(parent) = parent.filter(|_| session.is_subagent()) {
        input.insert("parent_chat_id".into(), parent.as_str().into());
    }
    let effects = HookScope::of(turn, step, None).run(hooks, input).await;
    if let Some(why) = effects.stop {
        return Err(Failure::user(why));
    }
    let intervened = effects.intervened.map(|(_, text)| text).filter(|text| !text.is_empty());
    let texts: Vec<String> = effects.follow_ups.into_iter().chain(intervened).collect();
    if texts.is_empty() {
        return Ok(None);
    }
    turn.hooks.follow_up.store(true, Ordering::Relaxed);
    Ok(Some(texts.join("\n\n")))
}

/// The last text of the model in a turn.
pub(crate) fn last_answer(turn: &Turn) -> String {
    let state = turn.session.state();
    let answers = state.items().iter().rev().filter(|item| item.turn == turn.id);
    let text = |kind: &ItemKind| {
        if let ItemKind::AgentMessage { text, .. } = kind { Some(text.clone()) } else { None }
    };
    answers.filter_map(|item| text(&item.kind)).next().unwrap_or_default()
}

/// Whether the chat may be compacted; an error ends the turn.
pub(crate) async fn before_compaction(
    turn: &Turn,
    wish: Option<&str>,
    trigger: &str,
) -> Result<bool, Failure> {
    let hooks = compaction_hooks(turn, HookEvent::PreCompact, trigger);
    if hooks.is_empty() {
        return Ok(true);
    }
    let input = json!({"triggered": trigger, "custom_instructions": wish.unwrap_or_default()});
    let effects = HookScope::of(turn, last_step(turn), None).run(hooks, fields(input)).await;
    if let Some(why) = effects.stop {
        return Err(Failure::user(why));
    }
    let Some((name, _)) = effects.intervened else { return Ok(true) };
    turn.hooks.compaction_blocked.store(true, Ordering::Relaxed);
    let text = format!("Compaction blocked by hook '{name}'.");
    let item = turn.session.new_item(turn.id, last_step(turn), ItemKind::SystemText { text });
    turn.session.commit(vec![Fact::ItemEnded { item }]);
    Ok(false)
}

/// The summary with what hooks add to it. A hook that stops the turn does so after the summary is in its place.
pub(crate) async fn after_compaction(turn: &Turn, mut summary: String, trigger: &str) -> String {
    let hooks = compaction_hooks(turn, HookEvent::PostCompact, trigger);
    if hooks.is_empty() {
        return summary;
    }
    let input = json!({"triggered": trigger, "compact_summary": summary});
    let effects = HookScope::of(turn, last_step(turn), None).run(hooks, fields(input)).await;
    for text in effects.context_texts() {
        summary.push_str("\n\n");
        summary.push_str(&text);
    }
    if let Some(why) = effects.stop {
        turn.hooks.stop(why);
    }
    summary
}

fn compaction_hooks<'t>(turn: &'t Turn, event: HookEvent, trigger: &str) -> Vec<&'t Hook> {
    let mut hooks = hooks_of(&turn.session.workspace, event);
    hooks.retain(|hook| match &hook.matcher {
        HookMatcher::Pattern(pattern) => pattern == trigger,
        HookMatcher::All | HookMatcher::Rules(_) => true,
    });
    hooks
}

fn last_step(turn: &Turn) -> u32 {
    turn.session.state().items().last().map_or(0, |item| item.step)
}
