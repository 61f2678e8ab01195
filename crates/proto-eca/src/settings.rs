//! Settings of a chat, or of new chats: the selected model, behavior and variant, the title, trust.

use domain::command::SessionSettings;
use domain::{Command, Failure, SessionId};

use crate::catalog;
use crate::from_wire;
use crate::reply::Reply;
use crate::serve::Server;
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

/// Without a chat of this connection the change is for new chats.
async fn configure<M: Method<Result = Empty> + 'static>(
    server: &mut Server,
    chat: Option<ChatKey>,
    change: SessionSettings,
    reply: Reply<M>,
) {
    let session: Option<SessionId> =
        server.session_of(chat.as_ref()).filter(|session| server.has_session(session));
    server
        .engine
        .call(
            |reply| Command::Configure { session, change, reply },
            |server, done| respond_or_show(server, reply, done),
        )
        .await;
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
