//! One file per command; the logic is in the crate that owns the data. Commands print by `crate::output`.

pub(crate) mod acp;
pub(crate) mod acp_agents;
pub(crate) mod attach;
pub(crate) mod chat;
mod chat_themes;
pub(crate) mod chats;
mod chats_json;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod config_edit;
#[cfg(feature = "serve")]
pub(crate) mod connect;
pub(crate) mod connect_arguments;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod doctor_sandbox;
#[cfg(feature = "serve")]
mod editors;
pub(crate) mod explain_permission;
pub(crate) mod generate_arguments;
pub(crate) mod grants;
pub(crate) mod import;
#[cfg_attr(not(feature = "interfaces"), path = "without_interfaces.rs")]
pub(crate) mod interfaces;
pub(crate) mod login;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod mcp_server;
pub(crate) mod models;
mod notes;
pub(crate) mod plugins;
pub(crate) mod ps;
pub(crate) mod replay;
pub(crate) mod run;
#[cfg(feature = "serve")]
mod running_chats;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod serve_arguments;
#[cfg(feature = "serve")]
mod serve_network;
#[cfg(feature = "serve")]
mod serve_tokens;
pub(crate) mod server;
pub(crate) mod setup;
pub(crate) mod stats;
pub(crate) mod store;
mod store_check;
pub(crate) mod studio_arguments;
pub(crate) mod task_arguments;
#[cfg_attr(not(feature = "postgres"), path = "without_tasks.rs")]
pub(crate) mod tasks;
pub(crate) mod threads;
mod tool_bridge;
pub(crate) mod trust;
pub(crate) mod update;
#[cfg(any(feature = "serve", feature = "studio"))]
pub(crate) mod web_page;
#[cfg(not(feature = "serve"))]
pub(crate) mod without_connect;
#[cfg(not(feature = "serve"))]
pub(crate) mod without_serve;

use std::process::ExitCode;

use domain::Failure;
#[cfg(not(feature = "serve"))]
pub(crate) use without_connect as connect;
#[cfg(not(feature = "serve"))]
pub(crate) use without_serve as serve;

/// Prints a failure and returns exit code 1.
pub(crate) fn failed(failure: &Failure) -> ExitCode {
    crate::output::note(&format!("dragoman: {}", domain::visible_text(&failure.to_string())));
    ExitCode::FAILURE
}

/// Prints the result of a command and returns its exit code: 1 where stdout cannot be written.
#[must_use]
pub(crate) fn print_bytes(bytes: &[u8]) -> ExitCode {
    finish(crate::output::print(bytes))
}

/// The exit code of a command that prints its failure.
pub(crate) fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&failure),
    }
}
