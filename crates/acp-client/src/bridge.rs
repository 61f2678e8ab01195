//! The tools of servers that an agent may call through us: a port of this machine for one agent process, and the program
//! that the agent starts as its MCP server and that speaks to this port.
//!
//! Must not know what a tool does: a call goes to the engine with the events of the prompt. Invariants: a connection that
//! does not begin with the secret of this bridge is closed; a call outside of a prompt is refused; everything is bounded.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use domain::CancellationToken;
use domain::agent::AgentToolCall;
use domain::tool::ToolSpec;
use ring::rand::SecureRandom;
use rpc::{CancelMethod, Fault, Inbound, JsonLines, PeerOptions, Responder, Transport};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The variable with the address and the secret of a bridge.
pub const BRIDGE_VARIABLE: &str = "DRAGOMAN_TOOL_BRIDGE";
/// The method that lists the tools, and the one that calls a tool.
pub const TOOLS_METHOD: &str = "tools";
pub const CALL_METHOD: &str = "call";
/// The agent's name of the server.
const SERVER: &str = "dragoman";
const MOST_CONNECTIONS: usize = 8;
/// How long a new connection may take to name the secret.
const SECRET_TIMEOUT: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The largest message, in bytes.
const MOST_BYTES: usize = 8 << 20;

/// The program that an agent starts as its MCP server.
#[derive(Clone, Debug)]
pub struct BridgeProgram {
    pub command: std::path::PathBuf,
    pub args: Vec<String>,
}

/// A port that serves one agent process; it closes when this is dropped.
pub(crate) struct Bridge {
    pub(crate) port: u16,
    secret: String,
    program: BridgeProgram,
    stop: CancellationToken,
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Bridge {
    /// Calls of the tools go to `calls`.
    pub(crate) async fn start(
        program: BridgeProgram,
        tools: Arc<[ToolSpec]>,
        calls: mpsc::Sender<AgentToolCall>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let secret = random_text()?;
        let stop = CancellationToken::new();
        let served = Served { tools, calls, secret: secret.clone(), stop: stop.clone() };
        tokio::spawn(accept(listener, Arc::new(served)));
        Ok(Self { port, secret, program, stop })
    }

    /// The server as `session/new` has it.
    pub(crate) fn server(&self) -> Value {
        let place = format!("{} {}", self.port, self.secret);
        json!({
            "name": SERVER,
            "command": self.program.command,
            "args": self.program.args,
            "env": [{"name": BRIDGE_VARIABLE, "value": place}],
        })
    }
}

struct Served {
    tools: Arc<[ToolSpec]>,
    calls: mpsc::Sender<AgentToolCall>,
    secret: String,
    stop: CancellationToken,
}

async fn accept(listener: TcpListener, served: Arc<Served>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = served.stop.cancelled() => return,
        };
        let Ok((stream, _)) = accepted else {
            // No file descriptor is free, perhaps.
            tokio::time::sleep(SECRET_TIMEOUT / 100).await;
            continue;
        };
        let Ok(place) = room.clone().try_acquire_owned() else { continue };
        let served = served.clone();
        tokio::spawn(async move {
            tokio::select! {
                result = serve(stream, &served) => {
                    if let Err(error) = result {
                        tracing::info!(%error, "a connection of an agent's tools ended");
                    }
                }
                () = served.stop.cancelled() => {}
            }
            drop(place);
        });
    }
}

async fn serve(mut stream: TcpStream, served: &Served) -> io::Result<()> {
    let mut said = vec![0; served.secret.len()];
    tokio::time::timeout(SECRET_TIMEOUT, stream.read_exact(&mut said)).await??;
    if !is_same(&said, served.secret.as_bytes()) {
        return Err(io::Error::other("it did not name the secret"));
    }
    let (read, write) = stream.into_split();
    let (peer, mut inbox) = rpc::inbox(options(), Transport::stream(JsonLines::new(read), write))?;
    while let Some(inbound) = inbox.recv().await {
        handle(served, inbound).await;
    }
    peer.close(CLOSE_TIMEOUT).await;
    Ok(())
}

/// How both sides of a bridge speak.
pub fn options() -> PeerOptions {
    let cancel = Some(CancelMethod { method: "cancel", parameter: "requestId" });
    PeerOptions { message_limit: MOST_BYTES, cancel, ..PeerOptions::newline() }
}

fn random_text() -> io::Result<String> {
    let mut bytes = [0; 24];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("there are no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Takes the same time wherever the first difference is.
fn is_same(said: &[u8], secret: &[u8]) -> bool {
    said.len() == secret.len() && said.iter().zip(secret).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

async fn handle(served: &Served, inbound: Inbound) {
    let Some(responder) = inbound.responder else { return };
    match inbound.method.as_str() {
        TOOLS_METHOD => responder.succeed(&definitions(&served.tools)),
        CALL_METHOD => {
            let text = inbound.params.as_ref().map_or("{}", |params| params.get());
            match serde_json::from_str(text) {
                Ok(params) => call(served, params, responder).await,
                Err(error) => responder.fail(Fault::invalid_params(error)),
            }
        }
        other => responder.method_not_found(other),
    }
}

/// The tools as MCP has them.
fn definitions(tools: &[ToolSpec]) -> Vec<Value> {
    let definition = |tool: &ToolSpec| json!({"name": tool.offered_name(), "description": tool.description, "inputSchema": tool.input_schema});
    tools.iter().map(definition).collect()
}

async fn call(served: &Served, mut params: Value, responder: Responder) {
    let wanted = params["name"].as_str().unwrap_or_default();
    let Some(tool) = served.tools.iter().find(|tool| tool.offered_name() == wanted) else {
        return responder.fail(Fault::invalid_params(format!("there is no tool {wanted}")));
    };
    let (reply, answer) = oneshot::channel();
    let cancel = CancellationToken::new();
    let call = AgentToolCall {
        server: tool.server.clone(),
        name: tool.name.clone(),
        input: params["arguments"].take(),
        cancel: cancel.clone(),
        reply,
    };
    if served.calls.send(call).await.is_err() {
        return responder.fail(Fault::internal("The agent no longer runs."));
    }
    tokio::spawn(async move {
        let cancellation = responder.cancellation();
        let answered = tokio::select! {
            answered = answer => answered,
            () = cancellation.cancelled() => {
                cancel.cancel();
                return responder.fail(Fault::cancelled());
            }
        };
        let (text, is_error) = match answered {
            Ok(Ok(text)) => (text, false),
            Ok(Err(text)) => (text, true),
            Err(_) => ("No prompt is being worked on.".to_owned(), true),
        };
        responder.succeed(&json!({"text": text, "isError": is_error}));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_compared_whole() {
        assert!(is_same(b"abc", b"abc"));
        assert!(!is_same(b"abd", b"abc") && !is_same(b"ab", b"abc") && !is_same(b"", b"abc"));
    }
}
