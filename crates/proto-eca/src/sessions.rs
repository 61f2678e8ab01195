//! Stored chats: the list, opening one, a fork of one, dropping messages, deleting.
//!
//! Invariant: the contents that a request causes are sent before its response; Emacs drops contents that come later.

use domain::command::{RollbackScope, SessionInfo};
use domain::store::{ListFilter, SessionSummary};
use domain::{Ask, Command, Failure, FailureKind, ItemId, SessionId};
use rpc::Fault;

use crate::catalog;
use crate::history;
use crate::host;
use crate::newest_page::{self, NewestPage};
use crate::reply::Reply;
use crate::server::Server;
use crate::session_facts::{self, open_questions, read_facts, tell_of_holder};
use crate::settings::respond_or_show;
use crate::to_wire;
use crate::wire::Empty;
use crate::wire::history::{
    ChatSelection, ChatSummary, ForkParams, HistoryMeta, HistoryParams, ListParams, ListResult, OpenResult,
};
use crate::wire::notifications::{ChatConfig, Cleared, ConfigUpdated, Deleted, Opened};
use crate::wire::requests::{
    ChatParams, Clear, ClearParams, Delete, Fork, List, Method, Open, Prompt, PromptResult, Rollback,
    RollbackParams,
};

pub(crate) async fn list(server: &mut Server, params: ListParams, reply: Reply<List>) {
    let limit = params.limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
    let by_creation = params.sort_by.as_deref() == Some("createdAt");
    let filter = ListFilter { limit: limit.filter(|_| !by_creation), ..ListFilter::default() };
    server
        .engine
        .call(
            |reply| Command::List { filter, reply },
            move |server, found| {
                let chats = found.map(|mut found| {
                    if by_creation {
                        found.sort_by_key(|chat| std::cmp::Reverse(chat.created_at));
                        found.truncate(limit.unwrap_or(usize::MAX));
                    }
                    found.into_iter().map(summary).collect()
                });
                server.respond(reply, chats.map(|chats| ListResult { chats }));
            },
        )
        .await;
}

fn summary(session: SessionSummary) -> ChatSummary {
    ChatSummary {
        kind: session_facts::is_inline(session.title.as_deref()).then_some("inline"),
        id: session.id.to_string(),
        title: session.title,
        status: "idle",
        message_count: session.message_count,
        model: session.model,
        created_at: session.created_at,
        updated_at: session.updated_at,
    }
}

pub(crate) async fn open(server: &mut Server, params: HistoryParams, reply: Reply<Open>) {
    let Some(chat_id) = params.chat_id.clone() else { return reply.missing("chatId") };
    let Some(session) = server.session_of(Some(&chat_id)) else {
        return server.respond(reply, Ok(OpenResult::unknown(Some(chat_id))));
    };
    let page = newest_page::request(server, &session, &params).await;
    let show = move |server: &mut Server, info: Result<SessionInfo, Failure>, page: Option<NewestPage>| match (
        info, page,
    ) {
        (Ok(info), Some(page)) => {
            let meta = page.meta(&info);
            let opened = finish_opening(server, &info, page.open_questions, meta);
            server.respond(reply, Ok(opened));
        }
        (Ok(info), None) => show_opened(server, info, params, reply),
        (Err(failure), _) if failure.kind == FailureKind::User => {
            server.respond(reply, Ok(OpenResult::unknown(Some(chat_id))));
        }
        (Err(failure), _) => server.respond(reply, Err(failure)),
    };
    let load = |reply| Command::Load { session: session.clone(), servers: Vec::new(), reply };
    let Some((limit, preview)) = page else {
        return server.engine.call(load, |server, info| show(server, info, None)).await;
    };
    let loaded = server.engine.send(load).await;
    server.engine.later(preview, move |server, preview| {
        let page = preview.ok().flatten().and_then(|it| newest_page::show(server, &session, it, limit));
        server.engine.later(loaded, |server, info| show(server, info, page));
    });
}

/// A new chat with the history of another one, also of one that another process writes.
pub(crate) async fn fork(server: &mut Server, params: ForkParams, reply: Reply<Fork>) {
    let Some(session) = server.session_of(params.chat_id.as_ref()) else { return reply.missing("chatId") };
    let until = params.content_id.as_deref().filter(|id| !id.is_empty()).map(ItemId::parse);
    if until == Some(None) {
        return server.respond(reply, Ok(OpenResult::unknown(None)));
    }
    let (until, original) = (until.flatten(), session.clone());
    server
        .engine
        .call(
            |reply| Command::Fork { session, until, id: None, reply },
            move |server, info| match info {
                Ok(info) => {
                    tell_of_fork(server, &original, &info);
                    show_opened(server, info, HistoryParams::default(), reply);
                }
                // The message is not in the chat.
                Err(failure) if failure.kind == FailureKind::User && until.is_some() => {
                    server.respond(reply, Ok(OpenResult::unknown(None)));
                }
                Err(failure) => server.respond(reply, Err(failure)),
            },
        )
        .await;
}

