//! `dragoman acp`: the Agent Client Protocol on stdin and stdout.

use std::process::ExitCode;

use crate::cli::Level;
use crate::commands::server::on_stdio;

pub(crate) fn run(level: Option<Level>) -> ExitCode {
    on_stdio(level, |engine, transport, _| proto_acp::serve(engine, transport))
}
