//! The protocols that `dragoman serve` speaks with editors on other machines, and their paths.

use domain::BoxFuture;
use domain::link::Engine;
use proto_eca::ServeOptions;
use rpc::{Framing, Transport};
use serve::Endpoint;
use tokio::sync::mpsc;

pub(crate) const ENDPOINTS: [Endpoint; 2] = [
    Endpoint { path: "/acp", framing: Framing::Newline, serve: serve_acp, has_http: true },
    Endpoint { path: "/eca", framing: Framing::Header, serve: eca, has_http: false },
];

/// Whether editors, and no pages, use this path.
pub(crate) fn is_client(path: &str) -> bool {
    ENDPOINTS.iter().any(|endpoint| endpoint.path == path)
}

fn serve_acp(engine: Engine, transport: Transport) -> BoxFuture<'static, std::io::Result<()>> {
    // The relay of an editor opens chats again by messages of version 1.
    Box::pin(proto_acp::serve_versions(engine, transport, true, || false))
}

fn eca(engine: Engine, transport: Transport) -> BoxFuture<'static, std::io::Result<()>> {
    // The client's process is on another machine.
    let (parent, _) = mpsc::unbounded_channel();
    Box::pin(proto_eca::serve(
        engine,
        transport,
        ServeOptions { parent, is_remote: true, global_config: None },
    ))
}
