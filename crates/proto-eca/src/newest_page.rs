//! The newest page of a stored chat, shown while the engine still loads the chat.
//!
//! Invariant: what is shown here is what the whole journal shows at its end; where the newest facts do not tell, nothing
//! is shown here and the whole journal is read.

use std::sync::Arc;

use domain::command::SessionInfo;
use domain::store::Preview;
use domain::{Ask, BoxFuture, Command, Failure, ItemId, SessionId, replay};

use crate::server::Server;
use crate::session_facts::open_questions;
use crate::wire::history::{HistoryMeta, HistoryParams};
use crate::wire::notifications::{Cleared, Opened};

/// Facts read for each item that a client asks for. A message has about three, a call of a tool six.
const FACTS_PER_ITEM: usize = 8;
/// A page of more items is no first screenful.
const MOST_ITEMS: usize = 500;

/// A page that the client has.
pub(crate) struct NewestPage {
    first: Option<ItemId>,
    returned: usize,
    pub open_questions: Vec<Ask>,
}

impl NewestPage {
    pub(crate) fn meta(&self, info: &SessionInfo) -> HistoryMeta {
        let is_part = self.returned < info.items;
        HistoryMeta {
            total: info.items,
            returned: self.returned,
            before_cursor: self.first.filter(|_| is_part).map(|id| id.to_string()),
            after_cursor: None,
            compaction_cursor: info.last_compaction.map(|id| id.to_string()),
        }
    }
}

type Previewing = BoxFuture<'static, Result<Option<Preview>, Failure>>;

/// Asks for the end of the chat where the client wants the newest items and not many; with their number.
pub(crate) async fn request(
    server: &mut Server,
    session: &SessionId,
    params: &HistoryParams,
) -> Option<(usize, Previewing)> {
    let limit = params.limit.and_then(|limit| usize::try_from(limit).ok())?;
    let is_newest = params.before.is_none() && params.after.is_none();
    if !is_newest || !(1..=MOST_ITEMS).contains(&limit) {
        return None;
    }
    let session = session.clone();
    let preview = |reply| Command::Preview { session, limit: limit * FACTS_PER_ITEM, reply };
    Some((limit, server.engine.send(preview).await))
}

pub(crate) fn show(
    server: &mut Server,
    session: &SessionId,
    preview: Preview,
    limit: usize,
) -> Option<NewestPage> {
    let facts = preview.facts.into_iter().map(Arc::new).collect();
    let facts = replay::last_turns(facts, limit)?;
    let items = replay::items(&replay::visible_facts(facts.clone()));
    let shown = &items[items.len().saturating_sub(limit)..];
    let is_whole = shown.len() == items.len() && facts.first().is_some_and(|first| first.number == 1);
    let (first, returned) = (shown.first().copied(), shown.len());
    let chat_id = server.chat_key(session);
    server.notify(&Cleared { chat_id: chat_id.clone(), messages: true });
    server.notify(&Opened { chat_id, title: preview.title.unwrap_or_default() });
    server.add_session(session);
    server.show_from(session, first.filter(|_| !is_whole));
    let open_questions = open_questions(&facts);
    server.replay(session, facts);
    Some(NewestPage { first, returned, open_questions })
}
