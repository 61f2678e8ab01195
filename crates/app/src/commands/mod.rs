//! One file per command; the logic is in the crate that owns the data. Alone allowed to print.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "commands talk to the person who typed them")]

pub mod acp;
pub mod chat;
pub mod chats;
pub mod completions;
pub mod config;
#[cfg(feature = "interfaces")]
pub mod copilot;
pub mod doctor;
pub mod explain_permission;
#[cfg(feature = "interfaces")]
pub mod generate;
pub mod login;
pub mod man;
pub mod models;
pub mod run;
pub mod server;
#[cfg(feature = "interfaces")]
pub mod spec;
pub mod threads;
pub mod trust;
#[cfg(not(feature = "interfaces"))]
mod without_interfaces;

use std::process::ExitCode;

use domain::Failure;
#[cfg(not(feature = "interfaces"))]
pub use without_interfaces::{copilot, generate, spec};

/// Says what went wrong and what to do, and gives the exit code for it.
pub fn failed(failure: &Failure) -> ExitCode {
    eprintln!("dragoman: {failure}");
    ExitCode::FAILURE
}

/// To stdout; a reader that went away has seen enough.
pub fn print_bytes(bytes: &[u8]) -> ExitCode {
    use std::io::Write;
    match std::io::stdout().lock().write_all(bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            failed(&Failure::user(format!("stdout cannot be written: {error}.")))
        }
        _ => ExitCode::SUCCESS,
    }
}
