//! `dragoman studio` in a build without it: says how to get it.

use std::process::ExitCode;

use domain::Failure;

use super::failed;
use super::studio_arguments::StudioArguments;
use crate::cli::Level;

pub(crate) fn run(_arguments: StudioArguments, _level: Option<Level>) -> ExitCode {
    failed(
        &Failure::config("This build of dragoman has no `studio`.")
            .hint("Build the whole program with `make build`; it is target/release/dragoman then."),
    )
}
