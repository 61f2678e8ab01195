//! `dragoman import`: settings and chats of other programs. Shows the plan, and follows it on yes.
//!
//! Invariants: files of other programs are never changed; without a yes nothing is written; a second import changes nothing;
//! servers arrive switched off; what is written for a project takes effect only in a trusted folder.

mod agents;
mod chats;
mod gemini;
mod markdown;
mod opencode;
mod permissions;
mod plan;
mod providers;
mod secrets;
mod sources;
mod yaml;

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use config::Environment;
use domain::{Failure, visible_line, visible_text};
use serde_json::{Value, json};

use super::failed;
use crate::lifetime;
use crate::output::{deliver, print};
use chats::ForeignChat;
use plan::{Plan, Program, Scope, Step};

pub(crate) const HELP: &str = "Example:
  dragoman import                  shows what is there and asks
  dragoman import --from claude    of one program only
  dragoman import --dry-run        shows it and changes nothing
  dragoman import --yes --json     for scripts";

/// The server of calls in chats of ECA; `eca` itself is the name of the built-in tools.
const IMPORTED_ECA: &str = "eca-chat";

#[derive(Args)]
pub(crate) struct ImportArguments {
    /// Only from this program; may be given several times.
    #[arg(long, value_enum, value_name = "PROGRAM")]
    from: Vec<Program>,
    /// Leave chats out.
    #[arg(long)]
    no_chats: bool,
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

/// What was found and what would be done.
struct Import<'a> {
    plan: Plan<'a>,
    chats: Vec<ForeignChat>,
    /// Chats that are in the history already.
    known_chats: usize,
}

pub(crate) fn run(arguments: &ImportArguments) -> ExitCode {
    let environment = Environment::from_process();
    if let Some(failure) = crate::attaching::refusal_inside_tool_call("imports settings") {
        return failed(&failure);
    }
    let folder = crate::workspaces::current_folder().into_iter().next().unwrap_or_else(|| PathBuf::from("."));
    lifetime::run(async {
        let import = prepare(&environment, &folder, arguments).await?;
        if !arguments.json {
            print(visible_text(&import.text()).as_bytes())?;
        }
        let wanted = !import.is_empty() && is_wanted(arguments)?;
        let written = if wanted { import.write(&environment).await? } else { Vec::new() };
        let report = import.report(&written, wanted, arguments.json);
        print(visible_text(&report).as_bytes())
    })
}

async fn prepare<'a>(
    environment: &'a Environment,
    folder: &'a Path,
    arguments: &ImportArguments,
) -> Result<Import<'a>, Failure> {
    let programs: Vec<Program> =
        if arguments.from.is_empty() { Program::value_variants().to_vec() } else { arguments.from.clone() };
    let mut plan = Plan::new(environment, folder)?;
    if !arguments.only_chats {
        programs.iter().for_each(|program| sources::read(&mut plan, *program));
    }
    let (mut chats, mut known_chats) = (Vec::new(), 0);
    if !arguments.no_chats {
        let (found, unusable) = chats::find(environment, folder, &programs);
        for (file, why) in unusable {
            plan.left_out.push(plan::LeftOut { file, what: "chats".to_owned(), why });
        }
        for chat in found.iter().filter(|chat| chat.unreadable > 0) {
            let why = format!("{} of its entries could not be read", chat.unreadable);
            let what = "parts of a chat".to_owned();
            plan.left_out.push(plan::LeftOut { file: chat.file.clone(), what, why });
        }
        // A store that is not there knows no chat, and a plan alone does not create it.
        let journal = match crate::stores::is_there(environment) && !found.is_empty() {
            true => Some(crate::stores::open(environment)?),
            false => None,
        };
        for chat in found {
            let known = match &journal {
                Some(journal) => journal.newest(&chat.session()).await?,
                None => None,
            };
            match known {
                Some(_) => known_chats += 1,
                None => chats.push(chat),
            }
        }
    }
    Ok(Import { plan, chats, known_chats })
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

