//! What an agent asks of us while it works on a prompt → requests for the engine, and the engine's replies → answers.
//!
//! Invariants: every request is answered once; a request of another session, or for an unknown terminal, is refused; a
//! permission that nobody decides is answered as cancelled.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::Failure;
use domain::agent::{AgentEvent, AgentRequest};
use rpc::{Fault, Inbound, Responder};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::call_updates;
use crate::terminals::Terminals;
use crate::wire::{
    CreateTerminalParams, NOT_FOUND, PermissionOption, PermissionParams, ReadFileParams, TerminalParams,
    WriteFileParams, method,
};

/// Where the events of a prompt go.
pub(crate) type Events = mpsc::Sender<Result<AgentEvent, Failure>>;

/// The prompt that a request belongs to.
pub(crate) struct RequestScope<'a> {
    pub(crate) session: &'a str,
    pub(crate) events: &'a Events,
    pub(crate) terminals: &'a Terminals,
    pub(crate) most_terminals: usize,
    /// A clone is held while a request waits for its answer.
    pub(crate) open: &'a Arc<()>,
}

impl RequestScope<'_> {
    pub(crate) async fn handle(&self, inbound: &Inbound, responder: Responder) {
        match inbound.method.as_str() {
            method::REQUEST_PERMISSION => match self.decode(inbound) {
                Ok(params) => self.permission(params, responder).await,
                Err(fault) => responder.fail(fault),
            },
            method::READ_TEXT_FILE => match self.decode(inbound) {
                Ok(params) => self.read_file(params, responder).await,
                Err(fault) => responder.fail(fault),
            },
            method::WRITE_TEXT_FILE => match self.decode(inbound) {
                Ok(params) => self.write_file(params, responder).await,
                Err(fault) => responder.fail(fault),
            },
            method::TERMINAL_CREATE => match self.decode(inbound) {
                Ok(params) => self.create_terminal(&params, responder).await,
                Err(fault) => responder.fail(fault),
            },
            method::TERMINAL_OUTPUT
            | method::TERMINAL_WAIT
            | method::TERMINAL_KILL
            | method::TERMINAL_RELEASE => match self.decode(inbound) {
                Ok(params) => self.use_terminal(&inbound.method, &params, responder),
                Err(fault) => responder.fail(fault),
            },
            other => responder.method_not_found(other),
        }
    }

    /// The params of a request, if they are of this session.
    fn decode<T: DeserializeOwned>(&self, inbound: &Inbound) -> Result<T, Fault> {
        let text = inbound.params.as_ref().map_or("{}", |params| params.get());
        let params: Value = serde_json::from_str(text).map_err(Fault::invalid_params)?;
        if params["sessionId"] != self.session {
            return Err(Fault::invalid_params("the session is not the one of this connection"));
        }
        serde_json::from_value(params).map_err(Fault::invalid_params)
    }

    async fn send(&self, request: AgentRequest) -> bool {
        self.events.send(Ok(AgentEvent::Request(request))).await.is_ok()
    }

    async fn permission(&self, params: PermissionParams, responder: Responder) {
        let terminal = |id: &str| self.terminals.text(id);
        let Some(call) = call_updates::call(&params.tool_call, &terminal) else {
            return responder.fail(Fault::invalid_params("the tool call has no id"));
        };
        let (reply, decided) = oneshot::channel();
        let is_sent = self.send(AgentRequest::Permission { call: Box::new(call), reply }).await;
        let open = self.open.clone();
        tokio::spawn(async move {
            let _open = open;
            let allowed = if is_sent { decided.await.ok() } else { None };
            responder.succeed(&json!({"outcome": outcome(allowed, &params.options)}));
        });
    }

    async fn read_file(&self, params: ReadFileParams, responder: Responder) {
        let Some(path) = absolute(&params.path) else { return responder.fail(relative_path()) };
        let (reply, read) = oneshot::channel();
        let (line, limit) = (params.line, params.limit);
        self.send(AgentRequest::ReadFile { path, line, limit, reply }).await;
        let open = self.open.clone();
        tokio::spawn(async move {
            let _open = open;
            match read.await {
                Ok(Ok(Some(content))) => responder.succeed(&json!({"content": content})),
                // Agents look for these words to tell a new file from one that cannot be read.
                Ok(Ok(None)) => {
                    responder.fail(Fault::new(NOT_FOUND, format!("Resource not found: {}", params.path)));
                }
                Ok(Err(reason)) => responder.fail(Fault::internal(reason)),
                Err(_) => responder.fail(Fault::cancelled()),
            }
        });
    }

    async fn write_file(&self, params: WriteFileParams, responder: Responder) {
        let Some(path) = absolute(&params.path) else { return responder.fail(relative_path()) };
        let (reply, written) = oneshot::channel();
        self.send(AgentRequest::WriteFile { path, content: params.content, reply }).await;
        let open = self.open.clone();
        tokio::spawn(async move {
            let _open = open;
            match written.await {
                Ok(Ok(())) => responder.succeed(&json!({})),
                Ok(Err(reason)) => responder.fail(Fault::internal(reason)),
                Err(_) => responder.fail(Fault::cancelled()),
            }
        });
    }

    async fn create_terminal(&self, params: &CreateTerminalParams, responder: Responder) {
        let Some((id, command)) = self.terminals.create(params, self.most_terminals) else {
            return responder.fail(Fault::internal("Too many terminals are open; release some first."));
        };
        self.send(AgentRequest::Command(command)).await;
        responder.succeed(&json!({"terminalId": id}));
    }

    fn use_terminal(&self, method: &str, params: &TerminalParams, responder: Responder) {
        let Some(terminal) = self.terminals.find(&params.terminal_id) else {
            return responder.fail(Fault::invalid_params("there is no such terminal"));
        };
        match method {
            method::TERMINAL_OUTPUT => responder.succeed(&terminal.shown()),
            method::TERMINAL_KILL => {
                terminal.kill();
                responder.succeed(&json!({}));
            }
            method::TERMINAL_RELEASE => {
                self.terminals.release(&params.terminal_id);
                responder.succeed(&json!({}));
            }
            _ => {
                let open = self.open.clone();
                tokio::spawn(async move {
                    let _open = open;
                    let cancellation = responder.cancellation();
                    tokio::select! {
                        end = terminal.wait() => responder.succeed(&end),
                        () = cancellation.cancelled() => responder.fail(Fault::cancelled()),
                    }
                });
            }
        }
    }
}

