//! `dragoman mcp-server --bridge`: the tools of MCP servers of a chat, for the agent of another vendor that answers in it.
//!
//! The agent starts this in its sandbox. It has no engine: each call goes to the Dragoman that started the agent, where rules,
//! approvals and the servers are. Invariant: it reaches one port of this machine, and only with the secret of that chat.

use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use acp_client::bridge::{self, BRIDGE_VARIABLE, CALL_METHOD, TOOLS_METHOD};
use config::Environment;
use domain::{Failure, FailureKind};
use mcp::served::{CallOutcome, LocalFuture, RunningCall, ServedTools};
use rpc::{JsonLines, Outgoing, RequestError, Transport};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::lifetime;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A person may have to approve a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
const INSTRUCTIONS: &str = "Tools of the MCP servers that the user has configured in Dragoman.";

pub(crate) fn run() -> ExitCode {
    lifetime::run(serve())
}

async fn serve() -> Result<(), Failure> {
    let environment = Environment::from_process();
    let place = environment.var(BRIDGE_VARIABLE).and_then(|place| place.split_once(' '));
    let Some((Ok(port), secret)) = place.map(|(port, secret)| (port.parse::<u16>(), secret)) else {
        return Err(Failure::user("Only Dragoman starts this, for an agent of another vendor.")
            .hint("`dragoman docs other-agents` says how agents get the tools of your MCP servers."));
    };
    let failed = |error: std::io::Error| tool_failure(format!("Dragoman cannot be reached: {error}."));
    let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connected).await.map_err(std::io::Error::from);
    let mut stream = connected.and_then(|stream| stream).map_err(failed)?;
    stream.write_all(secret.as_bytes()).await.map_err(failed)?;
    let (read, write) = stream.into_split();
    let transport = Transport::stream(JsonLines::new(read), write);
    let (peer, _inbox) = rpc::inbox(bridge::options(), transport).map_err(failed)?;
    let outgoing = peer.outgoing();
    let asked = outgoing.request(TOOLS_METHOD, &json!({}), CONNECT_TIMEOUT);
    let definitions = asked.decode().await.map_err(|error| refused(&error))?;
    let tools = Rc::new(BridgedTools { definitions, outgoing });
    mcp::served::serve(tools, rpc::stdio().map_err(failed)?).await.map_err(failed)
}

fn tool_failure(text: String) -> Failure {
    Failure::new(FailureKind::Tool, text)
}

fn refused(error: &RequestError) -> Failure {
    tool_failure(format!("Dragoman did not answer: {error}."))
}

struct BridgedTools {
    definitions: Vec<Value>,
    outgoing: Outgoing,
}

impl ServedTools for BridgedTools {
    fn definitions(&self) -> Vec<Value> {
        self.definitions.clone()
    }

    fn instructions(&self) -> Option<String> {
        Some(INSTRUCTIONS.to_owned())
    }

    fn call(&self, name: &str, arguments: Value, call: RunningCall) -> Option<LocalFuture<CallOutcome>> {
        if !self.definitions.iter().any(|definition| definition["name"] == name) {
            return None;
        }
        let params = json!({"name": name, "arguments": arguments});
        let outgoing = self.outgoing.clone();
        Some(Box::pin(async move {
            let request = outgoing.request(CALL_METHOD, &params, CALL_TIMEOUT);
            let answered = tokio::select! {
                answered = request.decode::<Value>() => answered,
                () = call.stop.cancelled() => return outcome("The call was stopped.", true),
            };
            match answered {
                Ok(answer) => {
                    outcome(answer["text"].as_str().unwrap_or_default(), answer["isError"] != false)
                }
                Err(error) => outcome(&refused(&error).to_string(), true),
            }
        }))
    }
}

fn outcome(text: &str, is_error: bool) -> CallOutcome {
    CallOutcome { text: text.to_owned(), structured: None, is_error }
}
