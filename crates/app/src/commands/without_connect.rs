//! `--connect` in a build without it: says how to get it.

use std::process::ExitCode;

use domain::Failure;

use super::connect_arguments::ConnectArguments;
use super::failed;
use crate::cli::Level;

pub(crate) const ACP: () = ();
pub(crate) const ECA: () = ();

pub(crate) fn run(_arguments: &ConnectArguments, _protocol: &(), _level: Option<Level>) -> ExitCode {
    failed(&missing())
}

pub(crate) fn credential_name(_url: &str) -> Result<String, Failure> {
    Err(missing())
}

fn missing() -> Failure {
    Failure::config("This build of dragoman cannot connect to a server.")
        .hint("Build the whole program with `make build`; it is target/release/dragoman then.")
}
