//! The commands for API specifications in a build without them: each says how to get it.
//!
//! Invariant: the command line is the same in every build, so that help, completions and scripts are too.

#[path = "interfaces/without_studio.rs"]
mod studio;

use std::process::ExitCode;

use domain::Failure;

use super::failed;
use super::generate_arguments::GenerateArguments;
use super::mcp_server::ApiServer;
use crate::cli::Level;

pub(crate) use studio::copy_tabs;
pub(crate) use studio::run as studio;

pub(crate) fn copilot(_level: Option<Level>) -> ExitCode {
    refuse("copilot")
}

pub(crate) fn generate(_arguments: GenerateArguments) -> ExitCode {
    refuse("generate")
}

pub(crate) fn check(_place: &str, _fetch_refs: bool, _as_json: bool) -> ExitCode {
    refuse("spec check")
}

pub(crate) fn api_server(_options: ApiServer, _level: Option<Level>) -> ExitCode {
    refuse("mcp-server --spec")
}

fn refuse(command: &str) -> ExitCode {
    failed(
        &Failure::config(format!("This build of dragoman has no `{command}`: it leaves API interfaces out."))
            .hint("Build the whole program with `make build`; it is target/release/dragoman then."),
    )
}
