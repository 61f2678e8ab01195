//! The commands of Dragoman itself, as a table, and a command as it was parsed.

/// The commands of Dragoman itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Native {
    Init,
    Compact,
    Agent,
    Plan,
    Effort,
    Rename,
    Trust,
    Todos,
    Tools,
    Sandbox,
    Stats,
    Share,
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

/// What does each command of the table that the engine carries out.
pub(super) const NATIVE: [(&str, Native); 46] = [
    ("init", Native::Init),
    ("compact", Native::Compact),
    ("goal", Native::Goal),
    ("costs", Native::Costs),
    ("config", Native::Config),
    ("doctor", Native::Doctor),
    ("agent", Native::Agent),
    ("plan", Native::Plan),
    ("model", Native::Model),
    ("effort", Native::Effort),
    ("rename", Native::Rename),
    ("trust", Native::Trust),
    ("todos", Native::Todos),
    ("tools", Native::Tools),
    ("sandbox", Native::Sandbox),
    ("stats", Native::Stats),
    ("share", Native::Share),
    ("resume", Native::Resume),
    ("undo", Native::Undo),
    ("redo", Native::Redo),
    ("login", Native::Login),
    ("taint", Native::Taint),
    ("prompt-show", Native::PromptShow),
    ("repo-map-show", Native::RepoMapShow),
    ("hooks", Native::Hooks),
    ("rules", Native::Rules),
    ("subagents", Native::Subagents),
    ("plugins", Native::Plugins),
    ("plugin-install", Native::PluginTask("install")),
    ("plugin-update", Native::PluginTask("update")),
    ("plugin-uninstall", Native::PluginTask("uninstall")),
    ("skills", Native::Skills),
    ("skill-create", Native::SkillCreate),
    ("context", Native::Context),
    ("fork", Native::Fork),
    ("export", Native::Export),
    ("jobs", Native::Jobs),
    ("chats", Native::Chats),
    ("btw", Native::Aside),
    ("sync-system-prompt", Native::SyncSystemPrompt),
    ("memory", Native::Memory),
    ("memory-consolidate", Native::Memory),
    ("delete-chat", Native::Elsewhere(DELETE_CHAT)),
    ("import", Native::Elsewhere(IMPORT)),
    ("debug-chat", Native::Elsewhere(DEBUG_CHAT)),
    ("remote", Native::Elsewhere(REMOTE)),
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
