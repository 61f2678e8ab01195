//! The rules of the machine's administrator, before anything else of the program begins.
//! Invariant: a file of rules that cannot be used lets no command begin but those that describe the program itself.

use config::Managed;
use domain::{Failure, hosts};

use crate::cli::{Cli, Task};

pub(crate) fn obey(cli: &Cli) -> Result<(), Failure> {
    let is_description = matches!(cli.command, Some(Task::Completions { .. } | Task::Man { .. }));
    match Managed::of_this_machine() {
        Err(failure) if !is_description => return Err(failure),
        Ok(Some(managed)) => {
            if let Some(list) = managed.rules.hosts() {
                hosts::permit_hosts(list.clone());
            }
        }
        Ok(None) | Err(_) => {}
    }
    Ok(())
}
