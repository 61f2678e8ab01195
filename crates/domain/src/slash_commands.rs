//! The slash commands of Dragoman itself, as one table: the engine, the terminal, the lists of editors, the help and
//! docs/commands.md come from it.
//!
//! Must not know what a command does. Invariant: a name or alias belongs to one command.

/// Where a command is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandPlace {
    /// By the engine, in every editor and in the terminal.
    Engine,
    /// By the engine; the terminal shows it in its own way.
    Both,
    /// By the terminal alone.
    Terminal,
    /// By the engine, and listed nowhere: it says what to do instead.
    Unlisted,
}

/// The headings of help and documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandGroup {
    Chat,
    Model,
    Work,
    Changes,
    Tools,
    Safety,
    Settings,
    Screen,
}

impl CommandGroup {
    pub const ALL: [CommandGroup; 8] = [
        Self::Chat,
        Self::Model,
        Self::Work,
        Self::Changes,
        Self::Tools,
        Self::Safety,
        Self::Settings,
        Self::Screen,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Chat => "The chat",
            Self::Model => "Model and agent",
            Self::Work => "Work",
            Self::Changes => "Changes to files",
            Self::Tools => "Tools and extensions",
            Self::Safety => "Safety",
            Self::Settings => "Settings and accounts",
            Self::Screen => "The terminal",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandSpec {
    pub name: &'static str,
    /// Other names of it, those of other assistants among them.
    pub aliases: &'static [&'static str],
    /// What may follow the name.
    pub argument: Option<&'static str>,
    pub description: &'static str,
    pub group: CommandGroup,
    pub place: CommandPlace,
}

const fn row(
    group: CommandGroup,
    place: CommandPlace,
    name: &'static str,
    aliases: &'static [&'static str],
    argument: Option<&'static str>,
    description: &'static str,
) -> CommandSpec {
    CommandSpec { name, aliases, argument, description, group, place }
}

use CommandGroup::{Changes, Chat, Model, Safety, Screen, Settings, Tools, Work};
use CommandPlace::{Both, Engine, Terminal, Unlisted};