/// Says in the chat that was forked where the fork is.
fn tell_of_fork(server: &mut Server, original: &SessionId, fork: &SessionInfo) {
    if server.has_session(original) {
        let chat = server.chat_key(original);
        let title = fork.settings.title.clone().unwrap_or_else(|| fork.id.to_string());
        server.send(to_wire::system_text(chat.as_id(), format!("\nForked into the chat \"{title}\".\n")));
    }
}

/// Cleared, opened, the contents, the selection, and then the response.
fn show_opened<M: Method<Result = OpenResult> + 'static>(
    server: &mut Server,
    info: SessionInfo,
    params: HistoryParams,
    reply: Reply<M>,
) {
    show_chat(server, info, params, |server, opened| server.respond(reply, opened));
}

fn show_chat(
    server: &mut Server,
    info: SessionInfo,
    params: HistoryParams,
    then: impl FnOnce(&mut Server, Result<OpenResult, Failure>) + Send + 'static,
) {
    let session = info.id.clone();
    read_facts(server, &session, move |server, facts| {
        let facts = match facts {
            Ok(facts) => facts,
            Err(failure) => return then(server, Err(failure)),
        };
        let (chat_id, title) = (server.chat_key(&info.id), info.settings.title.clone().unwrap_or_default());
        let page = match history::cut(&domain::replay::visible_facts(facts.clone()), &params) {
            Ok(page) => page,
            Err(error) => {
                let (selection, meta, error) = (None, None, Some(error));
                let title = Some(title);
                let chat_id = Some(chat_id);
                return then(server, Ok(OpenResult { found: true, chat_id, title, selection, meta, error }));
            }
        };
        server.notify(&Cleared { chat_id: chat_id.clone(), messages: true });
        server.notify(&Opened { chat_id: chat_id.clone(), title: title.clone() });
        server.add_session(&info.id);
        server.show_from(&info.id, page.items.first().copied().filter(|_| page.meta.before_cursor.is_some()));
        let open = open_questions(&facts);
        server.replay(&info.id, facts);
        let opened = finish_opening(server, &info, open, page.meta);
        then(server, Ok(opened));
    });
}

/// The contents are sent: the selection, the questions that wait, and what the response says.
fn finish_opening(server: &mut Server, info: &SessionInfo, open: Vec<Ask>, meta: HistoryMeta) -> OpenResult {
    let (chat_id, title) = (server.chat_key(&info.id), info.settings.title.clone().unwrap_or_default());
    server.set_model(&info.id, info.settings.model.as_deref());
    let selection = selection(server, info);
    server.notify(&ConfigUpdated { chat_id: Some(chat_id.clone()), chat: chat_config(&selection) });
    tell_of_holder(server, info);
    if info.busy {
        for ask in open {
            host::ask_user(server, &info.id, &ask);
        }
    }
    let (title, meta, selection) = (Some(title), Some(meta), Some(selection));
    OpenResult { found: true, chat_id: Some(chat_id), title, selection, meta, error: None }
}

/// The selection of one chat, for clients that read it from `config/updated`.
fn chat_config(selection: &ChatSelection) -> ChatConfig {
    ChatConfig {
        select_model: selection.model.clone(),
        variants: Some(selection.variants.clone()),
        select_variant: Some(selection.variant.clone()),
        select_agent: Some(selection.agent.clone()),
        select_trust: Some(selection.trust),
        ..ChatConfig::default()
    }
}

/// `/fork`: the fork is opened, and the chat where it was typed says so.
pub(crate) async fn fork_by_command(server: &mut Server, session: SessionId, reply: Reply<Prompt>) {
    let original = session.clone();
    server
        .engine
        .call(
            |reply| Command::Fork { session, until: None, id: None, reply },
            move |server, info| {
                let (chat_id, model) = (server.chat_key(&original), server.model_of(&original));
                server.respond(reply, Ok(PromptResult::Published { chat_id, model, status: "prompting" }));
                match info {
                    Ok(info) => {
                        tell_of_fork(server, &original, &info);
                        show_chat(server, info, HistoryParams::default(), |_, _| {});
                    }
                    Err(failure) => {
                        let chat = server.chat_key(&original);
                        server.send(to_wire::system_text(chat.as_id(), format!("\n{failure}\n")));
                    }
                }
                let chat = server.chat_key(&original);
                server.send(to_wire::finished(chat.as_id()));
            },
        )
        .await;
}

