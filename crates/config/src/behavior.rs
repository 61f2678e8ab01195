//! `agent.<name>`: the behaviors `agent` (in today's clients `code`) and `plan`, and the user's own.

use crate::approval::ApprovalRules;
use crate::cursor::Cursor;
use crate::lazy_text::LazyText;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct BehaviorSettings {
    /// Whether a user may choose it for a chat.
    pub primary: bool,
    /// Whether it works for other agents.
    pub subagent: bool,
    /// The agents that may start it; `None`: all may.
    pub spawnable_by: Option<Vec<String>>,
    /// What it is for.
    pub description: Option<String>,
    /// The last behavior that it inherits from.
    pub(crate) base: Option<String>,
    pub default_model: Option<String>,
    pub variant: Option<String>,
    pub disabled_tools: Vec<String>,
    pub max_steps: Option<u64>,
    /// What one task of it may cost, in US dollars.
    pub max_cost: Option<f64>,
    /// As a subagent it works in a git worktree of its own.
    pub worktree: bool,
    pub auto_compact_percentage: Option<u64>,
    pub auto_compact_tokens_left: Option<u64>,
    /// Beside the rules for all behaviors.
    pub approval: ApprovalRules,
    /// With the prompts for all behaviors where it has none of its own; `chat` is its system prompt.
    pub prompts: Prompts,
}

/// The user's own texts in place of the built-in ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompts {
    pub chat: Option<LazyText>,
    pub chat_title: Option<LazyText>,
    pub compact: Option<LazyText>,
    pub init: Option<LazyText>,
    pub skill_create: Option<LazyText>,
    pub completion: Option<LazyText>,
    pub next_edit: Option<LazyText>,
    pub rewrite: Option<LazyText>,
    /// Descriptions of tools by `tool` or `server__tool`.
    pub tools: Vec<(String, LazyText)>,
}

impl BehaviorSettings {
    pub(crate) fn read(cursor: &Cursor, approval: ApprovalRules, for_all: &Prompts) -> Self {
        let mut prompts = Prompts::read(&cursor.get("prompts")).or(for_all);
        prompts.chat = cursor.get("systemPrompt").prompt().or(prompts.chat);
        let names = |key| match cursor.get(key).value() {
            None => None,
            Some(serde_json::Value::String(name)) => Some(vec![name]),
            Some(_) => Some(cursor.get(key).texts()),
        };
        let roles = names("mode");
        Self {
            primary: roles.as_ref().is_none_or(|roles| roles.iter().any(|role| role == "primary")),
            subagent: roles.is_some_and(|roles| roles.iter().any(|role| role == "subagent")),
            spawnable_by: names("spawnableBy"),
            description: cursor.get("description").text(),
            base: None,
            default_model: cursor.get("defaultModel").text(),
            variant: cursor.get("variant").text(),
            disabled_tools: cursor.get("disabledTools").texts(),
            max_steps: cursor.get("maxSteps").number(1..=100_000),
            max_cost: cursor.get("maxCost").dollars(),
            worktree: cursor.get("worktree").flag().unwrap_or(false),
            auto_compact_percentage: cursor.get("autoCompactPercentage").number(1..=100),
            auto_compact_tokens_left: cursor.get("autoCompactTokensLeft").number(1..=u64::MAX),
            approval,
            prompts,
        }
    }
}

impl Prompts {
    pub(crate) fn read(cursor: &Cursor) -> Self {
        let entry = |entry: &Cursor| Some((entry.name().to_owned(), entry.prompt()?));
        Self {
            chat: cursor.get("chat").prompt(),
            chat_title: cursor.get("chatTitle").prompt(),
            compact: cursor.get("compact").prompt(),
            init: cursor.get("init").prompt(),
            skill_create: cursor.get("skillCreate").prompt(),
            completion: cursor.get("completion").prompt(),
            next_edit: cursor.get("nextEdit").prompt(),
            rewrite: cursor.get("rewrite").prompt(),
            tools: cursor.get("tools").entries().iter().filter_map(entry).collect(),
        }
    }

    /// Every text.
    pub fn all(&self) -> impl Iterator<Item = &LazyText> {
        let Self { chat, chat_title, compact, init, skill_create, completion, next_edit, rewrite, tools } =
            self;
        let texts = [chat, chat_title, compact, init, skill_create, completion, next_edit, rewrite];
        let texts = texts.into_iter().flatten();
        texts.chain(tools.iter().map(|(_, text)| text))
    }

    /// Whether a text has to be looked up in a file or by a command.
    pub fn needs_lookup(&self) -> bool {
        self.all().any(|text| text.known().is_none())
    }

    /// The description of a tool that the user wrote.
    pub fn tool(&self, name: &str, offered_name: &str) -> Option<&LazyText> {
        // The last one goes before those for all behaviors.
        let mut entries = self.tools.iter().rev();
        entries.find(|(tool, _)| tool == name || tool == offered_name).map(|(_, text)| text)
    }

    /// These prompts; the others fill the gaps.
    fn or(self, others: &Self) -> Self {
        Self {
            chat: self.chat.or_else(|| others.chat.clone()),
            chat_title: self.chat_title.or_else(|| others.chat_title.clone()),
            compact: self.compact.or_else(|| others.compact.clone()),
            init: self.init.or_else(|| others.init.clone()),
            skill_create: self.skill_create.or_else(|| others.skill_create.clone()),
            completion: self.completion.or_else(|| others.completion.clone()),
            next_edit: self.next_edit.or_else(|| others.next_edit.clone()),
            rewrite: self.rewrite.or_else(|| others.rewrite.clone()),
            tools: others.tools.iter().cloned().chain(self.tools).collect(),
        }
    }
}
