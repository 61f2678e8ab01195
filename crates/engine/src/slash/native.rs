//! The commands of Dragoman itself, as a table, and a command as it was parsed.

/// The commands of Dragoman itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Native {
    Init,
    Compact,
    Agent,
    Costs,
    Config,
    Doctor,
    Model,
    Resume,
    Undo,
    Redo,
    Login,
    Taint,
    PromptShow,
    RepoMapShow,
    Hooks,
    Rules,
    Subagents,
    Plugins,
    /// The command of the program that does it.
    PluginTask(&'static str),
    Skills,
    SkillCreate,
    Context,
    Fork,
    Export,
    Jobs,
    Chats,
    Aside,
    SyncSystemPrompt,
    /// `/memory` and `/memory-consolidate`.
    Memory,
    Goal,
    /// What does it, where a chat is no place for it.
    Elsewhere(&'static str),
}

/// Command, name, description, argument.
pub(super) const NATIVE: [(Native, &str, &str, Option<&str>); 37] = [
    (Native::Init, "init", "Write or improve AGENTS.md for this project", None),
    (Native::Compact, "compact", "Replace the history by a summary", Some("what to keep")),
    (
        Native::Goal,
        "goal",
        "Work until a command succeeds or a condition holds; alone: show the goal",
        Some("command or condition, resume, off"),
    ),
    (Native::Costs, "costs", "Tokens and money this chat has used", None),
    (Native::Config, "config", "The settings in force and where each comes from", None),
    (Native::Doctor, "doctor", "What is configured, reachable and missing", None),
    (Native::Agent, "agent", "Show the agents, or switch to one", Some("agent")),
    (Native::Model, "model", "Show the models, or switch to one", Some("provider/model")),
    (
        Native::Resume,
        "resume",
        "List earlier chats of this workspace, or go on with one here",
        Some("number"),
    ),
    (
        Native::Undo,
        "undo",
        "Take back the file changes of the last turn, or of several",
        Some("number, or preview"),
    ),
    (Native::Redo, "redo", "Take the last undo back", Some("preview")),
    (Native::Login, "login", "How to sign in to a provider", Some("provider")),
    (Native::Taint, "taint", "Text of strangers and secrets that this chat has read", Some("clear")),
    (Native::PromptShow, "prompt-show", "The instructions the model is given", None),
    (Native::RepoMapShow, "repo-map-show", "The tree of the workspace", None),
    (Native::Hooks, "hooks", "The hooks by event", None),
    (Native::Rules, "rules", "The rules of this chat", None),
    (Native::Subagents, "subagents", "The agents that this one can start for a task", None),
    (Native::Plugins, "plugins", "The sources of plugins and what they offer", None),
    (Native::PluginTask("install"), "plugin-install", "How to install a plugin", Some("plugin")),
    (Native::PluginTask("update"), "plugin-update", "How to update a source of plugins", Some("source")),
    (Native::PluginTask("uninstall"), "plugin-uninstall", "How to remove a plugin", Some("plugin")),
    (Native::Skills, "skills", "The skills that the model can load", None),
    (Native::SkillCreate, "skill-create", "Write a new skill", Some("what it should teach")),
    (Native::Context, "context", "What fills the context window", None),
    (Native::Fork, "fork", "A new chat with the history of this one", None),
    (Native::Export, "export", "Write this chat to a Markdown file of the workspace", Some("file")),
    (
        Native::Jobs,
        "jobs",
        "Commands that run in the background: list them, show or stop one",
        Some("job, or stop job"),
    ),
    (Native::Chats, "chats", "List the chats of this workspace", Some("words of the title")),
    (Native::Aside, "btw", "Ask something beside this chat; it is not sent again", Some("question")),
    (
        Native::SyncSystemPrompt,
        "sync-system-prompt",
        "Use rules and instructions as they are now in this chat",
        None,
    ),
    (
        Native::Memory,
        "memory",
        "Facts that are kept across chats",
        Some("add, project, forget, keep, apply, export"),
    ),
    (Native::Memory, "memory-consolidate", "Propose a shorter memory, as a diff", Some("what to mind")),
    (Native::Elsewhere(DELETE_CHAT), "delete-chat", "How to delete a chat", Some("chat")),
    (Native::Elsewhere(IMPORT), "import", "How to take over chats of another program", Some("file")),
    (Native::Elsewhere(DEBUG_CHAT), "debug-chat", "How to see everything that is stored of a chat", None),
    (Native::Elsewhere(REMOTE), "remote", "Why there is no web server", None),
];

const DELETE_CHAT: &str = "Delete it in the list of chats of your editor, or run `dragoman chats delete ID` in a terminal; `/chats` \
    names the ids.";

const IMPORT: &str = "Run `dragoman import` in a terminal: it shows what it would take over, chats of ECA and others among it, and \
    asks. `dragoman chats import FILE` reads a file of `dragoman chats export`.";

const DEBUG_CHAT: &str = "Run `dragoman chats show ID --json` in a terminal for the whole chat, `dragoman replay ID` to run it again \
    without a model; `/chats` names the ids.";

const REMOTE: &str =
    "ECA's web server is not part of Dragoman. `dragoman serve` shows the same chats in your browser.";

/// A command found in a prompt.
pub(crate) struct ParsedCommand {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    /// Everything after the name.
    pub(super) rest: String,
    pub(super) kind: CommandKind,
}

pub(super) enum CommandKind {
    Native(Native),
    McpPrompt,
    /// A text of the user's, with the arguments in their places.
    Custom(String),
    /// The text of a skill, and what the user adds to it.
    Skill(String),
}
