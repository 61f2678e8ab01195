//! The command line: one definition for parsing, help, completions and manual pages.

use std::path::PathBuf;

pub(crate) use crate::arguments::{
    ChatArguments, ConfigTask, DoctorTask, Level, ModelsTask, Role, SpecTask, StatsArguments,
    ThreadsArguments,
};
use crate::commands;
use crate::commands::connect_arguments::ConnectArguments;
use clap::{Parser, Subcommand};

/// A coding assistant for every editor.
#[derive(Parser)]
#[command(name = "dragoman", version, about, propagate_version = true)]
#[command(
    after_help = "Example:\n  dragoman               a chat in this terminal\n  dragoman run \"…\"      one answer, for scripts\n  dragoman server        an editor's ECA plugin starts this\n  dragoman doctor        what is missing, and how to fix it\n  dragoman setup         editors of this machine, and how they start it\n\n`dragoman --version --json` describes this build for scripts."
)]
pub(crate) struct Cli {
    /// How much is logged, to stderr and to the log file.
    #[arg(long, global = true, value_enum)]
    pub log_level: Option<Level>,

    /// Without a command, `dragoman` opens a chat in this terminal.
    #[command(subcommand)]
    pub command: Option<Task>,
}

#[derive(Subcommand)]
pub(crate) enum Task {
    /// Talk to it in this terminal.
    #[command(after_help = CHAT_HELP)]
    Chat(ChatArguments),
    /// Open a chat that another program holds: an editor, another terminal (`dragoman docs many-windows`).
    #[command(
        after_help = "Example:\n  dragoman attach           the only chat that runs\n  dragoman attach 0198c2d4  one of several"
    )]
    Attach(commands::attach::AttachArguments),
    /// List the chats that programs hold now: where, model, state, what they wait for, cost.
    #[command(after_help = "Example:\n  dragoman ps\n  dragoman ps --json | jq -r '.chats[].id'")]
    Ps {
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Speak ECA on stdin and stdout; editor plugins start this.
    #[command(
        after_help = "Example (Emacs):\n  (setq eca-custom-command '(\"dragoman\" \"server\"))\n  (setq eca-custom-command '(\"dragoman\" \"server\" \"--connect\" \"https://HOST:PORT\"))"
    )]
    Server {
        #[command(flatten)]
        connect: ConnectArguments,
        /// An option of ECA's own server: the same as `--log-level debug`.
        #[arg(long, hide = true)]
        verbose: bool,
    },
    /// Speak the Agent Client Protocol on stdin and stdout: Zed, JetBrains, Neovim, Emacs and others start this.
    #[command(
        after_help = "Example (Zed, settings.json):\n  \"agent_servers\": {\"Dragoman\": {\"command\": \"dragoman\", \"args\": [\"acp\"]}}\n  dragoman acp --connect https://HOST:PORT    the engine of another machine\n  dragoman acp --proxy codex                  Codex, with undo, sandbox and rules of Dragoman"
    )]
    Acp {
        #[command(flatten)]
        connect: ConnectArguments,
        /// Work between the editor and this agent of another vendor: its own modes, models, commands and options are shown
        /// (`dragoman docs other-agents`).
        #[arg(long, value_name = "AGENT", conflicts_with = "connect")]
        proxy: Option<String>,
        /// Store a provider's key in this terminal instead: editors start this for a login.
        #[arg(long, conflicts_with = "connect")]
        login: bool,
    },
    /// Speak the early Agent Communication Protocol (threads) on stdin and stdout.
    #[command(after_help = "Example:\n  dragoman threads --workspace . --approve read")]
    Threads(ThreadsArguments),
    /// Offer Dragoman's own tools to other programs: an MCP server on stdin and stdout.
    #[command(after_help = commands::mcp_server::HELP)]
    McpServer(commands::mcp_server::McpServerArguments),
    /// Speak the Copilot CLI contract on stdin and stdout: hosts that turn API specifications into interfaces start this.
    #[command(
        after_help = "Example:\n  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}' | dragoman copilot"
    )]
    Copilot,
    /// Make a user interface of an API specification: a Vite project, one JSX module or one page.
    #[command(
        after_help = "Example:\n  dragoman generate openapi.yaml -o shop-ui          a project: npm install && npm run dev\n  dragoman generate openapi.yaml --single-file       the module, on stdout\n  dragoman generate schema.graphql --html -o ui.html one page that opens in a browser"
    )]
    Generate(commands::generate_arguments::GenerateArguments),
    /// Turn API specifications into interfaces in your browser: drop one, connect it to the API, change it by talking.
    #[command(after_help = commands::studio_arguments::HELP)]
    Studio(commands::studio_arguments::StudioArguments),
    /// Show the chats of this machine in your browser: list, search, follow, prompt, approve (`dragoman docs serve`).
    #[command(after_help = commands::serve_arguments::HELP, args_conflicts_with_subcommands = true)]
    Serve(commands::serve_arguments::ServeArguments),
    /// API specifications.
    #[command(subcommand, after_help = "Example:\n  dragoman spec check openapi.yaml")]
    Spec(SpecTask),
    /// One turn for scripts: the answer on stdout, progress on stderr.
    #[command(after_help = commands::run::HELP)]
    Run(Box<commands::run::RunArguments>),
    /// List the models that can be used now, or fetch an embedded one.
    #[command(
        after_help = "Example:\n  dragoman models                what can be used, with limits and prices\n  dragoman models pull           models that run inside Dragoman, with the one that suits this machine"
    )]
    Models {
        /// For scripts.
        #[arg(long)]
        json: bool,
        /// Fetch the newest public list of models first; it is kept for later.
        #[arg(long)]
        refresh: bool,
        #[command(subcommand)]
        task: Option<ModelsTask>,
    },
    /// Store a provider's key, sign in to GitHub Copilot, or store the token of a server (its address). Without a name: list the source of each key.
    #[command(
        after_help = "Example:\n  dragoman login anthropic        asks for the key and does not show it\n  pass show openai | dragoman login openai\n  dragoman login github-copilot   a code to type at github.com\n  dragoman login https://HOST:PORT  the token for --connect"
    )]
    Login { provider: Option<String> },
    /// Delete the stored key or sign-in.
    #[command(after_help = "Example:\n  dragoman logout anthropic")]
    Logout { provider: String },
    /// Stored chats: list, show, export, import, delete.
    #[command(
        subcommand,
        after_help = "Example:\n  dragoman chats list        those of this folder\n  dragoman chats show ID     one of them, as Markdown"
    )]
    Chats(commands::chats::ChatsTask),
    /// The store of the chats: find and repair damage, move them between the file of this machine and a PostgreSQL database.
    #[command(
        subcommand,
        after_help = "Example:\n  dragoman store check\n  dragoman store migrate --to postgres"
    )]
    Store(commands::store::StoreTask),
    /// Put a task into the queue of the workers.
    #[command(after_help = commands::task_arguments::SUBMIT_HELP)]
    Submit(commands::task_arguments::SubmitArguments),
    /// Tasks of the workers: list, show, cancel, logs, delete.
    #[command(subcommand, after_help = "Example:\n  dragoman tasks list\n  dragoman tasks show ID")]
    Tasks(commands::task_arguments::TasksTask),
    /// Take tasks from the queue and run each in a checkout of its own, until a signal ends it.
    #[command(
        after_help = "The settings `worker.*` of your own config.json say which tasks it takes and what they may do (`dragoman docs scale`).\n\nExample:\n  dragoman worker\n  dragoman worker --drain"
    )]
    Worker(commands::task_arguments::WorkerArguments),
    /// Run the engine again from the journal of a chat, without network and tools, and report the first difference.
    #[command(after_help = commands::replay::HELP)]
    Replay(commands::replay::ReplayArguments),
    /// MCP servers: list, add, remove, log in, try.
    #[command(
        subcommand,
        after_help = "Example:\n  dragoman mcp add memory -- npx -y @modelcontextprotocol/server-memory\n  dragoman mcp add docs --url https://mcp.example.com/mcp\n  dragoman mcp login docs\n  dragoman mcp list"
    )]
    Mcp(commands::mcp::McpTask),
    /// Agents of other vendors that answer here as models: list, add, remove, log in (`dragoman docs other-agents`).
    #[command(subcommand, after_help = commands::acp_agents::HELP)]
    AcpAgents(commands::acp_agents::AcpAgentsTask),
    /// Plugins: list, install, update, uninstall.
    #[command(
        subcommand,
        after_help = "Example:\n  dragoman plugins list\n  dragoman plugins install code-review"
    )]
    Plugins(commands::plugins::PluginsTask),
    /// Settings and chats of Claude Code, codex, opencode, Gemini CLI, goose, Cursor and ECA.
    #[command(after_help = commands::import::HELP)]
    Import(commands::import::ImportArguments),
    /// Tokens, cost, cache hits, time and tool calls by day, model, project, chat and tool.
    #[command(
        after_help = "Example:\n  dragoman stats\n  dragoman stats --here --days 7\n  dragoman stats --html usage.html"
    )]
    Stats(StatsArguments),
    /// Check what is configured, reachable and missing, and how to fix it. Asks the default model for one word.
    #[command(
        after_help = "Exit code 1: the default model cannot answer.\n\nExample:\n  dragoman doctor\n  dragoman doctor --json | jq '.checks[] | select(.state == \"broken\")'"
    )]
    #[command(args_conflicts_with_subcommands = true)]
    Doctor {
        /// For scripts.
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        task: Option<DoctorTask>,
    },
    /// Show and check the settings (`dragoman docs configuration`).
    #[command(
        subcommand,
        after_help = "Example:\n  dragoman config show    which settings are in force, and why\n  dragoman config check   what is wrong with them\n  dragoman config set chat.theme light"
    )]
    Config(ConfigTask),
    /// Trust a folder, so that its own configuration takes full effect.
    #[command(
        after_help = "Example:\n  dragoman trust --show .   what trust would let in\n  dragoman trust .          trust this folder as it is now\n  dragoman trust --list     what is trusted"
    )]
    Trust(commands::trust::TrustArguments),
    /// List what you granted to this project beyond the sandbox, and change it.
    #[command(
        after_help = "Example:\n  dragoman grants\n  dragoman grants --add ssh --add network:git.example.com\n  dragoman grants --remove ssh"
    )]
    Grants(commands::grants::GrantsArguments),
    /// Explain the decision about a tool call and the rule behind it.
    #[command(
        after_help = "Example:\n  dragoman explain-permission shell_command '{\"command\": \"git push\"}'\n  dragoman explain-permission --calls day.jsonl"
    )]
    ExplainPermission(commands::explain_permission::ExplainArguments),
    /// Point an editor at Dragoman: show the change to its settings, and make it on yes.
    #[command(after_help = commands::setup::HELP)]
    Setup(commands::setup::SetupArguments),
    /// Say how this copy was installed, and the command that brings a newer one.
    #[command(after_help = "Example:\n  dragoman update")]
    Update {
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Show a page of the documentation, or list the pages.
    #[command(after_help = commands::docs::HELP)]
    Docs(commands::docs::DocsArguments),
    /// Print the completion script of a shell.
    #[command(
        after_help = "Example:\n  dragoman completions bash > ~/.local/share/bash-completion/completions/dragoman\n  dragoman completions zsh > ~/.zfunc/_dragoman\n  dragoman completions fish > ~/.config/fish/completions/dragoman.fish"
    )]
    Completions { shell: clap_complete::Shell },
    /// Print the manual page, or that of a command.
    #[command(
        after_help = "Example:\n  dragoman man | man -l -\n  dragoman man chats list | man -l -\n  dragoman man --dir ~/.local/share/man/man1"
    )]
    Man {
        /// The command: `run`, or `chats list`.
        command: Vec<String>,
        /// Write all pages into this folder instead.
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        dir: Option<PathBuf>,
    },
}

const CHAT_HELP: &str =
    "Keys: Enter sends, Alt-Enter begins a new line, Esc stops, Ctrl-C twice or Ctrl-D leaves, F1 shows the rest.\nCtrl-G opens $VISUAL or $EDITOR. NO_COLOR is honored.

Example:
  dragoman chat                       a new chat in this folder
  dragoman chat --continue            continue the newest one
  dragoman chat \"What is in here?\"   begin with a question";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Every page, with the words that lead to it.
    fn pages(command: &mut clap::Command, path: &str, found: &mut Vec<(String, String)>) {
        found.push((path.to_owned(), command.render_long_help().to_string()));
        for inner in command.get_subcommands_mut().filter(|inner| inner.get_name() != "help") {
            let path = format!("{path} {}", inner.get_name());
            pages(inner, &path, found);
        }
    }

    #[test]
    fn every_help_page_has_an_example() {
        let mut found = Vec::new();
        let mut command = Cli::command();
        command.build();
        pages(&mut command, "dragoman", &mut found);
        assert!(found.len() > 20, "{} pages", found.len());
        for (path, page) in found {
            assert!(page.contains("Example"), "{path} --help shows no example:\n{page}");
        }
    }

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }
}
