//! Bookmarks of the user's: `chat/addFlag`, `chat/removeFlag`.
//!
//! Invariant: a new bookmark is shown in its place before the response; the client removes one by itself.

use domain::command::FlagChange;
use domain::{Command, ItemId};
use rpc::Fault;

use crate::reply::Reply;
use crate::server::Server;
use crate::sessions::change_history;
use crate::wire::Empty;
use crate::wire::requests::{AddFlag, FlagParams, Method, RemoveFlag};

pub(crate) async fn add(server: &mut Server, params: FlagParams, reply: Reply<AddFlag>) {
    let Some(after) = item_of(&params) else { return refuse(reply) };
    let Some(session) = server.session_of(params.chat_id.as_ref()) else { return reply.missing("chatId") };
    let change = FlagChange::Add { after, text: params.text.unwrap_or_default() };
    let changed = session.clone();
    change_history(server, changed, reply, |reply| Command::Flag { session, change, reply }).await;
}

pub(crate) async fn remove(server: &mut Server, params: FlagParams, reply: Reply<RemoveFlag>) {
    let Some(flag) = item_of(&params) else { return refuse(reply) };
    let Some(session) = server.session_of(params.chat_id.as_ref()) else { return reply.missing("chatId") };
    let change = FlagChange::Remove { flag };
    let done = |server: &mut Server, done: Result<(), domain::Failure>| {
        server.respond(reply, done.map(|()| Empty {}));
    };
    server.engine.call(|reply| Command::Flag { session, change, reply }, done).await;
}

fn item_of(params: &FlagParams) -> Option<ItemId> {
    params.content_id.as_deref().and_then(ItemId::parse)
}

fn refuse<M: Method>(reply: Reply<M>) {
    reply.refuse(Fault::new(Fault::INVALID_PARAMS, "contentId is not one of this chat's."));
}