impl Import<'_> {
    fn is_empty(&self) -> bool {
        self.plan.steps.is_empty() && self.chats.is_empty()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut section = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                text.push_str(&format!("{title}\n{}\n\n", lines.join("\n")));
            }
        };
        let found = self.plan.found.iter().map(|source| {
            format!("  {:<12} {}", source.program.title(), visible_line(&source.path.display().to_string()))
        });
        section("Found:", found.collect());
        for scope in [Scope::User, Scope::Project] {
            let file = self.plan.settings_file(scope);
            let own = self.plan.steps.iter().filter_map(|step| match step {
                Step::Setting { scope: of, text, .. } if *of == scope => {
                    Some(format!("  {}", visible_line(text)))
                }
                Step::Setting { .. } | Step::File { .. } => None,
            });
            section(&format!("Would be added to {}:", file.path().display()), own.collect());
        }
        let files = self.plan.steps.iter().filter_map(|step| match step {
            Step::File { path, .. } => Some(format!("  {}", visible_line(&path.display().to_string()))),
            Step::Setting { .. } => None,
        });
        section("New files:", files.collect());
        section("Chats:", self.chat_lines());
        let left = self.plan.left_out.iter().map(|left| {
            let file = left.file.display().to_string();
            format!("  {}: {} ({})", visible_line(&left.what), visible_line(&left.why), visible_line(&file))
        });
        section("No place here, or not copied:", left.collect());
        if self.is_empty() {
            text.push_str("There is nothing to import.\n");
        }
        text
    }

    fn chat_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for program in Program::value_variants() {
            let count = self.chats.iter().filter(|chat| chat.program == *program).count();
            if count > 0 {
                lines.push(format!("  {:<12} {count} new", program.title()));
            }
        }
        if self.known_chats > 0 {
            lines.push(format!("  {} are in the history already", self.known_chats));
        }
        lines
    }

    /// Follows the plan. Returns the files that were written.
    async fn write(&self, environment: &Environment) -> Result<Vec<PathBuf>, Failure> {
        let mut written = Vec::new();
        // Settings first: they hold what an agent may not do, and its file alone would make it an agent.
        for scope in [Scope::User, Scope::Project] {
            let changes = self.plan.changes(scope);
            if !changes.is_empty() {
                written.push(self.plan.settings_file(scope).change(&changes)?.path);
            }
        }
        for step in &self.plan.steps {
            if let Step::File { path, content, is_program } = step {
                write_new_file(path, content, *is_program).map_err(|error| {
                    Failure::user(format!("{} cannot be written: {error}.", path.display()))
                })?;
                written.push(path.clone());
            }
        }
        if !self.chats.is_empty() {
            let journal = crate::stores::open(environment)?;
            for chat in &self.chats {
                chats::write(journal.as_ref(), chat).await?;
            }
        }
        Ok(written)
    }

    /// The members of the JSON are a promise to scripts.
    fn report(&self, written: &[PathBuf], is_written: bool, as_json: bool) -> String {
        if as_json {
            return format!("{:#}\n", self.json(written, is_written));
        }
        if !is_written {
            return if self.is_empty() { String::new() } else { "\nNothing was changed.\n".to_owned() };
        }
        let mut text = String::from("\nImported.\n");
        let in_project = written.iter().any(|file| file.starts_with(self.plan.folder.join(".dragoman")));
        if written.iter().any(|file| file.with_extension("json.bak").exists()) {
            text.push_str("The former settings are kept beside the new ones as config.json.bak.\n");
        }
        for name in &self.plan.new_servers {
            text.push_str(&format!(
                "The MCP server {name} is off: `dragoman mcp enable {name}` switches it on.\n"
            ));
        }
        if in_project {
            text.push_str("What was written for this folder takes effect after `dragoman trust`.\n");
        }
        if !self.chats.is_empty() {
            text.push_str("`dragoman chats list --all` lists the chats.\n");
        }
        text
    }

    fn json(&self, written: &[PathBuf], is_written: bool) -> Value {
        let found = self
            .plan
            .found
            .iter()
            .map(|source| json!({"program": source.program.name(), "file": source.path}));
        let steps = self.plan.steps.iter().map(|step| match step {
            Step::Setting { scope, change, text } => json!({
                "file": self.plan.settings_file(*scope).path(), "key": change.keys.join("."), "text": text,
            }),
            Step::File { path, .. } => json!({"file": path}),
        });
        let chats = self.chats.iter().map(|chat| {
            json!({"program": chat.program.name(), "id": chat.session().as_str(), "file": chat.file, "day": chat.day})
        });
        let left = self
            .plan
            .left_out
            .iter()
            .map(|left| json!({"file": left.file, "what": left.what, "why": left.why}));
        json!({
            "imported": is_written,
            "found": found.collect::<Vec<_>>(),
            "steps": steps.collect::<Vec<_>>(),
            "chats": chats.collect::<Vec<_>>(),
            "knownChats": self.known_chats,
            "leftOut": left.collect::<Vec<_>>(),
            "written": written,
        })
    }
}

/// Whether a tool call came with a chat of another program.
pub(crate) fn is_imported_call(server: &str) -> bool {
    Program::value_variants().iter().any(|program| server_name(*program) == server)
}

/// The server of the tool calls in imported chats.
fn server_name(program: Program) -> &'static str {
    if program == Program::Eca { IMPORTED_ECA } else { program.name() }
}

/// Writes a private file that must not be there yet.
fn write_new_file(path: &Path, content: &str, is_program: bool) -> std::io::Result<()> {
    let folder = path.parent().ok_or(std::io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content.as_bytes())?;
    if is_program {
        platform::set_file_mode(file.as_file(), 0o700)?;
    }
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    Ok(())
}
