//! Agents of other vendors that speak the Agent Client Protocol, as data: programs, arguments, their own files, the hosts of
//! their vendors. It looks at nothing.
//!
//! Paths start from home. `docs/other-agents.md` says which of these were tried.

/// One agent that is known by its name.
pub(crate) struct KnownAgent {
    /// As in `acp:NAME/default`.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Programs that start it, with their arguments; the first that is installed counts.
    pub(crate) programs: &'static [(&'static str, &'static [&'static str])],
    /// How it is installed.
    pub(crate) install: &'static str,
    /// Its own files and folders: it may read and write them.
    pub(crate) state: &'static [&'static str],
    /// A variable that names another folder for them.
    pub(crate) state_variable: Option<&'static str>,
    /// What of them runs later: settings, hooks, commands, MCP servers. It may only read these.
    pub(crate) kept: &'static [&'static str],
    /// Hosts that it needs.
    pub(crate) hosts: &'static [&'static str],
    /// Variables with its own keys and addresses.
    pub(crate) variables: &'static [&'static str],
    /// A login that needs nobody, and the variable that makes it possible.
    pub(crate) login: Option<(&'static str, &'static str)>,
    /// Arguments that switch its own sandbox off, because ours is around it.
    pub(crate) without_own_sandbox: &'static [&'static str],
    /// It fails on a new file where it has us read files, so it reads them itself.
    pub(crate) reads_itself: bool,
    /// Variables that tell it of the sandbox around it.
    pub(crate) sandbox_variables: &'static [(&'static str, &'static str)],
}

const BLANK: KnownAgent = KnownAgent {
    name: "",
    title: "",
    programs: &[],
    install: "",
    state: &[],
    state_variable: None,
    kept: &[],
    hosts: &[],
    variables: &[],
    login: None,
    without_own_sandbox: &[],
    reads_itself: false,
    sandbox_variables: &[],
};

