//! The history of a chat in pages: `chat/history`, and the part that `chat/open` shows.
//!
//! Must not know how contents look. Invariants: a cursor is the id of an item, so it survives everything but a rollback
//! of that item; pages that follow each other neither overlap nor leave something out.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use domain::item::ItemKind;
use domain::{Event, Fact, ItemId, Recorded, SessionId, replay};
use serde_json::Value;

use crate::reply::Reply;
use crate::server::Server;
use crate::session_facts::read_facts;
use crate::wire::contents::Content;
use crate::wire::history::{HistoryMeta, HistoryParams, HistoryProblem, HistoryResult};
use crate::wire::notifications::Outbound;
use crate::wire::requests::History;

/// A cursor that stands for the last compaction.
const LAST_COMPACTION: &str = "lastCompaction";

/// A part of a history.
pub(crate) struct Page {
    /// The items, oldest first.
    pub items: Vec<ItemId>,
    pub meta: HistoryMeta,
}

pub(crate) async fn page(server: &mut Server, params: HistoryParams, reply: Reply<History>) {
    let Some(chat_id) = params.chat_id.clone() else { return reply.missing("chatId") };
    let Some(session) = server.session_of(Some(&chat_id)) else {
        let problem = problem("chat_not_found", "There is no such chat.");
        return server.respond(reply, Ok(HistoryResult::Problem { chat_id, error: problem }));
    };
    let shown = session.clone();
    read_facts(server, &session, move |server, facts| {
        let result = facts.map(|facts| {
            if facts.is_empty() {
                let error = problem("chat_not_found", "There is no such chat.");
                return HistoryResult::Problem { chat_id, error };
            }
            let facts = domain::replay::visible_facts(facts);
            match cut(&facts, &params) {
                Ok(page) => {
                    // What is shown again later begins with the oldest page.
                    if params.before.is_some() {
                        server.show_from(&shown, page.items.first().copied());
                    }
                    let contents = contents(server, &shown, &facts, &page.items);
                    HistoryResult::Page { chat_id, contents, meta: page.meta }
                }
                Err(error) => HistoryResult::Problem { chat_id, error },
            }
        });
        server.respond(reply, result);
    });
}

/// The page that the parameters ask for.
pub(crate) fn cut(facts: &[Arc<Recorded>], params: &HistoryParams) -> Result<Page, HistoryProblem> {
    let items = replay::items(facts);
    let compaction = facts.iter().rev().find_map(|recorded| {
        let Fact::ItemEnded { item } = &recorded.fact else { return None };
        matches!(item.kind, ItemKind::Compaction { .. }).then_some(item.id)
    });
    let range = window(&items, compaction, params)?;
    let cursor = |at: usize| items.get(at).map(ItemId::to_string);
    let meta = HistoryMeta {
        total: items.len(),
        returned: range.len(),
        before_cursor: cursor(range.start).filter(|_| range.start > 0),
        after_cursor: if range.end < items.len() { range.end.checked_sub(1).and_then(cursor) } else { None },
        compaction_cursor: compaction.map(|id| id.to_string()),
    };
    Ok(Page { items: items[range].to_vec(), meta })
}

/// Both bounds are left out of the page. The newest items are taken, except where `after` alone asks for the next ones.
fn window(
    items: &[ItemId],
    compaction: Option<ItemId>,
    params: &HistoryParams,
) -> Result<Range<usize>, HistoryProblem> {
    let place = |cursor: Option<&str>| match cursor {
        None => Ok(None),
        Some(LAST_COMPACTION) => Ok(compaction.and_then(|id| items.iter().position(|item| *item == id))),
        Some(cursor) => {
            let id = ItemId::parse(cursor);
            let at = items.iter().position(|item| Some(*item) == id);
            at.map(Some).ok_or_else(|| {
                problem("cursor_expired", "This part of the chat is gone. Open the chat again.")
            })
        }
    };
    let (after, before) = (place(params.after.as_deref())?, place(params.before.as_deref())?);
    let start = after.map_or(0, |at| at + 1).min(items.len());
    let end = before.unwrap_or(items.len()).max(start);
    let limit = params.limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
    let is_forward = after.is_some() && before.is_none() && params.after.as_deref() != Some(LAST_COMPACTION);
    Ok(match limit {
        None => start..end,
        Some(limit) if is_forward => start..end.min(start + limit),
        Some(limit) => end.saturating_sub(limit).max(start)..end,
    })
}

/// The facts that are shown where the history begins with an item; everything where that item is gone.
pub(crate) fn from_item(facts: Vec<Arc<Recorded>>, first: ItemId) -> Vec<Arc<Recorded>> {
    let is_first = |recorded: &Arc<Recorded>| replay::item_of(&recorded.fact) == Some(first);
    let Some(at) = facts.iter().position(is_first) else { return facts };
    let is_shown = |(index, recorded): &(usize, Arc<Recorded>)| {
        let is_of_turn = matches!(recorded.fact, Fact::TurnStarted { .. } | Fact::TurnEnded { .. });
        *index >= at || !(is_of_turn || replay::item_of(&recorded.fact).is_some())
    };
    facts.into_iter().enumerate().filter(is_shown).map(|(_, recorded)| recorded).collect()
}

/// The contents of some items, as the client would have received them.
fn contents(server: &Server, session: &SessionId, facts: &[Arc<Recorded>], items: &[ItemId]) -> Vec<Value> {
    let (mut projection, chat) = (server.dialect.new_projection(), server.chat_key(session));
    let wanted: HashSet<ItemId> = items.iter().copied().collect();
    let mut contents = Vec::new();
    for recorded in facts.iter().filter(|it| replay::item_of(&it.fact).is_some_and(|id| wanted.contains(&id)))
    {
        let event = Event::fact(session.clone(), recorded.clone());
        for outbound in projection.project(chat.as_id(), &event) {
            if let Outbound::Content(received) = outbound
                && !matches!(received.content, Content::Progress { .. } | Content::Usage(_))
            {
                contents.extend(serde_json::to_value(&received));
            }
        }
    }
    contents
}

fn problem(code: &'static str, message: &str) -> HistoryProblem {
    HistoryProblem { code, message: message.to_owned() }
}
