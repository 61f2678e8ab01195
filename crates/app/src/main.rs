//! `dragoman`: the command line → settings → engine → the chosen front-end.
//!
//! Owns exit codes and the order of the start. Invariant: only protocol messages reach the stdout of a server.

mod accounts;
mod agents;
mod approve;
mod arguments;
mod attaching;
mod built_in_tools;
mod cli;
mod cli_hints;
mod clipboard;
mod commands;
mod dispatch;
mod doctor;
mod git;
mod hooks;
mod installation;
mod keyring;
mod language_servers;
mod lifetime;
mod logging;
mod managed;
mod mcp_entries;
mod models;
mod output;
mod overview;
mod places;
mod project_rules;
mod retention;
mod sandboxing;
mod servers;
mod settings_review;
mod skills;
mod stores;
#[cfg_attr(not(feature = "telemetry"), path = "without_telemetry.rs")]
mod telemetry;
mod texts;
mod working_folder;
mod workspaces;
mod worktrees;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before any thread exists: the helper forks.
    if let Some(code) = sandboxing::run_helper() {
        return code;
    }
    platform::memory::map_large_blocks();
    // A process that must write its own uid_map has to do so before this: the kernel refuses it afterwards.
    let debuggable = config::Environment::from_process().flag("DRAGOMAN_DEBUGGABLE");
    // SAFETY: no thread was started before main.
    unsafe { process::hide_own_environment(debuggable) };
    dispatch::run()
}
