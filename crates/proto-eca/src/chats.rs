//! Stored chats: the list, opening one, and a fork of one.

use domain::command::SessionInfo;
use domain::store::{ListFilter, SessionSummary};
use domain::{Command, FailureKind, ItemId, SessionId};
use rpc::{Fault, Responder};
use serde_json::{Value, json};

use crate::catalog::agent_name;
use crate::dispatch::{fail, session_of};
use crate::serve::Server;
use crate::wire::{ChatParams, method};

pub(crate) async fn list(server: &mut Server, params: ChatParams, responder: Option<Responder>) {
    let filter = ListFilter { limit: params.limit, ..ListFilter::default() };
    server
        .engine
        .call(
            |reply| Command::List { filter, reply },
            |server, chats| {
                let chats = chats.map(|chats| chats.iter().map(summary).collect::<Vec<Value>>());
                server.respond_with(responder, chats.map(|chats| json!({"chats": chats})));
            },
        )
        .await;
}

fn summary(chat: &SessionSummary) -> Value {
    json!({
        "id": chat.id, "title": chat.title, "status": "idle", "messageCount": chat.message_count,
        "model": chat.model, "createdAt": chat.created_at, "updatedAt": chat.updated_at,
    })
}

pub(crate) async fn open(server: &mut Server, params: ChatParams, responder: Option<Responder>) {
    let Some(session) = session_of(&params) else {
        return fail(responder, Fault::new(Fault::INVALID_PARAMS, "chatId is missing."));
    };
    let chat = session.clone();
    server
        .engine
        .call(
            |reply| Command::Load { session, servers: Vec::new(), reply },
            move |server, info| match info {
                Ok(info) => show_opened(server, chat, info, responder),
                Err(failure) if failure.kind == FailureKind::User => {
                    server.respond(responder, json!({"found": false, "chatId": chat}));
                }
                Err(failure) => server.respond_with(responder, Err(failure)),
            },
        )
        .await;
}

/// A chat of its own that begins with what another one defers, also one that another process writes.
pub(crate) async fn fork(server: &mut Server, params: ChatParams, responder: Option<Responder>) {
    let Some(session) = session_of(&params) else {
        return fail(responder, Fault::new(Fault::INVALID_PARAMS, "chatId is missing."));
    };
    let until = params.content_id.as_deref().and_then(ItemId::parse);
    server
        .engine
        .call(
            |reply| Command::Fork { session, until, reply },
            move |server, info| match info {
                Ok(info) => show_opened(server, info.id.clone(), info, responder),
                Err(failure) => server.respond_with(responder, Err(failure)),
            },
        )
        .await;
}

/// Cleared, opened, the contents, and then the response.
fn show_opened(server: &mut Server, chat: SessionId, info: SessionInfo, responder: Option<Responder>) {
    let Some(commands) = server.engine.commands() else { return };
    let session = chat.clone();
    server.engine.later(
        async move { domain::replay::read(&commands, &session).await },
        move |server, facts| {
            let facts = match facts {
                Ok(facts) => facts,
                Err(failure) => return server.respond_with(responder, Err(failure)),
            };
            let newest = facts.last().map_or(0, |last| last.number);
            let title = info.settings.title.clone().unwrap_or_default();
            server.notify(method::CHAT_CLEARED, &json!({"chatId": chat, "messages": true}));
            server.notify(method::CHAT_OPENED, &json!({"chatId": chat, "title": title}));
            server.replay(&chat, facts, newest);
            let behavior = info.settings.behavior.as_deref().unwrap_or("agent");
            let mut selection =
                json!({"agent": agent_name(behavior), "trust": info.settings.trust.unwrap_or(false)});
            if let Some(selection) = selection.as_object_mut() {
                selection
                    .extend(info.settings.model.as_ref().map(|model| ("model".to_owned(), json!(model))));
                selection.extend(info.settings.variant.as_ref().map(|it| ("variant".to_owned(), json!(it))));
            }
            server.respond(
                responder,
                json!({"found": true, "chatId": chat, "title": title, "selection": selection}),
            );
        },
    );
}
