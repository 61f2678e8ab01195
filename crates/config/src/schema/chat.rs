//! The shape of `chat` and `goal`.

use std::collections::BTreeMap;

use schemars::JsonSchema;

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ChatSection {
    /// Whether a model gives a new chat its title; otherwise the first words of the first prompt do.
    #[schemars(extend("default" = true), extend("examples" = [false]))]
    title: bool,
    /// The model that makes titles; without it a small model of the chat's provider, else the chat's own model. The embedded
    /// model makes none.
    #[schemars(extend("examples" = ["openai/gpt-5-nano"]))]
    title_model: String,
    /// Whether rules and instructions are read anew for each prompt, as `/sync-system-prompt` does once. A change of them
    /// makes the provider read the whole chat again.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    auto_sync_system_prompt: bool,
    /// Whether new chats start trusted: their tool calls run without a question, except where a deny rule forbids them.
    /// It does not hold where nobody can be asked (`dragoman run`, `dragoman threads`); `--approve` is for those.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    default_trust: bool,
    /// Whether a turn that changed files and ran none of the project's checks is asked once to verify before it ends.
    #[schemars(extend("default" = true), extend("examples" = [false]))]
    verify_changes: bool,
    /// The colors of `dragoman chat`: for a dark or a light background, or as the terminal says when it is asked.
    #[schemars(extend("default" = "auto"), extend("examples" = ["light"]))]
    theme: ThemeName,
    /// Whether the input of `dragoman chat` is edited with vi's keys. Esc leaves insert mode first, and stops an answer only then.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    vi_mode: bool,
    /// Whether `dragoman chat` is drawn at the end of the terminal's own text, so that its scrollback and selection keep the
    /// chat, instead of on a screen of its own.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    inline: bool,
    /// Keys of `dragoman chat`, each with the key or the command that it stands for.
    #[schemars(extend("examples" = [{"ctrl-p": "up", "f5": "/review"}]))]
    keys: BTreeMap<String, String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GoalSection {
    /// Answers of the model until a goal counts as not reached.
    #[schemars(extend("default" = 50), range(min = 1, max = 100_000), extend("examples" = [20]))]
    max_steps: u64,
    /// Minutes until a goal counts as not reached.
    #[schemars(extend("default" = 30), range(min = 1, max = 10_000), extend("examples" = [120]))]
    max_minutes: u64,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum ThemeName {
    Auto,
    Dark,
    Light,
}