#[rustfmt::skip]
pub const SLASH_COMMANDS: &[CommandSpec] = &[
    row(Chat, Terminal, "new", &["clear", "reset"], None, "Begin a new chat"),
    row(Chat, Both, "chats", &["sessions", "history"], Some("words of the title"), "List the chats of this workspace"),
    row(Chat, Both, "resume", &["continue"], Some("number"), "List earlier chats of this workspace, or go on with one here"),
    row(Chat, Engine, "rename", &["title", "name"], Some("title"), "Give this chat another title"),
    row(Chat, Both, "fork", &["branch"], None, "A new chat with the history of this one"),
    row(Chat, Terminal, "rewind", &["checkpoint", "restore"], None, "Go back to an earlier prompt: what was said, the files, or both (Esc Esc)"),
    row(Chat, Engine, "compact", &["compress", "summarize"], Some("what to keep"), "Replace the history by a summary"),
    row(Chat, Both, "context", &[], None, "What fills the context window"),
    row(Chat, Engine, "costs", &["cost"], None, "Tokens and money this chat has used"),
    row(Chat, Terminal, "usage", &["tokens"], None, "Tokens and cost of this chat, request by request"),
    row(Chat, Engine, "stats", &[], Some("days"), "Tokens, cost and tool calls of this workspace's chats"),
    row(Chat, Terminal, "find", &["search"], Some("words"), "Find words in this chat and go there"),
    row(Chat, Engine, "btw", &["ask"], Some("question"), "Ask something beside this chat; it is not sent again"),
    row(Chat, Both, "export", &["save"], Some("file"), "Write this chat to a Markdown file of the workspace"),
    row(Chat, Engine, "share", &[], Some("file"), "Write this chat to one HTML file that opens anywhere"),
    row(Chat, Terminal, "copy", &["yank"], Some("number of a code block"), "Copy the last answer, or one of its code blocks"),
    row(Model, Both, "model", &["models"], Some("provider/model"), "Show the models, or switch to one"),
    row(Model, Both, "effort", &["reasoning", "thinking", "variant"], Some("low, medium, high or default"), "Show or choose how hard the model thinks"),
    row(Model, Engine, "agent", &["mode"], Some("agent"), "Show the agents, or switch to one"),
    row(Model, Terminal, "behavior", &[], Some("behavior"), "Choose the behavior (Shift-Tab: the next one)"),
    row(Model, Engine, "plan", &[], None, "Switch to planning: nothing is changed"),
    row(Model, Engine, "subagents", &["agents"], None, "The agents that this one can start for a task"),
    row(Work, Engine, "init", &[], None, "Write or improve AGENTS.md for this project"),
    row(Work, Terminal, "review", &[], Some("commit or branch"), "Let the model review the changes in the working tree, or since a commit or branch"),
    row(Work, Engine, "goal", &["until"], Some("command or condition, resume, off"), "Work until a command succeeds or a condition holds; alone: show the goal"),
    row(Work, Engine, "jobs", &["bashes", "tasks", "ps"], Some("job, or stop job"), "Commands that run in the background: list them, show or stop one"),
    row(Work, Engine, "todos", &["todo"], None, "The task list of the model"),
    row(Work, Terminal, "stop", &["cancel"], None, "Stop the answer (Esc)"),
    row(Changes, Terminal, "diff", &["changes"], None, "Changes in the working tree (git diff)"),
    row(Changes, Engine, "undo", &["revert"], Some("number, or preview"), "Take back the file changes of the last turn, or of several"),
    row(Changes, Engine, "redo", &[], Some("preview"), "Take the last undo back"),
    row(Tools, Engine, "tools", &[], None, "The tools that the model has"),
    row(Tools, Terminal, "mcp", &[], Some("start, stop, login … and a server"), "MCP servers and their tools; /mcp login NAME and others act on one"),
    row(Tools, Engine, "skills", &["skill"], None, "The skills that the model can load"),
    row(Tools, Engine, "skill-create", &[], Some("what it should teach"), "Write a new skill"),
    row(Tools, Engine, "plugins", &["plugin", "extensions"], None, "The sources of plugins and what they offer"),
    row(Tools, Engine, "hooks", &[], None, "The hooks by event"),
    row(Tools, Engine, "rules", &[], None, "The rules of this chat"),
    row(Tools, Engine, "memory", &["remember"], Some("add, project, forget, keep, apply, export"), "Facts that are kept across chats"),
    row(Tools, Engine, "memory-consolidate", &[], Some("what to mind"), "Propose a shorter memory, as a diff"),
    row(Tools, Engine, "repo-map-show", &["map", "tree"], None, "The tree of the workspace"),
    row(Tools, Engine, "prompt-show", &["prompt", "system"], None, "The instructions the model is given"),
    row(Tools, Engine, "sync-system-prompt", &["reload"], None, "Use rules and instructions as they are now in this chat"),
    row(Safety, Terminal, "permissions", &["approvals", "allowed-tools"], None, "The approval rules in force"),
    row(Safety, Engine, "trust", &[], Some("on or off"), "Show or choose whether the calls of this chat run without questions"),
    row(Safety, Engine, "sandbox", &[], None, "What contains the commands of the model here"),
    row(Safety, Engine, "taint", &[], Some("clear"), "Text of strangers and secrets that this chat has read"),
    row(Settings, Engine, "config", &["settings"], None, "The settings in force and where each comes from"),
    row(Settings, Engine, "doctor", &[], None, "What is configured, reachable and missing"),
    row(Settings, Both, "login", &["auth", "connect"], Some("provider"), "How to sign in to a provider"),
    row(Settings, Terminal, "logout", &[], Some("provider"), "Delete the stored key or sign-in of a provider"),
    row(Screen, Terminal, "status", &["about", "version"], None, "Version, folder, model, instructions and servers"),
    row(Screen, Terminal, "theme", &["themes", "color"], Some("name"), "Choose the colors"),
    row(Screen, Terminal, "statusline", &[], Some("template, !command or off"), "Show or change the last line"),
    row(Screen, Terminal, "vim", &["vi"], None, "Edit the input with vi's keys, or as usual again"),
    row(Screen, Terminal, "add-dir", &["directory"], Some("folder"), "Add a folder to the workspace of the next chat"),
    row(Screen, Terminal, "editor", &[], None, "Write the prompt in $VISUAL or $EDITOR (Ctrl-G)"),
    row(Screen, Terminal, "help", &["keys", "keybindings", "commands"], None, "Keys and commands (F1)"),
    row(Screen, Terminal, "quit", &["exit", "q"], None, "Leave (Ctrl-D)"),
    row(Tools, Unlisted, "plugin-install", &[], Some("plugin"), "How to install a plugin"),
    row(Tools, Unlisted, "plugin-update", &[], Some("source"), "How to update a source of plugins"),
    row(Tools, Unlisted, "plugin-uninstall", &[], Some("plugin"), "How to remove a plugin"),
    row(Chat, Unlisted, "delete-chat", &[], Some("chat"), "How to delete a chat"),
    row(Chat, Unlisted, "import", &[], Some("file"), "How to take over chats of another program"),
    row(Chat, Unlisted, "debug-chat", &[], None, "How to see everything that is stored of a chat"),
    row(Settings, Unlisted, "remote", &[], None, "Why there is no web server"),
];

