//! Settings and chats of other coding assistants: finds them, plans what would be written, and writes it.
//!
//! Invariants: files of other programs are never changed; [`prepare`] writes nothing; a second import changes nothing;
//! servers arrive switched off; what is written for a project takes effect only in a trusted folder.

mod agents;
mod chats;
mod choices;
mod claude;
mod codex;
mod cursor;
mod eca;
mod gemini;
mod goose;
mod markdown;
mod opencode;
mod permissions;
mod place;
mod plan;
mod programs;
mod providers;
mod secrets;
pub mod servers;
mod toml;
mod tool_names;
mod yaml;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use config::Environment;
use domain::{Failure, Store, visible_line};
use serde_json::{Value, json};

use chats::ForeignChat;
use plan::{Plan, Scope, Step, server_name};

pub use choices::{Choice, Choices, Thing};
pub use plan::Program;

/// What to look for.
pub struct Selection {
    /// None: all of them.
    pub programs: Vec<Program>,
    pub settings: bool,
    pub chats: bool,
    /// What to do with single things.
    pub choices: Choices,
}

/// What was found and what would be done.
pub struct Import<'a> {
    plan: Plan<'a>,
    chats: Vec<ForeignChat>,
    /// Chats that are in the history already.
    known_chats: usize,
}

/// Looks at the files of other programs. `history` opens the chats that are here; it answers `None` where there are none yet.
pub async fn prepare<'a>(
    environment: &'a Environment,
    folder: &'a Path,
    selection: &'a Selection,
    history: impl FnOnce() -> Result<Option<Arc<dyn Store>>, Failure>,
) -> Result<Import<'a>, Failure> {
    let programs: &[Program] =
        if selection.programs.is_empty() { Program::value_variants() } else { &selection.programs };
    let mut plan = Plan::new(environment, folder, &selection.choices)?;
    if selection.settings {
        programs.iter().for_each(|program| programs::read(&mut plan, *program));
    }
    let (mut chats, mut known_chats) = (Vec::new(), 0);
    if selection.chats {
        let (found, unusable) = chats::find(environment, folder, programs);
        for (file, why) in unusable {
            plan.left_out.push(plan::LeftOut { file, what: "chats".to_owned(), why });
        }
        for chat in found.iter().filter(|chat| chat.unreadable > 0) {
            let why = format!("{} of its entries could not be read", chat.unreadable);
            let what = "parts of a chat".to_owned();
            plan.left_out.push(plan::LeftOut { file: chat.file.clone(), what, why });
        }
        let journal = if found.is_empty() { None } else { history()? };
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
    let found: Vec<PathBuf> = plan.found.iter().map(|source| source.path.clone()).collect();
    if let Some(path) = selection.choices.unused(&found).first() {
        let failure = Failure::user(format!("{} is none of the files that were found.", path.display()));
        return Err(failure.hint("`dragoman import --dry-run` lists them."));
    }
    Ok(Import { plan, chats, known_chats })
}

impl Import<'_> {
    pub fn is_empty(&self) -> bool {
        self.plan.steps.is_empty() && self.chats.is_empty()
    }

    /// The things that a user can choose about.
    pub fn things(&self) -> Vec<Thing> {
        self.plan.things()
    }

    /// The plan, for people.
    pub fn text(&self) -> String {
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
        let in_place = self.plan.in_place.iter().map(|(file, needs_trust)| {
            let when = if *needs_trust { ", after `dragoman trust`" } else { "" };
            format!("  {}{when}", visible_line(&file.display().to_string()))
        });
        section(
            "Used where they are, with the same effect (`--copy` or `--copy-file` copies settings):",
            in_place.collect(),
        );
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

    /// Follows the plan, with chats into the store that `history` opens. Returns the files that were written.
    pub async fn write(
        &self,
        history: impl FnOnce() -> Result<Arc<dyn Store>, Failure>,
    ) -> Result<Vec<PathBuf>, Failure> {
        let mut written = Vec::new();
        // Settings first: they hold what an agent may not do, and its file alone would make it an agent.
        for scope in [Scope::User, Scope::Project] {
            let changes = self.plan.changes(scope);
            if !changes.is_empty() {
                written.push(self.plan.settings_file(scope).change(&changes)?.path);
            }
        }
        for step in &self.plan.steps {
            if let Step::File { path, content, is_program, .. } = step {
                write_new_file(path, content, *is_program).map_err(|error| {
                    Failure::user(format!("{} cannot be written: {error}.", path.display()))
                })?;
                written.push(path.clone());
            }
        }
        if !self.chats.is_empty() {
            let journal = history()?;
            for chat in &self.chats {
                chats::write(journal.as_ref(), chat).await?;
            }
        }
        Ok(written)
    }

    /// The members of the JSON are a promise to scripts.
    pub fn report(&self, written: &[PathBuf], is_written: bool, as_json: bool) -> String {
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
            Step::Setting { scope, change, text, from } => json!({
                "file": self.plan.settings_file(*scope).path(), "key": change.keys.join("."), "text": text, "from": from,
            }),
            Step::File { path, from, .. } => json!({"file": path, "from": from}),
        });
        let choices = self.things().into_iter().map(|thing| {
            let words: Vec<&str> = thing.choices.iter().map(|choice| choice.words()).collect();
            json!({"file": thing.path, "choices": words})
        });
        let chats = self.chats.iter().map(|chat| {
            json!({"program": chat.program.name(), "id": chat.session().as_str(), "file": chat.file, "day": chat.day})
        });
        let left = self
            .plan
            .left_out
            .iter()
            .map(|left| json!({"file": left.file, "what": left.what, "why": left.why}));
        let in_place = self.plan.in_place.iter();
        let in_place = in_place.map(|(file, needs_trust)| json!({"file": file, "needsTrust": needs_trust}));
        json!({
            "imported": is_written,
            "found": found.collect::<Vec<_>>(),
            "steps": steps.collect::<Vec<_>>(),
            "chats": chats.collect::<Vec<_>>(),
            "knownChats": self.known_chats,
            "leftOut": left.collect::<Vec<_>>(),
            "inPlace": in_place.collect::<Vec<_>>(),
            "choices": choices.collect::<Vec<_>>(),
            "written": written,
        })
    }
}

/// Whether a tool call came with a chat of another program.
pub fn is_imported_call(server: &str) -> bool {
    Program::value_variants().iter().any(|program| server_name(*program) == server)
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
