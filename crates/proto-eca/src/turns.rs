//! What a client does with a running turn: stop it, steer it, answer its approvals.

use domain::{Answer, Command, Failure, SessionId};

use crate::reply::Reply;
use crate::server::Server;
use crate::wire::requests::{
    ApproveParams, ChatParams, Method, PromptSteer, PromptSteerRemove, PromptStop, RejectParams, SteerParams,
    ToolCallApprove, ToolCallReject,
};
use crate::wire::{ChatKey, Empty};

pub(crate) async fn stop(server: &mut Server, params: ChatParams, reply: Reply<PromptStop>) {
    if let Some(session) = server.session_of(params.chat_id.as_ref()) {
        server.engine.post(Command::Cancel { session }).await;
    }
    server.respond(reply, Ok(Empty {}));
}

pub(crate) async fn steer(server: &mut Server, params: SteerParams, reply: Reply<PromptSteer>) {
    set_steer(server, params.chat_id, params.message, reply).await;
}

pub(crate) async fn remove_steer(server: &mut Server, params: ChatParams, reply: Reply<PromptSteerRemove>) {
    set_steer(server, params.chat_id, None, reply).await;
}

async fn set_steer<M: Method<Result = Empty> + 'static>(
    server: &mut Server,
    chat: Option<ChatKey>,
    text: Option<String>,
    reply: Reply<M>,
) {
    let Some(session) = server.session_of(chat.as_ref()) else { return server.respond(reply, Ok(Empty {})) };
    let done = |server: &mut Server, done: Result<(), Failure>| {
        server.respond(reply, done.map(|()| Empty {}));
    };
    server.engine.call(|reply| Command::Steer { session, text, reply }, done).await;
}

pub(crate) async fn approve(server: &mut Server, params: ApproveParams, reply: Reply<ToolCallApprove>) {
    let answer = Answer::Allow { remember: params.save.as_deref() == Some("session") };
    let session = server.session_of(params.chat_id.as_ref());
    answer_ask(server, session, params.tool_call_id, answer).await;
    server.respond(reply, Ok(Empty {}));
}

pub(crate) async fn reject(server: &mut Server, params: RejectParams, reply: Reply<ToolCallReject>) {
    let answer = Answer::Deny { remember: false, reason: params.reason };
    let session = server.session_of(params.chat_id.as_ref());
    answer_ask(server, session, params.tool_call_id, answer).await;
    server.respond(reply, Ok(Empty {}));
}

/// Clients approve calls that need no approval, and approve twice: both do nothing.
async fn answer_ask(server: &mut Server, session: Option<SessionId>, call: Option<String>, answer: Answer) {
    let (Some(session), Some(call)) = (session, call) else { return };
    if let Some(ask) = server.ask_of(&session, &call) {
        server.engine.post(Command::answer(session, ask, answer)).await;
    }
}
