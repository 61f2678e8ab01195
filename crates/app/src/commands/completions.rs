//! `dragoman completions SHELL`: from the same definitions as `--help`.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;

pub(crate) fn run(shell: Shell) -> ExitCode {
    // Write to memory first: a closed pipe must not panic.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "dragoman", &mut script);
    super::print_bytes(&script)
}
