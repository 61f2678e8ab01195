//! The shape of `agent.<name>` and `prompts`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::tool_call::AgentToolCallSection;

/// One behavior.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Agent {
    /// Another behavior whose settings hold where this one sets nothing. A behavior that inherits from `plan` changes
    /// nothing either.
    #[schemars(extend("examples" = ["plan"]))]
    inherit: String,
    /// `primary`: it can be chosen for a chat. `subagent`: other agents start it for a task. A list may name both;
    /// without it a behavior is primary.
    #[schemars(extend("default" = "primary"), extend("examples" = ["subagent"]))]
    mode: AgentMode,
    /// The agents that may start this one as a subagent, one name or a list; without it all may.
    #[schemars(extend("examples" = [["code"]]))]
    spawnable_by: AgentNames,
    /// The system prompt, in place of the built-in one.
    #[schemars(extend("examples" = ["${file:review.md}"]))]
    system_prompt: String,
    /// The model of chats with this behavior that have chosen none.
    #[schemars(extend("examples" = ["anthropic/claude-opus-4-5"]))]
    default_model: String,
    /// The variant of the model for chats with this behavior that have chosen none.
    #[schemars(extend("examples" = ["high"]))]
    variant: String,
    /// Tools that are not offered with this behavior, beside those that are never offered.
    #[schemars(extend("examples" = [["shell_command"]]))]
    disabled_tools: Vec<String>,
    /// How many answers of the model one prompt may take with this behavior.
    #[schemars(range(min = 1, max = 100_000), extend("examples" = [25]))]
    max_steps: u64,
    /// What one task of this subagent may cost, in US dollars. The limits of the chat that starts it hold as well.
    #[schemars(extend("examples" = [0.5]))]
    max_cost: f64,
    /// As a subagent it works in a git worktree of its own, at the last commit. A worktree without work that would be
    /// lost is removed afterwards.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    worktree: bool,
    /// How full the context window may get, in percent, before a chat with this behavior is summarized.
    #[schemars(range(min = 1, max = 100), extend("examples" = [60]))]
    auto_compact_percentage: u64,
    /// How many tokens must be left in the context window; with fewer, a chat with this behavior is summarized too.
    #[schemars(range(min = 1), extend("examples" = [20_000]))]
    auto_compact_tokens_left: u64,
    /// Patterns of tools that are found by a search; `toolCall.toolSearch` is supported for all behaviors.
    #[schemars(extend("x-unsupported" = true))]
    mcp_tool_search: Map<String, Value>,
    /// Approval rules for this behavior, beside those for all.
    tool_call: AgentToolCallSection,
    /// Texts for this behavior. `chat` is its system prompt.
    prompts: PromptTexts,
    /// What the behavior is for. An agent chooses its subagents by it.
    #[schemars(extend("examples" = ["reviews a change for mistakes"]))]
    description: String,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum AgentNames {
    One(String),
    Several(Vec<String>),
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum AgentMode {
    One(AgentRole),
    Several(Vec<AgentRole>),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum AgentRole {
    Primary,
    Subagent,
}

/// Prompts. Each may be a text or hold references such as `${file:prompt.md}`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PromptTexts {
    /// The system prompt of chats.
    #[schemars(extend("examples" = ["${file:~/prompts/chat.md}"]))]
    chat: String,
    /// How a title is asked for.
    #[schemars(extend("examples" = ["Answer with a title of three words."]))]
    chat_title: String,
    /// How a summary is asked for when a chat is compacted.
    #[schemars(extend("examples" = ["Summarize the chat in ten lines."]))]
    compact: String,
    /// What `/init` asks.
    #[schemars(extend("examples" = ["Write AGENTS.md for this project."]))]
    init: String,
    /// Descriptions of tools in place of the built-in ones, by `tool` or `server__tool`.
    #[schemars(extend("examples" = [{"grep": "Search the files of the project."}]))]
    tools: BTreeMap<String, String>,
    /// What `/skill-create` asks.
    #[schemars(extend("examples" = ["Write a skill for what the user describes."]))]
    skill_create: String,
    /// The system prompt of inline completion.
    #[schemars(extend("examples" = ["Continue the text at the cursor."]))]
    completion: String,
    /// The system prompt for predicting the next edit. It must keep the form of the answer; see `dragoman docs extending`.
    #[schemars(extend("examples" = ["${file:next-edit.md}"]))]
    next_edit: String,
    /// The system prompt for rewriting a selection.
    #[schemars(extend("examples" = ["Rewrite the text as the user asks."]))]
    rewrite: String,
}

/// What holds for models whose id (`provider/name`) or name fits the pattern. `*` stands for anything.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ModelFamilyEntry {
    /// The family whose row holds: `gpt`, `claude`, `gemini`, `small`, `open` or `other`.
    #[schemars(extend("examples" = ["claude"]))]
    family: String,
    /// What the system prompt says beside the text of the behavior, in place of the family's.
    #[schemars(extend("examples" = ["Answer in English."]))]
    prompt: String,
    /// How files are changed: `replace` (texts), `patch` (`apply_patch`), or `whole` (texts, and small files whole).
    #[schemars(extend("examples" = ["patch"]))]
    edit_format: String,
    /// Built-in tools that the model is not shown, in place of the family's.
    #[schemars(extend("examples" = [["fetch_url"]]))]
    without_tools: Vec<String>,
    /// Whether one answer may call several tools.
    #[schemars(extend("examples" = [false]))]
    parallel_calls: bool,
    /// The reasoning effort where none is chosen; `default` leaves it to the provider.
    #[schemars(extend("examples" = ["high"]))]
    effort: String,
    /// Whether the model is shown the tool for a task list.
    #[schemars(extend("examples" = [false]))]
    task_list: bool,
}
