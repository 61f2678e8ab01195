//! `dragoman import`: settings and chats of other programs. Shows the plan, and follows it on yes.
//!
//! Invariant: without a yes nothing is written.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use config::Environment;
use domain::{Failure, visible_text};
use import::{Program, Selection};

use super::failed;
use crate::output::{deliver, print};
use crate::{attaching, lifetime, stores, working_folder};

pub(crate) const HELP: &str = "Example:
  dragoman import                  shows what is there and asks
  dragoman import --from claude    of one program only
  dragoman import --dry-run        shows it and changes nothing
  dragoman import --yes --json     for scripts";

#[derive(Args)]
pub(crate) struct ImportArguments {
    /// Only from this program; may be given several times.
    #[arg(long, value_enum, value_name = "PROGRAM")]
    from: Vec<Program>,
    /// Leave chats out.
    #[arg(long)]
    no_chats: bool,
    /// Copy settings of the project also where its files count as they are.
    #[arg(long)]
    copy: bool,
    /// Leave settings out.
    #[arg(long, conflicts_with = "no_chats")]
    only_chats: bool,
    /// Import without a question.
    #[arg(long)]
    yes: bool,
    /// Show the plan and change nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// For scripts. Asks nothing: without --yes nothing is changed.
    #[arg(long)]
    json: bool,
}

impl ImportArguments {
    fn selection(&self) -> Selection {
        Selection {
            programs: self.from.clone(),
            settings: !self.only_chats,
            chats: !self.no_chats,
            copies: self.copy,
        }
    }
}

pub(crate) fn run(arguments: &ImportArguments) -> ExitCode {
    let environment = Environment::from_process();
    if let Some(failure) = attaching::refusal_inside_tool_call("imports settings") {
        return failed(&failure);
    }
    let folder = working_folder::current_folder().into_iter().next().unwrap_or_else(|| PathBuf::from("."));
    lifetime::run(async {
        // A store that is not there knows no chat, and a plan alone does not create it.
        let history = || stores::is_there(&environment).then(|| stores::open(&environment)).transpose();
        let import = import::prepare(&environment, &folder, &arguments.selection(), history).await?;
        if !arguments.json {
            print(visible_text(&import.text()).as_bytes())?;
        }
        let wanted = !import.is_empty() && is_wanted(arguments)?;
        let written = if wanted { import.write(|| stores::open(&environment)).await? } else { Vec::new() };
        let report = import.report(&written, wanted, arguments.json);
        print(visible_text(&report).as_bytes())
    })
}

/// Without a terminal nobody can say yes, so only `--yes` counts.
fn is_wanted(arguments: &ImportArguments) -> Result<bool, Failure> {
    if arguments.yes || arguments.dry_run || arguments.json {
        return Ok(arguments.yes);
    }
    if !std::io::stdin().is_terminal() {
        print("\nThere is no terminal to ask in; `--yes` imports this.\n")?;
        return Ok(false);
    }
    deliver("\nImport this? [y/N] ")?;
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}
