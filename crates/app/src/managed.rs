//! The rules of the machine's administrator, before anything else of the program begins.
//! Invariant: a file of rules that cannot be used lets no command begin but those that describe the program itself.

use std::process::ExitCode;

use config::Managed;
use domain::hosts;

use crate::cli::{self, Cli, Task};
use crate::commands;

pub(crate) fn obey(cli: Cli) -> ExitCode {
    let is_description = matches!(cli.command, Some(Task::Completions { .. } | Task::Man { .. }));
    match Managed::of_this_machine() {
        Err(failure) if !is_description => return commands::failed(&failure),
        Ok(Some(managed)) => {
            if let Some(list) = managed.rules.hosts() {
                hosts::permit_hosts(list.clone());
            }
        }
        Ok(None) | Err(_) => {}
    }
    cli::perform(cli)
}
