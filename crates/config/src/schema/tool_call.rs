//! The shape of `toolCall`.

use std::collections::BTreeMap;

use schemars::JsonSchema;

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ToolCallSection {
    /// Which tool calls run without a question, and which never run. A deny rule is absolute; rules of all files hold
    /// together.
    approval: ApprovalSection,
    /// The tool `read_file`.
    read_file: ReadFileSection,
    /// The size of the results of tools.
    output_truncation: OutputSection,
    /// The tool `shell_command`.
    shell_command: ShellSection,
    /// The tool `fetch_url`.
    fetch_url: FetchSection,
    /// Many tools of MCP servers.
    tool_search: ToolSearchSection,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AgentToolCallSection {
    /// Approval rules.
    approval: ApprovalSection,
    /// Limits for one behavior.
    #[schemars(extend("x-unsupported" = true))]
    read_file: serde_json::Value,
    /// Limits for one behavior.
    #[schemars(extend("x-unsupported" = true))]
    output_truncation: serde_json::Value,
    /// The shell for one behavior.
    #[schemars(extend("x-unsupported" = true))]
    shell_command: serde_json::Value,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProjectToolCallSection {
    /// Approval rules.
    approval: ProjectApprovalSection,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct ProjectApprovalSection {
    /// Calls that run without a question in this project.
    #[schemars(extend("examples" = [{"eca__shell_command": {"argsMatchers": {"command": ["npm test"]}}}]))]
    allow: BTreeMap<String, ApprovalRule>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct ApprovalSection {
    /// What happens to a call that no rule is about. Without this key a call asks unless it changes nothing or its sandbox
    /// contains it; an `ask` that is written down asks about these too.
    #[schemars(extend("default" = "ask"), extend("examples" = ["deny"]))]
    by_default: ApprovalName,
    /// Calls that run without a question, by `tool`, `server__tool` or `server`.
    #[schemars(extend("examples" = [{"shell_command": {"argsMatchers": {"command": ["cargo (check|test)"]}}}]))]
    allow: BTreeMap<String, ApprovalRule>,
    /// Calls that are asked even where another rule allows them.
    #[schemars(extend("examples" = [{"shell_command": {"argsMatchers": {"command": ["git push.*"]}}}]))]
    ask: BTreeMap<String, ApprovalRule>,
    /// Calls that never run.
    #[schemars(extend("examples" = [{"fetch_url": {}}]))]
    deny: BTreeMap<String, ApprovalRule>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum ApprovalName {
    Allow,
    Ask,
    Deny,
}

/// One rule. `{}` is about every call of the tool.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ApprovalRule {
    /// Regular expressions by argument. A rule is about a call when each argument matches one of its expressions as a
    /// whole.
    #[schemars(extend("examples" = [{"command": ["git (status|diff)"]}]))]
    args_matchers: BTreeMap<String, Vec<String>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct ReadFileSection {
    /// Lines that `read_file` returns when the call does not say how many.
    #[schemars(extend("default" = 2000), range(min = 1, max = 100_000), extend("examples" = [500]))]
    max_lines: u64,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct OutputSection {
    /// KiB of text that one tool result may hold.
    #[schemars(extend("default" = 50), range(min = 1, max = 4096), extend("examples" = [100]))]
    size_kb: u64,
    /// Lines that one tool result may hold.
    #[schemars(extend("x-unsupported" = true))]
    lines: u64,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct ShellSection {
    /// The shell in place of bash. Lines for another shell cannot be analyzed, so each of them is asked.
    #[schemars(extend("examples" = ["/bin/zsh"]))]
    path: String,
    /// The arguments of the shell before the line.
    #[schemars(extend("examples" = [["-l", "-c"]]))]
    args: Vec<String>,
    /// The length of a command's summary.
    #[schemars(extend("x-unsupported" = true))]
    summary_max_length: u64,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct ToolSearchSection {
    /// Percent of the context window that the definitions of MCP tools may take. Beyond it, requests carry two tools in
    /// their place: one that searches them and one that calls a found tool. 0 always searches.
    #[schemars(extend("default" = 10), range(min = 0, max = 100), extend("examples" = [25]))]
    above_percent: u64,
    /// Whether providers that can (Anthropic, OpenAI) load a found tool themselves. It is then called by its own name, and
    /// requests carry one tool in place of two. `false` for a gateway in front of them that refuses such requests.
    #[schemars(extend("default" = true), extend("examples" = [false]))]
    by_provider: bool,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct FetchSection {
    /// Hosts that may be fetched although they are on this machine or in a private network.
    #[schemars(extend("examples" = [["wiki.internal"]]))]
    allowed_hosts: Vec<String>,
}
