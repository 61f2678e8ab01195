//! Files, both ways: the client's for our tools, and the workspace's for a client that asks us.
//!
//! Invariants: what a client asks for is read under the same path policy as our tools; a client that does not have a
//! method is not asked again, and our tools then go by their own disk; what is remembered of reads is bounded.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use domain::command::FileContent;
use domain::host::{HostReply, HostRequest};
use domain::{Command, Failure, HostCall, SessionId};
use rpc::{Outgoing, RequestError, Responder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::editor_drives::respond;
use crate::from_wire;
use crate::serve::{Server, is_unknown_method};
use crate::wire::{self, ThreadEntry, method};

/// The most text of files that is remembered for the entries of threads.
const REMEMBERED: usize = 8 << 20;

/// Text files that the client read in its threads, for as long as the connection lasts.
#[derive(Default)]
pub struct Reads {
    all: VecDeque<Read>,
    bytes: usize,
}

struct Read {
    thread_id: String,
    at: u64,
    path: String,
    content: String,
}

impl Reads {
    fn note(&mut self, read: Read) {
        self.bytes += read.content.len();
        self.all.push_back(read);
        while self.bytes > REMEMBERED {
            let Some(oldest) = self.all.pop_front() else { return };
            self.bytes -= oldest.content.len();
        }
    }

    /// The entries of a thread and when they came to be, oldest first.
    pub fn of(&self, thread_id: &str) -> Vec<(u64, ThreadEntry)> {
        let own = self.all.iter().filter(|read| read.thread_id == thread_id);
        own.map(|read| {
            let (path, content) = (read.path.clone(), read.content.clone());
            (read.at, ThreadEntry::ReadFile { path, content })
        })
        .collect()
    }
}

/// A call of our tools to the client.
pub fn ask_client(server: &mut Server, request: HostRequest) {
    let HostRequest { session, call, deadline, reply, .. } = request;
    // A client that lets us drive has threads, not files.
    let ours = server.conversations.values().any(|it| it.is(&session));
    let Some(method) = method_of(&call).filter(|method| !ours && !server.refused.contains(method)) else {
        let _ = reply.send(Err(Failure::user("This client cannot do that.")));
        return;
    };
    let outgoing = server.outgoing.clone();
    server.engine.later(asked(outgoing, session.to_string(), call, deadline), move |server, answer| {
        let answer = answer.map_err(|error| match error {
            Asked::Failed(failure) => failure,
            Asked::Refused(error) => {
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
        HostCall::ReadText { .. } => Some(method::READ_TEXT_FILE),
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

enum Asked {
    Refused(RequestError),
    Failed(Failure),
}

async fn asked(
    outgoing: Outgoing,
    thread_id: String,
    call: HostCall,
    deadline: Duration,
) -> Result<HostReply, Asked> {
    let ask = Ask { outgoing, deadline };
    match call {
        HostCall::ReadText { path } => {
            let params =
                wire::ReadTextFile { thread_id, path: shown(path)?, line_offset: None, line_limit: None };
            let file: wire::FileContent = ask.client(method::READ_TEXT_FILE, &params).await?;
            Ok(HostReply::Text(file.content))
        }
        HostCall::ReadBytes { path } => {
            let params =
                wire::ReadBinaryFile { thread_id, path: shown(path)?, byte_offset: None, byte_limit: None };
            let file: wire::FileContent = ask.client(method::READ_BINARY_FILE, &params).await?;
            from_wire::decoded(&file.content).map(HostReply::Bytes).map_err(Asked::Failed)
        }
        HostCall::Stat { path } => {
            let params = wire::Stat { thread_id, path: shown(path)? };
            let stat: wire::FileStat = ask.client(method::STAT, &params).await?;
            Ok(HostReply::Stat { exists: stat.exists, directory: stat.is_directory })
        }
        HostCall::Glob { pattern } => {
            let params = wire::GlobSearch { thread_id, pattern };
            let found: wire::Matches = ask.client(method::GLOB_SEARCH, &params).await?;
            Ok(HostReply::Paths(found.matches.into_iter().map(PathBuf::from).collect()))
        }
        HostCall::Diagnostics { .. }
        | HostCall::Definition { .. }
        | HostCall::References { .. }
        | HostCall::WriteText { .. }
        | HostCall::Terminal(_) => Err(Asked::Failed(Failure::user("This client cannot do that."))),
    }
}

struct Ask {
    outgoing: Outgoing,
    deadline: Duration,
}

impl Ask {
    async fn client<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
    ) -> Result<T, Asked> {
        self.outgoing.request(method, params, self.deadline).decode().await.map_err(Asked::Refused)
    }
}

fn shown(path: PathBuf) -> Result<String, Asked> {
    path.into_os_string()
        .into_string()
        .map_err(|_| Asked::Failed(Failure::user("The path is not UTF-8, so the client cannot be asked.")))
}

pub async fn read_text_file(server: &mut Server, params: wire::ReadTextFile, responder: Responder) {
    let wire::ReadTextFile { thread_id, path, line_offset, line_limit } = params;
    read(server, thread_id, path, true, responder, move |file| {
        let text = std::str::from_utf8(&file.bytes)
            .map_err(|_| Failure::user("The file is not text; use readBinaryFile."))?;
        Ok(from_wire::lines(text, line_offset, line_limit))
    })
    .await;
}

pub async fn read_binary_file(server: &mut Server, params: wire::ReadBinaryFile, responder: Responder) {
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
                    server.reads.note(Read { thread_id, at, path, content: file.content.clone() });
                }
                respond(responder, file);
            },
        )
        .await;
}

pub async fn stat(server: &mut Server, params: wire::Stat, responder: Responder) {
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

pub async fn glob_search(server: &mut Server, params: wire::GlobSearch, responder: Responder) {
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
    let own = server.conversations.get(thread_id).and_then(|it| it.session().cloned());
    own.or_else(|| server.threads.keys().find(|session| session.as_str() == thread_id).cloned())
}
