//! `dragoman server`: ECA on stdin and stdout; also the start and end of every server on stdio.

use std::process::ExitCode;

use config::Environment;
use domain::Failure;
use domain::link::Engine;
use proto_eca::ServeOptions;
use rpc::Transport;
use tokio::sync::mpsc;

use crate::cli::Level;
use crate::commands::connect;
use crate::commands::connect_arguments::ConnectArguments;
use crate::lifetime;
use crate::logging;
use crate::workspaces::Workspaces;

pub(crate) fn run(arguments: &ConnectArguments, verbose: bool, level: Option<Level>) -> ExitCode {
    let level = level.or(verbose.then_some(Level::Debug));
    if arguments.connect.is_some() {
        return connect::run(arguments, &connect::ECA, level);
    }
    let global_config = Some(Environment::from_process().config_dir().join("config.json"));
    on_stdio(level, |engine, transport, parent| {
        proto_eca::serve(engine, transport, ServeOptions { parent, is_remote: false, global_config })
    })
}

/// Serves a protocol until its client leaves; `parent` receives the client's process id, if the protocol has it.
pub(crate) fn on_stdio<F>(
    level: Option<Level>,
    serve: impl FnOnce(Engine, Transport, mpsc::UnboundedSender<u32>) -> F,
) -> ExitCode
where
    F: Future<Output = std::io::Result<()>>,
{
    let environment = Environment::from_process();
    logging::start(&environment, level);
    lifetime::run(async move {
        let engine = Workspaces::open(environment)?;
        let transport =
            rpc::stdio().map_err(|error| Failure::internal(format!("stdin cannot be read: {error}.")))?;
        let (parent, parents) = mpsc::unbounded_channel();
        let served = serve(engine.clone(), transport, parent);
        lifetime::serve(engine, served, parents).await;
        Ok(())
    })
}
