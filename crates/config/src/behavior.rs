//! `agent.<name>`: the behaviors `agent` (in today's clients `code`) and `plan`, and the user's own.

use crate::approval::ApprovalRules;
use crate::cursor::Cursor;
use crate::lazy_text::LazyText;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct BehaviorSettings {
    /// Whether a user may choose it for a chat.
    pub primary: bool,
    /// Whether another behavior may start it for a task.
    pub subagent: bool,
    pub description: Option<LazyText>,
    pub system_prompt: Option<LazyText>,
    pub default_model: Option<String>,
    pub variant: Option<String>,
    pub disabled_tools: Vec<String>,
    pub max_steps: Option<u64>,
    pub auto_compact_percentage: Option<u64>,
    /// Beside the rules for all behaviors.
    pub approval: ApprovalRules,
    pub prompts: Prompts,
}

/// The user's own texts in place of ours.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompts {
    pub chat: Option<LazyText>,
    pub chat_title: Option<LazyText>,
    pub compact: Option<LazyText>,
    pub init: Option<LazyText>,
    pub completion: Option<LazyText>,
    pub rewrite: Option<LazyText>,
    /// Descriptions of tools by their names.
    pub tools: Vec<(String, LazyText)>,
}

impl BehaviorSettings {
    pub(crate) fn read(cursor: &Cursor, approval: ApprovalRules) -> Self {
        let prompts = Prompts::read(&cursor.get("prompts"));
        let roles = match cursor.get("mode").value() {
            None => None,
            Some(serde_json::Value::String(mode)) => Some(vec![mode]),
            Some(_) => Some(cursor.get("mode").texts()),
        };
        let plays = |role: &str| roles.as_ref().is_none_or(|roles| roles.iter().any(|name| name == role));
        Self {
            primary: plays("primary"),
            subagent: plays("subagent"),
            description: cursor.get("description").prompt(),
            system_prompt: cursor.get("systemPrompt").prompt().or_else(|| prompts.chat.clone()),
            default_model: cursor.get("defaultModel").text(),
            variant: cursor.get("variant").text(),
            disabled_tools: cursor.get("disabledTools").texts(),
            max_steps: cursor.get("maxSteps").number(1..=100_000),
            auto_compact_percentage: cursor.get("autoCompactPercentage").number(1..=100),
            approval,
            prompts,
        }
    }
}

impl Prompts {
    pub(crate) fn read(cursor: &Cursor) -> Self {
        let named = |entry: &Cursor| Some((entry.name().to_owned(), entry.prompt()?));
        Self {
            chat: cursor.get("chat").prompt(),
            chat_title: cursor.get("chatTitle").prompt(),
            compact: cursor.get("compact").prompt(),
            init: cursor.get("init").prompt(),
            completion: cursor.get("completion").prompt(),
            rewrite: cursor.get("rewrite").prompt(),
            tools: cursor.get("tools").entries().iter().filter_map(named).collect(),
        }
    }
}
