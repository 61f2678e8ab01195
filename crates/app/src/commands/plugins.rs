//! `dragoman plugins`: lists, installs, updates and uninstalls plugins.

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use clap::Subcommand;
use config::{Environment, Inputs};
use domain::{Failure, visible_text};

use super::failed;
use crate::attaching::refusal_inside_tool_call;
use crate::output::{deliver, print_line};
use crate::working_folder;

#[derive(Subcommand)]
pub(crate) enum PluginsTask {
    /// The sources, their pinned versions and their plugins.
    #[command(after_help = "Example:\n  dragoman plugins list")]
    List,
    /// Show what a plugin brings, and use it if you agree: NAME, NAME@SOURCE or NAME@ADDRESS.
    ///
    /// An address is one of git, OWNER/REPOSITORY at GitHub, or a folder.
    #[command(after_help = "Example:\n  dragoman plugins install standards@company")]
    Install {
        plugin: String,
        /// Agree without a question.
        #[arg(long)]
        yes: bool,
    },
    /// Show what has changed in a source since it was pinned, and use the new version if you agree.
    #[command(after_help = "Example:\n  dragoman plugins update company")]
    Update {
        source: String,
        /// Agree without a question.
        #[arg(long)]
        yes: bool,
    },
    /// Use a plugin no longer.
    #[command(after_help = "Example:\n  dragoman plugins uninstall standards")]
    Uninstall { plugin: String },
}

pub(crate) fn run(task: PluginsTask) -> ExitCode {
    if !matches!(task, PluginsTask::List)
        && let Some(failure) = refusal_inside_tool_call("changes plugins")
    {
        return failed(&failure);
    }
    let environment = Environment::from_process();
    let inputs = Inputs { workspace_roots: working_folder::current_folder(), ..Inputs::default() };
    let known = config::resolve(&environment, &inputs).plugins;
    let done = match task {
        PluginsTask::List => Ok(plugins::list(&known)),
        PluginsTask::Install { plugin, yes } => {
            block_on(plugins::install(&environment, &known, &plugin, &|text, question| {
                confirm(text, question, yes)
            }))
        }
        PluginsTask::Update { source, yes } => {
            block_on(plugins::update(&environment, &known, &source, &|text, question| {
                confirm(text, question, yes)
            }))
        }
        PluginsTask::Uninstall { plugin } => plugins::uninstall(&environment, &plugin),
    };
    match done {
        Ok(text) => super::print_bytes(format!("{}\n", visible_text(text.trim_end())).as_bytes()),
        Err(failure) => failed(&failure),
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal(format!("No runtime: {error}.")))?;
    runtime.block_on(work)
}

fn confirm(text: &str, question: &str, yes: bool) -> Result<bool, Failure> {
    print_line(&visible_text(text))?;
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::user("Nobody can be asked here.")
            .hint("Look at the text above, and add --yes to agree."));
    }
    deliver(format!("{question} [y/N] "))?;
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}
