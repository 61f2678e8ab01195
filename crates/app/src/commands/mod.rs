//! One file per command; the logic is in the crate that owns the data. Alone allowed to print.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "commands talk to the person who typed them")]

pub mod acp;
pub mod config;
pub mod copilot;
pub mod explain_permission;
pub mod generate;
pub mod login;
pub mod models;
pub mod run;
pub mod server;
pub mod spec;
pub mod threads;
pub mod trust;

use std::process::ExitCode;

use domain::Failure;

/// Says what went wrong and what to do, and gives the exit code for it.
pub fn failed(failure: &Failure) -> ExitCode {
    eprintln!("dragoman: {failure}");
    ExitCode::FAILURE
}