/// The choice among the agent's options. Only the options for one call are taken where there are such: what is allowed for
/// longer is remembered here, not there.
fn outcome(allowed: Option<bool>, options: &[PermissionOption]) -> Value {
    let wanted: &[&str] = match allowed {
        Some(true) => &["allow_once", "allow_always"],
        Some(false) => &["reject_once", "reject_always"],
        None => &[],
    };
    let find = |kind: &&str| options.iter().find(|option| option.kind == **kind);
    match wanted.iter().find_map(find) {
        Some(option) => json!({"outcome": "selected", "optionId": option.option_id}),
        None => json!({"outcome": "cancelled"}),
    }
}

fn absolute(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    (path.is_absolute() && path.as_os_str().len() <= 4_096).then(|| path.to_owned())
}

fn relative_path() -> Fault {
    Fault::invalid_params("the path is not absolute")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_of_the_offered_options() {
        let option = |id: &str, kind: &str| PermissionOption { option_id: id.into(), kind: kind.into() };
        let all = [option("a", "allow_always"), option("o", "allow_once"), option("n", "reject_once")];
        let chosen = |allowed, options: &[PermissionOption]| outcome(allowed, options)["optionId"].clone();
        assert_eq!(chosen(Some(true), &all), "o");
        assert_eq!(chosen(Some(true), &all[..1]), "a");
        assert_eq!(chosen(Some(false), &all), "n");
        for (allowed, options) in [(Some(false), &all[..2]), (None, &all[..]), (Some(true), &[])] {
            assert_eq!(outcome(allowed, options)["outcome"], "cancelled", "{allowed:?}");
        }
    }
}
