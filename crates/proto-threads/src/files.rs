//! Files, both ways: the client's for the tools, and the workspace's for a client that asks for them.
//!
//! Invariants: a client reads files under the same path policy as the tools; a client that lacks a method is not
//! asked again, and the tools then use the disk; the remembered reads are bounded.

use std::path::PathBuf;
use std::time::Duration;

use domain::command::FileContent;
use domain::host::{HostReply, HostRequest};
use domain::{Command, Failure, HostCall, SessionId};
use rpc::{Outgoing, RequestError, Responder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::from_wire;
use crate::reads::Read;
use crate::server::{Server, is_unknown_method, respond};
use crate::wire::{self, method};

/// Sends a call of the engine to the client.
pub(crate) fn handle_host_request(server: &mut Server, request: HostRequest) {
    let HostRequest { session, call, deadline, reply, .. } = request;
    // A client that lets the agent drive has threads, not files.
    let ours = server.client_threads.values().any(|it| it.is(&session));
    let Some(method) = method_of(&call).filter(|method| !ours && !server.refused.contains(method)) else {
        let _ = reply.send(Err(Failure::user("This client cannot do that.")));
        return;
    };
    let outgoing = server.outgoing.clone();
    server.engine.later(call_client(outgoing, session.to_string(), call, deadline), move |server, answer| {
        let answer = answer.map_err(|error| match error {
            ClientCallError::Failed(failure) => failure,
            ClientCallError::Refused(error) => {
                if is_unknown_method(&error) {
                    server.refused.insert(method);
                }
                Failure::user(format!("The client did not do it: {error}."))
            }
        });
        let _ = reply.send(answer);
    });
}

fn method_of(call: &HostCall) -> Option<&'static str> {
    match call {
        HostCall::ReadText { .. } | HostCall::ReadLines { .. } => Some(method::READ_TEXT_FILE),
        HostCall::ReadBytes { .. } => Some(method::READ_BINARY_FILE),
        HostCall::Stat { .. } => Some(method::STAT),
        HostCall::Glob { .. } => Some(method::GLOB_SEARCH),
        HostCall::Diagnostics { .. }
        | HostCall::Definition { .. }
        | HostCall::References { .. }
        | HostCall::WriteText { .. }
        | HostCall::Terminal(_) => None,
    }
}

enum ClientCallError {
    Refused(RequestError),
    Failed(Failure),
}

async fn call_client(
    outgoing: Outgoing,
    thread_id: String,
    call: HostCall,
    deadline: Duration,
) -> Result<HostReply, ClientCallError> {
    let calls = ClientCalls { outgoing, deadline };
    match call {
        HostCall::ReadText { path } => {
            let params =
                wire::ReadTextFile { thread_id, path: path_text(path)?, line_offset: None, line_limit: None };
            let file: wire::FileContent = calls.call(method::READ_TEXT_FILE, &params).await?;
            Ok(HostReply::Text(file.content))
        }
        HostCall::ReadLines { path, skip, limit } => {
            let (line_offset, line_limit) = (Some(skip), Some(limit));
            let params = wire::ReadTextFile { thread_id, path: path_text(path)?, line_offset, line_limit };
            let file: wire::FileContent = calls.call(method::READ_TEXT_FILE, &params).await?;
            Ok(HostReply::Text(file.content))
        }
        HostCall::ReadBytes { path } => {
            let params = wire::ReadBinaryFile {
                thread_id,
                path: path_text(path)?,
                byte_offset: None,
                byte_limit: None,
            };
            let file: wire::FileContent = calls.call(method::READ_BINARY_FILE, &params).await?;
            from_wire::decoded(&file.content).map(HostReply::Bytes).map_err(ClientCallError::Failed)
        }
        HostCall::Stat { path } => {
            let params = wire::Stat { thread_id, path: path_text(path)? };
            let stat: wire::FileStat = calls.call(method::STAT, &params).await?;
            Ok(HostReply::Stat { exists: stat.exists, directory: stat.is_directory })
        }
        HostCall::Glob { pattern } => {
            let params = wire::GlobSearch { thread_id, pattern };
            let found: wire::Matches = calls.call(method::GLOB_SEARCH, &params).await?;
            Ok(HostReply::Paths(found.matches.into_iter().map(PathBuf::from).collect()))
        }
        HostCall::Diagnostics { .. }
        | HostCall::Definition { .. }
        | HostCall::References { .. }
        | HostCall::WriteText { .. }
        | HostCall::Terminal(_) => Err(ClientCallError::Failed(Failure::user("This client cannot do that."))),
    }
}

