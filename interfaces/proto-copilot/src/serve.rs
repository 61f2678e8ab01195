//! One connection of the contract: lines in, at most four requests at work, answers and chunks out.
//!
//! Invariants: the reader only hands on, all work is on tasks and blocking threads; what waits is bounded in number and
//! in bytes; every request is answered once, by a time that its method promises.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use domain::Command;
use domain::command::WorkspaceSpec;
use domain::link::Link;
use rpc::{Handler, Params, Peer, PeerOptions, Responder, Transport};
use tokio::sync::{Notify, Semaphore};

use crate::dispatch;
use crate::joining::JoinedRequests;
use crate::server::{Limits, ModelAccess, Server};
use crate::to_wire;

/// The longest line that is read.
const LINE: usize = 128 << 20;
/// What all requests that are not answered may hold together, in KiB.
const PENDING_KIB: usize = 384 << 10;
/// How long the last messages may take to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves until `exit` or the end of the input. After the end of the input what was asked for is still answered.
pub async fn serve(
    link: Link,
    workspace: WorkspaceSpec,
    transport: Transport,
    limits: Limits,
) -> std::io::Result<()> {
    let settings = PeerOptions {
        message_limit: LINE,
        too_large: to_wire::too_large(format!(
            "The message is larger than {} MB. Send a smaller specification or less code.",
            LINE >> 20
        )),
        in_flight_limit: limits.running + limits.waiting,
        too_many: to_wire::rate_limited(),
        ..PeerOptions::newline()
    };
    let exit = Arc::new(Notify::new());
    let peer = Peer::start(settings, transport, |outgoing| RequestHandler {
        server: Arc::new(Server {
            outgoing: outgoing.clone(),
            model: ModelAccess::start(link.commands.clone(), workspace),
            streaming: AtomicBool::new(true),
            running: Arc::new(Semaphore::new(limits.running)),
            joined: JoinedRequests::default(),
            limits,
        }),
        held: Arc::new(Semaphore::new(PENDING_KIB)),
        exit: exit.clone(),
    })?;
    tokio::select! {
        biased;
        () = exit.notified() => {}
        end = peer.ended() => if matches!(end, rpc::End::Input) {
            let longest = limits.generate.max(limits.customize).max(limits.chat);
            tokio::select! {
                () = peer.answered() => {}
                () = exit.notified() => {}
                () = tokio::time::sleep(longest) => {}
            }
        },
    }
    let _ = link.commands.send(Command::Detach).await;
    peer.close(CLOSE_TIMEOUT).await;
    Ok(())
}

struct RequestHandler {
    server: Arc<Server>,
    held: Arc<Semaphore>,
    exit: Arc<Notify>,
}

impl Handler for RequestHandler {
    fn on_request(&mut self, method: &str, params: Params<'_>, responder: Responder) {
        let raw = params.raw();
        let kib = raw.map_or(0, |raw| raw.get().len() >> 10) + 1;
        let bytes =
            u32::try_from(kib).ok().and_then(|kib| self.held.clone().try_acquire_many_owned(kib).ok());
        match bytes {
            Some(bytes) => dispatch::handle_message(&self.server, method, raw, bytes, responder),
            None => responder.fail(to_wire::rate_limited()),
        }
    }

    fn on_notification(&mut self, method: &str, _params: Params<'_>) {
        match method {
            crate::wire::method::EXIT => self.exit.notify_one(),
            _ => tracing::debug!("an unknown notification"),
        }
    }
}
