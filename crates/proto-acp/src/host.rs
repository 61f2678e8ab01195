//! Calls of the engine to the editor: files with unsaved text, and terminals.
//!
//! Invariants: every call is replied to once; a terminal that was made is released, and killed first where its command
//! still runs, also when the engine stopped waiting for its output.

use std::path::PathBuf;
use std::time::Duration;

use domain::host::{HostReply, HostRequest};
use domain::{Failure, HostCall, ItemId, SessionId};
use rpc::{Outgoing, RequestError};
use tokio::sync::oneshot;

use crate::server::Server;
use crate::wire::{acp, method};

/// For quick calls: output, kill, release.
const QUICK_CALL_TIMEOUT: Duration = Duration::from_secs(5);

type Reply = oneshot::Sender<Result<HostReply, Failure>>;

pub(crate) fn handle_request(server: &mut Server, request: HostRequest) {
    let HostRequest { session, item, call, deadline, reply } = request;
    let outgoing = server.client.outgoing().clone();
    match call {
        HostCall::ReadText { path } => {
            let work = read(outgoing, session, path, deadline);
            server.engine.later(async move { drop(reply.send(work.await)) }, |_, ()| {});
        }
        HostCall::WriteText { path, text } => {
            let work = write(outgoing, session, path, text, deadline);
            server.engine.later(async move { drop(reply.send(work.await)) }, |_, ()| {});
        }
        HostCall::Terminal(it) => {
            let environment =
                it.environment.into_iter().map(|(name, value)| acp::EnvVariable::new(name, value));
            let create = acp::CreateTerminalRequest::new(session.0.clone(), it.command)
                .args(it.arguments)
                .env(environment.collect())
                .cwd(it.cwd)
                .output_byte_limit(it.output_limit);
            let job = Job { session, item, time: it.time, deadline, reply };
            terminal(server, outgoing, create, job);
        }
        HostCall::Diagnostics { .. }
        | HostCall::Definition { .. }
        | HostCall::References { .. }
        | HostCall::ReadLines { .. }
        | HostCall::ReadBytes { .. }
        | HostCall::Stat { .. }
        | HostCall::Glob { .. } => {
            let _ = reply.send(Err(Failure::user("This editor cannot do that.")));
        }
    }
}

async fn read(
    outgoing: Outgoing,
    session: SessionId,
    path: PathBuf,
    deadline: Duration,
) -> Result<HostReply, Failure> {
    let params = acp::ReadTextFileRequest::new(session.0, path);
    let request = outgoing.request(method::READ_TEXT_FILE, &params, deadline);
    let response: acp::ReadTextFileResponse = request.decode().await.map_err(failed)?;
    Ok(HostReply::Text(response.content))
}

async fn write(
    outgoing: Outgoing,
    session: SessionId,
    path: PathBuf,
    text: String,
    deadline: Duration,
) -> Result<HostReply, Failure> {
    let params = acp::WriteTextFileRequest::new(session.0, path, text);
    // Clients answer with null, with an object or with nothing at all.
    outgoing.request(method::WRITE_TEXT_FILE, &params, deadline).await.map_err(failed)?;
    Ok(HostReply::Written)
}

/// A command in a terminal, and the reply it owes.
struct Job {
    session: SessionId,
    item: Option<ItemId>,
    /// How long the command may run.
    time: Duration,
    deadline: Duration,
    reply: Reply,
}

fn terminal(server: &mut Server, outgoing: Outgoing, create: acp::CreateTerminalRequest, job: Job) {
    let request = outgoing.request(method::TERMINAL_CREATE, &create, job.deadline);
    server.engine.later(
        request.decode::<acp::CreateTerminalResponse>(),
        move |server, created| match created {
            Ok(created) => {
                if let Some(item) = job.item {
                    server.show_terminal(&job.session, item, created.terminal_id.clone());
                }
                server.engine.later(run(outgoing, created.terminal_id, job), |_, ()| {});
            }
            Err(error) => drop(job.reply.send(Err(failed(error)))),
        },
    );
}

async fn run(outgoing: Outgoing, terminal: acp::TerminalId, job: Job) {
    let Job { session, time, mut reply, .. } = job;
    let session = acp::SessionId::new(session.0);
    let wait = acp::WaitForTerminalExitRequest::new(session.clone(), terminal.clone());
    let exited = outgoing.request(method::TERMINAL_WAIT, &wait, time);
    let exit = tokio::select! {
        exit = exited.decode::<acp::WaitForTerminalExitResponse>() => exit.ok(),
        () = reply.closed() => None,
    };
    if exit.is_none() {
        let kill = acp::KillTerminalRequest::new(session.clone(), terminal.clone());
        let _ = outgoing.request(method::TERMINAL_KILL, &kill, QUICK_CALL_TIMEOUT).await;
    }
    let ask = acp::TerminalOutputRequest::new(session.clone(), terminal.clone());
    let output = outgoing.request(method::TERMINAL_OUTPUT, &ask, QUICK_CALL_TIMEOUT);
    let output = output.decode::<acp::TerminalOutputResponse>().await;
    let release = acp::ReleaseTerminalRequest::new(session, terminal);
    let release = outgoing.request(method::TERMINAL_RELEASE, &release, QUICK_CALL_TIMEOUT);
    let status = exit.map(|exit| exit.exit_status);
    let _ = reply.send(match output {
        Ok(output) => {
            let status = status.or(output.exit_status);
            let exit_code =
                status.and_then(|status| status.exit_code).and_then(|code| i32::try_from(code).ok());
            Ok(HostReply::Terminal { output: output.output, truncated: output.truncated, exit_code })
        }
        Err(error) => Err(failed(error)),
    });
    let _ = release.await;
}

fn failed(error: RequestError) -> Failure {
    Failure::user(format!("The editor did not do it: {error}."))
}
