//! What can be typed: one definition for parsing, help, completions and the manual.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::commands;

/// A coding assistant for every editor.
#[derive(Parser)]
#[command(name = "dragoman", version, about, propagate_version = true)]
#[command(
    after_help = "Example:\n  dragoman server        an editor's ECA plugin starts this\n  dragoman config show   which settings are in force, and why"
)]
pub struct Cli {
    /// How much is logged, to stderr and to the log file.
    #[arg(long, global = true, value_enum)]
    pub log_level: Option<Level>,

    #[command(subcommand)]
    pub command: Task,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Subcommand)]
pub enum Task {
    /// Speak ECA on stdin and stdout: what editor plugins start.
    #[command(after_help = "Example (Emacs):\n  (setq eca-custom-command '(\"dragoman\" \"server\"))")]
    Server,
    /// The settings in force.
    #[command(subcommand)]
    Config(ConfigTask),
    /// Let a folder's own configuration take full effect.
    #[command(
        after_help = "Example:\n  dragoman trust .         trust this folder as it is now\n  dragoman trust --list    what is trusted"
    )]
    Trust {
        /// The folder; the current one by default.
        folder: Option<PathBuf>,
        /// Take the trust back.
        #[arg(long)]
        revoke: bool,
        /// List trusted folders.
        #[arg(long)]
        list: bool,
    },
    /// What would be decided about a tool call, and by which rule.
    #[command(
        after_help = "Example:\n  dragoman explain-permission shell_command '{\"command\": \"git push\"}'"
    )]
    ExplainPermission {
        /// The tool: `read_file`, `eca__read_file` or `server__tool`.
        tool: String,
        /// Its arguments, a JSON object.
        input: String,
        /// As the plan behavior would see it.
        #[arg(long)]
        plan: bool,
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub enum ConfigTask {
    /// Print every setting and where it comes from; secrets are masked.
    #[command(after_help = "Example:\n  dragoman config show --json | less")]
    Show {
        #[arg(long)]
        json: bool,
    },
}

pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let level = cli.log_level;
    match cli.command {
        Task::Server => commands::server::run(level),
        Task::Config(ConfigTask::Show { json }) => commands::config::show(json),
        Task::Trust { folder, revoke, list } => commands::trust::run(folder, revoke, list),
        Task::ExplainPermission { tool, input, plan, json } => {
            commands::explain_permission::run(&tool, &input, plan, json)
        }
    }
}
