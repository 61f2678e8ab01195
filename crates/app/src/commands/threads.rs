//! `dragoman threads`: the early Agent Communication Protocol on stdin and stdout.

use std::process::ExitCode;
use std::time::Duration;

use domain::Failure;
use proto_threads::{Driver, QUIET_TIME, ServeOptions};

use crate::cli::{Level, Role, ThreadsArguments};
use crate::commands::failed;
use crate::commands::server::on_stdio;

pub(crate) fn run(arguments: ThreadsArguments, level: Option<Level>) -> ExitCode {
    let folder = arguments
        .workspace
        .or_else(|| crate::working_folder::current_folder().into_iter().next())
        .unwrap_or_default();
    let workspace = match folder.canonicalize() {
        Ok(workspace) if workspace.is_dir() => workspace,
        _ => {
            failed(&Failure::user(format!("{} is not a folder.", folder.display())));
            return ExitCode::from(2);
        }
    };
    let options = ServeOptions {
        driver: arguments.role.map(|role| match role {
            Role::Editor => Driver::Editor,
            Role::Agent => Driver::Agent,
        }),
        workspace,
        grants: crate::approve::join_grants(&arguments.approve),
        quiet: arguments.quiet.map_or(QUIET_TIME, Duration::from_millis),
    };
    on_stdio(level, |engine, transport, _| proto_threads::serve(engine, transport, options))
}
