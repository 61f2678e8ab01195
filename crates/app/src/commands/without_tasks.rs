//! The commands about tasks in a build without PostgreSQL: each says so.

use std::process::ExitCode;

use domain::Failure;

use super::failed;
use super::task_arguments::{SubmitArguments, TasksTask, WorkerArguments};
use crate::cli::Level;

pub(crate) fn submit(_: &SubmitArguments) -> ExitCode {
    missing()
}

pub(crate) fn tasks(_: TasksTask) -> ExitCode {
    missing()
}

pub(crate) fn worker(_: &WorkerArguments, _: Option<Level>) -> ExitCode {
    missing()
}

fn missing() -> ExitCode {
    failed(
        &Failure::config("Tasks are in a PostgreSQL database, and this build has no support for it.")
            .hint("Use a released build, or build with the feature `postgres`."),
    )
}
