//! `dragoman man`: manual pages from the same definitions as `--help`.

use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use domain::Failure;

use super::failed;
use crate::cli::Cli;

pub(crate) fn run(names: &[String], directory: Option<&Path>) -> ExitCode {
    let mut command = Cli::command();
    if let Some(directory) = directory {
        return write_all(command, directory);
    }
    command.build();
    match find(command, names).and_then(page) {
        Ok(page) => super::print_bytes(&page),
        Err(failure) => {
            failed(&failure);
            ExitCode::from(2)
        }
    }
}

/// `dragoman man chats list`: the page of that command.
fn find(command: Command, names: &[String]) -> Result<Command, Failure> {
    let mut found = command;
    let mut name = "dragoman".to_owned();
    for word in names {
        let Some(inner) = found.find_subcommand(word) else {
            return Err(Failure::user(format!("There is no command `{name} {word}`."))
                .hint("`dragoman --help` lists the commands."));
        };
        name = format!("{name} {word}");
        found = inner.clone();
    }
    Ok(found)
}

fn page(command: Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::internal(format!("The page cannot be written: {error}.")))?;
    Ok(page)
}

/// The command must not be built yet: then it has a `help` for each command, and each of these would be a page.
fn write_all(command: Command, directory: &Path) -> ExitCode {
    let written =
        std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(command, directory));
    match written {
        Ok(()) => super::print_bytes(format!("The pages are in {}.\n", directory.display()).as_bytes()),
        Err(error) => failed(&Failure::user(format!("{} cannot be written: {error}.", directory.display()))),
    }
}
