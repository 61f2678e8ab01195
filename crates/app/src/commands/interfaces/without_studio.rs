//! `dragoman studio` in a build without it: says how to get it.

use std::process::ExitCode;
use std::sync::Arc;

use domain::{Failure, Store};

use crate::cli::Level;
use crate::commands::failed;
use crate::commands::studio_arguments::StudioArguments;

pub(crate) fn run(_arguments: StudioArguments, _level: Option<Level>) -> ExitCode {
    failed(
        &Failure::config("This build of dragoman has no `studio`.")
            .hint("Build the whole program with `make build`; it is target/release/dragoman then."),
    )
}

/// There are no tabs to copy.
pub(crate) async fn copy_tabs(_from: Arc<dyn Store>, _to: Arc<dyn Store>) -> Result<usize, Failure> {
    Ok(0)
}
