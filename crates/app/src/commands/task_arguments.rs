//! The arguments of `dragoman submit`, `dragoman tasks` and `dragoman worker`.

#![cfg_attr(
    not(feature = "postgres"),
    allow(dead_code, reason = "a build without a database only parses them")
)]

use clap::{Args, Subcommand, ValueEnum};

use crate::approve::Approve;

pub(crate) const SUBMIT_HELP: &str =
    "The queue is in the PostgreSQL database that `store` or DRAGOMAN_STORE names (`dragoman docs scale`). A task can only tighten
what the worker's own settings allow.

Example:
  dragoman submit \"Fix the failing test\" --repo https://git.example.com/acme/shop.git --ref main
  dragoman submit \"Update the README\" --repo . --max-cost 0.50 --json";

#[derive(Args)]
pub(crate) struct SubmitArguments {
    /// What to do; `-` reads it from stdin.
    #[arg(required = true)]
    pub prompt: Vec<String>,
    /// A folder on the machine of the worker, or an https or ssh address of git.
    #[arg(long, value_name = "PATH_OR_URL", default_value = ".")]
    pub repo: String,
    /// The branch, tag or commit to begin with.
    #[arg(long = "ref", value_name = "REF", default_value = "HEAD")]
    pub reference: String,
    /// The most that the task may cost. Needs a model with a known price.
    #[arg(long, value_name = "DOLLARS")]
    pub max_cost: Option<f64>,
    /// The maximum number of model answers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Stop after this time.
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<f64>,
    /// Tool calls that may run without approval, of those that the worker approves.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub approve: Vec<Approve>,
    /// Fetch the submodules of the repository too, where the worker's settings allow it.
    #[arg(long)]
    pub submodules: bool,
    /// Fetch the large files (git LFS) of the repository too, where the worker's settings allow it.
    #[arg(long)]
    pub lfs: bool,
    /// Deny a tool, or only calls whose main argument matches the regular expression.
    #[arg(long, value_name = "TOOL[=PATTERN]")]
    pub deny: Vec<String>,
    /// For scripts.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub(crate) struct WorkerArguments {
    /// End when no task waits or runs that this worker may take, and print which tasks are left.
    #[arg(long)]
    pub drain: bool,
    /// Print a line of JSON for each task, for scripts.
    #[arg(long)]
    pub json: bool,
    /// Seconds that this worker may work on a task, where its settings do not allow less.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub timeout: Option<u32>,
}

#[derive(Subcommand)]
pub(crate) enum TasksTask {
    /// List the tasks, the newest first.
    #[command(after_help = "Example:\n  dragoman tasks list --state running")]
    List {
        /// Only tasks in this state.
        #[arg(long, value_enum)]
        state: Option<StateName>,
        /// How many.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Show a task and how it ended.
    #[command(
        after_help = "Example:\n  dragoman tasks show ID\n  dragoman tasks show ID --patch | git apply --binary"
    )]
    Show {
        id: String,
        /// Print the changes of the task as a patch instead.
        #[arg(long, conflicts_with = "json")]
        patch: bool,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Stop a task; one that waits ends at once.
    #[command(after_help = "Example:\n  dragoman tasks cancel ID")]
    Cancel {
        id: String,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Delete tasks that have ended, with their chats.
    #[command(after_help = "Example:\n  dragoman tasks delete ID")]
    Delete {
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Print the chat of a task as far as it has come.
    #[command(after_help = "Example:\n  dragoman tasks logs ID")]
    Logs {
        id: String,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum StateName {
    Waiting,
    Running,
    Done,
    Failed,
    Cancelled,
}
