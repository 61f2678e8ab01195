//! `dragoman setup`: the settings of editors, so that they start this program. Shows the change, and makes it on yes.

use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use config::Environment;
use domain::{Failure, visible_line, visible_source};
use serde_json::{Value, json};
use setup::{EDITORS, Edit, Editor, Folders, Plan, SetupError};

use super::failed;
use crate::{installation, output};

pub(crate) const HELP: &str = "Example:
  dragoman setup                    the editors of this machine
  dragoman setup zed                shows the change and asks
  dragoman setup vscode --yes       for scripts
  dragoman setup zed --undo         takes the change back";

#[derive(Args)]
pub(crate) struct SetupArguments {
    /// zed, vscode, jetbrains, neovim, emacs, helix, …; without a name: list the editors found.
    pub editor: Option<String>,
    /// Make the change without a question.
    #[arg(long, requires = "editor")]
    pub yes: bool,
    /// Show the change and make none.
    #[arg(long, requires = "editor", conflicts_with = "yes")]
    pub dry_run: bool,
    /// Take the change back.
    #[arg(long, requires = "editor")]
    pub undo: bool,
    /// For scripts. Asks nothing: without --yes nothing is changed.
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(arguments: &SetupArguments) -> ExitCode {
    let environment = Environment::from_process();
    let folders = folders(&environment);
    let command = installation::command_path(&environment);
    let Some(name) = &arguments.editor else {
        return list(&folders, &command, &environment, arguments.json);
    };
    if let Some(failure) = crate::attaching::refusal_inside_tool_call("changes settings of editors") {
        return failed(&failure);
    }
    let Some(editor) = Editor::named(name) else {
        let names: Vec<&str> = EDITORS.iter().map(|editor| editor.name).collect();
        failed(
            &Failure::user(format!("`{}` is not an editor that Dragoman can set up.", visible_line(name)))
                .hint(format!("There are: {}.", names.join(", "))),
        );
        return ExitCode::from(2);
    };
    let planned = match arguments.undo {
        true => setup::plan_undo(editor, &folders),
        false => setup::plan(editor, &folders, &command),
    };
    let outcome = planned.map_err(|error| with_hint(error, editor, &command)).and_then(|plan| {
        let is_there = is_there(editor, &folders, &environment);
        let step = Step { editor, folders: &folders, arguments, is_there };
        step.follow(plan)
    });
    match outcome {
        Ok(code) => code,
        Err(failure) => failed(&failure),
    }
}

fn folders(environment: &Environment) -> Folders {
    let config = environment.config_dir().parent().map(Path::to_owned).unwrap_or_default();
    let applications = match std::env::consts::OS {
        "macos" => environment.home().join("Library/Application Support"),
        "windows" => environment
            .var("APPDATA")
            .map_or_else(|| environment.home().join("AppData/Roaming"), std::path::PathBuf::from),
        _ => config.clone(),
    };
    Folders {
        home: environment.home().to_owned(),
        config,
        applications,
        data: environment.xdg_data_home(),
        copies: environment.data_dir().join("setup"),
    }
}

/// An editor is on this machine where its folder is, or where a shell would find its program.
fn is_there(editor: &Editor, folders: &Folders, environment: &Environment) -> bool {
    let path = environment.var("PATH").unwrap_or_default();
    let in_path = |program: &&str| {
        let names = [(*program).to_owned(), format!("{program}.exe"), format!("{program}.cmd")];
        std::env::split_paths(path).any(|folder| names.iter().any(|name| folder.join(name).is_file()))
    };
    editor.find(folders).is_some() || editor.programs.iter().any(in_path)
}

/// A file that cannot be changed is the user's to change: the text for it follows.
fn with_hint(error: SetupError, editor: &Editor, command: &str) -> Failure {
    let failure = Failure::user(error.to_string());
    match error {
        SetupError::Unclear { .. } | SetupError::Unwritable { .. } => failure.hint(format!(
            "Make the change by hand: {} starts `{command}`; `dragoman docs install` shows the lines.",
            editor.title
        )),
        SetupError::Unreadable { .. } | SetupError::Changed(_) | SetupError::NothingToUndo => failure,
    }
}

fn list(folders: &Folders, command: &str, environment: &Environment, as_json: bool) -> ExitCode {
    let rows: Vec<(&Editor, bool, &str)> = EDITORS
        .iter()
        .map(|editor| {
            let found = is_there(editor, folders, environment);
            let state = match setup::plan(editor, folders, command) {
                _ if !found => "not found",
                Ok(Plan::Done { .. }) => "set up",
                Ok(Plan::Edit(_)) => "can be set up",
                Ok(Plan::Snippet { .. }) => "has lines to paste",
                Err(_) => "has settings that cannot be read",
            };
            (editor, found, state)
        })
        .collect();
    if as_json {
        let editors: Vec<Value> = rows
            .iter()
            .map(|(editor, found, state)| {
                let file = editor.settings_file(folders);
                json!({"name": editor.name, "title": editor.title, "found": found, "state": state,
                       "file": file, "needs": editor.needs})
            })
            .collect();
        return print(&format!("{:#}", json!({"command": command, "editors": editors})));
    }
    let mut lines: Vec<String> = rows
        .iter()
        .filter(|(_, found, _)| *found)
        .map(|(editor, _, state)| format!("{:<16} {:<18} needs {}", editor.name, state, editor.needs))
        .collect();
    let names = |found: bool| -> String {
        let names: Vec<&str> =
            rows.iter().filter(|(_, it, _)| *it == found).map(|(editor, ..)| editor.name).collect();
        names.join(", ")
    };
    if lines.is_empty() {
        lines.push("No editor was found.".to_owned());
    } else {
        lines.push("\n`dragoman setup NAME` shows the change and asks.".to_owned());
    }
    let missing = names(false);
    if !missing.is_empty() {
        lines.push(format!("Not found: {missing}."));
    }
    print(&lines.join("\n"))
}

/// One editor, and what the user asked for.
struct Step<'a> {
    editor: &'a Editor,
    folders: &'a Folders,
    arguments: &'a SetupArguments,
    /// Whether the editor is on this machine.
    is_there: bool,
}