pub(crate) const KNOWN_AGENTS: &[KnownAgent] = &[
    KnownAgent {
        name: "claude",
        title: "Claude Code",
        programs: &[("claude-agent-acp", &[]), ("claude-code-acp", &[])],
        install: "npm install --global @agentclientprotocol/claude-agent-acp",
        state: &[".claude", ".claude.json", ".cache/claude-cli-nodejs"],
        state_variable: Some("CLAUDE_CONFIG_DIR"),
        kept: &[
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".claude/CLAUDE.md",
            ".claude/hooks",
            ".claude/commands",
            ".claude/agents",
            ".claude/skills",
            ".claude/plugins",
        ],
        hosts: &["api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai"],
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        // It refuses to work as root elsewhere.
        sandbox_variables: &[("IS_SANDBOX", "1")],
        ..BLANK
    },
    KnownAgent {
        name: "codex",
        title: "Codex",
        programs: &[("codex-acp", &[])],
        install: "npm install --global @zed-industries/codex-acp",
        state: &[".codex"],
        state_variable: Some("CODEX_HOME"),
        kept: &[".codex/config.toml", ".codex/AGENTS.md", ".codex/prompts", ".codex/rules", ".codex/skills"],
        hosts: &["api.openai.com", "chatgpt.com", "auth.openai.com"],
        variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
        login: Some(("openai-api-key", "OPENAI_API_KEY")),
        without_own_sandbox: &["-c", "sandbox_mode=danger-full-access"],
        ..BLANK
    },
    KnownAgent {
        name: "gemini",
        title: "Gemini CLI",
        programs: &[("gemini", &["--acp"])],
        install: "npm install --global @google/gemini-cli",
        state: &[".gemini"],
        kept: &[
            ".gemini/settings.json",
            ".gemini/GEMINI.md",
            ".gemini/commands",
            ".gemini/extensions",
            ".gemini/hooks",
            ".gemini/policies",
            ".gemini/skills",
        ],
        hosts: &[
            "generativelanguage.googleapis.com",
            "cloudcode-pa.googleapis.com",
            "oauth2.googleapis.com",
            "accounts.google.com",
        ],
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT"],
        login: Some(("gemini-api-key", "GEMINI_API_KEY")),
        // Its client of the protocol loses the code of the error for a missing file (version 0.61).
        reads_itself: true,
        ..BLANK
    },
    KnownAgent {
        name: "opencode",
        title: "opencode",
        programs: &[("opencode", &["acp"])],
        install: "npm install --global opencode-ai",
        state: &[".local/share/opencode", ".local/state/opencode", ".cache/opencode", ".config/opencode"],
        // It writes other files of that folder at every start.
        kept: &[
            ".config/opencode/opencode.json",
            ".config/opencode/opencode.jsonc",
            ".config/opencode/AGENTS.md",
            ".config/opencode/agent",
            ".config/opencode/agents",
            ".config/opencode/command",
            ".config/opencode/commands",
            ".config/opencode/plugin",
            ".config/opencode/plugins",
            ".config/opencode/tool",
            ".config/opencode/tools",
            ".config/opencode/skills",
        ],
        hosts: &["opencode.ai", "models.dev", "api.anthropic.com", "api.openai.com", "openrouter.ai"],
        ..BLANK
    },
    KnownAgent {
        name: "goose",
        title: "goose",
        programs: &[("goose", &["acp", "--with-builtin", "developer"])],
        install: "see https://block.github.io/goose",
        state: &[".config/goose", ".local/share/goose", ".local/state/goose"],
        kept: &[".config/goose/config.yaml", ".config/goose/permission.yaml", ".config/goose/recipes"],
        hosts: &["api.anthropic.com", "api.openai.com", "openrouter.ai"],
        variables: &["GOOSE_PROVIDER", "GOOSE_MODEL", "OPENAI_HOST", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"],
        ..BLANK
    },
    KnownAgent {
        name: "copilot",
        title: "Copilot CLI",
        programs: &[("copilot", &["--acp", "--no-auto-update"])],
        install: "npm install --global @github/copilot",
        state: &[".copilot"],
        kept: &[".copilot/mcp-config.json", ".copilot/hooks", ".copilot/agents", ".copilot/skills"],
        hosts: &["api.github.com", "github.com", "api.githubcopilot.com", "api.individual.githubcopilot.com"],
        variables: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
        ..BLANK
    },
    KnownAgent {
        name: "qwen",
        title: "Qwen Code",
        programs: &[("qwen", &["--acp"])],
        install: "npm install --global @qwen-code/qwen-code",
        state: &[".qwen"],
        kept: &[".qwen/settings.json", ".qwen/QWEN.md", ".qwen/commands", ".qwen/extensions", ".qwen/skills"],
        hosts: &["chat.qwen.ai", "portal.qwen.ai", "dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"],
        variables: &["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DASHSCOPE_API_KEY"],
        login: Some(("openai", "OPENAI_API_KEY")),
        ..BLANK
    },
    KnownAgent {
        name: "kimi",
        title: "Kimi",
        programs: &[("kimi", &["acp"])],
        install: "npm install --global @moonshot-ai/kimi-code",
        state: &[".kimi", ".kimi-code"],
        state_variable: Some("KIMI_CODE_HOME"),
        kept: &[".kimi/config.toml", ".kimi/mcp.json", ".kimi-code/config.toml", ".kimi-code/mcp.json"],
        hosts: &["api.moonshot.ai", "api.moonshot.cn", "api.kimi.com", "auth.kimi.com"],
        variables: &["KIMI_API_KEY", "KIMI_BASE_URL", "MOONSHOT_API_KEY"],
        ..BLANK
    },
    KnownAgent {
        name: "cline",
        title: "Cline",
        programs: &[("cline", &["--acp"])],
        install: "npm install --global cline",
        state: &[".cline"],
        kept: &[".cline/hooks", ".cline/rules", ".cline/workflows"],
        hosts: &["api.cline.bot", "api.anthropic.com", "api.openai.com", "openrouter.ai"],
        ..BLANK
    },
    KnownAgent {
        name: "vibe",
        title: "Mistral Vibe",
        programs: &[("vibe-acp", &[])],
        install: "pipx install mistral-vibe",
        state: &[".vibe"],
        state_variable: Some("VIBE_HOME"),
        kept: &[".vibe/config.toml", ".vibe/agents", ".vibe/skills", ".vibe/prompts"],
        hosts: &["api.mistral.ai"],
        variables: &["MISTRAL_API_KEY"],
        ..BLANK
    },
    KnownAgent {
        name: "pi",
        title: "pi",
        programs: &[("pi-acp", &[])],
        install: "npm install --global pi-acp @mariozechner/pi-coding-agent",
        state: &[".pi"],
        kept: &[
            ".pi/agent/settings.json",
            ".pi/agent/models.json",
            ".pi/agent/extensions",
            ".pi/agent/skills",
        ],
        hosts: &["api.anthropic.com", "api.openai.com", "openrouter.ai"],
        variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
        ..BLANK
    },
];

pub(crate) fn find(name: &str) -> Option<&'static KnownAgent> {
    KNOWN_AGENTS.iter().find(|agent| agent.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_part_of_the_state() {
        for agent in KNOWN_AGENTS {
            let is_inside =
                |kept: &&&str| agent.state.iter().any(|state| std::path::Path::new(kept).starts_with(state));
            assert!(agent.kept.iter().all(|kept| is_inside(&kept)), "{}", agent.name);
            assert!(!agent.programs.is_empty() && config::is_agent_name(agent.name), "{}", agent.name);
        }
    }
}
