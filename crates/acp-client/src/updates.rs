//! `session/update` → [`AgentEvent`]. Pure.
//!
//! Invariant: an update that is not understood is left out and never an error, because agents are of many versions.

use domain::agent::{AgentEvent, AgentUsage};
use domain::item::{Part, PlanEntry, PlanStatus};
use domain::model::{StopReason, Tokens};
use serde_json::Value;

use crate::call_updates::{self, TerminalText, cut};
use crate::wire::{PromptResult, UsageResult};

const MOST_PLAN: usize = 500;
const MOST_ENTRY: usize = 4_000;

/// `None`: the update says nothing that is shown or kept.
pub(crate) fn event(update: &Value, terminal: TerminalText<'_>) -> Option<AgentEvent> {
    match update["sessionUpdate"].as_str()? {
        "agent_message_chunk" => text_of(&update["content"]).map(|text| AgentEvent::Text { text }),
        "agent_thought_chunk" => text_of(&update["content"]).map(|text| AgentEvent::Thought { text }),
        "tool_call" | "tool_call_update" => {
            call_updates::call(update, terminal).map(|call| AgentEvent::Call(Box::new(call)))
        }
        "plan" => Some(AgentEvent::Plan { entries: plan(&update["entries"]) }),
        "usage_update" => usage(update).map(AgentEvent::Usage),
        "current_mode_update" => {
            let mode = cut(update["currentModeId"].as_str()?, 100);
            Some(AgentEvent::Notice { text: format!("The agent works in its mode {mode} now.") })
        }
        // The prompt as we sent it, and lists that change nothing in the chat.
        _ => None,
    }
}

fn text_of(content: &Value) -> Option<String> {
    match call_updates::block(content)? {
        Part::Text { text } => Some(text),
        Part::Image { .. } => Some("(an image)".to_owned()),
    }
}

fn plan(entries: &Value) -> Vec<PlanEntry> {
    let entries = entries.as_array().into_iter().flatten();
    let entry = |entry: &Value| {
        let status = match entry["status"].as_str() {
            Some("completed") => PlanStatus::Done,
            Some("in_progress") => PlanStatus::InProgress,
            _ => PlanStatus::Pending,
        };
        let priority = entry["priority"].as_str().map(|priority| cut(priority, 20));
        Some(PlanEntry { text: cut(entry["content"].as_str()?, MOST_ENTRY), status, priority })
    };
    entries.filter_map(entry).take(MOST_PLAN).collect()
}

fn usage(update: &Value) -> Option<AgentUsage> {
    let cost = &update["cost"];
    let is_dollars = cost["currency"].as_str().is_none_or(|currency| currency == "USD");
    let amount = cost["amount"].as_f64().filter(|amount| is_dollars && amount.is_finite() && *amount >= 0.0);
    Some(AgentUsage {
        used: update["used"].as_u64()?,
        window: update["size"].as_u64().unwrap_or(0),
        cost: amount,
    })
}

/// How a prompt ended.
pub(crate) fn end(result: PromptResult) -> AgentEvent {
    let reason = match result.stop_reason.as_str() {
        "max_tokens" => StopReason::MaxTokens,
        "refusal" => StopReason::Refused { reason: "The agent refused to go on.".to_owned() },
        "max_turn_requests" => StopReason::Cut {
            message: "The agent reached its own limit of requests for one prompt.".to_owned(),
        },
        "cancelled" => StopReason::Cut { message: "The agent stopped on its own.".to_owned() },
        _ => StopReason::Done,
    };
    AgentEvent::Ended { reason, tokens: result.usage.map(tokens) }
}

fn tokens(usage: UsageResult) -> Tokens {
    Tokens {
        input: usage.input_tokens,
        cache_read: usage.cached_read_tokens.unwrap_or(0),
        cache_write: usage.cached_write_tokens.unwrap_or(0),
        output: usage.output_tokens,
        reasoning: usage.thought_tokens.unwrap_or(0).min(usage.output_tokens),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(update: Value) -> String {
        event(&update, &|_| None).map_or("nothing".to_owned(), |event| format!("{event:?}"))
    }

    #[test]
    fn every_kind_of_update_is_read() {
        let text = json!({"type": "text", "text": "hi"});
        for (update, expected) in [
            (json!({"sessionUpdate": "agent_message_chunk", "content": text}), "Text { text: \"hi\" }"),
            (json!({"sessionUpdate": "agent_thought_chunk", "content": text}), "Thought { text: \"hi\" }"),
            (json!({"sessionUpdate": "user_message_chunk", "content": text}), "nothing"),
            (json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram"}}), "nothing"),
            (json!({"sessionUpdate": "tool_call"}), "nothing"),
            (json!({"sessionUpdate": "of_another_century"}), "nothing"),
            (json!({"content": text}), "nothing"),
        ] {
            assert_eq!(shown(update.clone()), expected, "{update}");
        }
        let plan = json!({"sessionUpdate": "plan", "entries": [{"content": "a", "status": "completed", "priority": "high"}, {"x": 1}]});
        assert!(shown(plan).contains("text: \"a\", status: Done"));
        let usage = json!({"sessionUpdate": "usage_update", "used": 5, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}});
        assert!(shown(usage).contains("used: 5, window: 100, cost: Some(0.5)"));
        let euros = json!({"sessionUpdate": "usage_update", "used": 5, "size": 100, "cost": {"amount": 0.5, "currency": "EUR"}});
        assert!(
            shown(euros).contains("cost: None"),
            "an amount in another currency is not taken for dollars"
        );
    }
}