impl Step<'_> {
    fn follow(&self, plan: Plan) -> Result<ExitCode, Failure> {
        match plan {
            Plan::Done { file } => {
                if self.arguments.undo && !self.arguments.dry_run {
                    self.write(None)?;
                }
                let text = match self.arguments.undo {
                    true => "no longer has anything of Dragoman",
                    false => "starts this Dragoman already",
                };
                Ok(self.report(&file, "done", json!({}), &format!("{} {text}.", self.editor.title)))
            }
            Plan::Snippet { file, text, reason } => {
                let shown = visible_line(&file.display().to_string()).into_owned();
                let message = format!(
                    "{reason} Add these lines to {shown}:\n\n{text}\nIt needs {}.",
                    self.editor.needs
                );
                Ok(self.report(&file, "snippet", json!({"snippet": text}), &message))
            }
            Plan::Edit(edit) => self.change(&edit),
        }
    }

    fn change(&self, edit: &Edit) -> Result<ExitCode, Failure> {
        let diff = visible_source(&edit.diff()).into_owned();
        let shown = visible_line(&edit.file.display().to_string()).into_owned();
        if !self.arguments.json {
            let verb = if edit.after.is_none() { "Remove" } else { "Change" };
            output::print_line(&format!("{verb} {shown}:\n\n{diff}"))?;
        }
        if !self.is_wanted()? {
            let message = "Nothing was changed.";
            return Ok(self.report(&edit.file, "planned", json!({"diff": diff}), message));
        }
        if !self.is_there && !self.arguments.undo {
            let text =
                format!("{} was not found on this machine, so nothing was written.", self.editor.title);
            return Err(Failure::user(text)
                .hint("Start the editor once, so that it makes its folder, then try again."));
        }
        let copy = self.write(Some(edit))?;
        let mut message = match self.arguments.undo {
            true => format!("{shown} is as it was."),
            false => format!(
                "{} starts Dragoman from now on; it needs {}. `dragoman setup {} --undo` takes it back.",
                self.editor.title, self.editor.needs, self.editor.name
            ),
        };
        if let Some(copy) = &copy {
            message.push_str(&format!(
                " The former file is kept: {}",
                visible_line(&copy.display().to_string())
            ));
        }
        Ok(self.report(&edit.file, "changed", json!({"diff": diff, "copy": copy}), &message))
    }

    /// Without a terminal nobody can say yes, so only `--yes` counts.
    fn is_wanted(&self) -> Result<bool, Failure> {
        if self.arguments.yes || self.arguments.dry_run || self.arguments.json {
            return Ok(self.arguments.yes);
        }
        if !std::io::stdin().is_terminal() {
            output::print_line("There is no terminal to ask in; `--yes` makes the change.")?;
            return Ok(false);
        }
        output::deliver("Make this change? [y/N] ")?;
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    fn write(&self, edit: Option<&Edit>) -> Result<Option<std::path::PathBuf>, Failure> {
        let written = match (self.arguments.undo, edit) {
            (false, Some(edit)) => setup::apply(self.editor, self.folders, edit),
            (_, edit) => setup::apply_undo(self.editor, self.folders, edit).map(|()| None),
        };
        written.map_err(|error| Failure::user(error.to_string()))
    }

    /// The members of the JSON are a promise to scripts.
    fn report(&self, file: &Path, state: &str, more: Value, message: &str) -> ExitCode {
        if !self.arguments.json {
            return print(message);
        }
        let mut report = json!({"editor": self.editor.name, "file": file, "state": state});
        if let (Some(report), Value::Object(more)) = (report.as_object_mut(), more) {
            report.extend(more);
        }
        print(&format!("{report:#}"))
    }
}

fn print(text: &str) -> ExitCode {
    super::print_bytes(format!("{text}\n").as_bytes())
}
