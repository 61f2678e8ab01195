//! Prompts, targets and a readable form of events for all tests.

use std::sync::Arc;

use domain::item::ProviderBlock;
use domain::model::{BlockKind, ModelEvent, ModelInfo, Prompt, PromptEntry, StopReason};
use domain::tool_call::Origin;
use domain::{Part, ToolSpec};
use llm::Api;
use llm::format::{Dialect, Target, Thinking};
use serde_json::{Value, json};

pub(crate) fn tool(server: &str, name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        server: server.to_owned(),
        origin: Origin::Native,
        description: format!("Does {name}."),
        input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        effect: domain::tool::ToolEffect::Reads,
    }
}

pub(crate) fn tools() -> Arc<[ToolSpec]> {
    Arc::from(vec![tool("eca", "read_file"), tool("my server", "do.it")])
}

pub(crate) fn user(text: &str) -> PromptEntry {
    PromptEntry::User { parts: vec![Part::text(text)] }
}

pub(crate) fn prompt(text: &str) -> Prompt {
    Prompt {
        session: Some(domain::SessionId::new("session-1")),
        system: vec!["You are a test.".into(), "Be brief.".into()],
        tools: tools(),
        entries: vec![user(text)],
        ..Prompt::default()
    }
}

pub(crate) fn info() -> ModelInfo {
    ModelInfo {
        id: "fake/model".into(),
        context_limit: Some(200_000),
        output_limit: Some(64_000),
        tools: true,
        images: true,
        reasoning: true,
        ..ModelInfo::default()
    }
}

/// A target that can do everything, for the format.
pub(crate) fn with_target<T>(api: Api, id: &str, run: impl FnOnce(&Target) -> T) -> T {
    let budget = matches!(api, Api::Anthropic | Api::Bedrock);
    let thinking = if budget { Thinking::Budget } else { Thinking::Effort };
    let dialect = Dialect { cache_key: true, ..Dialect::PLAIN };
    let info = info();
    run(&Target { id, model: "model", info: &info, thinking, temperature: true, dialect })
}

/// One line for an event.
pub(crate) fn line(event: &ModelEvent) -> String {
    match event {
        ModelEvent::Waiting { text } => format!("waiting {text}"),
        ModelEvent::Warning { text } => format!("warning {text}"),
        ModelEvent::ImagesRefused => "images refused".to_owned(),
        ModelEvent::BlockStarted { block, kind } => match kind {
            BlockKind::Text => format!("start {block} text"),
            BlockKind::Reasoning => format!("start {block} reasoning"),
            BlockKind::ToolCall { call_id, name } => {
                let id =
                    if call_id.starts_with("call_") && call_id.len() == 21 { "(made up)" } else { call_id };
                format!("start {block} call {name} {id}")
            }
            BlockKind::Citation { title, url } => format!("start {block} citation {title} {url}"),
        },
        ModelEvent::BlockDelta { block, text } => format!("delta {block} {text:?}"),
        ModelEvent::BlockEnded { block, provider } => match provider {
            Some(ProviderBlock { data, .. }) => format!("end {block} {data}"),
            None => format!("end {block}"),
        },
        ModelEvent::Usage(tokens) => format!(
            "usage input {} read {} write {} output {} reasoning {}",
            tokens.input, tokens.cache_read, tokens.cache_write, tokens.output, tokens.reasoning
        ),
        ModelEvent::Ended { reason } => match reason {
            StopReason::Done => "ended done".to_owned(),
            StopReason::ToolCalls => "ended calls".to_owned(),
            StopReason::MaxTokens => "ended length".to_owned(),
            StopReason::Refused { reason } => format!("ended refused: {reason}"),
            StopReason::Cut { message } => format!("ended cut: {message}"),
        },
    }
}

/// All text of a kind of blocks.
pub(crate) fn text_of(events: &[ModelEvent]) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::BlockDelta { text, .. } => Some(text.as_str()),
            ModelEvent::Waiting { .. }
            | ModelEvent::Warning { .. }
            | ModelEvent::ImagesRefused
            | ModelEvent::BlockStarted { .. }
            | ModelEvent::BlockEnded { .. }
            | ModelEvent::Usage(_)
            | ModelEvent::Ended { .. } => None,
        })
        .collect()
}

/// The entries that an answer's events become in the next prompt.
pub(crate) fn entries(events: &[ModelEvent]) -> Vec<PromptEntry> {
    let mut open: Vec<(u32, BlockKind, String, Option<ProviderBlock>)> = Vec::new();
    for event in events {
        match event {
            ModelEvent::BlockStarted { block, kind } => {
                open.push((*block, kind.clone(), String::new(), None))
            }
            ModelEvent::BlockDelta { block, text } => {
                open.iter_mut().find(|(known, ..)| known == block).unwrap().2.push_str(text);
            }
            ModelEvent::BlockEnded { block, provider } => {
                open.iter_mut().find(|(known, ..)| known == block).unwrap().3 = provider.clone();
            }
            ModelEvent::Waiting { .. }
            | ModelEvent::Warning { .. }
            | ModelEvent::ImagesRefused
            | ModelEvent::Usage(_)
            | ModelEvent::Ended { .. } => {}
        }
    }
    open.into_iter()
        .filter_map(|(_, kind, text, provider)| match kind {
            BlockKind::Text => Some(PromptEntry::Agent { text, provider }),
            BlockKind::Reasoning => Some(PromptEntry::Reasoning { text, provider }),
            BlockKind::ToolCall { call_id, name } => {
                let input = serde_json::from_str(&text).unwrap_or(Value::String(text));
                Some(PromptEntry::Call { call_id, name, input, provider })
            }
            BlockKind::Citation { .. } => None,
        })
        .collect()
}
