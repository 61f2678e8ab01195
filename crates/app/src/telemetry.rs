//! Joins the export of traces and metrics to the program.

pub(crate) use ::telemetry::{observe_model, observe_store, shut_down};

/// Starts the exporter where the settings ask for it.
pub(crate) fn start(resolved: &config::Resolved) {
    ::telemetry::start(resolved, providers::network::of, engine::is_subagent);
}
