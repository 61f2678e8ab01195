//! `dragoman import`: settings and chats of other programs. Shows the plan, and follows it on yes.
//!
//! Invariant: without a yes nothing is written.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use config::Environment;
use domain::{Failure, visible_line, visible_text};
use import::{Choice, Choices, Program, Selection, Thing};

use super::failed;
use crate::output::{deliver, print};
use crate::{attaching, lifetime, stores, working_folder};

pub(crate) const HELP: &str = "Example:
  dragoman import                  shows what is there and asks
  dragoman import --from claude    of one program only
  dragoman import --copy-file .mcp.json --leave-out .claude/agents
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
    /// Copy what comes from this file or folder, although it counts where it is; may be given several times.
    #[arg(long, value_name = "PATH")]
    copy_file: Vec<PathBuf>,
    /// Import nothing from this file or folder; may be given several times.
    #[arg(long, value_name = "PATH")]
    leave_out: Vec<PathBuf>,
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
    /// `folder`: paths of the command line begin there.
    fn selection(&self, folder: &Path) -> Selection {
        let mut choices = Choices::new(self.copy);
        for (paths, choice) in [(&self.copy_file, Choice::Copy), (&self.leave_out, Choice::LeaveOut)] {
            paths.iter().for_each(|path| choices.choose(folder.join(path).components().collect(), choice));
        }
        let (settings, chats) = (!self.only_chats, !self.no_chats);
        Selection { programs: self.from.clone(), settings, chats, choices }
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
        let mut selection = arguments.selection(&folder);
        loop {
            let import = import::prepare(&environment, &folder, &selection, history).await?;
            if !arguments.json {
                print(visible_text(&import.text()).as_bytes())?;
            }
            let things = import.things();
            let wish = ask(arguments, import.is_empty(), &things)?;
            if wish == Wish::Each {
                drop(import);
                ask_each(&things, &mut selection.choices)?;
                continue;
            }
            let wanted = wish == Wish::Yes && !import.is_empty();
            let written =
                if wanted { import.write(|| stores::open(&environment)).await? } else { Vec::new() };
            let report = import.report(&written, wanted, arguments.json);
            return print(visible_text(&report).as_bytes());
        }
    })
}

/// What the user wants with a plan.
#[derive(PartialEq)]
enum Wish {
    Yes,
    No,
    /// Choose about each thing, then look at the plan again.
    Each,
}

/// Without a terminal nobody can say yes, so only `--yes` counts.
fn ask(arguments: &ImportArguments, is_empty: bool, things: &[Thing]) -> Result<Wish, Failure> {
    if arguments.yes || arguments.dry_run || arguments.json {
        return Ok(if arguments.yes { Wish::Yes } else { Wish::No });
    }
    let has_terminal = std::io::stdin().is_terminal();
    if is_empty && (things.is_empty() || !has_terminal) {
        return Ok(Wish::No);
    }
    if !has_terminal {
        print("\nThere is no terminal to ask in; `--yes` imports this.\n")?;
        return Ok(Wish::No);
    }
    let each = if things.is_empty() { "" } else { ", e: choose for each" };
    let question = if is_empty { "Is this right? [Y" } else { "Import this? [y/N" };
    deliver(format!("\n{question}{each}] "))?;
    Ok(match answer().as_str() {
        "y" | "yes" => Wish::Yes,
        "e" | "each" if !things.is_empty() => Wish::Each,
        _ => Wish::No,
    })
}

/// Asks about each thing; an empty answer is the usual choice.
fn ask_each(things: &[Thing], choices: &mut Choices) -> Result<(), Failure> {
    for thing in things {
        let words: Vec<&str> = thing.choices.iter().map(|choice| choice.words()).collect();
        let path = visible_line(&thing.path.display().to_string()).into_owned();
        deliver(format!("{path}: {}? [{}] ", words.join(" or "), words[0]))?;
        let answer = answer();
        let chosen =
            thing.choices.iter().find(|choice| !answer.is_empty() && choice.words().starts_with(&answer));
        let Some(choice) = chosen.or(thing.choices.first()) else { continue };
        choices.choose(thing.path.clone(), *choice);
    }
    print("\n")
}

/// One line of the user, in lower case; empty where the input has ended.
fn answer() -> String {
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
    line.trim().to_lowercase()
}
