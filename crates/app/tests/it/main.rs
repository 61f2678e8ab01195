//! The real binary from outside: its protocols over stdio, its commands, a fake model over HTTP, a sealed home.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant")]
#![allow(clippy::print_stdout, reason = "`make figures` collects the lines that begin with `figure:`")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start the program and read their scale from the environment"
)]

mod acp;
mod acp_choices;
mod acp_client;
mod acp_editor;
mod acp_lifetime;
mod agent_proxy;
mod agent_walls;
mod agent_work;
mod approval_text;
mod attach;
mod aws;
mod child_environment;
mod client;
mod conformance;
mod crash;
mod denied_paths;
mod docs;
mod eca_accounts;
mod eca_agent;
mod eca_calls;
mod eca_commands;
mod eca_completion;
mod eca_contexts;
mod eca_draft;
mod eca_extending;
mod eca_history;
mod eca_hooks;
mod eca_inline;
mod eca_integration;
mod eca_jobs;
mod eca_mcp;
mod eca_mcp_offers;
mod eca_plugins;
mod eca_rewrite;
mod eca_subagents;
mod eca_text;
mod eca_today;
mod embedded;
mod finishing;
mod first_day;
mod formatters;
mod full_disk;
mod hostile_project;
mod hub;
mod import;
mod import_choices;
mod injections;
mod instructions;
#[path = "../../../../interfaces/tests/it/mod.rs"]
mod interfaces;
mod jobs;
mod language_servers;
mod lifetime;
mod lines;
mod logs;
mod losslessness;
mod managed;
mod mcp_commands;
mod mcp_server;
mod memory;
mod model_families;
mod one_history;
mod other_agents;
mod output;
mod permissions;
mod places;
#[cfg(target_os = "linux")]
mod postgres;
mod protocol_docs;
mod providers;
mod quality_tasks;
mod real_agents;
mod run;
mod run_flags;
mod run_output;
mod run_stream;
mod sandbox;
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#[path = "../../../proto-acp/tests/it/schema.rs"]
mod schema;
mod screen;
mod screen_dialog;
mod screen_docs;
mod screen_keys;
mod screen_pages;
mod screen_shots;
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#[path = "../../../proto-acp/tests/it/sdk.rs"]
mod sdk;
mod secrets;
mod settings;
mod settings_effects;
mod setup;
mod small_commands;
mod soak;
mod stall;
mod stats;
mod stops;
mod store_commands;
mod telemetry;
mod threads;
#[path = "../../../proto-threads/tests/it/shape.rs"]
mod threads_shape;
mod tmux;
mod tool_search;
mod undo;
mod walls;
mod web_search;
mod web_window;
#[cfg(target_os = "linux")]
mod workers;
#[cfg(target_os = "linux")]
mod workers_fetch;

/// Randomized tests run a tenth of their full count at scale 1.
pub fn scaled(full: usize) -> usize {
    let scale: usize = std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    (full * scale.min(10) / 10).max(1)
}
