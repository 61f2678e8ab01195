//! What one chat takes over from another: as a fork, or by `/resume` into a chat that has just begun.
//!
//! Invariant: only whole items are taken over; the other chat is not touched, whoever writes it.

use domain::event::Fact;
use domain::item::ItemKind;
use domain::store::{ListFilter, SessionSummary};
use domain::{Failure, ItemId, Recorded, SessionId, Store, TurnId};

use crate::session::Session;
use crate::session::actor::{Actor, Create};

/// Facts read at a time.
const PAGE: usize = 1024;
/// Chats that `/resume` lists.
const LISTED: usize = 20;

/// The facts a fork begins with: whole items of the history as it stands, without the turns that made them.
pub async fn forked(
    store: &dyn Store,
    session: &SessionId,
    until: Option<ItemId>,
    client: String,
) -> Result<Create, Failure> {
    let mut history = crate::session::state::History::default();
    loop {
        let page: Vec<Recorded> = store.read(session, history.newest, PAGE).await?;
        if page.is_empty() {
            break;
        }
        for recorded in &page {
            history.fold(recorded);
        }
    }
    if history.newest == 0 {
        return Err(Failure::user(format!("There is no chat {session}.")));
    }
    let closing: Vec<Fact> = history.closing_facts();
    for fact in closing {
        let number = history.newest;
        history.fold(&Recorded { number, at: 0, fact });
    }
    if let Some(until) = until {
        let at = history
            .items
            .iter()
            .position(|item| item.id == until)
            .ok_or_else(|| Failure::user(format!("There is no {until} in this chat.")))?;
        history.items.truncate(at + 1);
    }
    let mut settings = history.settings.clone();
    settings.title = settings.title.map(|title| format!("{title} (fork)"));
    let facts = history.items.iter().map(|item| Fact::ItemEnded { item: item.clone() }).collect();
    Ok(Create { workspace: history.workspace, settings, parent: Some(session.clone()), client, facts })
}

/// `/resume`: the other chats of the workspace, to be named by number or id.
pub async fn listed(session: &Session) -> Result<String, Failure> {
    let chats = others(session).await?;
    if chats.is_empty() {
        return Ok("There are no other chats of this workspace.".into());
    }
    let lines: Vec<String> = (1..)
        .zip(chats)
        .map(|(number, chat)| {
            format!("{number}. {} ({})", chat.title.unwrap_or_else(|| "untitled".into()), chat.id)
        })
        .collect();
    Ok(format!("{}\n\nGo on with one of them here: /resume 1", lines.join("\n")))
}

/// `/resume 2`: what the other chat holds becomes the beginning of this one. Gives its facts and what to say.
pub async fn taken_over(
    actor: &mut Actor,
    turn: TurnId,
    wanted: &str,
) -> Result<(Vec<Fact>, String), Failure> {
    let session = actor.session.clone();
    let begun = actor.history.as_ref().is_some_and(|history| {
        history.items.iter().any(|item| matches!(item.kind, ItemKind::UserMessage { .. }))
    });
    if begun {
        return Err(Failure::user("This chat has messages of its own.")
            .hint("Begin a new chat and resume there, or open the other one."));
    }
    let chats = others(&session).await?;
    let numbered = wanted.parse::<usize>().ok().and_then(|number| chats.get(number.checked_sub(1)?));
    let chat =
        numbered.or_else(|| chats.iter().find(|chat| chat.id.as_str() == wanted)).ok_or_else(|| {
            Failure::user(format!("There is no chat {wanted} in this workspace."))
                .hint("/resume lists them with their numbers.")
        })?;
    let create = forked(session.store.as_ref(), &chat.id, None, String::new()).await?;
    let mut facts = Vec::new();
    for fact in create.facts {
        let Fact::ItemEnded { mut item } = fact else { continue };
        item.id = ItemId(session.next_item());
        item.turn = turn;
        if let Some(history) = &mut actor.history {
            history.put(item.clone());
        }
        facts.push(Fact::ItemEnded { item });
    }
    let title = chat.title.clone().unwrap_or_else(|| "untitled".into());
    Ok((facts, format!("This chat goes on where {title} was. The other one stays as it is.")))
}

async fn others(session: &Session) -> Result<Vec<SessionSummary>, Failure> {
    let filter =
        ListFilter { workspace: Some(session.roots.to_vec()), limit: Some(LISTED + 1), ..Default::default() };
    let chats = session.store.list(filter).await?;
    Ok(chats.into_iter().filter(|chat| chat.id != session.id).take(LISTED).collect())
}