impl CommandSpec {
    /// The engine carries it out.
    pub fn is_of_engine(&self) -> bool {
        matches!(self.place, Engine | Both | Unlisted)
    }

    /// Editors and other clients of the engine list it.
    pub fn is_listed_everywhere(&self) -> bool {
        matches!(self.place, Engine | Both)
    }

    /// The terminal carries it out, at least in some forms.
    pub fn is_of_terminal(&self) -> bool {
        matches!(self.place, Terminal | Both)
    }
}

/// The command of this very name.
pub fn by_name(name: &str) -> Option<&'static CommandSpec> {
    SLASH_COMMANDS.iter().find(|command| command.name == name)
}

/// The command that has this alias.
pub fn by_alias(name: &str) -> Option<&'static CommandSpec> {
    SLASH_COMMANDS.iter().find(|command| command.aliases.contains(&name))
}

/// The name that was probably meant: the nearest of the known ones, if it is near enough.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = if name.chars().count() <= 4 { 1 } else { 2 };
    let near = known.map(|other| (distance(name, other), other)).filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, _)| *distance).map(|(_, other)| other)
}

/// How many letters to insert, remove, replace or exchange with their neighbor.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut row = vec![at + 1];
        for (column, wanted) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != wanted);
            let mut least = replaced.min(last[column + 1] + 1).min(row[column] + 1);
            let is_exchanged = at > 0 && column > 0 && *letter == other[column - 1] && one[at - 1] == *wanted;
            if is_exchanged {
                least = least.min(before_last[column - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

/// The page of the commands, as Markdown.
pub fn page() -> String {
    let mut page = include_str!("slash_commands.md").to_owned();
    for group in CommandGroup::ALL {
        page.push_str(&format!(
            "\n## {}\n\n| command | what it does | other names |\n|---|---|---|\n",
            group.title()
        ));
        let listed =
            SLASH_COMMANDS.iter().filter(|command| command.group == group && command.place != Unlisted);
        for command in listed {
            let argument = command.argument.map(|argument| format!(" … ({argument})")).unwrap_or_default();
            let place = if command.place == Terminal { "; in the terminal" } else { "" };
            let aliases: Vec<String> = command.aliases.iter().map(|alias| format!("`/{alias}`")).collect();
            page.push_str(&format!(
                "| `/{}`{argument} | {}{place} | {} |\n",
                command.name,
                command.description,
                aliases.join(", ")
            ));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_one_command() {
        let mut all: Vec<&str> = SLASH_COMMANDS
            .iter()
            .flat_map(|command| std::iter::once(command.name).chain(command.aliases.iter().copied()))
            .collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "a name is there twice");
    }

    #[test]
    fn the_nearest_name_is_found() {
        let names = || SLASH_COMMANDS.iter().map(|command| command.name);
        for (typed, meant) in [
            ("modle", Some("model")),
            ("premissions", Some("permissions")),
            ("hlep", Some("help")),
            ("xyzzy", None),
        ] {
            assert_eq!(nearest(typed, names()), meant, "{typed}");
        }
        assert_eq!(by_alias("cost").map(|command| command.name), Some("costs"));
        assert_eq!(by_name("cost"), None);
    }

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");

    #[test]
    fn the_page_is_made_from_the_table() {
        let written = std::fs::read_to_string(PAGE).expect("the page");
        assert!(
            written == page(),
            "run: cargo test -p dragoman-domain --lib -- --ignored write_the_page_of_commands"
        );
    }

    #[test]
    #[ignore = "changes a file of the repository"]
    fn write_the_page_of_commands() {
        std::fs::write(PAGE, page()).expect("the page");
    }
}
