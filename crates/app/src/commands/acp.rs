//! `dragoman acp`: the Agent Client Protocol on stdin and stdout.

use std::process::ExitCode;

use config::{Environment, Inputs};

use crate::cli::Level;
use crate::commands::connect;
use crate::commands::connect_arguments::ConnectArguments;
use crate::commands::server::on_stdio;

pub(crate) fn run(arguments: &ConnectArguments, proxy: Option<String>, level: Option<Level>) -> ExitCode {
    if arguments.connect.is_some() {
        return connect::run(arguments, &connect::ACP, level);
    }
    if let Some(agent) = proxy {
        let model = format!("{}{agent}/default", external_agents::PREFIX);
        return on_stdio(level, |engine, transport, _| proto_acp::serve_agent(engine, transport, model));
    }
    on_stdio(level, |engine, transport, _| {
        proto_acp::serve_versions(engine, transport, false, permits_version_two)
    })
}

/// The setting is read only for a client that asks for version 2.
fn permits_version_two() -> bool {
    config::resolve(&Environment::from_process(), &Inputs::default()).settings.acp_version_two
}