struct ClientCalls {
    outgoing: Outgoing,
    deadline: Duration,
}

impl ClientCalls {
    async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
    ) -> Result<T, ClientCallError> {
        self.outgoing.request(method, params, self.deadline).decode().await.map_err(ClientCallError::Refused)
    }
}

fn path_text(path: PathBuf) -> Result<String, ClientCallError> {
    path.into_os_string().into_string().map_err(|_| {
        ClientCallError::Failed(Failure::user("The path is not UTF-8, so the client cannot be asked."))
    })
}

pub(crate) async fn read_text_file(server: &mut Server, params: wire::ReadTextFile, responder: Responder) {
    let wire::ReadTextFile { thread_id, path, line_offset, line_limit } = params;
    read(server, thread_id, path, true, responder, move |file| {
        let text = std::str::from_utf8(&file.bytes)
            .map_err(|_| Failure::user("The file is not text; use readBinaryFile."))?;
        Ok(from_wire::lines(text, line_offset, line_limit))
    })
    .await;
}

pub(crate) async fn read_binary_file(
    server: &mut Server,
    params: wire::ReadBinaryFile,
    responder: Responder,
) {
    let wire::ReadBinaryFile { thread_id, path, byte_offset, byte_limit } = params;
    read(server, thread_id, path, false, responder, move |file| {
        Ok(from_wire::bytes(&file.bytes, byte_offset, byte_limit))
    })
    .await;
}

/// `text`: the thread's entries tell of it.
async fn read(
    server: &mut Server,
    thread_id: String,
    path: String,
    text: bool,
    responder: Responder,
    content: impl FnOnce(&FileContent) -> Result<String, Failure> + Send + 'static,
) {
    let session = session_of(server, &thread_id);
    let asked = PathBuf::from(&path);
    server
        .engine
        .call(
            |reply| Command::ReadFile { session, path: asked, reply },
            move |server, file| {
                let file = file.and_then(|file| {
                    Ok(wire::FileContent { version: file.version, content: content(&file)? })
                });
                if let (Ok(file), true) = (&file, text) {
                    let at = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default();
                    server.reads.remember(Read { thread_id, at, path, content: file.content.clone() });
                }
                respond(responder, file);
            },
        )
        .await;
}

pub(crate) async fn stat(server: &mut Server, params: wire::Stat, responder: Responder) {
    let session = session_of(server, &params.thread_id);
    server
        .engine
        .call(
            |reply| Command::Stat { session, path: params.path.into(), reply },
            |_, stat| {
                let stat = stat.map(|it| wire::FileStat { exists: it.exists, is_directory: it.directory });
                respond(responder, stat);
            },
        )
        .await;
}

pub(crate) async fn glob_search(server: &mut Server, params: wire::GlobSearch, responder: Responder) {
    let session = session_of(server, &params.thread_id);
    server
        .engine
        .call(
            |reply| Command::Glob { session, pattern: params.pattern, reply },
            |_, found| {
                let matches = found
                    .map(|paths| paths.into_iter().map(|path| path.to_string_lossy().into_owned()).collect());
                respond(responder, matches.map(|matches| wire::Matches { matches }));
            },
        )
        .await;
}

/// The chat in which a file is read: the one of the client's thread, where there is one.
fn session_of(server: &Server, thread_id: &str) -> Option<SessionId> {
    let own = server.client_threads.get(thread_id).and_then(|it| it.session().cloned());
    own.or_else(|| server.threads.keys().find(|session| session.as_str() == thread_id).cloned())
}
