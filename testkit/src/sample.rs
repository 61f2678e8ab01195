//! Facts for tests of the stores.

use domain::command::SessionSettings;
use domain::event::SessionOpened;
use domain::{Fact, Item, ItemId, ItemKind, SessionId, Store, TurnId};

pub fn opened(title: &str, workspace: &[&str]) -> Fact {
    Fact::SessionOpened(SessionOpened {
        workspace: workspace.iter().map(Into::into).collect(),
        settings: SessionSettings { title: Some(title.to_owned()), ..SessionSettings::default() },
        parent: None,
        client: "test".to_owned(),
    })
}

pub fn user_message(number: u64, text: &str) -> Fact {
    item(number, ItemKind::UserMessage { text: text.to_owned(), parts: Vec::new() })
}

pub fn agent_message(number: u64, text: &str) -> Fact {
    item(number, ItemKind::AgentMessage { text: text.to_owned(), interrupted: false, provider: None })
}

pub fn reasoning(number: u64, text: &str) -> Fact {
    item(number, ItemKind::Reasoning { text: text.to_owned(), millis: 0, provider: None })
}

fn item(number: u64, kind: ItemKind) -> Fact {
    Fact::ItemEnded { item: Item { id: ItemId(number), turn: TurnId(1), step: 0, parent: None, kind } }
}

/// The same item, still growing.
pub fn started(ended: Fact) -> Fact {
    let Fact::ItemEnded { item } = ended else { panic!("not an ended item: {ended:?}") };
    Fact::ItemStarted { item }
}

pub fn text_of(fact: &Fact) -> &str {
    match fact {
        Fact::ItemEnded { item } => match &item.kind {
            ItemKind::UserMessage { text, .. } | ItemKind::AgentMessage { text, .. } => text,
            _ => "",
        },
        _ => "",
    }
}

/// A chat that this store holds.
pub async fn chat(store: &dyn Store, name: &str) {
    let session = SessionId::new(name);
    store.lease(&session).await.expect("a lease");
    store.append(&session, vec![opened(name, &["/work"])]).await.expect("an append");
}
