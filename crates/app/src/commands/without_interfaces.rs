//! The commands for API specifications in a build without them: each says how to get it.
//!
//! Invariant: the command line is the same in every build, so that help, completions and scripts are too.

use std::process::ExitCode;

use domain::Failure;

use super::failed;

pub(crate) mod copilot {
    //! Stands in for `dragoman copilot`.

    use super::{ExitCode, refuse};
    use crate::cli::Level;

    pub(crate) fn run(_level: Option<Level>) -> ExitCode {
        refuse("copilot")
    }
}

pub(crate) mod generate {
    //! Stands in for `dragoman generate`.

    use super::{ExitCode, refuse};
    use crate::commands::generate_arguments::GenerateArguments;

    pub(crate) fn run(_arguments: &GenerateArguments) -> ExitCode {
        refuse("generate")
    }
}

pub(crate) mod spec {
    //! Stands in for `dragoman spec`.

    use super::{ExitCode, refuse};

    pub(crate) fn check(_place: &str, _fetch_refs: bool, _as_json: bool) -> ExitCode {
        refuse("spec check")
    }
}

fn refuse(command: &str) -> ExitCode {
    failed(
        &Failure::config(format!("This build of dragoman has no `{command}`: it leaves API interfaces out."))
            .hint("Build the whole program with `make build`; it is target/release/dragoman then."),
    )
}
