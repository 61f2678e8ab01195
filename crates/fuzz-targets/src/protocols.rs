//! The protocol servers over bytes: each serves an engine that knows no chat.
//!
//! Must not know what messages mean. Invariant: a server ends when its input does.

use std::io::Cursor;
use std::time::Duration;

use domain::command::{
    Accepted, AcceptedStatus, Catalog, Command, SessionInfo, SessionSettings, WorkspaceSpec,
};
use domain::event::SessionUsage;
use domain::host::Grants;
use domain::link::{Engine, Envelope};
use domain::{SessionId, TurnId};
use rpc::Transport;
use tokio::sync::mpsc;

/// A server that has not ended by then hangs.
const LIMIT: Duration = Duration::from_secs(20);

/// One message a line, each in a frame of its own.
pub(crate) fn eca(bytes: &[u8]) {
    let mut framed = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        framed.extend(format!("Content-Length: {}\r\n\r\n", line.len()).into_bytes());
        framed.extend(line);
    }
    serve(framed, |engine, transport| async move {
        let (parent, _pids) = mpsc::unbounded_channel();
        proto_eca::serve(
            engine,
            transport,
            proto_eca::ServeOptions { parent, is_remote: false, global_config: None },
        )
        .await
    });
}

pub(crate) fn acp(bytes: &[u8]) {
    serve(bytes.to_vec(), proto_acp::serve);
}

pub(crate) fn threads(bytes: &[u8]) {
    serve(bytes.to_vec(), |engine, transport| {
        let options = proto_threads::ServeOptions {
            driver: None,
            workspace: "/nonexistent".into(),
            grants: Grants::NONE,
            quiet: Duration::from_millis(1),
        };
        proto_threads::serve(engine, transport, options)
    });
}

pub(crate) fn copilot(bytes: &[u8]) {
    serve(bytes.to_vec(), |engine, transport| async move {
        let link = engine.attach(domain::Abilities::default()).await.map_err(std::io::Error::other)?;
        let limits = proto_copilot::Limits { running: 1, waiting: 4, ..proto_copilot::Limits::default() };
        proto_copilot::serve(link, WorkspaceSpec::default(), transport, limits).await
    });
}

fn serve<F: Future<Output = std::io::Result<()>>>(
    bytes: Vec<u8>,
    start: impl FnOnce(Engine, Transport) -> F,
) {
    // On the paused clock a wait passes at once, and a server that hangs is found at once.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let Ok(runtime) = runtime else { return };
    let ended = runtime.block_on(async {
        let transport = Transport::stream(Cursor::new(bytes), tokio::io::sink());
        tokio::time::timeout(LIMIT, start(engine(), transport)).await
    });
    assert!(ended.is_ok(), "the server does not end");
}

/// Opens every chat, accepts every prompt and refuses the rest.
#[allow(clippy::wildcard_enum_match_arm, reason = "everything else is refused")]
fn engine() -> Engine {
    let (engine, mut commands) = domain::link::engine();
    tokio::spawn(async move {
        let mut ports = Vec::new();
        while let Some(Envelope { command, .. }) = commands.recv().await {
            match command {
                Command::Attach { port } => ports.push(port),
                Command::Enter { reply, .. } | Command::Catalog { reply } => {
                    let _ = reply.send(Ok(Catalog::default()));
                }
                Command::Open { id, reply, .. } => {
                    let _ = reply.send(Ok(info(id.unwrap_or_else(|| SessionId::new("new")))));
                }
                Command::Load { session, reply, .. } => drop(reply.send(Ok(info(session)))),
                Command::Prompt { reply, .. } => {
                    let status = AcceptedStatus::Prompting;
                    let _ = reply.send(Ok(Accepted { turn: TurnId(1), model: "a/model".to_owned(), status }));
                }
                Command::Configure { reply, .. } => drop(reply.send(Ok(SessionSettings::default()))),
                Command::Close { reply, .. } | Command::Shutdown { reply } => drop(reply.send(Ok(()))),
                // A reply that is dropped is a refusal.
                _ => {}
            }
        }
    });
    engine
}

fn info(id: SessionId) -> SessionInfo {
    SessionInfo {
        id,
        workspace: Vec::new(),
        settings: SessionSettings::default(),
        usage: SessionUsage::default(),
        newest: 0,
        busy: false,
        held_by: None,
        attached_to: None,
        created_at: 0,
        updated_at: 0,
        items: 0,
        last_compaction: None,
    }
}
