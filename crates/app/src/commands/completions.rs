//! `dragoman completions SHELL`: from the same definitions as `--help`.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;

pub fn run(shell: Shell) -> ExitCode {
    // Into memory first: whoever closes the pipe has seen enough, and that is no panic.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "dragoman", &mut script);
    super::print_bytes(&script)
}
