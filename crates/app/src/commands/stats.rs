//! `dragoman stats`: what was used, by day, model, project, chat and tool.
//!
//! Invariant: nothing is sent anywhere and no model is asked.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use config::Environment;
use domain::Failure;
use stats::ChatKinds;

use super::failed;
use crate::cli::StatsArguments;
use crate::output::print;
use crate::{lifetime, stores};

pub(crate) const KINDS: ChatKinds =
    ChatKinds { is_subagent: engine::is_subagent, is_imported: import::is_imported_call };

pub(crate) fn run(arguments: StatsArguments) -> ExitCode {
    let environment = Environment::from_process();
    let journal = match stores::open(&environment) {
        Ok(journal) => journal,
        Err(failure) => return failed(&failure),
    };
    lifetime::run(async {
        let workspace = arguments.here.then(crate::working_folder::current_folder);
        let stats = stats::collect(journal.as_ref(), workspace, arguments.days, KINDS).await?;
        if arguments.json {
            print(format!("{:#}\n", stats.json()))
        } else if let Some(path) = &arguments.html {
            write(path, &stats::page::render(&stats))?;
            print(format!("Written to {}.\n", path.display()))
        } else {
            print(stats::text::render(&stats, columns(&environment)))
        }
    })
}

/// The width of the terminal, as the shell tells it.
fn columns(environment: &Environment) -> usize {
    let told = environment.var("COLUMNS").and_then(|columns| columns.parse().ok());
    told.or_else(platform::terminal::columns).unwrap_or(80).clamp(40, 200)
}

/// Replaces the page as a whole.
fn write(path: &Path, page: &str) -> Result<(), Failure> {
    let unwritable =
        |error: std::io::Error| Failure::user(format!("{} cannot be written: {error}.", path.display()));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(unwritable)?;
    file.write_all(page.as_bytes()).map_err(unwritable)?;
    file.persist(path).map_err(|error| unwritable(error.error))?;
    Ok(())
}
