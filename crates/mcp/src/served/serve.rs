//! One connection: requests in, results and progress out. One task, so that order is what it looks like.

use std::cell::Cell;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

use domain::CancellationToken;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rpc::{CancelMethod, Fault, Inbound, Outgoing, PeerOptions, Responder, Transport};
use serde_json::{Value, json};

use super::wire::{self, Era, RequestMembers};

/// Calls at once; a client that wants more gets an error.
const MAX_CALLS: usize = 16;
/// How long stopped calls may take to end when the client has left.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a person may think about a question.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(300);
/// How long the last messages may take to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The result of a call.
#[derive(Debug)]
pub struct CallOutcome {
    pub text: String,
    /// The same for programs, an object.
    pub structured: Option<Value>,
    pub is_error: bool,
}

/// What a call may use while it runs.
#[derive(Clone)]
pub struct RunningCall {
    /// The client has cancelled the call, or has left.
    pub stop: CancellationToken,
    progress: Rc<dyn Fn(&str)>,
    /// Where the client can ask its person.
    questions: Option<Outgoing>,
}

impl RunningCall {
    /// Shows a line to the client, where it asked for progress.
    pub fn show_progress(&self, text: &str) {
        (self.progress)(text);
    }

    /// Asks the person at the client for a yes. `None`: the client cannot ask. No answer in time is a no.
    pub async fn confirm(&self, message: &str) -> Option<bool> {
        let outgoing = self.questions.as_ref()?;
        let asked = outgoing.request("elicitation/create", &wire::question(message), QUESTION_TIMEOUT);
        let answer = tokio::select! {
            answer = asked.decode::<Value>() => answer.ok(),
            () = self.stop.cancelled() => None,
        };
        Some(answer.is_some_and(|answer| wire::is_yes(&answer)))
    }
}

pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// The tools that are served.
pub trait ServedTools {
    /// The definitions, as the protocol has them. They never change.
    fn definitions(&self) -> Vec<Value>;

    /// What the client tells its model about the server, where that is not the usual text.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Runs a tool; `None`: there is no such tool. The future must end soon after `stop`.
    fn call(&self, name: &str, arguments: Value, call: RunningCall) -> Option<LocalFuture<CallOutcome>>;
}

/// Serves until the client leaves.
pub async fn serve(tools: Rc<dyn ServedTools>, transport: Transport) -> io::Result<()> {
    let cancel = Some(CancelMethod { method: "notifications/cancelled", parameter: "requestId" });
    let options = PeerOptions { cancel, in_flight_limit: MAX_CALLS, ..PeerOptions::newline() };
    let (peer, mut inbox) = rpc::inbox(options, transport)?;
    let stop = CancellationToken::new();
    let mut server =
        Server { tools, outgoing: peer.outgoing(), stop: stop.clone(), has_handshake: false, can_ask: false };
    let mut calls: FuturesUnordered<LocalFuture<()>> = FuturesUnordered::new();
    let mut ended = pin!(peer.ended());
    loop {
        tokio::select! {
            message = inbox.recv() => match message {
                Some(message) => calls.extend(server.handle(message)),
                None => break,
            },
            Some(()) = calls.next(), if !calls.is_empty() => {}
            _ = &mut ended => break,
        }
    }
    stop.cancel();
    let stopped = async { while calls.next().await.is_some() {} };
    let _ = tokio::time::timeout(STOP_TIMEOUT, stopped).await;
    drop(calls);
    peer.close(FLUSH_TIMEOUT).await;
    Ok(())
}

struct Server {
    tools: Rc<dyn ServedTools>,
    outgoing: Outgoing,
    stop: CancellationToken,
    /// The client began with `initialize`.
    has_handshake: bool,
    /// The client can show a question to its person.
    can_ask: bool,
}

impl Server {
    /// Answers a message; a call goes on as a future.
    fn handle(&mut self, message: Inbound) -> Option<LocalFuture<()>> {
        let responder = message.responder?;
        let text = message.params.as_ref().map_or("{}", |params| params.get());
        let members: RequestMembers = match serde_json::from_str(text) {
            Ok(members) => members,
            Err(error) => {
                responder.fail(Fault::invalid_params(error));
                return None;
            }
        };
        let outcome = match message.method.as_str() {
            "initialize" => {
                self.has_handshake = true;
                self.can_ask = members.capabilities["elicitation"].is_object();
                let instructions = self.tools.instructions();
                Ok(wire::initialized(members.requested_revision.as_deref(), instructions.as_deref()))
            }
            "ping" => Ok(json!({})),
            "server/discover" => members
                .meta
                .era(false)
                .map(|era| wire::in_era(wire::discovered(self.tools.instructions().as_deref()), era)),
            "tools/list" => members
                .meta
                .era(self.has_handshake)
                .map(|era| wire::in_era(wire::tool_list(&self.tools.definitions()), era)),
            "tools/call" => match members.meta.era(self.has_handshake) {
                Ok(era) => return self.call(members, era, responder),
                Err(fault) => Err(fault),
            },
            method => Err(Fault::method_not_found(method)),
        };
        responder.respond(outcome);
        None
    }

    fn call(&self, members: RequestMembers, era: Era, responder: Responder) -> Option<LocalFuture<()>> {
        let stop = self.stop.child_token();
        let progress = progress(self.outgoing.clone(), members.meta.progress_token);
        let name = members.name.unwrap_or_default();
        let arguments = members.arguments.unwrap_or_else(|| json!({}));
        // Where requests speak for themselves, a server has no way to ask back while a call runs.
        let questions = (self.can_ask && era == Era::Handshake).then(|| self.outgoing.clone());
        let running = RunningCall { stop: stop.clone(), progress, questions };
        let Some(call) = self.tools.call(&name, arguments, running) else {
            responder.fail(Fault::invalid_params(format!("there is no tool {name}")));
            return None;
        };
        Some(Box::pin(async move {
            let mut call = call;
            let outcome = tokio::select! {
                outcome = &mut call => outcome,
                () = responder.cancelled() => {
                    stop.cancel();
                    let _ = tokio::time::timeout(STOP_TIMEOUT, call).await;
                    responder.fail(Fault::cancelled());
                    return;
                }
            };
            responder.succeed(&wire::in_era(result(outcome), era));
        }))
    }
}

fn result(outcome: CallOutcome) -> Value {
    let mut result =
        json!({"content": [{"type": "text", "text": outcome.text}], "isError": outcome.is_error});
    if let Some(structured) = outcome.structured {
        result["structuredContent"] = structured;
    }
    result
}

/// Sends lines as progress, numbered; nothing where the client did not ask for it.
fn progress(outgoing: Outgoing, token: Option<Value>) -> Rc<dyn Fn(&str)> {
    let count = Cell::new(0_u64);
    Rc::new(move |text| {
        let Some(token) = &token else { return };
        count.set(count.get() + 1);
        let params = json!({"progressToken": token, "progress": count.get(), "message": text});
        // A client that does not read loses progress, nothing else.
        let _ = outgoing.notify("notifications/progress", &params);
    })
}
