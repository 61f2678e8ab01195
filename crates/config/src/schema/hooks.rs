//! The shape of `hooks.<name>`.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::tool_call::ApprovalRule;

/// One hook.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Hook {
    /// The event: `sessionStart`, `sessionEnd`, `chatStart`, `chatEnd`, `subagentStart`, `preRequest`, `postRequest`,
    /// `subagentPostRequest`, `preToolCall`, `postToolCall`, `preCompact` or `postCompact`.
    #[schemars(extend("examples" = ["preToolCall"]))]
    r#type: String,
    /// The tool calls that the hook is about: a regular expression for `server__tool`, or rules as in
    /// `toolCall.approval.deny`. For compactions `manual` or `auto`.
    #[schemars(extend("examples" = ["eca__shell_command"]))]
    matcher: HookMatcher,
    /// What runs, one after the other.
    #[schemars(extend("examples" = [[{"type": "shell", "file": "hooks/check.sh"}]]))]
    actions: Vec<HookAction>,
    /// Whether the chat shows that the hook runs.
    #[schemars(extend("default" = true), extend("examples" = [false]))]
    visible: bool,
    /// What the hook is for; `/hooks` shows it.
    #[schemars(extend("examples" = ["Keeps secrets out of the repository"]))]
    description: String,
    /// Whether a `postToolCall` hook also runs after a call that failed.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    run_on_error: bool,
    /// What the program reads and writes: `eca` as in `dragoman docs hooks`, `claude` as Claude Code has it.
    #[schemars(extend("default" = "eca"), extend("examples" = ["claude"]))]
    format: String,
    /// Milliseconds that each action may take.
    #[schemars(extend("default" = 30_000), range(min = 1, max = 600_000), extend("examples" = [5000]))]
    timeout: u64,
    /// Whether the program has the network inside of its sandbox. A hook of a project has package registries alone,
    /// whatever it says.
    #[schemars(extend("default" = true), extend("examples" = [false]))]
    network: bool,
    /// `off`: the program runs outside of the sandbox, with your rights, and starts in the folder of the settings file that
    /// says so. Only in your own files, never in a project's or a plugin's.
    #[schemars(extend("default" = "on"), extend("examples" = ["off"]))]
    sandbox: String,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum HookMatcher {
    Pattern(String),
    Rules(BTreeMap<String, ApprovalRule>),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct HookAction {
    /// Always `shell`.
    #[schemars(extend("examples" = ["shell"]))]
    r#type: String,
    /// A line for bash. It gets JSON on its standard input.
    #[schemars(extend("examples" = ["jq -c '{approval: \"ask\"}'"]))]
    shell: String,
    /// A program or script in place of `shell`. Relative paths start from the folder of the settings file.
    #[schemars(extend("examples" = ["hooks/check.sh"]))]
    file: String,
    /// Milliseconds that the action may take.
    #[schemars(range(min = 1, max = 600_000), extend("examples" = [5000]))]
    timeout: u64,
}
