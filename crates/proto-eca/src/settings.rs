//! Settings of a chat, or of new chats: the selected model, behavior and variant, the title, trust.

use domain::command::SessionSettings;
use domain::{Command, Failure, FailureKind, SessionId};

use crate::catalog;
use crate::from_wire;
use crate::reply::Reply;
use crate::server::Server;
use crate::wire::notifications::{ChatConfig, ConfigUpdated, ShowMessage};
use crate::wire::requests::{
    Method, SelectedAgentChanged, SelectedBehaviorChanged, SelectedModelChanged, SelectionParams, Update,
    UpdateParams,
};
use crate::wire::{ChatKey, Empty};

pub(crate) async fn select_behavior(
    server: &mut Server,
    params: SelectionParams,
    reply: Reply<SelectedBehaviorChanged>,
) {
    select(server, params, reply).await;
}

pub(crate) async fn select_agent(
    server: &mut Server,
    params: SelectionParams,
    reply: Reply<SelectedAgentChanged>,
) {
    select(server, params, reply).await;
}

/// Also tells the variants of the selected model.
pub(crate) async fn select_model(
    server: &mut Server,
    params: SelectionParams,
    reply: Reply<SelectedModelChanged>,
) {
    let selected = params.model.clone().map(|name| from_wire::model(&server.catalog, name));
    let (variant, chat_id) = (params.variant.clone(), params.chat_id.clone());
    select(server, params, reply).await;
    let Some(variants) = selected.map(|model| catalog::variants(&server.catalog, &model)) else { return };
    let select_variant = Some(variant.filter(|variant| variants.contains(variant)));
    let chat = ChatConfig { variants: Some(variants), select_variant, ..ChatConfig::default() };
    server.notify(&ConfigUpdated { chat_id, chat });
}

async fn select<M: Method<Result = Empty> + 'static>(
    server: &mut Server,
    params: SelectionParams,
    reply: Reply<M>,
) {
    let SelectionParams { chat_id, model, variant, behavior, agent } = params;
    let change = SessionSettings {
        model: model.map(|name| from_wire::model(&server.catalog, name)),
        behavior: from_wire::behavior(behavior, agent),
        variant,
        ..SessionSettings::default()
    };
    configure(server, chat_id, change, reply).await;
}

pub(crate) async fn update(server: &mut Server, params: UpdateParams, reply: Reply<Update>) {
    let UpdateParams { chat_id, title, trust } = params;
    configure(server, chat_id, SessionSettings { title, trust, ..SessionSettings::default() }, reply).await;
}

/// Chats that may have settings before they begin.
const MAX_UNOPENED: usize = 256;

/// Without a chat the change is for new chats. One that is named and not open here is a stored chat, or it begins with
/// the change; other chats never get it.
async fn configure<M: Method<Result = Empty> + 'static>(
    server: &mut Server,
    chat: Option<ChatKey>,
    change: SessionSettings,
    reply: Reply<M>,
) {
    let is_named = chat.as_ref().is_some_and(|key| *key != ChatKey::Text(String::new()));
    let session: Option<SessionId> = server.session_of(chat.as_ref());
    let is_open = session.as_ref().is_some_and(|session| server.has_session(session));
    if is_named && !is_open {
        return configure_unopened(server, session, change, reply);
    }
    server
        .engine
        .call(
            |reply| Command::Configure { session, change, reply },
            |server, done| respond_or_show(server, reply, done),
        )
        .await;
}

fn configure_unopened<M: Method<Result = Empty> + 'static>(
    server: &mut Server,
    session: Option<SessionId>,
    change: SessionSettings,
    reply: Reply<M>,
) {
    let (Some(id), Some(commands)) = (session, server.engine.commands()) else {
        return respond_or_show(server, reply, Ok(()));
    };
    let (named, wanted) = (id.clone(), change.clone());
    let stored = async move {
        let session = named.clone();
        match commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await {
            Ok(_) => {}
            Err(failure) if failure.kind == FailureKind::User => return Ok(false),
            Err(failure) => return Err(failure),
        }
        let configure = |reply| Command::Configure { session: Some(named), change: wanted, reply };
        commands.call(configure).await.map(|_| true)
    };
    server.engine.later(stored, move |server, done| {
        if matches!(done, Ok(false)) && server.unopened.len() < MAX_UNOPENED {
            server.unopened.entry(id).or_default().apply(&change);
        }
        respond_or_show(server, reply, done);
    });
}

/// A failure is shown to a person where the client did not wait for an answer.
pub(crate) fn respond_or_show<T, M: Method<Result = Empty>>(
    server: &mut Server,
    reply: Reply<M>,
    done: Result<T, Failure>,
) {
    if let (Err(failure), false) = (&done, reply.is_expected()) {
        server.notify(&ShowMessage { kind: "error", message: failure.to_string() });
    }
    server.respond(reply, done.map(|_| Empty {}));
}