fn selection(server: &Server, info: &SessionInfo) -> ChatSelection {
    let settings = &info.settings;
    let model = server.model_of(&info.id);
    ChatSelection {
        agent: catalog::agent_name(settings.behavior.as_deref().unwrap_or("agent")).to_owned(),
        variant: settings.variant.clone(),
        variants: catalog::variants(&server.catalog, &model),
        trust: settings.trust.unwrap_or(false),
        model: Some(model).filter(|model| !model.is_empty()),
    }
}

/// The client clears the chat and gets the contents that are left; `then` runs after them.
pub(crate) fn show_again(
    server: &mut Server,
    session: SessionId,
    then: impl FnOnce(&mut Server, Result<(), Failure>) + Send + 'static,
) {
    // Events until then are part of the facts that are read now.
    server.pause(&session);
    let shown = session.clone();
    read_facts(server, &session, move |server, facts| {
        let done = facts.map(|facts| {
            let chat_id = server.chat_key(&shown);
            server.notify(&Cleared { chat_id, messages: true });
            server.replay(&shown, facts);
        });
        then(server, done);
    });
}

pub(crate) async fn clear(server: &mut Server, params: ClearParams, reply: Reply<Clear>) {
    let Some(session) = server.session_of(params.chat_id.as_ref()) else { return reply.missing("chatId") };
    if params.messages == Some(false) {
        return server.respond(reply, Ok(Empty {}));
    }
    drop_messages(server, session, None, RollbackScope::Messages, reply).await;
}

pub(crate) async fn rollback(server: &mut Server, params: RollbackParams, reply: Reply<Rollback>) {
    let Some(session) = server.session_of(params.chat_id.as_ref()) else { return reply.missing("chatId") };
    let Some(from) = params.content_id.as_deref().and_then(ItemId::parse) else {
        return reply.refuse(Fault::new(Fault::INVALID_PARAMS, "contentId is not one of this chat's."));
    };
    let include = params.include.unwrap_or_default();
    let asks_for = |what: &str| include.iter().any(|it| it == what);
    let scope = match (asks_for("messages"), asks_for("tools")) {
        (true, true) => RollbackScope::Both,
        (false, true) => RollbackScope::Files,
        (_, false) => RollbackScope::Messages,
    };
    drop_messages(server, session, Some(from), scope, reply).await;
}

async fn drop_messages<M: Method<Result = Empty> + 'static>(
    server: &mut Server,
    session: SessionId,
    from: Option<ItemId>,
    scope: RollbackScope,
    reply: Reply<M>,
) {
    let changed = session.clone();
    change_history(server, changed, reply, |reply| Command::Rollback { session, from, scope, reply }).await;
}

/// First the notifications, then the response. The event of the change itself shows nothing meanwhile.
pub(crate) async fn change_history<M: Method<Result = Empty> + 'static>(
    server: &mut Server,
    session: SessionId,
    reply: Reply<M>,
    command: impl FnOnce(domain::Reply<()>) -> Command,
) {
    server.changing.insert(session.clone(), false);
    let done = move |server: &mut Server, done: Result<(), Failure>| {
        let is_changed = server.changing.remove(&session) == Some(true);
        match done {
            Ok(()) => show_again(server, session, |server, done| {
                server.respond(reply, done.map(|()| Empty {}));
            }),
            Err(failure) => {
                server.respond(reply, Err(failure));
                // Another window changed it.
                if is_changed {
                    show_again(server, session, |_, _| {});
                }
            }
        }
    };
    server.engine.call(command, done).await;
}

pub(crate) async fn delete(server: &mut Server, params: ChatParams, reply: Reply<Delete>) {
    let Some(session) = server.session_of(params.chat_id.as_ref()) else {
        return server.respond(reply, Ok(Empty {}));
    };
    let deleted = session.clone();
    server
        .engine
        .delete(session, move |server, done| {
            if let Err(failure) = done {
                return respond_or_show(server, reply, Err::<(), _>(failure));
            }
            let chat_id = server.chat_key(&deleted);
            server.remove_session(&deleted);
            server.notify(&Deleted { chat_id });
            server.respond(reply, Ok(Empty {}));
        })
        .await;
}
