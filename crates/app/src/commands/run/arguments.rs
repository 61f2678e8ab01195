//! The arguments of `dragoman run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::approve::Approve;

pub(crate) const HELP: &str = "Exit codes:
  0  done
  1  failed; with --output-schema also: the answer does not match; also: the answer could not be written
  2  wrong usage
  3  a tool call needed approval, and nobody could approve it (see --approve)
  4  budget, steps or time used up, or a limit of the provider; with --until also: the goal is not reached

Example:
  dragoman run \"What does this project do?\"
  git diff | dragoman run \"Review this change\"
  dragoman run --allow 'shell_command=cargo test.*' --approve edit \"Fix the failing test\"
  dragoman run --until \"make test\" --approve edit,sandboxed \"Fix the failing tests\"
  dragoman run -c maxSteps=20 --effort high \"Find the race\"
  dragoman run --output json \"Explain @src/main.rs\" | jq -r .text";

#[derive(Args)]
pub(crate) struct RunArguments {
    /// The prompt; `-` or nothing reads it from stdin. Text that is piped in is added to it. @path adds a file.
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
    /// A setting for this run; may be given several times. The value is JSON, or a text.
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Continue with this model if another fails; may be given several times.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub failover: Vec<String>,
    /// How often a failed request to the model is repeated.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..100))]
    pub retries: Option<u32>,
    /// Work in this folder.
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Another folder of the workspace; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,
    /// A file or image for the prompt; may be given several times.
    #[arg(short = 'f', long = "image", visible_alias = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Tool calls that may run without approval: `read`, or `edit,network`. Deny rules still apply.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub approve: Vec<Approve>,
    /// Allow a tool, or only calls whose main argument matches the regular expression.
    #[arg(long, value_name = "TOOL[=PATTERN]")]
    pub allow: Vec<String>,
    /// Deny a tool, or only calls whose main argument matches the regular expression. Wins over everything else.
    #[arg(long, value_name = "TOOL[=PATTERN]")]
    pub deny: Vec<String>,
    /// Replace the built-in instructions.
    #[arg(long, value_name = "TEXT")]
    pub system_prompt: Option<String>,
    /// Add to the instructions.
    #[arg(long, value_name = "TEXT")]
    pub append_system_prompt: Option<String>,
    /// MCP servers for this run: a JSON file, or the JSON itself, as `mcpServers` in the configuration.
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<String>,
    /// Store nothing: the chat is gone after the run. Works without a home folder.
    #[arg(long, conflicts_with_all = ["newest", "session"])]
    pub ephemeral: bool,
    /// Stop before the next request when this much was spent. Needs a model with a known price.
    #[arg(long, value_name = "DOLLARS")]
    pub max_cost: Option<f64>,
    /// Go on until this command succeeds, run in its sandbox after each answer, and an audit agrees (`dragoman docs run`).
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["task", "output_schema"])]
    pub until: Option<String>,
    /// The maximum number of model answers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Stop after this time.
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<f64>,
    /// Continue the newest chat of this folder.
    #[arg(long = "continue", conflicts_with = "session")]
    pub newest: bool,
    /// Continue this chat.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Continue in a copy of that chat, which stays as it is.
    #[arg(long)]
    pub fork: bool,
    /// What stdin holds: a prompt, or lines of JSON for a conversation that goes on until it ends.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = InputFormat::Text)]
    pub input: InputFormat,
    /// A worker runs a task in this chat, new or not: the prompt is text alone, without commands and files.
    #[arg(long, hide = true, value_name = "ID", conflicts_with_all = ["newest", "session", "ephemeral", "files"])]
    pub task: Option<String>,
    /// The same as `--output events`.
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    /// What stdout receives (`dragoman docs run`).
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Output::Text)]
    pub output: Output,
    /// Also write the final answer to this file.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
    /// Print no progress and no notices.
    #[arg(short, long)]
    pub quiet: bool,
    /// The answer must be JSON that matches the JSON Schema in this file.
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// The prompt, or text that is added to it.
    Text,
    /// One JSON object per line: prompts, answers to questions; stdout has the events (`dragoman docs run`).
    StreamJson,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Output {
    /// The text of the answer as it comes.
    Text,
    /// One JSON event per line.
    Events,
    /// One JSON object at the end.
    Json,
}
