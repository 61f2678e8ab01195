//! `dragoman acp`: the Agent Client Protocol on stdin and stdout.

use std::process::ExitCode;

use crate::cli::Level;
use crate::commands::connect;
use crate::commands::connect_arguments::ConnectArguments;
use crate::commands::server::on_stdio;

pub(crate) fn run(arguments: &ConnectArguments, level: Option<Level>) -> ExitCode {
    if arguments.connect.is_some() {
        return connect::run(arguments, &connect::ACP, level);
    }
    on_stdio(level, |engine, transport, _| proto_acp::serve(engine, transport))
}
