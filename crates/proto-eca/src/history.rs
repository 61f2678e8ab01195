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

#[cfg(test)]
mod tests {
    use super::*;
    use domain::TurnId;
    use domain::item::Item;

    fn item(number: u64, kind: ItemKind) -> Arc<Recorded> {
        let item = Item { id: ItemId(number), turn: TurnId(1), step: 0, parent: None, kind };
        Arc::new(Recorded { number, at: 0, fact: Fact::ItemEnded { item } })
    }

    /// Messages 1, 2, … of which one is a compaction.
    fn facts(count: u64, compaction: Option<u64>) -> Vec<Arc<Recorded>> {
        let kind = |number| match compaction == Some(number) {
            true => ItemKind::Compaction { summary: "short".to_owned(), kept: Vec::new() },
            false => ItemKind::UserMessage { text: number.to_string(), parts: Vec::new() },
        };
        (1..=count).map(|number| item(number, kind(number))).collect()
    }

    fn numbers(page: &Page) -> Vec<u64> {
        page.items.iter().map(|id| id.0).collect()
    }

    #[test]
    fn pages_that_follow_each_other_are_the_whole_history() {
        for count in 0..9 {
            let facts = facts(count, None);
            let whole: Vec<u64> = (1..=count).collect();
            for limit in 1..5 {
                let newest = HistoryParams { limit: Some(limit), ..HistoryParams::default() };
                let (mut params, mut backwards) = (newest, Vec::new());
                loop {
                    let page = cut(&facts, &params).unwrap();
                    assert!(page.items.len() <= usize::try_from(limit).unwrap());
                    assert_eq!((page.meta.total, page.meta.returned), (facts.len(), page.items.len()));
                    backwards.splice(0..0, numbers(&page));
                    params.before = page.meta.before_cursor;
                    if params.before.is_none() {
                        break;
                    }
                }
                assert_eq!(backwards, whole, "{count} items, {limit} at a time, from the end");
                let Some(first) = whole.first() else { continue };
                let (mut after, mut forwards) = (Some(ItemId(*first).to_string()), vec![*first]);
                while after.is_some() {
                    let params = HistoryParams { after, limit: Some(limit), ..HistoryParams::default() };
                    let page = cut(&facts, &params).unwrap();
                    forwards.extend(numbers(&page));
                    after = page.meta.after_cursor;
                }
                assert_eq!(forwards, whole, "{count} items, {limit} at a time, from the beginning");
            }
        }
    }

    #[test]
    fn cursors_name_items_and_the_last_compaction() {
        let facts = facts(6, Some(3));
        let since = |after: &str, before: Option<&str>| HistoryParams {
            after: Some(after.to_owned()),
            before: before.map(str::to_owned),
            ..HistoryParams::default()
        };
        let page = cut(&facts, &since(LAST_COMPACTION, None)).unwrap();
        assert_eq!(numbers(&page), [4, 5, 6]);
        assert_eq!(page.meta.compaction_cursor, Some(ItemId(3).to_string()));
        let between = since(&ItemId(2).to_string(), Some(&ItemId(5).to_string()));
        assert_eq!(numbers(&cut(&facts, &between).unwrap()), [3, 4]);
        let crossed = since(&ItemId(5).to_string(), Some(&ItemId(2).to_string()));
        assert_eq!(numbers(&cut(&facts, &crossed).unwrap()), [0; 0], "bounds in the wrong order");
        for gone in ["99", "nonsense", ""] {
            assert_eq!(
                cut(&facts, &since(gone, None)).err().map(|problem| problem.code),
                Some("cursor_expired")
            );
        }
        let uncompacted = super::tests::facts(2, None);
        assert_eq!(numbers(&cut(&uncompacted, &since(LAST_COMPACTION, None)).unwrap()), [1, 2]);
    }

    #[test]
    fn a_history_that_begins_with_an_item_leaves_out_what_was_before_it() {
        let mut all = facts(4, None);
        let turn = Fact::TurnStarted { turn: TurnId(1), model: "a/b".to_owned() };
        all.insert(0, Arc::new(Recorded { number: 9, at: 0, fact: turn }));
        let opened = Fact::SessionChanged { change: domain::command::SessionSettings::default() };
        all.insert(0, Arc::new(Recorded { number: 8, at: 0, fact: opened }));
        let shown =
            |first| from_item(all.clone(), first).iter().map(|recorded| recorded.number).collect::<Vec<_>>();
        assert_eq!(shown(ItemId(3)), [8, 3, 4], "settings stay, turns and items before it go");
        assert_eq!(shown(ItemId(77)).len(), all.len(), "all of it, where the item is gone");
    }
}
